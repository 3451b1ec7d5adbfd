"""A score from evidence that decays (design economics 16), and what no evidence can do to it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.decay import integer_root, weights
from domain.epochs.reward_terms import REWARD_TERMS, bonus_ppm
from domain.lease.close_codes import fault_of
from domain.money import PPM
from domain.refusal import Refused
from domain.trust.evidence import completion, conduct, fold
from domain.trust.reasons import TrustReason
from domain.trust.reputation_terms import (
    COMPLETION,
    CONDUCT,
    KINDS,
    PAYMENT,
    PERFORMANCE,
    REPUTATION_TERMS,
    RESPONSIVENESS,
    UPTIME,
    Weight,
    check_terms,
)
from domain.trust.reputation_tier import Shown, missing, tier_of
from domain.trust.scores import (
    OBSERVATION,
    PARTIES,
    Evidence,
    ceil_sqrt,
    lesser,
    lower_bound,
    posterior_mean,
    rate,
    rate_for_client,
    score,
)

TODAY = 20_000
NAMES = (COMPLETION, UPTIME, PERFORMANCE, RESPONSIVENESS, PAYMENT, CONDUCT)
Days = list[tuple[int, int, int]]


def _days(*rows: tuple[int, int, int]) -> Days:
    """(age, good, total) in whole observations."""
    return [(TODAY - age, good * OBSERVATION, total * OBSERVATION) for age, good, total in rows]


def _worked() -> dict[str, Days]:
    """The worked node of design economics 16."""
    measured = ((0, 970_000), (30, 940_000), (45, 1_000_000))
    return {
        COMPLETION: _days((0, 10, 10), (30, 38, 40), (45, 20, 20)),
        UPTIME: _days(*((age, 2 if age in (10, 40) else 4, 4) for age in range(60))),
        PERFORMANCE: [(TODAY - age, 24 * mean_ppm, 24 * OBSERVATION) for age, mean_ppm in measured],
        RESPONSIVENESS: _days((0, 50, 50), (30, 47, 50), (45, 49, 50)),
    }


def _folded(evidence: dict[str, Days]) -> dict[str, Evidence]:
    return {name: fold(days, TODAY) for name, days in evidence.items()}


# --- the design's numbers --------------------------------------------------------------------


def test_the_worked_node_comes_out_to_the_unit() -> None:
    rating = rate("node", _folded(_worked()))
    found = {
        one.name: (one.evidence.g, one.evidence.n, one.mean_ppm, one.bound_ppm)
        for one in rating.inputs
    }
    assert found == {
        COMPLETION: (36_071_067, 37_071_067, 936_266, 850_853),
        UPTIME: (128_967_228, 131_348_329, 969_004, 934_860),
        PERFORMANCE: (43_045_281, 44_485_281, 936_863, 859_395),
        RESPONSIVENESS: (90_824_116, 92_677_669, 962_469, 917_905),
    }
    assert (rating.score_ppm, rating.is_provisional, rating.leases) == (884_468, False, 70)
    score_ppm = lesser(rating.score_ppm, rating.score_ppm, is_provisional=rating.is_provisional)
    assert bonus_ppm(REWARD_TERMS, score_ppm) == 1_112_624
    assert lower_bound(36_071_067 // 2, 37_071_067 // 2) == 786_119


def test_each_ratio_that_is_told_is_that_of_its_own_input() -> None:
    rating = rate("node", _folded(_worked()))
    told = {one.name: rating.ratio_ppm(one.name) for one in rating.inputs}
    assert told == {
        COMPLETION: 971_428,  # 68 of 70 leases
        UPTIME: 983_333,  # 236 of 240
        PERFORMANCE: 970_000,  # the mean of 970,000, 940,000 and 1,000,000
        RESPONSIVENESS: 973_333,  # 146 of 150
    }
    assert rate("node", {}).ratio_ppm(UPTIME) is None


@pytest.mark.parametrize(("good", "total", "bound"), [(10, 10, 834_411), (1, 2, 724_243)])
def test_a_client_starts_from_what_all_others_saw(good: int, total: int, bound: int) -> None:
    others = fold(_days((30, 38, 40), (45, 20, 20)), TODAY)
    assert posterior_mean(others.g, others.n) == 919_074
    seen = fold(_days((0, good, total)), TODAY)
    rating = rate_for_client("node", {COMPLETION: seen}, {COMPLETION: others})
    assert (rating.inputs[0].prior_ppm, rating.inputs[0].bound_ppm) == (919_074, bound)


def test_weights_of_ages_are_exact_roots() -> None:
    table = weights(30, 360)
    assert (table[0], table[1], table[15], table[30]) == (
        2**32,
        4_196_870_107,
        3_037_000_499,
        2**31,
    )
    assert len(table) == 360


def test_without_evidence_there_is_a_start_and_no_bonus() -> None:
    for kind in ("node", "provider", "renter"):
        rating = rate(kind, {})
        assert (rating.score_ppm, rating.is_provisional, rating.leases) == (540_768, True, 0)
        assert {one.bound_ppm for one in rating.inputs} == {540_768}
    assert lesser(PPM, PPM, is_provisional=True) is None
    assert bonus_ppm(REWARD_TERMS, None) == PPM


def test_one_lease_proves_little_and_ten_make_a_score_known() -> None:
    assert lower_bound(OBSERVATION, OBSERVATION) < 600_000
    for kind, leases in (("node", COMPLETION), ("renter", CONDUCT)):
        known = [
            rate(kind, {leases: fold(_days((300, n, n)), TODAY)}).is_provisional for n in (9, 10)
        ]
        assert known == [True, False], "leases count undecayed"
    assert rate("renter", {}).ratio_ppm(PAYMENT) is None


def test_a_bond_is_the_sum_of_what_each_piece_costs() -> None:
    found = [
        8 * rates.gpu + 128 * rates.vcpu + 1_024 * rates.memory_gb + 20 * rates.storage_tb
        for rates in REPUTATION_TERMS.bonds
    ]
    assert found == [760_000_000, 1_520_000_000, 3_040_000_000]


# --- what no evidence can do -----------------------------------------------------------------

COUNTS = st.integers(min_value=0, max_value=10**13)
PARTS = st.integers(min_value=0, max_value=200)
DAYS = st.lists(st.tuples(st.integers(0, 500), PARTS, PARTS), max_size=8)
"""(age, good, bad)."""


def _evidence(rows: list[tuple[int, int, int]]) -> Evidence:
    return fold(_days(*((age, good, good + bad) for age, good, bad in rows)), TODAY)


@given(COUNTS, COUNTS)
def test_a_success_never_lowers_the_bound_and_a_failure_never_raises_it(
    good: int, bad: int
) -> None:
    now = lower_bound(good, good + bad)
    assert lower_bound(good + OBSERVATION, good + bad + OBSERVATION) >= now
    assert lower_bound(good, good + bad + OBSERVATION) <= now
    assert 0 <= now <= posterior_mean(good, good + bad) <= PPM


@given(DAYS, st.integers(0, 400))
def test_a_success_on_any_day_never_lowers_a_score_and_a_failure_never_raises_it(
    rows: list[tuple[int, int, int]], age: int
) -> None:
    scores = [
        rate("node", {COMPLETION: _evidence(found)}).score_ppm
        for found in ([*rows, (age, 0, 1)], rows, [*rows, (age, 1, 0)])
    ]
    assert scores == sorted(scores)
    assert 0 <= scores[0] <= scores[-1] <= PPM


@given(st.integers(1, 90), st.integers(1, 900))
def test_evidence_never_weighs_more_for_being_older(half_life: int, horizon: int) -> None:
    table = weights(half_life, horizon)
    assert table[0] == 2**32
    assert all(low <= high for high, low in pairwise(table))
    assert all(table[age] == table[age - half_life] >> 1 for age in range(half_life, horizon))


@given(st.integers(0, 2**200), st.integers(1, 60))
def test_a_root_is_the_largest_integer_that_does_not_pass(radicand: int, degree: int) -> None:
    root = integer_root(radicand, degree)
    assert root**degree <= radicand < (root + 1) ** degree


@given(st.integers(min_value=1, max_value=10**40))
def test_a_square_root_is_the_smallest_integer_that_reaches_the_square(square: int) -> None:
    root = ceil_sqrt(square)
    assert (root - 1) ** 2 < square <= root**2


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), DAYS))
def test_a_score_alone_is_that_of_the_rating(
    kind: str, days: dict[str, list[tuple[int, int, int]]]
) -> None:
    seen = {
        name: fold(_days(*((age, good, good + bad) for age, good, bad in rows)), TODAY)
        for name, rows in days.items()
    }
    rating = rate(kind, seen)
    assert score(kind, seen) == (rating.score_ppm, rating.is_provisional)


@given(DAYS, st.integers(0, 60))
def test_time_alone_brings_a_score_closer_to_the_start(
    rows: list[tuple[int, int, int]], later: int
) -> None:
    days = _days(*((age, good, good + bad) for age, good, bad in rows))
    now, then = fold(days, TODAY), fold(days, TODAY + later)
    assert then.g <= now.g
    assert then.n <= now.n
    assert (then.good, then.total) == (now.good, now.total), "what was counted is counted"
    assert fold(days, TODAY + 10_000).n == 0


@given(DAYS, DAYS)
def test_a_client_counts_its_own_facts_once_and_those_of_others_as_its_prior(
    mine: list[tuple[int, int, int]], theirs: list[tuple[int, int, int]]
) -> None:
    seen, others = {COMPLETION: _evidence(mine)}, {COMPLETION: _evidence(theirs)}
    rating = rate_for_client("node", seen, others)
    first = rating.inputs[0]
    assert first.evidence == seen[COMPLETION]
    assert first.prior_ppm == posterior_mean(others[COMPLETION].g, others[COMPLETION].n)
    assert rating.inputs[1].prior_ppm == REPUTATION_TERMS.prior_mean_ppm, "nobody saw anything"
    alone = rate_for_client("node", {}, others)
    if not mine:
        assert rating == alone


@given(DAYS, DAYS)
def test_moving_bad_leases_to_a_second_node_of_the_same_owner_gains_no_bonus(
    good: list[tuple[int, int, int]], bad: list[tuple[int, int, int]]
) -> None:
    """The owner's fold has both nodes in it, and the lesser of the two scores counts."""
    owner = rate("provider", {COMPLETION: _evidence([*good, *bad])})
    together = rate("node", {COMPLETION: _evidence([*good, *bad])})
    apart = rate("node", {COMPLETION: _evidence(good)})
    before, after = (
        bonus_ppm(
            REWARD_TERMS,
            lesser(node.score_ppm, owner.score_ppm, is_provisional=node.is_provisional),
        )
        for node in (together, apart)
    )
    assert after <= before


