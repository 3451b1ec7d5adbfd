"""How long was each board there, by what was reported before each cut, and what speaks for it?

    a row of a report counts once: in the first epoch that ends after it and whose cut holds it
    time of a board in one UTC hour <= that hour        over all its reports, devices and epochs
    rows == f(facts up to a position, reports up to the newest pin among them)

A cut names a size of every lane, and each lane is read only as far as a pin in the market log has
named it: so the cut that holds a report is known when the report is read, however far the log goes
on. Reports after an epoch's cut are filed under the next one: what is late is paid later, and never
twice. A row is filed under the UTC hour of its end, as evidence is
(`projections/trust/evidence.py`), and an hour belongs to the epoch in which it begins. A board
whose parts report each for itself was there while any of them was. Nothing is judged here:
`projections/epochs/cut_nodes.py` asks, as of a cut. Source: design economics 8 and 10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple

import msgspec

from domain.metering.counting import is_ahead
from domain.metering.row_times import hour_of
from ledger.log import report_rows, usage_reads
from ledger.log.report_rows import each, times_of
from ledger.log.usage import StoredReport
from projections.runner import Connection, Projection, Reports, Rule, own, run
from projections.trust import evidence as trust
from projections.trust.evidence import HOUR_COLUMNS, HOUR_SUMMED, PROOF_RULES, PROOF_TABLES, SUM_MAX

_TABLES = (
    PROOF_TABLES
    + """
    CREATE TABLE own.epoch (
        epoch int PRIMARY KEY, start_us bigint NOT NULL, end_us bigint NOT NULL);
    CREATE TABLE own.closing (position bigint PRIMARY KEY, epoch int NOT NULL);
    CREATE TABLE own.cut (
        epoch int, lane int, size bigint NOT NULL, PRIMARY KEY (epoch, lane));
    COMMENT ON TABLE own.cut IS 'Reports of a lane up to `size` are in the cut of an epoch';
    CREATE TABLE own.pinned (lane int PRIMARY KEY, size bigint NOT NULL);
    COMMENT ON TABLE own.pinned IS 'Every later cut holds at least these reports';
    CREATE TABLE own.provider (
        provider_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL);
    CREATE TABLE own.node (
        node_id text COLLATE "C" PRIMARY KEY, provider_id text COLLATE "C" NOT NULL,
        position bigint NOT NULL);
    CREATE TABLE own.registered (
        device_id text COLLATE "C", node_id text COLLATE "C", hardware_class text NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (device_id, node_id));
    COMMENT ON TABLE own.registered IS 'The first time that a node had a device';
    CREATE TABLE own.home (
        device_id text COLLATE "C", position bigint, node_id text COLLATE "C",
        PRIMARY KEY (device_id, position));
    COMMENT ON TABLE own.home IS 'The node that a device was on from a position; none: it retired';
    CREATE TABLE own.library (
        driver text COLLATE "C", sha256 text COLLATE "C", position bigint, known boolean NOT NULL,
        PRIMARY KEY (driver, sha256, position));
    CREATE TABLE own.identity (
        node_id text COLLATE "C", device_id text COLLATE "C", cut int, told json NOT NULL,
        lane int NOT NULL, position bigint NOT NULL, recorded_us bigint NOT NULL,
        PRIMARY KEY (node_id, device_id, cut));
    CREATE TABLE own.metered (
        node_id text COLLATE "C", device_id text COLLATE "C", board_id text COLLATE "C",
        hour_us bigint, cut int, lane int NOT NULL, last_position bigint NOT NULL,
        recorded_us bigint NOT NULL, from_us bigint NOT NULL, to_us bigint NOT NULL,
        rows bigint NOT NULL, available_us bigint NOT NULL, energy_us bigint NOT NULL,
        energy_mj bigint NOT NULL, power_rows bigint NOT NULL, power_mw_min bigint,
        power_mw_max bigint, busy_rows bigint NOT NULL, busy_ppm_min bigint, busy_ppm_max bigint,
        PRIMARY KEY (node_id, device_id, board_id, hour_us, cut)) WITH (fillfactor = 50);
    COMMENT ON COLUMN own.metered.cut IS 'The first epoch whose cut holds these reports';
    CREATE INDEX ON own.metered USING brin (hour_us, cut) WITH (pages_per_range = 32);
    CREATE TABLE own.there (
        node_id text COLLATE "C", board_id text COLLATE "C", device_id text COLLATE "C",
        hour_us bigint, cut int, us bigint NOT NULL,
        PRIMARY KEY (node_id, board_id, device_id, hour_us, cut)) WITH (fillfactor = 50);
    COMMENT ON TABLE own.there IS 'Available time, counted once where leases share a device';
    CREATE INDEX ON own.there USING brin (hour_us, cut) WITH (pages_per_range = 32);
