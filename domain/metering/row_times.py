"""When the rows of a signed report ran, by the server's clock: the one sentence that says so.

    start == sum(steps up to the row)                                    monotonic time
    from  == start + wall_minus_mono + clock_offset                      server time
    until == from + len + wall_slew

A row is as long as its monotonic length for all that is paid; server times only match rows with
the windows of leases and with hours. Any kind of rows that tells these columns runs by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from domain.duration import HOUR_US

Times = tuple[list[int], list[int], list[int]]
"""Three columns: start by the monotonic clock, from and until by the server's."""


def row_times(
    step_us: Iterable[int],
    len_us: Iterable[int],
    wall_minus_mono_us: Iterable[int],
    wall_slew_us: Iterable[int],
    clock_offset_us: int,
) -> Times:
    """The times of all rows, in their order, from columns of one length each.

    An offset of 0: by the node's own wall clock.
    """
    starts = list(accumulate(step_us))
    walls = zip(starts, wall_minus_mono_us, strict=True)
    begins = [start + wall + clock_offset_us for start, wall in walls]
    lengths = zip(begins, len_us, wall_slew_us, strict=True)
    return starts, begins, [begin + length + slew for begin, length, slew in lengths]


def until_of(
    start_us: int, len_us: int, wall_minus_mono_us: int, wall_slew_us: int, clock_offset_us: int
) -> int:
    """The same of one row: when it ends by the server's clock."""
    return start_us + wall_minus_mono_us + clock_offset_us + len_us + wall_slew_us


def hour_of(until_us: int) -> int:
    """The UTC hour a row is filed under: one that ends on the full hour belongs before it."""
    return (until_us - 1) // HOUR_US * HOUR_US
