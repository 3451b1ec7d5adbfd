"""What may be bid for, who bids what, and which standing bids hold devices? And the price lists.

Auctions and bids stand in the order in which they came; a bid's deposit is held, returned or
forfeited. A standing bid is its lease's: `waiting`, `holding`, `paused` or `over`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.request (
        lease_id text COLLATE "C" PRIMARY KEY, job_id text NOT NULL,
        account_id text COLLATE "C" NOT NULL,
        pricing text NOT NULL, months int, gpu_count int NOT NULL, share_ppm int NOT NULL,
        mem_ppm int NOT NULL, models text[] NOT NULL, cap_units bigint NOT NULL, term_us bigint,
        constraints jsonb, sla_class text, at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.auction (
        lease_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        pricing text NOT NULL, deposit_units bigint NOT NULL, bids_max int NOT NULL,
        pick text NOT NULL, closes_at_us bigint NOT NULL, state text NOT NULL,
        winner_bid_id text, price_units bigint, ended_at_us bigint, at_us bigint NOT NULL,
        position bigint NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE own.bid (
        bid_id text COLLATE "C" NOT NULL, lease_id text COLLATE "C" NOT NULL, number int NOT NULL,
        account_id text COLLATE "C" NOT NULL, provider_id text NOT NULL, offer_id text NOT NULL,
        node_id text COLLATE "C" NOT NULL, device_ids text[] NOT NULL, price_units bigint NOT NULL,
        deposit_units bigint NOT NULL, expires_at_us bigint NOT NULL, state text NOT NULL,
        deposit text NOT NULL, ended_at_us bigint, at_us bigint NOT NULL,
        position bigint PRIMARY KEY) WITH (fillfactor = 70);
    CREATE TABLE own.standing (
        lease_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        price_units bigint NOT NULL, state text NOT NULL, reason text,
        node_id text COLLATE "C", offer_id text, device_ids text[], gpu_class text,
        since_us bigint NOT NULL, at_us bigint NOT NULL, position bigint NOT NULL
    ) WITH (fillfactor = 50);
    CREATE TABLE own.price_list (
        offer_id text COLLATE "C" PRIMARY KEY, provider_id text NOT NULL, floor_units bigint,
        reserved jsonb NOT NULL, at_us bigint NOT NULL, position bigint NOT NULL);
"""

_INDEXES = """
    CREATE INDEX ON own.auction (position) WHERE state = 'open';
    CREATE INDEX ON own.auction (closes_at_us) WHERE state = 'open';
    CREATE INDEX ON own.bid (lease_id, number);
    CREATE INDEX ON own.bid (account_id, position);
    CREATE INDEX ON own.bid (expires_at_us) WHERE state = 'standing';
    CREATE INDEX ON own.standing (node_id) WHERE state = 'holding';
    CREATE INDEX ON own.standing (state, price_units) WHERE state IN ('waiting', 'paused');
"""

_LATEST = """(SELECT DISTINCT ON (lease_id) * FROM facts ORDER BY lease_id, position DESC)"""
_UNITS = """(SELECT coalesce(sum((part->'amount'->>'units')::bigint), 0)
            FROM json_array_elements(deposit) part)"""

