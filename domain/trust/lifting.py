"""Leased time that a renter signed for proves as much as a challenge, which needs an idle device.

    lifted == min(time at tier 2, signed time)          of a node; lifted time counts as tier 3

One rule for the availability pool of an epoch and for the participation pool of a region. A
signature makes up for the challenge that nobody could ask, and for nothing below it: a device that
does not fit together stays where it is. Source: design metering 9.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.trust.tiers import CHALLENGED

UNCHALLENGED = CHALLENGED - 1


def lifted_us(times: Iterable[tuple[int, int]], signed_us: int) -> list[int]:
    """Of each (tier, microseconds) of a node the part that counts as challenged. `signed_us`:
    GPU-microseconds that renters of their own signed for; the first times use them up.
    """
    found = []
    for tier, us in times:
        found.append(min(us, signed_us) if tier == UNCHALLENGED else 0)
        signed_us -= found[-1]
    return found
