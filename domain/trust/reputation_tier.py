"""Tiers: what a node or a provider has shown for long enough, by published criteria.

    tier = the highest whose criteria, and those of every tier below it, are all met

Criteria that are not met are told by name, so that everybody knows what is missing. A provisional
score has no tier. The bond is a figure and nothing more: no account holds one for it. Source:
design economics 16, after AEP-86.
"""

from __future__ import annotations

from domain.record import dataclass
from domain.trust.reputation_terms import REPUTATION_TERMS, ReputationTerms, TierCriteria

CRITERIA = ("leases", "age_days", "completion_ppm", "uptime_ppm", "score_ppm")
"""In the order in which what is missing is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a subject has to show, undecayed. A part is None where nothing was counted."""

    leases: int
    age_days: int
    completion_ppm: int | None
    uptime_ppm: int | None
    score_ppm: int


def missing(criteria: TierCriteria, shown: Shown) -> tuple[str, ...]:
    """Names of the criteria of one tier that are not met, in the order of CRITERIA."""
    return tuple(name for name in CRITERIA if (getattr(shown, name) or 0) < getattr(criteria, name))


def tier_of(shown: Shown, terms: ReputationTerms = REPUTATION_TERMS) -> int:
    """The tier, 0 for none."""
    if shown.leases < terms.provisional_leases:
        return 0
    reached = 0
    for criteria in terms.tiers:
        if missing(criteria, shown):
            break
        reached = criteria.tier
    return reached
