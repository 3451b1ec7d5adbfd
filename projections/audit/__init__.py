"""Which facts name an account? Facts of the market log go in; an index of them by party and kind
comes out.
"""

__all__ = ("audit_index", "registry")
