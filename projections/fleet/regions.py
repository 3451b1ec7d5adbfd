"""Reading what the fleet's projection keeps of regions (`region_tables`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.runner import Connection

_IN = "n.phase NOT IN ('joining', 'confirmed', 'retired')"


@dataclass(frozen=True, slots=True)
class Growth:
    """How a region grows; `workers`, `ingress` and `control`: admitted nodes by role."""

    region_id: str
    phase: str
    cause: str | None
    phase_at_us: int | None
    workers_min: int
    workers_max: int | None
    homogeneous: bool
    cpu_and_gpu: bool
    owner_share_ppm: int
    workers: int
    ingress: int
    control: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A region and where it is."""

    region_id: str
    provider_id: str
    account_id: str
    name: str
    setting: str
    admission: str
    phase: str
    workers: int
    workers_max: int | None
    boundaries: list[dict[str, Any]]
    address: str | None
    latitude_e6: int | None
    longitude_e6: int | None


@dataclass(frozen=True, slots=True)
class Admin:
    region_id: str
    account_id: str
    cause: str
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class WaitList:
    """`number`: which one the asking account is on the list; None: it is not."""

    list_id: str
    threshold: int
    first_user_administers: bool
    reached_at_us: int | None
    waiting: int
    number: int | None


@dataclass(frozen=True, slots=True)
class Dot:
    """People who wait at one place, as coarse as the database of places has it."""

    list_id: str
    latitude_e6: int
    longitude_e6: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Way:
    """What a node measured to its region's control or its ingress."""

    node_id: str
    target: str
    rtt_us: int
    samples: int
    at_us: int


@dataclass(frozen=True, slots=True)
class IngressDay:
    """Bytes through one ingress node on one UTC day."""

    node_id: str
    day: int
    bytes_in: int
    bytes_out: int
    until_us: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node of a region whose key is confirmed, with what it told last; None: nothing yet."""

    node_id: str
    is_admitted: bool
    addresses: list[str] | None
    reached: list[str] | None
    missed: list[str] | None
    at_us: int | None


_ROLES = f"""
    SELECT n.region_id,
        count(*) FILTER (WHERE coalesce(r.role, 'worker') = 'worker')::int AS workers,
        count(*) FILTER (WHERE r.role = 'ingress')::int AS ingress,
        count(*) FILTER (WHERE r.role = 'control')::int AS control
    FROM proj_fleet.node n LEFT JOIN proj_fleet.role r USING (node_id)
    WHERE {_IN} GROUP BY n.region_id
