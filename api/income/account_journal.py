"""A month of an account's own books as an hledger journal: what it has, spent, earned, in CREDIT.

    balance of Assets:Tallystick:PART == what the account has on that part, to the micro-credit
    sum of a transaction == 0: the account's own parts, and what the movement was for

The books of the market say what it owes to an account; here the account's own side is told. What it
has is an asset (`Assets:Tallystick:Cash`), what it owes a liability. The other side of a movement
is its kind (`projections/income/movements.py`): a charge is an expense, an earning an income, and
money that came from a bank or went to one stands on `Equity:Transfers`, for the reader's own books
to take up. Moves between the account's own parts have no other side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from api.income.focus import Bill
from domain.money import Asset
from ledger.books.chart import CREDIT
from ledger.bundle.journal import day_of, part_name
from projections.income.movements import EARNED_PARTS
from projections.runner import Connection

BATCH_ROWS = 1_000
PLACES = {Asset.CREDIT: 6, Asset.TOKEN: 8, Asset.GPU_MS: 0, Asset.SEAT_MS: 0}
"""Decimals of each asset, which are all that there are: nothing is rounded."""
OWN = "Tallystick"
OPENING = "Equity:Opening"
PIECE_ROWS = 500

_TRANSFERS, _EXPENSES, _INCOME = "Equity:Transfers", "Expenses", "Income"
_MOVED = """deposit purchase payment reversal payment_refund card_final debt cash_out payout hold
    refund bid_deposit dispute maturity sweep region_pool"""
_SPENT = """usage federated_fee resources volume storage_node device_fee early_end bid_forfeit
    breakage promotion adjustment slash forfeit forgone"""
_EARNED = "earning reward milestone_grant grant region_cost region_share write_off"
ROOTS = {
    **dict.fromkeys(_MOVED.split(), _TRANSFERS),
    **dict.fromkeys(_SPENT.split(), _EXPENSES),
    **dict.fromkeys(_EARNED.split(), _INCOME),
    "other": "Equity",
}
"""Where the other side of each kind of movement stands."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One part moved. `units` from the account's side: above zero it has more, or owes less."""

    position: int
    asset: Asset
    account: str
    contra: str
    units: int
    topic: str
    day: str
    lease_id: str | None


@dataclass(frozen=True, slots=True)
class _Held:
    """What a part holds at a position, from the account's side; and its accounts here."""

    account: str
    asset: Asset
    units: int


_PARTS = """
    SELECT b.part, b.asset, b.side, coalesce(l.balance_after, 0)
    FROM proj_movements.book b LEFT JOIN LATERAL (
        SELECT m.balance_after FROM proj_movements.movement m
        WHERE m.book = b.book AND m.position <= %(at)s ORDER BY m.position DESC LIMIT 1) l ON true
    WHERE b.party = %(party)s AND EXISTS (
        SELECT FROM proj_movements.movement m WHERE m.book = b.book AND m.position <= %(last)s)
    ORDER BY b.part COLLATE "C", b.asset
"""
_KINDS = """
    SELECT DISTINCT b.part, m.kind FROM proj_movements.book b
    JOIN proj_movements.movement m ON m.book = b.book
    WHERE b.party = %(party)s AND m.position > %(first)s AND m.position <= %(last)s
"""
_LINES = """
    SELECT m.position, b.asset, b.part, b.side, m.kind, m.change, e.topic, e.recorded_us,
        convert_from(e.state, 'UTF8')::json->>'lease_id'
    FROM proj_movements.book b JOIN proj_movements.movement m ON m.book = b.book
    JOIN public.market_events e ON e.notification_id = m.position
    WHERE b.party = %(party)s AND m.position > %(first)s AND m.position <= %(last)s
        AND m.change <> 0
    ORDER BY m.position, b.asset, b.part COLLATE "C"
"""


