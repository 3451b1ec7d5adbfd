"""Resources beside the GPU: every event counts once, whatever way it comes (rows R-7, J-6)."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.funds.budget import SetBudget, budget_of
from domain.funds.reasons import FundsReason
from domain.jobs.job import METER_MAX_UNITS
from domain.lease.lease import LATE_WINDOW_US
from domain.lease.reasons import LeaseReason
from domain.leasing.other_resources import (
    CHARGE_UNITS_MAX,
    PATIENCE_US,
    QUANTITY_MAX,
    SOURCES_MAX,
    AccrueResource,
    MeteredEvent,
    MeterSource,
    ReleaseStorage,
    ResourceAccrued,
    StorageReleased,
    chain_of,
    stream_of,
    usage_of,
)
from domain.metering.reasons import MeteringReason
from domain.money import Amount, Asset, credit
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.prices.reasons import PricesReason
from domain.prices.tariff import MeterMax, MeterRate, TariffPublished
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes import market
from tests.domain.scenes.market import LEASE, NOON_US, OWNER, RENTER
from tests.examples import examples
from tests.given import Scene

OPERATOR, CLIENT = "acct_op", "acct_client"
RATES = (
    MeterRate("cpu", credit(36_000), 3_600),
    MeterRate("storage", credit(1_000), 7),
    MeterRate("network", credit(10_000), 10**9),
)
LOG: dict[str, Any] = {"log_position": 99, "log_chain": "cc" * 32}


def with_meters(scene: Scene, rates: tuple[MeterRate, ...] = RATES) -> Scene:
    """The same market under a tariff that prices CPU, storage and network; memory is free."""
    past = tuple(
        (stream, replace(fact, meters=rates) if isinstance(fact, TariffPublished) else fact)
        for stream, fact in scene.past
    )
    opened = AccountOpened(account_id=OPERATOR, kind="operator", opened_by="op", at_us=1)
    return replace(scene, past=past).given((Stream("account", OPERATOR), opened))


MOST = 10**11


def agreed(
    maxima: dict[str, int] | None = None,
    rates: tuple[MeterRate, ...] = RATES,
    *,
    source: str = "cash",
    offer: str = market.OFFER,
    account: str = RENTER,
    **job: Any,
) -> Scene:
    """A lease that runs since noon; its renter agreed to these maxima, by default to some for all
    that is priced.
    """
    named = {one.meter: MOST for one in rates} if maxima is None else maxima
    asked = tuple(MeterMax(meter, credit(units)) for meter, units in named.items())
    return (
        with_meters(market.scene({f"party:{account}:{source}": 10**18}), rates)
        .after(market.job(account_id=account, meter_maxima=asked, **job))
        .after(replace(market.request(funds=24 * 2_780_000), account_id=account))
        .after(market.reserve(offer=offer))
        .after(market.ready)
    )


running = agreed()


def event(
    position: int, quantity: int, from_s: int = 0, to_s: int = 3_600, **changes: Any
) -> MeteredEvent:
    """Of the provider's own meter, in seconds after noon."""
    leaf = sha256(f"{quantity}/{from_s}/{to_s}/{changes}".encode()).hexdigest()
    made = MeteredEvent(
        position=position,
        leaf=leaf,
        account_id=OWNER,
        source="meter/1",
        quantity=quantity,
        from_us=NOON_US + from_s * 1_000_000,
        to_us=NOON_US + to_s * 1_000_000,
    )
    return replace(made, **changes)


def accrue(*events: MeteredEvent, meter: str = "cpu", at_us: int | None = None) -> AccrueResource:
    ends = [one.to_us for one in events]
    at_us = max(ends, default=0) + PATIENCE_US if at_us is None else at_us
    return AccrueResource(lease_id=LEASE, meter=meter, events=events, at_us=at_us, **LOG)


def told(scene: Scene, command: AccrueResource) -> ResourceAccrued:
    (change,) = scene.when(command).changes()
    assert change.stream == stream_of(LEASE, command.meter)
    assert isinstance(change.fact, ResourceAccrued)
    return change.fact


