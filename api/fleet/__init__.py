"""How do machines join, change and leave? Signed requests of owners and nodes go in; providers,
nodes, devices and their maintenance come out.
"""

__all__ = (
    "constraints",
    "growth",
    "joining",
    "node_signatures",
    "node_state",
    "nodes",
    "providers",
    "registry",
)
