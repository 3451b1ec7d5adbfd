"""The score of a node, a provider or a renter: old evidence decays, little evidence proves little.

    g = (sum of good_d x w(age_d)) >> 32,  n likewise            one floor each, per input
    G = g + k mu,  N = n + k 10^6,  q = ceil(4 Z G (N - G) / N)
    lb = max(0, (2 G + Z - ceil_sqrt(Z^2 + q)) x 10^6 // (2 (N + Z)))
    score = sum of weight x lb // 10^6
    lb <= G / N,  a success never lowers lb,  a failure never raises it        0 <= score <= 10^6

Evidence is (good, total) in micro-observations per UTC day; what counts as what is in
`projections/trust/reputation.py`. Each input is scored by the Wilson lower bound with a prior: one
good lease proves little, and a newcomer has a start. Below a number of leases the score is
provisional: no tier, no bonus. What one client saw is scored with the posterior mean of everybody
else's facts as its prior, so that facts count once and no client starts from nothing. Source:
design economics 16; the numbers are `domain/trust/reputation_terms.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from domain.lease.close_codes import (
    COMPLETED,
    FUNDS_ENDED,
    PAYMENT_REVERSED,
    POLICY_BREACH,
    RECLAIMED,
    RENTER_CLOSED,
    SCALED_DOWN,
    TERM_REACHED,
)
from domain.money import PPM
from domain.trust.reputation_terms import LEASES_OF, REPUTATION_TERMS, ReputationTerms

OBSERVATION = PPM
"""Micro-observations in one observation."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was counted for one input, in micro-observations: decayed, and as it is."""

    g: int = 0
    n: int = 0
    good: int = 0
    total: int = 0


NO_EVIDENCE = Evidence()


@dataclass(frozen=True, slots=True)
class InputScore:
    """One input: its evidence, G / N in ppm, the lower bound in ppm and what that weighs."""

    name: str
    weight_ppm: int
    evidence: Evidence
    prior_ppm: int
    mean_ppm: int
    bound_ppm: int


@dataclass(frozen=True, slots=True)
class Rating:
    """A score with its inputs. `leases`: how many counted, undecayed."""

    score_ppm: int
    is_provisional: bool
    leases: int
    inputs: tuple[InputScore, ...]

    def ratio_ppm(self, name: str) -> int | None:
        """The raw part of an input that was good, undecayed; None where nothing was counted."""
        found = next(one.evidence for one in self.inputs if one.name == name)
        return found.good * PPM // found.total if found.total else None


def rate(
    kind: str, seen: Mapping[str, Evidence], terms: ReputationTerms = REPUTATION_TERMS
) -> Rating:
    """The score of what everybody saw of a subject. An input that is not named has no evidence."""
    return _rated(kind, seen, {}, terms.prior_strength, terms)


def score(
    kind: str, seen: Mapping[str, Evidence], terms: ReputationTerms = REPUTATION_TERMS
) -> tuple[int, bool]:
    """The score of `rate` and whether it is provisional, without what it is made of: a seal asks
    this of every node and of every owner.
    """
    strength, mean_ppm, z_micro = terms.prior_strength, terms.prior_mean_ppm, terms.z_micro
    found = 0
    for weight in terms.weights_of(kind):
        one = seen.get(weight.name, NO_EVIDENCE)
        found += weight.ppm * lower_bound(one.g, one.n, mean_ppm, strength, z_micro)
    return found // PPM, _leases(kind, seen) < terms.provisional_leases


def _leases(kind: str, seen: Mapping[str, Evidence]) -> int:
    return seen.get(LEASES_OF[kind], NO_EVIDENCE).total // OBSERVATION


