"""How does a page look? Integers, times and states go in; marked-up
words and plots come out.
"""

__all__ = ("maps", "plots", "static", "templates", "words", "zones")
