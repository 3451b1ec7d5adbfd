"""Which MIG instances fit beside which, where they begin, and what a partition strands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware import mig
from domain.hardware.mig import TABLES, Held, Instance, Profile, Table
from domain.hardware.reasons import HardwareReason
from domain.money import PPM
from domain.refusal import Reason, Refused
from tests.examples import examples

A100 = TABLES["A100-40GB"]
SMALL = ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
EMPTY: Held = frozenset()


def names(*short: str) -> tuple[str, ...]:
    """The A100-40GB's names of 1g, 1g+me, 1gx2 (double memory), 2g, 3g, 4g, 7g."""
    known = dict(zip(("1g", "1g+me", "1gx2", "2g", "3g", "4g", "7g"), _all(A100), strict=True))
    return tuple(known[one] for one in short)


def _all(table: Table) -> tuple[str, ...]:
    return tuple(profile.name for profile in table.profiles)


def profile_of(table: Table, name: str) -> Profile:
    profile = table.profile(name)
    assert profile is not None
    return profile


def cut(*instances: tuple[str, int]) -> Held:
    return frozenset(Instance(start, name) for name, start in instances)


def refusal(table: Table, held: Held, name: str) -> Reason:
    with pytest.raises(Refused) as caught:
        mig.place(table, held, name)
    return caught.value.reason


def legal_sets(table: Table, allowed: Iterable[str]) -> set[Held]:
    """Every set of placements that can be reached, by brute force."""
    wanted, found, waiting = set(allowed), {EMPTY}, [EMPTY]
    while waiting:
        held = waiting.pop()
        for instance in mig.placements(table, held):
            more = held | {instance}
            if instance.profile in wanted and more not in found:
                found.add(more)
                waiting.append(more)
    return found


def maximal(table: Table, sets: set[Held], allowed: Iterable[str]) -> set[Held]:
    wanted = set(allowed)
    return {
        held
        for held in sets
        if not any(one.profile in wanted for one in mig.placements(table, held))
    }


def multisets(sets: Iterable[Held]) -> set[tuple[tuple[str, int], ...]]:
    return {tuple(sorted(Counter(instance.profile for instance in held).items())) for held in sets}


# The counts that anybody else's tables have to give too.


def test_five_profiles_have_298_placement_sets_of_38_kinds_and_19_full_ones_of_14() -> None:
    sets = legal_sets(A100, SMALL)
    full = maximal(A100, sets, SMALL)
    assert len(sets) == 298
    assert len(multisets(sets)) == 38
    assert len(full) == 19
    assert len(multisets(full)) == 14


@pytest.mark.parametrize(
    "model", ["A100-40GB", "A100-80GB", "H100-80GB", "H100-94GB", "H200-141GB"]
)
def test_all_seven_profiles_have_2319_placement_sets_of_128_kinds_and_239_full_of_64(
    model: str,
) -> None:
    table = TABLES[model]
    sets = legal_sets(table, _all(table))
    full = maximal(table, sets, _all(table))
    assert len(sets) == 2_319
    assert len(multisets(sets)) == 128
    assert len(full) == 239
    assert len(multisets(full)) == 64


# What is legal together, by whatever order and at whatever start.


LEGAL = (
    ("1g",) * 7,
    ("3g", "1g", "1g", "1g", "1g"),
    ("2g", "2g", "2g", "1g"),
    ("3g", "2g", "2g"),
    ("3g", "3g"),
    ("4g", "3g"),
    ("4g", "1g", "1g", "1g"),
    ("1gx2",) * 4,
    ("1gx2", "1gx2", "3g"),
)
ILLEGAL = (
    ("3g", "3g", "1g"),
    ("4g", "4g"),
    ("4g", "3g", "1g"),
    ("7g", "1g"),
    ("2g",) * 4,
    ("1g+me", "1g+me"),
    ("1gx2",) * 4 + ("1g",) * 3,
)


@lru_cache(maxsize=1)
def _kinds() -> set[tuple[tuple[str, int], ...]]:
    return multisets(legal_sets(A100, _all(A100)))


@pytest.mark.parametrize("short", LEGAL, ids="+".join)
def test_these_can_be_together(short: tuple[str, ...]) -> None:
    assert tuple(sorted(Counter(names(*short)).items())) in _kinds()


@pytest.mark.parametrize("short", ILLEGAL, ids="+".join)
def test_these_cannot_be_together_in_any_order_or_place(short: tuple[str, ...]) -> None:
    assert tuple(sorted(Counter(names(*short)).items())) not in _kinds()


def test_four_double_memory_and_three_single_have_seven_compute_but_eleven_memory_slices() -> None:
    wanted = [profile_of(A100, name) for name in names(*ILLEGAL[-1])]
    assert sum(profile.compute for profile in wanted) == A100.compute
    assert sum(profile.memory for profile in wanted) == 11 > A100.memory


