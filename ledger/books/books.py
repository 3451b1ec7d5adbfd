"""Reading the books: balances, the trial balance, and whether all of it follows from the postings.

    per asset:    sum(debit balances) == sum(credit balances)
    per account:  units == balances_after of its last posting == side x sum of its postings

Only reading is here: postings are written by the append and by nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol

from domain.money import Asset

CUSTOMERS_CASH = r"^(party:[^:]+:(cash|bid\.cash)|escrow:[^:]+:[0-9]+:cash|grant:[^:]+:fund)$"
"""Accounts of `customers_cash`."""
BY_ASSET: LiteralString = """
    SELECT asset, sum(side * units) AS sum FROM (
        SELECT asset, side, sum(units) AS units FROM public.account GROUP BY asset, side) a
    GROUP BY asset ORDER BY asset
"""
"""Debits less credits of each asset."""


@dataclass(frozen=True, slots=True)
class Balance:
    """One account of the books; `units` on its normal side, `side` 1 for debit, -1 for credit."""

    name: str
    asset: Asset
    side: int
    units: int


class Rows(Protocol):
    """A database that answers a query with its rows, by column name."""

    def rows(
        self, query: LiteralString, parameters: Sequence[Any] = ()
    ) -> list[dict[str, Any]]: ...


class Books:
    """The books of one database."""

    def __init__(self, datastore: Rows) -> None:
        self._datastore = datastore

    def balance(self, name: str) -> int:
        """Units of an account on its normal side; 0 when it was never posted to."""
        rows = self._datastore.rows("SELECT units FROM account WHERE name = %s", (name,))
        return rows[0]["units"] if rows else 0

    def balances_of(self, names: Sequence[str]) -> dict[str, int]:
        """`balance` for many accounts, with one query."""
        rows = self._datastore.rows(
            "SELECT name, units FROM account WHERE name = ANY(%s)", (list(names),)
        )
        return {**dict.fromkeys(names, 0), **{row["name"]: row["units"] for row in rows}}

    def balances(self, prefix: str) -> dict[str, int]:
        """The accounts whose name starts so, by name; `party:acct_x:` is one party's."""
        rows = self._datastore.rows(
            "SELECT name, units FROM account WHERE name >= %s AND name < %s ORDER BY name",
            (prefix, prefix + "\U0010ffff"),
        )
        return {row["name"]: row["units"] for row in rows}

    def customers_cash(self) -> int:
        """Micro-credits that customers paid for good and have not spent: what they hold, what
        escrows and bids hold of it, and what sponsors gave to promotions.
        """
        (row,) = self._datastore.rows(
            "SELECT coalesce(sum(units), 0)::bigint AS units FROM account WHERE asset = %s"
            " AND name ~ %s",
            (Asset.CREDIT.value, CUSTOMERS_CASH),
        )
        units: int = row["units"]
        return units

    def balance_at(self, name: str, position: int) -> int:
        """A balance after the facts up to a position.

        Scans the postings backwards: for checks and single questions. Lists of past balances are
        the statements projection's.
        """
        rows = self._datastore.rows(
            "SELECT p.balances_after[array_position(p.accounts, a.id)] AS units"
            " FROM account a JOIN posting p ON p.asset = a.asset AND a.id = ANY (p.accounts)"
            " WHERE a.name = %s AND p.position <= %s ORDER BY p.position DESC LIMIT 1",
            (name, position),
        )
        return rows[0]["units"] if rows else 0

    def trial_balance(self) -> list[Balance]:
        """Every account, by name."""
        rows = self._datastore.rows("SELECT name, asset, side, units FROM account ORDER BY name")
        return [Balance(r["name"], Asset(r["asset"]), r["side"], r["units"]) for r in rows]

    def postings(self, position: int) -> dict[Asset, dict[str, int]]:
        """What one fact booked, per asset: account name -> units, debits positive."""
        rows = self._datastore.rows(
            "SELECT p.asset, a.name, l.units FROM posting p,"
            " unnest(p.accounts, p.units) l(account, units) JOIN account a ON a.id = l.account"
            " WHERE p.position = %s",
            (position,),
        )
        booked: dict[Asset, dict[str, int]] = {}
        for row in rows:
            booked.setdefault(Asset(row["asset"]), {})[row["name"]] = row["units"]
        return booked

    def faults(self) -> list[str]:
        """Everything that is wrong with the books, in words; none means they balance."""
        found = [
            f"{row['asset']}: debits - credits = {row['sum']}"
            for row in self._datastore.rows(BY_ASSET)
            if row["sum"]
        ]
        found += [f"{row['name']}: {row['units']}, by postings {row['sum']}" for row in self._off()]
        return found

    def books_balanced(self) -> bool:
        """True when every equation of the module's docstring holds."""
        return not self.faults()

    def _off(self) -> list[dict[str, Any]]:
        return self._datastore.rows(
            "WITH line AS (SELECT l.account, p.position, l.units, l.after FROM posting p,"
            "   unnest(p.accounts, p.units, p.balances_after) l(account, units, after)),"
            " told AS (SELECT account, sum(units::numeric) AS sum,"
            "   (array_agg(after ORDER BY position DESC))[1] AS last FROM line GROUP BY account)"
            " SELECT a.name, a.units, a.side * coalesce(t.sum, 0) AS sum"
            " FROM account a LEFT JOIN told t ON t.account = a.id"
            " WHERE a.units <> a.side * coalesce(t.sum, 0) OR a.units <> coalesce(t.last, 0)"
            " ORDER BY a.name"
        )
