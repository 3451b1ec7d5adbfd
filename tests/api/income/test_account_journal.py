"""An account's own journal: what it has are assets, in CREDIT; hledger itself adds it up."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.income import account_journal
from api.income.account_journal import OPENING, ROOTS, amount, contra, own
from domain.money import Asset
from ledger.books.chart import CREDIT, DEBIT
from projections.income.movements import KINDS, OTHER
from tests.ledger.bundle.test_journal import HLEDGER, hledger
from tests.scenes.server import Caller, Scene
from tests.scenes.work import hours_of_work

LINE = re.compile(r"^    (\S+)  (-?[0-9.]+) ([A-Z_]+)( = (-?[0-9.]+) [A-Z_]+)?$")


def journal(who: Caller, month: str) -> str:
    answer = who.get(f"/v1/accounts/{who.account_id}/statements/{month}.journal")
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def summed(text: str) -> dict[str, Decimal]:
    """CREDIT of each account as the text says it; each transaction is zero and each assertion holds
    (hledger asks the same, where it is installed).
    """
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for entry in text.split("\n\n"):
        rest: dict[str, Decimal] = defaultdict(Decimal)
        for line in entry.splitlines():
            if (told := LINE.match(line)) is not None:
                account, units, asset, _, asserted = told.groups()
                rest[asset] += Decimal(units)
                sums[account] += Decimal(units) if asset == "CREDIT" else 0
                assert asserted is None or asset != "CREDIT" or sums[account] == Decimal(asserted)
        assert not any(rest.values()), entry
    return {account: units for account, units in sums.items() if units}


def checked(text: str, folder: Path) -> dict[str, Decimal]:
    """The same as hledger adds it up, in CREDIT."""
    file = folder / "books.journal"
    file.write_text(text, encoding="utf-8")
    hledger(file, "check", "--strict", "ordereddates")
    told = hledger(file, "balance", "--flat", "-N", "-O", "csv", "--layout=bare")
    return {
        row["account"]: Decimal(row["balance"])
        for row in csv.DictReader(io.StringIO(told))
        if row["commodity"] == "CREDIT"
    }


def test_a_renter_sees_what_it_has_and_what_it_spent(scene: Scene, tmp_path: Path) -> None:
    """`hledger bal` shows assets of 98 CREDIT and an expense of 2, not the market's debt to it."""
    hours_of_work(scene)
    text = journal(scene.renter, "2026-11")
    found = summed(text)
    assert found == {
        "Assets:Tallystick:Cash": 98,
        "Equity:Transfers:Deposit": -100,
        "Expenses:Usage": 2,
    }
    told = scene.renter.read(f"/v1/accounts/{scene.renter.account_id}/balances")["data"]
    (cash,) = (one["balance"]["units"] for one in told if one["part"] == "cash")
    assert int(cash) == found["Assets:Tallystick:Cash"] * 1_000_000
    assert "MICROCREDIT" not in text
    assert f"lease.usage_accrued.v1  ; lease:{_leases(scene)[0]}" in text
    assert scene.provider.owner.account_id not in text, "no other account is shown"
    later = journal(scene.renter, "2026-12")
    assert summed(later) == {"Assets:Tallystick:Cash": 98, OPENING: -98}
    if HLEDGER is not None:
        assert checked(text, tmp_path) == found
        assert checked(later, tmp_path) == summed(later)


def _leases(scene: Scene) -> list[str]:
    return [one["lease_id"] for one in scene.renter.read("/v1/leases")["data"]]


def test_an_owner_sees_income_and_an_empty_month_is_a_head(scene: Scene, tmp_path: Path) -> None:
    hours_of_work(scene)
    owner = scene.provider.owner
    found = summed(journal(owner, "2026-11"))
    charges = scene.renter.read(f"/v1/leases/{_leases(scene)[0]}/charges")["data"]
    earned = Decimal(sum(int(one["provider"]["units"]) for one in charges)) / 1_000_000
    assert found == {"Assets:Tallystick:Holdback": earned, "Income:Earning": -earned}
    assert earned > 0
    assert summed(journal(scene.stranger, "2026-11")) == {}
    if HLEDGER is not None:
        assert checked(journal(owner, "2026-11"), tmp_path) == found
        assert checked(journal(scene.stranger, "2026-11"), tmp_path) == {}


def test_every_kind_of_movement_has_another_side() -> None:
    kinds = {one for told in KINDS.values() for one in ((told,) if isinstance(told, str) else told)}
    assert set(ROOTS) == kinds | {"federated_fee", OTHER}
    assert contra("cash", "usage") == "Expenses:Usage"
    assert contra("payable", "cash_out") == "Equity:Transfers:Cash-out"
    assert contra("holdback", "adjustment") == "Income:Adjustment"
    assert contra("cash", "adjustment") == "Expenses:Adjustment"
    assert own("escrow.federated.cash", CREDIT) == "Assets:Tallystick:Escrow:Federated:Cash"
    assert own("owed", DEBIT) == "Liabilities:Tallystick:Owed"


@given(st.sampled_from(Asset), st.integers(-(2**63), 2**63 - 1))
def test_every_unit_of_an_amount_is_written(asset: Asset, units: int) -> None:
    number, _, commodity = amount(asset, units).partition(" ")
    assert commodity == asset
    assert Decimal(number).scaleb(account_journal.PLACES[asset]) == units
    assert number.count("-") == int(units < 0)


@pytest.mark.parametrize(
    ("units", "told"),
    [(-24_950_159, "-24.950159 CREDIT"), (0, "0.000000 CREDIT"), (-1, "-0.000001 CREDIT")],
)
def test_an_amount_is_in_credit(units: int, told: str) -> None:
    assert amount(Asset.CREDIT, units) == told
