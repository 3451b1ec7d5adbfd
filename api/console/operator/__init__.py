"""What does the operator ask? What is wrong, what waits for a person, how full the market is."""

__all__ = ("registry",)
