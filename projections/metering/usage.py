"""How much GPU time was used? From signed reports by node and hour; from accruals by lease hour.

    leased_ppm_us + idle_ppm_us == sum(share_ppm x available_us)   of the rows filed under an hour

Reports say what a node claims to have measured; accruals say what of it was charged. Neither is
judged here. A row is filed under the UTC hour of its end, corrected to server time. Reports with
flags earn nothing and are only counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from domain.gpu_time import GPU_HOUR_US
from domain.metering.row_times import hour_of
from domain.money import PPM
from ledger.log import report_rows
from ledger.log.report_rows import (
    Column,
    Device,
    DeviceColumns,
    Nullable,
    ReportRows,
    column,
    each,
    each_known,
    last_until_us,
    nullable,
    times_of,
    until_bounds_us,
)
from ledger.log.usage import StoredReport
from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Reports, Rule, run

_TABLES = """
    CREATE TABLE own.node_hour (
        node_id text COLLATE "C", hour_us bigint, rows bigint NOT NULL,
        leased_ppm_us bigint NOT NULL, idle_ppm_us bigint NOT NULL,
        unavailable_us bigint NOT NULL, unknown_us bigint NOT NULL, busy_us bigint NOT NULL,
        energy_mj bigint NOT NULL, throttled_us bigint NOT NULL,
        throttle_known_us bigint NOT NULL, PRIMARY KEY (node_id, hour_us)
    ) WITH (fillfactor = 50);
    COMMENT ON TABLE own.node_hour IS 'What nodes reported, flagged reports left out';
    CREATE TABLE own.node_reports (
        node_id text COLLATE "C" PRIMARY KEY, lane int NOT NULL, reports bigint NOT NULL,
        flagged bigint NOT NULL, last_seq bigint NOT NULL, last_position bigint NOT NULL,
        last_recorded_us bigint NOT NULL, last_end_us bigint NOT NULL) WITH (fillfactor = 50);
    COMMENT ON COLUMN own.node_reports.last_end_us IS 'Of the last row; 0: none that counts';
    CREATE TABLE own.flagged (
        node_id text COLLATE "C", node_seq bigint, lane int NOT NULL, position bigint NOT NULL,
        flags int NOT NULL, recorded_us bigint NOT NULL, PRIMARY KEY (node_id, node_seq));
    CREATE TABLE own.opened (lease_id text COLLATE "C" PRIMARY KEY, opened_at_us bigint NOT NULL);
    CREATE TABLE own.accrual (
        position bigint NOT NULL, lease_id text COLLATE "C" NOT NULL, hour_index int NOT NULL,
        from_us bigint NOT NULL, until_us bigint NOT NULL, node_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, provider_account_id text COLLATE "C" NOT NULL,
        client_id text NOT NULL, project_id text NOT NULL, end_user_ref text NOT NULL,
        gpu_us bigint NOT NULL, charge bigint NOT NULL, refused_us bigint NOT NULL);
    COMMENT ON TABLE own.accrual IS 'What each accrual added; from_us begins its lease hour';
"""

_INDEXES = """
    CREATE UNIQUE INDEX accrual_lease ON own.accrual (lease_id, position);
    CREATE INDEX ON own.accrual (account_id, from_us);
    CREATE INDEX ON own.accrual (account_id, position);
    CREATE INDEX ON own.accrual (node_id, from_us);
    CREATE INDEX ON own.accrual (position);
