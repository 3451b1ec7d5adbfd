"""Where does a new machine belong, and who looks after its region? Boundaries, people who wait,
administrators, and what nodes measured of the way to them go in; a region or a place on a wait
list, and permissions, come out.
"""

__all__ = (
    "administrators",
    "boundaries",
    "neighbour_proofs",
    "neighbours",
    "reachability",
    "registry",
    "wait_list",
)
