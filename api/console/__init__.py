"""What does a person see in the browser? A session and the answers of the API go in; pages come
out. No page decides, sums or reads a table.
"""

__all__ = ("front",)
