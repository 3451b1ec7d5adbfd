"""How does a machine come in, and is it fit for work? Requests and reports go in; where an
admission stands and what is known of a machine's condition come out.
"""

__all__ = ("registry",)
