"""The folder `used`: what an executor on this machine says the work of each lease has used so far.

A file is named by its lease and holds counters that only grow (`node_reporter/executor/usage.py`).
What lies between two of them becomes a resource row: rows of a lease adjoin, so nothing is told
twice and nothing is lost while the reporter is away. Counters of another boot, or that go back, say
nothing. What is not of this form is passed over.
"""

from __future__ import annotations

import heapq
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.metering.report import INT_MAX, LEASE_PATTERN, ROW_US_MAX
from domain.metering.resources import SOURCES, ResourceRow, split

FILES_MAX = 256
FILE_BYTES_MAX = 4_096
_LEASE = re.compile(LEASE_PATTERN)
_AMOUNTS = ("cpu_us", "memory_byte_us", "storage_byte_us", "received_bytes", "sent_bytes")


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one lease at a moment of a boot; a key of None is not known."""

    lease_id: str
    boot: str
    start_us: int
    mono_us: int
    amounts: dict[str, int | None]
    source: str


def read_used(folder: Path) -> list[Counted]:
    """Every file that can be read; nothing where there is no such folder."""
    try:
        paths = heapq.nsmallest(FILES_MAX, folder.iterdir())
    except OSError:
        return []
    found = (_counted(path) for path in paths if _LEASE.fullmatch(path.name))
    return [one for one in found if one is not None]


def _counted(path: Path) -> Counted | None:
    try:
        with path.open("rb") as file:
            told: Any = json.loads(file.read(FILE_BYTES_MAX))
        one = Counted(
            lease_id=path.name,
            boot=str(told["boot"]),
            start_us=_whole(told["start_us"]),
            mono_us=_whole(told["mono_us"]),
            amounts={
                name: None if told[name] is None else _amount(told[name]) for name in _AMOUNTS
            },
            source=told["source"] if told["source"] in SOURCES else "other",
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return one if one.start_us < one.mono_us else None


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= INT_MAX:
        raise ValueError("needed a whole number")
    return value


def _amount(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("needed a whole number")
    return value


def rows_between(last: Counted | None, now: Counted, wall_minus_mono_us: int) -> list[ResourceRow]:
    """The rows from the counters before to these: none where they say nothing new."""
    if last is not None and (last.boot != now.boot or last.start_us != now.start_us):
        last = None
    from_us = now.start_us if last is None else last.mono_us
    if now.mono_us <= from_us:
        return []
    before = {} if last is None else last.amounts
    amounts: dict[str, Any] = {}
    for name in _AMOUNTS:
        first, second = before.get(name, 0), now.amounts[name]
        scale = 1_000_000 if name.endswith("_byte_us") else 1
        told = None
        if first is not None and second is not None and second >= first:
            told = second // scale - first // scale
        amounts[name.replace("_byte_us", "_byte_s")] = told
    rest = ResourceRow(
        lease=0,
        mono_start_us=from_us,
        len_us=now.mono_us - from_us,
        wall_minus_mono_us=wall_minus_mono_us,
        source=now.source,
        **amounts,
    )
    rows = []
    while rest.len_us > ROW_US_MAX:
        part, rest = split(rest, rest.mono_start_us + ROW_US_MAX)
        rows.append(part)
    return [*rows, rest]