@given(st.integers(0, PPM), st.integers(0, PPM), st.integers(0, 1_000))
def test_a_bonus_is_bounded_and_has_no_cliff(node: int, owner: int, more: int) -> None:
    def bonus(one: int, other: int) -> int:
        return bonus_ppm(REWARD_TERMS, lesser(one, other, is_provisional=False))

    found = bonus(node, owner)
    assert PPM <= found <= PPM + REWARD_TERMS.bonus_max_ppm
    assert found <= bonus(min(PPM, node + more), owner) <= found + more * 200_000 // 150_000 + 1
    assert found == bonus(owner, node)


# --- tiers -----------------------------------------------------------------------------------

BEST = Shown(leases=200, age_days=180, completion_ppm=PPM, uptime_ppm=PPM, score_ppm=PPM)


def test_a_tier_needs_all_its_criteria_and_tells_what_is_missing() -> None:
    assert tier_of(BEST) == 3
    assert tier_of(replace(BEST, leases=199)) == 2
    assert tier_of(replace(BEST, uptime_ppm=None)) == 0
    third = REPUTATION_TERMS.tiers[2]
    poor = replace(BEST, leases=60, uptime_ppm=994_999)
    assert missing(third, poor) == ("leases", "uptime_ppm")
    assert (missing(third, BEST), tier_of(poor)) == ((), 2)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, PPM), st.integers(0, PPM))
