"""From steps to rows: the time of one device, cut at the edges that money depends on.

    sum of len_us over the rows of one lease slot == elapsed time of the steps
    available_us + unavailable_us + unknown_us == len_us          for every row

A row belongs to one (device, lease), or to no lease when idle. Leases that share a device get a row
each over the same time, at their share; counters that only the whole board has are then split by
share and marked so, and gauges that cannot be told apart are None. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from domain.metering import report
from node_reporter.clock import ClockOffset
from node_reporter.gpus.seam import Device
from node_reporter.meter import leases
from node_reporter.meter.leases import Window
from node_reporter.meter.meter import Bucket, Step, split

WALL_JUMP_US = 1_000_000
"""The step in which a wall clock leaps by more is a row of its own: what comes before and behind it
keeps its place in time, and at most one step is filed where nobody can pay for it."""
ENDED_BY_NOTHING = ("tick", "fault", "shutdown")
"""Reasons that are no edge of accrual: rows ended by them may be joined again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A row that does not know yet at which index of a report its device and lease will stand.

    `row.device` and `row.lease` are placeholders until `place`. `boot_minus_mono_us` is how long
    the machine was suspended until the row began; None: not known.
    """

    device: report.Device
    lease: str | None
    row: report.Row
    boot_minus_mono_us: int | None = None
    clock: ClockOffset | None = None
    """The offset its edges were found by, which its report has to tell; None: none was known."""

    @property
    def wall_minus_boot_us(self) -> int | None:
        """The node's wall clock at the start against the clock that nobody sets: rows on either
        side of a wall clock that was set differ in it, and cannot share a report's clock offset.
        """
        if self.boot_minus_mono_us is None:
            return None
        return self.row.wall_minus_mono_us - self.boot_minus_mono_us


def rows_of(
    device: Device,
    steps: Sequence[Step],
    windows: Sequence[Window],
    clock: ClockOffset | None,
    reason: str,
    wall_minus_boot_us: int | None = None,
) -> list[Stretch]:
    """The rows of one device for these adjoining steps; the last one ends for `reason`.

    `windows` are in server time; `clock` is server minus node by the wall clock as it stands
    against the boot clock now, `wall_minus_boot_us`: steps from before it was set are placed by the
    clock of their own time. None: it was never set.
    """
    if not steps:
        return []
    own = leases.of_device(windows, device.id)
    stretches: list[Stretch] = []
    server = ServerTime(0 if clock is None else clock.offset_us, wall_minus_boot_us)
    for part, why, offset_us in _parts(steps, own, server, reason):
        server_us = part[0].start_us + part[0].wall_from_us + offset_us
        cut_by = None if clock is None else replace(clock, offset_us=offset_us)
        tenants = [window for window in own if window.covers(server_us)]
        stretches += [_leased(device, window, part, why, cut_by) for window in tenants]
        if not tenants:
            row = _row(part, why, report.PPM)
            stretches.append(_stretch(device.reported(), None, row, part, cut_by))
    return stretches


@dataclass(slots=True)
class ServerTime:
    """The server's time of steps in their order, whatever was done to the wall clock since."""

    clock_offset_us: int
    wall_minus_boot_us: int | None
    _set_by_us: int = 0

    def offset_us(self, step: Step) -> int:
        """Server time minus the wall clock of the step: one value until somebody sets the clock."""
        if self.wall_minus_boot_us is not None:
            set_by_us = self.wall_minus_boot_us - (step.wall_from_us - step.boot_from_us)
            if abs(set_by_us - self._set_by_us) > WALL_JUMP_US:
                self._set_by_us = set_by_us if abs(set_by_us) > WALL_JUMP_US else 0
        return self.clock_offset_us + self._set_by_us


def place(
    stretches: Iterable[Stretch],
) -> tuple[tuple[report.Device, ...], tuple[str, ...], tuple[report.Row, ...]]:
    """Devices, leases and sorted rows of one report. Raises nothing: bounds are the caller's."""
    stretches = list(stretches)
    devices = tuple(dict.fromkeys(stretch.device for stretch in stretches))
    lease_ids = tuple(dict.fromkeys(s.lease for s in stretches if s.lease is not None))
    device_index = {device: index for index, device in enumerate(devices)}
    lease_index = {lease: index for index, lease in enumerate(lease_ids)}
    rows = [
        replace(
            stretch.row,
            device=device_index[stretch.device],
            lease=None if stretch.lease is None else lease_index[stretch.lease],
        )
        for stretch in stretches
    ]
    rows.sort(key=lambda r: (r.mono_start_us, r.device, r.lease is None, r.lease or 0))
    return devices, lease_ids, tuple(rows)


