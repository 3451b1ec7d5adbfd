"""The accrual job: from signed reports in the usage log to lease hours in the market log.

For each lease it reads the node's reports that are not consumed yet, hands their rows to the
domain and records what the domain decides. It keeps no cursor of its own: what was read is in the
`UsageAccrued` facts, so a crash between the two logs is harmless and a repeated run adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psycopg

from domain.accrual import UsageRow
from domain.lease import (
    FUNDS_ENDED,
    HOUR_US,
    START_TIMEOUT,
    TERM_REACHED,
    AccrueUsage,
    CloseLease,
    Lease,
    SettleLease,
    refill_due,
)
from domain.refusal import Reason, Refused
from domain.report import lane_of
from domain.stream import Stream
from ledger.handle import Ledger
from ledger.usage import StoredReport, reports_of_node

PATIENCE_US = 600_000_000
"""How long a finished hour waits for its last report before it is accrued without it."""

SKEW_US = HOUR_US
"""How far the clocks of two servers may be apart: reports this much older than a lease are read."""

_NODE_SEQ_AT = """
    SELECT node_seq FROM usage_key
    WHERE lane = %s AND node_id = %s AND position <= %s
    ORDER BY node_seq DESC LIMIT 1
"""
_LANE_HEAD = "SELECT pos FROM usage_head WHERE lane = %s"
_RECEIVED = "SELECT recorded_us FROM usage_event WHERE lane = %s AND position = %s"


class _Device(msgspec.Struct, gc=False):
    id: str
    share_ppm: int


class _Cols(msgspec.Struct, gc=False):
    device: int | list[int]
    lease: int | list[int | None] | None
    step_us: int | list[int]
    len_us: int | list[int]
    wall_minus_mono_us: int | list[int]
    wall_slew_us: int | list[int]
    available_us: int | list[int]


class _Report(msgspec.Struct, gc=False):
    boot: str
    devices: list[_Device]
    leases: list[str]
    n: int
    clock_offset_us: int | None = None
    cols: _Cols | None = None


_decode = msgspec.json.Decoder(_Report).decode


def rows_of(report: StoredReport) -> dict[str, list[UsageRow]]:
    """The rows of a clean report by lease, with wall time corrected to the server's clock.

    The form was checked when the report came in; a flagged report earns nothing.
    """
    if report.flags:
        return {}
    read = _decode(report.signed)
    cols, n = read.cols, read.n
    if cols is None:
        return {}
    offset_us = read.clock_offset_us or 0
    found: dict[str, list[UsageRow]] = {}
    start_us = 0
    for device, lease, step_us, len_us, wall_us, slew_us, available_us in zip(
        *(_column(value, n) for value in (
            cols.device, cols.lease, cols.step_us, cols.len_us, cols.wall_minus_mono_us,
            cols.wall_slew_us, cols.available_us,
        )),
        strict=True,
    ):  # fmt: skip
        start_us += step_us
        if lease is None:
            continue
        wall_start_us = start_us + wall_us + offset_us
        found.setdefault(read.leases[lease], []).append(
            UsageRow(
                position=report.position,
                device_id=read.devices[device].id,
                boot=read.boot,
                mono_start_us=start_us,
                mono_end_us=start_us + len_us,
                wall_start_us=wall_start_us,
                wall_end_us=wall_start_us + len_us + slew_us,
                available_us=available_us,
                share_ppm=read.devices[device].share_ppm,
                received_us=report.recorded_us,
            )
        )
    return found


def _column(value: Any, n: int) -> Sequence[Any]:
    return value if isinstance(value, list) else [value] * n


@dataclass(slots=True)
class NodeReader:
    """Reads a node's reports once for all of its leases in one run of the job."""

    connection: psycopg.Connection[Any]
    _reports: dict[str, list[tuple[int, dict[str, list[UsageRow]]]]] = field(default_factory=dict)
    _read_from: dict[str, int] = field(default_factory=dict)
    _heads: dict[int, int] = field(default_factory=dict)

    def head(self, lane: int) -> int:
        """How far the lane is read in this run: fixed at the first look."""
        if lane not in self._heads:
            row = self.connection.execute(_LANE_HEAD, (lane,)).fetchone()
            assert row is not None
            self._heads[lane] = row[0]
        return self._heads[lane]

    def received_before(self, lane: int, at_us: int) -> int:
        """The last position of a lane received before a moment; 0 when there is none.

        Times of receipt never fall along a lane, so a bisection needs no index of its own.
        """
        low, high = 0, self.head(lane)
        while low < high:
            middle = (low + high + 1) // 2
            row = self.connection.execute(_RECEIVED, (lane, middle)).fetchone()
            assert row is not None, (lane, middle)
            low, high = (middle, high) if row[0] < at_us else (low, middle - 1)
        return low

    def rows(self, node_id: str, lease_id: str, after_position: int) -> tuple[UsageRow, ...]:
        """The lease's rows of every report of the node after a lane position, in lane order."""
        if self._read_from.get(node_id, after_position + 1) > after_position:
            self._read(node_id, after_position)
        return tuple(
            row
            for position, by_lease in self._reports[node_id]
            if position > after_position
            for row in by_lease.get(lease_id, ())
        )

    def reports(
        self, node_id: str, after_position: int, until_position: int
    ) -> Iterator[StoredReport]:
        """A node's reports with after < lane position <= until, in order."""
        found = (lane_of(node_id), node_id, after_position)
        known = self.connection.execute(_NODE_SEQ_AT, found).fetchone()
        after_seq = 0 if known is None else known[0]
        while batch := reports_of_node(self.connection, node_id, after_seq):
            yield from (one for one in batch if one.position <= until_position)
            if batch[-1].position > until_position:
                return
            after_seq = batch[-1].node_seq

    def _read(self, node_id: str, after_position: int) -> None:
        found = self.reports(node_id, after_position, self.head(lane_of(node_id)))
        self._reports[node_id] = [(one.position, rows_of(one)) for one in found]
        self._read_from[node_id] = after_position


