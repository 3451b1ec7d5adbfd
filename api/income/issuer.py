"""Who issues the invoices and which taxes they include: the operator's file, read once per process.

name = "Example Compute GmbH"
address = ["Street 1", "12345 Town"]
country = "DE"
tax_id = "DE123456789"
note = "Questions: billing@example.com"

[vat]            # percent of the net price, as text: prices include it; absent: no tax at all
DE = "19"
FR = "20"
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from api.settings import SettingsInvalid
from domain.income.tax import NoTax, TaxRules, VatTable
from domain.record import dataclass

_FIELDS = frozenset({"name", "address", "country", "tax_id", "note", "vat"})
_PERCENT = re.compile(r"([0-9]{1,2})(?:\.([0-9]{1,4}))?", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Issuer:
    """What stands on invoices of the operator, and the taxes in them."""

    name: str = "The operator of this network"
    address: tuple[str, ...] = ()
    country: str | None = None
    tax_id: str | None = None
    note: str | None = None
    taxes: TaxRules = field(default_factory=NoTax)


@lru_cache(maxsize=8)
def read(path: Path | None) -> Issuer:
    """The issuer of this file; without one, nobody in particular and no tax.

    Raises SettingsInvalid.
    """
    if path is None:
        return Issuer()
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsInvalid(f"billing_file: {path}: {error}") from error
    unknown = told.keys() - _FIELDS
    if unknown:
        raise SettingsInvalid(f"billing_file: unknown field {min(unknown)}")
    address = told.get("address", [])
    texts = [told.get(name) for name in ("name", "country", "tax_id", "note")]
    if not isinstance(address, list) or not all(
        isinstance(each, str) for each in [*address, *(text for text in texts if text is not None)]
    ):
        raise SettingsInvalid("billing_file: address is a list of texts, all else are texts")
    if told.get("country") is not None and _COUNTRY.fullmatch(told["country"]) is None:
        raise SettingsInvalid("billing_file: country is two capitals, as in ISO 3166")
    return Issuer(
        name=told.get("name", Issuer().name),
        address=tuple(address),
        country=told.get("country"),
        tax_id=told.get("tax_id"),
        note=told.get("note"),
        taxes=_taxes(told.get("country"), told.get("vat", {})),
    )


def _taxes(home: str | None, table: Any) -> TaxRules:
    if not table:
        return NoTax()
    if not isinstance(table, dict) or home is None:
        raise SettingsInvalid("billing_file: [vat] is a table, and needs a country of the issuer")
    return VatTable(home, {country: _ppm(country, rate) for country, rate in table.items()})


def _ppm(country: str, rate: Any) -> int:
    form = _PERCENT.fullmatch(rate) if isinstance(rate, str) else None
    ppm = 0 if form is None else int(form[1]) * 10_000 + int((form[2] or "").ljust(4, "0"))
    if _COUNTRY.fullmatch(country) is None or not ppm:
        raise SettingsInvalid(f'billing_file: [vat] {country}: a percentage as text, like "19"')
    return ppm