def pieces(connection: Connection, bill: Bill, last: int) -> Iterator[bytes]:
    """Opening balances, a transaction for each movement, then what every account must hold."""
    first, first_day = bill.first_position, day_of(bill.from_us)
    opens = _held(connection, bill, first, last)
    ends = _held(connection, bill, last, last)
    kinds = connection.execute(
        _KINDS.encode(), {"party": bill.account_id, "first": first, "last": last}
    ).fetchall()
    accounts = {each.account for each in ends} | {contra(*each) for each in kinds} | {OPENING}
    title = f"tallystick: {bill.account_id}, positions {first + 1} to {last} of the market log"
    yield _head(title, accounts).encode()
    for asset in Asset:
        held = [(each.account, each.units) for each in opens if each.asset is asset and each.units]
        if held:
            held.append((OPENING, -sum(units for _, units in held)))
            yield _written(f"{first_day} opening balances", asset, held).encode()
    last_day = first_day
    text: list[str] = []
    for (position, asset), moved in groupby(
        _lines(connection, bill, last), key=lambda line: (line.position, line.asset)
    ):
        lines = list(moved)
        last_day = lines[0].day
        lease = "" if lines[0].lease_id is None else f"  ; lease:{lines[0].lease_id}"
        head = f"{last_day} ({position}) {lines[0].topic}{lease}"
        text.append(_written(head, asset, balanced(lines)))
        if len(text) == PIECE_ROWS:
            yield "".join(text).encode()
            text.clear()
    yield ("".join(text) + _closing(ends, last_day)).encode()


def contra(part: str, kind: str) -> str:
    """The account on the other side of a movement of this kind on this part."""
    root = ROOTS[kind]
    if kind == "adjustment" and part in EARNED_PARTS:
        root = _INCOME
    return f"{root}:{part_name(kind)}"


def own(part: str, side: int) -> str:
    """The account's own account of a part: `side` is that of the market's books, where credits
    raise what it owes to the account.
    """
    root = "Assets" if side == CREDIT else "Liabilities"
    return ":".join([root, OWN, *map(part_name, part.split("."))])


def balanced(lines: list[_Line]) -> list[tuple[str, int]]:
    """The lines of one transaction, and the other side of each kind that did not stay inside."""
    rest: dict[str, int] = {}
    for line in lines:
        rest[line.contra] = rest.get(line.contra, 0) - line.units
    told = [(line.account, line.units) for line in lines]
    told += [(account, units) for account, units in rest.items() if units]
    assert sum(units for _, units in told) == 0, lines
    return told


def _lines(connection: Connection, bill: Bill, last: int) -> Iterator[_Line]:
    with connection.cursor("journal") as cursor:
        cursor.itersize = BATCH_ROWS
        cursor.execute(
            _LINES.encode(), {"party": bill.account_id, "first": bill.first_position, "last": last}
        )
        for position, asset, part, side, kind, change, topic, recorded_us, lease_id in cursor:
            yield _Line(
                position,
                Asset(asset),
                own(part, side),
                contra(part, kind),
                -side * change,
                topic,
                day_of(recorded_us),
                lease_id,
            )


def _held(connection: Connection, bill: Bill, at: int, last: int) -> list[_Held]:
    named: dict[str, Any] = {"party": bill.account_id, "at": at, "last": last}
    return [
        _Held(own(part, side), Asset(asset), -side * units)
        for part, asset, side, units in connection.execute(_PARTS.encode(), named)
    ]


# --- as hledger reads it -----------------------------------------------------------------------


def amount(asset: Asset, units: int) -> str:
    """`-24.950159 CREDIT`: every unit, with a point, and no float on the way."""
    places = PLACES[asset]
    whole, rest = divmod(abs(units), 10**places)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{rest:0{places}} {asset}" if places else f"{sign}{whole} {asset}"


def _head(title: str, accounts: set[str]) -> str:
    # hledger wants a point in the example of a commodity, also where no digit follows it.
    commodities = [f"commodity 1000.{'0' * places} {asset}\n" for asset, places in PLACES.items()]
    declared = [f"account {one}\n" for one in sorted(accounts)]
    return "".join([f"; {title}\n\n", *commodities, *declared, "\n"])


def _written(head: str, asset: Asset, lines: list[tuple[str, int]]) -> str:
    told = "".join(f"    {account}  {amount(asset, units)}\n" for account, units in lines)
    return f"{head}\n{told}\n"


def _closing(ends: list[_Held], last_day: str) -> str:
    if not ends:
        return ""
    lines = "".join(
        f"    {each.account}  {amount(each.asset, 0)} = {amount(each.asset, each.units)}\n"
        for each in ends
    )
    return f"{last_day} closing balances\n{lines}"
