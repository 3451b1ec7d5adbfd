"""How do groups share nodes, and what is waiting? Pools, groups and quotas go in; placements of the
queue and of gangs come out.
"""

__all__ = ("gang_orders", "pools", "registry")
