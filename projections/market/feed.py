"""Keeps the columns of a process at the position of the fleet's projection.

    columns == rows read from proj_fleet at `position`         after every `follow`

A change of a node reads that node anew; an accrual reads what nodes have served. Both are found in
the log itself, so the projection keeps no list of who follows it. The columns may be late like any
view: the streams decide.

Reputation is read as its own projection has it at that moment, and as it weighs on the UTC day of
the newest fact there. Scores decay by the day, so with a new day all of them are read again,
SCORES_MAX nodes with each `follow`: until a node's turn comes its score is yesterday's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from psycopg import Cursor
from psycopg.rows import dict_row, tuple_row

from domain.cloud.quotas import NO_QUOTAS, RegionQuotas, jobs_of, quotas_after
from domain.duration import DAY_US
from domain.hardware.host_kind import kernel_number
from domain.hardware.mig import Instance
from domain.lease.looked import Stated
from domain.market.dimensions import FreeDevice, OfferedNode, placeable
from domain.market.offer import OfferTerms
from projections.market.columns import Columns
from projections.runner import Connection
from projections.trust import scores

NO_OFFER = ("", 0, "cash", False, None, None)
ANEW_FACTS = 20_000
"""With more to catch up than so many facts, all is read anew."""
SCORES_MAX = 200
"""Nodes whose scores one `follow` brings to another day: tens of milliseconds."""

_NODE_TOPICS = (
    "node.join_requested.v1",
    "node.spec_reported.v1",
    "node.spec_confirmed.v1",
    "node.key_confirmed.v1",
    "node.admitted.v1",
    "node.activated.v1",
    "node.maintenance_started.v1",
    "node.drain_started.v1",
    "node.retired.v1",
    "node.equivocated.v1",
    "node.boots_alternated.v1",
    "node.key_revoked.v1",
    "node.hardware_judged.v1",
    "node.maintenance_scheduled.v1",
    "node.maintenance_cancelled.v1",
    "device.registered.v1",
    "device.retired.v1",
    "device.reserved.v1",
    "device.released.v1",
    "node.room_taken.v1",
    "node.room_returned.v1",
    "offer.published.v1",
    "offer.withdrawn.v1",
    "pool.node_added.v1",
    "pool.node_removed.v1",
    "attribute.stated.v1",
    "attribute.revoked.v1",
    "region.policy_set.v1",
    "region.phase_set.v1",
    "region.member_set.v1",
    "region.member_left.v1",
    "node.role_set.v1",
    "region.cloud_quota_reported.v1",
    "region.cloud_quota_taken.v1",
    "region.cloud_quota_returned.v1",
    "node.capacity_class_set.v1",
    "pool.policy_set.v1",
)
_SERVED_TOPIC = "lease.usage_accrued.v1"
_LIST_TOPICS = ("counterparty.allowed.v1", "counterparty.denied.v1", "counterparty.removed.v1")
_EPOCH_TOPIC = "epoch.opened.v1"

_POSITION = "SELECT position FROM proj_fleet.position WHERE source = 'market'"

_TOUCHED = """
    WITH fact AS MATERIALIZED (
        SELECT e.topic, f.* FROM public.market_events e CROSS JOIN LATERAL
            json_to_record(convert_from(e.state, 'UTF8')::json) AS f(
                node_id text, device_id text, offer_id text, subject_id text, statement_id text,
                region_id text, pool_id text)
        WHERE e.notification_id > %(first)s AND e.notification_id <= %(last)s
            AND e.topic = ANY(%(topics)s))
    SELECT node_id FROM fact WHERE node_id IS NOT NULL
    UNION SELECT d.node_id FROM fact JOIN proj_fleet.device d USING (device_id)
    UNION SELECT o.node_id FROM fact JOIN proj_fleet.offer o USING (offer_id)
    UNION SELECT n.node_id FROM fact JOIN proj_fleet.node n USING (region_id)
        WHERE fact.topic LIKE 'region.%%' AND fact.node_id IS NULL
    UNION SELECT n.node_id FROM fact JOIN proj_fleet.node n USING (pool_id)
        WHERE fact.topic = 'pool.policy_set.v1'
    UNION SELECT n.node_id FROM fact LEFT JOIN proj_fleet.attribute a USING (statement_id)
        JOIN proj_fleet.node n
            ON coalesce(fact.subject_id, a.subject_id) IN (n.node_id, n.provider_id)
        WHERE fact.topic LIKE 'attribute.%%'
