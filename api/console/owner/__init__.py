"""What does an owner of GPUs ask? What was earned, when it can be taken, and why no work comes."""

__all__ = ("registry",)
