"""What is left when a disk is lost, and how is it proved whole?"""

__all__ = ("archive", "following", "programs", "proof", "restoring", "taking")
