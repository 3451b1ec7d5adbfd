"""Constraints: what can be asked, and the field and rule that a refusal names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.hardware.constraints import Constraints, RequiredAttribute, Weights, require_constraints
from domain.hardware.reasons import HardwareReason
from domain.market.offer import OfferTerms, require_terms
from domain.money import PPM
from domain.refusal import Refused

FACTORS = ("spec_fit", "reputation", "locality", "free_peers", "storage", "price")

BROKEN: list[tuple[str, Any]] = [
    ("kinds", ()),
    ("vendors", ("nvidia", "nvidia")),
    ("mode", "half"),
    ("memory_mib", 0),
    ("isolation", "trust"),
    ("cpu_cores", -1),
    ("arch", ""),
    ("capabilities", ("cuda", "a\x00b")),
    ("setting", "moon"),
    ("security_tier", 10),
    ("min_reputation_ppm", PPM + 1),
    ("regions", tuple(f"region_{number}" for number in range(33))),
    ("attributes", (RequiredAttribute("iso27001", signers=()),)),
    ("attributes", (RequiredAttribute("a"), RequiredAttribute("a", "b"))),
    ("reclaim_window_us", HOUR_US - 1),
    ("reclaim_window_us", 720 * HOUR_US + 1),
    ("rank", "dearest"),
    ("min_kernel", "new"),
    ("min_kernel", "5.10-generic"),
    ("network_class", "fast"),
    ("substrate", ""),
]


@pytest.mark.parametrize(("field", "value"), BROKEN)
def test_a_refusal_names_the_field_and_the_rule(field: str, value: Any) -> None:
    with pytest.raises(Refused) as refused:
        require_constraints(Constraints(**{field: value}))
    assert refused.value.reason is HardwareReason.CONSTRAINT_INVALID
    assert refused.value.facts["field"] == field
    assert refused.value.facts["rule"]


def test_a_mig_profile_without_the_mode_is_refused() -> None:
    require_constraints(Constraints(mode="mig", mig_profile="1g.10gb"))
    with pytest.raises(Refused, match="mig_profile"):
        require_constraints(Constraints(mig_profile="1g.10gb"))


@given(st.lists(st.integers(0, PPM), min_size=6, max_size=6))
def test_weights_sum_to_exactly_a_million_or_are_refused(parts: list[int]) -> None:
    named = dict(zip(FACTORS, parts, strict=True))
    asked = Constraints(rank="best_score", weights=Weights(**named))
    if sum(parts) == PPM:
        require_constraints(asked)
    else:
        with pytest.raises(Refused, match="together 1000000"):
            require_constraints(asked)
    named["price"] = PPM - sum(parts[:5])
    if sum(parts[:5]) <= PPM:
        require_constraints(replace(asked, weights=Weights(**named)))


def test_a_ranking_by_score_says_its_weights() -> None:
    require_constraints(Constraints(weights=Weights(price=PPM)))
    with pytest.raises(Refused, match="weights"):
        require_constraints(Constraints(rank="best_score"))


TERMS: list[OfferTerms] = [
    OfferTerms(modes=("whole", "slice")),
    OfferTerms(modes=("whole", "mps")),
    OfferTerms(isolation="none"),
    OfferTerms(capabilities=()),
    OfferTerms(reclaim_window_us=HOUR_US - 1),
    OfferTerms(storage_gib=0),
    OfferTerms(min_renter_ppm=-1),
]


@pytest.mark.parametrize("terms", TERMS)
def test_terms_of_an_offer_are_checked_likewise(terms: OfferTerms) -> None:
    with pytest.raises(Refused) as refused:
        require_terms(terms, fractions=False)
    assert refused.value.reason is HardwareReason.CONSTRAINT_INVALID


def test_terms_that_hold_are_taken() -> None:
    terms = OfferTerms(modes=("mig", "whole"), isolation="vm", reclaim_window_us=HOUR_US)
    require_terms(terms, fractions=True)
    require_terms(None, fractions=False)
    with pytest.raises(Refused) as refused:
        require_terms(terms, fractions=False)
    assert refused.value.facts["field"] == "modes", "what holds with fractions is bound to them"
