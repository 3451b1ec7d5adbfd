"""Which charges are contested or were corrected, by whom, and with what outcome?

    sum of `returned` of a charge's adjustments <= the charge          as decided; copied here

For lists, and for statements that have to say which usage is contested. What a dispute or an
adjustment says word by word is read from the log by its position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.dispute (
        dispute_id text COLLATE "C" PRIMARY KEY, lease_id text COLLATE "C",
        volume_id text COLLATE "C",
        account_id text COLLATE "C" NOT NULL, provider_account_id text COLLATE "C" NOT NULL,
        side text NOT NULL, claim_code text NOT NULL, claim_sha256 text, claimed bigint NOT NULL,
        reserved bigint NOT NULL, answers int NOT NULL, outcome text, upheld_ppm int,
        upheld bigint, unfounded boolean, opened_at_us bigint NOT NULL,
        expires_at_us bigint NOT NULL, resolved_at_us bigint, resolved_position bigint,
        position bigint NOT NULL,
        CONSTRAINT one_subject CHECK ((lease_id IS NULL) <> (volume_id IS NULL))
    ) WITH (fillfactor = 70);
    CREATE TABLE own.disputed_line (
        position bigint PRIMARY KEY, dispute_id text COLLATE "C" NOT NULL, lease_id text,
        charge bigint NOT NULL, claimed bigint NOT NULL, gpu_us bigint NOT NULL,
        upheld bigint, adjustment_id text COLLATE "C") WITH (fillfactor = 70);
    COMMENT ON TABLE own.disputed_line IS 'By the position of the charge; upheld null: still open';
    CREATE TABLE own.adjustment (
        position bigint PRIMARY KEY, adjustment_id text COLLATE "C" NOT NULL UNIQUE,
        corrects_position bigint NOT NULL, lease_id text COLLATE "C",
        volume_id text COLLATE "C",
        account_id text COLLATE "C" NOT NULL, provider_account_id text COLLATE "C" NOT NULL,
        reason text NOT NULL, cause text NOT NULL, returned bigint NOT NULL,
        recovered bigint NOT NULL, owed bigint NOT NULL, lines jsonb NOT NULL, gpu_us_new bigint,
        charge_new bigint, by text NOT NULL, at_us bigint NOT NULL,
        CONSTRAINT one_subject CHECK ((lease_id IS NULL) <> (volume_id IS NULL)));
    CREATE TABLE own.sla (
        lease_id text COLLATE "C" PRIMARY KEY, sla_class text NOT NULL, position bigint NOT NULL,
        opened boolean NOT NULL, settled_position bigint, availability_ppm int, credit bigint,
        credited bigint NOT NULL, is_done boolean NOT NULL) WITH (fillfactor = 50);
    COMMENT ON TABLE own.sla IS 'Leases that were promised availability';
"""

_INDEXES = """
    CREATE INDEX ON own.dispute (lease_id);
    CREATE INDEX ON own.dispute (volume_id);
    CREATE INDEX ON own.dispute (account_id, position);
    CREATE INDEX ON own.dispute (provider_account_id, position);
    CREATE INDEX ON own.dispute (expires_at_us) WHERE outcome IS NULL;
    CREATE INDEX ON own.disputed_line (lease_id, position);
    CREATE INDEX ON own.disputed_line (dispute_id, position);
    CREATE INDEX ON own.adjustment (corrects_position, position);
    CREATE INDEX ON own.adjustment (corrects_position) WHERE owed <> 0;
    CREATE INDEX ON own.sla (settled_position) WHERE opened AND NOT is_done;
    CREATE INDEX ON own.adjustment (account_id, position);
    CREATE INDEX ON own.adjustment (provider_account_id, position);
"""

