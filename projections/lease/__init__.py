"""Which leases are there, in which state, and what is due? Facts of leases go in; lists by party,
node and next moment come out.
"""

__all__ = ("countersigned", "leases", "registry", "turns", "unmet", "work")
