"""What lies in which region? Facts of volumes and datasets go in; volumes with leases and costs,
and the places of datasets, come out.
"""

__all__ = ("registry", "volumes")
