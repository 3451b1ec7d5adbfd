"""What moved in the books of a party, and for what? Postings and facts go in; lines of bills,
earnings, invoices, regions and money on its way out come out.
"""

__all__ = (
    "charges",
    "earnings",
    "invoices",
    "money_out",
    "movements",
    "regions",
    "registry",
    "statements",
)