def test_more_never_costs_a_tier(leases: int, age: int, part: int, score: int) -> None:
    shown = Shown(
        leases=leases, age_days=age, completion_ppm=part, uptime_ppm=part, score_ppm=score
    )
    found = tier_of(shown)
    assert found <= tier_of(replace(shown, leases=leases + 1, age_days=age + 1))
    assert found == 0 or leases >= REPUTATION_TERMS.provisional_leases


# --- terms -----------------------------------------------------------------------------------


def test_other_terms_score_the_same_evidence_otherwise() -> None:
    slow = replace(REPUTATION_TERMS, half_life_days=60)
    days = _worked()[COMPLETION]
    assert fold(days, TODAY, slow).n > fold(days, TODAY).n
    only = replace(
        REPUTATION_TERMS,
        node_weights=tuple(
            Weight(one.name, PPM if one.name == UPTIME else 0)
            for one in REPUTATION_TERMS.node_weights
        ),
    )
    assert rate("node", _folded(_worked()), only).score_ppm == 934_860


@pytest.mark.parametrize(
    "changed",
    [
        {"node_weights": (Weight(COMPLETION, PPM),)},
        {
            "renter_weights": tuple(
                replace(one, ppm=one.ppm - 1) for one in REPUTATION_TERMS.renter_weights
            )
        },
        {"prior_mean_ppm": PPM + 1},
        {"prior_strength": 0},
        {"half_life_days": 0},
        {"horizon_days": 29},
        {"provisional_leases": 0},
        {"tiers": REPUTATION_TERMS.tiers[::-1]},
        {"bonds": ()},
    ],
)
def test_terms_that_make_no_sense_are_refused(changed: dict[str, Any]) -> None:
    check_terms(REPUTATION_TERMS)
    with pytest.raises(Refused) as refused:
        check_terms(replace(REPUTATION_TERMS, **changed))
    assert refused.value.reason is TrustReason.POLICY_INVALID


# --- close codes -----------------------------------------------------------------------------


@given(st.integers(min_value=0, max_value=39_999))
def test_a_range_names_one_party_and_network_and_clients_cost_nobody(code: int) -> None:
    party = fault_of(code)
    assert party in PARTIES
    if party in ("network", "client"):
        assert completion(code) == conduct(code) == (0, 0)
    if party == "provider":
        assert completion(code) == (0, 1)
        assert conduct(code) == (1, 1), "somebody else's fault costs a renter nothing"
    assert completion(code)[0] <= completion(code)[1] <= 1
    assert conduct(code)[0] <= conduct(code)[1] <= 1


def test_what_the_renter_never_started_says_nothing_and_a_reversed_payment_is_the_renters() -> None:
    assert completion(101) == completion(5) == completion(6) == (0, 0)
    assert (completion(102), conduct(102)) == ((0, 0), (0, 1))
    assert (completion(100), conduct(100)) == ((1, 1), (1, 1))