# The order traps.


def test_a_3g_at_0_leaves_no_room_for_a_4g_and_so_is_placed_at_4() -> None:
    assert refusal(A100, cut(("3g.20gb", 0)), "4g.20gb") is HardwareReason.NO_PLACEMENT
    assert mig.place(A100, EMPTY, "3g.20gb") == 4
    assert mig.place(A100, cut(("3g.20gb", 4)), "4g.20gb") == 0


def test_1g_at_0_1_and_5_leaves_no_3g_or_4g_and_so_1g_fills_from_6_down() -> None:
    scattered = cut(("1g.5gb", 0), ("1g.5gb", 1), ("1g.5gb", 5))
    assert refusal(A100, scattered, "3g.20gb") is HardwareReason.NO_PLACEMENT
    assert refusal(A100, scattered, "4g.20gb") is HardwareReason.NO_PLACEMENT
    held, starts = EMPTY, []
    for _ in range(7):
        start = mig.place(A100, held, "1g.5gb")
        starts.append(start)
        held = held | {Instance(start, "1g.5gb")}
    assert starts == [6, 5, 4, 3, 2, 1, 0]


def test_each_refusal_names_the_first_rule_that_is_broken() -> None:
    assert refusal(A100, EMPTY, "3g.40gb") is HardwareReason.UNKNOWN_PROFILE
    assert refusal(A100, cut(("4g.20gb", 0)), "4g.20gb") is HardwareReason.PROFILE_LIMIT
    assert refusal(A100, cut(("1g.5gb+me", 6)), "1g.5gb+me") is HardwareReason.PROFILE_LIMIT
    assert refusal(A100, cut(("7g.40gb", 0)), "1g.5gb") is HardwareReason.COMPUTE_FULL
    assert (
        refusal(A100, cut(("3g.20gb", 0), ("3g.20gb", 4)), "1g.5gb") is HardwareReason.NO_PLACEMENT
    )


# What a partition strands.


@pytest.mark.parametrize(
    ("held", "slices"),
    [
        (cut(("3g.20gb", 0), ("3g.20gb", 4)), 1),
        (cut(("1g.10gb", 0), ("1g.10gb", 2), ("1g.10gb", 4), ("1g.10gb", 6)), 3),
        (cut(("3g.20gb", 0)), 1),  # the slice beside memory 0..3 can never be used
        (cut(("3g.20gb", 4)), 0),
        (cut(("4g.20gb", 0), ("3g.20gb", 4)), 0),
        (EMPTY, 0),
    ],
)
def test_a_partition_strands_what_no_further_instance_can_use(held: Held, slices: int) -> None:
    assert mig.stranded_slices(A100, held) == slices


def test_an_a30_has_four_slices_and_strands_none() -> None:
    a30 = TABLES["A30-24GB"]
    sets = legal_sets(a30, _all(a30))
    assert {mig.stranded_slices(a30, held) for held in sets} == {0}
    assert mig.place(a30, EMPTY, "2g.12gb") == 2
    assert (a30.share_ppm(profile_of(a30, "2g.12gb")), a30.compute) == (500_000, 4)


@pytest.mark.parametrize("model", sorted(TABLES))
def test_further_slices_are_the_most_of_every_way_to_fill_up(model: str) -> None:
    table = TABLES[model]
    sets = legal_sets(table, _all(table))
    compute = {held: sum(profile_of(table, one.profile).compute for one in held) for held in sets}
    for held in list(sets)[::37]:
        most = max(compute[fuller] for fuller in sets if held <= fuller)
        assert mig.further_slices(table, held) == most - compute[held]


# The tables themselves.


def test_two_shares_of_a_profile_are_floors_and_4g_with_3g_is_less_than_the_whole() -> None:
    shares = {profile.compute: A100.share_ppm(profile) for profile in A100.profiles}
    assert shares == {1: 142_857, 2: 285_714, 3: 428_571, 4: 571_428, 7: PPM}
    larger = [
        max(A100.share_ppm(one), A100.mem_ppm(one))
        for one in (profile_of(A100, "4g.20gb"), profile_of(A100, "3g.20gb"))
    ]
    assert sum(larger) > PPM  # 15/14: the larger dimension must never be what is conserved
    assert shares[4] + shares[3] == PPM - 1


@pytest.mark.parametrize("model", sorted(TABLES))
def test_no_partition_holds_more_than_the_device_in_either_dimension(model: str) -> None:
    table = TABLES[model]
    for held in legal_sets(table, _all(table)):
        profiles = [profile_of(table, one.profile) for one in held]
        assert sum(table.share_ppm(one) for one in profiles) <= PPM
        assert sum(table.mem_ppm(one) for one in profiles) <= PPM


