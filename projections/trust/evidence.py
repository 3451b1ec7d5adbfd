"""What is there to believe a device by? Its identity as told, and what its rows moved between.

    rows == a sum, a minimum or a maximum over the node's reports     in whatever order they came

Nothing is judged here: `domain/trust/tiers.py` does, for an epoch, from these rows. A row of a
report is filed under the UTC hour of its end, and an hour belongs to the epoch in which it begins.
Reports with flags say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import msgspec

from domain.metering.row_times import hour_of
from domain.record import dataclass
from domain.trust.record import PAIRS_MAX
from domain.trust.tiers import Evidence, Identity, Metered, Place
from ledger.log import report_rows
from ledger.log.report_rows import (
    DeviceColumns,
    ReportRows,
    column,
    each,
    each_known,
    events_of,
    nullable,
    times_of,
)
from ledger.log.usage import StoredReport
from projections.runner import Connection, Projection, Reports, Rule, run

LONG_ROW_US = 10_000_000
"""Shorter rows tell no mean power: the counter of energy moves in steps."""
TEXT_MAX = 200
INVENTORY = "device.inventory"

PROOF_TABLES = """
    CREATE TABLE own.faster (
        node_id text COLLATE "C", position bigint, lease_id text COLLATE "C" NOT NULL,
        at_us bigint NOT NULL, us bigint NOT NULL, PRIMARY KEY (node_id, position));
    COMMENT ON TABLE own.faster IS 'Time that was claimed faster than the clock; by its accrual';
    CREATE TABLE own.held (
        lease_id text COLLATE "C", position bigint, device_ids text[] NOT NULL,
        PRIMARY KEY (lease_id, position));
    COMMENT ON TABLE own.held IS 'Devices of each lease: whose time was claimed, where it was';
    CREATE TABLE own.proof (
        node_id text COLLATE "C", device_id text COLLATE "C", kind text, verdict text NOT NULL,
        rule text, at_us bigint NOT NULL, position bigint, PRIMARY KEY (position));
    CREATE INDEX ON own.proof (node_id, device_id, kind, at_us);
    CREATE TABLE own.quarantined (
        node_id text COLLATE "C" PRIMARY KEY, position bigint NOT NULL, cloned boolean NOT NULL);
    COMMENT ON COLUMN own.quarantined.cloned IS 'Two boots alternated; else two bodies, one number';
