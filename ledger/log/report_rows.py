"""The one reader of stored reports: what a node signed, in columns, and the rows leases earn by.

    row for row, column for column      what `domain/metering/report.py` reads of the same bytes

Only what was judged at the door comes here: a report whose form was broken bears a flag, and nobody
reads its rows. A column that few need is decoded when they ask for it. Columns and kinds of rows
that a later version adds are nothing to those who do not ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

import msgspec

from domain.hardware.capacity import Span
from domain.metering.counting import UsageRow, is_ahead
from domain.metering.resources import AMOUNTS, MeteredRow, amount_of
from domain.metering.row_times import Times, row_times, until_of
from domain.record import dataclass
from ledger.log.usage import StoredReport, signed_of

Column = int | list[int]
"""A column as it is told: one value where all rows have the same."""
Nullable = int | list[int | None] | None
"""None stands for what could not be measured."""
_ABSENT = msgspec.Raw(b"null")

_MIG = "MIG-"


class Device(msgspec.Struct, gc=False):
    """A device of a report, as far as anybody reads it."""

    id: str
    share_ppm: int
    parent: str | None = None

    @property
    def leased_id(self) -> str:
        """What a lease names: the board, whatever instance of it the time was counted on."""
        return self.parent or self.id

    @property
    def board_id(self) -> str:
        """What is admitted on a node: of a MIG instance the GPU that it is cut from."""
        return self.parent or self.id if self.id.startswith(_MIG) else self.id


class Event(msgspec.Struct, gc=False):
    """What a node tells beside its rows."""

    type: str
    device: int | None
    data: dict[str, int | str | bool | None]


class TimeColumns(msgspec.Struct, gc=False):
    """What every kind of rows tells: when each of them ran."""

    step_us: Column
    len_us: Column
    wall_minus_mono_us: Column
    wall_slew_us: Column


class DeviceColumns(TimeColumns, gc=False):
    """The rows of devices. What only some readers add up is read when they ask for it."""

    device: Column
    lease: Nullable
    available_us: Column
    driver_epoch: msgspec.Raw = _ABSENT
    unavailable_us: msgspec.Raw = _ABSENT
    unknown_us: msgspec.Raw = _ABSENT
    suspended_us: msgspec.Raw = _ABSENT
    samples: msgspec.Raw = _ABSENT
    busy_us: msgspec.Raw = _ABSENT
    mem_byte_s: msgspec.Raw = _ABSENT
    energy_mj: msgspec.Raw = _ABSENT
    energy_gaps: msgspec.Raw = _ABSENT
    throttle_power_ns: msgspec.Raw = _ABSENT
    throttle_thermal_ns: msgspec.Raw = _ABSENT


class ResourceColumns(TimeColumns, gc=False):
    """The resource rows: what leases used beside the GPU."""

    n: int
    lease: Column
    cpu_us: Nullable
    memory_byte_s: Nullable
    storage_byte_s: Nullable
    received_bytes: Nullable
    sent_bytes: Nullable
    source: str | list[str]


class ReportRows(msgspec.Struct, gc=False):
    """A report that was read: `n` rows of devices in `cols`, or none. Another kind of rows is
    another field beside it, whose columns begin with `TimeColumns`.
    """

    boot: str
    mono_us: int
    devices: list[Device]
    leases: list[str]
    n: int
    clock_offset_us: int | None = None
    cols: DeviceColumns | None = None
    resources: msgspec.Raw = _ABSENT
    events: msgspec.Raw = msgspec.Raw(b"[]")

    @property
    def offset_us(self) -> int:
        """Server minus node; 0 where the node never knew."""
        return self.clock_offset_us or 0


_decode = msgspec.json.Decoder(ReportRows).decode
_decode_column = msgspec.json.Decoder(Column).decode
_decode_nullable = msgspec.json.Decoder(Nullable).decode
_decode_resources = msgspec.json.Decoder(ResourceColumns).decode
_TELLS_RESOURCES = b'"resources":{'
_decode_events = msgspec.json.Decoder(list[Event]).decode


def read(body: bytes) -> ReportRows:
    """The rows of a report as it is stored. Its form was checked when it came in.

    Raises msgspec.ValidationError for bytes that no door let in.
    """
    return _decode(signed_of(body))


def column(told: msgspec.Raw) -> Column:
    """A column that every row has, read."""
    values: Column = _decode_column(told)
    return values


def nullable(told: msgspec.Raw) -> Nullable:
    """A column of what may not be measured, read; None where the report has no such column."""
    values: Nullable = _decode_nullable(told)
    return values


def events_of(found: ReportRows, kind: str) -> list[Event]:
    """The events of one type; nothing is read where there can be none."""
    if kind.encode() not in bytes(found.events):
        return []
    return [event for event in _decode_events(found.events) if event.type == kind]


def each(told: Column, n: int) -> Iterable[int]:
    """The `n` values of a column."""
    return told if isinstance(told, list) else repeat(told, n)


def each_known(told: Nullable, n: int) -> Iterable[int | None]:
    """The `n` values of a column, None where nothing was measured."""
    return told if isinstance(told, list) else repeat(told, n)


# --- when the rows ran ------------------------------------------------------------------------


def times_of(cols: TimeColumns, n: int, offset_us: int) -> Times:
    """(start by the monotonic clock, from, until by the server's) of the rows: three columns."""
    return row_times(
        each(cols.step_us, n),
        each(cols.len_us, n),
        each(cols.wall_minus_mono_us, n),
        each(cols.wall_slew_us, n),
        offset_us,
    )


def last_until_us(cols: TimeColumns, n: int, offset_us: int) -> int:
    """When the last row ends by the server's clock."""
    return _until_us(_total(cols.step_us, n), cols, _last, offset_us)


def until_bounds_us(cols: TimeColumns, n: int, offset_us: int) -> tuple[int, int]:
    """Two moments between which every row ends by the server's clock; there may be closer ones."""
    steps = cols.step_us
    first_us = steps if isinstance(steps, int) else steps[0]
    low_us = _until_us(first_us, cols, _least, offset_us)
    return low_us, _until_us(_total(steps, n), cols, _most, offset_us)


def _until_us(
    start_us: int, cols: TimeColumns, pick: Callable[[Column], int], offset_us: int
) -> int:
    wall_us, slew_us = pick(cols.wall_minus_mono_us), pick(cols.wall_slew_us)
    return until_of(start_us, pick(cols.len_us), wall_us, slew_us, offset_us)


def _least(told: Column) -> int:
    return told if isinstance(told, int) else min(told)


def _most(told: Column) -> int:
    return told if isinstance(told, int) else max(told)


def _last(told: Column) -> int:
    return told if isinstance(told, int) else told[-1]


def _total(told: Column, n: int) -> int:
    return told * n if isinstance(told, int) else sum(told)


# --- what leases earn by ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseRows:
    """What a report tells of leases, and the moments up to which it tells of devices at all."""

    position: int
    rows: dict[str, list[UsageRow]]
    passed: dict[str, int]


def lease_rows(report: StoredReport) -> LeaseRows:
    """The rows of a clean report by lease, in server time, and the moments it has passed.

    A flagged report earns nothing. The time of one instance says nothing of the others on its
    board, and time ahead of its receipt says nothing at all.
    """
    told = LeaseRows(report.position, {}, {})
    if report.flags:
        return told
    found = read(report.body)
    cols, n, devices = found.cols, found.n, found.devices
    if cols is None:
        return told
    passed: dict[int, int] = {}
    for start_us, from_us, until_us, device, lease, len_us, available_us in zip(
        *times_of(cols, n, found.offset_us),
        each(cols.device, n),
        each_known(cols.lease, n),
        each(cols.len_us, n),
        each(cols.available_us, n),
        strict=True,
    ):
        if lease is None:
            passed[device] = until_us
            continue
        passed[device] = from_us
        told.rows.setdefault(found.leases[lease], []).append(
            UsageRow(
                position=report.position,
                device_id=devices[device].leased_id,
                boot=found.boot,
                mono_start_us=start_us,
                mono_end_us=start_us + len_us,
                wall_start_us=from_us,
                wall_end_us=until_us,
                available_us=available_us,
                share_ppm=devices[device].share_ppm,
                received_us=report.recorded_us,
            )
        )
    for device, at_us in passed.items():
        if devices[device].parent is None and not is_ahead(at_us, report.recorded_us):
            told.passed[devices[device].id] = at_us
    return told


def proven_by(report: StoredReport) -> Iterator[tuple[str, Span]]:
    """What a clean report proves of each device, idle or leased: of every row as much as it was
    available, from its beginning, and nothing after the report was received.
    """
    if report.flags:
        return
    found = read(report.body)
    cols, n = found.cols, found.n
    if cols is None:
        return
    _, begins, _ = times_of(cols, n, found.offset_us)
    told = zip(begins, each(cols.device, n), each(cols.available_us, n), strict=True)
    for from_us, device, available_us in told:
        until_us = min(from_us + available_us, report.recorded_us)
        if from_us < until_us:
            yield found.devices[device].id, Span(from_us, until_us)


# --- what leases used beside the GPU ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Used:
    """A resource row, its time by the server's clock; None: it could not be measured."""

    position: int
    lease_id: str
    boot: str
    mono_start_us: int
    mono_end_us: int
    from_us: int
    until_us: int
    received_us: int
    amounts: dict[str, int | None]  # by the names of `domain/metering/resources.py`
    source: str

    def metered(self, meter: str) -> MeteredRow | None:
        """What a meter counts of it; None: it could not be measured."""
        quantity = amount_of(meter, self.amounts)
        if quantity is None:
            return None
        return MeteredRow(
            self.position,
            self.boot,
            self.mono_start_us,
            self.mono_end_us,
            self.from_us,
            self.until_us,
            self.received_us,
            quantity,
        )


def used_by(report: StoredReport) -> Iterator[Used]:
    """The resource rows of a clean report, in their order. Most reports have none, and are not even
    decoded.
    """
    if report.flags or _TELLS_RESOURCES not in report.body:
        return
    found = read(report.body)
    if bytes(found.resources) == b"null":
        return
    cols = _decode_resources(found.resources)
    n = cols.n
    sources = cols.source if isinstance(cols.source, list) else repeat(cols.source, n)
    told = zip(
        *times_of(cols, n, found.offset_us),
        each(cols.lease, n),
        each(cols.len_us, n),
        sources,
        each_known(cols.cpu_us, n),
        each_known(cols.memory_byte_s, n),
        each_known(cols.storage_byte_s, n),
        each_known(cols.received_bytes, n),
        each_known(cols.sent_bytes, n),
        strict=True,
    )
    for start_us, from_us, until_us, lease, len_us, source, *amounts in told:
        yield Used(
            position=report.position,
            lease_id=found.leases[lease],
            boot=found.boot,
            mono_start_us=start_us,
            mono_end_us=start_us + len_us,
            from_us=from_us,
            until_us=until_us,
            received_us=report.recorded_us,
            amounts=dict(zip(AMOUNTS, amounts, strict=True)),
            source=source,
        )
