"""A month of one account as a file that other tools read: FOCUS, hledger, plain CSV and JSON.

Files are written while they are read, a batch of rows at a time, from one snapshot of the database:
a month of any length costs the same memory. One file at a time for each account and a few in all;
whoever asks for more is told to wait. What was not yet begun can still be answered with a problem;
what fails in the middle ends the connection, so that half a file is never taken for a whole one.
"""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from starlette.responses import StreamingResponse

from api.door import errors
from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.models import AccountInPath
from api.door.moments import moment
from api.door.operation import Resource
from api.door.positions import POSITION
from api.income import account_journal, focus, invoicing, issuer
from api.income.csv_cell import cell
from api.parties.accounts import visible
from domain.income.invoice import invoice_id_of, period_bounds_us
from domain.parties.reasons import PartiesReason
from domain.refusal import Reason, Refused
from ledger.beside import billing_details
from projections.fleet.fleet import FLEET
from projections.income.charges import read_charges
from projections.income.invoices import INVOICES
from projections.income.movements import MOVEMENTS
from projections.income.statements import STATEMENTS
from projections.lease.leases import LEASES
from projections.metering.usage import USAGE
from projections.parties import access
from projections.parties.access import ACCESS
from projections.runner import Connection

resource = Resource("exports")

READ = with_scope("billing:read")
VIEWS = (ACCESS, FLEET, LEASES, USAGE, MOVEMENTS, INVOICES, STATEMENTS)
PROBLEMS: tuple[Reason | str, ...] = (PartiesReason.ACCOUNT_UNKNOWN,)
EXPORTS_MAX = 4
"""Files being written by one process: each holds a connection of its own."""
BATCH_ROWS = 1_000

