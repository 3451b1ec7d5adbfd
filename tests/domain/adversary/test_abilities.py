"""The search uses each ability that it has, and sees a profit that comes of it.

In a leaky network a fact of the ability pays the coalition once more; with a rule mutated the
ability itself pays too much. Under the real rules none of these is found (`test_search.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from domain.corrections.dispute import DisputeResolved
from domain.corrections.sla import SlaCredited
from domain.epochs import settlement
from domain.fleet.node import NodeJoinRequested
from domain.funds.funding import PromotionGranted
from domain.funds.payment import PaymentReceived
from domain.funds.top_up import TopUpStarted
from domain.income.cash_out import CashOutPaid
from domain.income.region_pool import RegionDayShared, RegionEarningsGathered
from domain.jobs.gang import GangClosed, GangOpened
from domain.lease.lease import LeaseToppedUp, UsageAccrued, lease_of
from domain.lease.reserved_term import TermEndedEarly
from domain.lease.turns import LeaseResumed
from domain.leasing.other_resources import ResourceAccrued
from domain.market.auction import AuctionAwarded
from domain.money import PPM
from domain.parties.account import AccountOpened
from domain.pools.queue import ScheduleDecided
from tests.domain.adversary.network import RENTERS, TOKEN_PRICE, Network
from tests.domain.adversary.outsiders import Fell
from tests.domain.adversary.rewards import Rewards
from tests.domain.adversary.search import STEPS, TOKEN, Gained, Pools, Search, Terms, terms_of
from tests.seeds.machines import QUIET

SOUND = {"platform": 150_000, "provider": 350_000}
RUNS = 1_000


def finds(
    found: type[AssertionError], terms: Terms, network: type[Network] = Network, runs: int = RUNS
) -> None:
    """The search under these terms finds what it looks for."""

    class Bounded(Search):
        bound = terms
        under = network

    with pytest.raises(found):
        run_state_machine_as_test(
            Bounded,
            settings=settings(
                max_examples=runs,
                stateful_step_count=STEPS,
                phases=[Phase.generate],
                derandomize=True,
                database=None,
                deadline=None,
                report_multiple_bugs=False,
                suppress_health_check=QUIET,
            ),
        )


def _is_federated(_: Network, fact: Any) -> bool:
    return isinstance(fact, UsageAccrued) and bool(fact.federated and fact.federated.new.units)


def _is_refill(network: Network, fact: Any) -> bool:
    if not isinstance(fact, LeaseToppedUp):
        return False
    asked = lease_of(network, fact.lease_id).requested
    return asked is not None and asked.refill


def _of(kind: type[Any]) -> Callable[[Network, Any], bool]:
    return lambda _, fact: isinstance(fact, kind)


ABILITIES: dict[str, Callable[[Network, Any], bool]] = {
    "a gang starts": _of(GangOpened),
    "a gang does not start": _of(GangClosed),
    "a lease at a standing bid was paused and goes on": _of(LeaseResumed),
    "an auction is won": _of(AuctionAwarded),
    "a request that waited for a pool has its turn": _of(ScheduleDecided),
    "a federated fee is paid": _is_federated,
    "a payment starts by itself": _of(TopUpStarted),
    "a lease is kept going by itself": _is_refill,
    "a region gathers": _of(RegionEarningsGathered),
    "a region pays its administrator": lambda _, fact: (
        isinstance(fact, RegionDayShared) and fact.infra.units > 0
    ),
    "an account more": _of(AccountOpened),
    "a node more": _of(NodeJoinRequested),
    "a node more earns": lambda _, fact: (
        isinstance(fact, UsageAccrued) and fact.node_id.startswith("node_new")
    ),
    "a sponsor gives": _of(PromotionGranted),
    "a card pays": _of(PaymentReceived),
    "a term ends early": _of(TermEndedEarly),
    "a meter charges": _of(ResourceAccrued),
    "a promise is broken": _of(SlaCredited),
    "earnings leave as money": _of(CashOutPaid),
    "nobody rules in time on the disk of a volume": lambda _, fact: (
        isinstance(fact, DisputeResolved)
        and fact.volume_id is not None
        and fact.outcome == "timed_out"
    ),
}
BONUS = 10**12
"""A million credits: more than anything that a run costs."""


@pytest.mark.parametrize("name", ABILITIES)
def test_the_search_does_it_and_sees_what_it_pays(name: str) -> None:
    leaks = ABILITIES[name]

    class Leaky(Network):
        def _count(self, fact: Any) -> None:
            super()._count(fact)
            if leaks(self, fact):
                book = f"party:{RENTERS[0]}:cash"
                self.balances[book] = self.balance(book) + BONUS

    finds(Gained, terms_of(SOUND, "burn", PPM, 10_000), Leaky)


def test_time_that_does_not_count_is_seen_when_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement, "counts", lambda _device, _terms, _tier: True)
    finds(Gained, terms_of(SOUND, "burn", PPM, pools=Pools(100 * TOKEN, 500_000)))


@pytest.mark.slow("::test_the_search_does_it_and_sees_what_it_pays")
def test_a_resource_that_weighs_more_than_was_burned_of_it_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack: an owner signs bytes that nobody sent, and its friend's charge buys rewards. What
    is burned of the charge bounds them, as of GPU time; here it counts as a hundred times as much.
    """
    real = Rewards._charged

    def inflated(self: Rewards, position: int, fact: Any, time_us: int) -> None:
        real(self, position, fact, time_us)
        if isinstance(fact, ResourceAccrued):
            for row in self.counted.get(position, ()):
                if row.source == "burned":
                    self._move(row, 99 * row.burned, 0)

    monkeypatch.setattr(Rewards, "_charged", inflated)
    finds(Gained, terms_of(SOUND, "burn", PPM))


@pytest.mark.slow("::test_the_search_does_it_and_sees_what_it_pays")
def test_a_stale_price_of_token_is_seen() -> None:
    """The network would burn at the price of the beginning, whatever the market's is."""

    class Stale(Network):
        @property
        def oracle_price(self) -> int:
            return TOKEN_PRICE

    finds(Gained, terms_of(SOUND, "burn", PPM), Stale)


def test_a_bonus_for_each_node_is_seen_in_the_rewards_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = settlement._compute_weights

    def per_node(nodes: Iterable[Any], terms: Any, base: str) -> list[int]:
        return [weight and weight + 10**6 for weight in real(nodes, terms, base)]

    monkeypatch.setattr(settlement, "_compute_weights", per_node)
    finds(Fell, terms_of(SOUND, "burn", PPM, pools=Pools(2 * TOKEN)))


def test_a_weight_of_what_was_not_burned_is_seen_in_the_rewards_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A coalition would weigh twice what it burned, and take twice from others."""
    real = settlement._compute_weights

    def doubled(nodes: Iterable[Any], terms: Any, base: str) -> list[int]:
        listed = list(nodes)
        weights = real(listed, terms, base)
        return [
            weight * (100 if node.node_id.startswith("node_evil") else 1)
            for node, weight in zip(listed, weights, strict=True)
        ]

    monkeypatch.setattr(settlement, "_compute_weights", doubled)
    finds(Fell, terms_of(SOUND, "burn", PPM, pools=Pools(2 * TOKEN)))
