"""Who uses how much of a pool, and who waits? Facts of pools and leases go in; queues, quotas and
use by group come out.
"""

__all__ = ("controllers", "health", "pools", "registry")
