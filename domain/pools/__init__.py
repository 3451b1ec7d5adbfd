"""Who is next, and how much may a group use? Pools, quotas and waiting requests go in; the order of
the queue and the shares of each group come out.
"""

__all__ = (
    "component",
    "controller",
    "drf",
    "fair_share",
    "group",
    "pool",
    "queue",
    "quota",
    "reasons",
    "registry",
    "scheduling",
)
