"""What reported time is worth: rows of signed usage against the window of one lease.

The door that receives reports judges authorship, order and form. Here a row is judged by itself:

    a row earns   min(lease share, row share) x (available time inside the lease's window)
    it earns 0    when it overlaps time already counted for its device (`overlap`),
                  or ends more than 2 s after its own receipt (`ahead_of_receipt`)
    credited_us(device) <= server time elapsed in the window      at every row
    a claim above elapsed x 1.0005 + 2 s raises `faster_than_time`; below, what is above elapsed is
    an honest clock's drift (`clock_drift`) and earns nothing all the same

A gap in reports costs nothing. Nothing here depends on how rows were batched into reports or
accruals: only order within a device matters, and a lane keeps it.

A row is filed under the accounting hour in which it ends, or in which the latest row of its device
before it ends: so the order within a device stands, whatever its clock does. An accrual that read
the lane up to position q for the hours up to t has consumed exactly

    { rows : position <= q and filed <= t }  +  { rows ahead of receipt : position <= q }

so rows filed later wait in their reports and the next accrual reads those again (`due`).
Source: design economics 4, metering 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.money import Big
from domain.record import dataclass

CLOCK_TOLERANCE_US = 2_000_000
"""How far a row may end after its report was received before it is a clock jump."""


CLOCK_DRIFT_PPM = 500
"""How much faster than the server's an honest clock may run."""
REFUSED_US_MAX = 2**53 - 1
"""Refused time is told up to here: a report may claim any length, a fact holds no more."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One row of a signed report, with the wall clock corrected to the server's."""

    position: int  # of the report in its lane
    device_id: str
    boot: str
    mono_start_us: int
    mono_end_us: int
    wall_start_us: int
    wall_end_us: int
    available_us: int
    share_ppm: int
    received_us: int


@dataclass(frozen=True, slots=True)
class Passed:
    """The reports of a node have passed this moment of a device: a row without a lease ends there,
    or a row of some lease begins there. A node tells a device's time in order, so nothing earlier
    is still to come.
    """

    device_id: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a device's time has been counted for this lease."""

    device_id: str
    boot: str
    mono_end_us: int
    wall_end_us: int
    credited_us: Big


@dataclass(frozen=True, slots=True)
class RefusedTime:
    """Reported time that earned nothing, and the rule it broke."""

    rule: str
    us: int


@dataclass(frozen=True, slots=True)
class Pause:
    """A stretch [from_us, to_us) in which the lease holds no device and earns nobody anything."""

    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class Window:
    """What the server knows of the lease: [opened_us, end_us) without its pauses, its devices and
    its share.
    """

    opened_us: int
    end_us: int
    device_ids: tuple[str, ...]
    share_ppm: int
    pauses: tuple[Pause, ...] = ()  # apart from each other, in order

    def paused_us(self, from_us: int, to_us: int) -> int:
        """How much of a stretch of time falls into pauses inside the window."""
        first, last = max(from_us, self.opened_us), min(to_us, self.end_us)
        return sum(max(0, min(one.to_us, last) - max(one.from_us, first)) for one in self.pauses)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a run of rows adds to a lease."""

    ppm_us: int  # sum(share_ppm x us), unfloored
    watermarks: tuple[Watermark, ...]  # of every device of the lease seen so far
    refused: tuple[RefusedTime, ...]  # by rule, in the order of RULES


@dataclass(frozen=True, slots=True)
class Reach:
    """What the accruals of a lease have consumed: rows up to `position` that end by `until_us`."""

    position: int
    until_us: int


def due(rows: Iterable[UsageRow], reached: Reach, until_us: int | None) -> Due:
    """Rows not consumed yet that end by `until_us` (None: all of them, the lease is over).

    A row is filed no earlier than the rows of its device before it, wherever a clock that was set
    back puts its end. One that ends ahead of its receipt is refused as soon as it is read.
    """
    take, resume_position = [], None
    filed_us: dict[str, int] = {}
    for row in rows:
        if _is_ahead(row):
            if row.position > reached.position:
                take.append(row)
            continue
        end_us = max(row.wall_end_us, filed_us.get(row.device_id, 0))
        filed_us[row.device_id] = end_us
        if row.position <= reached.position and end_us <= reached.until_us:
            continue
        if until_us is None or end_us <= until_us:
            take.append(row)
        elif resume_position is None:
            resume_position = row.position - 1
    return Due(tuple(take), resume_position)


@dataclass(frozen=True, slots=True)
class Due:
    """Rows to count now, and the position after which rows still wait (None: none do)."""

    rows: tuple[UsageRow, ...]
    resume_position: int | None


RULES = (
    "unknown_device",
    "ahead_of_receipt",
    "overlap",
    "outside_window",
    "faster_than_time",
    "clock_drift",
)


def count(rows: Iterable[UsageRow], window: Window, marks: Mapping[str, Watermark]) -> Counted:
    """Credit `rows` (in lane order) to a lease that had already reached `marks`."""
    after = dict(marks)
    lost = dict.fromkeys(RULES, 0)
    ppm_us = 0
    for row in rows:
        credited_us, rule, mark = _judge(row, window, after.get(row.device_id), lost)
        if rule is not None:
            lost[rule] += row.available_us
            continue
        assert mark is not None
        after[row.device_id] = mark
        ppm_us += credited_us * min(window.share_ppm, row.share_ppm)
    return Counted(
        ppm_us,
        tuple(after[device] for device in window.device_ids if device in after),
        tuple(RefusedTime(rule, min(us, REFUSED_US_MAX)) for rule, us in lost.items() if us),
    )


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that earned less than it claims: how much less, and the rule."""

    row: UsageRow
    rule: str
    us: int


