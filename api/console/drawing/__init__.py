"""How does it look? Integers, times and states go in; marked-up
words and plots come out.
"""

__all__ = ()