def rate_for_client(
    kind: str,
    seen: Mapping[str, Evidence],
    others: Mapping[str, Evidence],
    terms: ReputationTerms = REPUTATION_TERMS,
) -> Rating:
    """The score of what one client saw. `others`: the facts of everybody else, and only those."""
    means = {
        weight.name: posterior_mean(
            others.get(weight.name, NO_EVIDENCE).g, others.get(weight.name, NO_EVIDENCE).n, terms
        )
        for weight in terms.weights_of(kind)
    }
    return _rated(kind, seen, means, terms.client_strength, terms)


def _rated(
    kind: str,
    seen: Mapping[str, Evidence],
    means: Mapping[str, int],
    strength: int,
    terms: ReputationTerms,
) -> Rating:
    inputs = tuple(
        _input(
            weight.name,
            weight.ppm,
            seen.get(weight.name, NO_EVIDENCE),
            means.get(weight.name, terms.prior_mean_ppm),
            strength,
            terms,
        )
        for weight in terms.weights_of(kind)
    )
    leases = _leases(kind, seen)
    score_ppm = sum(one.weight_ppm * one.bound_ppm for one in inputs) // PPM
    assert 0 <= score_ppm <= PPM, inputs
    return Rating(score_ppm, leases < terms.provisional_leases, leases, inputs)


def _input(
    name: str,
    weight_ppm: int,
    evidence: Evidence,
    prior_ppm: int,
    strength: int,
    terms: ReputationTerms,
) -> InputScore:
    mean = (evidence.g + strength * prior_ppm) * PPM // (evidence.n + strength * PPM)
    bound = lower_bound(evidence.g, evidence.n, prior_ppm, strength, terms.z_micro)
    return InputScore(name, weight_ppm, evidence, prior_ppm, mean, bound)


@lru_cache(maxsize=1_024)  # most inputs of most subjects have no evidence
def lower_bound(
    good: int,
    total: int,
    mean_ppm: int = REPUTATION_TERMS.prior_mean_ppm,
    strength: int = REPUTATION_TERMS.prior_strength,
    z_micro: int = REPUTATION_TERMS.z_micro,
) -> int:
    """The bound lb in ppm for evidence in micro-observations. Source: design economics 16."""
    assert 0 <= good <= total, (good, total)
    all_good, everything = good + strength * mean_ppm, total + strength * PPM
    spread = -(-4 * z_micro * all_good * (everything - all_good) // everything)
    root = ceil_sqrt(z_micro * z_micro + spread)
    return max(0, (2 * all_good + z_micro - root) * PPM // (2 * (everything + z_micro)))


def ceil_sqrt(square: int) -> int:
    """The smallest integer whose square is at least this; Newton's method from above."""
    assert square >= 1
    root = 1 << (square.bit_length() + 1) // 2
    while (lower := (root + square // root) // 2) < root:
        root = lower
    return root if root * root == square else root + 1


def posterior_mean(good: int, total: int, terms: ReputationTerms = REPUTATION_TERMS) -> int:
    """G / N in ppm of micro-observations: what everybody else saw, as a prior for one client."""
    k = terms.prior_strength
    return (good + k * terms.prior_mean_ppm) * PPM // (total + k * PPM)


def lesser(node_ppm: int, owner_ppm: int, *, is_provisional: bool) -> int | None:
    """The score that a node is paid by: the lesser of its own and its owner's, None while either is
    provisional. So bad leases do not disappear in a second node of the same owner.
    """
    return None if is_provisional else min(node_ppm, owner_ppm)


# What a close says of whom.

NOBODY, RENTER, PROVIDER, NETWORK, CLIENT = "none", "renter", "provider", "network", "client"
PARTIES = (NOBODY, RENTER, PROVIDER, NETWORK, CLIENT)
SERVED = frozenset({COMPLETED, RENTER_CLOSED, RECLAIMED, TERM_REACHED, SCALED_DOWN, FUNDS_ENDED})
"""Codes of leases that ran as long as somebody wanted and paid for them."""
RENTER_FAILED = frozenset({PAYMENT_REVERSED, POLICY_BREACH})
"""Money taken back, and a breach of policy."""
