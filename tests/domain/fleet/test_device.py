"""Who holds which share of an accelerator, and where its time went: nothing lost, nothing twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.device import (
    AccrueCapacity,
    CapacityAccrued,
    DeviceFact,
    DeviceReshaped,
    DeviceRetired,
    DeviceState,
    ReshapeDevice,
    decide_accrue,
    device_of,
    evolve,
    free_mem,
    free_share,
    release,
    reserve,
)
from domain.fleet.reasons import FleetReason
from domain.hardware.capacity import Booked, Span
from domain.hardware.reasons import HardwareReason
from domain.money import PPM, Amount, Asset
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.supply import GPU_0, NODE, NOON_US, device_registered
from tests.given import Scene

DEVICE_STREAM = Stream("device", GPU_0)
HOUR_MS = 3_600_000
LATER_US = NOON_US + 1_000 * HOUR_US

registered = device_registered(GPU_0)
retired = DeviceRetired(device_id=GPU_0, node_id=NODE, at_us=NOON_US + HOUR_US)
idle = evolve(DeviceState(), registered)


def accrue(
    to_us: int = NOON_US + HOUR_US,
    *unavailable: Span,
    min_share_ppm: int = 1,
    mining: tuple[Span, ...] = (),
) -> AccrueCapacity:
    return AccrueCapacity(
        device_id=GPU_0,
        to_us=to_us,
        unavailable=unavailable,
        at_us=LATER_US,
        min_share_ppm=min_share_ppm,
        mining=mining,
    )


def holding(*shares: int, at_us: int = NOON_US) -> Scene:
    """A device of which lease_0, lease_1, ... hold these shares of compute and memory."""
    state, scene = idle, Scene().given((DEVICE_STREAM, registered))
    for number, share_ppm in enumerate(shares):
        fact = reserve(state, f"lease_{number}", share_ppm, share_ppm, at_us)
        state, scene = evolve(state, fact), scene.given((DEVICE_STREAM, fact))
    return scene


def released(scene: Scene, lease_id: str, at_us: int) -> Scene:
    fact = release(device_of(scene, GPU_0), lease_id, at_us)
    return scene.given((DEVICE_STREAM, fact))


def booked(scene: Scene, *commands: AccrueCapacity) -> Booked:
    """The sums of all bookings, in GPU-milliseconds."""
    for command in commands:
        scene = scene.after(command)
    facts = [fact for _, fact in scene.past if isinstance(fact, CapacityAccrued)]
    return total_of(facts)


def total_of(facts: list[CapacityAccrued]) -> Booked:
    return Booked(
        physical=sum(fact.physical.units for fact in facts),
        leased=sum(fact.leased.units for fact in facts),
        stranded=sum(fact.stranded.units for fact in facts),
        unavailable=sum(fact.unavailable.units for fact in facts),
        mined=sum(fact.mined.units for fact in facts),
    )


# Holding.


def test_a_share_is_reserved_and_given_back() -> None:
    fact = reserve(idle, "lease_1", 250_000, 500_000, NOON_US)
    assert (fact.share_ppm, fact.mem_ppm) == (250_000, 500_000)
    held = evolve(idle, fact)
    assert (free_share(held), free_mem(held)) == (750_000, 500_000)
    back = evolve(held, release(held, "lease_1", NOON_US + 1))
    assert (free_share(back), free_mem(back)) == (PPM, PPM)


def test_shares_may_fill_a_device_exactly_and_not_by_one_part_more() -> None:
    state = device_of(holding(250_000, 250_000, 250_000), GPU_0)
    assert free_share(evolve(state, reserve(state, "lease_9", 250_000, 1, NOON_US))) == 0
    with pytest.raises(Refused) as caught:
        reserve(state, "lease_9", 250_001, 1, NOON_US)
    assert caught.value.reason is HardwareReason.DEVICE_TAKEN


def test_memory_is_counted_apart_from_compute() -> None:
    state = evolve(idle, reserve(idle, "lease_1", 1, 600_000, NOON_US))
    with pytest.raises(Refused) as caught:
        reserve(state, "lease_2", 1, 400_001, NOON_US)
    assert caught.value.reason is HardwareReason.DEVICE_TAKEN


def test_a_whole_device_and_shares_of_it_never_mix() -> None:
    for first, second in ((PPM, 1), (1, PPM)):
        with pytest.raises(Refused) as caught:
            reserve(device_of(holding(first), GPU_0), "lease_9", second, second, NOON_US)
        assert caught.value.reason is HardwareReason.DEVICE_TAKEN


def test_a_lease_holds_one_share_of_a_device() -> None:
    with pytest.raises(Refused) as caught:
        reserve(device_of(holding(1), GPU_0), "lease_0", 1, 1, NOON_US)
    assert caught.value.reason is HardwareReason.DEVICE_TAKEN


@pytest.mark.parametrize(("share_ppm", "mem_ppm"), [(0, 1), (1, 0), (-1, 1), (PPM + 1, 1)])
def test_a_share_is_above_nothing_and_at_most_the_whole(share_ppm: int, mem_ppm: int) -> None:
    with pytest.raises(Refused) as caught:
        reserve(idle, "lease_1", share_ppm, mem_ppm, NOON_US)
    assert caught.value.reason is PartiesReason.SHARE_OUT_OF_RANGE


def test_a_device_out_of_service_is_not_reserved() -> None:
    for state in (DeviceState(), evolve(idle, retired)):
        assert (free_share(state), free_mem(state)) == (0, 0)
        with pytest.raises(Refused) as caught:
            reserve(state, "lease_1", 1, 1, NOON_US)
        assert caught.value.reason is FleetReason.DEVICE_UNKNOWN


def test_only_a_holder_is_released() -> None:
    with pytest.raises(KeyError):
        release(idle, "lease_1", NOON_US)


def test_registering_again_keeps_who_holds_it() -> None:
    held = device_of(holding(250_000), GPU_0)
    again = evolve(held, replace(registered, gpu_class="professional", at_us=NOON_US + 1))
    assert again.holders == held.holders
    assert again.gpu_class == "professional"


# A partition that is gone.


def reshape(*lease_ids: str, node_id: str = NODE) -> ReshapeDevice:
    return ReshapeDevice(
        device_id=GPU_0, node_id=node_id, lease_ids=lease_ids, by=NODE, at_us=NOON_US
    )


def test_a_device_that_was_partitioned_anew_says_whose_part_is_gone() -> None:
    scene = holding(250_000, 250_000, 250_000)
    told = DeviceReshaped(
        device_id=GPU_0, node_id=NODE, lease_ids=("lease_0", "lease_2"), by=NODE, at_us=NOON_US
    )
    scene.when(reshape("lease_0", "lease_2")).then((DEVICE_STREAM, told))
    # It is the leases' until they are closed, which happens in the same append.
    assert device_of(scene.given((DEVICE_STREAM, told)), GPU_0) == device_of(scene, GPU_0)


def test_only_who_holds_a_part_can_lose_it_and_only_on_its_own_node() -> None:
    holding(250_000).when(reshape("lease_1")).then_refused(FleetReason.LEASE_STATE)
    holding(250_000).when(reshape("lease_0", node_id="x")).then_refused(FleetReason.DEVICE_UNKNOWN)
    gone = holding().given((DEVICE_STREAM, retired))
    gone.when(reshape("lease_0")).then_refused(FleetReason.DEVICE_UNKNOWN)


# Where the time went.


def test_four_quarters_for_an_hour_are_one_gpu_hour() -> None:
    scene = holding(250_000, 250_000, 250_000, 250_000)
    scene.when(accrue()).then(
        (
            DEVICE_STREAM,
            CapacityAccrued(
                device_id=GPU_0,
                from_us=NOON_US,
                to_us=NOON_US + HOUR_US,
                physical=Amount(Asset.GPU_MS, HOUR_MS),
                leased=Amount(Asset.GPU_MS, HOUR_MS),
                stranded=Amount(Asset.GPU_MS, 0),
                unavailable=Amount(Asset.GPU_MS, 0),
                mined=Amount(Asset.GPU_MS, 0),
                physical_us=HOUR_US,
                leased_ppm_us=HOUR_US * PPM,
                stranded_ppm_us=0,
                unavailable_ppm_us=0,
                mined_ppm_us=0,
                at_us=LATER_US,
                node_id=NODE,
                lane=None,
                usage_position=None,
            ),
        )
    )


def test_a_device_nobody_holds_is_idle() -> None:
    whole = booked(holding(), accrue())
    assert whole == Booked(physical=HOUR_MS, leased=0, stranded=0, unavailable=0)
    assert whole.idle == HOUR_MS


def test_a_lease_counts_from_its_reservation_to_its_release() -> None:
    scene = released(
        holding(500_000, at_us=NOON_US + 600_000_000), "lease_0", NOON_US + HOUR_US // 2
    )
    assert booked(scene, accrue()).leased == 1_200_000 // 2


def test_a_device_that_is_out_is_unavailable_except_for_what_is_leased() -> None:
    out = Span(NOON_US, NOON_US + HOUR_US // 2)
    hour = booked(holding(250_000), accrue(NOON_US + HOUR_US, out, out))
    assert hour.leased == HOUR_MS // 4
    assert hour.unavailable == HOUR_MS // 2 * 3 // 4
    assert hour.idle == HOUR_MS // 2 * 3 // 4


MINES = Span(NOON_US + HOUR_US // 4, NOON_US + HOUR_US)


def test_a_device_nobody_holds_is_mined_while_its_node_mines() -> None:
    """C-10: apart from idle, never as usage of a lease."""
    hour = booked(holding(), accrue(mining=(MINES,)))
    assert hour == Booked(
        physical=HOUR_MS, leased=0, stranded=0, unavailable=0, mined=HOUR_MS * 3 // 4
    )
    assert hour.idle == HOUR_MS // 4
    out = Span(NOON_US + HOUR_US // 2, NOON_US + HOUR_US)
    away = booked(holding(), accrue(NOON_US + HOUR_US, out, mining=(MINES,)))
    assert (away.mined, away.unavailable) == (HOUR_MS // 4, HOUR_MS // 2), "not there, not mined"


def test_a_device_of_which_a_lease_holds_a_part_is_not_mined() -> None:
    half = released(holding(250_000), "lease_0", NOON_US + HOUR_US // 2)
    hour = booked(half, accrue(mining=(Span(NOON_US, NOON_US + HOUR_US),)))
    assert (hour.leased, hour.mined) == (HOUR_MS // 8, HOUR_MS // 2)
    assert hour.idle == HOUR_MS // 2 * 3 // 4, "the rest of the shared device"


def test_a_seat_of_software_does_not_mine() -> None:
    seat = replace(registered, kind="seat", capacity_asset=Asset.SEAT_MS)
    scene = Scene().given((DEVICE_STREAM, seat))
    assert booked(scene, accrue(mining=(MINES,))).mined == 0


def test_spans_outside_the_booked_stretch_count_only_inside_it() -> None:
    out = Span(NOON_US - HOUR_US, NOON_US + 3 * HOUR_US)
    hour = booked(holding(), accrue(NOON_US + HOUR_US, out))
    assert hour == Booked(physical=HOUR_MS, leased=0, stranded=0, unavailable=HOUR_MS)


def test_a_rest_too_small_to_sell_is_stranded() -> None:
    seven = (142_857,) * 7
    assert booked(holding(*seven), accrue(min_share_ppm=142_857)).stranded == HOUR_MS // PPM
    assert booked(holding(*seven), accrue(min_share_ppm=142_857)).leased == 3_599_996
    assert booked(holding(*seven), accrue(min_share_ppm=1)).stranded == 0


def test_compute_without_any_memory_left_is_stranded() -> None:
    fact = reserve(idle, "lease_1", 250_000, PPM, NOON_US)
    scene = Scene().given((DEVICE_STREAM, registered), (DEVICE_STREAM, fact))
    assert booked(scene, accrue()).stranded == HOUR_MS * 3 // 4


def test_a_stretch_is_booked_once() -> None:
    once = holding().after(accrue())
    once.when(accrue()).then_nothing()
    once.when(accrue(NOON_US + HOUR_US - 1)).then_refused(
        FleetReason.DEVICE_INTERVAL, counted_to_us=..., to_us=...
    )


def test_the_future_is_not_booked() -> None:
    holding().when(replace(accrue(), at_us=NOON_US + HOUR_US - 1)).then_refused(
        FleetReason.DEVICE_INTERVAL, counted_to_us=..., to_us=...
    )


def test_a_span_runs_forward() -> None:
    for span in (Span(NOON_US, NOON_US), Span(NOON_US + 1, NOON_US)):
        for command in (accrue(NOON_US + HOUR_US, span), accrue(mining=(span,))):
            holding().when(command).then_refused(FleetReason.DEVICE_INTERVAL, device_id="GPU-0")


def test_an_unknown_device_has_no_time() -> None:
    Scene().when(accrue()).then_refused(FleetReason.DEVICE_UNKNOWN)


def test_a_release_dated_before_the_last_booking_counts_from_there() -> None:
    scene = holding(PPM).after(accrue())
    late = released(scene, "lease_0", NOON_US + HOUR_US // 2)
    assert booked(late, accrue(NOON_US + 2 * HOUR_US)) == Booked(
        physical=2 * HOUR_MS, leased=HOUR_MS, stranded=0, unavailable=0
    )


def test_a_retired_device_has_no_time_until_it_is_registered_again() -> None:
    back = replace(registered, node_id="node_2", at_us=NOON_US + 2 * HOUR_US)
    scene = holding().given((DEVICE_STREAM, retired), (DEVICE_STREAM, back))
    assert booked(scene, accrue(NOON_US + 3 * HOUR_US)).physical == 2 * HOUR_MS
    assert device_of(scene, GPU_0).node_id == "node_2"


def test_a_device_that_was_retired_all_along_books_nothing() -> None:
    gone = holding().given((DEVICE_STREAM, retired)).after(accrue())
    gone.when(accrue(NOON_US + 5 * HOUR_US)).then_nothing()


def test_a_fraction_of_a_millisecond_is_booked_when_it_is_whole() -> None:
    third = holding(333_333)
    steps = [accrue(NOON_US + us) for us in range(500, 10_001, 500)]
    assert booked(third, *steps) == booked(third, accrue(NOON_US + 10_000))
    assert booked(third, *steps).leased == 3


# The identity, for any history.


@dataclass(frozen=True)
class Step:
    """Let some time pass, then try something."""

    wait_us: int
    what: str  # "reserve", "release", "accrue", "retire", "register"
    lease_id: str
    share_ppm: int
    mem_ppm: int
    out_us: int
    mines_us: int


steps = st.lists(
    st.builds(
        Step,
        wait_us=st.integers(0, 2_000_000_000),
        what=st.sampled_from(["reserve", "reserve", "release", "accrue", "retire", "register"]),
        lease_id=st.sampled_from([f"lease_{number}" for number in range(5)]),
        share_ppm=st.sampled_from([1, 142_857, 250_000, 333_333, 500_000, PPM]),
        mem_ppm=st.sampled_from([1, 250_000, 500_000, PPM]),
        out_us=st.integers(0, 3_000_000_000),
        mines_us=st.integers(0, 3_000_000_000),
    ),
    max_size=40,
)


@dataclass(frozen=True)
class Here:
    """A world with one device."""

    device: DeviceState

    def state(self, stream: Stream[Any]) -> Any:
        assert stream == DEVICE_STREAM
        return self.device

    def balance(self, account: str) -> int:
        raise AssertionError(account)


class History:
    """A device lived through, with a second count of its time that knows nothing of levels."""

    def __init__(self) -> None:
        self.state = idle
        self.now_us = NOON_US
        self.physical_us = 0
        self.leased_ppm_us = 0
        self.booked: list[CapacityAccrued] = []

    def live(self, step: Step) -> None:
        held = sum(share.share_ppm for share in self.state.holders.values())
        self.leased_ppm_us += held * step.wait_us
        self.physical_us += step.wait_us if self.state.is_live else 0
        self.now_us += step.wait_us
        if step.what == "accrue":
            mined = Span(self.now_us - step.mines_us - 1, self.now_us)
            self.book(Span(self.now_us - step.out_us - 1, self.now_us), mining=(mined,))
            return
        fact = self._fact(step)
        if fact is not None:
            self.state = evolve(self.state, fact)

    def book(self, *out: Span, mining: tuple[Span, ...] = ()) -> None:
        command = accrue(self.now_us, *out, min_share_ppm=142_857, mining=mining)
        command = replace(command, at_us=self.now_us)
        for change in decide_accrue(command, Here(self.state)):
            self.booked.append(change.fact)
            self.state = evolve(self.state, change.fact)

    def total(self) -> Booked:
        return total_of(self.booked)

    def _fact(self, step: Step) -> DeviceFact | None:
        match step.what:
            case "reserve":
                try:
                    return reserve(
                        self.state, step.lease_id, step.share_ppm, step.mem_ppm, self.now_us
                    )
                except Refused:
                    return None
            case "release" if step.lease_id in self.state.holders:
                return release(self.state, step.lease_id, self.now_us)
            case "retire" if self.state.is_live and not self.state.holders:
                return DeviceRetired(device_id=GPU_0, node_id=NODE, at_us=self.now_us)
            case "register" if not self.state.is_live:
                return replace(registered, at_us=self.now_us)
            case _:
                return None


@given(steps)
def test_the_shares_of_a_device_never_add_up_to_more_than_the_whole(lived: list[Step]) -> None:
    history = History()
    for step in lived:
        history.live(step)
        holders = history.state.holders.values()
        assert sum(held.share_ppm for held in holders) <= PPM
        assert sum(held.mem_ppm for held in holders) <= PPM


@given(steps)
def test_leased_idle_mined_stranded_and_unavailable_are_the_whole_time(lived: list[Step]) -> None:
    history = History()
    for step in lived:
        history.live(step)
        assert history.total().idle >= 0
    history.book()
    total = history.total()
    parts = (total.leased, total.idle, total.mined, total.stranded, total.unavailable)
    assert sum(parts) == total.physical
    assert total.physical == history.physical_us // 1_000
    assert total.leased == history.leased_ppm_us // (PPM * 1_000)
    assert min(parts) >= 0


@given(steps)
def test_however_often_the_time_is_booked_the_sums_are_the_same(lived: list[Step]) -> None:
    often, once = History(), History()
    for step in lived:
        often.live(replace(step, what="" if step.what == "accrue" else step.what))
        often.book()
        once.live(replace(step, what="" if step.what == "accrue" else step.what))
    once.book()
    assert often.total() == once.total()


@given(steps)
def test_bookings_follow_each_other_without_gap_or_overlap(lived: list[Step]) -> None:
    history = History()
    for step in lived:
        history.live(step)
    ends = [NOON_US, *(fact.to_us for fact in history.booked)]
    assert [fact.from_us for fact in history.booked] == ends[:-1]