"""

_RULES = (
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        "INSERT INTO own.opened SELECT lease_id, opened_at_us FROM facts",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, hour_index bigint, until_us bigint, node_id text, account_id text,"
        " provider_account_id text, client_id text, project_id text, end_user_ref text,"
        " gpu_us_new bigint, charge_new json, refused json",
        f"""INSERT INTO own.accrual
        SELECT f.position, f.lease_id, f.hour_index,
            o.opened_at_us + f.hour_index * {GPU_HOUR_US}, f.until_us, f.node_id, f.account_id,
            f.provider_account_id, f.client_id, f.project_id, f.end_user_ref, f.gpu_us_new,
            (f.charge_new->>'units')::bigint, CASE WHEN f.refused::text = '[]' THEN 0 ELSE (
                SELECT sum((r->>'us')::bigint) FROM json_array_elements(f.refused) r) END
        FROM facts f JOIN own.opened o ON o.lease_id = f.lease_id""",
    ),
)


# --- reports ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Hour:
    """Sums of one node and hour."""

    rows: int = 0
    leased_ppm_us: int = 0
    idle_ppm_us: int = 0
    unavailable_us: int = 0
    unknown_us: int = 0
    busy_us: int = 0
    energy_mj: int = 0
    throttled_us: int = 0
    throttle_known_us: int = 0


SUM_MAX = 2**63 - 1
"""A sum of what a node claims ends here: no honest hour comes near, and nonsense stops nobody."""
_SUMS = tuple(field.name for field in fields(Hour) if field.name != "rows")


@dataclass(slots=True)
class Node:
    lane: int
    reports: int = 0
    flagged: int = 0
    last_seq: int = 0
    last_position: int = 0
    last_recorded_us: int = 0
    last_end_us: int = 0


@dataclass(frozen=True, slots=True)
class Folded:
    """What a run of reports adds."""

    hours: dict[tuple[str, int], Hour]
    nodes: dict[str, Node]
    flagged: list[StoredReport]


def fold(reports: Sequence[StoredReport]) -> Folded:
    """Add up reports in any order: sums and maxima only."""
    hours: dict[tuple[str, int], Hour] = {}
    nodes: dict[str, Node] = {}
    flagged: list[StoredReport] = []
    for report in reports:
        node = nodes.get(report.node_id)
        if node is None:
            node = nodes[report.node_id] = Node(report.lane)
        node.reports += 1
        node.last_seq = max(node.last_seq, report.node_seq)
        node.last_position = max(node.last_position, report.position)
        node.last_recorded_us = max(node.last_recorded_us, report.recorded_us)
        if report.flags:
            node.flagged += 1
            flagged.append(report)
        else:
            node.last_end_us = max(node.last_end_us, _add(report, hours))
    return Folded(hours, nodes, flagged)


def _add(report: StoredReport, hours: dict[tuple[str, int], Hour]) -> int:
    """Add a report to its hours; when its last row ends, 0 where it has none."""
    found = report_rows.read(report.body)
    cols, n = found.cols, found.n
    if cols is None:
        return 0
    last_us = min(last_until_us(cols, n, found.offset_us), SUM_MAX)
    hour_us = _one_hour(found, cols)
    share_ppm = _one_share(found.devices)
    if hour_us is None or share_ppm is None:
        _add_rows(found, cols, report.node_id, hours)
        return last_us
    available = _sum(cols.available_us, n)
    leased = available
    if cols.lease is None:
        leased = 0
    elif isinstance(cols.lease, list) and None in cols.lease:
        told = zip(each(cols.available_us, n), cols.lease, strict=True)
        leased -= sum(us for us, lease in told if lease is None)
    hour = _hour(hours, report.node_id, hour_us)
    hour.rows += n
    hour.leased_ppm_us += leased * share_ppm
    hour.idle_ppm_us += (available - leased) * share_ppm
    hour.unavailable_us += _sum(column(cols.unavailable_us), n)
    hour.unknown_us += _sum(column(cols.unknown_us), n)
    hour.busy_us += _sum(nullable(cols.busy_us), n)
    hour.energy_mj += _sum(nullable(cols.energy_mj), n)
    throttles = nullable(cols.throttle_power_ns), nullable(cols.throttle_thermal_ns)
    if throttles != (None, None):
        powers, thermals = (each_known(one, n) for one in throttles)
        for power, thermal, length in zip(powers, thermals, each(cols.len_us, n), strict=True):
            _throttle(hour, power, thermal, length)
    return last_us


def _throttle(hour: Hour, power_ns: int | None, thermal_ns: int | None, length_us: int) -> None:
    """A clock held down by power and by heat at once is held down once, and never longer than the
    row; what could not be told is not counted as well.
    """
    if power_ns is None and thermal_ns is None:
        return
    hour.throttled_us += min(max(power_ns or 0, thermal_ns or 0) // 1_000, length_us)
    hour.throttle_known_us += length_us


def _add_rows(
    found: ReportRows, cols: DeviceColumns, node_id: str, hours: dict[tuple[str, int], Hour]
) -> None:
    """Row by row: the report crosses an hour, or its devices have different shares."""
    shares, n = [device.share_ppm for device in found.devices], found.n
    _, _, ends = times_of(cols, n, found.offset_us)
    hour, low_us, high_us = Hour(), 0, 0  # rows of one hour mostly follow one another
    for (
        until_us,
        device,
        lease,
        length,
        available,
        unavailable,
        unknown,
        busy,
        mj,
        power,
        thermal,
    ) in zip(
        ends,
        each(cols.device, n),
        each_known(cols.lease, n),
        each(cols.len_us, n),
        each(cols.available_us, n),
        each(column(cols.unavailable_us), n),
        each(column(cols.unknown_us), n),
        each_known(nullable(cols.busy_us), n),
        each_known(nullable(cols.energy_mj), n),
        each_known(nullable(cols.throttle_power_ns), n),
        each_known(nullable(cols.throttle_thermal_ns), n),
        strict=True,
    ):
        if not low_us < until_us <= high_us:
            low_us = hour_of(until_us)
            high_us = low_us + GPU_HOUR_US
            hour = _hour(hours, node_id, low_us)
        hour.rows += 1
        if lease is None:
            hour.idle_ppm_us += available * shares[device]
        else:
            hour.leased_ppm_us += available * shares[device]
        hour.unavailable_us += unavailable
        hour.unknown_us += unknown
        hour.busy_us += busy or 0
        hour.energy_mj += mj or 0
        _throttle(hour, power, thermal, length)


def _hour(hours: dict[tuple[str, int], Hour], node_id: str, hour_us: int) -> Hour:
    key = (node_id, hour_us)
    found = hours.get(key)
    if found is None:
        found = hours[key] = Hour()
    return found


def _one_hour(found: ReportRows, cols: DeviceColumns) -> int | None:
    """The hour of all rows, when bounds on the first and the last end say there is only one."""
    low_us, high_us = until_bounds_us(cols, found.n, found.offset_us)
    hour_us = hour_of(low_us)
    return hour_us if hour_us == hour_of(high_us) else None


def _one_share(devices: Sequence[Device]) -> int | None:
    shares = {device.share_ppm for device in devices}
    return shares.pop() if len(shares) == 1 else None


def _sum(told: Column | Nullable, n: int) -> int:
    if told is None:
        return 0
    if isinstance(told, int):
        return told * n
    return sum(value for value in told if value) if None in told else sum(told)  # type: ignore[arg-type]


def _apply(connection: Connection, schema: str, folded: Folded) -> None:
    hours = folded.hours
    if hours:
        columns = zip(
            *(
                (*key, h.rows, *(min(getattr(h, name), SUM_MAX) for name in _SUMS))
                for key, h in hours.items()
            ),
            strict=True,
        )
        run(connection, schema, _ADD_HOURS, *map(list, columns))
    nodes = folded.nodes
    columns = zip(
        *(
            (
                node_id,
                n.lane,
                n.reports,
                n.flagged,
                n.last_seq,
                n.last_position,
                n.last_recorded_us,
                n.last_end_us,
            )
            for node_id, n in nodes.items()
        ),
        strict=True,
    )
    run(connection, schema, _ADD_NODES, *map(list, columns))
    if folded.flagged:
        columns = zip(
            *(
                (r.node_id, r.node_seq, r.lane, r.position, r.flags, r.recorded_us)
                for r in folded.flagged
            ),
            strict=True,
        )
        run(connection, schema, _ADD_FLAGGED, *map(list, columns))


def _added(column: str) -> str:
    return f"{column} = least(t.{column}::numeric + excluded.{column}, {SUM_MAX})::bigint"


_ADD_HOURS = f"""
    INSERT INTO own.node_hour AS t SELECT * FROM unnest(%s::text[], %s::int8[], %s::int8[],
        %s::int8[], %s::int8[], %s::int8[], %s::int8[], %s::int8[], %s::int8[], %s::int8[],
        %s::int8[])
    ON CONFLICT (node_id, hour_us) DO UPDATE SET rows = t.rows + excluded.rows,
        {", ".join(map(_added, _SUMS))}