def test_an_hour_of_four_cores_is_priced_by_the_leases_tariff_split_and_drawn() -> None:
    """R-7: CPU is billed by the core-second; J-6: priced beside the GPU."""
    fact = told(running, accrue(event(3, 14_400)))
    assert (fact.quantity, fact.unit, fact.rate, fact.tariff_version) == (
        14_400,
        "core-second",
        RATES[0],
        1,
    )
    assert fact.charge == fact.charge_new == credit(144_000)
    assert fact.parts == Parts(fee=0, provider=72_000, platform=72_000, burn=0)
    assert paid(fact) == [("cash", 144_000)]
    assert (fact.after_position, fact.through_position, fact.events) == (0, 3, 1)
    assert fact.sources == (MeterSource("meter/1", OWNER),)
    assert fact.refused == ()


def test_a_fact_commits_to_the_bytes_of_its_events_in_order() -> None:
    first, second = event(1, 10, 0, 60), event(4, 20, 60, 120)
    fact = told(running, accrue(first, second))
    chained = chain_of(chain_of("", LEASE, "cpu", first.leaf), LEASE, "cpu", second.leaf)
    assert fact.events_chain == chained
    assert (fact.log_position, fact.log_chain) == (99, "cc" * 32)
    one_by_one = running.after(accrue(first)).after(accrue(second))
    assert usage_of(one_by_one, LEASE, "cpu").events_chain == chained


def paid(fact: ResourceAccrued) -> list[tuple[str, int]]:
    return [(part.source, part.amount.units) for part in fact.drawn]


def test_nothing_is_charged_above_the_maximum_that_the_renter_agreed_to() -> None:
    """The attack: a provider metered 20 of 25 credits out of a renter in two seconds."""
    scene = agreed({"network": 15_000})
    events = (event(1, 10**9, 0, 1), event(2, 10**9, 1, 2), event(3, 5 * 10**8, 2, 3))
    fact = told(scene, accrue(*events, meter="network"))
    assert (fact.charge, paid(fact)) == (credit(15_000), [("cash", 15_000)])
    assert [(one.position, one.rule) for one in fact.refused] == [(2, "above_maximum")]
    after = scene.after(accrue(*events, meter="network"))
    later = told(after, accrue(event(4, 10**9, 3, 4), meter="network"))
    assert (later.charge_new, later.refused[0].rule) == (credit(0), "above_maximum")


@pytest.mark.parametrize("meter", ["cpu", "storage"])
def test_nothing_is_charged_for_a_resource_that_the_renter_did_not_agree_to(meter: str) -> None:
    """The attack: "storage" of a lease that never stored anything took 45 credits."""
    fact = told(agreed({"network": MOST}), accrue(event(1, 14_400), meter=meter))
    assert (fact.charge, fact.drawn, fact.refused[0].rule) == (credit(0), (), "not_agreed")


def capped(units: int) -> SetBudget:
    return SetBudget(
        account_id=RENTER, scope="project", target="p", monthly=credit(units), by="m", at_us=NOON_US
    )


def test_a_maximum_is_held_when_the_lease_is_reserved_and_counts_against_its_budgets() -> None:
    asked = (MeterMax("cpu", credit(300)), MeterMax("network", credit(50)))
    scene = with_meters(market.scene({f"party:{RENTER}:cash": 10**9}))
    scene = scene.after(capped(2_780_349))
    scene = scene.after(market.job(meter_maxima=asked)).after(market.request(funds=2_780_000))
    scene.when(market.reserve()).then_refused(PartiesReason.BUDGET_EXHAUSTED)
    wide = scene.after(capped(2_780_350))
    reserved = wide.after(market.reserve())
    held = usage_of(reserved, LEASE, "cpu").held
    assert [(one.source, one.amount.units) for one in held] == [("cash", 300)]
    assert budget_of(reserved, RENTER, "project", "p").used_in("2026-11") == 2_780_350
    poor = wide.having({f"party:{RENTER}:cash": 2_780_349})
    poor.when(market.reserve()).then_refused(FundsReason.CREDIT_TOO_LOW)


