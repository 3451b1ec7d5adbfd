"""What the books answer from the rows that a database gives; the SQL is tried with a database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from domain.money import Asset
from ledger.books.books import CUSTOMERS_CASH, Balance, Books


class Answers:
    """Implements `ledger.books.books.Rows`: one row list for each question, in order."""

    def __init__(self, *rows: list[dict[str, Any]]) -> None:
        self._rows = list(rows)
        self.asked: list[tuple[Any, ...]] = []

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        assert query.count("%s") == len(parameters), query
        self.asked.append(tuple(parameters))
        return self._rows.pop(0)


def test_an_account_that_was_never_posted_to_has_nothing() -> None:
    for rows, units in (([{"units": 7}], 7), ([], 0)):
        assert Books(Answers(rows)).balance("a") == units
        assert Books(Answers(rows)).balance_at("a", 9) == units
    found = Answers([{"name": "b", "units": 7}])
    assert Books(found).balances_of(["a", "b"]) == {"a": 0, "b": 7}
    assert found.asked == [(["a", "b"],)]


def test_accounts_are_listed_by_the_beginning_of_their_name() -> None:
    found = Answers([{"name": "party:x:cash", "units": 7}])
    assert Books(found).balances("party:x:") == {"party:x:cash": 7}
    assert found.asked == [("party:x:", "party:x:\U0010ffff")]


def test_a_trial_balance_names_every_account_and_a_posting_its_assets_apart() -> None:
    account = {"name": "a", "asset": "TOKEN", "side": -1, "units": 3}
    assert Books(Answers([account])).trial_balance() == [Balance("a", Asset.TOKEN, -1, 3)]
    lines = [
        {"asset": "CREDIT", "name": "a", "units": 2},
        {"asset": "CREDIT", "name": "b", "units": -2},
        {"asset": "TOKEN", "name": "c", "units": 5},
    ]
    found = Answers(lines)
    assert Books(found).postings(4) == {Asset.CREDIT: {"a": 2, "b": -2}, Asset.TOKEN: {"c": 5}}
    assert found.asked == [(4,)]


def test_books_are_balanced_where_no_asset_and_no_account_is_off() -> None:
    even, odd = {"asset": "CREDIT", "sum": 0}, {"asset": "TOKEN", "sum": -1}
    off = {"name": "a", "units": 3, "sum": 2}
    for assets, accounts, faults in (
        ([even], [], []),
        ([even, odd], [], ["TOKEN: debits - credits = -1"]),
        ([even], [off], ["a: 3, by postings 2"]),
        ([odd], [off], ["TOKEN: debits - credits = -1", "a: 3, by postings 2"]),
    ):
        assert Books(Answers(assets, accounts)).faults() == faults
        assert Books(Answers(assets, accounts)).books_balanced() == (not faults)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("party:acct_a:cash", True),
        ("party:acct_a:bid.cash", True),
        ("party:acct_a:bid_cash", False),
        ("party:acct_a:card", False),
        ("party:acct_a:earned", False),
        ("party:acct_a:cash:more", False),
        ("escrow:lease_a:1:cash", True),
        ("escrow:lease_a:12:cash", True),
        ("escrow:lease_a::cash", False),
        ("escrow:lease_a:1:card", False),
        ("grant:spring:fund", True),
        ("grant:spring:funds", False),
        ("network:grant:spring:fund", False),
    ],
)
def test_customers_cash_is_what_was_paid_for_good_wherever_it_is_held(
    name: str, counts: bool
) -> None:
    assert bool(re.search(CUSTOMERS_CASH, name)) == counts
    found = Answers([{"units": 9}])
    assert Books(found).customers_cash() == 9
    assert found.asked == [("CREDIT", CUSTOMERS_CASH)]