def due_commands(
    lease: Lease, lease_id: str, reader: NodeReader, now_us: int, patience_us: int = PATIENCE_US
) -> list[Any]:
    """What is due for one lease now: the end of its start timeout, funds or term, finished hours,
    settlement.
    """
    if lease.status == "reserved" and now_us >= lease.ready_until_us:
        return [
            CloseLease(
                lease_id=lease_id, closed_at_us=lease.ready_until_us, party="job",
                code=START_TIMEOUT, at_us=now_us,
            )
        ]  # fmt: skip
    if lease.status not in ("active", "closing") or lease.opened is None:
        return []
    commands: list[Any] = []
    end_us = lease.window_end_us
    is_over = lease.closed is not None
    refill = refill_due(lease, lease_id, now_us)
    if refill is not None:
        commands.append(refill)
    if not is_over and end_us <= now_us:
        by_term = lease.opened.term_end_us == end_us
        commands.append(
            CloseLease(
                lease_id=lease_id,
                closed_at_us=end_us,
                party="job",
                code=TERM_REACHED if by_term else FUNDS_ENDED,
                at_us=now_us,
            )
        )
        is_over = True
    until_us = lease.opened.opened_at_us + (lease.hours_accrued + 1) * HOUR_US
    if not is_over and until_us > now_us:
        return commands
    command = unread(lease, lease_id, reader, now_us)
    reached = _reached(lease, command.rows)
    while until_us < end_us and until_us <= now_us:
        if reached < until_us and now_us < until_us + patience_us:
            return commands
        commands.append(command)
        until_us += HOUR_US
    if is_over:
        commands.append(
            SettleLease(
                lease_id=lease_id, lane=command.lane, usage_position=command.usage_position,
                rows=command.rows, at_us=now_us,
            )
        )  # fmt: skip
    return commands


def first_unread(lease: Lease, reader: NodeReader) -> int:
    """The lane position after which the reports lie that hold rows not consumed yet."""
    assert lease.reserved is not None
    if lease.usage_position:
        return lease.resume_position
    # Nothing read yet: no report can name a lease before it is there.
    return reader.received_before(lane_of(lease.reserved.node_id), lease.reserved.at_us - SKEW_US)


def unread(lease: Lease, lease_id: str, reader: NodeReader, now_us: int) -> AccrueUsage:
    """Everything received and not consumed yet, as the command that would accrue it."""
    assert lease.reserved is not None
    node_id = lease.reserved.node_id
    lane = lane_of(node_id)
    return AccrueUsage(
        lease_id=lease_id, lane=lane, usage_position=max(reader.head(lane), lease.usage_position),
        rows=reader.rows(node_id, lease_id, first_unread(lease, reader)), at_us=now_us,
    )  # fmt: skip


def _reached(lease: Lease, rows: Iterable[UsageRow]) -> int:
    """The moment up to which every device of the lease has reported."""
    assert lease.reserved is not None
    ends = dict.fromkeys(lease.reserved.device_ids, 0)
    ends.update({mark.device_id: mark.wall_end_us for mark in lease.marks})
    for row in rows:
        if row.device_id in ends:
            ends[row.device_id] = max(ends[row.device_id], row.wall_end_us)
    return min(ends.values())


def accrue(
    ledger: Ledger,
    connection: psycopg.Connection[Any],
    lease_ids: Iterable[str],
    now_us: int,
    *,
    patience_us: int = PATIENCE_US,
    on_stopped: Callable[[str, Exception], None] | None = None,
) -> int:
    """Record what is due for each lease; returns how many commands took effect.

    A lease whose accrual fails stops by itself: the others go on, and `on_stopped` is told. That
    a closed lease still waits for reports is no failure.
    """
    reader = NodeReader(connection)
    done = 0
    for lease_id in lease_ids:
        try:
            state = ledger.market.load(Stream("lease", lease_id)).state
            for command in due_commands(state, lease_id, reader, now_us, patience_us):
                ledger.handle(command, key=None, now_us=now_us)
                done += 1
        except Refused as refused:
            if refused.reason is not Reason.USAGE_INCOMPLETE:
                _stopped(on_stopped, lease_id, refused)
        except Exception as error:
            _stopped(on_stopped, lease_id, error)
    return done


def _stopped(
    on_stopped: Callable[[str, Exception], None] | None, lease_id: str, error: Exception
) -> None:
    if on_stopped is None:
        raise error
    on_stopped(lease_id, error)
