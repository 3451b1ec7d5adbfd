"""Signs of wash trade in an epoch, per node and per renter: numbers for people who look, not rules.

    payout multiple  = floor(reward x 10^6 / burned)                 in TOKEN units, both
    concentration    = floor(sum(part^2) x 10^6 / (sum(part))^2)     10^6: one counterparty alone
    related share    = floor(related x 10^6 / (related + others))    of the use, in GPU-microseconds

    concentration is a sign only of who has been used for CONCENTRATION_FROM_US

    0 < concentration <= 10^6,   concentration >= floor(10^6 / parts);   0 <= related share <= 10^6

In its first weeks a node has one customer because it has just begun, and a renter one owner: that
says nothing. The cap that makes washing lose money is in `domain/epochs/settlement.py`, and it
needs none of these. Source: design economics 13, whose example is 2280/19/1: 982,752.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.duration import DAY_US
from domain.money import PPM
from domain.record import dataclass

CONCENTRATION = "concentration"
MULTIPLE_HIGH_PPM = 2 * PPM
CONCENTRATED_PPM = 900_000
RELATED_HIGH_PPM = 500_000
"""From here on a signal is raised. Looking costs nothing, so they are low."""
CONCENTRATION_FROM_US = 28 * DAY_US
"""Who was used for the first time less than this ago is not concentrated, but new."""


@dataclass(frozen=True, slots=True)
class Signals:
    """None: there is nothing to divide by. `raised` names those that are high."""

    payout_multiple_ppm: int | None
    concentration_ppm: int | None
    related_ppm: int | None
    raised: tuple[str, ...]


def payout_multiple(reward: int, burned: int) -> int | None:
    """What came back of each TOKEN that was burned. HIP-10 tells of 145x."""
    assert reward >= 0, reward
    assert burned >= 0, burned
    return reward * PPM // burned if burned else None


def concentration(parts: Sequence[int]) -> int | None:
    """The Herfindahl-Hirschman index of the counterparties' parts, in ppm."""
    assert all(part >= 0 for part in parts), parts
    whole = sum(parts)
    if not whole:
        return None
    index = sum(part * part for part in parts) * PPM // (whole * whole)
    assert PPM // len(parts) <= index <= PPM, index
    return index


def related_share(related: int, others: int) -> int | None:
    """The part of the use that related parties made."""
    whole = related + others
    return related * PPM // whole if whole else None


def _is_raised(name: str, value: int | None, high: int, age_us: int) -> bool:
    is_new = name == CONCENTRATION and age_us < CONCENTRATION_FROM_US
    return value is not None and value >= high and not is_new


def signals(reward: int, burned: int, others: Iterable[int], related: int, age_us: int) -> Signals:
    """All of it for one node, or one renter. `reward` and `burned` in TOKEN units, `others` the
    use of each unrelated counterparty and `related` that of all related ones in GPU-microseconds,
    `age_us` the time since the first use.
    """
    parts = [part for part in others if part]
    told = (
        ("payout_multiple", payout_multiple(reward, burned), MULTIPLE_HIGH_PPM),
        (CONCENTRATION, concentration(parts), CONCENTRATED_PPM),
        ("related_share", related_share(related, sum(parts)), RELATED_HIGH_PPM),
    )
    raised = tuple(name for name, value, high in told if _is_raised(name, value, high, age_us))
    return Signals(told[0][1], told[1][1], told[2][1], raised)


def of_shares(
    largest: int, related: int, whole: int, age_us: int
) -> tuple[int, int, tuple[str, ...]]:
    """Largest unrelated counterparty and related ones as parts of a use, in ppm, and which of the
    two is high. Where many are listed: the index of `concentration` needs every counterparty.
    """
    assert 0 <= largest + related <= whole, (largest, related, whole)
    others = whole - related
    parts = (
        (CONCENTRATION, related_share(largest, others - largest) or 0, CONCENTRATED_PPM),
        ("related_share", related_share(related, others) or 0, RELATED_HIGH_PPM),
    )
    raised = tuple(name for name, value, high in parts if _is_raised(name, value, high, age_us))
    return parts[0][1], parts[1][1], raised
