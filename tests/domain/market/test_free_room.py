"""When there is room for a lease that finds none now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.market.dimensions import FreeDevice, Need, OfferedNode, device_fits
from domain.market.free_room import Held, Holdings, free_at_us
from domain.money import PPM
from tests.examples import examples

NOW = 1_000
NEED = Need(
    gpu_count=1,
    share_ppm=PPM,
    mem_ppm=PPM,
    models=(),
    price_max=100,
    account_id="acct_renter",
    settlements=("cash",),
    at_us=NOW,
    until_us=NOW + 10,
)


def device(name: str, free: int = 0, mode: str | None = "whole") -> FreeDevice:
    return FreeDevice(name, "A100", free, free, mode)


def node(*devices: FreeDevice, **more: object) -> OfferedNode:
    made = OfferedNode(
        node_id="node_1",
        offer_id="offer_1",
        account_id="acct_provider",
        price=1,
        pay_with="cash",
        fractions=True,
        served_gpu_us=0,
        devices=devices,
        vendor="nvidia",
        model="NVIDIA A100-PCIE-80GB",
        memory_mib=81_559,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def part_of(tenths: int) -> Need:
    """A need of so many tenths of a device, by MPS."""
    if tenths == 10:
        return NEED
    mps = replace(NEED.constraints, mode="mps")
    return replace(NEED, share_ppm=tenths * PPM // 10, mem_ppm=tenths * PPM // 10, constraints=mps)


def whole(ends_us: int | None) -> tuple[Held, ...]:
    return (Held(PPM, PPM, ends_us),)


def test_it_is_the_first_end_of_those_who_hold_a_device() -> None:
    held = {"a": whole(5_000), "b": whole(3_000)}
    assert free_at_us(NEED, [node(device("a"), device("b"))], held) == 3_000
    two = replace(NEED, gpu_count=2)
    assert free_at_us(two, [node(device("a"), device("b"))], held) == 5_000
    assert free_at_us(NEED, [node(device("a"), device("b"))], held, members=2) == 5_000
    assert free_at_us(NEED, [node(device("a"), device("b"))], held, members=3) is None


def test_an_end_that_is_not_known_is_none() -> None:
    assert free_at_us(NEED, [node(device("a"))], {"a": whole(None)}) is None
    assert free_at_us(NEED, [node(device("a"))], {}) is None
    held = {"a": whole(None), "b": whole(3_000)}
    assert free_at_us(NEED, [node(device("a"), device("b"))], held) == 3_000


def test_an_end_that_is_over_is_now() -> None:
    """Its lease is closed with the next round of the timer."""
    assert free_at_us(NEED, [node(device("a"))], {"a": whole(NOW - 1)}) == NOW


def test_parts_end_one_after_the_other() -> None:
    half, tenth = part_of(5), 100_000
    busy = node(device("a", free=100_000, mode="mps"))
    held = {"a": [Held(5 * tenth, 5 * tenth, 4_000), Held(4 * tenth, 4 * tenth, 2_000)]}
    assert free_at_us(half, [busy], held) == 2_000
    assert free_at_us(NEED, [busy], held) == 4_000, "a whole device is in no mode first"


def test_a_node_that_is_gone_by_then_has_no_room() -> None:
    held = {"a": whole(3_000)}
    leaves = node(device("a"), available_until_us=3_005)
    assert free_at_us(NEED, [leaves], held) is None
    stays = node(device("a"), available_until_us=3_010)
    assert free_at_us(NEED, [stays], held) == 3_000
    mended = node(device("a"), maintenance=((3_005, 3_100),))
    assert free_at_us(NEED, [mended], held) is None


def test_instances_of_mig_are_not_told() -> None:
    mig = replace(NEED, share_ppm=PPM // 7, constraints=replace(NEED.constraints, mode="mig"))
    assert free_at_us(mig, [node(device("a"))], {"a": whole(3_000)}) is None


@st.composite
def _held(draw: st.DrawFn) -> Holdings:
    parts = st.lists(st.integers(1, 4), min_size=1, max_size=4)
    found: dict[str, list[Held]] = {}
    for name in ("a", "b", "c"):
        left = 10
        for part in draw(parts):
            part = min(part, left)
            left -= part
            if part:
                ends_us = draw(st.none() | st.integers(NOW, NOW + 50))
                held = Held(part * PPM // 10, part * PPM // 10, ends_us)
                found.setdefault(name, []).append(held)
    return found


@examples(60)
@given(_held(), st.integers(1, 10), st.integers(1, 3))
def test_at_the_moment_told_what_has_ended_made_the_room(
    held: Holdings, tenths: int, count: int
) -> None:
    need = replace(part_of(tenths), gpu_count=count)

    def as_of(us: int) -> int:
        """How many devices fit the need once all that ends by then has ended."""
        fitting = 0
        for name, parts in held.items():
            still = [one for one in parts if one.ends_us is None or one.ends_us > us]
            free = PPM - sum(one.share_ppm for one in still)
            fitting += device_fits(need, device(name, free, "mps" if still else None))
        return fitting

    now = [
        device(name, PPM - sum(one.share_ppm for one in parts), "mps")
        for name, parts in held.items()
    ]
    told = free_at_us(need, [node(*now)], held)
    moments = sorted(
        {NOW, *(one.ends_us for parts in held.values() for one in parts if one.ends_us)}
    )
    first = next((us for us in moments if as_of(us) >= count), None)
    assert told == first


@pytest.mark.parametrize("members", [1, 2])
def test_room_that_is_there_is_now(members: int) -> None:
    free = node(device("a", PPM, None), device("b", PPM, None))
    assert free_at_us(NEED, [free], {}, members=members) == NOW