def test_what_is_left_of_a_hold_comes_back_a_day_after_the_lease_and_to_its_budgets() -> None:
    asked = (MeterMax("cpu", credit(300)), MeterMax("storage", credit(5_000)))
    scene = with_meters(market.scene({f"party:{RENTER}:cash": 10**9}))
    scene = scene.after(capped(10**9))
    scene = scene.after(market.job(meter_maxima=asked)).after(market.request(funds=2_780_000))
    scene = scene.after(market.reserve()).after(market.ready).after(accrue(event(1, 10)))
    scene = scene.after(accrue(event(2, 7), meter="storage"))
    scene = scene.after(market.close(HOUR_US)).after(market.settle(HOUR_US + LATE_WINDOW_US))
    over_us = NOON_US + HOUR_US + LATE_WINDOW_US
    scene.when(accrue(at_us=over_us - 1)).then_nothing()
    back = scene.after(accrue(at_us=over_us))
    assert usage_of(back, LEASE, "cpu").is_returned
    late = told(back, accrue(event(9, 10), at_us=over_us))
    assert late.refused[0].rule == "too_late"
    back.when(accrue(meter="storage", at_us=over_us + HOUR_US)).then_nothing()
    freed = back.after(release(7_200))
    over_us = NOON_US + 2 * HOUR_US + LATE_WINDOW_US
    freed.when(accrue(meter="storage", at_us=over_us - 1)).then_nothing()
    last = freed.after(accrue(meter="storage", at_us=over_us))
    assert usage_of(last, LEASE, "storage").held == ()
    assert budget_of(last, RENTER, "project", "p").used_in("2026-11") == 100 + 1_000
    assert budget_of(last, RENTER, "project", "p").holds == ()


def test_what_was_held_for_a_lease_that_never_ran_comes_back() -> None:
    asked = (MeterMax("cpu", credit(300)),)
    scene = with_meters(market.scene({f"party:{RENTER}:cash": 10**9}))
    scene = scene.after(market.job(meter_maxima=asked)).after(market.request(funds=2_780_000))
    scene = scene.after(market.reserve())
    scene.when(accrue(at_us=NOON_US + 10**12)).then_nothing()
    gone = scene.after(replace(market.close(60), code=101))
    assert usage_of(gone.after(accrue(at_us=NOON_US + 60)), LEASE, "cpu").is_returned


@pytest.mark.parametrize(
    ("maxima", "reason"),
    [
        ((MeterMax("gpu", credit(1)),), PartiesReason.UNKNOWN_MODE),
        ((MeterMax("cpu", credit(0)),), FundsReason.AMOUNT_NOT_POSITIVE),
        ((MeterMax("cpu", credit(METER_MAX_UNITS + 1)),), PricesReason.AMOUNT_OUT_OF_RANGE),
        ((MeterMax("cpu", Amount(Asset.TOKEN, 1)),), PricesReason.AMOUNT_OUT_OF_RANGE),
        (
            (MeterMax("cpu", credit(1)), MeterMax("cpu", credit(2))),
            PartiesReason.COUNT_OUT_OF_RANGE,
        ),
    ],
)
def test_a_maximum_is_of_a_meter_there_is_and_of_each_once(
    maxima: tuple[MeterMax, ...], reason: Reason
) -> None:
    market.scene().when(market.job(meter_maxima=maxima)).then_refused(reason)


def test_a_resource_without_a_price_is_counted_and_costs_nothing() -> None:
    fact = told(running, accrue(event(1, 500), meter="memory"))
    assert (fact.quantity, fact.rate, fact.charge, fact.drawn) == (500, None, credit(0), ())


def test_ones_own_resources_are_not_charged() -> None:
    """As for the accelerator, nobody pays himself; and no fee is due on the rest of the machine."""
    own = agreed(account=OWNER)
    fact = told(own, accrue(event(1, 14_400)))
    assert (fact.quantity, fact.charge, fact.rate) == (14_400, credit(0), None)


def test_burned_credits_of_a_burning_lease_are_retired_whole() -> None:
    burning = agreed(offer=market.BURN_OFFER, source="burned")
    fact = told(burning, accrue(event(1, 14_400)))
    assert fact.parts == Parts(fee=0, provider=0, platform=0, burn=144_000)
    assert paid(fact) == [("burned", 144_000)]


