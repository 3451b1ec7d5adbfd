"""What does NVML say about a GPU? Calls of the driver's library go in; boards, instances, busy time
and faults come out. Only `driver` calls the library.
"""

__all__ = ("backend",)
