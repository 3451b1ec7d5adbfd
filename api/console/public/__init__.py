"""What may anybody check? Epochs, proposals, the log, and the numbers of the market."""

__all__ = ("registry",)
