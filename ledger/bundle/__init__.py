"""How does an auditor recompute everything without us? The logs go in; an export comes out, and the
verdict of executing it again.
"""

__all__ = (
    "epoch_replay",
    "export",
    "iceberg",
    "journal",
    "lane_walk",
    "load",
    "parquet",
    "passkey",
    "root_replay",
    "shape",
    "verify",
)