def merge(first: Stretch, second: Stretch) -> Stretch | None:
    """Both as one row where nothing that anybody files or pays by separates them, else None.

    Never across the edge of a lease or an hour, a gap, a reshape, or a wall clock that was set. The
    server's times of the ends stay what they were.
    """
    a, b = first.row, second.row
    moved_us = apart_us(second, first.clock)
    if (first.device, first.lease, a.driver_epoch) != (second.device, second.lease, b.driver_epoch):
        return None
    if a.reason not in ENDED_BY_NOTHING or a.mono_end_us != b.mono_start_us:
        return None
    if max(abs(a.wall_slew_us), abs(b.wall_slew_us), abs(moved_us)) > WALL_JUMP_US:
        return None
    if a.len_us + b.len_us > leases.HOUR_US:
        return None
    row = replace(
        a,
        len_us=a.len_us + b.len_us,
        wall_slew_us=b.wall_end_us + moved_us - a.wall_start_us - a.len_us - b.len_us,
        available_us=a.available_us + b.available_us,
        unavailable_us=a.unavailable_us + b.unavailable_us,
        unknown_us=a.unknown_us + b.unknown_us,
        suspended_us=a.suspended_us + b.suspended_us,
        samples=a.samples + b.samples,
        busy_us=_sum((a.busy_us, b.busy_us)),
        mem_byte_s=_sum((a.mem_byte_s, b.mem_byte_s)),
        energy_mj=_sum((a.energy_mj, b.energy_mj)),
        energy_gaps=a.energy_gaps + b.energy_gaps,
        throttle_power_ns=_sum((a.throttle_power_ns, b.throttle_power_ns)),
        throttle_thermal_ns=_sum((a.throttle_thermal_ns, b.throttle_thermal_ns)),
        reason=b.reason,
    )
    return replace(first, row=row)


def apart_us(stretch: Stretch, clock: ClockOffset | None) -> int:
    """How much later than by `clock` the server's times of a row are by the one it was cut by."""
    if stretch.clock is None or clock is None:
        return 0
    return stretch.clock.offset_us - clock.offset_us


def _parts(
    steps: Sequence[Step], windows: Sequence[Window], server: ServerTime, reason: str
) -> list[tuple[list[Step], str, int]]:
    """Runs of steps that make one row each, why each run ends, and its clock's offset.

    A wall clock that is set leaps within one step, which ends its run: a run has one offset. Where
    it leaps forward by less, an edge that it passed over ends the run.
    """
    at_lease = leases.lease_edges(windows)
    parts: list[tuple[list[Step], str, int]] = []
    open_part: list[Step] = []
    offset_us = open_offset_us = ended_us = 0
    for step in steps:
        offset_us = server.offset_us(step)
        to_server_us = step.wall_from_us + offset_us
        starts_us = step.start_us + to_server_us
        if open_part and (passed := leases.edges(windows, ended_us, starts_us + 1)):
            parts.append((open_part, _edge_named(passed, at_lease), open_offset_us))
            open_part = []
        ended_us = step.end_us + to_server_us
        for piece, edge_us in _pieces(step, windows, to_server_us):
            jumped = abs(piece.wall_to_us - piece.wall_from_us) > WALL_JUMP_US
            if jumped and open_part:
                parts.append((open_part, "tick", open_offset_us))
                open_part = []
            open_offset_us = open_offset_us if open_part else offset_us
            open_part.append(piece)
            at_edge = None if edge_us is None else _edge_named([edge_us], at_lease)
            why = "gap" if step.closes == "gap" else at_edge or piece.closes
            why = why or ("tick" if jumped else None)
            if why:
                parts.append((open_part, why, open_offset_us))
                open_part = []
    if open_part:
        parts.append((open_part, reason, open_offset_us))
    return parts


def _edge_named(edges_us: Iterable[int], at_lease: set[int]) -> str:
    return "hour" if at_lease.isdisjoint(edges_us) else "lease"


