"""Who visits which page? A request and a session go in; pages, forms and downloads come out."""

__all__ = ("entering", "headers", "months", "page", "reading", "states", "streams", "visit")
