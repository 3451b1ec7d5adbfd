"""GPU time: one floor on the cumulative sum, then the price."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from domain.gpu_time import GPU_HOUR_US, charge_for, gpu_us

pieces = st.lists(st.integers(0, 10**13), max_size=20)  # ppm x us of one row each
prices = st.integers(0, 10**9)


@given(pieces, prices)
def test_charges_add_up_to_the_floor_of_the_whole(pieces: list[int], price: int) -> None:
    cumulative = [charge_for(gpu_us(total), price) for total in accumulate(pieces, initial=0)]
    news = [after - before for before, after in pairwise(cumulative)]
    assert all(new >= 0 for new in news)
    assert sum(news) == gpu_us(sum(pieces)) * price // GPU_HOUR_US


@given(pieces, prices, st.integers(0, 20))
def test_batching_and_order_of_reports_change_no_charge(
    pieces: list[int], price: int, cut: int
) -> None:
    rearranged = [sum(pieces[cut:]), *reversed(pieces[:cut])]
    assert charge_for(gpu_us(sum(rearranged)), price) == charge_for(gpu_us(sum(pieces)), price)


def test_four_quarters_make_one_gpu() -> None:
    assert gpu_us(4 * 250_000 * GPU_HOUR_US) == GPU_HOUR_US
    assert charge_for(GPU_HOUR_US, 2_780_000) == 2_780_000


def test_seven_sevenths_lose_nothing_but_the_stranded_ppm() -> None:
    assert gpu_us(7 * 142_857 * 1_000_000) == 999_999
