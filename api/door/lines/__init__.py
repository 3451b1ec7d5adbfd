"""Who is served next where more is asked than can be done at once? Callers and their requests go
in; turns come out, in an order in which one caller delays itself and hardly anybody else.
"""

__all__ = ("entrance", "turns")
