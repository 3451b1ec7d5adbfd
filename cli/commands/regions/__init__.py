"""Where do machines stand, and what stands beside them? Commands about regions, clouds, sites and
devices, and about wallets that take their earnings, go in; answers of a server come out.
"""

__all__ = ()
