"""What is a visit? A request and a session go in; pages, forms and downloads come out."""

__all__ = ()
