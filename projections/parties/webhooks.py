"""Which endpoints want to be told of what, and from which fact on?"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.endpoint (
        endpoint_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        url text NOT NULL, types text[] NOT NULL, secret_id text NOT NULL,
        previous_id text NOT NULL, overlap_until_us bigint NOT NULL, enabled boolean NOT NULL,
        disabled_reason text, at_us bigint NOT NULL,
        position bigint NOT NULL) WITH (fillfactor = 70);
"""

_INDEXES = """
    CREATE INDEX ON own.endpoint (account_id, position);
    CREATE INDEX ON own.endpoint (position) WHERE enabled;
"""

_RULES = (
    Rule(
        ("webhook.added.v1",),
        "endpoint_id text, account_id text, url text, types text[], secret_id text, at_us bigint",
        """INSERT INTO own.endpoint
        SELECT endpoint_id, account_id, url, types, secret_id, '', 0, true, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("webhook.secret_rotated.v1",),
        "endpoint_id text, secret_id text, previous_id text, overlap_until_us bigint",
        """UPDATE own.endpoint e
        SET secret_id = f.secret_id, previous_id = f.previous_id,
            overlap_until_us = f.overlap_until_us
        FROM (SELECT DISTINCT ON (endpoint_id) * FROM facts
            ORDER BY endpoint_id, position DESC) f
        WHERE e.endpoint_id = f.endpoint_id""",
    ),
    Rule(
        ("webhook.disabled.v1", "webhook.enabled.v1"),
        "endpoint_id text, reason text",
        """UPDATE own.endpoint e
        SET enabled = f.topic = 'webhook.enabled.v1', disabled_reason = f.reason
        FROM (SELECT DISTINCT ON (endpoint_id) * FROM facts
            ORDER BY endpoint_id, position DESC) f
        WHERE e.endpoint_id = f.endpoint_id""",
    ),
)

WEBHOOKS = Projection("webhooks", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`types`: prefixes of stored names, empty for all. `position`: of the fact that added it."""

    endpoint_id: str
    account_id: str
    url: str
    types: list[str]
    secret_id: str
    previous_id: str
    overlap_until_us: int
    enabled: bool
    disabled_reason: str | None
    at_us: int
    position: int


def read_endpoints(
    connection: Connection,
    *,
    account_id: str | None = None,
    endpoint_id: str | None = None,
    enabled: bool = False,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Endpoint]:
    """In the order in which they were added; `enabled`: only those that are."""
    sql = """SELECT * FROM proj_webhooks.endpoint
        WHERE position > %(after)s AND (%(account)s::text IS NULL OR account_id = %(account)s)
            AND (%(id)s::text IS NULL OR endpoint_id = %(id)s) AND (enabled OR NOT %(enabled)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Endpoint,
        sql,
        way,
        account=account_id,
        id=endpoint_id,
        enabled=enabled,
        after=after,
        limit=limit,
    )


def count_enabled(connection: Connection, account_id: str, *, but: str) -> int:
    """How many endpoints of an account are told, but for one."""
    sql = """SELECT count(*) FROM proj_webhooks.endpoint
        WHERE account_id = %(account)s AND enabled AND endpoint_id <> %(but)s"""
    return read.number(connection, sql, account=account_id, but=but)


_DUE = """
    SELECT m.position FROM proj_audit_index.mention m
    JOIN proj_audit_index.fact t ON t.position = m.position
    WHERE m.id = %(account)s AND m.position > %(after)s AND t.topic NOT LIKE 'webhook.%%'
        AND (cardinality(%(types)s::text[]) = 0 OR EXISTS (
            SELECT 1 FROM unnest(%(types)s::text[]) p WHERE starts_with(t.topic, p)))
    ORDER BY m.position LIMIT %(limit)s
"""


def read_due(connection: Connection, endpoint: Endpoint, after: int, limit: int) -> list[int]:
    """Positions of the next facts of an endpoint's account and types, in order. `audit_index`."""
    rows = connection.execute(
        _DUE,
        {"account": endpoint.account_id, "types": endpoint.types, "after": after, "limit": limit},
    )
    return [int(row[0]) for row in rows]


def read_waiting(connection: Connection) -> tuple[int, int | None]:
    """Deliveries that enabled endpoints wait for, and when the first of them was first tried."""
    sql = b"""SELECT count(*), min(d.first_at_us) FROM public.webhook_delivery d
        JOIN proj_webhooks.endpoint e USING (endpoint_id)
        WHERE d.outcome = 'waiting' AND e.enabled"""
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0]), row[1]
