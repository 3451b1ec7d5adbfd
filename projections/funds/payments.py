"""What has been paid, what may still be reversed, and whose funds are watched?

    left == received - reversed + reinstated - refunds asked for + refunds that failed

Columns only add up or are filled once, so the state of a payment is read from them and never
depends on how the log was cut. Nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.payment (
        payment_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        method text NOT NULL, processor text COLLATE "C" NOT NULL, units bigint NOT NULL,
        cause text NOT NULL, saved_method text, expires_at_us bigint NOT NULL,
        started_at_us bigint NOT NULL, position bigint NOT NULL,
        reference text COLLATE "C", charge text COLLATE "C", received_units bigint,
        method_saved boolean, confirm_at_us bigint, received_at_us bigint, confirmed_at_us bigint,
        failed_at_us bigint, failed_reason text, is_suspended boolean,
        reversed bigint NOT NULL, reinstated bigint NOT NULL, refund_asked bigint NOT NULL,
        refund_failed bigint NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE own.taking (
        payment_id text COLLATE "C", taking_id text COLLATE "C", kind text NOT NULL,
        units bigint NOT NULL, state text NOT NULL, reason text, reference text,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (payment_id, taking_id));
    COMMENT ON TABLE own.taking IS 'Money of a payment that went back: reversals and refunds';
    CREATE TABLE own.card_money (
        account_id text COLLATE "C" PRIMARY KEY, exposed bigint NOT NULL, settled bigint NOT NULL)
        WITH (fillfactor = 70);
    COMMENT ON TABLE own.card_money IS 'Inside its chargeback window; final and not yet cash';
    CREATE TABLE own.watched (account_id text COLLATE "C" PRIMARY KEY);
    COMMENT ON TABLE own.watched IS 'Accounts that ever asked for warnings or auto top-up';
"""

_INDEXES = """
    CREATE INDEX ON own.payment (account_id, position);
    CREATE INDEX ON own.payment (processor, charge) WHERE charge IS NOT NULL;
    CREATE INDEX payment_waits ON own.payment (position)
        WHERE received_at_us IS NULL AND failed_at_us IS NULL;
    CREATE INDEX payment_pending ON own.payment (confirm_at_us)
        WHERE confirm_at_us IS NOT NULL AND confirmed_at_us IS NULL;
    CREATE INDEX taking_open ON own.taking (position) WHERE state = 'refunding';
"""


def _added(topic: str, column: str) -> Rule:
    """Sum up the amounts of these facts, however many of one payment are in a range."""
    return Rule(
        (topic,),
        "payment_id text, amount json",
        f"""UPDATE own.payment p SET {column} = p.{column} + f.units
        FROM (SELECT payment_id, sum((amount->>'units')::bigint)::bigint AS units
            FROM facts GROUP BY 1) f
        WHERE p.payment_id = f.payment_id""",
    )