def refusals(
    rows: Iterable[UsageRow], window: Window, marks: Mapping[str, Watermark]
) -> list[RefusedRow]:
    """What `count` refuses of these rows, row by row: its sums by rule are those of `count`."""
    after = dict(marks)
    found = []
    for row in rows:
        lost = dict.fromkeys(RULES, 0)
        _, rule, mark = _judge(row, window, after.get(row.device_id), lost)
        if rule is not None:
            lost[rule] += row.available_us
        else:
            assert mark is not None
            after[row.device_id] = mark
        found += [RefusedRow(row, broken, us) for broken, us in lost.items() if us]
    return found


def _judge(
    row: UsageRow, window: Window, mark: Watermark | None, lost: dict[str, int]
) -> tuple[int, str | None, Watermark | None]:
    """Credited time and new watermark, or the rule that refuses the whole row."""
    if row.device_id not in window.device_ids:
        return 0, "unknown_device", None
    if _is_ahead(row):
        return 0, "ahead_of_receipt", None
    if mark is not None and _overlaps(row, mark):
        return 0, "overlap", None
    overhang_us = max(0, window.opened_us - row.wall_start_us)
    overhang_us += max(0, row.wall_end_us - window.end_us)
    overhang_us += window.paused_us(row.wall_start_us, row.wall_end_us)
    inside_us = max(0, row.available_us - overhang_us)
    lost["outside_window"] += row.available_us - inside_us
    before_us = mark.credited_us if mark is not None else 0
    elapsed_us = max(0, min(row.received_us, window.end_us) - window.opened_us)
    elapsed_us -= window.paused_us(window.opened_us, row.received_us)
    credited_us = max(0, min(inside_us, elapsed_us - before_us))
    is_faster = before_us + inside_us > most_us(elapsed_us)
    lost["faster_than_time" if is_faster else "clock_drift"] += inside_us - credited_us
    reached = Watermark(
        row.device_id, row.boot, row.mono_end_us, row.wall_end_us, before_us + credited_us
    )
    assert reached.credited_us <= elapsed_us or credited_us == 0
    return credited_us, None, reached


def most_us(elapsed_us: int) -> int:
    """What an honest node can claim of a device in so much of the server's time."""
    return elapsed_us + elapsed_us * CLOCK_DRIFT_PPM // 1_000_000 + CLOCK_TOLERANCE_US


def _is_ahead(row: UsageRow) -> bool:
    return is_ahead(row.wall_end_us, row.received_us)


def is_ahead(at_us: int, received_us: int) -> bool:
    """Whether a moment lies so far after its own receipt that a clock must have jumped."""
    return at_us > received_us + CLOCK_TOLERANCE_US


def _overlaps(row: UsageRow, mark: Watermark) -> bool:
    """By monotonic time within a boot; by corrected wall time across boots, as clocks move."""
    if row.boot == mark.boot:
        return row.mono_start_us < mark.mono_end_us
    return row.wall_start_us < mark.wall_end_us
