"""What was earned and billed, and how does it leave? Accounts and periods go in; statements,
invoices, exports and cash-outs come out.
"""

__all__ = ("registry",)
