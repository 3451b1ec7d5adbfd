"""Which lease a device is working for, as the server told us: windows in server time.

The ledger's window wins; this one only decides where rows are cut and whose name they carry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from domain.metering import report

HOUR_US = 3_600_000_000
ASSIGNMENTS_MAX = 1_000
_LEASE = re.compile(report.LEASE_PATTERN)
_WORD = re.compile(r"[0-9a-z_.+-]{1,32}")
_PROFILE = re.compile(r"[0-9a-z.+-]{1,32}")  # as a report may name it
_DEVICE = re.compile(report.DEVICE_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One lease on one device; `until_us` None means not ended as far as the node knows."""

    lease_id: str
    device_id: str
    from_us: int
    until_us: int | None = None
    share_ppm: int = report.PPM
    mem_ppm: int = report.PPM
    mode: str | None = None  # how the lease shares the device; None: by its share
    mig_profile: str | None = None
    mig_start: int | None = None  # the memory slice at which the ledger has placed the instance

    def covers(self, wall_us: int) -> bool:
        return self.from_us <= wall_us and (self.until_us is None or wall_us < self.until_us)


class AssignmentsUnreadable(Exception):
    """The server's list of assignments is not of the agreed form."""


def parse_windows(document: Any) -> tuple[Window, ...]:
    """Read the answer of `GET /v1/nodes/{id}/assignments`. Raises AssignmentsUnreadable."""
    try:
        items = document["data"]
        if type(items) is not list or len(items) > ASSIGNMENTS_MAX:
            raise AssignmentsUnreadable(f"needed a list of at most {ASSIGNMENTS_MAX}")
        found = [_window(item) for item in items]
    except (KeyError, TypeError) as error:
        raise AssignmentsUnreadable(repr(error)) from error
    return tuple({(window.lease_id, window.device_id): window for window in found}.values())


def edges(windows: Iterable[Window], from_us: int, to_us: int) -> list[int]:
    """Server times inside (from_us, to_us) at which a row must end, ascending.

    Edges of leases, each full hour of a lease (its accounting hour), and full UTC hours.
    """
    found = set(_hours(0, from_us, to_us))
    for window in windows:
        end_us = to_us if window.until_us is None else min(to_us, window.until_us)
        found.update(_hours(window.from_us, max(from_us, window.from_us - 1), end_us))
        found.update({window.from_us, window.until_us or to_us})
    return sorted(edge for edge in found if from_us < edge < to_us)


def lease_edges(windows: Iterable[Window]) -> set[int]:
    """Every known start and end: rows that stop there say so."""
    return {edge for window in windows for edge in (window.from_us, window.until_us) if edge}


def of_device(windows: Iterable[Window], device_id: str) -> tuple[Window, ...]:
    """The windows of one device."""
    return tuple(window for window in windows if window.device_id == device_id)


def next_edge(windows: Sequence[Window], after_us: int) -> int | None:
    """The first start or end of any lease later than a server time."""
    return min((edge for edge in lease_edges(windows) if edge > after_us), default=None)


def _hours(anchor_us: int, from_us: int, to_us: int) -> Iterable[int]:
    first = anchor_us + ((from_us - anchor_us) // HOUR_US + 1) * HOUR_US
    return range(first, to_us, HOUR_US)


def _window(item: Any) -> Window:
    if type(item) is not dict:
        raise AssignmentsUnreadable("an assignment is an object")
    until_us = item.get("until_us")
    window = Window(
        lease_id=_text(item["lease_id"], _LEASE),
        device_id=_text(item["device_id"], _DEVICE),
        from_us=_whole(item["from_us"]),
        until_us=None if until_us is None else _whole(until_us),
        share_ppm=_whole(item.get("share_ppm", report.PPM)),
        mem_ppm=_whole(item.get("mem_ppm", report.PPM)),
        mode=_text_or_none(item.get("mode"), _WORD),
        mig_profile=_text_or_none(item.get("mig_profile"), _PROFILE),
        mig_start=None if item.get("mig_start") is None else _whole(item["mig_start"]),
    )
    if not (1 <= window.share_ppm <= report.PPM and 1 <= window.mem_ppm <= report.PPM):
        raise AssignmentsUnreadable(f"share of {window.lease_id}")
    return window


def _text_or_none(value: Any, form: re.Pattern[str]) -> str | None:
    return None if value is None else _text(value, form)


def _text(value: Any, form: re.Pattern[str]) -> str:
    if type(value) is not str or form.fullmatch(value) is None:
        raise AssignmentsUnreadable(f"needed {form.pattern}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= report.INT_MAX:
        raise AssignmentsUnreadable("needed a whole number, 0..2^53-1")
    return value
