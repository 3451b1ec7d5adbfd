"""Reward terms: which numbers a policy may carry, and the bonus between its bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.reward_terms import NO_TERMS, REWARD_TERMS, Rated, bonus_ppm, check_terms
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
