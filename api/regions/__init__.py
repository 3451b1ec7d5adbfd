"""Where does a new machine belong, and who looks after its region? Boundaries, check-ins, wait
lists, administrators and what nodes measured go in; regions, places and maps come out.
"""

__all__ = ("neighbours", "reachability", "registry")
