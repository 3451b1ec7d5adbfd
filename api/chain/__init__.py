"""What happens on the chain for us? Sealed epochs and the blocks of the chain go in; payout roots,
transactions and the differences between chain and ledger come out.
"""

__all__ = ("reconcile", "registry", "side", "timer")
