"""How are volumes and datasets made, used and given up? Requests of renters and of executors go in;
volumes, datasets and what is to be erased come out.
"""

__all__ = ("registry",)
