"""The books as plain-text accounting: an hledger journal or a beancount ledger, in whole units.

    sum(units of a transaction) == 0          each posting of the books is one transaction
    closing assertion of an account == balance_after of its last posting, debits positive

so both tools add everything up again and find what PostgreSQL found. Quantities are integers of
the smallest unit: with six decimals bean-check would accept 0.49999999 for 0.500000. Dates are
the UTC day of recording. The same log and position give the same bytes, on any database.

Account names are the chart's, part by part, under a root both tools know: `party:acct_1:cash`
is `Liabilities:Party:Acct-1:Cash`, and `chart_name` gives the chart's name back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

import psycopg

from domain.duration import DAY_US
from domain.money import Asset
from ledger.books.chart import DEBIT

Connection = psycopg.Connection[Any]

BATCH_ROWS = 2_000
"""Postings read, named and written together: what an export holds in memory."""
NAMES_MAX = 50_000
"""Account names kept between batches; asked for again when there are more."""

COMMODITY = {
    Asset.CREDIT: "MICROCREDIT",  # 10^-6 credits
    Asset.TOKEN: "TOKENUNIT",  # 10^-8 tokens
    Asset.GPU_MS: "GPU_MS",
    Asset.SEAT_MS: "SEAT_MS",
}
"""What each asset is called there: capitals, for beancount, and no digit, for hledger."""


class Form(StrEnum):
    """Which tool the text is for."""

    HLEDGER = "hledger"
    BEANCOUNT = "beancount"


@dataclass(frozen=True, slots=True)
class Transaction:
    """One posting: where in the market log, the day, the fact's name, and (account, units)."""

    position: int
    day: str
    topic: str
    asset: Asset
    lines: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """One account at the end: `units` with debits positive."""

    account: str
    asset: Asset
    units: int


@dataclass(frozen=True, slots=True)
class Exported:
    """What a journal holds: postings and accounts of the market log up to `position`."""

    position: int
    postings: int
    accounts: int


# --- names -----------------------------------------------------------------------------------

_INCOME = re.compile(r"network:(?:revenue:.+|breakage)|region:[^:]+:revenue")
_EQUITY = re.compile(r"(?:emission|recycle):.+|device:.+:physical")
_PLAIN = re.compile(r"[A-Za-z0-9]")
_MARK = "X-Z00"
"""Before a part that begins with a capital or a symbol, or is empty: it follows as it is."""


@lru_cache(maxsize=NAMES_MAX)
def account_name(name: str, side: int) -> str:
    """The account of the chart as both tools can name it; `side` is its normal side.

    Letters and digits stay, `_` is `-`, any other byte is `-Z` and two hex digits, and the first
    letter of a part is a capital. Income and Equity by name; else Assets where debits raise the
    balance, and Liabilities where credits do.
    """
    if _INCOME.fullmatch(name):
        root = "Income"
    elif _EQUITY.fullmatch(name):
        root = "Equity"
    else:
        root = "Assets" if side == DEBIT else "Liabilities"
    return ":".join([root, *map(part_name, name.split(":"))])


def part_name(part: str) -> str:
    """One part of a name, as both tools can write it: `promo_1` is `Promo-1`."""
    written = _escape(part)
    first = part[:1]
    if "a" <= first <= "z":
        return written[0].upper() + written[1:]
    return written if "0" <= first <= "9" else _MARK + written


def _escape(part: str) -> str:
    written: list[str] = []
    for place, letter in enumerate(part):
        if _PLAIN.match(letter):
            written.append(letter)
        elif letter == "_" and part[place + 1 : place + 2] != "Z":
            written.append("-")
        else:
            written += (f"-Z{byte:02X}" for byte in letter.encode())
    return "".join(written)


# --- the two forms ---------------------------------------------------------------------------


def head(form: Form, title: str, closings: Iterable[Closing], first_day: str) -> Iterator[str]:
    """Commodities and accounts: what strict checks of both tools want declared."""
    if form is Form.HLEDGER:
        yield f"; {title}\n\n"
        for commodity in COMMODITY.values():
            yield f"commodity 1000. {commodity}\n"
        for each in closings:
            yield f"account {each.account}\n"
    else:
        yield f'; {title}\noption "title" "tallystick"\n\n'
        for commodity in COMMODITY.values():
            yield f"{first_day} commodity {commodity}\n"
        for each in closings:
            yield f"{first_day} open {each.account} {COMMODITY[each.asset]}\n"
    yield "\n"


def written(form: Form, one: Transaction) -> str:
    """One transaction; the position is its code, or its link and metadata."""
    unit = COMMODITY[one.asset]
    if form is Form.HLEDGER:
        head = f"{one.day} ({one.position}) {one.topic}\n"
        lines = [f"    {account}  {units} {unit}\n" for account, units in one.lines]
    else:
        head = f'{one.day} * "{one.topic}" ^market-{one.position}\n  position: {one.position}\n'
        lines = [f"  {account}  {units} {unit}\n" for account, units in one.lines]
    return "".join([head, *lines, "\n"])