"""
)

_RULES = (
    *PROOF_RULES,
    Rule(
        ("epoch.opened.v1",),
        "epoch int, start_us bigint, end_us bigint",
        "INSERT INTO own.epoch SELECT epoch, start_us, end_us FROM facts",
    ),
    Rule(
        ("epoch.closing.v1",),
        "epoch int",
        "INSERT INTO own.closing SELECT position, epoch FROM facts",
    ),
    # The pin of a cut stands right after the closing, in the same append.
    Rule(
        ("usage.pinned.v1",),
        "lanes json",
        """INSERT INTO own.cut
        SELECT c.epoch, (lane->>'lane')::int, (lane->>'size')::bigint
        FROM facts f JOIN own.closing c ON c.position = f.position - 1
        CROSS JOIN LATERAL json_array_elements(f.lanes) lane""",
    ),
    Rule(
        ("usage.pinned.v1",),
        "lanes json",
        """INSERT INTO own.pinned AS p
        SELECT (lane->>'lane')::int, max((lane->>'size')::bigint)
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.lanes) lane GROUP BY 1
        ON CONFLICT (lane) DO UPDATE SET size = greatest(p.size, excluded.size)""",
    ),
    Rule(
        ("provider.registered.v1",),
        "provider_id text, account_id text",
        """INSERT INTO own.provider SELECT provider_id, account_id FROM facts
        ON CONFLICT (provider_id) DO NOTHING""",
    ),
    Rule(
        ("node.join_requested.v1",),
        "node_id text, provider_id text",
        """INSERT INTO own.node
        SELECT DISTINCT ON (node_id) node_id, provider_id, position FROM facts
        ORDER BY node_id, position ON CONFLICT (node_id) DO NOTHING""",
    ),
    Rule(
        ("device.registered.v1",),
        "device_id text, node_id text, gpu_class text, at_us bigint",
        """INSERT INTO own.registered
        SELECT DISTINCT ON (device_id, node_id) device_id, node_id, coalesce(gpu_class, ''),
            at_us, position
        FROM facts ORDER BY device_id, node_id, position ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("device.registered.v1", "device.retired.v1"),
        "device_id text, node_id text",
        """INSERT INTO own.home
        SELECT device_id, position, CASE topic WHEN 'device.registered.v1' THEN node_id END
        FROM facts""",
    ),
    Rule(
        ("trust.library_known.v1", "trust.library_forgotten.v1"),
        "driver text, sha256 text",
        """INSERT INTO own.library
        SELECT driver, sha256, position, topic = 'trust.library_known.v1' FROM facts""",
    ),
)

HEADS = f"""(
    SELECT h.lane, least(h.pos, coalesce(n.size, 0)) AS pos
    FROM {usage_reads.HEADS} h LEFT JOIN own.pinned n USING (lane))"""
"""Only what a pin has named: everything in it is in every later cut."""

