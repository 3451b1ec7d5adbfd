"""The books as an hledger journal and a beancount ledger, checked by those tools themselves."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import DAY_US
from domain.money import Asset, credit
from ledger.books.chart import kind_of
from ledger.bundle import journal
from ledger.bundle.journal import COMMODITY, Form, account_name
from tests.scenes import told

HLEDGER = shutil.which("hledger")
BEAN_CHECK = Path(sys.executable).with_name("bean-check")

_MARK = "X-Z00"
_ESCAPED = re.compile(r"-Z([0-9A-F]{2})|-")
needs_hledger = pytest.mark.skipif(
    HLEDGER is None, reason="hledger is not installed: apt-get install hledger"
)


def exported(database: str, form: Form, last: int | None = None) -> str:
    """The text, written a piece at a time."""
    pieces: list[bytes] = []
    with psycopg.connect(database, autocommit=True) as connection:
        done = journal.export(connection, form, pieces.append, last=last)
    text = b"".join(pieces).decode()
    told_postings = text.count(" (") if form is Form.HLEDGER else text.count(" ^market-")
    assert told_postings == done.postings
    return text


def hledger(path: Path, *arguments: str) -> str:
    assert HLEDGER is not None
    done = subprocess.run(
        [HLEDGER, "-f", str(path), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bean_check(path: Path) -> str:
    done = subprocess.run([BEAN_CHECK, str(path)], capture_output=True, text=True, check=False)
    return done.stderr + done.stdout if done.returncode else ""


def chart_name(account: str) -> str:
    """The chart's name of an account of a journal; the inverse of `account_name`."""
    return ":".join(map(_unpart, account.split(":")[1:]))


def _unpart(part: str) -> str:
    is_marked = part.startswith(_MARK)
    part = part.removeprefix(_MARK)
    found = _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else "_", part)
    found = found.encode("latin-1").decode()
    return found if is_marked else found[:1].lower() + found[1:]


def hledger_balances(path: Path) -> dict[tuple[str, Asset], int]:
    """Chart name and asset -> units, debits positive, as hledger adds them up."""
    text = hledger(path, "balance", "--flat", "-N", "-O", "csv", "--layout=bare", "-E")
    assets = {commodity: asset for asset, commodity in COMMODITY.items()}
    return {
        (chart_name(row["account"]), assets[row["commodity"]]): int(row["balance"].rstrip("."))
        for row in csv.DictReader(io.StringIO(text))
        if row["commodity"]
    }


def beancount_balances(path: Path) -> dict[tuple[str, Asset], int]:
    from beancount import loader
    from beancount.core import data

    entries, errors, _ = loader.load_file(str(path))
    assert not errors, errors[:3]
    assets = {commodity: asset for asset, commodity in COMMODITY.items()}
    sums: dict[tuple[str, Asset], int] = {}
    for entry in entries:
        for line in entry.postings if isinstance(entry, data.Transaction) else ():
            assert line.units is not None
            key = chart_name(line.account), assets[line.units.currency]
            sums[key] = sums.get(key, 0) + int(line.units.number)  # type: ignore[arg-type]
    return sums


def booked(database: str) -> dict[tuple[str, Asset], int]:
    """What PostgreSQL's `account` table holds, debits positive."""
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT name, asset, side * units FROM account").fetchall()
    return {(name, Asset(asset)): units for name, asset, units in rows}


def nonzero(sums: dict[Any, int]) -> dict[Any, int]:
    return {key: units for key, units in sums.items() if units}


def must_agree(database: str, folder: Path) -> None:
    """Both tools accept the export, find PostgreSQL's balance on every account, and zero in sum."""
    wanted = booked(database)
    for form in Form:
        path = folder / f"books.{form}"
        path.write_text(exported(database, form), encoding="utf-8")
        if form is Form.HLEDGER:
            hledger(path, "check", "--strict", "ordereddates")
            found = hledger_balances(path)
        else:
            assert bean_check(path) == ""
            found = beancount_balances(path)
        assert nonzero(found) == nonzero(wanted), form
        for asset in Asset:
            assert sum(units for (_, each), units in found.items() if each is asset) == 0


@needs_hledger
def test_hledger_and_bean_check_accept_a_replayed_trace_and_find_every_balance(
    database: str, tmp_path: Path
) -> None:
    from tests.api.replay.test_openb import play

    play(database)
    assets = {asset for (_, asset), units in booked(database).items() if units}
    assert {Asset.CREDIT, Asset.GPU_MS} <= assets, "GPU-milliseconds are conserved the same way"
    must_agree(database, tmp_path)


def test_an_unbalanced_or_changed_journal_is_refused_by_both_tools(
    database: str, tmp_path: Path
) -> None:
    """The checks above can fail: one unit more on one line, or another closing balance."""
    with told.ledger_on(database) as ledger:
        ledger.handle(told.do(told.deposited("one", 500_000)), key=None, now_us=told.NOW_US)
    changes = {
        Form.HLEDGER: [("  500000 MICRO", "  500001 MICRO"), ("= 500000 MICRO", "= 500001 MICRO")],
        Form.BEANCOUNT: [("Bank  500000 M", "Bank  500001 M"), ("Cash  -500000 M", "Cash  1 M")],
    }
    for form, changed in changes.items():
        text = exported(database, form)
        path = tmp_path / f"books.{form}"
        for old, new in changed:
            assert old in text
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
            if form is Form.BEANCOUNT:
                assert bean_check(path) != ""
            elif HLEDGER is not None:
                with pytest.raises(AssertionError, match=r"unbalanced|balance assertion"):
                    hledger(path, "check")