_RULES = (
    Rule(
        ("lease.requested.v1",),
        "lease_id text, job_id text, account_id text, pricing text, months int, gpu_count int,"
        " share_ppm int, mem_ppm int, models text[], max_price_per_gpu_hour json, term_us bigint,"
        " constraints jsonb, sla_class text, at_us bigint",
        """INSERT INTO own.request
        SELECT lease_id, job_id, account_id, pricing, months, gpu_count, share_ppm, mem_ppm,
            models, (max_price_per_gpu_hour->>'units')::bigint, term_us, constraints, sla_class,
            at_us, position
        FROM facts WHERE pricing IS NOT NULL""",
    ),
    Rule(
        ("auction.opened.v1",),
        "lease_id text, account_id text, pricing text, deposit json, bids_max int, pick text,"
        " closes_at_us bigint, at_us bigint",
        """INSERT INTO own.auction
        SELECT lease_id, account_id, pricing, (deposit->>'units')::bigint, bids_max, pick,
            closes_at_us, 'open', NULL, NULL, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("auction.bid_placed.v1",),
        "lease_id text, bid_id text, number int, account_id text, provider_id text, offer_id text,"
        " node_id text, device_ids text[], price_per_gpu_hour json, deposit json,"
        " expires_at_us bigint, at_us bigint",
        f"""INSERT INTO own.bid
        SELECT bid_id, lease_id, number, account_id, provider_id, offer_id, node_id, device_ids,
            (price_per_gpu_hour->>'units')::bigint, {_UNITS}, expires_at_us, 'standing', 'held',
            NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("auction.bid_withdrawn.v1", "auction.bid_lapsed.v1", "auction.bid_forfeited.v1"),
        "lease_id text, bid_id text, cause text, at_us bigint",
        """UPDATE own.bid b SET state = coalesce(f.cause, 'withdrawn'), deposit = CASE f.topic
                WHEN 'auction.bid_forfeited.v1' THEN 'forfeited' ELSE 'returned' END,
            ended_at_us = f.at_us
        FROM facts f WHERE b.lease_id = f.lease_id AND b.bid_id = f.bid_id""",
    ),
    Rule(
        ("auction.awarded.v1", "auction.ended.v1"),
        "lease_id text, bid_id text, price_per_gpu_hour json, at_us bigint",
        """, told AS (
            UPDATE own.bid b
            SET state = CASE WHEN b.bid_id = f.bid_id THEN 'won' ELSE 'lost' END,
                deposit = CASE WHEN b.bid_id = f.bid_id THEN 'held' ELSE 'returned' END,
                ended_at_us = f.at_us
            FROM facts f WHERE b.lease_id = f.lease_id AND b.state = 'standing'
        )
        UPDATE own.auction a SET state = CASE WHEN f.bid_id IS NULL THEN 'ended' ELSE 'awarded' END,
            winner_bid_id = f.bid_id, price_units = (f.price_per_gpu_hour->>'units')::bigint,
            ended_at_us = f.at_us
        FROM facts f WHERE a.lease_id = f.lease_id""",
    ),
    Rule(
        ("auction.deposit_returned.v1", "auction.deposit_forfeited.v1"),
        "lease_id text",
        """UPDATE own.bid b SET deposit = CASE f.topic
            WHEN 'auction.deposit_forfeited.v1' THEN 'forfeited' ELSE 'returned' END
        FROM facts f WHERE b.lease_id = f.lease_id AND b.state = 'won'""",
    ),
    Rule(
        ("standing_bid.set.v1",),
        "lease_id text, account_id text, price_per_gpu_hour json, at_us bigint",
        """INSERT INTO own.standing AS s
        SELECT DISTINCT ON (lease_id) lease_id, account_id,
            last_value((price_per_gpu_hour->>'units')::bigint) OVER (
                PARTITION BY lease_id ORDER BY position
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING),
            'waiting', NULL, NULL, NULL, NULL, NULL, at_us, at_us, position
        FROM facts ORDER BY lease_id, position
        ON CONFLICT (lease_id) DO UPDATE SET price_units = excluded.price_units""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, node_id text, offer_id text, device_ids text[], gpu_class text",
        """UPDATE own.standing s SET node_id = f.node_id, offer_id = f.offer_id,
            device_ids = f.device_ids, gpu_class = f.gpu_class
        FROM facts f WHERE s.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.reserved.v1", "lease.paused.v1", "lease.resumed.v1", "lease.closed.v1"),
        "lease_id text, reason text, at_us bigint",
        f"""UPDATE own.standing s SET state = CASE f.topic WHEN 'lease.paused.v1' THEN 'paused'
                WHEN 'lease.closed.v1' THEN 'over' ELSE 'holding' END,
            reason = f.reason, since_us = f.at_us
        FROM {_LATEST} f WHERE s.lease_id = f.lease_id""",
    ),
    Rule(
        ("offer.prices_set.v1",),
        "offer_id text, provider_id text, interruptible_floor json, reserved jsonb, at_us bigint",
        """INSERT INTO own.price_list
        SELECT DISTINCT ON (offer_id) offer_id, provider_id,
            (interruptible_floor->>'units')::bigint, reserved, at_us, position
        FROM facts ORDER BY offer_id, position DESC
        ON CONFLICT (offer_id) DO UPDATE SET floor_units = excluded.floor_units,
            reserved = excluded.reserved, at_us = excluded.at_us, position = excluded.position""",
    ),
)

