"""Commands of the operator on the server's own machine: its keys, its health, its contracts."""

__all__ = ()
