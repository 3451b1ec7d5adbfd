"""What is decided in the life of a lease? Requests, reports, ends of funds and wishes of the renter
go in; the facts of leases come out: reserved, started, charged, extended, closed.
"""

__all__ = (
    "accrual",
    "bidding",
    "drain",
    "due",
    "escrow_sharing",
    "gangs",
    "life",
    "other_resources",
    "rebid",
    "registry",
    "request",
    "taking",
    "terms",
    "work",
)
