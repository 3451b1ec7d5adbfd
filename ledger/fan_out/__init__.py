"""Where is work done that falls into parts? A function and its tasks go in; the results come out in
order, from this process, from several, or from a cluster.
"""

__all__ = ("choice", "executor", "fingerprint", "folder", "marks", "processes")