@pytest.mark.parametrize(
    ("model", "memory_mib", "board"),
    [
        ("NVIDIA A100-SXM4-40GB", 40_960, "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", 81_920, "A100-80GB"),
        ("A100", 81_920, "A100-80GB"),
        ("NVIDIA H100 80GB HBM3", 81_559, "H100-80GB"),
        ("NVIDIA H100 NVL", 95_830, "H100-94GB"),
        ("NVIDIA H200", 143_771, "H200-141GB"),
        ("NVIDIA A30", 24_576, "A30-24GB"),
        ("NVIDIA GH200 480GB", 97_871, None),
        ("NVIDIA H100 96GB", 97_871, None),
        ("Tesla V100-SXM2-16GB", 16_384, None),
        ("NVIDIA A10", 23_028, None),
        ("NVIDIA A100-SXM4-40GB", 0, None),
    ],
)
def test_a_gpu_is_known_by_its_name_and_its_memory_or_not_cut_at_all(
    model: str, memory_mib: int, board: str | None
) -> None:
    found = mig.table_of(model, memory_mib)
    assert (None if found is None else found.model) == board


def test_one_name_is_of_two_sizes_and_the_least_is_what_is_asked() -> None:
    memory = {
        table.model: table.mem_ppm(found)
        for table in TABLES.values()
        if (found := table.profile("1g.10gb")) is not None
    }
    assert memory == {"A100-40GB": 250_000, "A100-80GB": 125_000, "H100-80GB": 125_000}
    assert mig.asked_ppm("1g.10gb") == (142_857, 125_000)


def test_the_compute_share_of_a_name_is_the_same_on_every_gpu_that_has_it() -> None:
    shares: dict[str, set[int]] = {}
    for table in TABLES.values():
        for profile in table.profiles:
            shares.setdefault(profile.name, set()).add(table.share_ppm(profile))
    assert all(len(found) == 1 for found in shares.values())


def test_a_name_that_no_gpu_has_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        mig.asked_ppm("5g.50gb")
    assert caught.value.reason is HardwareReason.UNKNOWN_PROFILE
    assert mig.has_profile("NVIDIA H100 80GB HBM3", "3g.40gb")
    assert not mig.has_profile("Tesla V100-SXM2-16GB", "3g.40gb")


# The rule of the start, for any history.


@st.composite
def histories(draw: st.DrawFn) -> tuple[Table, list[str | int]]:
    """A GPU and what happens to it: a profile is asked for, or the nth instance is freed."""
    table = draw(st.sampled_from(sorted(TABLES.values(), key=lambda one: one.model)))
    step = st.one_of(st.sampled_from(_all(table)), st.integers(0, 6))
    return table, draw(st.lists(step, max_size=25))


def _lived(table: Table, steps: list[str | int]) -> Iterator[tuple[Held, str, int]]:
    """(held before, profile, start) of every placement of a history."""
    held = EMPTY
    for step in steps:
        if isinstance(step, int):
            held = held - set(sorted(held)[step : step + 1])
            continue
        try:
            start = mig.place(table, held, step)
        except Refused:
            continue
        yield held, step, start
        held = held | {Instance(start, step)}


@examples(60)
@given(histories())
def test_the_start_leaves_the_most_placements_and_of_equals_is_the_highest(
    history: tuple[Table, list[str | int]],
) -> None:
    table, steps = history
    for held, name, start in _lived(table, steps):
        possible = {
            other: mig.remaining(table, held | {Instance(other, name)})
            for other in profile_of(table, name).starts
            if mig.is_possible(table, held, profile_of(table, name), other)
        }
        best = max(possible.values())
        assert start == max(other for other, left in possible.items() if left == best)


@examples(60)
@given(histories())
def test_memory_slices_never_overlap_and_compute_is_never_more_than_there_is(
    history: tuple[Table, list[str | int]],
) -> None:
    table, steps = history
    for held, name, start in _lived(table, steps):
        now = held | {Instance(start, name)}
        covered = [
            place
            for one in now
            for place in range(one.start, one.start + profile_of(table, one.profile).memory)
        ]
        assert len(set(covered)) == len(covered) <= table.memory
        assert max(covered) < table.memory
        assert sum(profile_of(table, one.profile).compute for one in now) <= table.compute


@pytest.mark.parametrize("order", sorted(set(permutations(("3g.20gb", "4g.20gb")))))
def test_3g_and_4g_fit_in_either_order(order: tuple[str, ...]) -> None:
    """Placed at the first free start instead, 3g before 4g would fail."""
    held = EMPTY
    for name in order:
        held = held | {Instance(mig.place(A100, held, name), name)}
    assert held == cut(("3g.20gb", 4), ("4g.20gb", 0))