"""
_KINDS = """
    SELECT DISTINCT topic FROM public.market_events WHERE notification_id > %(first)s
        AND notification_id <= %(last)s AND topic = ANY(%(topics)s)
"""
_EPOCH_NOW = "(SELECT coalesce(max(epoch), 0) FROM proj_fleet.epoch)"
_NODES = f"""
    SELECT n.node_id, p.account_id, n.provider_id, n.region_id,
        CASE WHEN n.quarantined THEN 'quarantined'
            WHEN coalesce(l.role, 'worker') <> 'worker' THEN l.role ELSE n.phase END AS phase,
        n.specs_at_us,
        coalesce(n.specs->'host'->>'arch', '') AS arch, coalesce(n.specs->'host'->>'os', '') AS os,
        (n.specs->'host'->>'cpu_cores')::bigint AS cpu_cores,
        (n.specs->'host'->>'ram_mib')::bigint AS ram_mib,
        n.specs->'host'->>'kernel' AS kernel,
        coalesce(n.specs->'host'->'substrate', '[]')::json AS substrate,
        r.setting, r.allow_public_jobs AND coalesce(g.phase, 'open') = 'open' AS is_public,
        coalesce(k.refused_workloads, '{{}}') AS refused_workloads,
        coalesce(k.down_ranked_workloads, '{{}}') AS down_ranked_workloads,
        coalesce(k.security_tier, 0) AS security_tier, n.pool_id,
        coalesce(w.keeps_queue, false) AS keeps_queue, n.sellable AS is_sellable,
        coalesce(s.gpu_us, 0) AS served_gpu_us, coalesce(h.storage_gib, 0) AS held_storage_gib,
        coalesce(h.network_mbps, 0) AS held_network_mbps, n.capacity_class,
        r.cloud_region IS NOT NULL AS is_cloud, q.quotas, q.taken
    FROM proj_fleet.node n JOIN proj_fleet.provider p USING (provider_id)
    JOIN proj_fleet.region r ON r.region_id = n.region_id
    LEFT JOIN proj_fleet.region_policy k ON k.region_id = n.region_id
    LEFT JOIN proj_fleet.region_growth g ON g.region_id = n.region_id
    LEFT JOIN proj_fleet.role l ON l.node_id = n.node_id
    LEFT JOIN proj_fleet.held_room h ON h.node_id = n.node_id
    LEFT JOIN proj_fleet.pool w ON w.pool_id = n.pool_id
    LEFT JOIN LATERAL (
        SELECT c.quotas::text, (SELECT json_agg(json_build_array(t.gpu, t.jobs))
            FROM proj_fleet.cloud_taken t
            WHERE t.region_id = c.region_id AND t.position > c.position) AS taken
        FROM proj_fleet.cloud_quota c WHERE c.region_id = n.region_id) q ON true
    LEFT JOIN proj_fleet.served s ON s.node_id = n.node_id AND s.epoch = {_EPOCH_NOW}
    WHERE n.phase <> 'retired' AND n.node_id = ANY(%(ids)s)
"""
_DEVICES = """
    SELECT node_id, model, memory_mib, coalesce(gpu_class, ''), vendor, kind, device_id,
        share_free, mem_free, mode, is_divisible
    FROM proj_fleet.device WHERE NOT retired AND node_id = ANY(%(ids)s)
    ORDER BY node_id, device_id
