"""What has the renter of each lease signed for, beside what was metered?

matched + unconfirmed + contested == metered                  (domain/countersign.py `compare`)
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.countersign import Compared, compare
from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.signature (
        lease_id text COLLATE "C" NOT NULL, position bigint NOT NULL, account_id text NOT NULL,
        key_id text NOT NULL, gpu_us bigint NOT NULL, until_us bigint NOT NULL,
        signature text NOT NULL, at_us bigint NOT NULL);
    COMMENT ON TABLE own.signature IS 'Cumulative: the last one stands for all before it';
    CREATE TABLE own.signer (
        account_id text COLLATE "C", key_id text COLLATE "C", public_key text NOT NULL,
        added_at_us bigint NOT NULL, revoked_at_us bigint, position bigint NOT NULL,
        PRIMARY KEY (account_id, key_id));
"""

_INDEXES = "CREATE UNIQUE INDEX signature_key ON own.signature (lease_id, position);"

_RULES = (
    Rule(
        ("account.signing_key_added.v1",),
        "account_id text, key_id text, public_key text, at_us bigint",
        """INSERT INTO own.signer
        SELECT account_id, key_id, public_key, at_us, NULL, position FROM facts""",
    ),
    Rule(
        ("account.signing_key_revoked.v1",),
        "account_id text, key_id text, at_us bigint",
        """UPDATE own.signer s SET revoked_at_us = f.at_us FROM facts f
        WHERE s.account_id = f.account_id AND s.key_id = f.key_id""",
    ),
    Rule(
        ("lease.usage_countersigned.v1",),
        "lease_id text, account_id text, key_id text, gpu_us bigint, until_us bigint,"
        " signature text, at_us bigint",
        """INSERT INTO own.signature
        SELECT lease_id, position, account_id, key_id, gpu_us, until_us, signature, at_us
        FROM facts""",
    ),
)

COUNTERSIGNED = Projection("countersigned", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Signature:
    """One countersignature; `signature` is over `message_for` its lease, usage and moment."""

    lease_id: str
    position: int
    account_id: str
    key_id: str
    gpu_us: int
    until_us: int
    signature: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Signer:
    """A key of an account; it signs until it is revoked."""

    account_id: str
    key_id: str
    public_key: str
    added_at_us: int
    revoked_at_us: int | None
    position: int


@dataclass(frozen=True, slots=True)
class Halves:
    """Both halves of one lease's stick; `until_us` None: nothing is signed."""

    lease_id: str
    gpu_us: int
    until_us: int | None
    compared: Compared


def read_signers(connection: Connection, account_id: str) -> list[Signer]:
    """Every key of an account, oldest first."""
    sql = """SELECT * FROM proj_countersigned.signer WHERE account_id = %(account)s
        ORDER BY position"""
    return read.many(connection, Signer, sql, account=account_id)


def read_last_signatures(connection: Connection, lease_id: str, limit: int) -> list[Signature]:
    """The last countersignatures of a lease, newest last."""
    sql = """SELECT * FROM (
            SELECT * FROM proj_countersigned.signature WHERE lease_id = %(lease)s
            ORDER BY position DESC LIMIT %(limit)s) s ORDER BY position"""
    return read.many(connection, Signature, sql, lease=lease_id, limit=limit)


_HALVES = """
    SELECT l.lease_id, coalesce(a.gpu_us, 0)::bigint, coalesce(a.until_gpu_us, 0)::bigint,
        s.gpu_us, s.until_us
    FROM unnest(%(leases)s::text[]) l(lease_id)
    LEFT JOIN LATERAL (
        SELECT gpu_us, until_us FROM proj_countersigned.signature
        WHERE lease_id = l.lease_id ORDER BY position DESC LIMIT 1) s ON true
    LEFT JOIN LATERAL (
        SELECT sum(gpu_us) AS gpu_us,
            sum(gpu_us) FILTER (WHERE until_us <= s.until_us) AS until_gpu_us
        FROM proj_usage.accrual WHERE lease_id = l.lease_id) a ON true
"""


def read_halves(connection: Connection, lease_ids: list[str]) -> dict[str, Halves]:
    """Both halves of these leases, by lease; the views `usage` and `countersigned` are read."""
    rows = connection.execute(_HALVES, {"leases": lease_ids}).fetchall()
    return {
        lease_id: Halves(lease_id, metered, until_us, compare(metered, before, signed))
        for lease_id, metered, before, signed, until_us in rows
    }
