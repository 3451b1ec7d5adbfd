"""Gangs: together or not at all, whoever comes first, whoever is late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.device import DeviceReserved
from domain.fleet.reasons import FleetReason
from domain.hardware.reasons import HardwareReason
from domain.jobs.gang import (
    GANG_FACTS_MAX,
    MEMBER_FACTS,
    CloseGang,
    GangClosed,
    GangGrown,
    GangOpened,
    GangReserved,
    GangState,
    GrowGang,
    RequestGang,
    ReserveGang,
)
from domain.jobs.gang_places import place
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import CANCELLED_BEFORE_START, GANG_TIMEOUT, START_TIMEOUT
from domain.lease.lease import (
    CloseLease,
    Lease,
    LeaseClosed,
    LeaseOpened,
    LeaseReserved,
    LeaseSettled,
    ReadyLease,
    RequestLease,
    ReserveLease,
)
from domain.market.matching import FreeDevice, Match, Need, OfferedNode, choose, less
from domain.market.reasons import MarketReason
from domain.money import PPM, credit
from domain.parties.reasons import PartiesReason
from domain.pools.pool import GANG_TIMEOUT_US
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Stream
from domain.trust.reasons import TrustReason
from ledger.log.handle import FACTS_MAX
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import JOB, NOON_US, RENTER, job
from tests.domain.scenes.pools import CASH, fleet_of, free_nodes
from tests.examples import examples

GANG = "gang_1"
MINUTE_US = 60_000_000


class Market:
    """The door of the tests: several commands, all of their facts or none."""

    def __init__(self, nodes: int, gpus: int = 1) -> None:
        self.world = Booked.of(fleet_of(nodes, gpus))

    def append(self, *commands: Any) -> list[Any]:
        world = self.world  # its states are frozen
        ahead = Booked(dict(world.balances), list(world.log), dict(world._states))
        facts = [change.fact for command in commands for change in ahead.do(command)]
        self.world = ahead
        return facts

    def submit(self, gpus: int = 1, job_id: str = JOB) -> None:
        self.append(job(gpus, job_id=job_id))

    def lease(self, lease_id: str) -> Lease:
        state = self.world.state(Stream("lease", lease_id))
        assert isinstance(state, Lease)
        return state

    def gang(self, gang_id: str = GANG) -> GangState:
        state = self.world.state(Stream("gang", gang_id))
        assert isinstance(state, GangState)
        return state

    def facts(self, kind: type) -> list[Any]:
        return [change.fact for change in self.world.log if isinstance(change.fact, kind)]

    def plan(self, asked: RequestGang, gpus: int = 1) -> tuple[Match, ...]:
        need = Need(
            gpu_count=gpus,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=(),
            price_max=3_000_000,
            account_id=RENTER,
        )
        nodes = free_nodes(self.world)
        return place(need, nodes, members=asked.members, min_members=asked.min_members)

    def start(self, asked: RequestGang, at_us: int = NOON_US) -> list[Any]:
        """Ask for a gang and reserve it where the planner says; nothing when it does not fit."""
        matches = self.plan(asked)
        if not matches:
            raise Refused(MarketReason.NO_MATCH)
        return self.append(asked, *reservation(asked.gang_id, matches, at_us, asked.job_id))

    def ready(self, lease_id: str, at_us: int) -> list[Any]:
        node_id = self.lease(lease_id).reserved.node_id  # type: ignore[union-attr]
        return self.append(
            ReadyLease(lease_id=lease_id, node_id=node_id, endpoint=None, at_us=at_us)
        )


def asking(members: int, min_members: int | None = None, **changes: Any) -> RequestGang:
    asked = RequestGang(
        gang_id=GANG,
        job_id=JOB,
        account_id=RENTER,
        pool_id=None,
        members=members,
        min_members=members if min_members is None else min_members,
        term_us=None,
        funds=None,
        at_us=NOON_US,
    )
    return replace(asked, **changes)


def reservation(
    gang_id: str, matches: Iterable[Match], at_us: int, job_id: str = JOB, first: int = 0
) -> list[Any]:
    """Every command of the one append that gives a gang its devices."""
    commands: list[Any] = []
    leases = []
    for number, match in enumerate(matches, first):
        lease_id = f"lease_{gang_id}_{number}"
        leases.append(lease_id)
        commands += [
            RequestLease(
                lease_id=lease_id,
                job_id=job_id,
                account_id=RENTER,
                term_us=None,
                funds=None,
                at_us=at_us,
                gang_id=gang_id,
                start_timeout_us=GANG_TIMEOUT_US,
            ),
            ReserveLease(
                lease_id=lease_id,
                rule="lowest_cost/1",
                fleet_position=1,
                candidates=match.candidates,
                considered=match.considered,
                node_id=match.node_id,
                offer_id=match.offer_id,
                device_ids=match.device_ids,
                at_us=at_us,
            ),
        ]
    end = GrowGang if first else ReserveGang
    return [*commands, end(gang_id=gang_id, lease_ids=tuple(leases), at_us=at_us)]


# All or none.


def test_8_wanted_and_6_free_give_no_lease_and_no_charge() -> None:
    market = Market(6)
    market.submit()
    with pytest.raises(Refused):
        market.start(asking(8))
    assert market.facts(LeaseReserved) == []
    assert market.facts(DeviceReserved) == []
    assert market.world.balance(f"party:{RENTER}:cash") == CASH


def test_of_two_gangs_of_5_on_8_gpus_exactly_one_starts() -> None:
    market = Market(8)
    market.submit()
    market.submit(job_id="job_2")
    market.start(asking(5))
    with pytest.raises(Refused):
        market.start(asking(5, gang_id="gang_2", job_id="job_2"))
    assert len(market.facts(GangReserved)) == 1
    assert len(market.facts(LeaseReserved)) == 5


def test_one_taken_device_fails_the_whole_append() -> None:
    """The plan was made before somebody else took a node: no member keeps anything."""
    market = Market(4)
    market.submit()
    market.submit(job_id="job_2")
    stale = market.plan(asking(4))
    market.start(asking(1, gang_id="gang_2", job_id="job_2"))
    before = len(market.world.log)
    with pytest.raises(Refused) as refused:
        market.append(asking(4), *reservation(GANG, stale, NOON_US))
    assert refused.value.reason is HardwareReason.DEVICE_TAKEN
    assert len(market.world.log) == before


def test_a_gang_may_start_with_fewer_than_it_wished_and_grow_later() -> None:
    market = Market(6)
    market.submit()
    market.start(asking(8, min_members=5))
    assert len(market.gang().lease_ids) == 6
    for lease_id in market.gang().lease_ids:
        market.ready(lease_id, NOON_US + MINUTE_US)
    more = reservation(GANG, [_freed(market)], NOON_US + 2 * MINUTE_US, first=6)
    market.append(*more)
    assert len(market.facts(GangGrown)) == 1
    (late,) = market.facts(GangGrown)[0].lease_ids
    facts = market.ready(late, NOON_US + 3 * MINUTE_US)
    (opened,) = [fact for fact in facts if isinstance(fact, LeaseOpened)]
    assert opened.opened_at_us == NOON_US + 3 * MINUTE_US, "billed from its own start"


def _freed(market: Market) -> Match:
    """Close one member of the open gang, and match the device that comes free."""
    market.append(
        CloseLease(
            lease_id=market.gang().lease_ids[0],
            closed_at_us=NOON_US + 2 * MINUTE_US,
            party="renter",
            code=1,
            at_us=NOON_US + 2 * MINUTE_US,
        )
    )
    (match,) = market.plan(asking(1))
    return match


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"members": 0, "min_members": 0}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"members": 2, "min_members": 3}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"members": 129, "min_members": 1}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"timeout_us": 1}, PricesReason.AMOUNT_OUT_OF_RANGE),
        ({"account_id": "acct_owner"}, TrustReason.JOB_UNKNOWN),
        ({"job_id": "job_none"}, TrustReason.JOB_UNKNOWN),
    ],
)
def test_a_gang_that_cannot_be_is_refused(changes: dict[str, Any], reason: Reason) -> None:
    market = Market(1)
    market.submit()
    with pytest.raises(Refused) as refused:
        market.append(asking(**{"members": 1, **changes}))
    assert refused.value.reason is reason


def test_the_largest_gang_fits_into_one_append_and_one_more_member_is_refused() -> None:
    members = GANG_FACTS_MAX // (MEMBER_FACTS + 2)
    market = Market(members, gpus=2)
    market.submit(gpus=2)
    with pytest.raises(Refused) as refused:
        market.append(asking(members + 1))
    assert refused.value.reason is PartiesReason.COUNT_OUT_OF_RANGE
    asked = asking(members)
    facts = market.append(asked, *reservation(GANG, market.plan(asked, gpus=2), NOON_US))
    assert len(facts) <= FACTS_MAX
    late = CloseGang(gang_id=GANG, party="job", code=GANG_TIMEOUT, at_us=NOON_US + GANG_TIMEOUT_US)
    assert len(market.append(late)) <= FACTS_MAX


def test_a_reservation_of_too_few_members_is_refused() -> None:
    market = Market(4)
    market.submit()
    matches = market.plan(asking(4))[:3]
    with pytest.raises(Refused) as refused:
        market.append(asking(4), *reservation(GANG, matches, NOON_US))
    assert refused.value.reason is JobsReason.GANG_STATE


# Billing.


def test_billing_of_all_starts_at_the_instant_the_last_one_is_ready_in_one_append() -> None:
    market = Market(3)
    market.submit()
    market.start(asking(3))
    first, second, third = market.gang().lease_ids
    for at, lease_id in ((1, first), (2, third)):
        facts = market.ready(lease_id, NOON_US + at * MINUTE_US)
        assert not any(isinstance(fact, LeaseOpened) for fact in facts)
        assert market.lease(lease_id).status == "gang_waiting"
    facts = market.ready(second, NOON_US + 3 * MINUTE_US)
    opened = [fact for fact in facts if isinstance(fact, LeaseOpened)]
    assert {fact.lease_id for fact in opened} == {first, second, third}
    assert {fact.opened_at_us for fact in opened} == {NOON_US + 3 * MINUTE_US}
    assert [fact.opened_at_us for fact in facts if isinstance(fact, GangOpened)] == [
        NOON_US + 3 * MINUTE_US
    ]
    assert market.ready(first, NOON_US + 4 * MINUTE_US) == []


def test_a_member_that_says_ready_twice_counts_once() -> None:
    market = Market(2)
    market.submit()
    market.start(asking(2))
    first = market.gang().lease_ids[0]
    market.ready(first, NOON_US + 1)
    assert market.ready(first, NOON_US + 2) == []
    assert market.gang().ready == (first,)


def test_the_timeout_closes_all_at_charge_0_and_names_who_was_late() -> None:
    market = Market(3)
    market.submit()
    market.start(asking(3))
    first, late, third = market.gang().lease_ids
    for lease_id in (first, third):
        market.ready(lease_id, NOON_US + MINUTE_US)
    ends_us = NOON_US + GANG_TIMEOUT_US
    timeout = CloseLease(
        lease_id=first, closed_at_us=ends_us, party="job", code=START_TIMEOUT, at_us=ends_us
    )
    with pytest.raises(Refused):
        market.append(replace(timeout, at_us=ends_us - 1))
    facts = market.append(timeout)
    codes = {fact.lease_id: fact.code for fact in facts if isinstance(fact, LeaseClosed)}
    assert codes == {first: GANG_TIMEOUT, late: START_TIMEOUT, third: GANG_TIMEOUT}
    assert [fact.charge.units for fact in facts if isinstance(fact, LeaseSettled)] == [0, 0, 0]
    assert [fact.missing for fact in facts if isinstance(fact, GangClosed)] == [(late,)]
    assert market.world.balance(f"party:{RENTER}:cash") == CASH
    assert len(market.plan(asking(3))) == 3, "their devices are free again"
    assert market.append(replace(timeout, lease_id=late)) == [], "the others' timers find it done"
    with pytest.raises(Refused):
        market.ready(late, ends_us + 1)


def test_too_late_is_too_late_whether_or_not_the_timer_came() -> None:
    market = Market(2)
    market.submit()
    market.start(asking(2))
    first, late = market.gang().lease_ids
    market.ready(first, NOON_US + 1)
    with pytest.raises(Refused) as refused:
        market.ready(late, NOON_US + GANG_TIMEOUT_US)
    assert refused.value.reason is FleetReason.LEASE_STATE


def test_a_member_cancelled_before_the_start_ends_the_whole_gang() -> None:
    market = Market(3)
    market.submit()
    market.start(asking(3))
    one = market.gang().lease_ids[1]
    facts = market.append(
        CloseLease(
            lease_id=one,
            closed_at_us=NOON_US + 1,
            party="renter",
            code=CANCELLED_BEFORE_START,
            at_us=NOON_US + 1,
        )
    )
    assert {fact.code for fact in facts if isinstance(fact, LeaseClosed)} == {
        CANCELLED_BEFORE_START
    }
    assert market.gang().status == "closed"
    assert market.world.balance(f"party:{RENTER}:cash") == CASH


def test_a_provider_that_withdraws_a_member_bears_that_alone() -> None:
    market = Market(3)
    market.submit()
    market.start(asking(3))
    one = market.gang().lease_ids[1]
    facts = market.append(
        CloseLease(
            lease_id=one, closed_at_us=NOON_US + 1, party="provider", code=10_002, at_us=NOON_US + 1
        )
    )
    codes = [fact.code for fact in facts if isinstance(fact, LeaseClosed)]
    assert codes == [GANG_TIMEOUT, 10_002, GANG_TIMEOUT]


def test_a_gang_is_closed_as_a_whole_before_it_opens_and_lease_by_lease_after() -> None:
    market = Market(2)
    market.submit()
    market.start(asking(2))
    cancel = CloseGang(gang_id=GANG, party="renter", code=CANCELLED_BEFORE_START, at_us=NOON_US + 1)
    market.append(cancel)
    assert market.append(cancel) == []
    other = asking(2, gang_id="gang_2")
    market.start(other, NOON_US + 2)
    for lease_id in market.gang("gang_2").lease_ids:
        market.ready(lease_id, NOON_US + 3)
    with pytest.raises(Refused) as refused:
        market.append(replace(cancel, gang_id="gang_2"))
    assert refused.value.reason is JobsReason.GANG_STATE
    closing = CloseLease(
        lease_id=market.gang("gang_2").lease_ids[0],
        closed_at_us=NOON_US + MINUTE_US,
        party="renter",
        code=1,
        at_us=NOON_US + MINUTE_US,
    )
    facts = market.append(closing)
    assert [fact.lease_id for fact in facts if isinstance(fact, LeaseClosed)] == [closing.lease_id]


# Any interleaving.


def test_two_gangs_whose_members_come_interleaved_both_complete_in_turn() -> None:
    """Gangs {A,B} and {C,D} on two GPUs; A, C, B, D are asked for in this order.

    A waiting gang holds nothing, so neither can keep the other from completing.
    """
    market = Market(2)
    market.submit()
    market.submit(job_id="job_2")
    one, other = asking(2), asking(2, gang_id="gang_2", job_id="job_2")
    market.start(one)
    with pytest.raises(Refused):
        market.start(other)
    for lease_id in market.gang().lease_ids:
        market.ready(lease_id, NOON_US + 1)
    for lease_id in market.gang().lease_ids:
        market.append(
            CloseLease(
                lease_id=lease_id,
                closed_at_us=NOON_US + 2,
                party="renter",
                code=0,
                at_us=NOON_US + 2,
            )
        )
    market.start(other, NOON_US + 3)
    for lease_id in market.gang("gang_2").lease_ids:
        market.ready(lease_id, NOON_US + 4)
    assert {fact.gang_id for fact in market.facts(GangOpened)} == {GANG, "gang_2"}


WHATS = ("start", "start", *("ready",) * 6, "timeout", "cancel", "close", "leave")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(WHATS),
        st.integers(0, 2),  # which gang
        st.integers(0, 4),  # which member
        st.integers(0, 6),  # minutes later
    ),
    min_size=6,
    max_size=30,
)


@examples(60)
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=3, max_size=3),
    STEPS,
)
def test_gangs_are_all_or_nothing_under_any_interleaving(
    gpus: int, sizes: list[tuple[int, int]], steps: list[tuple[str, int, int, int]]
) -> None:
    """No member has devices alone, none is billed before the last is ready, nothing is left over,
    and when all is over every gang that could ever fit has had its turn.
    """
    market, now_us = Market(gpus), NOON_US
    wishes = [(members, max(1, members - slack)) for members, slack in sizes]
    for number in range(3):
        market.submit(job_id=f"job_{number}")
    for what, which, member, minutes in steps:
        now_us += minutes * MINUTE_US
        _step(market, what, which, member, now_us, wishes)
        _check(market, wishes)
    for which in range(3):
        now_us += 20 * MINUTE_US
        for other in range(3):
            _step(market, "timeout", other, 0, now_us, wishes)
            for member in range(4):
                _step(market, "close", other, member, now_us, wishes)
        _step(market, "start", which, 0, now_us, wishes)
        _check(market, wishes)
        assert (market.gang(f"gang_{which}").status != "") == (gpus >= wishes[which][1]), (
            "no deadlock: with everybody else gone, a gang that fits the fleet has started once"
        )


ENDS = {"timeout": ("job", START_TIMEOUT), "close": ("renter", 1), "leave": ("provider", 10_002)}


def _step(
    market: Market, what: str, which: int, member: int, now_us: int, wishes: list[tuple[int, int]]
) -> None:
    gang_id = f"gang_{which}"
    gang = market.gang(gang_id)
    leases = gang.lease_ids
    try:
        if what == "start" and gang.requested is None:
            members, least = wishes[which]
            asked = asking(members, least, gang_id=gang_id, job_id=f"job_{which}", at_us=now_us)
            market.start(asked, now_us)
        elif what == "ready" and leases:
            market.ready(leases[member % len(leases)], now_us)
        elif what == "cancel" and gang.requested is not None:
            market.append(
                CloseGang(
                    gang_id=gang_id, party="renter", code=CANCELLED_BEFORE_START, at_us=now_us
                )
            )
        elif leases and what in ENDS:
            party, code = ENDS[what]
            market.append(
                CloseLease(
                    lease_id=leases[member % len(leases)],
                    closed_at_us=now_us,
                    party=party,
                    code=code,
                    at_us=now_us,
                )
            )
    except Refused:
        return  # then nothing was recorded, which is what is checked


def _check(market: Market, wishes: list[tuple[int, int]]) -> None:
    for which, (_, least) in enumerate(wishes):
        gang = market.gang(f"gang_{which}")
        members = [market.lease(lease_id) for lease_id in gang.lease_ids]
        statuses = {lease.status for lease in members}
        if gang.status == "reserved":
            assert len(members) >= least
            assert statuses <= {"reserved", "gang_waiting"}
            assert not any(lease.opened for lease in members)
        elif gang.status == "open":
            assert {lease.opened.opened_at_us for lease in members if lease.opened} == {
                gang.opened_at_us
            }
            assert all(lease.opened for lease in members)
            assert set(gang.ready) == set(gang.lease_ids)
        elif gang.status == "closed":
            assert statuses <= {"settled"}
            assert all(lease.charge_units == 0 and not lease.held for lease in members)
    instants = {fact.opened_at_us for fact in market.facts(GangOpened)}
    assert {fact.opened_at_us for fact in market.facts(LeaseOpened)} <= instants


# Where they go.


def test_members_fill_a_node_before_they_take_another() -> None:
    nodes = [
        OfferedNode(
            node_id=f"node_{n}",
            offer_id=f"offer_{n}",
            account_id="acct_owner",
            price=1,
            pay_with="cash",
            fractions=True,
            served_gpu_us=0,
            devices=tuple(FreeDevice(f"GPU-{n}-{d}", "A100", PPM, PPM) for d in range(4)),
        )
        for n in range(3)
    ]
    need = Need(gpu_count=2, share_ppm=PPM, mem_ppm=PPM, models=(), price_max=5, account_id=RENTER)
    found = place(need, nodes, members=5, min_members=5)
    assert [match.node_id for match in found] == ["node_0", "node_0", "node_1", "node_1", "node_2"]
    devices = [device for match in found for device in match.device_ids]
    assert len(set(devices)) == len(devices) == 10
    assert place(need, nodes, members=7, min_members=7) == ()
    assert len(place(need, nodes, members=7, min_members=6)) == 6


def test_nodes_that_do_not_reach_each_other_serve_no_gang_together() -> None:
    """C-3: the best node takes its share, those parted from it none; others are as good as ever."""
    nodes = [
        OfferedNode(
            node_id=f"node_{n}",
            offer_id=f"offer_{n}",
            account_id="acct_owner",
            price=1 + n,
            pay_with="cash",
            fractions=True,
            served_gpu_us=0,
            devices=(FreeDevice(f"GPU-{n}", "A100", PPM, PPM),),
        )
        for n in range(4)
    ]
    need = Need(gpu_count=1, share_ppm=PPM, mem_ppm=PPM, models=(), price_max=5, account_id=RENTER)
    parted = {"node_0": {"node_1"}, "node_1": {"node_0"}}
    asked: dict[str, Any] = {"min_members": 3, "members": 3, "parted": parted}
    assert [one.node_id for one in place(need, nodes, **asked)] == ["node_0", "node_2", "node_3"]
    assert place(need, nodes, **{**asked, "min_members": 4, "members": 4}) == ()
    more = place(need, nodes, **{**asked, "min_members": 1}, placed_on=["node_1"])
    assert [one.node_id for one in more] == ["node_1", "node_2", "node_3"]


@examples(40)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(1, 2),
    st.sampled_from((PPM, PPM // 2)),
)
def test_each_member_goes_where_a_single_lease_would_after_the_members_before_it(
    sizes: list[tuple[int, int]], gpus: int, share: int
) -> None:
    """Looking again only where something changed gives what looking everywhere each time does."""
    nodes = [
        OfferedNode(
            node_id=f"node_{n}",
            offer_id=f"offer_{n}",
            account_id="acct_owner",
            price=price,
            pay_with="cash",
            fractions=True,
            served_gpu_us=n % 2,
            devices=tuple(FreeDevice(f"GPU-{n}-{d}", "A100", PPM, PPM) for d in range(devices)),
        )
        for n, (price, devices) in enumerate(sizes)
    ]
    need = Need(
        gpu_count=gpus, share_ppm=share, mem_ppm=share, models=(), price_max=5, account_id=RENTER
    )
    found = place(need, reversed(nodes), members=99, min_members=0)
    for match in found:
        assert match == choose(need, nodes)
        taken = dict.fromkeys(match.device_ids, (share, share, need.mode))
        nodes = [less(node, taken) if node.node_id == match.node_id else node for node in nodes]
    assert choose(need, nodes) is None


def test_shares_of_one_device_go_to_several_members() -> None:
    node = OfferedNode(
        node_id="node_0",
        offer_id="offer_0",
        account_id="acct_owner",
        price=1,
        pay_with="cash",
        fractions=True,
        served_gpu_us=0,
        devices=(FreeDevice("GPU-0", "A100", PPM, PPM),),
    )
    need = Need(
        gpu_count=1, share_ppm=250_000, mem_ppm=250_000, models=(), price_max=5, account_id=RENTER
    )
    assert len(place(need, [node], members=5, min_members=4)) == 4
    assert place(need, [node], members=5, min_members=5) == ()


def test_the_funds_of_each_member_are_held_for_it() -> None:
    market = Market(2)
    market.submit()
    asked = asking(2, funds=credit(5_000_000))
    matches = market.plan(asked)
    commands = [
        replace(one, funds=credit(5_000_000)) if isinstance(one, RequestLease) else one
        for one in reservation(GANG, matches, NOON_US)
    ]
    market.append(asked, *commands)
    assert [market.lease(one).held_units for one in market.gang().lease_ids] == [5_000_000] * 2