def test_an_event_counts_by_the_part_of_its_time_inside_the_lease() -> None:
    fact = told(running, accrue(event(7, 100, -30, 60)))
    assert (fact.quantity, [(one.position, one.rule, one.quantity) for one in fact.refused]) == (
        66,
        [(7, "outside_window", 34)],
    )


@pytest.mark.parametrize(
    ("meter", "counted"), [("cpu", 1_800), ("network", 1_800), ("storage", 7_200)]
)
def test_only_storage_is_billed_after_the_close(meter: str, counted: int) -> None:
    """Stopped but stored: half an hour of the lease, and then an hour and a half of storage."""
    closed = running.after(market.close(HOUR_US // 2))
    fact = told(closed, accrue(event(1, 3_600), event(2, 3_600, 3_600, 7_200), meter=meter))
    assert fact.quantity == counted


def release(at_s: int, account_id: str = RENTER) -> ReleaseStorage:
    at_us = NOON_US + at_s * 1_000_000
    return ReleaseStorage(lease_id=LEASE, account_id=account_id, by="mem", at_us=at_us)


def test_storage_is_billed_until_it_is_released_and_not_a_second_longer() -> None:
    running.when(release(60)).then_refused(FleetReason.LEASE_STATE)
    closed = running.after(market.close(HOUR_US // 2))
    closed.when(release(5_400, OWNER)).then_refused(LeaseReason.LEASE_UNKNOWN)
    fact = StorageReleased(
        lease_id=LEASE, account_id=RENTER, by="mem", at_us=NOON_US + 5_400_000_000
    )
    closed.when(release(5_400)).then((stream_of(LEASE, "storage"), fact))
    released = closed.after(release(5_400))
    released.when(release(9_999)).then_nothing()
    events = (event(1, 3_600), event(2, 3_600, 3_600, 7_200), event(3, 50, 7_200, 9_000))
    fact2 = told(released, accrue(*events, meter="storage"))
    assert fact2.quantity == 5_400
    assert [(one.position, one.quantity) for one in fact2.refused] == [(2, 1_800), (3, 50)]


def test_an_event_waits_until_its_time_is_over_and_what_comes_after_it_waits_too() -> None:
    early, late = event(1, 5, 0, 60), event(2, 5, 60, 120)
    at_us = late.to_us + PATIENCE_US - 1
    assert told(running, accrue(early, late, at_us=at_us)).through_position == 1
    running.when(accrue(late, replace(early, position=3), at_us=at_us)).then_nothing()


def test_nothing_is_judged_before_it_is_known_whether_the_lease_runs() -> None:
    waiting = with_meters(market.scene()).after(market.job()).after(market.request(funds=10**7))
    waiting.when(accrue(event(1, 5))).then_nothing()
    reserved = waiting.after(market.reserve())
    reserved.when(accrue(event(1, 5))).then_nothing()
    cancelled = reserved.after(replace(market.close(60), code=101))
    fact = told(cancelled, accrue(event(1, 5)))
    assert [(one.rule, one.quantity) for one in fact.refused] == [("lease_never_ran", 5)]
    Scene().when(accrue(event(1, 5))).then_refused(LeaseReason.LEASE_UNKNOWN)
    running.when(accrue(event(1, 5), meter="gpu")).then_refused(PartiesReason.UNKNOWN_MODE)


def test_its_provider_its_client_and_the_operator_may_meter_a_lease_and_nobody_else() -> None:
    client = agreed(client_id=CLIENT)
    fact = told(
        client,
        accrue(
            event(1, 1, source="a"),
            event(2, 2, source="b", account_id=CLIENT),
            event(3, 4, source="c", account_id=OPERATOR),
            event(4, 8, source="d", account_id=RENTER),
            event(5, 16, source="e", account_id="acct_nobody"),
        ),
    )
    assert fact.quantity == 7
    assert [(one.position, one.rule) for one in fact.refused] == [
        (4, "not_permitted"),
        (5, "not_permitted"),
    ]


def test_one_collectors_events_count_once_whoever_passes_them_on() -> None:
    both = accrue(event(1, 5), event(2, 5, account_id=OPERATOR))
    fact = told(running, both)
    assert (fact.quantity, [one.rule for one in fact.refused]) == (5, ["source_taken"])
    after = running.after(accrue(event(1, 5)))
    later = told(after, accrue(event(2, 5, account_id=OPERATOR)))
    assert [one.rule for one in later.refused] == ["source_taken"]


def test_a_resource_has_so_many_sources_and_no_more() -> None:
    events = [event(n + 1, 1, source=f"meter/{n}") for n in range(SOURCES_MAX + 1)]
    fact = told(running, accrue(*events))
    assert (fact.quantity, fact.refused[0].rule) == (SOURCES_MAX, "too_many_sources")


def test_a_closed_account_is_charged_no_more() -> None:
    closed = AccountClosed(account_id=RENTER, by="mem", at_us=NOON_US)
    scene = running.given((Stream("account", RENTER), closed))
    fact = told(scene, accrue(event(1, 5), meter="storage"))
    assert (fact.charge, fact.refused[0].rule) == (credit(0), "account_closed")


def test_no_meter_charges_more_than_there_can_be() -> None:
    dear = agreed({"cpu": METER_MAX_UNITS}, (MeterRate("cpu", credit(CHARGE_UNITS_MAX), 1),))
    fact = told(dear, accrue(event(1, 1, 0, 60), event(2, 1, 60, 120)))
    assert (fact.charge.units, fact.refused[0].rule) == (CHARGE_UNITS_MAX, "out_of_range")


def test_no_meter_counts_more_than_there_can_be() -> None:
    events = (event(1, QUANTITY_MAX, 0, 60), event(2, 1, 60, 120))
    fact = told(running, accrue(*events, meter="memory"))
    assert (fact.quantity, fact.refused[0].rule) == (QUANTITY_MAX, "out_of_range")


def test_events_judged_before_are_refused() -> None:
    after = running.after(accrue(event(5, 1)))
    after.when(accrue(event(5, 1))).then_refused(MeteringReason.USAGE_POSITION_FELL)
    after.when(accrue()).then_nothing()


quantities = st.lists(st.integers(0, 10**6), min_size=1, max_size=12)


@examples(40)
@given(
    quantities=quantities,
    order=st.randoms(use_true_random=False),
    cuts=st.sets(st.integers(1, 11)),
    closed_s=st.none() | st.integers(1, 900),
)
def test_no_batching_order_or_delay_of_events_changes_a_total(
    quantities: list[int], order: Any, cuts: set[int], closed_s: int | None
) -> None:
    """Duplicates never reach this point: the log stores an event once
    (`ledger/log/meter_log.py`).
    """
    events = [event(0, q, 90 * n - 30, 90 * n + 60) for n, q in enumerate(quantities)]
    scene = running if closed_s is None else running.after(market.close(closed_s * 1_000_000))
    at_us = NOON_US + 2 * HOUR_US
    straight = [replace(one, position=n + 1) for n, one in enumerate(events)]
    order.shuffle(events)
    shuffled = [replace(one, position=n + 1) for n, one in enumerate(events)]
    whole = scene.after(accrue(*straight, meter="storage", at_us=at_us))
    whole_cpu = scene.after(accrue(*straight, at_us=at_us))
    parts, parts_cpu, facts = scene, scene, []
    bounds = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for first, last in pairwise(bounds):
        command = accrue(*shuffled[first:last], meter="storage", at_us=at_us)
        facts.append(told(parts, command))
        parts = parts.after(command)
        parts_cpu = parts_cpu.after(accrue(*shuffled[first:last], at_us=at_us))
    for meter, one, other in (("storage", whole, parts), ("cpu", whole_cpu, parts_cpu)):
        a, b = usage_of(one, LEASE, meter), usage_of(other, LEASE, meter)
        assert (a.quantity, a.charge_units, a.parts) == (b.quantity, b.charge_units, b.parts)
    for fact in facts:
        assert sum(one.amount.units for one in fact.drawn) == fact.charge_new.units
        assert fact.parts_new.total == fact.charge_new.units
    assert sum(fact.charge_new.units for fact in facts) == facts[-1].charge.units
    counted = usage_of(whole, LEASE, "storage").quantity
    assert counted * 1_000 // 7 == usage_of(whole, LEASE, "storage").charge_units