def test_an_export_as_of_a_position_never_changes_and_an_empty_one_is_accepted(
    database: str, tmp_path: Path
) -> None:
    with told.ledger_on(database) as ledger:
        empty = {form: exported(database, form) for form in Form}
        ledger.handle(told.do(told.deposited("one", 5)), key=None, now_us=told.NOW_US)
        before = {form: exported(database, form) for form in Form}
        later = told.NOW_US + 40 * DAY_US
        ledger.handle(
            told.do(told.withdrawn("o"), told.deposited("two", 7, "acct_Z.-")),
            key=None,
            now_us=later,
        )
    for form in Form:
        assert exported(database, form, last=1) == before[form]
        assert exported(database, form) != before[form]
        path = tmp_path / f"empty.{form}"
        path.write_text(empty[form], encoding="utf-8")
    assert bean_check(tmp_path / "empty.beancount") == ""
    text = exported(database, Form.HLEDGER)
    assert "2025-11-13 (1) deposit.confirmed.v1\n" in text
    assert "2025-12-23 (3) deposit.confirmed.v1\n" in text
    if HLEDGER is not None:
        hledger(tmp_path / "empty.hledger", "check", "--strict")
        must_agree(database, tmp_path)


def test_the_journal_of_a_small_market_reads_like_this(database: str) -> None:
    with told.ledger_on(database) as ledger:
        changes = [told.deposited("one", 900), told.reserved("lease_a", "acct_a", credit(300))]
        ledger.handle(told.do(*changes), key=None, now_us=told.NOW_US)
    assert exported(database, Form.BEANCOUNT) == (
        "; tallystick: the books up to position 2 of the market log, 2 postings\n"
        'option "title" "tallystick"\n\n'
        "2025-11-13 commodity MICROCREDIT\n"
        "2025-11-13 commodity TOKENUNIT\n"
        "2025-11-13 commodity GPU_MS\n"
        "2025-11-13 commodity SEAT_MS\n"
        "2025-11-13 open Liabilities:Escrow:Lease-a:1:Cash MICROCREDIT\n"
        "2025-11-13 open Liabilities:Party:Acct-a:Cash MICROCREDIT\n"
        "2025-11-13 open Assets:World:Bank MICROCREDIT\n\n"
        '2025-11-13 * "deposit.confirmed.v1" ^market-1\n'
        "  position: 1\n"
        "  Assets:World:Bank  900 MICROCREDIT\n"
        "  Liabilities:Party:Acct-a:Cash  -900 MICROCREDIT\n\n"
        '2025-11-13 * "lease.reserved.v1" ^market-2\n'
        "  position: 2\n"
        "  Liabilities:Party:Acct-a:Cash  300 MICROCREDIT\n"
        "  Liabilities:Escrow:Lease-a:1:Cash  -300 MICROCREDIT\n\n"
        "2025-11-14 balance Liabilities:Escrow:Lease-a:1:Cash  -300 MICROCREDIT\n"
        "2025-11-14 balance Liabilities:Party:Acct-a:Cash  -600 MICROCREDIT\n"
        "2025-11-14 balance Assets:World:Bank  900 MICROCREDIT\n"
    )
    text = exported(database, Form.HLEDGER)
    assert (
        "2025-11-13 (2) lease.reserved.v1\n"
        "    Liabilities:Party:Acct-a:Cash  300 MICROCREDIT\n"
        "    Liabilities:Escrow:Lease-a:1:Cash  -300 MICROCREDIT\n"
    ) in text


NAMES = st.lists(st.text(max_size=6), min_size=1, max_size=4).map(":".join)


@given(NAMES, st.sampled_from([1, -1]))
def test_the_name_of_an_account_in_a_journal_gives_the_charts_name_back(
    name: str, side: int
) -> None:
    written = account_name(name, side)
    assert chart_name(written) == name
    root, *parts = written.split(":")
    assert root in ("Assets", "Liabilities", "Equity", "Income", "Expenses")
    for part in parts:
        assert part[0].isdigit() or "A" <= part[0] <= "Z"
        assert all(each.isascii() and (each.isalnum() or each == "-") for each in part)


@given(st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_two_accounts_never_share_a_name_in_a_journal(names: list[str]) -> None:
    assert account_name(names[0], 1) != account_name(names[1], 1)


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("world:bank", "Assets:World:Bank"),
        ("party:acct_1:owed", "Assets:Party:Acct-1:Owed"),
        ("party:Acct_1:cash", "Liabilities:Party:X-Z00Acct-1:Cash"),
        ("escrow:lease_0f:1:grant.spring_Z", "Liabilities:Escrow:Lease-0f:1:Grant-Z2Espring-Z5FZ"),
        ("network:revenue:take", "Income:Network:Revenue:Take"),
        ("emission:authority", "Equity:Emission:Authority"),
        ("device:GPU-a:b:physical", "Equity:Device:X-Z00GPU-Z2Da:B:Physical"),
        ("device:GPU-a:idle", "Assets:Device:X-Z00GPU-Z2Da:Idle"),
    ],
)
def test_accounts_of_the_chart_stand_under_the_root_both_tools_want(
    name: str, account: str
) -> None:
    assert account_name(name, kind_of(name).side) == account
    assert chart_name(account) == name
