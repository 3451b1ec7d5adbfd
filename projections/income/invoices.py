"""Which invoices and credit notes were issued, and what the next ones will say.

    sum(lines of an invoice) == what the party's bill adds up to for its kinds and positions

A row points at its fact; the fact is the document. The lines of a month that has no invoice yet are
summed from the movements of the party's books, by kind and by the class of the accelerators.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.income.invoice import InvoiceLine
from domain.money import credit
from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

KINDS_OF = {
    "charges": (
        "usage",
        "federated_fee",
        "resources",
        "volume",
        "storage_node",
        "device_fee",
        "early_end",
    ),
    "earnings": ("earning",),
}
"""Which lines of a bill each kind of invoice is made of (`projections/income/movements.py`). What
late usage cost is on it too, as an adjustment; what adjustments gave back is a credit note.
"""
SIGN = {"charges": -1, "earnings": 1}
"""A charge takes from what a party has or adds to what it owes, an earning adds to what it has."""
QUANTITY_UNIT = "GPU-microsecond"

_TABLES = """
    CREATE TABLE own.document (
        position bigint PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        number text COLLATE "C" NOT NULL, invoice_id text COLLATE "C" NOT NULL,
        document text NOT NULL, kind text NOT NULL, period text, corrects text,
        net bigint NOT NULL, total bigint NOT NULL, sha256 text NOT NULL, at_us bigint NOT NULL,
        first_position bigint, last_position bigint, cause text COLLATE "C");
    COMMENT ON TABLE own.document IS 'One row per invoice and credit note; period of an invoice';
"""

_INDEXES = """
    CREATE UNIQUE INDEX document_number ON own.document (account_id, number);
    CREATE INDEX ON own.document (invoice_id, position);
    CREATE INDEX ON own.document (account_id, position);
    CREATE INDEX ON own.document (account_id, cause) WHERE cause IS NOT NULL;
