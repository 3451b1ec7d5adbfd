"""Which transactions, burns and payout roots are there? Rewards to be paid and what the chain
showed go in; leaves, roots and the state of each transaction come out.
"""

__all__ = ("burn", "leaves", "payout_root", "reasons", "registry", "transaction")