_RULES = (
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text, lease_id text, volume_id text, account_id text,"
        " provider_account_id text, side text,"
        " claim_code text, claim_sha256 text, claimed json, reserved json, expires_at_us bigint,"
        " at_us bigint",
        """INSERT INTO own.dispute (dispute_id, lease_id, volume_id, account_id,
            provider_account_id, side, claim_code, claim_sha256, claimed, reserved, answers,
            opened_at_us, expires_at_us, position)
        SELECT dispute_id, lease_id, volume_id, account_id, provider_account_id, side, claim_code,
            claim_sha256, (claimed->>'units')::bigint, (reserved->>'units')::bigint, 0, at_us,
            expires_at_us, position
        FROM facts""",
    ),
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text, lease_id text, lines json",
        """INSERT INTO own.disputed_line (position, dispute_id, lease_id, charge, claimed, gpu_us)
        SELECT (l->>'position')::bigint, dispute_id, lease_id,
            (l->'charge'->>'units')::bigint, (l->'claimed'->>'units')::bigint,
            (l->>'gpu_us')::bigint
        FROM facts, json_array_elements(lines) l""",
    ),
    Rule(
        ("dispute.answered.v1",),
        "dispute_id text",
        """UPDATE own.dispute d SET answers = d.answers + f.answers
        FROM (SELECT dispute_id, count(*) AS answers FROM facts GROUP BY 1) f
        WHERE d.dispute_id = f.dispute_id""",
    ),
    Rule(
        ("dispute.resolved.v1",),
        "dispute_id text, outcome text, upheld_ppm int, upheld json, unfounded boolean,"
        " at_us bigint",
        """UPDATE own.dispute d SET outcome = f.outcome, upheld_ppm = f.upheld_ppm,
            upheld = (f.upheld->>'units')::bigint, unfounded = f.unfounded,
            resolved_at_us = f.at_us, resolved_position = f.position
        FROM facts f WHERE d.dispute_id = f.dispute_id""",
    ),
    Rule(
        ("dispute.resolved.v1",),
        "lines json",
        """UPDATE own.disputed_line d SET upheld = (l->'upheld'->>'units')::bigint,
            adjustment_id = l->>'adjustment_id'
        FROM facts f, json_array_elements(f.lines) l
        WHERE d.position = (l->>'position')::bigint""",
    ),
    Rule(
        ("adjustment.booked.v1",),
        "adjustment_id text, corrects_position bigint, lease_id text, volume_id text,"
        " account_id text, provider_account_id text, reason text, cause text, returned bigint,"
        ' recovered bigint, owed bigint, lines jsonb, late json, "by" text, at_us bigint',
        """INSERT INTO own.adjustment
        SELECT position, adjustment_id, corrects_position, lease_id, volume_id, account_id,
            provider_account_id, reason, cause, returned, recovered, owed, lines,
            (late->>'gpu_us_new')::bigint, (late->'charge_new'->>'units')::bigint, "by", at_us
        FROM facts""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, sla_class text",
        """INSERT INTO own.sla (lease_id, sla_class, position, opened, credited, is_done)
        SELECT lease_id, sla_class, position, false, 0, false FROM facts
        WHERE sla_class IS NOT NULL""",
    ),
    Rule(
        ("lease.opened.v1",),
        "lease_id text",
        "UPDATE own.sla s SET opened = true FROM facts f WHERE s.lease_id = f.lease_id",
    ),
    Rule(
        ("lease.settled.v1",),
        "lease_id text",
        """UPDATE own.sla s SET settled_position = f.position FROM facts f
        WHERE s.lease_id = f.lease_id""",
    ),
    Rule(
        ("sla.assessed.v1",),
        "lease_id text, availability_ppm int, credit json",
        """UPDATE own.sla s SET availability_ppm = f.availability_ppm,
            credit = (f.credit->>'units')::bigint, is_done = (f.credit->>'units') = '0'
        FROM facts f WHERE s.lease_id = f.lease_id""",
    ),
    Rule(
        ("sla.credited.v1",),
        "lease_id text, credited_new json, is_last boolean",
        """UPDATE own.sla s SET credited = s.credited + f.units, is_done = f.is_done
        FROM (
            SELECT lease_id, sum((credited_new->>'units')::bigint) AS units,
                bool_or(is_last) AS is_done
            FROM facts GROUP BY lease_id) f
        WHERE s.lease_id = f.lease_id""",
    ),
)

DISPUTES = Projection("disputes", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class DisputeRow:
    """Micro-credits. `outcome` None: nobody has ruled yet."""

    dispute_id: str
    lease_id: str | None
    volume_id: str | None
    account_id: str
    provider_account_id: str
    side: str
    claim_code: str
    claim_sha256: str | None
    claimed: int
    reserved: int
    answers: int
    outcome: str | None
    upheld_ppm: int | None
    upheld: int | None
    unfounded: bool | None
    opened_at_us: int
    expires_at_us: int
    resolved_at_us: int | None
    resolved_position: int | None
    position: int

    @property
    def state(self) -> str:
        """`opened`, `answered`, or the outcome."""
        return self.outcome or ("answered" if self.answers else "opened")


@dataclass(frozen=True, slots=True)
class DisputedLineRow:
    """A contested charge; `upheld` None while nobody has ruled."""

    position: int
    dispute_id: str
    lease_id: str | None
    charge: int
    claimed: int
    gpu_us: int
    upheld: int | None
    adjustment_id: str | None


@dataclass(frozen=True, slots=True)
class AdjustmentRow:
    """`lines`: account and units, debits above zero. `charge_new`: of late usage. `owed`: below
    zero, what it pays of what was owed.
    """

    position: int
    adjustment_id: str
    corrects_position: int
    lease_id: str | None
    volume_id: str | None
    account_id: str
    provider_account_id: str
    reason: str
    cause: str
    returned: int
    recovered: int
    owed: int
    lines: list[dict[str, Any]]
    gpu_us_new: int | None
    charge_new: int | None
    by: str
    at_us: int


_PARTY = """(%(account)s::text IS NULL OR account_id = %(account)s
    OR provider_account_id = %(account)s)"""


def read_dispute(
    connection: Connection, dispute_id: str, *, account_id: str | None = None
) -> DisputeRow | None:
    """One dispute; with `account_id`, only if it is a party of it."""
    sql = f"SELECT * FROM proj_disputes.dispute WHERE dispute_id = %(id)s AND {_PARTY}"
    return read.one(connection, DisputeRow, sql, id=dispute_id, account=account_id)


def read_disputes(
    connection: Connection,
    *,
    account_id: str | None = None,
    lease_id: str | None = None,
    volume_id: str | None = None,
    is_open: bool | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[DisputeRow]:
    """In order of opening; `after` is the last position of the page before."""
    sql = f"""SELECT * FROM proj_disputes.dispute WHERE position > %(after)s AND {_PARTY}
        AND (%(lease)s::text IS NULL OR lease_id = %(lease)s)
        AND (%(volume)s::text IS NULL OR volume_id = %(volume)s)
        AND (%(open)s::boolean IS NULL OR (outcome IS NULL) = %(open)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        DisputeRow,
        sql,
        way,
        account=account_id,
        lease=lease_id,
        volume=volume_id,
        open=is_open,
        after=after,
        limit=limit,
    )


def read_expired(connection: Connection, now_us: int, limit: int = 100) -> list[str]:
    """Disputes that nobody ruled in time, the oldest first."""
    sql = """SELECT dispute_id FROM proj_disputes.dispute
        WHERE outcome IS NULL AND expires_at_us <= %(now)s ORDER BY expires_at_us, dispute_id
        LIMIT %(limit)s"""
    rows = connection.execute(sql.encode(), {"now": now_us, "limit": limit})
    return [str(row[0]) for row in rows]


def read_sla_due(connection: Connection, limit: int = 100) -> list[str]:
    """Settled leases that were promised availability and are not done with, the oldest first."""
    sql = """SELECT lease_id FROM proj_disputes.sla
        WHERE opened AND NOT is_done AND settled_position IS NOT NULL
        ORDER BY settled_position LIMIT %(limit)s"""
    rows = connection.execute(sql.encode(), {"limit": limit})
    return [str(row[0]) for row in rows]


def read_disputed_lines(
    connection: Connection, *, lease_id: str | None = None, dispute_id: str | None = None
) -> list[DisputedLineRow]:
    """Contested charges of a lease or of a dispute, by position: what a statement marks."""
    sql = """SELECT * FROM proj_disputes.disputed_line
        WHERE (%(lease)s::text IS NULL OR lease_id = %(lease)s)
        AND (%(dispute)s::text IS NULL OR dispute_id = %(dispute)s) ORDER BY position"""
    return read.many(connection, DisputedLineRow, sql, lease=lease_id, dispute=dispute_id)


def read_adjustment(
    connection: Connection, adjustment_id: str, *, account_id: str | None = None
) -> AdjustmentRow | None:
    """One adjustment; with `account_id`, only if it is a party of it."""
    sql = f"SELECT * FROM proj_disputes.adjustment WHERE adjustment_id = %(id)s AND {_PARTY}"
    return read.one(connection, AdjustmentRow, sql, id=adjustment_id, account=account_id)


def read_adjustments(
    connection: Connection,
    *,
    account_id: str | None = None,
    lease_id: str | None = None,
    volume_id: str | None = None,
    corrects_position: int | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[AdjustmentRow]:
    """In order of booking; `after` is the last position of the page before."""
    sql = f"""SELECT * FROM proj_disputes.adjustment WHERE position > %(after)s AND {_PARTY}
        AND (%(lease)s::text IS NULL OR lease_id = %(lease)s)
        AND (%(volume)s::text IS NULL OR volume_id = %(volume)s)
        AND (%(corrects)s::bigint IS NULL OR corrects_position = %(corrects)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        AdjustmentRow,
        sql,
        way,
        account=account_id,
        lease=lease_id,
        volume=volume_id,
        corrects=corrects_position,
        after=after,
        limit=limit,
    )


def read_owed(connection: Connection, limit: int = 100) -> list[int]:
    """Charges for whose corrections the network still owes something, the oldest first."""
    sql = """SELECT corrects_position FROM proj_disputes.adjustment WHERE owed <> 0
        GROUP BY corrects_position HAVING sum(owed) > 0 ORDER BY corrects_position
        LIMIT %(limit)s"""
    rows = connection.execute(sql.encode(), {"limit": limit})
    return [int(row[0]) for row in rows]