"""

_NUMBER = (
    "split_part(series, '/', 1) || '-' ||"
    " lpad(number::text, greatest(6, length(number::text)), '0')"
)
_COMMON = (
    "account_id text, series text, number bigint, invoice_id text, kind text, net json, total json,"
    " document_sha256 text, at_us bigint"
)


def _rule(topic: str, document: str, own_fields: str) -> Rule:
    return Rule(
        (topic,),
        f"{_COMMON}, {own_fields}",
        f"""INSERT INTO own.document (position, account_id, number, invoice_id, document, kind,
            net, total, sha256, at_us, {own_fields.replace(" text", "").replace(" bigint", "")})
        SELECT position, account_id, {_NUMBER}, invoice_id, '{document}', kind,
            (net->>'units')::bigint, (total->>'units')::bigint, document_sha256, at_us,
            {own_fields.replace(" text", "").replace(" bigint", "")}
        FROM facts""",
    )


_RULES = (
    _rule(
        "invoice.issued.v1", "invoice", "period text, first_position bigint, last_position bigint"
    ),
    _rule("invoice.credit_note_issued.v1", "credit_note", "corrects text, cause text"),
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
    first_position: int | None
    last_position: int | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class GivenBack:
    """What an adjustment gave an account back, and the line of an invoice it was charged on."""

    position: int
    adjustment_id: str
    corrects_position: int
    reason: str
    account_id: str
    units: int
    what: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class _Sum:
    kind: str
    detail: str | None
    unit: str | None
    quantity: str | None
    change: int


def read_documents(
    connection: Connection, account_id: str, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Document]:
    """Invoices and credit notes of an account in order; `after` is the last position before."""
    sql = """SELECT * FROM proj_invoices.document
        WHERE account_id = %(account)s AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Document, sql, way, account=account_id, after=after, limit=limit)


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
                AND (b.part IN ('holdback', 'payable')) = %(earned)s
            GROUP BY m.position, m.kind)
        SELECT CASE o.kind WHEN 'adjustment' THEN 'late_usage' ELSE o.kind END AS kind,
            coalesce(l.gpu_class, f.meter) AS detail,
            CASE WHEN u.position IS NULL THEN f.unit ELSE %(gpu)s END AS unit,
            sum(CASE WHEN u.position IS NULL THEN f.quantity_new::numeric ELSE u.gpu_us END)::text
                AS quantity, sum(o.change)::bigint AS change
        FROM moved o LEFT JOIN proj_usage.accrual u ON u.position = o.position
            AND o.kind <> 'federated_fee'
        LEFT JOIN proj_leases.lease l ON l.lease_id = u.lease_id
        LEFT JOIN LATERAL (
            SELECT r.* FROM public.market_events e CROSS JOIN LATERAL
                json_to_record(convert_from(e.state, 'UTF8')::json)
                AS r(meter text, unit text, quantity_new text, reason text)
            WHERE e.notification_id = o.position) f ON u.position IS NULL
        WHERE o.kind <> 'adjustment' OR f.reason = 'late_usage'
        GROUP BY 1, 2, 3, o.kind ORDER BY array_position(%(kinds)s::text[], o.kind), 2, 3"""
    sums = read.many(
        connection,
        _Sum,
        sql,
        party=account_id,
        kinds=[*KINDS_OF[kind], "adjustment"],
        first=first,
        last=last,
        gpu=QUANTITY_UNIT,
        earned=kind == "earnings",
    )
    return tuple(
        InvoiceLine(
            each.kind,
            each.detail,
            None if each.quantity is None else int(each.quantity),
            None if each.quantity is None else each.unit,
            credit(SIGN[kind] * each.change),
        )
        for each in sums
        if each.change
    )


def read_not_invoiced(
    connection: Connection, kind: str, period: str, first: int, last: int, limit: int
) -> list[str]:
    """Accounts that something moved for in positions (first, last] and that have no invoice yet."""
    sql = """SELECT a.account_id FROM proj_access.account a
        WHERE EXISTS (
            SELECT FROM proj_movements.book b CROSS JOIN LATERAL (
                SELECT FROM proj_movements.movement m WHERE m.book = b.book
                    AND m.kind = ANY(%(kinds)s) AND m.change <> 0
                    AND m.position > %(first)s AND m.position <= %(last)s
                    AND (m.kind <> 'adjustment' OR EXISTS (
                        SELECT FROM proj_disputes.adjustment d
                        WHERE d.position = m.position AND d.reason = 'late_usage'))
                LIMIT 1) m
            WHERE b.party = a.account_id)
        AND NOT EXISTS (
            SELECT FROM proj_invoices.document d WHERE d.account_id = a.account_id
                AND d.document = 'invoice' AND d.kind = %(kind)s AND d.period = %(period)s)
        ORDER BY a.account_id LIMIT %(limit)s"""
    rows = connection.execute(
        sql.encode(),
        {
            "kinds": [*KINDS_OF[kind], "adjustment"],
            "kind": kind,
            "period": period,
            "first": first,
            "last": last,
            "limit": limit,
        },
    ).fetchall()
    return [str(row[0]) for row in rows]


def read_given_back(connection: Connection, last: int, limit: int) -> list[GivenBack]:
    """What adjustments of charges up to a position gave back, and no credit note says yet.

    An adjustment waits until its charge is on an invoice. Needs the disputes view as well.
    """
    sql = """SELECT d.position, d.adjustment_id, d.corrects_position, d.reason,
            b.party AS account_id,
            sum(CASE b.part WHEN 'owed' THEN -m.change ELSE m.change END)::bigint AS units,
            CASE e.topic WHEN 'resource.accrued.v1' THEN 'resources'
                WHEN 'volume.charged.v1' THEN 'volume' ELSE 'usage' END AS what,
            CASE e.topic WHEN 'resource.accrued.v1'
                THEN convert_from(e.state, 'UTF8')::json->>'meter' ELSE l.gpu_class END AS detail
        FROM proj_disputes.adjustment d
        JOIN proj_movements.movement m ON m.position = d.position AND m.kind = 'adjustment'
        JOIN proj_movements.book b ON b.book = m.book AND b.part NOT IN ('holdback', 'payable')
        JOIN public.market_events e ON e.notification_id = d.corrects_position
        LEFT JOIN proj_leases.lease l ON l.lease_id = d.lease_id
        WHERE d.corrects_position <= %(last)s AND d.reason <> 'late_usage' AND NOT EXISTS (
                SELECT FROM proj_invoices.document n WHERE n.account_id = b.party
                    AND n.cause = 'adjustment:' || d.adjustment_id)
            AND EXISTS (
                SELECT FROM proj_invoices.document i WHERE i.account_id = b.party
                    AND i.document = 'invoice' AND i.kind = 'charges')
        GROUP BY d.position, b.party, e.topic, e.state, l.gpu_class
        HAVING sum(CASE b.part WHEN 'owed' THEN -m.change ELSE m.change END) > 0
        ORDER BY d.position, b.party LIMIT %(limit)s"""
    return read.many(connection, GivenBack, sql, last=last, limit=limit)


def read_invoices_of_charges(
    connection: Connection, account_id: str, position: int, limit: int
) -> list[Document]:
    """Invoices of an account's charges: the one that covers a position first, then the latest."""
    sql = """SELECT * FROM proj_invoices.document WHERE account_id = %(account)s
        AND document = 'invoice' AND kind = 'charges'
        ORDER BY (first_position < %(at)s AND last_position >= %(at)s) DESC, position DESC
        LIMIT %(limit)s"""
    return read.many(connection, Document, sql, account=account_id, at=position, limit=limit)
