"""The first minute of a start is free, and no start of an account that lets them fail for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.lease.close_codes import (
    CANCELLED_BEFORE_START,
    COMPLETED,
    INGRESS_FAILURE,
    RENTER_CLOSED,
    SPEC_MISMATCH,
    START_TIMEOUT,
    UNSTABLE,
)
from domain.lease.free_start import Start, StartFailed, Starts, evolve, free_us, starts_stream
from domain.lease.lease import CloseLease, LeaseClosed, LeaseSettled
from domain.lease.work_commands import EXITED, LOST, LeaseCommandAcknowledged
from domain.leasing.work import AcknowledgeCommand, EndWork
from domain.parties.reasons import PartiesReason
from domain.pools.pool import GANG_TIMEOUT_US
from domain.prices.tariff import FREE_START_US_MAX, MARKETPLACE, FreeStart, TariffPublished, publish
from domain.stream import Stream
from tests.domain.jobs.test_gang import Market, asking
from tests.domain.leasing.test_work import acknowledge
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import HOUR_US, LEASE, NODE, NOON_US, RENTER, settle
from tests.domain.scenes.pools import fleet_of
from tests.given import Scene

S = 1_000_000
RULE = FreeStart(at_most_us=60 * S, failed_per_hour=2)
TARIFF: Stream[Any] = Stream("tariff", "network")


def scene(rule: FreeStart | None = RULE, kind: str = "endpoint") -> Scene:
    """A job of the renter under a tariff with this rule, at noon."""
    return under(rule, market.scene()).after(market.job(kind=kind))


def under(rule: FreeStart | None, on: Scene) -> Scene:
    """The same under a next version of its tariff, with this rule."""
    first = next(fact for _, fact in on.past if isinstance(fact, TariffPublished))
    second = replace(first, version=2, effective_from_us=1, free_start=rule)
    return on.given((TARIFF, second))


def reserved(on: Scene, lease_id: str = LEASE, at_us: int = 0) -> Scene:
    """One more lease of the job, at a moment after noon."""
    at: dict[str, Any] = {"lease_id": lease_id, "at_us": NOON_US + at_us}
    return on.after(replace(market.request(), **at)).after(replace(market.reserve(), **at))


def taken_up(on: Scene, lease_id: str = LEASE, at_us: int = 0) -> AcknowledgeCommand:
    return acknowledge(on, lease_id=lease_id, at_us=NOON_US + at_us)


def ready(on: Scene, at_us: int, lease_id: str = LEASE) -> Scene:
    return on.after(replace(market.ready, lease_id=lease_id, at_us=NOON_US + at_us))


def closed(at_us: int, code: int = RENTER_CLOSED, party: str = "renter", **more: Any) -> CloseLease:
    return replace(market.close(at_us, party, code), **more)


def ended(at_us: int, outcome: str = EXITED, exit_code: int | None = 0) -> EndWork:
    return EndWork(
        lease_id=LEASE,
        node_id=NODE,
        executor="e0" * 8,
        outcome=outcome,
        exit_code=exit_code,
        at_us=NOON_US + at_us,
    )


def failures(on: Scene) -> list[StartFailed]:
    return [fact for _, fact in on.past if isinstance(fact, StartFailed)]


def free_of(on: Scene, lease_id: str, at_us: int) -> int | None:
    """What the node is told when it takes up one more start."""
    on = reserved(on, lease_id, at_us).after(
        taken_up(reserved(on, lease_id, at_us), lease_id, at_us)
    )
    taken = [fact for _, fact in on.past if isinstance(fact, LeaseCommandAcknowledged)]
    return taken[-1].free_us


@pytest.mark.parametrize("rule", [RULE, FreeStart(5 * S, 9), None])
def test_a_node_that_takes_up_a_start_is_told_how_much_of_it_is_free(
    rule: FreeStart | None,
) -> None:
    on = reserved(scene(rule))
    command = taken_up(on)
    told = LeaseCommandAcknowledged(
        lease_id=LEASE,
        node_id=NODE,
        command="start",
        workload_sha256=command.workload_sha256,
        executor=command.executor,
        runner=command.runner,
        at_us=command.at_us,
        free_us=None if rule is None else rule.at_most_us,
    )
    on.when(command).then((Stream("lease", LEASE), told))


def test_a_start_that_is_paid_for_less_than_it_was_free_has_failed() -> None:
    """The attack: a program that computes for 59 s, then answers or ends, again and again."""
    on = reserved(scene())
    on = ready(on.after(taken_up(on)), 59 * S)
    facts = failures(on.after(closed(60 * S)))
    assert facts == [
        StartFailed(
            account_id=RENTER,
            lease_id=LEASE,
            node_id=NODE,
            free_us=59 * S,
            paid_us=S,
            at_us=NOON_US + 60 * S,
        )
    ]
    assert failures(on.after(closed(118 * S))) == [], "as long paid for as it was free"


def test_from_the_third_failed_start_in_an_hour_a_start_is_billed_from_its_first_second() -> None:
    on = scene()
    for number in (1, 2):
        assert free_of(on, f"lease_{number:032x}", number * 100 * S) == 60 * S
        lease_id, at_us = f"lease_{number:032x}", number * 100 * S
        on = reserved(on, lease_id, at_us)
        on = ready(on.after(taken_up(on, lease_id, at_us)), at_us + 60 * S, lease_id)
        on = on.after(closed(at_us + 61 * S, lease_id=lease_id))
    assert len(failures(on)) == 2
    assert free_of(on, "lease_" + "3" * 32, 300 * S) == 0
    first_us = failures(on)[0].at_us - NOON_US
    assert free_of(on, "lease_" + "3" * 32, first_us + HOUR_US - 1) == 0
    assert free_of(on, "lease_" + "3" * 32, first_us + HOUR_US) == 60 * S


def test_a_start_that_the_renter_cancels_counts_only_while_the_node_is_in_time() -> None:
    """The attack of an owner: take the work up, do nothing, and let the renter cancel."""
    on = reserved(scene())
    on = on.after(taken_up(on))
    (fact,) = failures(on.after(closed(60 * S, CANCELLED_BEFORE_START)))
    assert (fact.free_us, fact.paid_us) == (60 * S, 0)
    assert failures(on.after(closed(60 * S + 1, CANCELLED_BEFORE_START))) == []
    assert failures(reserved(scene()).after(closed(9 * S, CANCELLED_BEFORE_START))) == []


@pytest.mark.parametrize(
    ("party", "code"),
    [("provider", SPEC_MISMATCH), ("job", UNSTABLE), ("operator", INGRESS_FAILURE)],
)
@pytest.mark.parametrize("is_ready", [True, False])
def test_what_the_node_or_the_network_ended_never_counts_against_the_renter(
    party: str, code: int, is_ready: bool
) -> None:
    on = reserved(scene())
    on = on.after(taken_up(on))
    on = ready(on, 50 * S) if is_ready else on
    assert failures(on.after(closed(51 * S, code, party))) == []


@pytest.mark.parametrize(
    ("kind", "outcome", "exit_code", "counts"),
    [
        ("batch", EXITED, 0, 0),
        ("batch", EXITED, 1, 1),
        ("batch", "limited", None, 1),
        ("endpoint", EXITED, 0, 1),
        ("notebook", EXITED, 0, 1),
    ],
)
def test_a_command_that_ended_well_was_short_work_and_an_endpoint_never_answered(
    kind: str, outcome: str, exit_code: int | None, counts: int
) -> None:
    on = reserved(scene(kind=kind))
    on = ready(on.after(taken_up(on)), 20 * S).after(ended(21 * S, outcome, exit_code))
    assert len(failures(on.after(closed(21 * S, COMPLETED, "job")))) == counts


def test_a_tariff_without_the_rule_counts_nothing() -> None:
    on = reserved(scene(None))
    on = ready(on.after(taken_up(on)), 59 * S)
    assert failures(on.after(closed(60 * S))) == []


def test_what_the_node_could_not_begin_ends_where_billing_began_and_costs_nothing() -> None:
    on = reserved(scene())
    on = ready(on.after(taken_up(on)), 60 * S).after(ended(90 * S, LOST, None))
    on = on.after(replace(closed(90 * S, UNSTABLE, "job"), closed_at_us=NOON_US + 60 * S))
    late = on.after(settle(HOUR_US * 25, (market.usage(60 * S, 90 * S),)))
    (settled,) = [fact for _, fact in late.past if isinstance(fact, LeaseSettled)]
    assert (settled.charge.units, settled.gpu_us) == (0, 0)
    assert failures(late) == []


def test_what_a_gang_waits_is_unpaid_and_counts_against_nobody() -> None:
    """Why a member's program may not run before its gang is billed: the owner of one member's node
    lets it never be ready, and of ten minutes of each other member nothing is paid.
    """
    on = Market(3)
    on.world = Booked.of(under(RULE, fleet_of(3, 1)))
    on.submit()
    on.start(asking(3))
    *others, _ = on.gang().lease_ids
    for lease_id in others:
        node_id = on.lease(lease_id).reserved.node_id  # type: ignore[union-attr]
        start = acknowledge(Scene().after(market.job(gpus=1)), lease_id=lease_id, node_id=node_id)
        (told,) = on.append(replace(start, at_us=NOON_US))
        assert told.free_us == 60 * S
        on.ready(lease_id, NOON_US + S)
    late_us = NOON_US + GANG_TIMEOUT_US
    late = CloseLease(
        lease_id=others[0], closed_at_us=late_us, party="job", code=START_TIMEOUT, at_us=late_us
    )
    facts = on.append(late)
    unpaid = sum(
        one.closed_at_us - NOON_US
        for one in facts
        if isinstance(one, LeaseClosed) and one.lease_id in others
    )
    assert unpaid == 2 * GANG_TIMEOUT_US
    assert [one.charge.units for one in facts if isinstance(one, LeaseSettled)] == [0, 0, 0]
    assert not any(isinstance(one, StartFailed) for one in facts)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1_200 * S),  # until the next start
            st.integers(0, 600 * S),  # until `ready`, if the node waited so long
            st.integers(0, 120 * S),  # until the renter closes it
        ),
        max_size=60,
    )
)
def test_failed_starts_one_after_the_other_are_free_for_two_minutes_of_any_hour(
    attacks: list[tuple[int, int, int]],
) -> None:
    """unpaid time of failed starts that end in an hour <= failed_per_hour x at_most_us"""
    starts, now_us, free = Starts(), HOUR_US, list[tuple[int, int]]()
    for pause_us, wants_us, paid_us in attacks:
        now_us += pause_us
        told_us = free_us(RULE, starts, now_us)
        assert told_us in (0, RULE.at_most_us)
        ready_us = now_us + min(wants_us, told_us)
        start = Start(
            taken_up_us=now_us,
            free_us=told_us,
            ready_us=ready_us,
            closed_us=ready_us + paid_us,
            paid_us=paid_us,
            code=RENTER_CLOSED,
            is_short_work=False,
        )
        assert start.was_free_us <= told_us
        now_us = start.closed_us
        if start.has_failed:
            free.append((now_us, start.was_free_us))
            fact = StartFailed(
                account_id=RENTER,
                lease_id=LEASE,
                node_id=NODE,
                free_us=start.was_free_us,
                paid_us=paid_us,
                at_us=now_us,
            )
            starts = evolve(starts, fact)
        else:
            assert paid_us >= start.was_free_us
    for end_us, _ in free:
        hour = [us for at_us, us in free if end_us - HOUR_US < at_us <= end_us]
        assert len(hour) <= RULE.failed_per_hour
        assert sum(hour) <= RULE.failed_per_hour * RULE.at_most_us


def test_the_numbers_of_a_free_start_stand_in_the_tariff_and_have_bounds() -> None:
    assert MARKETPLACE.free_start == RULE
    told = publish(MARKETPLACE, version=1, effective_from_us=1, by="op", at_us=1)
    fresh = Scene()
    (after,) = fresh.after(told).state(TARIFF).published
    assert after.free_start == RULE
    for wrong in (
        FreeStart(-1, 2),
        FreeStart(FREE_START_US_MAX + 1, 2),
        FreeStart(1, -1),
        FreeStart(1, 101),
    ):
        fresh.when(replace(told, free_start=wrong)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_failed_starts_are_those_of_one_account() -> None:
    on = reserved(scene())
    on = ready(on.after(taken_up(on)), 59 * S).after(closed(60 * S))
    assert on.state(starts_stream(RENTER)).failed_us == (NOON_US + 60 * S,)
    assert on.state(starts_stream("acct_other")).failed_us == ()
