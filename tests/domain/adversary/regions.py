"""A region that shares what its nodes earn: its administrator sets the terms, and is paid."""

from __future__ import annotations

from domain.calendar import day_of
from domain.duration import DAY_US
from domain.income.region_sharing import NodeTime, SetRegionTerms, ShareRegionDay, earliest_day
from domain.income.region_terms import InfraCost, terms_of
from domain.money import credit
from tests.domain.adversary.network import OWNERS, REGION, Network

DAYS_MAX = 30


def set_terms(network: Network, base: int, participation_ppm: int, *, is_shared: bool) -> None:
    """The next version of the terms, and its notice passes."""
    known = terms_of(network, REGION)
    first = earliest_day(network, network.now_us)
    if known:
        first = max(first, known[-1].effective_from_day + 1)
    done = network.try_(
        SetRegionTerms(
            region_id=REGION,
            account_id=OWNERS[0],
            version=len(known) + 1,
            effective_from_day=first,
            is_shared=is_shared,
            participation_ppm=participation_ppm,
            availability_min_tier=2,
            infra=InfraCost(
                base=credit(base),
                control=credit(0),
                ingress=credit(0),
                most=credit(base),
                arrears_max=credit(base),
            ),
            by="m",
            at_us=network.now_us,
        )
    )
    if done:
        network.now_us = first * DAY_US


def share_days(network: Network, times: dict[str, int]) -> None:
    """The days that are over, in their order, with the time that was attested."""
    known = terms_of(network, REGION)
    if not known:
        return
    day = network.next_day or known[0].effective_from_day
    for _ in range(DAYS_MAX):
        if day >= day_of(network.now_us):
            return
        share = ShareRegionDay(
            region_id=REGION,
            day=day,
            times=tuple(NodeTime(node, us, 0) for node, us in times.items() if us),
            control=(),
            ingress=(),
            at_us=network.now_us,
        )
        if not network.try_(share):
            return
        day += 1
        network.next_day = day
