"""Which nodes and devices are there, and how are they used? Facts of the fleet go in; nodes, supply
for the matcher and utilisation come out.
"""

__all__ = ("away", "fleet", "regions", "registry", "supply", "utilisation")
