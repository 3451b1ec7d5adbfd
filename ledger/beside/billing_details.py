"""Names and addresses that stand on invoices: in no log and no hash, so that they can be erased."""

from __future__ import annotations

from typing import Any

import psycopg

from domain.income.tax import TaxParty
from domain.record import dataclass

Connection = psycopg.Connection[Any]

_KEEP = """
    INSERT INTO billing_details VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (account_id) DO UPDATE SET name = excluded.name, address = excluded.address,
        country = excluded.country, tax_id = excluded.tax_id, updated_us = excluded.updated_us
"""
_READ = "SELECT name, address, country, tax_id FROM billing_details WHERE account_id = %s"
_ERASE = "DELETE FROM billing_details WHERE account_id = %s"


@dataclass(frozen=True, slots=True)
class Details:
    """Name and address of an account, from the table that can be erased."""

    name: str
    address: tuple[str, ...]
    country: str | None
    tax_id: str | None

    @property
    def tax_party(self) -> TaxParty:
        return TaxParty(self.country, is_business=self.tax_id is not None)


def read(connection: Connection, account_id: str) -> Details | None:
    """What an account wants to stand on its invoices; None: nothing, or erased."""
    row = connection.execute(_READ, (account_id,)).fetchone()
    return None if row is None else Details(row[0], tuple(row[1]), row[2], row[3])


def keep(connection: Connection, account_id: str, details: Details, now_us: int) -> None:
    """Say what stands on the invoices of an account; replaces what was said before."""
    told = (details.name, list(details.address), details.country, details.tax_id)
    connection.execute(_KEEP, (account_id, *told, now_us))


def erase(connection: Connection, account_id: str) -> None:
    """Forget name and address; nothing to forget is well too."""
    connection.execute(_ERASE, (account_id,))
