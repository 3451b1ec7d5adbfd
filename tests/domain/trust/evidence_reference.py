"""What counts as evidence, said in Python: views say it in SQL, and tests compare the two."""

from __future__ import annotations

from collections.abc import Iterable

from domain.decay import WEIGHT_BITS, weights
from domain.lease.close_codes import fault_of
from domain.trust.reputation_terms import REPUTATION_TERMS, ReputationTerms
from domain.trust.scores import PROVIDER, RENTER_FAILED, SERVED, Evidence


def fold(
    days: Iterable[tuple[int, int, int]], on_day: int, terms: ReputationTerms = REPUTATION_TERMS
) -> Evidence:
    """Evidence of one input from (UTC day, good, total) of each day, as it weighs on `on_day`.

    What was recorded later than that day is not known on it.
    """
    table = weights(terms.half_life_days, terms.horizon_days)
    g = n = all_good = everything = 0
    for day, good, total in days:
        assert 0 <= good <= total, (day, good, total)
        age = on_day - day
        if age < 0:
            continue
        weight = table[age] if age < len(table) else 0
        g, n = g + good * weight, n + total * weight
        all_good, everything = all_good + good, everything + total
    return Evidence(g >> WEIGHT_BITS, n >> WEIGHT_BITS, all_good, everything)


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
