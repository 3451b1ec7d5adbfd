"""How does a party have something put right? Disputes, countersignatures and adjustments go in over
HTTP, settled leases by the clock; rulings and credits come out.
"""

__all__ = ("registry",)
