"""What counted in an epoch, and what did it pay? Facts and reports of nodes go in; the nodes of a
cut, weights, rewards and signs of wash trade come out.
"""

__all__ = (
    "burning",
    "counted",
    "cut_nodes",
    "cut_rows",
    "cuts",
    "epochs",
    "gate",
    "registry",
    "rewards",
    "signed",
    "wash_uses",
)
