"""What does a renter ask? What runs, what it costs, and where each line of a bill comes from."""

__all__ = ("listing", "registry")