"""
_TABLES = (
    PROOF_TABLES
    + """
    CREATE TABLE own.identity (
        node_id text COLLATE "C", device_id text COLLATE "C", told json NOT NULL,
        lane int NOT NULL, position bigint NOT NULL, recorded_us bigint NOT NULL,
        PRIMARY KEY (node_id, device_id));
    COMMENT ON TABLE own.identity IS 'What a node last said of a device in device.inventory';
    CREATE TABLE own.metered (
        node_id text COLLATE "C", device_id text COLLATE "C", board_id text COLLATE "C",
        hour_us bigint, lane int NOT NULL, last_position bigint NOT NULL,
        recorded_us bigint NOT NULL, from_us bigint NOT NULL, to_us bigint NOT NULL,
        rows bigint NOT NULL, available_us bigint NOT NULL, energy_us bigint NOT NULL,
        energy_mj bigint NOT NULL, power_rows bigint NOT NULL, power_mw_min bigint,
        power_mw_max bigint, busy_rows bigint NOT NULL, busy_ppm_min bigint, busy_ppm_max bigint,
        PRIMARY KEY (node_id, device_id, board_id, hour_us)) WITH (fillfactor = 50);
    COMMENT ON COLUMN own.metered.board_id IS 'The device, or of a MIG instance its GPU, as told';
    CREATE INDEX ON own.metered (device_id, hour_us);
    CREATE INDEX ON own.metered (recorded_us);
    CREATE TABLE own.library (
        driver text COLLATE "C", sha256 text COLLATE "C", known boolean NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (driver, sha256));
    CREATE TABLE own.challenge (
        challenge_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        device_id text COLLATE "C" NOT NULL, lease_id text COLLATE "C" NOT NULL,
        at_us bigint NOT NULL, judged_at_us bigint, position bigint NOT NULL);
    CREATE INDEX ON own.challenge (device_id, at_us);
    CREATE INDEX ON own.challenge (position) WHERE judged_at_us IS NULL;
    CREATE TABLE own.epoch (
        epoch int PRIMARY KEY, start_us bigint NOT NULL, end_us bigint NOT NULL);
    CREATE TABLE own.home (
        device_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C", position bigint NOT NULL);
    COMMENT ON TABLE own.home IS 'The node that a device was admitted on; none once it retired';
    CREATE TABLE own.boot (
        node_id text COLLATE "C", boot text COLLATE "C", lane int NOT NULL,
        first_seq bigint NOT NULL, top_mono_us bigint NOT NULL, top_seq bigint NOT NULL,
        recorded_us bigint NOT NULL, PRIMARY KEY (node_id, boot)) WITH (fillfactor = 50);
    COMMENT ON COLUMN own.boot.top_seq IS 'The report in which its monotonic clock came furthest';
    CREATE INDEX ON own.boot (node_id, recorded_us);
    CREATE INDEX ON own.boot (recorded_us);
    CREATE TABLE own.twice (
        device_id text COLLATE "C", first_node_id text COLLATE "C",
        second_node_id text COLLATE "C", position bigint NOT NULL,
        PRIMARY KEY (device_id, first_node_id, second_node_id));
    COMMENT ON TABLE own.twice IS 'Pairs of nodes that metered one device at once, as recorded';
"""
)

PROOF_RULES = (
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, device_ids text[]",
        "INSERT INTO own.held SELECT lease_id, position, device_ids FROM facts",
    ),
    Rule(
        ("node.equivocated.v1", "node.boots_alternated.v1"),
        "node_id text",
        """INSERT INTO own.quarantined
        SELECT DISTINCT ON (node_id) node_id, position, topic = 'node.boots_alternated.v1'
        FROM facts ORDER BY node_id, position ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, node_id text, until_us bigint, refused json",
        """INSERT INTO own.faster
        SELECT f.node_id, f.position, f.lease_id, f.until_us, (r->>'us')::bigint
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.refused) r
        WHERE r->>'rule' = 'faster_than_time'""",
    ),
    Rule(
        ("challenge.judged.v1",),
        "node_id text, device_id text, program text, rule text, at_us bigint",
        """INSERT INTO own.proof
        SELECT node_id, device_id, 'challenge', CASE WHEN rule IS NOT NULL THEN 'failed'
            WHEN program = 'reference' THEN 'passed_reference' ELSE 'passed' END,
            rule, at_us, position FROM facts""",
    ),
    Rule(
        ("trust.device_attested.v1",),
        "node_id text, device_id text, passed boolean, detail text, at_us bigint",
        """INSERT INTO own.proof
        SELECT node_id, device_id, 'attestation', CASE WHEN passed THEN 'passed' ELSE 'failed' END,
            detail, at_us, position FROM facts""",
    ),
)
"""What decides a tier besides reports: with positions, so that it can be asked as of any."""
_RULES = (
    *PROOF_RULES,
    Rule(
        ("epoch.opened.v1",),
        "epoch int, start_us bigint, end_us bigint",
        "INSERT INTO own.epoch SELECT epoch, start_us, end_us FROM facts",
    ),
    Rule(
        ("device.registered.v1", "device.retired.v1"),
        "device_id text, node_id text",
        """INSERT INTO own.home
        SELECT DISTINCT ON (device_id) device_id,
            CASE topic WHEN 'device.registered.v1' THEN node_id END, position
        FROM facts ORDER BY device_id, position DESC
        ON CONFLICT (device_id) DO UPDATE SET node_id = excluded.node_id,
            position = excluded.position""",
    ),
    Rule(
        ("trust.library_known.v1", "trust.library_forgotten.v1"),
        "driver text, sha256 text, at_us bigint",
        """INSERT INTO own.library
        SELECT DISTINCT ON (driver, sha256) driver, sha256, topic = 'trust.library_known.v1',
            at_us, position
        FROM facts ORDER BY driver, sha256, position DESC
        ON CONFLICT (driver, sha256) DO UPDATE SET known = excluded.known, at_us = excluded.at_us,
            position = excluded.position""",
    ),
    Rule(
        ("trust.device_twice.v1",),
        "device_id text, first_node_id text, second_node_id text",
        """INSERT INTO own.twice
        SELECT device_id, first_node_id, second_node_id, min(position) FROM facts
        GROUP BY device_id, first_node_id, second_node_id ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("challenge.issued.v1",),
        "challenge_id text, node_id text, device_id text, lease_id text, at_us bigint",
        """INSERT INTO own.challenge
        SELECT challenge_id, node_id, device_id, lease_id, at_us, NULL, position FROM facts""",
    ),
    Rule(
        ("challenge.judged.v1",),
        "challenge_id text, at_us bigint",
        """UPDATE own.challenge c SET judged_at_us = f.at_us FROM facts f
        WHERE c.challenge_id = f.challenge_id""",
    ),
)


# --- reports ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Hour:
    """Sums and bounds of one device and hour; a bound that nothing was measured for is None."""

    lane: int
    last_position: int
    recorded_us: int
    from_us: int
    to_us: int
    rows: int = 0
    available_us: int = 0
    energy_us: int = 0
    energy_mj: int = 0
    power_rows: int = 0
    power_mw_min: int | None = None
    power_mw_max: int | None = None
    busy_rows: int = 0
    busy_ppm_min: int | None = None
    busy_ppm_max: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One device.inventory event and where it stands."""

    told: dict[str, Any]
    lane: int
    position: int
    recorded_us: int


@dataclass(slots=True)
class Boot:
    """Of one boot of a node: its first report, and the first of those that came furthest."""

    lane: int
    first_seq: int
    top_mono_us: int
    top_seq: int
    recorded_us: int

    def add(self, seq: int, mono_us: int, recorded_us: int) -> None:
        self.first_seq = min(self.first_seq, seq)
        if (mono_us, -seq) > (self.top_mono_us, -self.top_seq):
            self.top_mono_us, self.top_seq = mono_us, seq
        self.recorded_us = max(self.recorded_us, recorded_us)


@dataclass(frozen=True, slots=True)
class Folded:
    hours: dict[tuple[str, str, str, int], Hour]
    identities: dict[tuple[str, str], Told]
    boots: dict[tuple[str, str], Boot]


IDENTITY_FIELDS: dict[str, type] = {
    "name": str,
    "pci_id": str,
    "mem_bytes": int,
    "compute_capability": str,
    "driver": str,
    "library_sha256": str,
    "proc_nvidia": str,
    "power_limit_mw": int,
    "counter_mj": int,
    "integrated_mj": int,
}


def fold(reports: Sequence[StoredReport]) -> Folded:
    """Add up reports in any order: sums, bounds, and the newest identity by position."""
    folded = Folded({}, {}, {})
    for report in reports:
        if report.flags:
            continue
        found = report_rows.read(report.body)
        _add_boot(report, found, folded.boots)
        if found.cols is not None:
            _add_rows(report, found, found.cols, folded.hours)
        _add_identities(report, found, folded.identities)
    return folded


def _add_boot(report: StoredReport, found: ReportRows, boots: dict[tuple[str, str], Boot]) -> None:
    key, seq, at_us = (report.node_id, found.boot), report.node_seq, report.recorded_us
    if key not in boots:
        boots[key] = Boot(report.lane, seq, found.mono_us, seq, at_us)
    boots[key].add(seq, found.mono_us, at_us)


def _add_rows(
    report: StoredReport,
    found: ReportRows,
    cols: DeviceColumns,
    hours: dict[tuple[str, str, str, int], Hour],
) -> None:
    n = found.n
    _, begins, ends = times_of(cols, n, found.offset_us)
    for from_us, to_us, device, available_us, gaps, busy_us, energy_mj in zip(
        begins,
        ends,
        each(cols.device, n),
        each(cols.available_us, n),
        each(column(cols.energy_gaps), n),
        each_known(nullable(cols.busy_us), n),
        each_known(nullable(cols.energy_mj), n),
        strict=True,
    ):
        told = found.devices[device]
        key = (report.node_id, told.id, told.board_id, hour_of(to_us))
        hour = hours.get(key)
        if hour is None:
            hour = hours[key] = Hour(
                report.lane, report.position, report.recorded_us, from_us, to_us
            )
        hour.last_position = max(hour.last_position, report.position)
        hour.recorded_us = max(hour.recorded_us, report.recorded_us)
        hour.from_us, hour.to_us = min(hour.from_us, from_us), max(hour.to_us, to_us)
        hour.rows += 1
        hour.available_us += available_us
        if energy_mj is not None:
            hour.energy_us += available_us
            hour.energy_mj += energy_mj
        if available_us >= LONG_ROW_US:
            _add_bounds(hour, available_us, busy_us, None if gaps else energy_mj)


def _add_bounds(hour: Hour, available_us: int, busy_us: int | None, energy_mj: int | None) -> None:
    if energy_mj is not None:
        power_mw = energy_mj * 1_000_000 // available_us
        hour.power_rows += 1
        hour.power_mw_min = _least(hour.power_mw_min, power_mw)
        hour.power_mw_max = max(hour.power_mw_max or 0, power_mw)
    if busy_us is not None:
        busy_ppm = busy_us * 1_000_000 // available_us
        hour.busy_rows += 1
        hour.busy_ppm_min = _least(hour.busy_ppm_min, busy_ppm)
        hour.busy_ppm_max = max(hour.busy_ppm_max or 0, busy_ppm)


def _least(before: int | None, now: int) -> int:
    return now if before is None else min(before, now)


def _add_identities(
    report: StoredReport, found: ReportRows, identities: dict[tuple[str, str], Told]
) -> None:
    for event in events_of(found, INVENTORY):
        if event.device is None:
            continue
        told = {
            name: value[:TEXT_MAX] if isinstance(value, str) else value
            for name, kind in IDENTITY_FIELDS.items()
            if type(value := event.data.get(name)) is kind
        }
        key = (report.node_id, found.devices[event.device].id)
        before = identities.get(key)
        if before is None or before.position <= report.position:
            identities[key] = Told(told, report.lane, report.position, report.recorded_us)


SUM_MAX = 2**63 - 1
SUMS = ("rows", "available_us", "energy_us", "energy_mj", "power_rows", "busy_rows")
HOUR_COLUMNS = tuple(field.name for field in fields(Hour))
BOUNDS = {
    "power_mw_min": "least",
    "power_mw_max": "greatest",
    "busy_ppm_min": "least",
    "busy_ppm_max": "greatest",
    "last_position": "greatest",
    "recorded_us": "greatest",
    "from_us": "least",
    "to_us": "greatest",
}
HOUR_SUMMED = [f"{n} = least(t.{n}::numeric + excluded.{n}, {SUM_MAX})::bigint" for n in SUMS]
HOUR_SUMMED += [f"{name} = {bound}(t.{name}, excluded.{name})" for name, bound in BOUNDS.items()]
_INT8S = ", ".join(["%s::int8[]"] * len(HOUR_COLUMNS))
_ADD_HOURS = f"""
    INSERT INTO own.metered AS t
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::int8[], {_INT8S})
    ON CONFLICT (node_id, device_id, board_id, hour_us) DO UPDATE SET {", ".join(HOUR_SUMMED)}
"""
_ADD_IDENTITIES = """
    INSERT INTO own.identity AS t
    SELECT * FROM unnest(%s::text[], %s::text[], %s::json[], %s::int4[], %s::int8[], %s::int8[])
    ON CONFLICT (node_id, device_id) DO UPDATE SET told = excluded.told, lane = excluded.lane,
        position = excluded.position, recorded_us = excluded.recorded_us
    WHERE t.position < excluded.position
"""


_ADD_BOOTS = """
    INSERT INTO own.boot AS t
    SELECT * FROM unnest(%s::text[], %s::text[], %s::int4[], %s::int8[], %s::int8[], %s::int8[],
        %s::int8[])
    ON CONFLICT (node_id, boot) DO UPDATE SET
        first_seq = least(t.first_seq, excluded.first_seq),
        top_seq = CASE WHEN t.top_mono_us > excluded.top_mono_us THEN t.top_seq
            WHEN t.top_mono_us < excluded.top_mono_us THEN excluded.top_seq
            ELSE least(t.top_seq, excluded.top_seq) END,
        top_mono_us = greatest(t.top_mono_us, excluded.top_mono_us),
        recorded_us = greatest(t.recorded_us, excluded.recorded_us)
"""


def _apply(connection: Connection, schema: str, folded: Folded) -> None:
    if folded.boots:
        boots = [
            (*key, one.lane, one.first_seq, one.top_mono_us, one.top_seq, one.recorded_us)
            for key, one in folded.boots.items()
        ]
        run(connection, schema, _ADD_BOOTS, *map(list, zip(*boots, strict=True)))
    if folded.hours:
        rows = [
            (*key, *(_bounded(getattr(hour, name)) for name in HOUR_COLUMNS))
            for key, hour in folded.hours.items()
        ]
        run(connection, schema, _ADD_HOURS, *map(list, zip(*rows, strict=True)))
    if folded.identities:
        told = [
            (*key, msgspec.json.encode(one.told).decode(), one.lane, one.position, one.recorded_us)
            for key, one in folded.identities.items()
        ]
        run(connection, schema, _ADD_IDENTITIES, *map(list, zip(*told, strict=True)))


def _bounded(value: int | None) -> int | None:
    return None if value is None else min(value, SUM_MAX)


TRUST = Projection("trust", _TABLES, _RULES, "", Reports(fold, _apply))


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """An epoch, or all time when `epoch` is None: [from_us, to_us)."""

    epoch: int | None
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class Twice:
    """A device that two nodes metered within one hour, and the last report of each there."""

    device_id: str
    first_node_id: str
    first_lane: int
    first_position: int
    second_node_id: str
    second_lane: int
    second_position: int
    seen_us: int


@dataclass(frozen=True, slots=True)
class Alternation:
    """Two boots of one node that each went on after the other had reported."""

    node_id: str
    lane: int
    first_boot: str
    second_boot: str
    first_seq: int
    second_seq: int


_EVER = Span(None, 0, 2**62)
_IDENTITIES = "SELECT device_id, told, lane, position FROM proj_trust.identity WHERE node_id = %s"
_METERED = """
    SELECT device_id, min(lane), max(last_position), sum(rows)::bigint,
        least(sum(available_us), 9e18)::bigint, least(sum(energy_us), 9e18)::bigint,
        least(sum(energy_mj), 9e18)::bigint, sum(power_rows)::bigint,
        coalesce(min(power_mw_min), 0), coalesce(max(power_mw_max), 0), sum(busy_rows)::bigint,
        coalesce(min(busy_ppm_min), 0), coalesce(max(busy_ppm_max), 0)
    FROM proj_trust.metered WHERE node_id = %s AND hour_us >= %s AND hour_us < %s
    GROUP BY device_id
"""
# A device is held against nobody at its home, a MIG instance not where its GPU is at home: else a
# stranger could accuse it by its id alone.
_ELSEWHERE = """
    SELECT m.device_id, array_agg(DISTINCT o.node_id ORDER BY o.node_id)
    FROM proj_trust.metered m JOIN proj_trust.metered o USING (device_id, hour_us)
    LEFT JOIN proj_trust.home h ON h.device_id = m.board_id
    WHERE h.node_id IS DISTINCT FROM m.node_id
        AND m.node_id = %s AND m.hour_us >= %s AND m.hour_us < %s AND o.node_id <> m.node_id
        AND greatest(m.from_us, o.from_us) < least(m.to_us, o.to_us)
    GROUP BY m.device_id
"""
# The devices of the lease that claimed it, and of a GPU that is cut the instances metered then.
_FASTER = """
    WITH claimed AS (
        SELECT unnest(h.device_ids) AS device_id, f.position
        FROM proj_trust.faster f JOIN proj_trust.held h USING (lease_id)
        WHERE f.node_id = %(node)s AND f.at_us >= %(from)s AND f.at_us < %(to)s)
    SELECT device_id, min(position) FROM (
        SELECT device_id, position FROM claimed
        UNION ALL SELECT m.device_id, c.position FROM proj_trust.metered m
        JOIN claimed c ON c.device_id = m.board_id AND m.device_id <> m.board_id
        WHERE m.node_id = %(node)s AND m.hour_us >= %(from)s AND m.hour_us < %(to)s) each
    GROUP BY device_id
"""
_PROOFS = """
    SELECT DISTINCT ON (device_id, kind) device_id, kind, verdict, position FROM proj_trust.proof
    WHERE node_id = %s AND at_us >= %s AND at_us < %s ORDER BY device_id, kind, position DESC
"""
# Both went on after the other had begun: first.begins < second.begins < first.top < second.top.
# A disk that went back brings rows of an earlier boot again, and none that came further.
_ALTERNATIONS = """
    SELECT DISTINCT ON (n.node_id) n.node_id, y.lane, x.boot, y.boot, x.top_seq, y.top_seq
    FROM (SELECT DISTINCT node_id FROM proj_trust.boot WHERE recorded_us >= %(since)s) n
    CROSS JOIN LATERAL (SELECT * FROM proj_trust.boot b WHERE b.node_id = n.node_id
        ORDER BY recorded_us DESC LIMIT %(boots)s) y
    CROSS JOIN LATERAL (SELECT * FROM proj_trust.boot b WHERE b.node_id = n.node_id
        ORDER BY recorded_us DESC LIMIT %(boots)s) x
    WHERE x.first_seq < y.first_seq AND y.first_seq < x.top_seq AND x.top_seq < y.top_seq
        AND NOT EXISTS (SELECT FROM proj_trust.quarantined q WHERE q.node_id = n.node_id)
    ORDER BY n.node_id, y.top_seq LIMIT %(limit)s
"""
BOOTS_MAX = 64
"""Boots of one node that are looked at, the latest ones."""
_PAIRS = """
    SELECT DISTINCT ON (m.device_id, m.node_id, o.node_id) m.device_id, m.node_id, m.lane,
        m.last_position, o.node_id, o.lane, o.last_position, m.hour_us
    FROM proj_trust.metered r JOIN proj_trust.metered m USING (device_id, hour_us)
    JOIN proj_trust.metered o USING (device_id, hour_us)
    LEFT JOIN proj_trust.twice t ON t.device_id = m.device_id
        AND t.first_node_id = m.node_id AND t.second_node_id = o.node_id
    WHERE r.recorded_us >= %s AND m.node_id < o.node_id AND t.position IS NULL
        AND (SELECT count(*) FROM proj_trust.twice x WHERE x.device_id = m.device_id) < %s
        AND greatest(m.from_us, o.from_us) < least(m.to_us, o.to_us)
    ORDER BY m.device_id, m.node_id, o.node_id, m.hour_us LIMIT %s
"""


def read_span(connection: Connection, epoch: int | None) -> Span | None:
    """The epoch; without a number the newest, or all time before there is any."""
    found = connection.execute(
        "SELECT epoch, start_us, end_us FROM proj_trust.epoch"
        " WHERE %(epoch)s::int IS NULL OR epoch = %(epoch)s ORDER BY epoch DESC LIMIT 1",
        {"epoch": epoch},
    ).fetchone()
    if found is None:
        return _EVER if epoch is None else None
    return Span(*found)


def read_libraries(connection: Connection) -> list[tuple[str, str]]:
    """Driver versions and digests of their library that the operator knows, in order."""
    found = connection.execute(
        "SELECT driver, sha256 FROM proj_trust.library WHERE known ORDER BY driver, sha256"
    )
    return [(str(driver), str(digest)) for driver, digest in found]


def read_evidence(connection: Connection, node_id: str, span: Span) -> list[Evidence]:
    """What is known of every device a node has told of or metered in a span, by device."""
    within = (node_id, span.from_us, span.to_us)
    found: dict[str, dict[str, Any]] = {}
    for device_id, told, lane, position in connection.execute(_IDENTITIES, (node_id,)):
        found[device_id] = {"identity": Identity(**told), "told_at": Place(lane, position)}
    for device_id, lane, position, *sums in connection.execute(_METERED, within):
        metered = Metered(**dict(zip(METERED_FIELDS, sums, strict=True)))
        found.setdefault(device_id, {}).update(metered=metered, metered_at=Place(lane, position))
    for device_id, nodes in connection.execute(_ELSEWHERE, within):
        found[device_id]["elsewhere"] = tuple(nodes)
    for device_id, kind, verdict, position in connection.execute(_PROOFS, within):
        when = "challenged_at" if kind == "challenge" else "attested_at"
        found.setdefault(device_id, {}).update({kind: verdict, when: Place(None, position)})
    asked = {"node": node_id, "from": span.from_us, "to": span.to_us}
    for device_id, position in connection.execute(_FASTER, asked):
        found.setdefault(device_id, {})["faster_at"] = Place(None, position)
    quarantined = connection.execute(
        "SELECT cloned FROM proj_trust.quarantined WHERE node_id = %s", (node_id,)
    ).fetchone()
    standing: dict[str, Any] = {
        "quarantined": quarantined == (False,),
        "cloned": quarantined == (True,),
    }
    return [Evidence(device_id=one, **standing, **told) for one, told in sorted(found.items())]


METERED_FIELDS = tuple(field.name for field in fields(Metered))


def read_alternations(connection: Connection, since_us: int, limit: int) -> list[Alternation]:
    """Nodes whose key signs on two machines by turns, not in quarantine yet."""
    asked = {"since": since_us, "boots": BOOTS_MAX, "limit": limit}
    return [Alternation(*row) for row in connection.execute(_ALTERNATIONS, asked)]


def read_pairs(connection: Connection, since_us: int, limit: int) -> list[Twice]:
    """Devices metered by two nodes at once, by reports recorded since then, not recorded yet.

    A device with all the pairs that are ever recorded of it is left out: it would stand before
    the others for ever.
    """
    found = connection.execute(_PAIRS, (since_us, PAIRS_MAX, limit))
    return [Twice(*row) for row in found]