"""
_ADD_NODES = """
    INSERT INTO own.node_reports AS t SELECT * FROM unnest(%s::text[], %s::int4[], %s::int8[],
        %s::int8[], %s::int8[], %s::int8[], %s::int8[], %s::int8[])
    ON CONFLICT (node_id) DO UPDATE SET reports = t.reports + excluded.reports,
        flagged = t.flagged + excluded.flagged,
        last_seq = greatest(t.last_seq, excluded.last_seq),
        last_position = greatest(t.last_position, excluded.last_position),
        last_recorded_us = greatest(t.last_recorded_us, excluded.last_recorded_us),
        last_end_us = greatest(t.last_end_us, excluded.last_end_us)
"""
_ADD_FLAGGED = """
    INSERT INTO own.flagged SELECT * FROM unnest(%s::text[], %s::int8[], %s::int4[], %s::int8[],
        %s::int4[], %s::int8[])
"""

USAGE = Projection("usage", _TABLES, _RULES, _INDEXES, Reports(fold, _apply), version=4)


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeHour:
    """What a node reported for one UTC hour: ppm-microseconds, microseconds, millijoules.

    `busy_us` and `energy_mj` count only rows in which they could be measured; `throttled_us`, when
    power or heat held the clock down, is out of `throttle_known_us`.
    """

    node_id: str
    hour_us: int
    rows: int
    leased_ppm_us: int
    idle_ppm_us: int
    unavailable_us: int
    unknown_us: int
    busy_us: int
    energy_mj: int
    throttled_us: int
    throttle_known_us: int

    @property
    def leased_gpu_us(self) -> int:
        return self.leased_ppm_us // PPM

    @property
    def idle_gpu_us(self) -> int:
        return self.idle_ppm_us // PPM


@dataclass(frozen=True, slots=True)
class NodeReports:
    node_id: str
    lane: int
    reports: int
    flagged: int
    last_seq: int
    last_position: int
    last_recorded_us: int
    last_end_us: int


@dataclass(frozen=True, slots=True)
class Flagged:
    """A stored report that earns nothing, and why: `flags` as in its receipt."""

    node_id: str
    node_seq: int
    lane: int
    position: int
    flags: int
    recorded_us: int


@dataclass(frozen=True, slots=True)
class Accrual:
    """What one accrual added to a lease: GPU-microseconds, micro-credits, refused microseconds.

    [from_us, from_us + 1 h) is its lease hour, `until_us` how far it covers it.
    """

    position: int
    lease_id: str
    hour_index: int
    from_us: int
    until_us: int
    node_id: str
    account_id: str
    provider_account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    gpu_us: int
    charge: int
    refused_us: int


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Accrued GPU time of one group; `group` is what it was grouped by, `hour_us` a UTC hour."""

    group: str
    hour_us: int | None
    accruals: int
    gpu_us: int
    charge: int
    refused_us: int


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """GPU-microseconds and micro-credits, all groups together."""

    accruals: int
    gpu_us: int
    charge: int