"""


def read_growth(connection: Connection, region_ids: list[str]) -> dict[str, Growth]:
    """By region; a region that has no terms of growth is open and mixed."""
    sql = f"""WITH roles AS ({_ROLES})
        SELECT r.region_id, coalesce(g.phase, 'open') AS phase, g.cause, g.phase_at_us,
            coalesce(g.workers_min, 0) AS workers_min, g.workers_max,
            coalesce(g.homogeneous, false) AS homogeneous,
            coalesce(g.cpu_and_gpu, true) AS cpu_and_gpu,
            coalesce(g.owner_share_ppm, 1000000) AS owner_share_ppm,
            coalesce(c.workers, 0) AS workers, coalesce(c.ingress, 0) AS ingress,
            coalesce(c.control, 0) AS control
        FROM proj_fleet.region r LEFT JOIN proj_fleet.region_growth g USING (region_id)
        LEFT JOIN roles c USING (region_id) WHERE r.region_id = ANY(%(ids)s)"""
    return {one.region_id: one for one in read.many(connection, Growth, sql, ids=region_ids)}


def read_placed(connection: Connection, *, limit: int = 10_000) -> list[Placed]:
    """Every region that is not closed, with its boundaries if it has any, by id."""
    sql = f"""WITH roles AS ({_ROLES})
        SELECT r.region_id, r.provider_id, p.account_id, r.name, r.setting, r.admission,
            coalesce(g.phase, 'open') AS phase, coalesce(c.workers, 0) AS workers, g.workers_max,
            coalesce(l.boundaries, '[]') AS boundaries, l.address, l.latitude_e6, l.longitude_e6
        FROM proj_fleet.region r JOIN proj_fleet.provider p USING (provider_id)
        LEFT JOIN proj_fleet.region_growth g USING (region_id)
        LEFT JOIN proj_fleet.region_place l USING (region_id)
        LEFT JOIN roles c USING (region_id)
        WHERE coalesce(g.phase, 'open') <> 'closed' ORDER BY r.region_id LIMIT %(limit)s"""
    return read.many(connection, Placed, sql, limit=limit)


def read_admins(connection: Connection, region_id: str) -> list[Admin]:
    sql = "SELECT * FROM proj_fleet.region_admin WHERE region_id = %(id)s ORDER BY position"
    return read.many(connection, Admin, sql, id=region_id)


def read_wait_lists(
    connection: Connection, account_id: str | None, *, only_own: bool = False
) -> list[WaitList]:
    """The longest first. `account_id`: whose number on each list is told."""
    sql = """SELECT w.list_id, w.threshold, w.first_user_administers, w.reached_at_us,
            count(a.account_id)::int AS waiting,
            max(a.number) FILTER (WHERE a.account_id = %(account)s) AS number
        FROM proj_fleet.wait_list w LEFT JOIN proj_fleet.waiting a USING (list_id)
        GROUP BY w.list_id HAVING NOT %(own)s OR bool_or(a.account_id = %(account)s)
        ORDER BY waiting DESC, w.list_id LIMIT 1000"""
    return read.many(connection, WaitList, sql, account=account_id, own=only_own)


def read_dots(connection: Connection) -> list[Dot]:
    """Where people wait whose place is known, the most first."""
    sql = """SELECT list_id, latitude_e6, longitude_e6, count(*)::int AS waiting
        FROM proj_fleet.waiting WHERE latitude_e6 IS NOT NULL
        GROUP BY 1, 2, 3 ORDER BY waiting DESC, list_id, latitude_e6, longitude_e6 LIMIT 5000"""
    return read.many(connection, Dot, sql)


@dataclass(frozen=True, slots=True)
class Mapped:
    """A node that is not retired, where its region stands."""

    node_id: str
    region_id: str
    phase: str
    devices: int
    latitude_e6: int
    longitude_e6: int


def read_mapped(connection: Connection, account_id: str | None, *, limit: int) -> list[Mapped]:
    """Nodes of regions with a place, by id: of all accounts, or of the providers of one, those it
    owns a part of, and those of regions that it administers.
    """
    sql = """SELECT n.node_id, n.region_id, n.phase, l.latitude_e6, l.longitude_e6,
            (SELECT count(*) FROM proj_fleet.device d WHERE d.node_id = n.node_id)::int AS devices
        FROM proj_fleet.node n JOIN proj_fleet.region_place l USING (region_id)
        JOIN proj_fleet.provider p USING (provider_id)
        WHERE n.phase NOT IN ('joining', 'retired') AND l.latitude_e6 IS NOT NULL
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s
            OR n.owner_account_id = %(account)s
            OR EXISTS (SELECT FROM proj_fleet.owner o
                WHERE o.node_id = n.node_id AND o.account_id = %(account)s)
            OR EXISTS (SELECT FROM proj_fleet.region_admin a
                WHERE a.region_id = n.region_id AND a.account_id = %(account)s))
        ORDER BY n.node_id LIMIT %(limit)s"""
    return read.many(connection, Mapped, sql, account=account_id, limit=limit)


def sees_node(connection: Connection, node_id: str, account_id: str) -> bool:
    """Whether an account owns a part of a node, joined it, or administers its region."""
    sql = """SELECT count(*) FROM proj_fleet.node n WHERE n.node_id = %(node)s
        AND (n.owner_account_id = %(account)s
            OR EXISTS (SELECT FROM proj_fleet.owner o
                WHERE o.node_id = n.node_id AND o.account_id = %(account)s)
            OR EXISTS (SELECT FROM proj_fleet.region_admin a
                WHERE a.region_id = n.region_id AND a.account_id = %(account)s))"""
    return read.number(connection, sql, node=node_id, account=account_id) > 0


def read_ways(connection: Connection, node_ids: list[str]) -> dict[str, list[Way]]:
    """By node, control before ingress."""
    sql = """SELECT * FROM proj_fleet.latency WHERE node_id = ANY(%(ids)s)
        ORDER BY node_id, target"""
    found: dict[str, list[Way]] = {}
    for way in read.many(connection, Way, sql, ids=node_ids):
        found.setdefault(way.node_id, []).append(way)
    return found


def read_ingress_days(
    connection: Connection, region_id: str, *, since_day: int
) -> list[IngressDay]:
    """Of a region's ingress nodes, the newest day first."""
    sql = """SELECT b.* FROM proj_fleet.ingress_bytes b JOIN proj_fleet.node n USING (node_id)
        WHERE n.region_id = %(region)s AND b.day >= %(since)s
        ORDER BY b.day DESC, b.node_id LIMIT 1000"""
    return read.many(connection, IngressDay, sql, region=region_id, since=since_day)


