"""The numbers of reputation: weights, prior, decay, tiers and bonds, as one set of terms.

    sum of the weights of a kind == 1,000,000

A network scores by `REPUTATION_TERMS`: no policy version carries others yet. What counts as
evidence at all is not here but in the rules that count it (`domain/trust/evidence.py`).
Source: design economics 16, whose numbers these are. What a score is worth in rewards is in
`domain/epochs/reward_terms.py`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from domain.money import PPM
from domain.record import dataclass
from domain.refusal import Refused
from domain.trust.reasons import TrustReason

COMPLETION, UPTIME, PERFORMANCE, RESPONSIVENESS = (
    "completion",
    "uptime",
    "performance",
    "responsiveness",
)
PAYMENT, CONDUCT, DISPUTES = "payment", "conduct", "disputes"

NODE, PROVIDER, RENTER = "node", "provider", "renter"
KINDS = (NODE, PROVIDER, RENTER)
"""What has a reputation. A provider is the owner of its nodes: all they did, folded once."""

LEASES_OF = {NODE: COMPLETION, PROVIDER: COMPLETION, RENTER: CONDUCT}
"""The input whose observations are leases, which decide whether a score is provisional."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How much of the score one input is, in ppm."""

    name: str
    ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TierCriteria:
    """What a node or a provider must show for a tier. Leases and age are not decayed, completion
    and uptime are the raw parts of what was counted.
    """

    tier: int
    leases: int
    age_days: int
    completion_ppm: int
    uptime_ppm: int
    score_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BondRates:
    """Micro-units of the bond per piece of hardware; the optional figure of AEP-86."""

    gpu: int
    vcpu: int
    memory_gb: int
    storage_tb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReputationTerms:
    """One version of the terms. Means, scores and shares are ppm; ages whole UTC days."""

    node_weights: tuple[Weight, ...]  # also a provider's
    renter_weights: tuple[Weight, ...]
    prior_mean_ppm: int  # what a newcomer starts from
    prior_strength: int  # in observations
    client_strength: int  # the same for one client, whose prior is what all others saw
    z_micro: int  # z squared, in micro-observations
    half_life_days: int
    horizon_days: int  # evidence as old as this weighs nothing
    provisional_leases: int  # below so many leases there is no tier and no bonus
    tiers: tuple[TierCriteria, ...]  # from the lowest, each demands at least as much
    bonds: tuple[BondRates, ...]  # of each tier

    def weights_of(self, kind: str) -> tuple[Weight, ...]:
        """The inputs of a kind of subject and what each weighs, in order."""
        assert kind in KINDS, kind
        return self.renter_weights if kind == RENTER else self.node_weights


REPUTATION_TERMS = ReputationTerms(
    node_weights=(
        Weight(COMPLETION, 400_000),
        Weight(UPTIME, 300_000),
        Weight(PERFORMANCE, 200_000),
        Weight(RESPONSIVENESS, 100_000),
    ),
    renter_weights=(
        Weight(PAYMENT, 500_000),
        Weight(CONDUCT, 250_000),
        Weight(DISPUTES, 150_000),
        Weight(RESPONSIVENESS, 100_000),
    ),
    prior_mean_ppm=800_000,
    prior_strength=10,
    client_strength=20,
    z_micro=2_706_025,  # 1.645 squared
    half_life_days=30,
    horizon_days=360,
    provisional_leases=10,
    tiers=(
        TierCriteria(
            tier=1,
            leases=10,
            age_days=30,
            completion_ppm=950_000,
            uptime_ppm=950_000,
            score_ppm=600_000,
        ),
        TierCriteria(
            tier=2,
            leases=50,
            age_days=90,
            completion_ppm=980_000,
            uptime_ppm=990_000,
            score_ppm=850_000,
        ),
        TierCriteria(
            tier=3,
            leases=200,
            age_days=180,
            completion_ppm=980_000,
            uptime_ppm=995_000,
            score_ppm=920_000,
        ),
    ),
    bonds=tuple(
        BondRates(
            gpu=50_000_000 * times,
            vcpu=500_000 * times,
            memory_gb=250_000 * times,
            storage_tb=2_000_000 * times,
        )
        for times in (1, 2, 4)
    ),
)
"""The numbers of design economics 16: in force until a policy version carries others."""

HALF_LIFE_DAYS_MAX, HORIZON_DAYS_MAX = 400, 4_000
STRENGTH_MAX = 1_000_000
TIERS_MAX = 16
"""Each tier is looked at for every standing that is told."""


def check_terms(terms: ReputationTerms) -> None:
    """Whether a policy may carry these terms. Raises Refused: POLICY_INVALID, naming the rule."""
    for rule, is_met in _rules(terms):
        if not is_met:
            raise Refused(TrustReason.POLICY_INVALID, rule=rule)


def _rules(terms: ReputationTerms) -> tuple[tuple[str, bool], ...]:
    known = REPUTATION_TERMS
    ppm = (
        terms.prior_mean_ppm,
        *(
            share
            for one in terms.tiers
            for share in (one.completion_ppm, one.uptime_ppm, one.score_ppm)
        ),
    )
    return (
        (
            "reputation weights name the inputs and sum to exactly 1000000 ppm",
            _are_whole(terms.node_weights, known.node_weights)
            and _are_whole(terms.renter_weights, known.renter_weights),
        ),
        ("reputation means and scores are ppm", all(0 <= one <= PPM for one in ppm)),
        (
            "reputation priors weigh something",
            all(
                1 <= one <= STRENGTH_MAX
                for one in (terms.prior_strength, terms.client_strength, terms.z_micro // 1_000)
            ),
        ),
        (
            "reputation decays in whole days",
            1 <= terms.half_life_days <= HALF_LIFE_DAYS_MAX
            and terms.half_life_days <= terms.horizon_days <= HORIZON_DAYS_MAX,
        ),
        (
            "a score is provisional below a number of leases",
            1 <= terms.provisional_leases <= STRENGTH_MAX,
        ),
        (f"there are at most {TIERS_MAX} tiers", len(terms.tiers) <= TIERS_MAX),
        ("tiers count from 1 and each demands at least as much", _are_rising(terms.tiers)),
        ("each tier has a bond", len(terms.bonds) == len(terms.tiers)),
    )


def _are_whole(weights: tuple[Weight, ...], known: tuple[Weight, ...]) -> bool:
    return (
        tuple(one.name for one in weights) == tuple(one.name for one in known)
        and all(one.ppm >= 0 for one in weights)
        and sum(one.ppm for one in weights) == PPM
    )


def _are_rising(tiers: tuple[TierCriteria, ...]) -> bool:
    rows: list[tuple[Any, ...]] = [
        (one.leases, one.age_days, one.completion_ppm, one.uptime_ppm, one.score_ppm)
        for one in tiers
    ]
    counted = [one.tier for one in tiers] == [*range(1, len(tiers) + 1)]
    return counted and all(
        low <= high
        for before, after in pairwise(rows)
        for low, high in zip(before, after, strict=True)
    )
