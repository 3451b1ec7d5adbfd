"""Where do data lie, what do they cost, and how much disk and network of a node is taken? Volumes,
datasets and the demands of leases go in; what lies where, for whom, and what is left comes out.
"""

__all__ = ("dataset", "node_room", "pins", "reasons", "registry", "volume")
