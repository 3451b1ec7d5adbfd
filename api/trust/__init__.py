"""What is known about a node or a party? Attestations, statements of third parties and ended leases
go in; tiers, attributes and reputation come out.
"""

__all__ = ("registry", "reputation")
