"""What the work of a lease used beside the GPU: a resource row of a signed report, and its units.

    cpu_us          processor time of all its processes, microseconds
    memory_byte_s   sum over its time of resident bytes x seconds
    storage_byte_s  the same of the bytes of its folder
    received_bytes, sent_bytes   over the network, by the counters of its own namespace

A node keeps each as a counter that only grows, from the start of the work on, and floors the
counter and never a row: row = floor(counter at its end) - floor(counter at its start). So

    sum(rows that adjoin) == floor(counter at the last end) - floor(counter at the first start)
    split(row): both parts sum to the whole in every amount, and adjoin

however often rows are cut. Rows of one lease never overlap; a report that has such is not valid
(`domain/metering/report.py`). None: not measurable here; 0: measured zero (decision 0008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.frozen import replace

AMOUNTS = ("cpu_us", "memory_byte_s", "storage_byte_s", "received_bytes", "sent_bytes")
"""The columns that tell an amount."""

SOURCES = ("cgroup2", "cgroup1", "proc", "other")
"""How it was measured: by the kernel's groups of processes, or by adding up processes."""

AMOUNTS_OF = {
    "cpu": ("cpu_us",),
    "memory": ("memory_byte_s",),
    "storage": ("storage_byte_s",),
    "network": ("received_bytes", "sent_bytes"),
}
"""What a meter adds up of a row."""

SCALE_OF = {"cpu": 1_000_000, "memory": 10**9, "storage": 10**9, "network": 1}
"""So much of it is one unit of the meter: a core-second, a GB-second (10^9 bytes), a byte."""

PER_SECOND_MAX = {
    "cpu": 4_096 * 1_000_000,
    "memory": 65_536 * 10**9,
    "storage": 10**7 * 10**9,
    "network": 10**12,
}
"""No machine uses more of it in a second: a row that claims more counts for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRow:
    """A stretch of monotonic time of one lease's work; `lease` is an index into the report's
    list.
    """

    lease: int
    mono_start_us: int
    len_us: int
    wall_minus_mono_us: int
    wall_slew_us: int = 0
    cpu_us: int | None = None
    memory_byte_s: int | None = None
    storage_byte_s: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    source: str = "proc"

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


def amount_of(meter: str, told: dict[str, int | None]) -> int | None:
    """What a meter counts of the amounts of a row. None when part of it could not be measured:
    half of a network's bytes are no measurement of its bytes.
    """
    parts = [told[name] for name in AMOUNTS_OF[meter]]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def split(row: ResourceRow, at_us: int) -> tuple[ResourceRow, ResourceRow]:
    """The row cut at a monotonic time inside it: amounts by time, floored; the second part has the
    remainder.
    """
    first_us = at_us - row.mono_start_us
    assert 0 < first_us < row.len_us, (row, at_us)
    amounts = {name: getattr(row, name) for name in AMOUNTS}
    first: dict[str, Any] = {
        name: None if units is None else units * first_us // row.len_us
        for name, units in amounts.items()
    }
    rest: dict[str, Any] = {
        name: None if units is None else units - (first[name] or 0)
        for name, units in amounts.items()
    }
    return (
        replace(row, len_us=first_us, wall_slew_us=0, **first),
        replace(row, mono_start_us=at_us, len_us=row.len_us - first_us, **rest),
    )


@dataclass(frozen=True, slots=True)
class MeteredRow:
    """What one meter counts of a resource row, its time by the server's clock."""

    position: int  # of the report in its lane
    boot: str
    mono_start_us: int
    mono_end_us: int
    from_us: int
    to_us: int
    received_us: int
    quantity: int  # microseconds of processor, byte-seconds, bytes
