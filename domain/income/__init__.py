"""What was earned, and how does it leave? Earnings, their maturity, cash-outs and shares of regions
go in; payable amounts, invoices and the money on its way out come out.
"""

__all__ = (
    "adjustment",
    "cash_out",
    "cash_out_matching",
    "invoice",
    "maturity",
    "reasons",
    "region_pool",
    "region_sharing",
    "region_terms",
    "registry",
    "tax",
)
