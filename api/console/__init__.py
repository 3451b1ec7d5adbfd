"""What does a person see in the browser? The key of the visitor and the answers of the API go in;
pages come out. No page decides, sums or reads a table.
"""

__all__ = ("guard", "opening")
