"""What does a region hold beside nodes? Stores of data, reserved ports and the configurations of
edge devices go in; what a job may attach to, and the region that pins it to, come out.
"""

__all__ = (
    "attached",
    "datastore",
    "device_config",
    "edge_device",
    "inference",
    "names",
    "paths",
    "reasons",
    "registry",
    "reservation",
)
