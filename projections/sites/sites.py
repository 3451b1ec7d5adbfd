"""What does a region hold beside nodes? Stores of data, and reserved ports with their holder."""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.datastore (
        datastore_id text COLLATE "C" PRIMARY KEY, region_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, name text NOT NULL, kind text NOT NULL,
        address text NOT NULL, root_path text NOT NULL, has_login boolean NOT NULL,
        removed_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.reservation (
        reservation_id text COLLATE "C" PRIMARY KEY, region_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, name text NOT NULL, kind text NOT NULL,
        host_name text NOT NULL, port int NOT NULL, lease_id text, node_id text,
        removed_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL);
"""
_INDEXES = """
    CREATE INDEX ON own.datastore (account_id, position);
    CREATE INDEX ON own.datastore (region_id);
    CREATE INDEX ON own.reservation (account_id, position);
"""
_RULES = (
    Rule(
        ("datastore.added.v1",),
        "datastore_id text, region_id text, account_id text, name text, kind text, address text,"
        " root_path text, has_login boolean, at_us bigint",
        """INSERT INTO own.datastore
        SELECT datastore_id, region_id, account_id, name, kind, address, root_path, has_login,
            NULL, at_us, position FROM facts""",
    ),
    Rule(
        ("datastore.removed.v1",),
        "datastore_id text, at_us bigint",
        """UPDATE own.datastore d SET removed_at_us = f.at_us FROM facts f
        WHERE d.datastore_id = f.datastore_id""",
    ),
    Rule(
        ("reservation.added.v1",),
        "reservation_id text, region_id text, account_id text, name text, kind text,"
        " host_name text, port int, at_us bigint",
        """INSERT INTO own.reservation
        SELECT reservation_id, region_id, account_id, name, kind, host_name, port, NULL, NULL,
            NULL, at_us, position FROM facts""",
    ),
    Rule(
        ("reservation.held.v1", "reservation.released.v1"),
        "reservation_id text, lease_id text, node_id text",
        """UPDATE own.reservation r SET lease_id = f.lease_id, node_id = f.node_id FROM (
            SELECT DISTINCT ON (reservation_id) reservation_id, node_id,
                CASE topic WHEN 'reservation.held.v1' THEN lease_id END AS lease_id
            FROM facts ORDER BY reservation_id, position DESC) f
        WHERE r.reservation_id = f.reservation_id""",
    ),
    Rule(
        ("reservation.removed.v1",),
        "reservation_id text, at_us bigint",
        """UPDATE own.reservation r SET removed_at_us = f.at_us FROM facts f
        WHERE r.reservation_id = f.reservation_id""",
    ),
)

SITES = Projection("sites", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Datastore:
    datastore_id: str
    region_id: str
    account_id: str
    name: str
    kind: str
    address: str
    root_path: str
    has_login: bool
    removed_at_us: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """`lease_id` and `node_id`: who holds it now."""

    reservation_id: str
    region_id: str
    account_id: str
    name: str
    kind: str
    host_name: str
    port: int
    lease_id: str | None
    node_id: str | None
    removed_at_us: int | None
    at_us: int
    position: int


_FILTER = """WHERE removed_at_us IS NULL AND position > %(after)s
    AND (%(account)s::text IS NULL OR account_id = %(account)s)
    AND (%(region)s::text IS NULL OR region_id = %(region)s)
    ORDER BY position LIMIT %(limit)s"""


def read_datastores(
    connection: Connection,
    *,
    account_id: str | None = None,
    region_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Datastore]:
    """Those that are there, in the order in which they were added."""
    sql = f"SELECT * FROM proj_sites.datastore {_FILTER}"
    return read.listed(
        connection,
        Datastore,
        sql,
        way,
        account=account_id,
        region=region_id,
        after=after,
        limit=limit,
    )


def read_reservations(
    connection: Connection,
    *,
    account_id: str | None = None,
    region_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Reservation]:
    """Those that are there, in the order in which they were added."""
    sql = f"SELECT * FROM proj_sites.reservation {_FILTER}"
    return read.listed(
        connection,
        Reservation,
        sql,
        way,
        account=account_id,
        region=region_id,
        after=after,
        limit=limit,
    )
