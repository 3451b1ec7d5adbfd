"""Which machines are there, whose are they, and in which state? Registrations, inventories, keys
and maintenance go in; the providers, nodes and devices as they are now come out.
"""

__all__ = (
    "cloud_regions",
    "condition",
    "device",
    "executor_key",
    "growth",
    "key_rotation",
    "keys",
    "kinds",
    "licence",
    "maintenance",
    "node",
    "pooling",
    "provider",
    "reasons",
    "registry",
    "revenue_share",
    "roles",
    "storage_node",
    "verdicts",
)
