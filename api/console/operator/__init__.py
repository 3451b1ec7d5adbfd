"""What does the operator ask? What is wrong, what waits for a person, and how full the market is."""

__all__ = ("registry",)
