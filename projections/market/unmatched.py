"""Which requests found no node, and what was each demand left of the fleet? (row R-5)"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.request (
        position bigint PRIMARY KEY, account_id text COLLATE "C" NOT NULL, code text NOT NULL,
        need_sha256 text COLLATE "C" NOT NULL, times int NOT NULL CHECK (times > 0),
        at_us bigint NOT NULL, told text NOT NULL);
    COMMENT ON COLUMN own.request.told IS 'The whole fact, as it is recorded';
"""
_INDEXES = """
    CREATE INDEX ON own.request (account_id, position);
    CREATE INDEX ON own.request (at_us);
"""
_RULES = (
    Rule(
        (),  # read here: the whole body is kept
        "",
        """INSERT INTO own.request
        SELECT e.notification_id, b.account_id, b.code, b.need_sha256, b.times, b.at_us,
            convert_from(e.state, 'UTF8')
        FROM public.market_events e
        CROSS JOIN LATERAL json_to_record(convert_from(e.state, 'UTF8')::json)
            AS b(account_id text, code text, need_sha256 text, times int, at_us bigint)
        WHERE e.topic = 'request.unmatched.v1' AND e.notification_id > %(first)s
            AND e.notification_id <= %(last)s""",
    ),
)
UNMATCHED = Projection("unmatched", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class UnmatchedRequest:
    position: int
    account_id: str
    code: str
    need_sha256: str
    times: int
    at_us: int
    told: str


def read_unmatched(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int,
    way: Way = OLDEST,
    limit: int,
) -> list[UnmatchedRequest]:
    """In order of recording, of one account or of all."""
    sql = """SELECT position, account_id, code, need_sha256, times, at_us, told
        FROM proj_unmatched.request
        WHERE (%(account)s::text IS NULL OR account_id = %(account)s) AND position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection, UnmatchedRequest, sql, way, account=account_id, after=after, limit=limit
    )


@dataclass(frozen=True, slots=True)
class RefusedDemand:
    """`gpus`: of each account the largest request alone, so that asking often shows no more."""

    region_id: str
    gpus: int


def read_refused(connection: Connection, since_us: int) -> dict[str, int]:
    """GPUs that no node gave since then, by the region that was asked for; "": any. Row K-11."""
    sql = """SELECT region_id, sum(gpus)::bigint AS gpus
        FROM (SELECT r.account_id, coalesce(p.region, '') AS region_id,
                max((r.body->>'gpu_count')::bigint * (r.body->>'members')::bigint) AS gpus
            FROM (SELECT account_id, told::json AS body FROM proj_unmatched.request
                WHERE at_us >= %(since)s) r
            LEFT JOIN LATERAL json_array_elements_text(CASE
                WHEN json_typeof(r.body->'constraints'->'regions') = 'array'
                    THEN r.body->'constraints'->'regions'
                WHEN r.body->'constraints'->>'pinned_region' IS NOT NULL
                    THEN json_build_array(r.body->'constraints'->>'pinned_region') END
                ) p(region) ON true
            GROUP BY 1, 2) each_account
        GROUP BY 1"""
    rows = read.many(connection, RefusedDemand, sql, since=since_us)
    return {row.region_id: row.gpus for row in rows}