Month = Annotated[str, Path(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$", examples=["2026-11"])]

FocusVersion = Annotated[
    Literal["1.2", "1.3"],
    Query(alias="focus", description="Version of FOCUS; 1.3 has the provider of each charge."),
]

_running: set[str] = set()
_lock = threading.Lock()

Pieces = Callable[[Connection, focus.Bill, int], Iterator[bytes]]
"""A file: of this account and month, up to this position."""


@resource.get(
    "/v1/accounts/{account_id}/statements/{period}.csv",
    READ,
    None,
    problems=PROBLEMS,
    media_type="text/csv",
)
def export_focus_csv(
    account_id: AccountInPath, period: Month, call: Caller, version: FocusVersion = "1.2"
) -> Response:
    """Returns charges of a month in the columns of FOCUS 1.2 or 1.3, as CSV."""

    def pieces(connection: Connection, bill: focus.Bill, last: int) -> Iterator[bytes]:
        charges = read_charges(connection, account_id, bill.first_position, last)
        rows = focus.rows_of(bill, charges, focus.Version(version))
        return focus.csv_pieces(rows, focus.Version(version))

    return _file(call, account_id, period, "focus.csv", pieces)


@resource.get(
    "/v1/accounts/{account_id}/statements/{period}.parquet",
    READ,
    None,
    problems=PROBLEMS,
    media_type="application/vnd.apache.parquet",
)
def export_focus_parquet(
    account_id: AccountInPath, period: Month, call: Caller, version: FocusVersion = "1.2"
) -> Response:
    """Returns charges of a month in the columns of FOCUS 1.2 or 1.3, as Parquet."""

    def pieces(connection: Connection, bill: focus.Bill, last: int) -> Iterator[bytes]:
        charges = read_charges(connection, account_id, bill.first_position, last)
        rows = focus.rows_of(bill, charges, focus.Version(version))
        return focus.parquet_pieces(rows, focus.Version(version))

    return _file(call, account_id, period, "focus.parquet", pieces)


@resource.get(
    "/v1/accounts/{account_id}/statements/{period}.journal",
    READ,
    None,
    problems=PROBLEMS,
    media_type="text/x-hledger-journal",
)
def export_journal(account_id: AccountInPath, period: Month, call: Caller) -> Response:
    """Returns the account's books of a month as an hledger journal, from the account's side, in
    CREDIT.
    """
    return _file(call, account_id, period, "journal", account_journal.pieces)


@resource.get(
    "/v1/accounts/{account_id}/statements/{period}/lines.csv",
    READ,
    None,
    problems=PROBLEMS,
    media_type="text/csv",
)
def export_lines_csv(account_id: AccountInPath, period: Month, call: Caller) -> Response:
    """Returns every movement on the account's books in a month, as plain CSV."""
    return _file(call, account_id, period, "lines.csv", _lines_csv)


@resource.get(
    "/v1/accounts/{account_id}/statements/{period}/lines.jsonl",
    READ,
    None,
    problems=PROBLEMS,
    media_type="application/jsonl",
)
def export_lines_json(account_id: AccountInPath, period: Month, call: Caller) -> Response:
    """Returns every movement on the account's books in a month, one JSON object a line."""
    return _file(call, account_id, period, "lines.jsonl", _lines_json)


def _file(call: Call, account_id: str, period: str, name: str, pieces: Pieces) -> Response:
    """Begin a file: everything that can be refused is refused before its first byte."""
    visible(call.principal, account_id)
    service = call.service
    with call.read(*VIEWS) as view:
        if access.read_account(view.connection, account_id) is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        first, last = invoicing.positions_of(view.connection, period)
        last = min(last, view.position)
        bill = _bill(call, view.connection, account_id, period, min(first, last))
    _begin(account_id)

    def written() -> Generator[bytes, None, None]:
        try:
            with service.connect() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield from pieces(connection, bill, last)
        finally:
            _end(account_id)

    headers = {
        POSITION: str(last),
        "Content-Disposition": f'attachment; filename="{account_id}-{period}-{name}"',
    }
    return _Released(written(), headers=headers, media_type=call.operation.media_type)


class _Released(StreamingResponse):
    """A stream whose generator is closed whatever happens, so that its connection is given back."""

    def __init__(self, content: Generator[bytes, None, None], **how: Any) -> None:
        super().__init__(content, **how)
        self._content = content

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._content.close()


def _begin(account_id: str) -> None:
    """Raises Problem: 503 busy."""
    with _lock:
        if account_id in _running or len(_running) >= EXPORTS_MAX:
            raise errors.problem("busy", "another file is being written", Retry_After="1")
        _running.add(account_id)


def _end(account_id: str) -> None:
    with _lock:
        _running.discard(account_id)


def _bill(
    call: Call, connection: Connection, account_id: str, period: str, first: int
) -> focus.Bill:
    details = billing_details.read(connection, account_id)
    from_us, to_us = period_bounds_us(period)
    row = connection.execute(
        "SELECT number FROM proj_invoices.document WHERE invoice_id = %s AND document = 'invoice'",
        (invoice_id_of("charges", account_id, period),),
    ).fetchone()
    return focus.Bill(
        account_id=account_id,
        account_name=None if details is None else details.name,
        issuer_name=issuer.read(call.service.settings.billing_file).name,
        from_us=from_us,
        to_us=to_us,
        first_position=first,
        invoice_number=None if row is None else str(row[0]),
    )


# --- the account's own books -------------------------------------------------------------------

_OWN = """
    SELECT a.id, a.name, a.asset, a.side FROM proj_movements.book b
    JOIN proj_movements.holder h ON h.book = b.book JOIN public.account a ON a.id = h.account
    WHERE b.party = %(party)s
"""
_LINES = f"""
    SELECT l.position, o.name, o.asset, o.side, l.units, l.balance_after, e.topic, e.recorded_us
    FROM ({_OWN}) o JOIN proj_statements.line l ON l.account = o.id
    JOIN public.market_events e ON e.notification_id = l.position
    WHERE l.position > %(first)s AND l.position <= %(last)s ORDER BY l.position, o.asset, o.name
"""  # noqa: S608 - as above


def _lines(connection: Connection, bill: focus.Bill, last: int) -> Iterator[tuple[Any, ...]]:
    with connection.cursor("lines") as cursor:
        cursor.itersize = BATCH_ROWS
        cursor.execute(
            _LINES.encode(), {"party": bill.account_id, "first": bill.first_position, "last": last}
        )
        yield from cursor


_FIELDS = (
    "position",
    "account",
    "asset",
    "debit_positive_units",
    "balance_after",
    "type",
    "recorded_at",
)


def _told(line: tuple[Any, ...]) -> tuple[Any, ...]:
    position, name, asset, _, units, balance, topic, recorded_us = line
    return position, name, asset, units, balance, topic, moment(recorded_us)


def _lines_csv(connection: Connection, bill: focus.Bill, last: int) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_FIELDS)
    for number, line in enumerate(_lines(connection, bill, last), start=1):
        writer.writerow(cell(one) if isinstance(one, str) else one for one in _told(line))
        if number % BATCH_ROWS == 0:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


def _lines_json(connection: Connection, bill: focus.Bill, last: int) -> Iterator[bytes]:
    pieces: list[str] = []
    for line in _lines(connection, bill, last):
        told = dict(zip(_FIELDS, _told(line), strict=True))
        for units in ("debit_positive_units", "balance_after"):
            told[units] = str(told[units])
        pieces.append(json.dumps(told, separators=(",", ":")) + "\n")
        if len(pieces) == BATCH_ROWS:
            yield "".join(pieces).encode()
            pieces.clear()
    yield "".join(pieces).encode()
