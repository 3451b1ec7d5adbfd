"""What proves what was recorded? Positions, facts and exports go in; signed heads, proofs and the
result of executing an export again come out.
"""

__all__ = ("loading", "registry", "replay")