BIDS = Projection("bids", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request and its auction; `standing` is how many bids stand."""

    lease_id: str
    account_id: str
    pricing: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    cap_units: int
    term_us: int | None
    constraints: dict[str, Any] | None
    sla_class: str | None
    deposit_units: int
    bids_max: int
    pick: str
    closes_at_us: int
    state: str
    winner_bid_id: str | None
    price_units: int | None
    standing: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Bid:
    """One provider's bid; `state`: standing, withdrawn, expired, unavailable, won or lost."""

    bid_id: str
    lease_id: str
    number: int
    account_id: str
    provider_id: str
    offer_id: str
    node_id: str
    device_ids: list[str]
    price_units: int
    deposit_units: int
    expires_at_us: int
    state: str
    deposit: str
    ended_at_us: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Standing:
    """An interruptible lease and its bid; place and devices once it has held some."""

    lease_id: str
    account_id: str
    price_units: int
    state: str
    reason: str | None
    node_id: str | None
    offer_id: str | None
    device_ids: list[str] | None
    gpu_class: str | None
    since_us: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class PriceList:
    offer_id: str
    provider_id: str
    floor_units: int | None
    reserved: list[dict[str, Any]]
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class MarketPrice:
    """What standing bids pay on devices of a class now: the lowest and the highest that hold."""

    gpu_class: str
    holding: int
    lowest_units: int
    highest_units: int


_REQUEST = """
    SELECT a.lease_id, a.account_id, a.pricing, r.gpu_count, r.share_ppm, r.mem_ppm, r.models,
        r.cap_units, r.term_us, r.constraints, r.sla_class, a.deposit_units, a.bids_max, a.pick,
        a.closes_at_us, a.state, a.winner_bid_id, a.price_units,
        (SELECT count(*) FROM proj_bids.bid b
            WHERE b.lease_id = a.lease_id AND b.state = 'standing') AS standing,
        a.at_us, a.position
    FROM proj_bids.auction a JOIN proj_bids.request r ON r.lease_id = a.lease_id
"""


def read_open_requests(
    connection: Connection, now_us: int, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[OpenRequest]:
    """Requests that take bids at a moment, in the order in which they came."""
    sql = f"""{_REQUEST} WHERE a.state = 'open' AND a.closes_at_us > %(now)s
        AND a.position > %(after)s ORDER BY a.position LIMIT %(limit)s"""
    return read.listed(connection, OpenRequest, sql, way, now=now_us, after=after, limit=limit)


def read_request(connection: Connection, lease_id: str) -> OpenRequest | None:
    """The auction of one request."""
    return read.one(
        connection, OpenRequest, f"{_REQUEST} WHERE a.lease_id = %(lease)s", lease=lease_id
    )


def read_bids(
    connection: Connection,
    *,
    lease_id: str | None = None,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Bid]:
    """Bids in the order in which they came: of a request, of a bidder, or both."""
    sql = """SELECT * FROM proj_bids.bid WHERE position > %(after)s
        AND (%(lease)s::text IS NULL OR lease_id = %(lease)s)
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection, Bid, sql, way, lease=lease_id, account=account_id, after=after, limit=limit
    )


def read_due(connection: Connection, now_us: int, limit: int) -> list[str]:
    """Leases of which an auction has closed, or a bid expired; what is due longest comes first."""
    sql = """SELECT lease_id FROM (
            SELECT lease_id, closes_at_us AS due_us FROM proj_bids.auction
            WHERE state = 'open' AND closes_at_us <= %s
            UNION ALL SELECT lease_id, expires_at_us FROM proj_bids.bid
            WHERE state = 'standing' AND expires_at_us <= %s) d
        GROUP BY lease_id ORDER BY min(due_us), lease_id LIMIT %s"""
    return [str(row[0]) for row in connection.execute(sql, (now_us, now_us, limit)).fetchall()]


def read_standing(connection: Connection, lease_id: str) -> Standing | None:
    """The standing bid of one lease."""
    sql = "SELECT * FROM proj_bids.standing WHERE lease_id = %(lease)s"
    return read.one(connection, Standing, sql, lease=lease_id)


def read_waiting(
    connection: Connection, limit: int, after: Standing | None = None
) -> list[Standing]:
    """Bids that hold nothing and want to: the highest first, and of equal ones the earlier.

    `after`: the last one that was read. One that its renter paused waits for its renter.
    """
    sql = """SELECT * FROM proj_bids.standing
        WHERE state IN ('waiting', 'paused') AND reason IS DISTINCT FROM 'renter'
            AND (%(price)s::bigint IS NULL
                OR (-price_units, position) > (-%(price)s::bigint, %(position)s))
        ORDER BY price_units DESC, position LIMIT %(limit)s"""
    price, position = (None, 0) if after is None else (after.price_units, after.position)
    return read.many(connection, Standing, sql, limit=limit, price=price, position=position)


def read_holding(connection: Connection, *, node_id: str | None = None) -> list[Standing]:
    """Bids that hold devices, the lowest first, and of equal ones the later."""
    sql = """SELECT * FROM proj_bids.standing
        WHERE state = 'holding' AND (%(node)s::text IS NULL OR node_id = %(node)s)
        ORDER BY price_units, since_us DESC, position DESC"""
    return read.many(connection, Standing, sql, node=node_id)


def read_price_lists(
    connection: Connection, *, offer_id: str | None = None, months: int | None = None
) -> list[PriceList]:
    """Price lists: of an offer, or all that have a price for so many months."""
    sql = """SELECT * FROM proj_bids.price_list
        WHERE (%(offer)s::text IS NULL OR offer_id = %(offer)s)
            AND (%(months)s::int IS NULL OR reserved @> jsonb_build_array(
                jsonb_build_object('months', %(months)s::int)))
        ORDER BY position"""
    return read.many(connection, PriceList, sql, offer=offer_id, months=months)


def read_market_prices(connection: Connection, *, pool_id: str | None = None) -> list[MarketPrice]:
    """The winning standing bids by class: everywhere, or in a pool. Needs the pools view."""
    sql = """SELECT gpu_class, count(*) AS holding, min(price_units) AS lowest_units,
            max(price_units) AS highest_units
        FROM proj_bids.standing s WHERE state = 'holding' AND (%(pool)s::text IS NULL OR EXISTS (
            SELECT FROM proj_pools.node n WHERE n.node_id = s.node_id AND n.pool_id = %(pool)s))
        GROUP BY gpu_class ORDER BY gpu_class"""
    return read.many(connection, MarketPrice, sql, pool=pool_id)
