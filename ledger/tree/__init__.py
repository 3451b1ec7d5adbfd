"""Has the log kept what it promised? Facts and reports go in; Merkle trees, signed heads and proofs
come out.
"""

__all__ = (
    "checkpoint",
    "cut",
    "kept",
    "lane_move",
    "log_keys",
    "merkle",
    "proof",
    "prove",
    "recompute",
    "rows",
    "trees",
    "walk",
)
