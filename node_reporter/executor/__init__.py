"""How does a lease's program run, shut off from the machine? Start orders of the server go in; a
sandboxed process or container, its log and its end come out.
"""

__all__ = (
    "bucket_store",
    "client",
    "datastores",
    "docker",
    "edge_device",
    "executor",
    "launch",
    "reserved_names",
    "runner",
    "sandbox",
    "state",
    "volume_store",
    "work",
)
