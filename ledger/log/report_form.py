"""Whether a report keeps the rules of its form: the verdict of `domain.metering.report.parse`,
several times faster. The door flags by it, and who verifies a log judges every report anew.

Not a second set of rules. It may say yes only where the reference says yes, with the same identity;
whatever it does not like, and whatever it does not know how to judge (backslashes, events, a device
listed twice), the reference decides. What passed is read by `ledger/log/report_rows.py`.

    read(body) raises ReportInvalid  <=>  domain.metering.report.parse(body) raises ReportInvalid

A property test over thousands of mutated reports keeps it so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate, repeat
from operator import add, ge, sub
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from domain.metering import report
from domain.metering.report import ReportInvalid
from domain.nesting import is_too_deep

_Nat = Annotated[int, Meta(ge=0, le=report.INT_MAX)]
_Signed = Annotated[int, Meta(ge=-report.INT_MAX, le=report.INT_MAX)]
_Int31 = Annotated[int, Meta(ge=0, le=report.INT31_MAX)]
_Share = Annotated[int, Meta(ge=1, le=report.PPM)]
_Length = Annotated[int, Meta(ge=1, le=report.ROW_US_MAX)]
_DeviceText = Annotated[str, Meta(pattern=rf"\A(?:{report.DEVICE_PATTERN})\Z")]
_Source = Literal["cgroup2", "cgroup1", "proc", "other"]
_Reason = Literal["tick", "hour", "lease", "reshape", "fault", "gap", "shutdown"]

_Nats = _Nat | list[_Nat]
_NatsOrNull = _Nat | None | list[_Nat | None]
_Signeds = _Signed | list[_Signed]
_Int31s = _Int31 | list[_Int31]


class _Strict(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    pass


class _Device(_Strict):
    id: _DeviceText
    parent: _DeviceText | None
    gi: _Nat | None
    ci: _Nat | None
    shape: Annotated[str, Meta(pattern=rf"\A(?:{report.SHAPE_PATTERN})\Z")]
    share_ppm: _Share
    mem_ppm: _Share
    busy_source: Literal["gpm", "samples", "util", "counter", "none"]
    energy_scope: Literal["device", "board_share", "module", "none"]


class _Cols(_Strict):
    device: msgspec.Raw
    lease: msgspec.Raw
    driver_epoch: _Int31s
    step_us: _Nats
    len_us: _Length | list[_Length]
    wall_minus_mono_us: _Signeds
    wall_slew_us: _Signeds
    available_us: _Nats
    unavailable_us: _Nats
    unknown_us: _Nats
    suspended_us: _Nats
    samples: _Int31s
    busy_us: _NatsOrNull
    mem_byte_s: _NatsOrNull
    energy_mj: _NatsOrNull
    energy_gaps: _Int31s
    throttle_power_ns: _NatsOrNull
    throttle_thermal_ns: _NatsOrNull
    reason: _Reason | list[_Reason]


class _Resources(_Strict):
    n: Annotated[int, Meta(ge=1, le=report.ROWS_MAX)]
    lease: _Nats
    step_us: _Nats
    len_us: _Length | list[_Length]
    wall_minus_mono_us: _Signeds
    wall_slew_us: _Signeds
    cpu_us: _NatsOrNull
    memory_byte_s: _NatsOrNull
    storage_byte_s: _NatsOrNull
    received_bytes: _NatsOrNull
    sent_bytes: _NatsOrNull
    source: _Source | list[_Source]


class _Report(_Strict):
    v: Literal[1]
    node: msgspec.Raw
    seq: Annotated[int, Meta(ge=1, le=report.INT_MAX)]
    prev: Annotated[str, Meta(pattern=rf"\A(?:{report.HASH_PATTERN})\Z")]
    boot: msgspec.Raw
    agent: msgspec.Raw
    mono_us: _Nat
    wall_us: _Nat
    clock_offset_us: _Signed | None
    clock_rtt_us: Annotated[int, Meta(ge=0, le=report.CLOCK_RTT_US_MAX)] | None
    devices: msgspec.Raw
    leases: msgspec.Raw
    n: Annotated[int, Meta(ge=1, le=report.ROWS_MAX)]
    cols: _Cols
    # Events are rare and their data free: the reference reads such reports.
    events: Annotated[list[int], Meta(max_length=0)]
    resources: _Resources | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Report).decode
_decode_node = msgspec.json.Decoder(
    Annotated[str, Meta(pattern=rf"\A(?:{report.NODE_PATTERN})\Z")]
).decode
_decode_boot = msgspec.json.Decoder(
    Annotated[str, Meta(pattern=rf"\A(?:{report.BOOT_PATTERN})\Z")]
).decode
_decode_agent = msgspec.json.Decoder(
    Annotated[str, Meta(pattern=rf"\A(?:{report.AGENT_PATTERN})\Z")]
).decode
_decode_devices = msgspec.json.Decoder(
    Annotated[list[_Device], Meta(max_length=report.DEVICES_MAX)]
).decode
_decode_leases = msgspec.json.Decoder(
    Annotated[
        list[Annotated[str, Meta(pattern=rf"\A(?:{report.LEASE_PATTERN})\Z")]],
        Meta(max_length=report.LEASES_MAX),
    ]
).decode
_decode_nats = msgspec.json.Decoder(_Nats).decode
_decode_nats_or_null = msgspec.json.Decoder(_NatsOrNull).decode
_COLUMNS = _Cols.__struct_fields__
_DEVICE_STRINGS = len(_Device.__struct_fields__) + 4
_STRINGS = len(_Report.__struct_fields__) - 1 + 4 + len(_COLUMNS)
"""Keys of report and cols, and the strings node, prev, boot and agent."""
_RESOURCE_STRINGS = 1 + len(_Resources.__struct_fields__)
"""Keys of the resources, and their own name."""


FLAG_CONTENT = 1
"""The signed content breaks a rule of the report's form: stored, earns nothing. The only flag."""