_CUTS = "SELECT lane, epoch, size FROM own.cut WHERE lane = ANY(%s) ORDER BY lane, epoch"
_BOUNDS = ", ".join(["%s::int8[]"] * len(HOUR_COLUMNS))
_ADD_HOURS = f"""
    INSERT INTO own.metered AS t
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::int8[], %s::int4[], {_BOUNDS})
    ON CONFLICT (node_id, device_id, board_id, hour_us, cut) DO UPDATE
    SET {", ".join(HOUR_SUMMED)}
"""
_ADD_IDENTITIES = """
    INSERT INTO own.identity AS t
    SELECT * FROM unnest(%s::text[], %s::text[], %s::int4[], %s::json[], %s::int4[], %s::int8[],
        %s::int8[])
    ON CONFLICT (node_id, device_id, cut) DO UPDATE SET told = excluded.told,
        lane = excluded.lane, position = excluded.position, recorded_us = excluded.recorded_us
    WHERE t.position < excluded.position
"""
_ADD_THERE = f"""
    INSERT INTO own.there AS t
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::int8[], %s::int4[], %s::int8[])
    ON CONFLICT (node_id, board_id, device_id, hour_us, cut) DO UPDATE
    SET us = least(t.us::numeric + excluded.us, {SUM_MAX})::bigint
"""


def _apply(connection: Connection, schema: str, reports: Sequence[StoredReport]) -> None:
    for cut, held in _by_cut(connection, schema, reports).items():
        folded = trust.fold(held)
        hours = [
            (
                *key,
                cut,
                *(None if value is None else min(value, SUM_MAX) for value in astuple(hour)),
            )
            for key, hour in folded.hours.items()
        ]
        told = [
            (
                *key,
                cut,
                msgspec.json.encode(one.told).decode(),
                one.lane,
                one.position,
                one.recorded_us,
            )
            for key, one in folded.identities.items()
        ]
        there = [(*key, cut, min(us, SUM_MAX)) for key, us in fold_there(held).items()]
        for sql, rows in ((_ADD_HOURS, hours), (_ADD_IDENTITIES, told), (_ADD_THERE, there)):
            if rows:
                run(connection, schema, sql, *map(list, zip(*rows, strict=True)))


def _by_cut(
    connection: Connection, schema: str, reports: Iterable[StoredReport]
) -> dict[int, list[StoredReport]]:
    """Reports by the first epoch whose cut holds them; the open one if none does yet."""
    lanes = sorted({report.lane for report in reports})
    cuts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for lane, epoch, size in connection.execute(own(schema, _CUTS), (lanes,)):
        cuts[lane].append((epoch, size))
    held: dict[int, list[StoredReport]] = defaultdict(list)
    for report in reports:
        missed = (epoch for epoch, size in cuts[report.lane] if size < report.position)
        held[max(missed, default=0) + 1].append(report)
    return held


def fold_there(reports: Iterable[StoredReport]) -> dict[tuple[str, str, str, int], int]:
    """Available time by (node, board, device, hour), in any order of reports.

    Rows of one report that cover the same moments of one device, as those of two leases that share
    it, count once. A row that ends after its own receipt says nothing.
    """
    sums: dict[tuple[str, str, str, int], int] = defaultdict(int)
    for report in reports:
        if report.flags:
            continue
        found = report_rows.read(report.body)
        cols, n = found.cols, found.n
        if cols is None:
            continue
        reached: dict[str, int] = {}
        starts, _, ends = times_of(cols, n, found.offset_us)
        for start_us, until_us, device, length_us, available_us in zip(
            starts,
            ends,
            each(cols.device, n),
            each(cols.len_us, n),
            each(cols.available_us, n),
            strict=True,
        ):
            one, end_us = found.devices[device], start_us + length_us
            fresh_us = min(available_us, end_us - max(start_us, reached.get(one.id, 0)))
            if fresh_us <= 0 or is_ahead(until_us, report.recorded_us):
                continue
            reached[one.id] = end_us
            sums[report.node_id, one.board_id, one.id, hour_of(until_us)] += fresh_us
    return sums


AVAILABILITY = Projection("availability", _TABLES, _RULES, "", Reports(list, _apply, HEADS))
