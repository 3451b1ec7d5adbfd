"""Reward terms: which numbers a policy may carry, and the bonus between its bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.reward_terms import (
    NO_TERMS,
    REWARD_TERMS,
    Rated,
    RewardTerms,
    bonus_ppm,
    check_terms,
    paid_tier,
)
from domain.money import PPM
from domain.refusal import Refused
from domain.trust.reasons import TrustReason


@pytest.mark.parametrize(
    "changed",
    [
        {"source_weights": (Rated("cash", PPM), Rated("cash", 0))},
        {"source_weights": (Rated("cash", PPM + 1),)},
        {"class_ratings": (Rated("", PPM),)},
        {"class_ratings": tuple(Rated(f"c{n}", PPM) for n in range(65))},
        {"class_ratings": (Rated("x" * 65, PPM),)},
        {"cap_multiple_ppm": -1},
        {"cap_goes_to": "nobody"},
        {"zero_weight_goes_to": "treasury"},
        {"bonus_max_ppm": PPM + 1},
        {"bonus_range_ppm": 0},
        {"bonus_range_ppm": 200_001},
        {"availability_min_tier": 6},
        {"availability_min_tier": 2},
        {"availability_tier_2_ppm": 500_001},
        {"availability_tier_2_ppm": -1},
        {"availability_min_uptime_ppm": PPM + 1},
        {"availability_cap_per_gpu_hour": -1},
        {"availability_cap_per_node": 2**63},
        {"owner_cap": -1},
        {"release_tau": 0},
        {"release_cap": -1},
        {"min_wait_us": -1},
        {"forfeit_epochs": 0},
    ],
)
def test_terms_that_make_no_sense_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        check_terms(replace(REWARD_TERMS, **changed))
    assert refused.value.reason is TrustReason.POLICY_INVALID


@pytest.mark.parametrize(
    "changed",
    [
        {"class_ratings": (Rated("x" * 64, PPM),)},
        {"class_ratings": tuple(Rated(f"c{n}", PPM) for n in range(64))},
        {"source_weights": (Rated("cash", 0),)},
        {"cap_multiple_ppm": 0},
        {"owner_cap": 0},
        {"availability_cap_per_gpu_hour": 0},
        {"availability_cap_per_node": 0},
        {"release_tau": 1},
        {"forfeit_epochs": 1},
        {"min_wait_us": 0},
    ],
)
def test_terms_at_the_edge_of_a_rule_are_taken(changed: dict[str, Any]) -> None:
    check_terms(replace(REWARD_TERMS, **changed))


@pytest.mark.parametrize("terms", [REWARD_TERMS, NO_TERMS])
def test_the_terms_of_new_networks_and_of_none_make_sense(terms: Any) -> None:
    check_terms(terms)


@given(st.integers(0, PPM), st.integers(0, PPM))
def test_a_better_score_never_has_a_lower_bonus(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert PPM <= bonus_ppm(REWARD_TERMS, low) <= bonus_ppm(REWARD_TERMS, high)
    assert bonus_ppm(REWARD_TERMS, high) <= PPM + REWARD_TERMS.bonus_max_ppm
    assert bonus_ppm(NO_TERMS, high) == PPM


@pytest.mark.parametrize(
    ("score_ppm", "bonus"),
    [
        (None, 1_000_000),
        (799_999, 1_000_000),
        (800_001, 1_000_001),  # 200,000 x 1 / 150,000 = 1.33
        (800_002, 1_000_002),  # 2.67
        (884_468, 1_112_624),  # the worked node of design economics 16
        (949_999, 1_199_998),  # 199,998.67
        (950_000, 1_200_000),
        (950_001, 1_200_000),
    ],
)
def test_the_bonus_is_floored_between_its_bounds(score_ppm: int | None, bonus: int) -> None:
    assert bonus_ppm(REWARD_TERMS, score_ppm) == bonus


DAY_US = 86_400_000_000


def with_one(field: str, value: Any) -> RewardTerms:
    return replace(REWARD_TERMS, **{field: value})


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("burned_per_gpu_hour", 1, 2**63 - 1),
        ("cap_multiple_ppm", 0, 100_000_000),
        ("bonus_from_ppm", 0, 850_000),
        ("bonus_range_ppm", 1, 200_000),
        ("bonus_max_ppm", 0, 1_000_000),
        ("availability_min_tier", 3, 5),
        ("availability_tier_2_ppm", 0, 500_000),
        ("availability_min_uptime_ppm", 0, 1_000_000),
        ("availability_cap_per_gpu_hour", 0, 2**63 - 1),
        ("availability_cap_per_node", 0, 2**63 - 1),
        ("owner_cap", 0, 2**63 - 1),
        ("release_tau", 1, 1_000_000),
        ("release_cap", 0, 2**63 - 1),
        ("min_wait_us", 0, 30 * DAY_US),
        ("forfeit_epochs", 1, 1_000_000),
    ],
)
def test_each_number_of_the_terms_lies_between_its_bounds(
    field: str, least: int, most: int
) -> None:
    for value in (least, most):
        check_terms(with_one(field, value))
    for value in (least - 1, most + 1):
        with pytest.raises(Refused) as refused:
            check_terms(with_one(field, value))
        assert refused.value.reason is TrustReason.POLICY_INVALID


def test_without_a_pool_for_tier_2_any_tier_may_be_asked_for() -> None:
    for tier in (0, 2):
        terms = replace(REWARD_TERMS, availability_min_tier=tier, availability_tier_2_ppm=0)
        check_terms(terms)
        assert paid_tier(terms) == tier
    assert paid_tier(REWARD_TERMS) == 2
    assert paid_tier(NO_TERMS) == 5, "above the highest tier"


def test_a_value_beyond_its_bound_is_told_with_both_bounds_and_its_unit() -> None:
    for changed, rule in (
        ({"min_wait_us": -1}, f"min_wait_us lies between 0 and {30 * DAY_US} microseconds"),
        ({"bonus_max_ppm": -1}, "bonus_max_ppm lies between 0 and 1000000 parts per million"),
        ({"release_tau": 0}, "release_tau lies between 1 and 1000000"),
    ):
        with pytest.raises(Refused) as refused:
            check_terms(replace(REWARD_TERMS, **changed))  # type: ignore[arg-type]
        assert refused.value.facts == {"rule": rule, **changed}


def test_the_terms_of_a_new_network_in_numbers() -> None:
    """Design economics 5, 7, 8, 10, 13 and 16: a changed digit is a changed reward."""
    assert (
        RewardTerms(
            source_weights=(Rated("burned", 1_000_000), Rated("cash", 1_000_000)),
            burned_per_gpu_hour=None,
            class_ratings=(),
            cap_multiple_ppm=1_000_000,
            cap_goes_to="unissued",
            zero_weight_goes_to="next_epoch",
            bonus_from_ppm=800_000,
            bonus_range_ppm=150_000,
            bonus_max_ppm=200_000,
            availability_min_tier=3,
            availability_tier_2_ppm=200_000,
            availability_min_uptime_ppm=500_000,
            availability_cap_per_gpu_hour=None,
            availability_cap_per_node=None,
            owner_cap=None,
            release_tau=None,
            release_cap=0,
            min_wait_us=21_600_000_000,
            forfeit_epochs=4,
        )
        == REWARD_TERMS
    )
    assert (
        replace(
            REWARD_TERMS,
            cap_multiple_ppm=None,
            cap_goes_to="next_epoch",
            bonus_from_ppm=0,
            bonus_range_ppm=1,
            bonus_max_ppm=0,
            availability_min_tier=5,
            availability_tier_2_ppm=0,
            availability_min_uptime_ppm=0,
            min_wait_us=0,
            forfeit_epochs=None,
        )
        == NO_TERMS
    )
