"""How does money come in, and how long will it last? Deposits, payments, promotions and events of
the processor go in; balances, budgets and forecasts come out.
"""

__all__ = ("registry",)