class Identity(NamedTuple):
    """Who says this, and where it belongs in the node's chain."""

    node: str
    seq: int
    prev: str


def read(body: bytes) -> Identity:
    """Identity of a valid report. Raises ReportInvalid exactly when the reference does."""
    if len(body) <= report.BODY_BYTES_MAX and b"\\" not in body:
        try:
            found = _decode(body)
            named = _holds(body, found)
            if named is not None:
                return Identity(named.node, found.seq, found.prev)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            pass
    whole = report.parse(body)
    return Identity(whole.node, whole.seq, whole.prev)


def read_if_valid(body: bytes) -> Identity | None:
    """Identity of a valid report, None of signed bytes that break a rule of the form."""
    try:
        return read(body)
    except ReportInvalid:
        return None


def flag_fault(flags: int, told: Identity | None) -> str | None:
    """What is wrong with the flags stored beside signed bytes of which `read_if_valid` told this;
    None: they are what the bytes earn.
    """
    if told is None:
        due, why = FLAG_CONTENT, "the report breaks a rule of its form and earns nothing"
    else:
        due, why = 0, "the report breaks no rule"
    return None if flags == due else f"is flagged {flags}, though {why}"


def read_leniently(body: bytes) -> Identity:
    """Identity of signed bytes that break the form. Raises ReportInvalid when there is none.

    Only what decides about the chain is looked at; a field given twice must say the same.
    """
    if len(body) > report.BODY_BYTES_MAX:
        raise ReportInvalid("too_large", f"at most {report.BODY_BYTES_MAX} bytes")
    try:
        text = body.decode("utf-8")
        if is_too_deep(text):
            raise ReportInvalid("not_json", "nested too deep to hold an identity")
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except ReportInvalid:
        raise
    except (ValueError, RecursionError):
        raise ReportInvalid("not_json", "no identity to be read") from None
    node = _only(pairs, "node", str)
    seq = _only(pairs, "seq", int)
    prev = _only(pairs, "prev", str)
    if not 1 <= seq <= report.INT_MAX:
        raise ReportInvalid("out_of_range", "needed 1..2^53-1", "#/seq")
    if len(prev) != 64 or not set(prev) <= set("0123456789abcdef"):
        raise ReportInvalid("wrong_form", f"needed {report.HASH_PATTERN}", "#/prev")
    return Identity(node, seq, prev)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its double keys."""


def _only(pairs: Any, name: str, kind: type) -> Any:
    if type(pairs) is not _Pairs:
        raise ReportInvalid("wrong_type", "an object is needed")
    values = [value for key, value in pairs if key == name]
    if not values:
        raise ReportInvalid("missing_key", f"key {name!r} is needed")
    if any(type(value) is not kind or value != values[0] for value in values):
        raise ReportInvalid("wrong_type", "identity is not clear", f"#/{name}")
    return values[0]


# --- what a node names -----------------------------------------------------------------------


class _Named(NamedTuple):
    """Node, boot, agent, devices, leases and the rows' places among them: what a node repeats in
    each report.

    `strings` that devices and leases hold, number of `leases`, and `turn`: rows after which every
    device comes again under the same lease, 0 if there is no such turn.
    """

    node: str
    strings: int
    leases: int
    turn: int


NAMED_MAX = 65_536
"""How many are remembered, some 300 bytes each; then it is begun anew."""
_named: dict[bytes, _Named] = {}
"""Those that keep the rules, by the SHA-256 of their bytes: equal bytes are judged once."""


def _named_by(found: _Report) -> _Named | None:
    """None: they break a rule. Raises MsgspecError: they are not of their form."""
    cols = found.cols
    names = found.node, found.boot, found.agent
    parts = (*names, found.devices, found.leases, cols.device, cols.lease)
    lengths = b"%d %d %d %d %d %d %d %d " % (found.n, *map(len, parts))
    digest = sha256(b"".join((lengths, *parts))).digest()
    known = _named.get(digest)
    if known is None:
        known = _judged(found)
        if known is not None:
            if len(_named) >= NAMED_MAX:
                _named.clear()
            _named[digest] = known
    return known


def _judged(found: _Report) -> _Named | None:
    node = _decode_node(found.node)
    _decode_boot(found.boot)
    _decode_agent(found.agent)
    devices, leases = _decode_devices(found.devices), _decode_leases(found.leases)
    of_rows = _decode_nats(found.cols.device), _decode_nats_or_null(found.cols.lease)
    if len({device.id for device in devices}) != len(devices) or len(set(leases)) != len(leases):
        return None
    for values, count in zip(of_rows, (len(devices), len(leases)), strict=True):
        if not _is_column(values, found.n):
            return None
        named: Any = set(values) if type(values) is list else {values}
        if max(named - {None}, default=-1) >= count:
            return None
    strings = len(leases) + _DEVICE_STRINGS * len(devices)
    strings += sum(device.parent is not None for device in devices)
    return _Named(node, strings, len(leases), _turn(*of_rows))


def _turn(devices: Any, leases: Any) -> int:
    """The usual report: each device once, in a fixed order, over and over."""
    turn = len(set(devices)) if type(devices) is list else 1
    if type(devices) is list and devices[turn:] != devices[:-turn]:
        return 0
    if type(leases) is list and leases[turn:] != leases[:-turn]:
        return 0
    return turn


# --- the rules across fields -----------------------------------------------------------------


def _holds(body: bytes, found: _Report) -> _Named | None:
    """What the node names, if every rule is kept."""
    named = _named_by(found)
    if named is None or body.count(b'"') != 2 * _strings(found, named):
        return None
    cols, n = found.cols, found.n
    for values in msgspec.structs.astuple(cols):
        if type(values) is list and not _is_column(values, n):
            return None
    resources = found.resources
    if type(resources) is _Resources and not _resources_hold(
        resources, named.leases, found.mono_us
    ):
        return None
    starts = _starts(cols.step_us, n)
    holds = (
        _buckets_hold(cols, n)
        and _places_hold(cols, n, named.turn, starts)
        and _times_hold(cols, starts, found.mono_us)
    )
    return named if holds else None


def _strings(found: _Report, named: _Named) -> int:
    """In a report whose every key stands once: all are needed and no other is allowed, so that one
    string more means a key twice.
    """
    strings = _STRINGS + named.strings
    strings += found.n if type(found.cols.reason) is list else 1
    resources = found.resources
    if type(resources) is _Resources:
        strings += _RESOURCE_STRINGS
        strings += resources.n if type(resources.source) is list else 1
    return strings


def _is_column(values: Any, n: int) -> bool:
    """One value, or a list of `n` that are not all equal."""
    if type(values) is not list:
        return True
    return len(values) == n and not (values[0] == values[-1] and values.count(values[0]) == n)


def _resources_hold(told: _Resources, leases: int, mono_us: int) -> bool:
    n = told.n
    for values in msgspec.structs.astuple(told):
        if not _is_column(values, n):
            return False
    named: Any = told.lease
    if (max(named) if type(named) is list else named) >= leases:
        return False
    starts = _starts(told.step_us, n)
    last: dict[int, int] = {}
    before = (-1, 0)
    for lease, start, length in zip(_each(named), starts, _each(told.len_us), strict=False):
        if (start, lease) < before or last.get(lease, 0) > start:
            return False
        before = (start, lease)
        last[lease] = start + length
    return _times_hold(told, starts, mono_us)


def _starts(steps: int | list[int], n: int) -> Sequence[int]:
    if type(steps) is list:
        return list(accumulate(steps))
    assert type(steps) is int
    return range(steps, steps * (n + 1), steps) if steps else [0] * n


def _each(values: Any) -> Iterable[Any]:
    return values if type(values) is list else repeat(values)


def _buckets_hold(cols: _Cols, n: int) -> bool:
    available: Any = cols.available_us
    unavailable, unknown = cols.unavailable_us, cols.unknown_us
    if type(available) is int and type(unavailable) is int and type(unknown) is int:
        if available + unavailable + unknown != cols.len_us:
            return False
    else:
        sums = map(add, map(add, _each(available), _each(unavailable)), _each(unknown))
        lengths = cols.len_us if type(cols.len_us) is list else [cols.len_us] * n
        if list(sums) != lengths:
            return False
    return _busy_holds(cols.busy_us, available)


def _busy_holds(busy: Any, available: Any) -> bool:
    """Never busy for longer than available, where it was measured."""
    if busy is None:
        return True
    if type(busy) is int:
        return bool(busy <= (min(available) if type(available) is list else available))
    if type(available) is int:
        try:
            return bool(max(busy) <= available)
        except TypeError:
            pass  # a row was not measured
    pairs = zip(busy, _each(available), strict=False)
    return all(used is None or used <= limit for used, limit in pairs)


def _places_hold(cols: _Cols, n: int, turn: int, starts: Sequence[int]) -> bool:
    """Rows sorted, no overlap of rows of one device and lease."""
    if not (_turns_hold(cols.len_us, starts, turn) if turn else _rows_hold(cols, starts)):
        return False
    steps = cols.step_us
    if type(steps) is list and steps.count(0) == (steps[0] == 0):
        return True  # no two start together
    if type(steps) is int and (steps or n == 1):
        return True
    idle_last = [
        report.LEASES_MAX if lease is None else lease
        for lease, _ in zip(_each(_decode_nats_or_null(cols.lease)), starts, strict=False)
    ]
    places = list(zip(starts, _each(_decode_nats(cols.device)), idle_last, strict=False))
    return places == sorted(places)


def _turns_hold(lengths: Any, starts: Sequence[int], turn: int) -> bool:
    """No overlap where each row's next of the same device and lease is one turn later."""
    if type(lengths) is int:
        return min(map(sub, starts[turn:], starts), default=lengths) >= lengths
    return all(map(ge, starts[turn:], map(add, starts, lengths)))


