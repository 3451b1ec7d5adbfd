"""Who decides for the network, and how? Votes, proposals and limits go in as `tallystick governor`,
`policy`, `grant` and `breaker`; signed requests to a server and its answers come out.
"""

__all__ = ("grants",)
