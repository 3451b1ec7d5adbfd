"""What does `tallystick run` do beside leasing? A folder, variables and secrets go in; what
came back and what is seen of a running lease come out.
"""

__all__ = ("folder", "live", "options", "parcels", "priced", "waiting")
