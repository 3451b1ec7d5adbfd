"""Which terms of reputation a policy may carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.refusal import Refused
from domain.trust.reasons import TrustReason
from domain.trust.reputation_terms import REPUTATION_TERMS, TIERS_MAX, ReputationTerms, check_terms


def with_tiers(count: int) -> ReputationTerms:
    """So many tiers, each with the criteria of the first and a bond."""
    first, bond = REPUTATION_TERMS.tiers[0], REPUTATION_TERMS.bonds[0]
    tiers = tuple(replace(first, tier=number) for number in range(1, count + 1))
    return replace(REPUTATION_TERMS, tiers=tiers, bonds=(bond,) * count)


def test_the_terms_in_force_may_be_carried_and_so_may_as_many_tiers_as_there_can_be() -> None:
    check_terms(REPUTATION_TERMS)
    check_terms(with_tiers(TIERS_MAX))


def test_a_policy_with_tiers_without_end_is_refused_by_the_rule_that_bounds_them() -> None:
    with pytest.raises(Refused) as refused:
        check_terms(with_tiers(TIERS_MAX + 1))
    assert refused.value.reason is TrustReason.POLICY_INVALID
    assert refused.value.facts["rule"] == f"there are at most {TIERS_MAX} tiers"
