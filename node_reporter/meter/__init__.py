"""Which GPU time belongs to which lease? Counters, processes and lease files go in; the rows of a
report come out.
"""

__all__ = ("lease_files", "leases", "meter", "polling", "rows", "tenants", "used")