def _rows_hold(cols: _Cols, starts: Sequence[int]) -> bool:
    """No overlap, row by row."""
    last: dict[tuple[int, int | None], int] = {}
    get = last.get
    devices, leases = _decode_nats(cols.device), _decode_nats_or_null(cols.lease)
    keys = zip(_each(devices), _each(leases), strict=False)
    for key, start, length in zip(keys, starts, _each(cols.len_us), strict=False):
        if get(key, 0) > start:
            return False
        last[key] = start + length
    return True


def _times_hold(cols: _Cols | _Resources, starts: Sequence[int], mono_us: int) -> bool:
    """No row ends after `mono_us`; every derived wall time is within 0..2^53-1."""
    lengths, offsets, slews = cols.len_us, cols.wall_minus_mono_us, cols.wall_slew_us
    if type(lengths) is int and type(offsets) is int and type(slews) is int:
        # Starts ascend, so the first and the last row bound all the others.
        ends: Sequence[int] = (starts[0] + lengths, starts[-1] + lengths)
        walls = (starts[0] + offsets, starts[-1] + offsets)
        wall_ends = (ends[0] + offsets + slews, ends[1] + offsets + slews)
        low, high = min(walls[0], wall_ends[0]), max(walls[1], wall_ends[1])
    else:
        ends = list(map(add, starts, _each(lengths)))
        walls_of_rows = list(map(add, starts, _each(offsets)))
        ends_of_rows = list(map(add, map(add, ends, _each(offsets)), _each(slews)))
        low = min(min(walls_of_rows), min(ends_of_rows))
        high = max(max(walls_of_rows), max(ends_of_rows))
    return max(ends) <= mono_us and low >= 0 and high <= report.INT_MAX
