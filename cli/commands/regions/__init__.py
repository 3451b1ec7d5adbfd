"""Where do machines stand, what stands beside them, and where do their earnings go that leave
through a wallet? Commands about regions go in; answers of a server come out.
"""

__all__ = ()
