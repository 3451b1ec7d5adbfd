"""A score from how leases ended: the design's numbers, and what no evidence can do to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.close_reason import fault_of
from domain.reputation import (
    CLIENT_PRIOR_LEASES,
    PARTIES,
    Tally,
    ceil_sqrt,
    completion,
    conduct,
    lower_bound,
    posterior_mean,
    score,
)

LEASES = st.integers(min_value=0, max_value=10**7)


@pytest.mark.parametrize(
    ("good", "total", "bound"),
    [
        (0, 0, 540_768),
        (36_071_067, 37_071_067, 850_853),
        (128_967_228, 131_348_329, 934_860),
        (43_045_281, 44_485_281, 859_395),
        (90_824_116, 92_677_669, 917_905),
        (18_035_533, 18_535_533, 786_119),
    ],
)
def test_the_worked_numbers_of_the_design_come_out(good: int, total: int, bound: int) -> None:
    assert lower_bound(good, total) == bound


@pytest.mark.parametrize(("good", "total", "bound"), [(10, 10, 834_411), (1, 2, 724_243)])
def test_a_client_starts_from_what_all_others_saw(good: int, total: int, bound: int) -> None:
    mean_ppm = posterior_mean(26_071_067, 27_071_067)
    assert mean_ppm == 919_074
    scored = lower_bound(good * 10**6, total * 10**6, mean_ppm, CLIENT_PRIOR_LEASES)
    assert scored == bound


@given(LEASES, LEASES)
def test_the_bound_lies_below_the_mean_and_moves_the_right_way(good: int, bad: int) -> None:
    now = score(Tally(good, good + bad)).score_ppm
    assert score(Tally(good + 1, good + bad + 1)).score_ppm >= now
    assert score(Tally(good, good + bad + 1)).score_ppm <= now
    assert 0 <= now <= posterior_mean(good * 10**6, (good + bad) * 10**6) <= 10**6


@given(st.integers(min_value=1, max_value=10**40))
def test_the_root_is_the_smallest_that_reaches_the_square(square: int) -> None:
    root = ceil_sqrt(square)
    assert (root - 1) ** 2 < square <= root**2


def test_one_lease_proves_little_and_ten_make_it_known() -> None:
    assert score(Tally(1, 1)).score_ppm < 600_000
    assert [score(Tally(n, n)).is_provisional for n in (0, 9, 10)] == [True, True, False]
    assert score(Tally()).completion_ppm is None


@given(st.integers(min_value=0, max_value=39_999))
def test_a_range_names_one_party_and_network_and_clients_cost_nobody(code: int) -> None:
    party = fault_of(code)
    assert party in PARTIES
    if party in ("network", "client"):
        assert completion(code) == conduct(code) == (0, 0)
    if party == "provider":
        assert (completion(code), conduct(code)) == ((0, 1), (1, 1))
    assert completion(code)[0] <= completion(code)[1] <= 1
    assert conduct(code)[0] <= conduct(code)[1] <= 1


def test_what_the_renter_never_started_says_nothing_and_a_reversed_payment_is_the_renters() -> None:
    assert completion(101) == completion(5) == completion(6) == (0, 0)
    assert (completion(102), conduct(102)) == ((0, 0), (0, 1))
    assert (completion(100), conduct(100)) == ((1, 1), (1, 1))