"""
_HOLDINGS = """
    SELECT h.device_id, h.share_ppm, h.profile, h.start FROM proj_fleet.holding h
    JOIN proj_fleet.device d USING (device_id)
    WHERE h.mode IN ('mig', 'time_slice') AND d.node_id = ANY(%(ids)s)
"""
_OFFERS = """
    SELECT node_id, offer_id, price_units, pay_with, fractions, available_until_us, terms::text
    FROM proj_fleet.offer WHERE withdrawn_at_us IS NULL AND node_id = ANY(%(ids)s)
"""
_STATED = """
    SELECT n.node_id, a.name, a.value, a.signer_account_id, a.expires_at_us
    FROM proj_fleet.attribute a JOIN proj_fleet.node n
        ON a.subject_id = n.node_id OR a.subject_id = n.provider_id
    WHERE a.revoked_at_us IS NULL AND n.node_id = ANY(%(ids)s)
    ORDER BY a.position
"""
_WINDOWS = """
    SELECT node_id, from_us, until_us FROM proj_fleet.maintenance
    WHERE cancelled_at_us IS NULL AND node_id = ANY(%(ids)s) ORDER BY from_us
"""
_SCORED = "SELECT to_regclass('proj_reputation.day') IS NOT NULL"
_TODAY = f"""
    SELECT e.recorded_us / {DAY_US} FROM proj_reputation.position p
    JOIN public.market_events e ON e.notification_id = p.position WHERE p.source = 'market'
"""
_LISTS = """
    SELECT account_id, array_agg(counterparty_id) FILTER (WHERE verdict = 'allow'),
        array_agg(counterparty_id) FILTER (WHERE verdict = 'deny')
    FROM proj_fleet.listed WHERE verdict <> 'none' GROUP BY account_id
"""
_SERVED = f"""
    SELECT node_id, gpu_us FROM proj_fleet.served
    WHERE epoch = {_EPOCH_NOW} AND node_id = ANY(%(ids)s)
"""
_FEES = """
    SELECT DISTINCT ON (gpu_class) gpu_class, units FROM proj_fleet.fee
    WHERE effective_from_us <= %(at)s ORDER BY gpu_class, version DESC
