"""What can machines be, and how do they divide? The inventory of a node and the demands of a
request go in; classes, capacities, shares and whether a node is admitted come out.
"""

__all__ = (
    "admission",
    "capacity",
    "classes",
    "cloud_quota",
    "constraints",
    "facts",
    "host_kind",
    "known_gpus",
    "mig",
    "reasons",
    "registry",
    "sharing",
)
