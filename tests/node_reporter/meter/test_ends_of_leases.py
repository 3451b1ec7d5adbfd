"""The rows of a lease end where the lease ends by the server's clock, to the microsecond.

    reported start == opening, reported end == end            while no clock is set
    credited == end - opening;   nothing is refused           while clocks wander by microseconds
    every row of a lease lies in its window                   however far the estimates wander
    with the next report nothing of an ended lease is still to come

No two clocks are read at one instant, and no two answers of a server come equally fast: the node's
estimate of the server's clock is another at each look. It is wrong by less than a report takes to
arrive: half the difference between the way there and the way back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from domain.duration import SECOND_US
from domain.metering import counting as accrual
from domain.metering.counting import UsageRow
from ledger.log.report_rows import lease_rows
from node_reporter.clock import Clock, Moment, SteppedClock
from tests.examples import examples
from tests.node_reporter.reporter_scene import MINUTE_US, Scene

PPM = 1_000_000
MILLISECOND_US = 1_000
TRANSFER_US = 100


class Wandering(SteppedClock):
    """Its wall clock is read a little earlier or later than the others, each time otherwise."""

    errors: Iterator[int] = cycle([0])

    def now(self) -> Moment:
        at = super().now()
        return Moment(at.mono_us, at.boot_us, at.wall_us + next(self.errors))


@dataclass
class Hasty:
    """The server's clock as its answers tell it: none of them takes as long as the last."""

    clock: Clock
    errors: Iterator[int]
    boot_id: str = ""

    def now(self) -> Moment:
        at = self.clock.now()
        return Moment(at.mono_us, at.boot_us, at.wall_us + next(self.errors))


@dataclass(frozen=True)
class Turn:
    """Time passes, and then a lease of this slot begins, or the one that is there ends."""

    after_us: int
    slot: int | None


@dataclass
class Life:
    """One device that two leases at most share, and what its node reports of them."""

    folder: Path
    node_errors: list[int]
    server_errors: list[int]
    open: dict[int, int] = field(default_factory=dict)
    leases: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Opening and end by the server's clock."""

    def __post_init__(self) -> None:
        clocks = type("Read", (Wandering,), {"errors": cycle(self.node_errors)})
        self.scene = Scene(self.folder, clocks=clocks)
        true, self.errors = self.scene.true_clock, cycle(self.server_errors)
        self.scene.server.clock = Hasty(true, self.errors)
        self.scene.server.transfer_us = TRANSFER_US

    def live(self, turns: list[Turn]) -> None:
        for turn in turns:
            self.pass_time(turn.after_us)
            if turn.slot is not None:
                self.take(turn.slot)
        for slot in tuple(self.open):
            self.pass_time(3 * SECOND_US)
            self.take(slot)
        self.pass_time(2 * MINUTE_US)
        self.scene.reporter.flush()

    def pass_time(self, us: int) -> None:
        """Polls come every ten seconds; what happens then happens at least a moment later."""
        scene = self.scene
        while us > 0:
            step_us = min(us, scene.tick_us)
            scene.clock.advance(step_us)
            scene.reporter.poll()
            scene.reporter.turn()
            us -= step_us
        scene.clock.advance(20 * MILLISECOND_US)

    def take(self, slot: int) -> None:
        now_us = self.scene.true_clock.now().wall_us
        number = self.open.pop(slot, None)
        if number is None:
            self.open[slot] = number = len(self.scene.server.windows) + 1
            self.scene.lease(number, 0, now_us)
            self.scene.server.windows[-1]["share_ppm"] = PPM // 2
            return
        window = self.scene.server.windows[number - 1]
        window["until_us"] = now_us
        self.leases[str(window["lease_id"])] = (int(window["from_us"]), now_us)

    # --- what the server makes of it -------------------------------------------------------

    def rows(self, lease_id: str) -> list[UsageRow]:
        stored = self.scene.server.stored()
        return [row for one in stored for row in lease_rows(one).rows.get(lease_id, ())]

    def counted(self, lease_id: str) -> accrual.Counted:
        from_us, until_us = self.leases[lease_id]
        (device,) = self.scene.gpus.inventory()
        window = accrual.Window(from_us, until_us, (device.id,), PPM)
        return accrual.count(self.rows(lease_id), window, {})

    def passed_us(self) -> int:
        """How far the device is told of, whether its time was leased or not."""
        stored = self.scene.server.stored()
        return max(at_us for one in stored for at_us in lease_rows(one).passed.values())


turns = st.lists(
    st.builds(
        Turn,
        after_us=st.integers(1, 10) | st.integers(1, 3 * MINUTE_US),
        slot=st.sampled_from([None, 0, 0, 1]),
    ),
    min_size=1,
    max_size=12,
)


def errors(most_us: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-most_us, most_us), min_size=1, max_size=17)


@examples(60)
@given(turns, errors(5), errors(5))
@example([Turn(1, None), Turn(56_959_999, 0)], [0], [0, -1])  # a row that ends as it is sent
def test_a_lease_is_paid_for_its_own_time_to_the_microsecond_while_clocks_wander(
    turns: list[Turn], node_errors: list[int], server_errors: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder), node_errors, server_errors)
        life.live(turns)
        for lease_id, (from_us, until_us) in life.leases.items():
            found, counted = life.rows(lease_id), life.counted(lease_id)
            assert (found[0].wall_start_us, found[-1].wall_end_us) == (from_us, until_us)
            assert counted.refused == ()
            assert counted.watermarks[0].credited_us == until_us - from_us
            assert counted.ppm_us == (until_us - from_us) * (PPM // 2)
            assert life.passed_us() >= until_us
        life.scene.reporter.close()


@examples(60)
@given(turns, errors(5), errors(9 * MILLISECOND_US))
def test_no_row_leaves_the_window_of_its_lease_and_none_is_waited_for_wherever_estimates_go(
    turns: list[Turn], node_errors: list[int], server_errors: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder), node_errors, server_errors)
        life.live(turns)
        for lease_id, (from_us, until_us) in life.leases.items():
            found, counted = life.rows(lease_id), life.counted(lease_id)
            assert all(from_us <= row.wall_start_us for row in found)
            assert all(row.wall_end_us <= until_us for row in found)
            refused = {one.rule: one.us for one in counted.refused}
            assert refused.keys() <= {"clock_drift"}, "the device counted more than the server's"
            available_us = sum(row.available_us for row in found)
            credited_us = sum(mark.credited_us for mark in counted.watermarks)
            assert credited_us + sum(refused.values()) == available_us
            assert life.passed_us() >= until_us
        life.scene.reporter.close()
