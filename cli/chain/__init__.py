"""How does a command reach a chain? The options that name it and its key, and the connection."""

__all__ = ("connection", "options")
