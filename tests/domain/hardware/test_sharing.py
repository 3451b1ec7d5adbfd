"""Several leases on one device: each mode by its own rule, none mixed, never more than there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.duration import HOUR_US
from domain.fleet.device import (
    AccrueCapacity,
    CapacityAccrued,
    DeviceReserved,
    DeviceState,
    MigPart,
    decide_accrue,
    device_of,
    evolve,
    gpu_of,
    release,
    reserve,
)
from domain.hardware import mig
from domain.hardware.capacity import Booked, ShareHeld, Span, conserve
from domain.hardware.reasons import HardwareReason
from domain.hardware.sharing import (
    MEMORY,
    MIG,
    MPS,
    SHARING_MODES,
    TIME_SLICE,
    WHOLE,
    Gpu,
    Held,
    admit,
    blocked_ppm,
    part_of,
    price_weight_ppm,
    require_mode,
    slices_of,
)
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.refusal import Reason, Refused
from domain.stream import Stream
from tests.domain.scenes.supply import GPU_0, NODE, NOON_US, device_registered
from tests.examples import examples
from tests.given import Scene

DEVICE_STREAM = Stream("device", GPU_0)
A100 = replace(device_registered(GPU_0), model="NVIDIA A100-SXM4-40GB", memory_mib=40_960)
A30 = replace(device_registered(GPU_0), model="NVIDIA A30", memory_mib=24_576)
idle = evolve(DeviceState(), A100)


@dataclass(frozen=True)
class Ask:
    """What a lease asks of the device."""

    mode: str | None
    share_ppm: int = PPM
    mem_ppm: int = PPM
    profile: str | None = None

    def of(self, state: DeviceState, lease_id: str, at_us: int = NOON_US) -> DeviceReserved:
        return reserve(
            state,
            lease_id,
            self.share_ppm,
            self.mem_ppm,
            at_us,
            mode=self.mode,
            profile=self.profile,
        )


whole = Ask(WHOLE)


def instance(profile: str) -> Ask:
    return Ask(MIG, *mig.asked_ppm(profile), profile)


def percent(threads: int, mem_ppm: int = 1) -> Ask:
    return Ask(MPS, threads * 10_000, mem_ppm)


def one_of(slices: int) -> Ask:
    return Ask(TIME_SLICE, PPM // slices, PPM // slices)


def memory(mem_ppm: int, share_ppm: int | None = None) -> Ask:
    return Ask(MEMORY, mem_ppm if share_ppm is None else share_ppm, mem_ppm)


def holding(*asked: Ask, device: Any = A100) -> DeviceState:
    """The device with these on it, as lease_0, lease_1, ..."""
    state = evolve(DeviceState(), device)
    for number, one in enumerate(asked):
        state = evolve(state, one.of(state, f"lease_{number}"))
    return state


def refused(state: DeviceState, ask: Ask) -> tuple[Reason, Any]:
    with pytest.raises(Refused) as caught:
        ask.of(state, "lease_9")
    return caught.value.reason, caught.value.facts.get("rule")


# What is held says how.


@pytest.mark.parametrize(
    ("ask", "held"),
    [
        (whole, Held(PPM, PPM, WHOLE)),
        (instance("3g.20gb"), Held(428_571, 500_000, MIG, "3g.20gb", 4)),
        (instance("7g.40gb"), Held(PPM, PPM, MIG, "7g.40gb", 0)),
        (percent(37, 250_000), Held(370_000, 250_000, MPS)),
        (one_of(3), Held(333_333, 333_333, TIME_SLICE)),
        (memory(370_000), Held(370_000, 370_000, MEMORY)),
        (memory(500_000, 250_000), Held(250_000, 500_000, MEMORY)),
        (Ask(None), Held(PPM, PPM, WHOLE)),
        (Ask(None, 250_000, 500_000), Held(250_000, 500_000, MEMORY)),
    ],
)
def test_a_device_says_in_which_mode_and_how_much_of_it_a_lease_holds(ask: Ask, held: Held) -> None:
    fact = ask.of(idle, "lease_1")
    assert (fact.share_ppm, fact.mem_ppm) == (held.share_ppm, held.mem_ppm)
    assert fact.mode == held.mode
    assert fact.mig == (None if held.profile is None else MigPart(held.profile, held.start or 0))
    state = evolve(idle, fact)
    assert state.holders == {"lease_1": held}
    assert state.mode == held.mode
    assert evolve(state, release(state, "lease_1", NOON_US)).mode is None


def test_a_profile_has_the_memory_that_this_gpu_gives_it() -> None:
    eighty = replace(A100, model="NVIDIA A100 80GB PCIe", memory_mib=81_920)
    assert instance("1g.10gb").of(idle, "lease_1").mem_ppm == 250_000
    assert instance("1g.10gb").of(evolve(DeviceState(), eighty), "lease_1").mem_ppm == 125_000
    # A lease that is resumed asks for what it had.
    again = Ask(MIG, 142_857, 250_000, "1g.10gb")
    assert again.of(idle, "lease_1").mem_ppm == 250_000


# What a mode refuses.


@pytest.mark.parametrize(
    ("ask", "reason", "rule"),
    [
        (Ask("borrowed"), PartiesReason.UNKNOWN_MODE, "sharing_mode"),
        (Ask(WHOLE, 0), PartiesReason.SHARE_OUT_OF_RANGE, "share_1_to_1000000_ppm"),
        (Ask(MEMORY, PPM + 1), PartiesReason.SHARE_OUT_OF_RANGE, "share_1_to_1000000_ppm"),
        (Ask(MEMORY, 1, 0), PartiesReason.SHARE_OUT_OF_RANGE, "share_1_to_1000000_ppm"),
        (Ask(WHOLE, PPM, 1), PartiesReason.SHARE_OUT_OF_RANGE, "whole_is_1000000_ppm"),
        (Ask(MPS, 375_000), PartiesReason.SHARE_OUT_OF_RANGE, "mps_whole_percent"),
        (Ask(TIME_SLICE, 370_000), PartiesReason.SHARE_OUT_OF_RANGE, "time_slice_one_of_n"),
        (Ask(TIME_SLICE, PPM), PartiesReason.SHARE_OUT_OF_RANGE, "time_slice_one_of_n"),
        (Ask(TIME_SLICE, 999), PartiesReason.SHARE_OUT_OF_RANGE, "time_slice_one_of_n"),
        (Ask(MIG, 142_857, 125_000), HardwareReason.UNKNOWN_PROFILE, "mig_profile"),
        (Ask(MPS, 10_000, 1, "1g.5gb"), HardwareReason.UNKNOWN_PROFILE, "mig_profile"),
        (Ask(MIG, 1, 1, "5g.20gb"), HardwareReason.UNKNOWN_PROFILE, None),
        (
            Ask(MIG, PPM, PPM, "3g.20gb"),
            PartiesReason.SHARE_OUT_OF_RANGE,
            "mig_3g.20gb_is_428571_and_500000_ppm",
        ),
    ],
)
def test_what_no_device_can_do_is_refused_with_the_rules_name(
    ask: Ask, reason: Reason, rule: str | None
) -> None:
    with pytest.raises(Refused) as caught:
        require_mode(ask.mode, ask.profile, ask.share_ppm, ask.mem_ppm)
    assert (caught.value.reason, caught.value.facts.get("rule")) == (reason, rule)
    assert refused(idle, ask) == (reason, rule)


@pytest.mark.parametrize(
    ("gpu", "ask", "rule"),
    [
        (("nvidia", "Tesla V100-SXM2-16GB", 16_384), instance("1g.5gb"), "mig_not_on_this_model"),
        (("amd", "Instinct MI300X", 196_592), instance("1g.5gb"), "mig_not_on_this_model"),
        (("nvidia", "NVIDIA A30", 24_576), instance("1g.5gb"), "mig_profile_not_on_this_model"),
        (("amd", "Instinct MI300X", 196_592), percent(50), "mps_needs_cuda"),
    ],
)
def test_a_device_that_cannot_do_the_mode_refuses_it(
    gpu: tuple[str, str, int], ask: Ask, rule: str
) -> None:
    vendor, model, memory_mib = gpu
    device = replace(A100, vendor=vendor, model=model, memory_mib=memory_mib)
    state = evolve(DeviceState(), device)
    assert refused(state, ask) == (HardwareReason.MODE_NOT_SUPPORTED, rule)


MIXED: dict[str, Callable[[], Ask]] = {
    WHOLE: lambda: whole,
    MIG: lambda: instance("1g.5gb"),
    MPS: lambda: percent(1),
    TIME_SLICE: lambda: one_of(10),
    MEMORY: lambda: memory(1_000),
}


@pytest.mark.parametrize("first", SHARING_MODES)
@pytest.mark.parametrize("second", SHARING_MODES)
def test_two_modes_never_share_a_device_and_when_it_is_free_again_any_may_have_it(
    first: str, second: str
) -> None:
    state = holding(MIXED[first]())
    if first != second:
        assert refused(state, MIXED[second]()) == (
            HardwareReason.DEVICE_TAKEN,
            "one_mode_at_a_time",
        )
    free = evolve(state, release(state, "lease_0", NOON_US + 1))
    assert evolve(free, MIXED[second]().of(free, "lease_1")).mode == second


def test_a_whole_device_takes_no_second_lease() -> None:
    assert refused(holding(whole), whole) == (
        HardwareReason.DEVICE_TAKEN,
        "parts_within_the_device",
    )


def test_a_gpu_cut_by_mig_takes_what_its_placements_allow() -> None:
    state = holding(instance("3g.20gb"), instance("4g.20gb"))
    assert [held.start for held in state.holders.values()] == [4, 0]
    # 4g and 3g are all seven compute slices, although one ppm of compute is left.
    assert refused(state, instance("1g.5gb")) == (
        HardwareReason.DEVICE_TAKEN,
        "parts_within_the_device",
    )
    two = holding(instance("3g.20gb"), instance("3g.20gb"))
    assert refused(two, instance("1g.5gb")) == (
        HardwareReason.DEVICE_TAKEN,
        "parts_within_the_device",
    )
    media = holding(instance("1g.5gb+me"))
    assert refused(media, instance("1g.5gb+me")) == (HardwareReason.DEVICE_TAKEN, "profile_limit")
    assert refused(holding(instance("1g.5gb"), *[instance("1g.5gb")] * 3), instance("4g.20gb")) == (
        HardwareReason.DEVICE_TAKEN,
        "parts_within_the_device",
    )
    assert refused(holding(instance("2g.10gb"), instance("2g.10gb")), instance("3g.20gb")) == (
        HardwareReason.DEVICE_TAKEN,
        "no_placement",
    )


def test_a_freed_instance_leaves_the_others_where_they_are() -> None:
    state = holding(*[instance("1g.5gb")] * 3)
    state = evolve(state, release(state, "lease_1", NOON_US))
    assert {who: held.start for who, held in state.holders.items()} == {"lease_0": 6, "lease_2": 4}
    assert instance("1g.5gb").of(state, "lease_9").mig == MigPart("1g.5gb", 5)


def test_threads_of_mps_clients_add_up_to_a_hundred_percent() -> None:
    state = holding(percent(60), percent(30))
    assert refused(state, percent(11)) == (HardwareReason.DEVICE_TAKEN, "parts_within_the_device")
    assert percent(10).of(state, "lease_9").share_ppm == 100_000


def test_time_slices_have_one_n_as_long_as_anybody_holds_one() -> None:
    state = holding(one_of(4))
    assert refused(state, one_of(5)) == (HardwareReason.DEVICE_TAKEN, "time_slices_of_one_n")
    full = holding(*[one_of(4)] * 4)
    assert refused(full, one_of(4)) == (HardwareReason.DEVICE_TAKEN, "parts_within_the_device")
    thirds = holding(*[one_of(3)] * 3)
    assert refused(thirds, one_of(3)) == (HardwareReason.DEVICE_TAKEN, "parts_within_the_device")


def test_a_lease_has_one_replica_of_a_device() -> None:
    with pytest.raises(Refused) as caught:
        one_of(4).of(holding(one_of(4)), "lease_0")
    assert caught.value.reason is HardwareReason.DEVICE_TAKEN


def test_parts_of_memory_never_exceed_it_however_little_compute_they_have() -> None:
    state = holding(memory(600_000, 1))
    assert refused(state, memory(400_001, 1)) == (
        HardwareReason.DEVICE_TAKEN,
        "parts_within_the_device",
    )
    assert memory(400_000, 1).of(state, "lease_9").mem_ppm == 400_000


@given(st.integers(2, 1_000))
def test_a_share_names_its_number_of_slices(slices: int) -> None:
    assert slices_of(PPM // slices) == slices


@given(st.integers(1, PPM))
def test_a_share_that_no_number_of_slices_has_names_none(share_ppm: int) -> None:
    known = {PPM // slices: slices for slices in range(2, 1_001)}
    assert slices_of(share_ppm) == known.get(share_ppm)


# What nobody can hold, as the device is partitioned.


@pytest.mark.parametrize(
    ("asked", "stranded"),
    [
        ([], 0),
        ([whole], 0),
        ([instance("3g.20gb"), instance("3g.20gb")], 142_858),
        ([instance("1g.5gb")] * 7, 1),
        ([instance("1g.10gb")] * 4, 428_572),
        ([instance("3g.20gb"), instance("4g.20gb")], 1),
        ([instance("3g.20gb")], 1),
        ([one_of(3)] * 3, 1),
        ([one_of(3)], 1),
        ([one_of(4)], 0),
        ([percent(60, PPM)], 400_000),
        ([percent(60)], 0),
        ([memory(PPM, 250_000)], 750_000),
        ([memory(370_000)], 0),
    ],
)
def test_what_the_partition_cannot_sell_is_stranded(asked: list[Ask], stranded: int) -> None:
    state = holding(*asked)
    assert blocked_ppm(state.holders.values(), gpu_of(A100)) == stranded
    assert state.levels[-1].blocked_ppm == stranded


def test_a_model_that_is_reported_anew_strands_nothing_it_cannot_show() -> None:
    state = evolve(holding(instance("3g.20gb")), replace(A100, model="NVIDIA A10", at_us=NOON_US))
    assert state.levels[-1].blocked_ppm == 0


# The larger dimension is a price weight and nothing else.


def test_4g_and_3g_cost_more_than_a_whole_device_and_never_fill_more_than_one() -> None:
    gpu = gpu_of(A100)
    parts = [part_of(MIG, name, *mig.asked_ppm(name), gpu) for name in ("4g.20gb", "3g.20gb")]
    assert [price_weight_ppm(part) for part in parts] == [571_428, 500_000]
    assert sum(part.share_ppm for part in parts) == 999_999
    assert price_weight_ppm(Held(250_000, PPM, MEMORY)) == 250_000


# In the books: for every mode the four are the whole.


def booked(state: DeviceState, to_us: int, *out: Span) -> CapacityAccrued:
    scene = Scene()
    command = AccrueCapacity(
        device_id=GPU_0, to_us=to_us, unavailable=out, at_us=to_us, min_share_ppm=1
    )
    world = _Here(state)
    (change,) = decide_accrue(command, world)
    assert scene.past == ()
    assert isinstance(change.fact, CapacityAccrued)
    return change.fact


@dataclass(frozen=True)
class _Here:
    """A world with one device."""

    device: DeviceState

    def state(self, stream: Stream[Any]) -> Any:
        assert stream == DEVICE_STREAM
        return self.device

    def balance(self, account: str) -> int:
        raise AssertionError(account)


@pytest.mark.parametrize(
    ("asked", "leased_ms", "stranded_ms"),
    [
        ([whole], 3_600_000, 0),
        ([instance("3g.20gb"), instance("3g.20gb")], 3_085_711, 514_288),
        ([instance("1g.5gb")] * 7, 3_599_996, 3),
        ([percent(25)] * 4, 3_600_000, 0),
        ([one_of(3)] * 2, 2_399_997, 3),
        ([memory(370_000)], 1_332_000, 0),
        ([memory(PPM, 250_000)], 900_000, 2_700_000),
    ],
)
def test_an_hour_in_every_mode_is_leased_idle_and_stranded_and_belongs_to_the_node(
    asked: list[Ask], leased_ms: int, stranded_ms: int
) -> None:
    fact = booked(holding(*asked), NOON_US + HOUR_US)
    assert (fact.leased.units, fact.stranded.units) == (leased_ms, stranded_ms)
    idle_ms = 3_600_000 - leased_ms - stranded_ms - fact.unavailable.units
    assert idle_ms >= 0
    assert fact.physical.units == 3_600_000
    assert fact.node_id == NODE


def test_what_is_stranded_while_the_device_is_away_is_unavailable() -> None:
    state = holding(instance("3g.20gb"), instance("3g.20gb"))
    fact = booked(state, NOON_US + HOUR_US, Span(NOON_US, NOON_US + HOUR_US))
    assert (fact.stranded.units, fact.unavailable.units) == (0, 514_288)


# Any history, in any mode.

ASKS = st.one_of(
    st.just(whole),
    st.builds(instance, st.sampled_from([one.name for one in mig.TABLES["A100-40GB"].profiles])),
    st.builds(instance, st.sampled_from(["1g.6gb", "2g.12gb", "4g.24gb"])),
    st.builds(percent, st.integers(1, 100), st.integers(1, PPM)),
    st.builds(one_of, st.integers(2, 12)),
    st.builds(Ask, st.just(TIME_SLICE), st.just(250_000), st.integers(1, PPM)),
    st.builds(memory, st.integers(1, PPM), st.integers(1, PPM)),
    st.builds(Ask, st.sampled_from([None, *SHARING_MODES]), st.integers(-1, PPM + 1)),
)


class Shared(RuleBasedStateMachine):
    """Reservations and releases in every mode, with a second count that knows shares alone."""

    def __init__(self) -> None:
        super().__init__()
        self.now_us = NOON_US
        self.since: dict[str, int] = {}
        self.shares: list[ShareHeld] = []
        self.blocked: list[ShareHeld] = []
        self.blocked_since = NOON_US
        self.state = DeviceState()
        self.number = 0

    @initialize(device=st.sampled_from([A100, A30]))
    def join(self, device: Any) -> None:
        self.state = evolve(self.state, replace(device, at_us=NOON_US))

    def _change(self, fact: Any) -> None:
        before = blocked_ppm(self.state.holders.values(), gpu_of(self._device))
        if before and self.blocked_since < self.now_us:
            self.blocked.append(ShareHeld(before, Span(self.blocked_since, self.now_us)))
        self.blocked_since = self.now_us
        self.state = evolve(self.state, fact)

    @property
    def _device(self) -> Any:
        assert self.state.registered is not None
        return self.state.registered

    @rule(us=st.integers(1, 2 * HOUR_US))
    def wait(self, us: int) -> None:
        self.now_us += us

    @rule(ask=ASKS)
    def take(self, ask: Ask) -> None:
        self.number += 1
        lease_id = f"lease_{self.number}"
        held = list(self.state.holders.values())
        try:
            fact = ask.of(self.state, lease_id, self.now_us)
        except Refused:
            return
        assert {one.mode for one in held} <= {fact.mode}
        self.since[lease_id] = self.now_us
        self._change(fact)

    @precondition(lambda self: self.state.holders)
    @rule(place=st.integers(0, 99))
    def give_back(self, place: int) -> None:
        lease_id = sorted(self.state.holders)[place % len(self.state.holders)]
        share_ppm, from_us = self.state.holders[lease_id].share_ppm, self.since.pop(lease_id)
        if from_us < self.now_us:
            self.shares.append(ShareHeld(share_ppm, Span(from_us, self.now_us), lease_id))
        self._change(release(self.state, lease_id, self.now_us))

    @invariant()
    def never_more_than_there_is_and_in_one_mode(self) -> None:
        held = self.state.holders.values()
        assert sum(one.share_ppm for one in held) <= PPM
        assert sum(one.mem_ppm for one in held) <= PPM
        assert len({one.mode for one in held}) <= 1
        assert len({one.share_ppm for one in held if one.mode == TIME_SLICE}) <= 1
        if any(one.mode == WHOLE for one in held):
            assert len(held) == 1

    @invariant()
    def instances_stand_where_the_hardware_can_have_them(self) -> None:
        cut = [(one.profile, one.start) for one in self.state.holders.values() if one.mode == MIG]
        if not cut:
            return
        table = mig.table_of(self._device.model, self._device.memory_mib)
        assert table is not None
        before: frozenset[mig.Instance] = frozenset()
        for name, start in sorted(cut, key=lambda one: -1 if one[1] is None else one[1]):
            profile = table.profile(str(name))
            assert profile is not None
            assert start is not None
            assert mig.is_possible(table, before, profile, start)
            before = before | {mig.Instance(start, profile.name)}

    @invariant()
    def leased_idle_stranded_and_unavailable_are_the_physical_time(self) -> None:
        if self.now_us == NOON_US or self.state.registered is None:
            return
        fact = booked(self.state, self.now_us)
        total = Booked(
            fact.physical.units, fact.leased.units, fact.stranded.units, fact.unavailable.units
        )
        assert total.leased + total.idle + total.stranded + total.unavailable == total.physical
        assert min(total.leased, total.idle, total.stranded, total.unavailable) >= 0
        self._agrees(fact)

    def _agrees(self, fact: CapacityAccrued) -> None:
        """With the suite's own way to count, from shares and stretches of time alone."""
        open_now = [
            ShareHeld(self.state.holders[who].share_ppm, Span(from_us, self.now_us), who)
            for who, from_us in self.since.items()
            if from_us < self.now_us
        ]
        blocked = list(self.blocked)
        now_blocked = blocked_ppm(self.state.holders.values(), gpu_of(self._device))
        if now_blocked and self.blocked_since < self.now_us:
            blocked.append(ShareHeld(now_blocked, Span(self.blocked_since, self.now_us)))
        window = Span(NOON_US, self.now_us)
        found = conserve(window, [*self.shares, *open_now], blocked, [], 1).booked
        assert found.physical == self.now_us - NOON_US
        assert found.stranded // 1_000 == fact.stranded.units
        leases = len(self.shares) + len(open_now)
        assert 0 <= fact.leased_ppm_us // PPM - found.leased <= leases


Shared.TestCase.settings = examples(60, stateful_step_count=30)
test_no_history_in_any_mode_leases_more_than_the_device = Shared.TestCase


@given(st.lists(ASKS, max_size=12))
def test_whatever_is_admitted_leaves_both_sums_within_the_device(asked: list[Ask]) -> None:
    gpu, held = gpu_of(A100), list[Held]()
    for ask in asked:
        try:
            mode = require_mode(ask.mode, ask.profile, ask.share_ppm, ask.mem_ppm)
            part = part_of(mode, ask.profile, ask.share_ppm, ask.mem_ppm, gpu)
            held.append(admit(part, held, gpu))
        except Refused:
            continue
        assert sum(one.share_ppm for one in held) <= PPM
        assert sum(one.mem_ppm for one in held) <= PPM
        stranded = blocked_ppm(held, gpu)
        assert 0 <= stranded <= PPM - sum(one.share_ppm for one in held)


def test_a_gpu_is_told_by_vendor_model_and_memory() -> None:
    assert gpu_of(A100) == Gpu(A100.vendor, A100.model, A100.memory_mib)
    assert device_of(Scene().given((DEVICE_STREAM, A100)), GPU_0).node_id == NODE
