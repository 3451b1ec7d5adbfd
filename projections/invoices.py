"""Which invoices and credit notes were issued, and what the next ones will say.

    sum(lines of an invoice) == what the party's bill adds up to for its kinds and positions

A row points at its fact; the fact is the document. The lines of a month that has no invoice yet are
summed from the movements of the party's books, by kind and by the class of the accelerators.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.invoice import InvoiceLine
from domain.money import credit
from projections import read
from projections.runner import Connection, Projection, Rule

KINDS_OF = {
    "charges": ("usage", "federated_fee", "resources", "device_fee"),
    "earnings": ("earning",),
}
"""Which lines of a bill each kind of invoice is made of (`projections/movements.py`)."""
SIGN = {"charges": -1, "earnings": 1}
"""A charge takes from what a party has or adds to what it owes, an earning adds to what it has."""
QUANTITY_UNIT = "GPU-microsecond"

_TABLES = """
    CREATE TABLE own.document (
        position bigint PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        number text COLLATE "C" NOT NULL, invoice_id text COLLATE "C" NOT NULL,
        document text NOT NULL, kind text NOT NULL, period text, corrects text,
        net bigint NOT NULL, total bigint NOT NULL, sha256 text NOT NULL, at_us bigint NOT NULL);
    COMMENT ON TABLE own.document IS 'One row per invoice and credit note; period of an invoice';
"""

_INDEXES = """
    CREATE UNIQUE INDEX document_number ON own.document (account_id, number);
    CREATE INDEX ON own.document (invoice_id, position);
    CREATE INDEX ON own.document (account_id, position);
"""

_NUMBER = (
    "split_part(series, '/', 1) || '-' ||"
    " lpad(number::text, greatest(6, length(number::text)), '0')"
)
_COMMON = (
    "account_id text, series text, number bigint, invoice_id text, kind text, net json, total json,"
    " document_sha256 text, at_us bigint"
)


def _rule(topic: str, own_fields: str, document: str, period: str, corrects: str) -> Rule:
    return Rule(
        (topic,),
        f"{_COMMON}, {own_fields}",
        f"""INSERT INTO own.document
        SELECT position, account_id, {_NUMBER}, invoice_id, '{document}', kind, {period},
            {corrects}, (net->>'units')::bigint, (total->>'units')::bigint, document_sha256, at_us
        FROM facts""",
    )


_RULES = (
    _rule("invoice.issued.v1", "period text", "invoice", "period", "NULL"),
    _rule("invoice.credit_note_issued.v1", "corrects text", "credit_note", "NULL", "corrects"),
)

INVOICES = Projection("invoices", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Document:
    """One invoice or credit note; its fact is at `position`. Amounts in micro-credits."""

    position: int
    account_id: str
    number: str
    invoice_id: str
    document: str
    kind: str
    period: str | None
    corrects: str | None
    net: int
    total: int
    sha256: str
    at_us: int


@dataclass(frozen=True, slots=True)
class _Sum:
    kind: str
    detail: str | None
    unit: str | None
    quantity: str | None
    change: int


def read_documents(
    connection: Connection, account_id: str, *, after: int = 0, limit: int = 50
) -> list[Document]:
    """Invoices and credit notes of an account in order; `after` is the last position before."""
    sql = """SELECT * FROM proj_invoices.document
        WHERE account_id = %(account)s AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, Document, sql, account=account_id, after=after, limit=limit)


def read_document(connection: Connection, account_id: str, number: str) -> Document | None:
    """One document by the number that stands on it."""
    sql = """SELECT * FROM proj_invoices.document
        WHERE account_id = %(account)s AND number = %(number)s"""
    return read.one(connection, Document, sql, account=account_id, number=number)


def read_credit_notes(connection: Connection, invoice_id: str) -> list[Document]:
    """The credit notes of one invoice, in order."""
    sql = """SELECT * FROM proj_invoices.document
        WHERE invoice_id = %(invoice)s AND document = 'credit_note' ORDER BY position"""
    return read.many(connection, Document, sql, invoice=invoice_id)


def read_invoice_lines(
    connection: Connection, account_id: str, kind: str, first: int, last: int
) -> tuple[InvoiceLine, ...]:
    """What an invoice of positions (first, last] says, line by line; none: nothing to invoice.

    Needs the movements, usage and leases views at `last` or beyond.
    """
    sql = """WITH moved AS (
            SELECT m.position, m.kind,
                sum(CASE b.part WHEN 'owed' THEN -m.change ELSE m.change END)::bigint AS change
            FROM proj_movements.book b JOIN proj_movements.movement m ON m.book = b.book
            WHERE b.party = %(party)s AND m.kind = ANY(%(kinds)s)
                AND m.position > %(first)s AND m.position <= %(last)s
            GROUP BY m.position, m.kind)
        SELECT o.kind, coalesce(l.gpu_class, f.meter) AS detail,
            CASE WHEN u.position IS NULL THEN f.unit ELSE %(gpu)s END AS unit,
            sum(CASE WHEN u.position IS NULL THEN f.quantity_new::numeric ELSE u.gpu_us END)::text
                AS quantity, sum(o.change)::bigint AS change
        FROM moved o LEFT JOIN proj_usage.accrual u ON u.position = o.position
            AND o.kind <> 'federated_fee'
        LEFT JOIN proj_leases.lease l ON l.lease_id = u.lease_id
        LEFT JOIN LATERAL (
            SELECT r.* FROM public.market_events e CROSS JOIN LATERAL
                json_to_record(convert_from(e.state, 'UTF8')::json)
                AS r(meter text, unit text, quantity_new text)
            WHERE e.notification_id = o.position) f ON u.position IS NULL
        GROUP BY 1, 2, 3 ORDER BY array_position(%(kinds)s::text[], o.kind), 2, 3"""
    sums = read.many(
        connection, _Sum, sql, party=account_id, kinds=list(KINDS_OF[kind]), first=first,
        last=last, gpu=QUANTITY_UNIT,
    )  # fmt: skip
    return tuple(
        InvoiceLine(
            each.kind, each.detail, None if each.quantity is None else int(each.quantity),
            None if each.quantity is None else each.unit, credit(SIGN[kind] * each.change),
        )
        for each in sums
        if each.change
    )  # fmt: skip


def read_not_invoiced(
    connection: Connection, kind: str, period: str, first: int, last: int, limit: int
) -> list[str]:
    """Accounts that something moved for in positions (first, last] and that have no invoice yet."""
    sql = """SELECT a.account_id FROM proj_access.account a
        WHERE EXISTS (
            SELECT FROM proj_movements.book b CROSS JOIN LATERAL (
                SELECT FROM proj_movements.movement m WHERE m.book = b.book
                    AND m.kind = ANY(%(kinds)s) AND m.change <> 0
                    AND m.position > %(first)s AND m.position <= %(last)s LIMIT 1) m
            WHERE b.party = a.account_id)
        AND NOT EXISTS (
            SELECT FROM proj_invoices.document d WHERE d.account_id = a.account_id
                AND d.document = 'invoice' AND d.kind = %(kind)s AND d.period = %(period)s)
        ORDER BY a.account_id LIMIT %(limit)s"""
    rows = connection.execute(
        sql.encode(),
        {"kinds": list(KINDS_OF[kind]), "kind": kind, "period": period, "first": first,
         "last": last, "limit": limit},
    ).fetchall()  # fmt: skip
    return [str(row[0]) for row in rows]
