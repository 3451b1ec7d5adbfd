"""What a node says about its GPUs: a signed usage report, its bytes, rules and reference parser.

Not the signature itself and not the worth of a row: the door judges authorship, order and form,
accrual judges value. This parser is the yardstick of every faster one: what it accepts is a valid
report, what it refuses is stored as sent, flagged, and earns nothing.

    hash(body) == SHA-256(PAE(body));   prev of report n + 1 == hash of report n
    available_us + unavailable_us + unknown_us == len_us          for every row of a device
    rows of one (device, lease), and resource rows of one lease, are in order and never overlap
    parse(encode(report)) == report                               for every valid report

Integers only, absolute value at most 2^53 - 1. `None` means not measurable here, 0 measured zero.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any, NoReturn

from domain.metering.resources import SOURCES, ResourceRow
from domain.nesting import NESTING_MAX, is_too_deep
from domain.record import dataclass

PAYLOAD_TYPE = "org.tallystick.usage.reported.v1"
"""DSSE payload type of the signed bytes; used nowhere else."""
NAME = "usage.reported.v1"
"""Name of the stored fact and `type` of the envelope."""

LANES = 64
INT_MAX = 2**53 - 1
INT31_MAX = 2**31 - 1
PPM = 1_000_000
BODY_BYTES_MAX = 262_144
ROWS_MAX = 1_000
"""Rows of devices in a report; and as many resource rows."""
DEVICES_MAX = 64
LEASES_MAX = 256
EVENTS_MAX = 100
EVENT_DATA_BYTES_MAX = 4_096
ROW_US_MAX = 86_400_000_000
CLOCK_RTT_US_MAX = 60_000_000

BUSY_SOURCES = ("gpm", "samples", "util", "counter", "none")
ENERGY_SCOPES = ("device", "board_share", "module", "none")
REASONS = ("tick", "hour", "lease", "reshape", "fault", "gap", "shutdown")
EVENT_TYPES = (
    "agent.started",
    "agent.stopping",
    "device.inventory",
    "metering.started",
    "metering.stopped",
    "device.fault",
    "device.recovered",
    "device.reshaped",
    "device.xid",
    "key.rotated",
)

NODE_PATTERN = r"node_[0-9A-Za-z]{8,40}"
LEASE_PATTERN = r"lease_[0-9A-Za-z]{8,40}"
HASH_PATTERN = r"[0-9a-f]{64}"
BOOT_PATTERN = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
AGENT_PATTERN = r"[\x20-\x7e]{1,32}"
DEVICE_PATTERN = r"[\x20-\x7e]{1,96}"
SHAPE_PATTERN = (
    r"whole|mig:[0-9a-z.+-]{1,32}|mps:(?:[1-9][0-9]?|100)"
    r"|ts:[1-9][0-9]{0,5}/[1-9][0-9]{0,5}|vgpu:[0-9A-Za-z._ -]{1,48}"
)

_PAE_HEAD = f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} ".encode()


# --- bytes and hashes ------------------------------------------------------------------------


def pae(body: bytes) -> bytes:
    """What Ed25519 signs: DSSE's pre-authentication encoding of the exact bytes."""
    return b"%b%d %b" % (_PAE_HEAD, len(body), body)


def report_hash(body: bytes) -> bytes:
    """SHA-256(PAE(body)): the `prev` of the next report."""
    return sha256(pae(body)).digest()


def genesis(node_id: str, public_key: bytes) -> bytes:
    """The `prev` of a node's first report."""
    return sha256(b"tallystick/usage/genesis/v1" + node_id.encode() + public_key).digest()


