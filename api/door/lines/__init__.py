"""Who is served next, where more is asked than can be done."""

__all__ = ("entrance", "turns")
