"""What changed rewards after their seal? Corrections, asked for and accepted, and forfeits. And
where are the prices that seals and burns tell of?

delta of an accepted adjustment == adjusted - slashed;   a slash has no `adjusted`
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.correction (
        correction_id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, epoch int NOT NULL,
        account_id text COLLATE "C" NOT NULL, delta bigint NOT NULL, reason text NOT NULL,
        evidence_position bigint, proposed_by text NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL, accepted_by text, accepted_at_us bigint, slashed bigint,
        adjusted bigint, adjusted_epoch int,
        CONSTRAINT all_of_it CHECK (kind = 'slash' OR slashed IS NULL OR adjusted - slashed = delta)
    ) WITH (fillfactor = 70);
    CREATE TABLE own.forfeited (
        position bigint, account_id text COLLATE "C", epoch int NOT NULL,
        through_epoch int NOT NULL, units bigint NOT NULL, PRIMARY KEY (position, account_id));
    CREATE TABLE own.snapshot (number int PRIMARY KEY, position bigint NOT NULL);
    COMMENT ON TABLE own.snapshot IS 'Where the snapshots of the price are';
    COMMENT ON TABLE own.forfeited IS 'Matured by through_epoch, back in the pool in epoch';
"""

_INDEXES = """
    CREATE UNIQUE INDEX ON own.correction (position);
    CREATE INDEX ON own.forfeited (account_id);
"""

_RULES = (
    Rule(
        ("reward_correction.proposed.v1",),
        "correction_id text, kind text, epoch int, account_id text, delta text, reason text,"
        ' evidence_position bigint, "by" text, at_us bigint',
        """INSERT INTO own.correction
        SELECT correction_id, kind, epoch, account_id, delta::bigint, reason, evidence_position,
            "by", at_us, position, NULL, NULL, NULL, NULL, NULL
        FROM facts""",
    ),
    Rule(
        ("reward_correction.accepted.v1",),
        'correction_id text, slashed text, adjusted text, adjusted_epoch int, "by" text,'
        " at_us bigint",
        """UPDATE own.correction c SET accepted_by = f."by", accepted_at_us = f.at_us,
            slashed = f.slashed::bigint, adjusted = f.adjusted::bigint,
            adjusted_epoch = f.adjusted_epoch
        FROM facts f WHERE c.correction_id = f.correction_id""",
    ),
    Rule(
        ("epoch.rewards_forfeited.v1",),
        "epoch int, through_epoch int, rewards json",
        """INSERT INTO own.forfeited
        SELECT position, reward->>'account_id', epoch, through_epoch,
            (reward->'amount'->>'units')::bigint
        FROM facts, json_array_elements(rewards) reward""",
    ),
    Rule(
        ("oracle.snapshot_taken.v1",),
        "number int",
        "INSERT INTO own.snapshot SELECT number, position FROM facts",
    ),
)

REWARDS = Projection("rewards", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Correction:
    """Token units; the last five are there once it is accepted."""

    correction_id: str
    kind: str
    epoch: int
    account_id: str
    delta: int
    reason: str
    evidence_position: int | None
    proposed_by: str
    at_us: int
    position: int
    accepted_by: str | None
    accepted_at_us: int | None
    slashed: int | None
    adjusted: int | None
    adjusted_epoch: int | None


@dataclass(frozen=True, slots=True)
class Forfeitable:
    """What matured for an account without a wallet, less what it forfeited before."""

    account_id: str
    units: int


@dataclass(frozen=True, slots=True)
class SnapshotAt:
    """A snapshot of the price by its number, and the position of its fact."""

    number: int
    position: int


_FORFEITABLE = """
    SELECT m.account_id, (m.units - coalesce(f.units, 0))::bigint AS units
    FROM (
        SELECT account_id, sum(matured)::bigint AS units FROM proj_epochs.reward
        WHERE epoch <= %(through)s AND account_id <> %(treasury)s GROUP BY 1) m
    LEFT JOIN LATERAL (
        SELECT sum(units) AS units FROM proj_rewards.forfeited f
        WHERE f.account_id = m.account_id) f ON true
    WHERE m.units > coalesce(f.units, 0)
        AND NOT EXISTS (SELECT FROM proj_access.wallet w WHERE w.account_id = m.account_id)
    ORDER BY m.account_id LIMIT %(limit)s
"""


def read_corrections(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Correction]:
    """In order of their proposal; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_rewards.correction WHERE position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Correction, sql, way, after=after, limit=limit)


def read_correction(connection: Connection, correction_id: str) -> Correction | None:
    """One by its id."""
    sql = "SELECT * FROM proj_rewards.correction WHERE correction_id = %(id)s"
    return read.one(connection, Correction, sql, id=correction_id)


def read_snapshots(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[SnapshotAt]:
    """In order; `after` is the last number of the page before."""
    sql = """SELECT * FROM proj_rewards.snapshot WHERE number > %(after)s
        ORDER BY number LIMIT %(limit)s"""
    return read.listed(connection, SnapshotAt, sql, way, after=after, limit=limit)


def read_forfeitable(
    connection: Connection, through_epoch: int, *, treasury: str, limit: int
) -> list[Forfeitable]:
    """What of epochs up to this one has matured for accounts that never linked a wallet, by id.

    Also reads the tables of epochs and access, which must be at the same place.
    """
    return read.many(
        connection, Forfeitable, _FORFEITABLE, through=through_epoch, treasury=treasury, limit=limit
    )
