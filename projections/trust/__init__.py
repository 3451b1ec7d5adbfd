"""What is the evidence for tiers and scores? Reports and ends of leases go in; evidence by device,
and reputation as of any moment, come out.
"""

__all__ = ("evidence", "registry", "reputation", "scores", "ties")
