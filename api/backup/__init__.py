"""What is left when a disk is lost, and how is it proved whole? In go a running database and the
files beside it; out come checked copies, data folders made of them up to a moment, and a proof of
what these hold.
"""

__all__ = ("archive", "following", "programs", "proof", "restoring", "taking")
