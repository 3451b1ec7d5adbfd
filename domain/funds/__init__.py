"""What money came in, and what may be spent? Deposits, payments, promotions and budgets go in; the
funds that a charge may take, in their order, come out.
"""

__all__ = (
    "budget",
    "card_money",
    "debt",
    "deposit",
    "draw",
    "funding",
    "payment",
    "payment_terms",
    "promotion",
    "reasons",
    "registry",
    "top_up",
)
