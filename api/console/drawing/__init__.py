"""How does a page look? Integers, times and states go in; marked-up
words and plots come out.
"""

__all__ = ("plots", "static", "templates", "tiles", "words", "zones")
