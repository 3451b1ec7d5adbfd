"""How is a lease opened, used and closed? Requests of renters and executors go in; leases, their
events, escrows and work come out.
"""

__all__ = ("registry", "watched", "work")