"""


def _both(sql: str) -> tuple[bytes, bytes]:
    """A question about all nodes, and the one about some: for each PostgreSQL keeps a plan."""
    some = re.compile(r"\s+AND [a-z.]*node_id = ANY\(%\(ids\)s\)")
    of_all, times = some.subn("", sql)
    assert times == 1, sql
    return of_all.encode(), sql.encode()


FEW = 200
"""Nodes that the one plan is for; a change of more, as of a region, is planned for what it is."""
_PLANNED_ONCE = "SET LOCAL plan_cache_mode = force_generic_plan"
"""Planning ten tables takes 12 ms, a few nodes are read in 1: and one plan is right for any few."""
_PLANNED_AS_BEFORE = "SET LOCAL plan_cache_mode TO DEFAULT"
_NODES_BOTH = _both(_NODES)
_BY_NODE = [_both(sql) for sql in (_HOLDINGS, _DEVICES, _OFFERS, _STATED, _WINDOWS)]

_terms_of = msgspec.json.Decoder(OfferTerms).decode
_quotas_of = msgspec.json.Decoder(RegionQuotas).decode


@dataclass(slots=True)
class Feed:
    """The columns of one process. Not safe for several threads at once: its user locks."""

    columns: Columns
    position: int = -1
    scored_day: int = -1  # the UTC day whose scores are read
    unscored: list[str] = field(default_factory=list)  # nodes with the score of an earlier day

    @classmethod
    def empty(cls) -> Feed:
        return cls(Columns())

    def follow(self, connection: Connection) -> int:
        """Bring the columns to where the fleet's projection is now; returns that position."""
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = connection.execute(_POSITION).fetchone()
            assert row is not None
            last = int(row[0])
            # A projection that is rebuilt may be behind what was read from the one before it.
            if last == self.position and not self.unscored:
                return last
            day = _today(connection)
            today = day or 0
            if self.position < 0 or not 0 <= last - self.position <= ANEW_FACTS:
                self._read_all(connection, day)
                self.scored_day, self.unscored = today, []
            elif last > self.position:
                self._read_changes(connection, self.position, last, day)
            self._score(connection, today)
        self.position = last
        return last

    def _score(self, connection: Connection, today: int) -> None:
        """Bring some of the scores of another day to this one."""
        if today != self.scored_day:
            self.scored_day, self.unscored = today, list(self.columns.rows_of)
        if not self.unscored:
            return
        ids, self.unscored = self.unscored[:SCORES_MAX], self.unscored[SCORES_MAX:]
        known = scores.read_known(connection, ids, today)
        for node_id in ids:
            places = list(self.columns.rows_of.get(node_id, {}).values())
            self.columns.rate(places, known.get(node_id))

    def _read_all(self, connection: Connection, day: int | None) -> None:
        columns = Columns()
        columns.fill(_rows(connection, None, day))
        columns.deal_with(_lists(connection))
        self.columns = columns

    def _read_changes(self, connection: Connection, first: int, last: int, day: int | None) -> None:
        span: dict[str, Any] = {"first": first, "last": last}
        known = (*_NODE_TOPICS, *_LIST_TOPICS, _SERVED_TOPIC, _EPOCH_TOPIC)
        told = connection.execute(_KINDS, {**span, "topics": list(known)})
        kinds = {str(row[0]) for row in told}
        if not kinds:
            return
        if kinds & set(_NODE_TOPICS):
            ids = [str(row[0]) for row in _touched(connection, span, list(_NODE_TOPICS))]
            found: dict[str, list[OfferedNode]] = {node_id: [] for node_id in ids}
            for row in _rows(connection, ids, day):
                found[row.node_id].append(row)
            for node_id, rows in found.items():
                self.columns.put(node_id, rows)
        if kinds & set(_LIST_TOPICS):
            self.columns.deal_with(_lists(connection))
        if _EPOCH_TOPIC in kinds:
            self.columns.serve(slice(None), 0)
        if _SERVED_TOPIC in kinds:
            ids = [str(row[0]) for row in _touched(connection, span, [_SERVED_TOPIC])]
            for node_id, gpu_us in connection.execute(_SERVED, {"ids": ids}):
                places = list(self.columns.rows_of.get(node_id, {}).values())
                self.columns.serve(places, gpu_us)


def _touched(connection: Connection, span: dict[str, Any], topics: list[str]) -> Cursor[Any]:
    """The nodes that facts of these names are about."""
    return connection.execute(_TOUCHED, {**span, "topics": topics})


def _today(connection: Connection) -> int | None:
    """The UTC day of the newest fact that the view of reputation has, 0 before the first; None
    without that view.
    """
    if connection.execute(_SCORED).fetchone() != (True,):
        return None
    row = connection.execute(_TODAY.encode()).fetchone()
    return 0 if row is None else int(row[0])


def fees(connection: Connection, at_us: int) -> dict[str, int]:
    """The usage fee of each class in the tariff in force, micro-credits per GPU-hour."""
    return {str(name): int(units) for name, units in connection.execute(_FEES, {"at": at_us})}


def _lists(connection: Connection) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    return {
        account_id: (frozenset(allowed or ()), frozenset(denied or ()))
        for account_id, allowed, denied in connection.execute(_LISTS)
    }


