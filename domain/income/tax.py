"""Tax on an invoice: one seam, no tax by default, and a table of VAT rates by country.

    tax = floor(total x rate / (10^6 + rate));   net = total - tax         prices include tax
    remainder = total x rate mod (10^6 + rate)   what the floor left out, stated and kept by nobody

Prices include tax, because what an account pays was drawn from its balance already: the total of an
invoice is what the books say, whatever the rules, and the rules say how much of it is tax. Whoever
needs other rules gives another `TaxRules`; nothing else knows what a tax is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from domain.money import PPM, Amount, Big, credit
from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class TaxLine:
    """One tax in a total: `net + tax` is the part of the total that this rate applies to.

    `remainder` is what the floor left out: a numerator over 10^6 + rate_ppm, on a credit note over
    `net + tax` of the invoice.
    """

    name: str
    rate_ppm: int
    net: Amount
    tax: Amount
    remainder: Big


@dataclass(frozen=True, slots=True)
class TaxParty:
    """What tax rules may know of who is billed: a country (ISO 3166), and whether it is a business
    with a tax number. None: it said nothing.
    """

    country: str | None = None
    is_business: bool = False


class TaxRules(Protocol):
    """Which taxes a total includes. Pure: the same party and total, the same lines."""

    def lines(self, party: TaxParty, total: int) -> tuple[TaxLine, ...]:
        """Tax lines of a total of micro-credits; the sum of their taxes is at most the total."""
        ...


class NoTax:
    """No tax at all: the default."""

    def lines(self, party: TaxParty, total: int) -> tuple[TaxLine, ...]:  # noqa: ARG002
        return ()


@dataclass(frozen=True, slots=True)
class VatTable:
    """Value added tax at one rate for each country; elsewhere none.

    A business in another country than the issuer accounts for the tax itself (reverse charge).
    An example of rules, not advice on them.
    """

    home: str
    rates_ppm: Mapping[str, int]

    def __post_init__(self) -> None:
        assert all(0 < rate <= PPM for rate in self.rates_ppm.values()), self.rates_ppm

    def lines(self, party: TaxParty, total: int) -> tuple[TaxLine, ...]:
        assert total >= 0, total
        country = party.country
        if country is None or country not in self.rates_ppm:
            return ()
        if party.is_business and country != self.home:
            return (TaxLine(f"VAT {country}, reverse charge", 0, credit(total), credit(0), 0),)
        return (included(f"VAT {country}", self.rates_ppm[country], total),)


def included(name: str, rate_ppm: int, total: int) -> TaxLine:
    """How much of a total is a tax of this rate: floored, so never more than is due."""
    tax, remainder = divmod(total * rate_ppm, PPM + rate_ppm)
    return TaxLine(name, rate_ppm, credit(total - tax), credit(tax), remainder)