_GROUPS = (
    "lease_id",
    "node_id",
    "account_id",
    "provider_account_id",
    "project_id",
    "client_id",
    "end_user_ref",
)
_FILTERS = {
    "lease_id": "lease_id = %(lease_id)s",
    "node_id": "node_id = %(node_id)s",
    "account_id": "(account_id = %(account_id)s OR provider_account_id = %(account_id)s)",
    "renter_id": "account_id = %(renter_id)s",
    "client_id": "client_id = %(client_id)s",
    "project_id": "project_id = %(project_id)s",
    "end_user_ref": "end_user_ref = %(end_user_ref)s",
    "from_us": "from_us >= %(from_us)s",
    "to_us": "from_us < %(to_us)s",
    "after_position": "position > %(after_position)s",
    "until_position": "position <= %(until_position)s",
}
"""What accruals can be asked for. `account_id` is renter or provider; times bound the begin of the
lease hour, half-open; positions are those of the facts.
"""


def _where(filters: dict[str, Any]) -> str:
    """The conditions of the filters that are given: nothing else may stand in an index's way."""
    given = [_FILTERS[name] for name, value in filters.items() if value is not None]
    return " AND ".join(["true", *given])


def read_node_hours(
    connection: Connection,
    node_id: str,
    *,
    from_us: int = 0,
    to_us: int = 2**53,
    after: int = -1,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[NodeHour]:
    """Hours that begin in [from_us, to_us), in order; `after` is the last `hour_us` before."""
    sql = """SELECT * FROM proj_usage.node_hour WHERE node_id = %(node)s
        AND hour_us >= %(from)s AND hour_us < %(to)s AND hour_us > %(after)s
        ORDER BY hour_us LIMIT %(limit)s"""
    return read.listed(
        connection,
        NodeHour,
        sql,
        way,
        node=node_id,
        to=to_us,
        after=after,
        limit=limit,
        **{"from": from_us},
    )


def read_throttling(
    connection: Connection, node_ids: Sequence[str], from_us: int
) -> dict[str, tuple[int, int]]:
    """By node, since an hour: microseconds throttled, and those in which that could be told."""
    sql = """SELECT node_id, sum(throttled_us)::numeric, sum(throttle_known_us)::numeric
        FROM proj_usage.node_hour WHERE node_id = ANY(%(nodes)s) AND hour_us >= %(from)s
        GROUP BY node_id HAVING sum(throttle_known_us) > 0"""
    rows = connection.execute(sql, {"nodes": list(node_ids), "from": from_us})
    return {node_id: (int(held), int(known)) for node_id, held, known in rows}


def read_node_reports(connection: Connection, node_id: str) -> NodeReports | None:
    """How many reports of a node were stored, and the last of them."""
    sql = "SELECT * FROM proj_usage.node_reports WHERE node_id = %(node)s"
    return read.one(connection, NodeReports, sql, node=node_id)


def read_flagged(
    connection: Connection, node_id: str, *, after: int = 0, limit: int = 50
) -> list[Flagged]:
    """A node's flagged reports in order; `after` is the last `node_seq` of the page before."""
    sql = """SELECT * FROM proj_usage.flagged WHERE node_id = %(node)s AND node_seq > %(after)s
        ORDER BY node_seq LIMIT %(limit)s"""
    return read.many(connection, Flagged, sql, node=node_id, after=after, limit=limit)


def read_accruals(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50, **filters: Any
) -> list[Accrual]:
    """Line by line, in order of position; `filters` are those of `_FILTERS`.

    `after` is the last position of the page before.
    """
    sql = f"""SELECT * FROM proj_usage.accrual WHERE {_where(filters)} AND position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Accrual, sql, way, after=after, limit=limit, **filters)


def read_usage(
    connection: Connection,
    *,
    by: str = "lease_id",
    hourly: bool = False,
    after: tuple[str, int] = ("", -1),
    limit: int = 50,
    **filters: Any,
) -> list[UsageSum]:
    """Accrued sums per one of `_GROUPS`, by UTC hour if asked; `filters` are those of `_FILTERS`.

    A lease hour counts in the UTC hour in which it begins. `after` is (group, hour_us or 0) of
    the last row of the page before.
    """
    assert by in _GROUPS, by
    hour = f"(from_us - from_us %% {GPU_HOUR_US})" if hourly else "NULL::bigint"
    sql = f"""SELECT * FROM (
            SELECT {by} AS group, {hour} AS hour_us, count(*) AS accruals,
                sum(gpu_us)::bigint AS gpu_us, sum(charge)::bigint AS charge,
                least(sum(refused_us), {SUM_MAX})::bigint AS refused_us
            FROM proj_usage.accrual WHERE {_where(filters)} GROUP BY 1, 2
        ) g WHERE (g.group COLLATE "C", coalesce(hour_us, 0)) > (%(g)s, %(h)s)
        ORDER BY g.group COLLATE "C", hour_us LIMIT %(limit)s"""
    return read.many(connection, UsageSum, sql, g=after[0], h=after[1], limit=limit, **filters)


def read_usage_total(connection: Connection, **filters: Any) -> UsageTotal:
    """The sum over everything `read_usage` would list, however many groups those are."""
    sql = f"""SELECT count(*) AS accruals, coalesce(sum(gpu_us), 0)::bigint AS gpu_us,
            coalesce(sum(charge), 0)::bigint AS charge
        FROM proj_usage.accrual WHERE {_where(filters)}"""
    found = read.one(connection, UsageTotal, sql, **filters)
    assert found is not None
    return found


def count_silent(connection: Connection, before_us: int) -> tuple[int, int]:
    """How many nodes are active, and how many of them have sent nothing since `before_us`."""
    sql = b"""SELECT count(*), count(*) FILTER (WHERE NOT n.quarantined
            AND coalesce(r.last_recorded_us, n.at_us) < %(before)s)
        FROM proj_fleet.node n LEFT JOIN proj_usage.node_reports r USING (node_id)
        WHERE n.phase = 'active'"""
    row = connection.execute(sql, {"before": before_us}).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