_RULES = (
    Rule(
        ("payment.started.v1",),
        "payment_id text, account_id text, method text, processor text, amount json, cause text,"
        " saved_method text, expires_at_us bigint, at_us bigint",
        """INSERT INTO own.payment (payment_id, account_id, method, processor, units, cause,
            saved_method, expires_at_us, started_at_us, position, reversed, reinstated,
            refund_asked, refund_failed)
        SELECT payment_id, account_id, method, processor, (amount->>'units')::bigint, cause,
            saved_method, expires_at_us, at_us, position, 0, 0, 0, 0 FROM facts""",
    ),
    Rule(
        ("payment.offered.v1",),
        "payment_id text, reference text",
        """UPDATE own.payment p SET reference = f.reference
        FROM facts f WHERE p.payment_id = f.payment_id""",
    ),
    Rule(
        ("payment.received.v1",),
        "payment_id text, account_id text, amount json, reference text, saved_method text,"
        " confirm_at_us bigint, at_us bigint",
        """UPDATE own.payment p SET charge = f.reference, confirm_at_us = f.confirm_at_us,
            received_units = (f.amount->>'units')::bigint, received_at_us = f.at_us,
            method_saved = f.saved_method IS NOT NULL, is_suspended = f.account_id IS NULL,
            confirmed_at_us = CASE WHEN f.confirm_at_us IS NULL THEN f.at_us END
        FROM facts f WHERE p.payment_id = f.payment_id""",
    ),
    Rule(
        ("payment.confirmed.v1",),
        "payment_id text, at_us bigint",
        """UPDATE own.payment p SET confirmed_at_us = f.at_us
        FROM facts f WHERE p.payment_id = f.payment_id""",
    ),
    Rule(
        ("payment.failed.v1",),
        "payment_id text, reason text, at_us bigint",
        """UPDATE own.payment p SET failed_at_us = f.at_us, failed_reason = f.reason
        FROM facts f WHERE p.payment_id = f.payment_id""",
    ),
    _added("payment.reversed.v1", "reversed"),
    _added("payment.reinstated.v1", "reinstated"),
    _added("payment.refund_asked.v1", "refund_asked"),
    _added("payment.refund_failed.v1", "refund_failed"),
    Rule(
        ("payment.reversed.v1",),
        "payment_id text, reference text, amount json, reason text, at_us bigint",
        """INSERT INTO own.taking
        SELECT payment_id, reference, 'reversal', (amount->>'units')::bigint, 'reversed', reason,
            reference, at_us, position FROM facts""",
    ),
    Rule(
        ("payment.refund_asked.v1",),
        "payment_id text, refund_id text, amount json, at_us bigint",
        """INSERT INTO own.taking
        SELECT payment_id, refund_id, 'refund', (amount->>'units')::bigint, 'refunding', NULL,
            NULL, at_us, position FROM facts""",
    ),
    Rule(
        ("payment.reinstated.v1",),
        "payment_id text, reference text",
        """UPDATE own.taking t SET state = 'reinstated'
        FROM facts f WHERE t.payment_id = f.payment_id AND t.taking_id = f.reference""",
    ),
    Rule(
        ("payment.refunded.v1", "payment.refund_failed.v1"),
        "payment_id text, refund_id text, reference text, reason text",
        """UPDATE own.taking t SET reference = f.reference, reason = f.reason,
            state = CASE f.topic WHEN 'payment.refunded.v1' THEN 'refunded'
                ELSE 'refund_failed' END
        FROM facts f WHERE t.payment_id = f.payment_id AND t.taking_id = f.refund_id""",
    ),
    Rule(
        ("card.money_moved.v1",),
        "account_id text, exposed json, settled json",
        """INSERT INTO own.card_money
        SELECT DISTINCT ON (account_id) account_id, (exposed->>'units')::bigint,
            (settled->>'units')::bigint
        FROM facts ORDER BY account_id, position DESC
        ON CONFLICT (account_id) DO UPDATE SET
            exposed = excluded.exposed, settled = excluded.settled""",
    ),
    Rule(
        ("funds.warnings_set.v1", "funds.auto_top_up_set.v1"),
        "account_id text",
        """INSERT INTO own.watched SELECT DISTINCT account_id FROM facts
        ON CONFLICT (account_id) DO NOTHING""",
    ),
)

