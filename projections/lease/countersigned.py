"""What has the renter of each lease signed for, beside what was metered?

matched + unconfirmed + contested == metered                  (domain/lease/countersign.py
`compare`)
"""

from __future__ import annotations

from domain.lease.countersign import Compared, compare
from domain.record import dataclass
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
    SELECT coalesce(sum(a.gpu_us), 0)::bigint,
        coalesce(sum(a.gpu_us) FILTER (WHERE a.until_us <= s.until_us), 0)::bigint,
        s.gpu_us, s.until_us
    FROM (SELECT 1) one LEFT JOIN (
        SELECT gpu_us, until_us FROM proj_countersigned.signature
        WHERE lease_id = %(lease)s ORDER BY position DESC LIMIT 1) s ON true
    LEFT JOIN proj_usage.accrual a ON a.lease_id = %(lease)s
    GROUP BY s.gpu_us, s.until_us
"""


def read_halves(connection: Connection, lease_id: str) -> Halves:
    """Both halves of a lease; the views `usage` and `countersigned` are read."""
    row = connection.execute(_HALVES, {"lease": lease_id}).fetchone()
    assert row is not None
    metered, before, signed, until_us = row
    return Halves(metered, until_us, compare(metered, before, signed))