NEIGHBOURS_MAX = 4_000


def read_neighbours(connection: Connection, region_id: str) -> list[Neighbour]:
    """The nodes of a region by id, with the private addresses and the peers that they told."""
    sql = f"""SELECT n.node_id, {_IN} AS is_admitted, b.addresses, b.reached, b.missed, b.at_us
        FROM proj_fleet.node n LEFT JOIN proj_fleet.neighbours b USING (node_id)
        WHERE n.region_id = %(region)s AND n.phase NOT IN ('joining', 'retired')
        ORDER BY n.node_id LIMIT {NEIGHBOURS_MAX}"""
    return read.many(connection, Neighbour, sql, region=region_id)


def read_neighbours_of(
    connection: Connection, region_id: str, node_id: str
) -> tuple[list[Neighbour], int]:
    """A node of a region with those admitted ones that it told of or that told of it, and how many
    other admitted nodes there are.
    """
    sql = f"""WITH near AS (
            SELECT %(node)s::text AS node_id
            UNION SELECT unnest(reached || missed) FROM proj_fleet.neighbours
            WHERE node_id = %(node)s
            UNION SELECT node_id FROM proj_fleet.neighbours
            WHERE %(node)s = ANY(reached) OR %(node)s = ANY(missed))
        SELECT n.node_id, {_IN} AS is_admitted, b.addresses, b.reached, b.missed, b.at_us
        FROM near JOIN proj_fleet.node n USING (node_id)
        LEFT JOIN proj_fleet.neighbours b USING (node_id)
        WHERE n.region_id = %(region)s AND n.phase NOT IN ('joining', 'retired')
            AND (n.node_id = %(node)s OR {_IN})"""
    rows = read.many(connection, Neighbour, sql, region=region_id, node=node_id)
    counted = f"""SELECT count(*) FROM proj_fleet.node n
        WHERE n.region_id = %(region)s AND {_IN} AND n.node_id <> %(node)s"""
    return rows, read.number(connection, counted, region=region_id, node=node_id)


def read_parted(connection: Connection, since_us: int) -> dict[str, set[str]]:
    """By node, those of its region of which one has told since then that it cannot reach the
    other.
    """
    sql = b"""SELECT node_id, unnest(missed) FROM proj_fleet.neighbours
        WHERE at_us > %(since)s AND cardinality(missed) > 0"""
    found: dict[str, set[str]] = {}
    for node_id, peer in connection.execute(sql, {"since": since_us}):
        found.setdefault(node_id, set()).add(peer)
        found.setdefault(peer, set()).add(node_id)
    return found