def _rows(
    connection: Connection, ids: Sequence[str] | None, day: int | None
) -> Iterator[OfferedNode]:
    """The rows of these nodes, or of all: one for each offer and each sort of device. `day`: of
    the scores; None: there are none.
    """
    values = {"ids": list(ids or ())}

    def asked(both: tuple[bytes, bytes], row_factory: Any = tuple_row) -> Cursor[Any]:
        cursor = connection.cursor(binary=True, row_factory=row_factory)
        return cursor.execute(both[ids is not None], values, prepare=True)

    if len(values["ids"]) <= FEW:
        connection.execute(_PLANNED_ONCE)
    answers = [asked(_NODES_BOTH, dict_row), *(asked(both) for both in _BY_NODE)]
    connection.execute(_PLANNED_AS_BEFORE)
    known = {} if day is None else scores.read_known(connection, ids, day)
    nodes, (held, devices, offers, stated, windows) = answers[0], map(_grouped, answers[1:])
    for node in nodes:
        node_id = node["node_id"]
        base = _node(node, stated.get(node_id, []), windows.get(node_id, []))
        base["reputation_ppm"] = known.get(node_id)
        sorts: dict[tuple[Any, ...], list[FreeDevice]] = defaultdict(list)
        for sort in devices.get(node_id, []):
            sorts[sort[:5]].append(_device(sort, held.get(sort[5], [])))
        for sort_of, free in sorts.items():
            for offer in offers.get(node_id) or [NO_OFFER]:
                yield _row(base, sort_of, tuple(free), offer)


def _grouped(rows: Iterable[tuple[Any, ...]]) -> Mapping[str, list[tuple[Any, ...]]]:
    """By the first of each."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for key, *rest in rows:
        found[key].append(tuple(rest))
    return found


def _node(
    row: dict[str, Any], stated: Iterable[tuple[Any, ...]], windows: Iterable[tuple[Any, ...]]
) -> dict[str, Any]:
    quotas, taken, is_cloud = row.pop("quotas"), row.pop("taken"), row.pop("is_cloud")
    return {
        **row,
        "kernel": kernel_number(row["kernel"]),
        "substrate": tuple(row["substrate"] or ()),
        "refused_workloads": tuple(row["refused_workloads"]),
        "down_ranked_workloads": tuple(row["down_ranked_workloads"]),
        "quotas": _quotas(quotas, taken) if is_cloud else None,
        "served_gpu_us": int(row["served_gpu_us"]),
        "held_storage_gib": int(row["held_storage_gib"]),
        "held_network_mbps": int(row["held_network_mbps"]),
        "attributes": tuple(dict.fromkeys(Stated(*one) for one in stated)),
        "maintenance": tuple((from_us, until_us) for from_us, until_us in windows),
    }


def _quotas(quotas: str | None, taken: Sequence[tuple[str, int]] | None) -> RegionQuotas:
    """What is left of the quotas of a cloud region."""
    told = NO_QUOTAS if quotas is None else _quotas_of(quotas)
    return quotas_after(told, [(gpu, jobs) for gpu, jobs in taken or ()])


def _device(told: tuple[Any, ...], holdings: Sequence[tuple[Any, ...]]) -> FreeDevice:
    model, memory_mib, _, _, _, device_id, share, mem, mode, is_divisible = told
    instances = frozenset(
        Instance(start, profile) for _, profile, start in holdings if start is not None
    )
    is_cut = mode in (None, "mig")
    return FreeDevice(
        device_id,
        model,
        share,
        mem,
        mode,
        slice_ppm=holdings[0][0] if mode == "time_slice" and holdings else None,
        profiles=placeable(model, memory_mib, instances) if is_cut else (),
        is_divisible=is_divisible,
    )


def _row(
    base: dict[str, Any],
    sort: tuple[Any, ...],
    devices: tuple[FreeDevice, ...],
    offer: tuple[Any, ...],
) -> OfferedNode:
    model, memory_mib, gpu_class, vendor, kind = sort
    quotas = base["quotas"]
    offer_id, price, pay_with, fractions, until_us, terms = offer
    return OfferedNode(
        **{name: value for name, value in base.items() if name != "quotas"},
        cloud_jobs=None if quotas is None else jobs_of(quotas, model),
        devices=devices,
        model=model,
        memory_mib=memory_mib,
        gpu_class=gpu_class or None,
        vendor=vendor,
        kind=kind,
        offer_id=offer_id,
        is_offered=offer_id != "",
        price=price,
        pay_with=pay_with,
        fractions=fractions,
        available_until_us=until_us,
        terms=OfferTerms() if terms is None else _terms_of(terms),
    )
