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
from domain.funds.draw import Drawn
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
from domain.money import credit
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.prices.tariff import MeterRate, TariffPublished
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


running = with_meters(market.opened(funds=24 * 2_780_000, balances={f"party:{RENTER}:cash": 10**9}))


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
    assert (fact.drawn, fact.owed) == ((Drawn(RENTER, "cash", credit(144_000)),), credit(0))
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


def test_what_the_balance_does_not_hold_is_owed() -> None:
    poor = running.having({f"party:{RENTER}:cash": 1_000})
    fact = told(poor, accrue(event(1, 14_400)))
    assert (fact.drawn, fact.owed) == ((Drawn(RENTER, "cash", credit(1_000)),), credit(143_000))


def test_a_resource_without_a_price_is_counted_and_costs_nothing() -> None:
    fact = told(running, accrue(event(1, 500), meter="memory"))
    assert (fact.quantity, fact.rate, fact.charge, fact.drawn) == (500, None, credit(0), ())


def test_ones_own_resources_are_not_charged() -> None:
    """As for the accelerator, nobody pays himself; and no fee is due on the rest of the machine."""
    own = with_meters(market.opened(account=OWNER, balances={f"party:{OWNER}:cash": 10**9}))
    fact = told(own, accrue(event(1, 14_400)))
    assert (fact.quantity, fact.charge, fact.rate) == (14_400, credit(0), None)


def test_burned_credits_of_a_burning_lease_are_retired_whole() -> None:
    burning = with_meters(
        market.opened(offer=market.BURN_OFFER, balances={f"party:{RENTER}:burned": 10**9})
    )
    fact = told(burning, accrue(event(1, 14_400)))
    assert fact.parts == Parts(fee=0, provider=0, platform=0, burn=144_000)
    assert fact.drawn == (Drawn(RENTER, "burned", credit(144_000)),)


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
    client = with_meters(
        market.scene({f"party:{RENTER}:cash": 10**9})
        .after(market.job(client_id=CLIENT))
        .after(market.request(funds=10**7))
        .after(market.reserve())
        .after(market.ready)
    )
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


def test_a_provider_cannot_earn_against_a_debt_that_nobody_pays() -> None:
    """What is beyond the renter's credits and a debt of one credit does not count."""
    dear = with_meters(market.opened(), (MeterRate("cpu", credit(600_000), 1),))
    poor = dear.having({f"party:{RENTER}:cash": 0})
    fact = told(poor, accrue(event(1, 1, 0, 60), event(2, 1, 60, 120)))
    assert (fact.charge_new, fact.owed) == (credit(600_000), credit(600_000))
    assert [(one.position, one.rule) for one in fact.refused] == [(2, "unfunded")]
    deep = poor.having({f"party:{RENTER}:owed": 1_000_000})
    assert told(deep, accrue(event(1, 1, 0, 60))).charge_new == credit(0)


def test_no_meter_charges_more_than_there_can_be() -> None:
    dear = with_meters(market.opened(), (MeterRate("cpu", credit(CHARGE_UNITS_MAX), 1),))
    dear = dear.having({f"party:{RENTER}:cash": CHARGE_UNITS_MAX})
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
        assert (
            sum(one.amount.units for one in fact.drawn) + fact.owed.units == fact.charge_new.units
        )
        assert fact.parts_new.total == fact.charge_new.units
    assert sum(fact.charge_new.units for fact in facts) == facts[-1].charge.units
    counted = usage_of(whole, LEASE, "storage").quantity
    assert counted * 1_000 // 7 == usage_of(whole, LEASE, "storage").charge_units
