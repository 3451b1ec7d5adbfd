"""Who did what, by position? Which facts mention a party or a thing, of which kind, and when.

    mention == { (id, position) : the fact at position names id }

An index, not a copy: the facts themselves are read from the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.runner import EVERY, Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.fact (position bigint NOT NULL, topic text COLLATE "C" NOT NULL);
    CREATE TABLE own.mention (id text COLLATE "C" NOT NULL, position bigint NOT NULL);
"""

_INDEXES = """
    CREATE UNIQUE INDEX fact_key ON own.fact (topic, position);
    CREATE UNIQUE INDEX mention_key ON own.mention (id, position);
"""

NAMED = (
    "account_id",
    "provider_account_id",
    "client_id",
    "provider_id",
    "node_id",
    "lease_id",
    "job_id",
    "offer_id",
    "region_id",
    "device_id",
    "member_id",
    "deposit_id",
)
"""Fields of a body whose value is the id of somebody or something; the first three may be equal."""
LISTED = ("epoch.rewards_credited.v1", "epoch.rewards_matured.v1", "epoch.rewards_forfeited.v1")
"""Facts that name accounts in a list, `rewards`."""

_RULES = (
    Rule(
        (),
        "",
        """INSERT INTO own.fact SELECT notification_id, topic FROM public.market_events
        WHERE notification_id > %(first)s AND notification_id <= %(last)s""",
    ),
    Rule(
        (EVERY,),
        ", ".join(f"{name} text" for name in NAMED),
        f"""INSERT INTO own.mention
        SELECT id, position FROM (
            SELECT f.position, unnest(ARRAY[f.account_id,
                nullif(f.provider_account_id, f.account_id),
                nullif(nullif(f.client_id, f.account_id), f.provider_account_id),
                {", ".join(f"f.{name}" for name in NAMED[3:])}]) AS id
            FROM facts f OFFSET 0
        ) n WHERE id <> ''""",
    ),
    Rule(
        LISTED,
        "rewards json",
        """INSERT INTO own.mention
        SELECT DISTINCT reward->>'account_id', position
        FROM facts, json_array_elements(rewards) reward""",
    ),
)

AUDIT_INDEX = Projection("audit_index", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Event:
    """One fact as stored; `body` is the parsed JSON, blind included."""

    position: int
    topic: str
    recorded_us: int
    version: int
    leaf: bytes
    body: dict[str, Any]


_EVENT = """
    SELECT e.notification_id AS position, e.topic, e.recorded_us,
        e.originator_version AS version, e.leaf, convert_from(e.state, 'UTF8')::json AS body
    FROM public.market_events e
"""


def read_events(
    connection: Connection,
    *,
    party: str | None = None,
    topic: str | None = None,
    from_us: int | None = None,
    to_us: int | None = None,
    after: int = 0,
    until_position: int | None = None,
    newest: bool = False,
    limit: int = 50,
) -> list[Event]:
    """Facts in order or the newest first, of a party (any id it mentions), a type and a recorded
    time, half-open: above the position `after`, and none above `until_position`.
    """
    way = "DESC" if newest else "ASC"
    first = after
    if from_us is not None:
        first = max(
            first, read.number(connection, "SELECT public.market_position_at(%(t)s)", t=from_us - 1)
        )
    bounds = ["(SELECT position FROM proj_audit_index.position WHERE source = 'market')"]
    if to_us is not None:
        bounds.append("public.market_position_at(%(to)s - 1)")
    if until_position is not None:
        bounds.append("%(until)s")
    source, position = "public.market_events s", "s.notification_id"
    if party is not None:
        source, position = "proj_audit_index.mention s", "s.position"
        source += " JOIN proj_audit_index.fact t ON t.position = s.position" if topic else ""
    elif topic is not None:
        source, position = "proj_audit_index.fact t", "t.position"
    where = ["s.id = %(party)s"] * (party is not None) + ["t.topic = %(topic)s"] * (
        topic is not None
    )
    where += [f"{position} > %(first)s", f"{position} <= least({', '.join(bounds)})"]
    sql = f"""{_EVENT} WHERE e.notification_id = ANY(ARRAY(
            SELECT {position} FROM {source} WHERE {" AND ".join(where)}
            ORDER BY {position} {way} LIMIT %(limit)s))
        ORDER BY e.notification_id {way}"""
    return read.many(
        connection,
        Event,
        sql,
        party=party,
        topic=topic,
        first=first,
        to=to_us,
        until=until_position,
        limit=limit,
    )


def read_event(connection: Connection, position: int) -> Event | None:
    """The fact at a position."""
    return read.one(connection, Event, _EVENT + "WHERE e.notification_id = %(p)s", p=position)
