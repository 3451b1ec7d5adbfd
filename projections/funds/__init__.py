"""What did each account get and spend? Facts of deposits, payments and promotions go in; balances
by source, expired grants and payments come out.
"""

__all__ = ("funding", "payments", "registry")