def lane_of(node_id: str) -> int:
    """The one of 64 permanent lanes a node reports into (conformance suite `chain_hash`)."""
    digest = sha256(b"tallystick/lane/v1" + node_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % LANES


# --- the report, expanded --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator or part of one, as the node could measure it while these rows ran."""

    id: str
    parent: str | None = None
    gi: int | None = None
    ci: int | None = None
    shape: str = "whole"
    share_ppm: int = PPM
    mem_ppm: int = PPM
    busy_source: str = "none"
    energy_scope: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A stretch of monotonic time of one device, under one lease or idle.

    `device` and `lease` are indexes into the report's lists; `lease` None means idle.
    """

    device: int
    lease: int | None
    driver_epoch: int
    mono_start_us: int
    len_us: int
    wall_minus_mono_us: int
    wall_slew_us: int = 0
    available_us: int
    unavailable_us: int
    unknown_us: int
    suspended_us: int = 0
    samples: int
    busy_us: int | None = None
    mem_byte_s: int | None = None
    energy_mj: int | None = None
    energy_gaps: int = 0
    throttle_power_ns: int | None = None
    throttle_thermal_ns: int | None = None
    reason: str = "tick"

    @property
    def mono_end_us(self) -> int:
        return self.mono_start_us + self.len_us

    @property
    def wall_start_us(self) -> int:
        """Uncorrected: add the report's `clock_offset_us` for server time."""
        return self.mono_start_us + self.wall_minus_mono_us

    @property
    def wall_end_us(self) -> int:
        """Uncorrected: add the report's `clock_offset_us` for server time."""
        return self.mono_end_us + self.wall_minus_mono_us + self.wall_slew_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on the node between rows; `data` is flat."""

    type: str
    mono_us: int
    wall_us: int
    device: int | None = None
    lease: int | None = None
    data: dict[str, int | str | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report with its columns expanded to rows."""

    node: str
    seq: int
    prev: str
    boot: str
    agent: str
    mono_us: int
    wall_us: int
    clock_offset_us: int | None = None
    clock_rtt_us: int | None = None
    devices: tuple[Device, ...] = ()
    leases: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    resources: tuple[ResourceRow, ...] = ()
    events: tuple[Event, ...] = ()


class ReportInvalid(ValueError):
    """A rule of the form is broken: `rule` names it, `pointer` the field, `detail` says how."""

    def __init__(self, rule: str, detail: str, pointer: str = "#") -> None:
        super().__init__(f"{rule} at {pointer}: {detail}")
        self.rule = rule
        self.detail = detail
        self.pointer = pointer


# --- writing ---------------------------------------------------------------------------------


def _written_names(kind: type[Row] | type[ResourceRow]) -> tuple[str, ...]:
    told = {"mono_start_us": "step_us"}
    return tuple(told.get(field.name, field.name) for field in fields(kind))


COLUMNS = _written_names(Row)
"""Names and order of the written columns: those of Row, starts written as steps."""
RESOURCE_COLUMNS = _written_names(ResourceRow)
"""The same of a resource row."""


def compact(rows: Sequence[Row]) -> dict[str, Any]:
    """The `cols` of these rows: equal columns as their one value, starts as differences."""
    assert rows, "a report without rows has no cols"
    return {name: _squeeze(_written(rows, name)) for name in COLUMNS}


def compact_resources(rows: Sequence[ResourceRow]) -> dict[str, Any]:
    """The `resources` of these rows: their number, and columns in the same form as `cols`."""
    assert rows, "a report without resource rows has no resources"
    columns = {name: _squeeze(_written(rows, name)) for name in RESOURCE_COLUMNS}
    return {"n": len(rows), **columns}


def encode(report: Report) -> bytes:
    """The bytes a node signs. Checks nothing: `parse` does."""
    body: dict[str, Any] = {
        "v": 1,
        "node": report.node,
        "seq": report.seq,
        "prev": report.prev,
        "boot": report.boot,
        "agent": report.agent,
        "mono_us": report.mono_us,
        "wall_us": report.wall_us,
        "clock_offset_us": report.clock_offset_us,
        "clock_rtt_us": report.clock_rtt_us,
        "devices": [_plain(device) for device in report.devices],
        "leases": list(report.leases),
        "n": len(report.rows),
    }
    if report.rows:
        body["cols"] = compact(report.rows)
    if report.resources:
        body["resources"] = compact_resources(report.resources)
    body["events"] = [_plain(event) for event in report.events]
    return _dump(body)


def _written(rows: Sequence[Row] | Sequence[ResourceRow], name: str) -> list[Any]:
    if name != "step_us":
        return [getattr(row, name) for row in rows]
    starts = [row.mono_start_us for row in rows]
    return [starts[0], *(b - a for a, b in pairwise(starts))]


def _squeeze(values: list[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else values


def _plain(thing: Device | Event) -> dict[str, Any]:
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# --- reading ---------------------------------------------------------------------------------


def parse(body: bytes) -> Report:
    """Read one report strictly; every rule of the format is checked, order of rows included.

    Raises ReportInvalid naming the first rule found broken.
    """
    top = _object(_load(body), _TOP, "#", optional=("cols", "resources"))
    devices = tuple(
        Device(**_object(value, _DEVICE, f"#/devices/{index}"))
        for index, value in enumerate(top["devices"])
    )
    leases = tuple(_checked(top["leases"], _text(LEASE_PATTERN), "#/leases"))
    if len(set(leases)) != len(leases):
        raise ReportInvalid("duplicate_lease", "a lease is listed twice", "#/leases")
    rows = _rows(top, len(devices), len(leases))
    _check_rows(rows, devices, top["mono_us"])
    resources = _resources(top, len(leases))
    _check_resources(resources, top["mono_us"])
    events = tuple(
        _event(value, len(devices), len(leases), f"#/events/{index}")
        for index, value in enumerate(top["events"])
    )
    plain = {name: top[name] for name in _PLAIN}
    return Report(
        **plain, devices=devices, leases=leases, rows=rows, resources=resources, events=events
    )


def _load(body: bytes) -> Any:
    if len(body) > BODY_BYTES_MAX:
        raise ReportInvalid("too_large", f"{len(body)} bytes, at most {BODY_BYTES_MAX}")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReportInvalid("not_utf8", f"byte {error.start}") from None
    if is_too_deep(text):
        raise ReportInvalid("not_json", f"more than {NESTING_MAX} levels deep")
    try:
        return json.loads(
            text, object_pairs_hook=_pairs, parse_float=_no_float, parse_constant=_no_float
        )
    except ReportInvalid:
        raise
    except (ValueError, RecursionError) as error:
        raise ReportInvalid("not_json", str(error)) from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = iter(name for name, _ in pairs)
        seen: set[str] = set()
        while (name := next(names)) not in seen:
            seen.add(name)
        raise ReportInvalid("duplicate_key", f"key {name[:40]!r} twice in one object")
    return found


def _no_float(text: str) -> NoReturn:
    raise ReportInvalid("not_an_integer", f"number {text[:40]}")


Check = Callable[[Any, str], Any]


def _integer(low: int, high: int = INT_MAX) -> Check:
    def check(value: Any, pointer: str) -> int:
        if type(value) is not int:
            raise ReportInvalid("wrong_type", "an integer is needed", pointer)
        if not low <= value <= high:
            raise ReportInvalid("out_of_range", f"needed {low}..{high}", pointer)
        return value

    return check


def _nullable(inner: Check) -> Check:
    return lambda value, pointer: None if value is None else inner(value, pointer)


def _text(pattern: str) -> Check:
    match = re.compile(pattern).fullmatch

    def check(value: Any, pointer: str) -> str:
        if type(value) is not str:
            raise ReportInvalid("wrong_type", "a string is needed", pointer)
        if match(value) is None:
            raise ReportInvalid("wrong_form", f"needed {pattern}", pointer)
        return value

    return check


def _one_of(allowed: Sequence[str]) -> Check:
    def check(value: Any, pointer: str) -> str:
        if type(value) is not str or value not in allowed:
            raise ReportInvalid("wrong_form", f"needed one of {', '.join(allowed)}", pointer)
        return value

    return check


def _list_of(most: int) -> Check:
    def check(value: Any, pointer: str) -> list[Any]:
        if type(value) is not list:
            raise ReportInvalid("wrong_type", "a list is needed", pointer)
        if len(value) > most:
            raise ReportInvalid("too_many", f"{len(value)}, at most {most}", pointer)
        return value

    return check


def _any(value: Any, _pointer: str) -> Any:
    return value


_NAT = _integer(0)
_NAT_OR_NULL = _nullable(_NAT)
_SIGNED = _integer(-INT_MAX)
_INT31 = _integer(0, INT31_MAX)
_SHARE = _integer(1, PPM)

_PLAIN: dict[str, Check] = {
    "node": _text(NODE_PATTERN),
    "seq": _integer(1),
    "prev": _text(HASH_PATTERN),
    "boot": _text(BOOT_PATTERN),
    "agent": _text(AGENT_PATTERN),
    "mono_us": _NAT,
    "wall_us": _NAT,
    "clock_offset_us": _nullable(_SIGNED),
    "clock_rtt_us": _nullable(_integer(0, CLOCK_RTT_US_MAX)),
}
_TOP: dict[str, Check] = {
    "v": _integer(1, 1),
    **_PLAIN,
    "devices": _list_of(DEVICES_MAX),
    "leases": _list_of(LEASES_MAX),
    "n": _integer(0, ROWS_MAX),
    "cols": _any,
    "resources": _any,
    "events": _list_of(EVENTS_MAX),
}
_DEVICE: dict[str, Check] = {
    "id": _text(DEVICE_PATTERN),
    "parent": _nullable(_text(DEVICE_PATTERN)),
    "gi": _NAT_OR_NULL,
    "ci": _NAT_OR_NULL,
    "shape": _text(SHAPE_PATTERN),
    "share_ppm": _SHARE,
    "mem_ppm": _SHARE,
    "busy_source": _one_of(BUSY_SOURCES),
    "energy_scope": _one_of(ENERGY_SCOPES),
}
_RESOURCE_COLUMN: dict[str, Check] = {
    "step_us": _NAT,
    "len_us": _integer(1, ROW_US_MAX),
    "wall_minus_mono_us": _SIGNED,
    "wall_slew_us": _SIGNED,
    "cpu_us": _NAT_OR_NULL,
    "memory_byte_s": _NAT_OR_NULL,
    "storage_byte_s": _NAT_OR_NULL,
    "received_bytes": _NAT_OR_NULL,
    "sent_bytes": _NAT_OR_NULL,
    "source": _one_of(SOURCES),
}
_COLUMN: dict[str, Check] = {
    "driver_epoch": _INT31,
    "step_us": _NAT,
    "len_us": _integer(1, ROW_US_MAX),
    "wall_minus_mono_us": _SIGNED,
    "wall_slew_us": _SIGNED,
    "available_us": _NAT,
    "unavailable_us": _NAT,
    "unknown_us": _NAT,
    "suspended_us": _NAT,
    "samples": _INT31,
    "busy_us": _NAT_OR_NULL,
    "mem_byte_s": _NAT_OR_NULL,
    "energy_mj": _NAT_OR_NULL,
    "energy_gaps": _INT31,
    "throttle_power_ns": _NAT_OR_NULL,
    "throttle_thermal_ns": _NAT_OR_NULL,
    "reason": _one_of(REASONS),
}


def _object(
    value: Any, checks: dict[str, Check], pointer: str, optional: Sequence[str] = ()
) -> Any:
    """The object with exactly these keys (`optional` ones may be absent), each value checked."""
    if type(value) is not dict:
        raise ReportInvalid("wrong_type", "an object is needed", pointer)
    for name in value:
        if name not in checks:
            raise ReportInvalid("unknown_key", f"no key {name[:40]!r} here", pointer)
    for name in checks:
        if name not in value and name not in optional:
            raise ReportInvalid("missing_key", f"key {name!r} is needed", pointer)
    return {
        name: check(value[name], f"{pointer}/{name}")
        for name, check in checks.items()
        if name in value
    }


def _checked(values: Iterable[Any], check: Check, pointer: str) -> list[Any]:
    return [check(value, f"{pointer}/{index}") for index, value in enumerate(values)]


def _rows(top: dict[str, Any], devices: int, leases: int) -> tuple[Row, ...]:
    n = top["n"]
    if n == 0:
        if "cols" in top:
            raise ReportInvalid("unknown_key", "a report without rows has no cols", "#/cols")
        return ()
    if "cols" not in top:
        raise ReportInvalid("missing_key", "key 'cols' is needed", "#")
    index_checks = {"device": _integer(0, devices - 1), "lease": _nullable(_integer(0, leases - 1))}
    checks = index_checks | _COLUMN
    cols = _object(
        top["cols"], {name: _column(check, n) for name, check in checks.items()}, "#/cols"
    )
    cols["mono_start_us"] = list(accumulate(cols.pop("step_us")))
    names = tuple(cols)
    return tuple(
        Row(**dict(zip(names, values, strict=True))) for values in zip(*cols.values(), strict=True)
    )


def _resources(top: dict[str, Any], leases: int) -> tuple[ResourceRow, ...]:
    if "resources" not in top:
        return ()
    told = top["resources"]
    if type(told) is not dict or "n" not in told:
        raise ReportInvalid("wrong_type", "an object with n is needed", "#/resources")
    n = _integer(1, ROWS_MAX)(told["n"], "#/resources/n")
    checks = {"lease": _integer(0, leases - 1), **_RESOURCE_COLUMN}
    columns = {name: _column(check, n) for name, check in checks.items()}
    cols = _object(told, {"n": _any, **columns}, "#/resources")
    del cols["n"]
    cols["mono_start_us"] = list(accumulate(cols.pop("step_us")))
    names = tuple(cols)
    return tuple(
        ResourceRow(**dict(zip(names, values, strict=True)))
        for values in zip(*cols.values(), strict=True)
    )


def _column(check: Check, n: int) -> Check:
    """A column written as one value or as a list of exactly n that are not all equal."""

    def expand(value: Any, pointer: str) -> list[Any]:
        if type(value) is not list:
            return [check(value, pointer)] * n
        if len(value) != n:
            raise ReportInvalid("wrong_length", f"{len(value)} values, needed {n}", pointer)
        values = _checked(value, check, pointer)
        if all(item == values[0] for item in values):
            raise ReportInvalid("equal_values", "a list of equal values is that value", pointer)
        return values

    return expand


def _check_rows(rows: Sequence[Row], devices: Sequence[Device], mono_us: int) -> None:
    last_end: dict[tuple[str, int | None], int] = {}
    before: tuple[int, int, float] = (-1, 0, 0)
    for index, row in enumerate(rows):
        pointer = f"row {index}"
        _check_row(row, mono_us, pointer)
        place = (row.mono_start_us, row.device, LEASES_MAX if row.lease is None else row.lease)
        if place < before:
            raise ReportInvalid("rows_unsorted", "by start, device, lease, null last", pointer)
        before = place
        key = (devices[row.device].id, row.lease)
        if last_end.get(key, 0) > row.mono_start_us:
            raise ReportInvalid("rows_overlap", "rows of one device and lease", pointer)
        last_end[key] = row.mono_end_us


def _check_resources(rows: Sequence[ResourceRow], mono_us: int) -> None:
    last_end: dict[int, int] = {}
    before = (-1, 0)
    for index, row in enumerate(rows):
        pointer = f"resource row {index}"
        _check_times(row, mono_us, pointer)
        place = (row.mono_start_us, row.lease)
        if place < before:
            raise ReportInvalid("rows_unsorted", "by start and lease", pointer)
        before = place
        if last_end.get(row.lease, 0) > row.mono_start_us:
            raise ReportInvalid("rows_overlap", "resource rows of one lease", pointer)
        last_end[row.lease] = row.mono_end_us


def _check_row(row: Row, mono_us: int, pointer: str) -> None:
    if row.available_us + row.unavailable_us + row.unknown_us != row.len_us:
        raise ReportInvalid("bucket_sum", "available + unavailable + unknown != len", pointer)
    if row.busy_us is not None and row.busy_us > row.available_us:
        raise ReportInvalid("busy_above_available", "busy_us > available_us", pointer)
    _check_times(row, mono_us, pointer)


def _check_times(row: Row | ResourceRow, mono_us: int, pointer: str) -> None:
    if row.mono_end_us > mono_us:
        raise ReportInvalid("ends_after_mono_us", "a row ends after mono_us", pointer)
    if not (0 <= row.wall_start_us <= INT_MAX and 0 <= row.wall_end_us <= INT_MAX):
        raise ReportInvalid("out_of_range", "a derived wall time is not in 0..2^53-1", pointer)


def _event(value: Any, devices: int, leases: int, pointer: str) -> Event:
    checks: dict[str, Check] = {
        "type": _one_of(EVENT_TYPES),
        "mono_us": _NAT,
        "wall_us": _NAT,
        "device": _nullable(_integer(0, devices - 1)),
        "lease": _nullable(_integer(0, leases - 1)),
        "data": _event_data,
    }
    return Event(**_object(value, checks, pointer))


def _event_data(value: Any, pointer: str) -> dict[str, int | str | bool | None]:
    if type(value) is not dict:
        raise ReportInvalid("wrong_type", "an object is needed", pointer)
    for name, item in value.items():
        _event_value(item, f"{pointer}/{name[:40]}")
        if "\0" in name or (type(item) is str and "\0" in item):
            raise ReportInvalid("wrong_form", "a NUL character", pointer)
    try:
        encoded = _dump(value)
    except UnicodeEncodeError:
        raise ReportInvalid("not_utf8", "a lone surrogate", pointer) from None
    if len(encoded) > EVENT_DATA_BYTES_MAX:
        raise ReportInvalid("too_large", f"at most {EVENT_DATA_BYTES_MAX} bytes", pointer)
    return value


def _event_value(item: Any, pointer: str) -> None:
    if item is None or type(item) in (str, bool):
        return
    if type(item) is not int:
        raise ReportInvalid("wrong_type", "data is flat: integer, string, boolean, null", pointer)
    _SIGNED(item, pointer)