PAYMENTS = Projection("payments", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class PaymentRow:
    """Micro-credits. `state` as in `domain.funds.payment`; `left` of what was received."""

    payment_id: str
    account_id: str
    method: str
    processor: str
    units: int
    cause: str
    saved_method: str | None
    expires_at_us: int
    started_at_us: int
    position: int
    reference: str | None
    charge: str | None
    received_units: int | None
    method_saved: bool | None
    confirm_at_us: int | None
    received_at_us: int | None
    confirmed_at_us: int | None
    failed_at_us: int | None
    failed_reason: str | None
    is_suspended: bool | None
    reversed: int
    reinstated: int
    refund_asked: int
    refund_failed: int
    units_left: int
    state: str


@dataclass(frozen=True, slots=True)
class TakingRow:
    """`kind`: reversal or refund; `state`: reversed, reinstated, refunding, refunded,
    refund_failed.
    """

    payment_id: str
    taking_id: str
    kind: str
    units: int
    state: str
    reason: str | None
    reference: str | None
    at_us: int
    position: int


_LEFT = "coalesce(received_units, 0) - reversed + reinstated - refund_asked + refund_failed"
_SELECT = f"""SELECT p.*, CASE
        WHEN received_at_us IS NULL AND failed_at_us IS NULL THEN 'started'
        WHEN received_at_us IS NULL THEN 'failed'
        WHEN units_left = 0 AND reversed > reinstated THEN 'reversed'
        WHEN units_left = 0 THEN 'refunded'
        WHEN confirmed_at_us IS NULL THEN 'pending'
        ELSE 'confirmed' END AS state
    FROM (SELECT *, {_LEFT} AS units_left FROM proj_payments.payment) p"""


def read_payment(connection: Connection, payment_id: str) -> PaymentRow | None:
    return read.one(connection, PaymentRow, f"{_SELECT} WHERE payment_id = %(p)s", p=payment_id)


def read_payment_of_charge(
    connection: Connection, processor: str, charge: str
) -> PaymentRow | None:
    """The payment that was paid under this reference of the processor."""
    sql = f"{_SELECT} WHERE processor = %(p)s AND charge = %(c)s"
    return read.one(connection, PaymentRow, sql, p=processor, c=charge)


def read_payments(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[PaymentRow]:
    """In order of starting; `after` is the last position of the page before."""
    sql = f"""{_SELECT} WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection, PaymentRow, sql, way, account=account_id, after=after, limit=limit
    )


def read_owing(connection: Connection, since_us: int, limit: int) -> list[tuple[str, str]]:
    """(payment, account) of payments reversed since a moment whose account owes something."""
    sql = """SELECT p.payment_id, p.account_id FROM proj_payments.payment p
        JOIN public.account a ON a.name = 'party:' || p.account_id || ':owed' AND a.units > 0
        WHERE p.reversed > p.reinstated AND EXISTS (SELECT FROM proj_payments.taking t
            WHERE t.payment_id = p.payment_id AND t.state = 'reversed' AND t.at_us >= %s)
        ORDER BY p.position DESC LIMIT %s"""
    rows = connection.execute(sql, (since_us, limit)).fetchall()
    return [(str(payment_id), str(account_id)) for payment_id, account_id in rows]


def read_takings(connection: Connection, payment_id: str) -> list[TakingRow]:
    """Reversals and refunds of one payment, in order."""
    sql = "SELECT * FROM proj_payments.taking WHERE payment_id = %(p)s ORDER BY position"
    return read.many(connection, TakingRow, sql, p=payment_id)


# What the payments job looks at; each list is bounded and goes on after the last of the one before.


def read_watched(connection: Connection, after: str, limit: int) -> list[str]:
    """Accounts with warnings or auto top-up, by id."""
    sql = "SELECT account_id FROM proj_payments.watched WHERE account_id > %s ORDER BY 1 LIMIT %s"
    return [row[0] for row in connection.execute(sql.encode(), (after, limit))]


def read_waiting(connection: Connection, after: int, limit: int) -> list[PaymentRow]:
    """Payments that are neither paid nor failed."""
    sql = f"""{_SELECT} WHERE position > %(after)s AND received_at_us IS NULL
        AND failed_at_us IS NULL ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, PaymentRow, sql, after=after, limit=limit)


def read_due(
    connection: Connection, now_us: int, after: tuple[int, str], limit: int
) -> list[PaymentRow]:
    """Card payments whose window is over and that are not confirmed; `after` is (end of window,
    payment id) of the last one before.
    """
    sql = f"""{_SELECT} WHERE confirm_at_us <= %(now)s AND confirmed_at_us IS NULL
        AND units_left > 0 AND (confirm_at_us, payment_id) > (%(at)s, %(p)s)
        ORDER BY confirm_at_us, payment_id LIMIT %(limit)s"""
    return read.many(connection, PaymentRow, sql, now=now_us, at=after[0], p=after[1], limit=limit)


def read_refunding(connection: Connection, after: int, limit: int) -> list[TakingRow]:
    """Refunds that were asked for and have not arrived."""
    sql = """SELECT * FROM proj_payments.taking WHERE state = 'refunding'
        AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, TakingRow, sql, after=after, limit=limit)


def read_final_card_money(connection: Connection, limit: int) -> list[str]:
    """Accounts with card credits above what may still be reversed: they become cash."""
    sql = """SELECT c.account_id FROM proj_payments.card_money c
        JOIN public.account a ON a.name = 'party:' || c.account_id || ':card'
        WHERE c.settled > 0 AND a.units > c.exposed ORDER BY 1 LIMIT %s"""
    return [row[0] for row in connection.execute(sql.encode(), (limit,))]


def read_repayable(connection: Connection, sources: tuple[str, ...], limit: int) -> list[str]:
    """Accounts with a debt and with credits of these sources."""
    sql = """SELECT d.account_id FROM (
            SELECT split_part(name, ':', 2) AS account_id FROM public.account
            WHERE units > 0 AND name LIKE 'party:%%:owed') d
        WHERE EXISTS (SELECT FROM unnest(%s::text[]) s JOIN public.account a
            ON a.name = 'party:' || d.account_id || ':' || s WHERE a.units > 0)
        ORDER BY 1 LIMIT %s"""
    return [row[0] for row in connection.execute(sql.encode(), (list(sources), limit))]