def closing(form: Form, closings: Iterable[Closing], last_day: str) -> Iterator[str]:
    """Assertions of what every account holds after the last transaction.

    beancount asserts at the beginning of a day, hence of the next one.
    """
    if form is Form.HLEDGER:
        yield f"{last_day} closing balances\n"
        for each in closings:
            unit = COMMODITY[each.asset]
            yield f"    {each.account}  0 {unit} = {each.units} {unit}\n"
        return
    next_day = (datetime.fromisoformat(last_day) + timedelta(days=1)).date().isoformat()
    for each in closings:
        yield f"{next_day} balance {each.account}  {each.units} {COMMODITY[each.asset]}\n"


@lru_cache(maxsize=4_096)
def _day(number: int) -> str:
    return f"{datetime.fromtimestamp(number * 86_400, UTC):%Y-%m-%d}"


def day_of(at_us: int) -> str:
    """The UTC day of a moment, as both tools write it."""
    return _day(at_us // DAY_US)


# --- the books of a database -------------------------------------------------------------------

_BOUNDS = """
    SELECT count(*), coalesce(min(position), 0), coalesce(max(position), 0)
    FROM posting WHERE position <= %s
"""
_RECORDED = "SELECT recorded_us FROM market_events WHERE notification_id = %s"
_CLOSINGS = """
    SELECT a.name, a.asset, a.side, l.units FROM account a JOIN (
        SELECT DISTINCT ON (l.account) l.account, l.units
        FROM posting p, unnest(p.accounts, p.balances_after) l(account, units)
        WHERE p.position <= %s ORDER BY l.account, p.position DESC
    ) l ON l.account = a.id ORDER BY a.name
"""
_POSTINGS = """
    SELECT p.position, p.asset, p.accounts, p.units, e.topic, e.recorded_us
    FROM posting p JOIN market_events e ON e.notification_id = p.position
    WHERE p.position <= %s ORDER BY p.position, p.asset
"""
_NAMES = "SELECT id, name, side FROM account WHERE id = ANY (%s)"


def export(
    connection: Connection,
    form: Form,
    write: Callable[[bytes], Any],
    *,
    last: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Exported:
    """Write the books up to a position of the market log, by default to its head.

    One snapshot, bounded memory: `BATCH_ROWS` postings at a time. `progress(done, of)` counts
    postings. The connection must be in autocommit.
    """
    with _one_snapshot(connection):
        (at,) = _row(connection, "SELECT pos FROM market_events_head")
        at = at if last is None else min(at, last)
        count, first, final = _row(connection, _BOUNDS, at)
        first_day, last_day = (_recorded_day(connection, each) for each in (first, final))
        title = f"tallystick: the books up to position {at} of the market log, {count} postings"
        for part in head(form, title, _closings(connection, at), first_day):
            write(part.encode())
        done = 0
        for batch in _transactions(connection, at):
            write("".join([written(form, each) for each in batch]).encode())
            done += len(batch)
            progress(done, count)
        assert done == count, (done, count)
        accounts = 0
        if count:
            for part in closing(form, _closings(connection, at), last_day):
                write(part.encode())
            (accounts,) = _row(
                connection,
                "SELECT count(DISTINCT l.account) FROM posting p, unnest(p.accounts) l(account)"
                " WHERE p.position <= %s",
                at,
            )
    return Exported(at, count, accounts)


@contextmanager
def _one_snapshot(connection: Connection) -> Generator[None, None, None]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def _row(connection: Connection, sql: str, *parameters: Any) -> tuple[Any, ...]:
    row = connection.execute(sql.encode(), parameters).fetchone()
    assert row is not None
    return tuple(row)


def _recorded_day(connection: Connection, position: int) -> str:
    return day_of(0 if position == 0 else _row(connection, _RECORDED, position)[0])


def _closings(connection: Connection, last: int) -> Iterator[Closing]:
    with connection.cursor("closings", binary=True) as cursor:
        cursor.itersize = BATCH_ROWS
        for name, asset, side, units in cursor.execute(_CLOSINGS.encode(), (last,)):
            yield Closing(account_name(name, side), Asset(asset), side * units)


def _transactions(connection: Connection, last: int) -> Iterator[list[Transaction]]:
    names: dict[int, str] = {}
    with connection.cursor("journal", binary=True) as cursor:
        cursor.execute(_POSTINGS.encode(), (last,))
        while rows := cursor.fetchmany(BATCH_ROWS):
            if len(names) > NAMES_MAX:
                names.clear()
            wanted = {account for row in rows for account in row[2]} - names.keys()
            found = connection.execute(_NAMES, (sorted(wanted),)).fetchall() if wanted else ()
            names |= {each: account_name(name, side) for each, name, side in found}
            yield [
                Transaction(
                    position,
                    day_of(recorded_us),
                    topic,
                    Asset(asset),
                    tuple(zip([names[each] for each in accounts], units, strict=True)),
                )
                for position, asset, accounts, units, topic, recorded_us in rows
            ]
