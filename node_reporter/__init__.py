"""What did the GPUs of this machine do, and for which lease? Counters of the driver and leases go
in; signed reports come out. It needs the domain and nothing else of ours.
"""

__all__ = ("clock", "identity", "terminal")
