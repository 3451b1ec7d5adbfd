"""Which tariffs and which price of a TOKEN hold? New tariffs and readings of sources go in; the
versions in force come out.
"""

__all__ = ("registry",)
