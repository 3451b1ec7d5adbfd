"""Reputation, the first cut: how leases ended, and through whose fault.

    lb <= G / N,  a success never lowers lb,  a failure never raises it        0 <= lb <= 10^6

A close code names the party at fault (`domain/close_reason.py`); free text never counts. For nodes
and providers a lease that was served is a success and a provider's fault a failure; what the renter
never started, no match, and every fault of the network or of a client are outside the total, so
they cost nobody. For renters a reversed payment and a breach of policy are failures.

The score is the Wilson lower bound of the completion with a prior of 800,000 ppm that weighs ten
leases: one good lease proves little, a newcomer has a start. Below MINIMUM leases it is
provisional. What one client saw is scored with everybody else's experience as its prior, so that
facts count once and no client starts from nothing. Evidence is counted in micro-observations. The
other inputs, their weights and the decay of evidence come on the same evidence later. Source:
design economics 16, whose numbers these are.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.close_reason import (
    COMPLETED,
    FUNDS_ENDED,
    PAYMENT_REVERSED,
    POLICY_BREACH,
    RECLAIMED,
    RENTER_CLOSED,
    SCALED_DOWN,
    TERM_REACHED,
    fault_of,
)
from domain.money import PPM

PRIOR_MEAN_PPM = 800_000
PRIOR_LEASES, CLIENT_PRIOR_LEASES = 10, 20
Z_MICRO = 2_706_025
"""z = 1.645 squared, in micro-observations."""
MINIMUM = 10
"""Leases below which a score is provisional."""

NOBODY, RENTER, PROVIDER, NETWORK, CLIENT = "none", "renter", "provider", "network", "client"
PARTIES = (NOBODY, RENTER, PROVIDER, NETWORK, CLIENT)
SERVED = frozenset({COMPLETED, RENTER_CLOSED, RECLAIMED, TERM_REACHED, SCALED_DOWN, FUNDS_ENDED})
"""Codes of leases that ran as long as somebody wanted and paid for them."""
RENTER_FAILED = frozenset({PAYMENT_REVERSED, POLICY_BREACH})
"""Money taken back, and a breach of policy."""


def completion(code: int) -> tuple[int, int]:
    """(good, total) that a close adds to its node and its provider, in leases."""
    if code in SERVED:
        return 1, 1
    return (0, 1) if fault_of(code) == PROVIDER else (0, 0)


def conduct(code: int) -> tuple[int, int]:
    """(good, total) that a close adds to its renter, in leases."""
    if code in RENTER_FAILED:
        return 0, 1
    is_served = code in SERVED or fault_of(code) == PROVIDER
    return (1, 1) if is_served else (0, 0)


def ceil_sqrt(square: int) -> int:
    """The smallest integer whose square is at least this; Newton's method from above."""
    assert square >= 1
    root = 1 << (square.bit_length() + 1) // 2
    while (lower := (root + square // root) // 2) < root:
        root = lower
    return root if root * root == square else root + 1


def lower_bound(
    good: int, total: int, mean_ppm: int = PRIOR_MEAN_PPM, strength: int = PRIOR_LEASES
) -> int:
    """The score in ppm for evidence in micro-observations.

    G = g + k mu, N = n + k 10^6, q = ceil(4 Z G (N - G) / N);
    lb = max(0, (2 G + Z - ceil_sqrt(Z^2 + q)) x 10^6 // (2 (N + Z))). Economics 16.
    """
    assert 0 <= good <= total, (good, total)
    all_good, everything = good + strength * mean_ppm, total + strength * PPM
    spread = -(-4 * Z_MICRO * all_good * (everything - all_good) // everything)
    under = Z_MICRO * Z_MICRO + spread
    return max(0, (2 * all_good + Z_MICRO - ceil_sqrt(under)) * PPM // (2 * (everything + Z_MICRO)))


def posterior_mean(good: int, total: int) -> int:
    """What everybody else has seen, as a prior for one client: G // N in ppm."""
    return (good + PRIOR_LEASES * PRIOR_MEAN_PPM) * PPM // (total + PRIOR_LEASES * PPM)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many leases counted, and how many of them were good."""

    good: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Score:
    """`completion_ppm`: good / total as it is, None without a lease."""

    good: int
    total: int
    completion_ppm: int | None
    score_ppm: int
    is_provisional: bool


def score(network: Tally, client: Tally | None = None) -> Score:
    """The score of what was seen: by everybody, or by one client whose part of it is `client`."""
    seen = network if client is None else client
    good, total = seen.good * PPM, seen.total * PPM
    if client is None:
        bound = lower_bound(good, total)
    else:
        others_good, others = (network.good - client.good), (network.total - client.total)
        assert 0 <= others_good <= others, (network, client)
        mean_ppm = posterior_mean(others_good * PPM, others * PPM)
        bound = lower_bound(good, total, mean_ppm, CLIENT_PRIOR_LEASES)
    return Score(
        good=seen.good,
        total=seen.total,
        completion_ppm=None if not seen.total else seen.good * PPM // seen.total,
        score_ppm=bound,
        is_provisional=seen.total < MINIMUM,
    )