def _pieces(
    step: Step, windows: Sequence[Window], to_server_us: int
) -> list[tuple[Step, int | None]]:
    """The step cut at every edge in it, each piece with the edge it ends at, if any.

    An edge met exactly by the end of a step ends its row too. `to_server_us`: from its monotonic
    time to the server's.
    """
    start_us, end_us = step.start_us + to_server_us, step.end_us + to_server_us
    pieces: list[tuple[Step, int | None]] = []
    for edge_us in leases.edges(windows, start_us, end_us + 1):
        if edge_us == end_us:
            return [*pieces, (step, edge_us)]
        piece, step = split(step, edge_us - to_server_us)
        pieces.append((piece, edge_us))
    return [*pieces, (step, None)]


def _leased(
    device: Device, window: Window, part: Sequence[Step], why: str, clock: ClockOffset | None
) -> Stretch:
    shared = window.share_ppm != report.PPM
    described = replace(device.reported(), shape=_shape(device.reported().shape, window))
    if shared:
        described = replace(
            described,
            share_ppm=window.share_ppm,
            mem_ppm=window.mem_ppm,
            busy_source="none",
            energy_scope="none" if described.energy_scope == "none" else "board_share",
        )
    row = _row(part, why, window.share_ppm)
    if shared:
        row = replace(
            row, busy_us=None, mem_byte_s=None, throttle_power_ns=None, throttle_thermal_ns=None
        )
    return _stretch(described, window.lease_id, row, part, clock)


def _stretch(
    device: report.Device,
    lease: str | None,
    row: report.Row,
    part: Sequence[Step],
    clock: ClockOffset | None,
) -> Stretch:
    return Stretch(
        device=device, lease=lease, row=row, boot_minus_mono_us=part[0].boot_from_us, clock=clock
    )


def _shape(shape: str, window: Window) -> str:
    """A lease on a part of a whole board says how it shares it: a MIG instance, a percentage of MPS
    threads, or else a time slice, its weight out of 100,000.

    The form allows six digits, so weight and total are written in tens of ppm, rounded down and
    never 0; the exact share stands in `share_ppm`.
    """
    if shape != "whole":
        return shape  # the reader can tell a part of a board by itself
    if window.mode == "mig" and window.mig_profile is not None:
        return f"mig:{window.mig_profile}"
    if window.share_ppm == report.PPM:
        return shape
    if window.mode == "mps" and window.share_ppm % _PERCENT_PPM == 0:
        return f"mps:{window.share_ppm // _PERCENT_PPM}"
    if window.mode == "time_slice":
        return f"ts:1/{min(_TOTAL_MAX, report.PPM // window.share_ppm)}"
    return f"ts:{max(1, window.share_ppm // 10)}/{report.PPM // 10}"


_PERCENT_PPM = 10_000
_TOTAL_MAX = 999_999


def _row(part: Sequence[Step], why: str, share_ppm: int) -> report.Row:
    first, last = part[0], part[-1]
    assert all(a.end_us == b.start_us for a, b in pairwise(part)), "steps must adjoin"
    energy_mj = _sum(step.energy_mj for step in part)
    mem_byte_us = _sum(step.mem_byte_us for step in part)
    return report.Row(
        device=0,
        lease=None,
        driver_epoch=first.driver_epoch,
        mono_start_us=first.start_us,
        len_us=last.end_us - first.start_us,
        wall_minus_mono_us=first.wall_from_us,
        wall_slew_us=last.wall_to_us - first.wall_from_us,
        available_us=_bucket_us(part, Bucket.AVAILABLE),
        unavailable_us=_bucket_us(part, Bucket.UNAVAILABLE),
        unknown_us=_bucket_us(part, Bucket.UNKNOWN),
        suspended_us=sum(step.suspended_us for step in part),
        samples=sum(step.samples for step in part),
        busy_us=_sum(step.busy_us for step in part),
        mem_byte_s=None if mem_byte_us is None else mem_byte_us // 1_000_000,
        energy_mj=None if energy_mj is None else energy_mj * share_ppm // report.PPM,
        energy_gaps=sum(step.energy_gaps for step in part),
        throttle_power_ns=_sum(step.throttle_power_ns for step in part),
        throttle_thermal_ns=_sum(step.throttle_thermal_ns for step in part),
        reason=why,
    )


def _bucket_us(part: Sequence[Step], bucket: Bucket) -> int:
    return sum(step.len_us for step in part if step.bucket is bucket)


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
