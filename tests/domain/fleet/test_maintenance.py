"""Maintenance is told ahead, keeps new leases away, and excuses what it announced and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import DAY_US
from domain.fleet.maintenance import (
    AHEAD_US_MAX,
    LENGTH_US_MAX,
    CancelMaintenance,
    MaintenanceScheduled,
    ScheduleMaintenance,
    announced_us,
    kept_until_us,
    maintenance_of,
    stream_of,
    window_within,
)
from domain.fleet.node import (
    SPEC_CONFIRM_US,
    ActivateNode,
    NodeDrainStarted,
    NodeSpecConfirmed,
    ReportSpecs,
    StartMaintenance,
    node_of,
)
from domain.fleet.reasons import FleetReason
from domain.lease.close_codes import DECOMMISSION, UNREACHABLE
from domain.lease.lease import (
    DEGRADED_AFTER_US,
    DEGRADED_LIMIT_US,
    CloseLease,
    LeaseReserved,
    lease_of,
)
from domain.lease.turns import DegradeLease, ReclaimStarted, RecoverLease
from domain.leasing.drain import DrainNode
from domain.leasing.due import unreachable_us
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from tests.domain.scenes import market, supply
from tests.domain.scenes.supply import NODE, NODE_STREAM, NOON_US
from tests.given import Scene

HOUR_US = 3_600_000_000
PLANNED = ScheduleMaintenance(
    maintenance_id="maint_1",
    node_id=NODE,
    kind="planned",
    from_us=NOON_US + DAY_US,
    until_us=NOON_US + DAY_US + 2 * HOUR_US,
    keep_leases=True,
    by="mem_alice",
    at_us=NOON_US,
)
CANCEL = CancelMaintenance(
    maintenance_id="maint_1", node_id=NODE, by="mem_alice", at_us=NOON_US + HOUR_US
)
ACTIVE = supply.with_active_node


def test_the_status_follows_from_the_time() -> None:
    scene = ACTIVE.after(PLANNED)
    (window,) = maintenance_of(scene, NODE).windows
    times = (PLANNED.from_us - 1, PLANNED.from_us, PLANNED.until_us - 1, PLANNED.until_us)
    assert [window.status(at) for at in times] == ["scheduled", "running", "running", "over"]
    (window,) = maintenance_of(scene.after(CANCEL), NODE).windows
    assert window.status(CANCEL.at_us) == window.status(PLANNED.until_us) == "cancelled"
    assert window.status(CANCEL.at_us - 1) == "scheduled"


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"until_us": PLANNED.from_us}, "length"),
        ({"until_us": PLANNED.from_us + LENGTH_US_MAX + 1}, "length"),
        ({"from_us": NOON_US - 1, "until_us": NOON_US + HOUR_US}, "not_past"),
        ({"from_us": NOON_US + AHEAD_US_MAX + 1, "until_us": NOON_US + AHEAD_US_MAX + 2}, "ahead"),
    ],
)
def test_a_window_too_long_too_far_or_past_is_refused(wrong: dict[str, Any], rule: str) -> None:
    ACTIVE.when(replace(PLANNED, **wrong)).then_refused(FleetReason.MAINTENANCE_WINDOW, rule=rule)


def test_the_longest_and_the_furthest_are_accepted() -> None:
    far = NOON_US + AHEAD_US_MAX
    command = replace(PLANNED, from_us=far, until_us=far + LENGTH_US_MAX)
    (change,) = ACTIVE.when(command).changes()
    assert change.stream == stream_of(NODE)
    assert isinstance(change.fact, MaintenanceScheduled)
    ACTIVE.after(PLANNED).when(PLANNED).then_nothing()
    ACTIVE.when(replace(PLANNED, kind="holiday")).then_refused(PartiesReason.UNKNOWN_MODE)
    supply.with_confirmed_node.when(PLANNED).then_refused(FleetReason.NODE_STATE)


def test_calling_off_ends_it_and_what_is_over_stays() -> None:
    scene = ACTIVE.after(PLANNED)
    scene.after(CANCEL).when(CANCEL).then_nothing()
    scene.when(replace(CANCEL, at_us=PLANNED.until_us)).then_refused(FleetReason.MAINTENANCE_WINDOW)
    unknown = replace(CANCEL, maintenance_id="maint_9")
    scene.when(unknown).then_refused(FleetReason.MAINTENANCE_UNKNOWN)


def test_a_term_that_reaches_into_a_window_meets_it_and_one_that_ends_before_does_not() -> None:
    scene = ACTIVE.after(PLANNED)
    assert window_within(scene, NODE, NOON_US, PLANNED.from_us) is None
    assert window_within(scene, NODE, NOON_US, PLANNED.from_us + 1) is not None
    assert window_within(scene, NODE, PLANNED.until_us, PLANNED.until_us + 1) is None
    cancelled = scene.after(CANCEL)
    assert window_within(cancelled, NODE, NOON_US, PLANNED.until_us) is None


def test_silence_is_kept_for_the_announced_length_only_where_leases_are_kept() -> None:
    scene = ACTIVE.after(PLANNED)
    assert kept_until_us(scene, NODE, PLANNED.from_us - 1) is None
    assert kept_until_us(scene, NODE, PLANNED.from_us) == PLANNED.until_us
    assert kept_until_us(scene, NODE, PLANNED.until_us) is None
    plain = ACTIVE.after(replace(PLANNED, keep_leases=False))
    assert kept_until_us(plain, NODE, PLANNED.from_us) is None


def test_what_was_not_announced_before_it_began_excuses_nothing() -> None:
    span = (NOON_US, NOON_US + 30 * DAY_US)
    assert announced_us(ACTIVE.after(PLANNED), NODE, *span) == 2 * HOUR_US
    sudden = replace(PLANNED, from_us=NOON_US, until_us=NOON_US + HOUR_US)
    assert announced_us(ACTIVE.after(sudden), NODE, *span) == 0
    emergency = replace(PLANNED, kind="emergency")
    assert announced_us(ACTIVE.after(emergency), NODE, *span) == 0
    early = replace(CANCEL, at_us=PLANNED.from_us + HOUR_US)
    assert announced_us(ACTIVE.after(PLANNED).after(early), NODE, *span) == HOUR_US


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, 200)), max_size=8))
def test_time_that_two_windows_share_is_excused_once(windows: list[tuple[int, int]]) -> None:
    scene = ACTIVE
    covered: set[int] = set()
    for number, (start, length) in enumerate(windows):
        from_us = NOON_US + start
        told = replace(
            PLANNED, maintenance_id=f"maint_{number}", from_us=from_us, until_us=from_us + length
        )
        scene = scene.after(told)
        covered |= set(range(from_us, from_us + length))
    inside = {at for at in covered if NOON_US + 100 <= at < NOON_US + 400}
    assert announced_us(scene, NODE, NOON_US + 100, NOON_US + 400) == len(inside)


# --- drains ----------------------------------------------------------------------------------

DRAIN = DrainNode(node_id=NODE, keep_leases=True, by="mem_alice", at_us=NOON_US)


def test_a_draining_node_takes_no_lease_and_comes_back_when_it_is_activated() -> None:
    scene = ACTIVE.after(DRAIN)
    state = node_of(scene, NODE)
    assert (state.phase, state.is_matchable, state.is_admitted) == ("draining", False, True)
    scene.when(DRAIN).then_nothing()
    active = scene.after(ActivateNode(node_id=NODE, by="mem_alice", at_us=NOON_US))
    assert node_of(active, NODE).is_matchable
    worked_on = scene.after(StartMaintenance(node_id=NODE, by="mem_alice", at_us=NOON_US))
    assert node_of(worked_on, NODE).phase == "maintenance"
    supply.with_confirmed_node.when(DRAIN).then_refused(FleetReason.NODE_STATE)


WINDOW_US = 2 * HOUR_US


def _running(window_us: int | None) -> Scene:
    """A lease that runs on the market's node, with this reclaim window."""
    told = market.opened()
    past = tuple(
        (stream, replace(fact, reclaim_window_us=window_us))
        if isinstance(fact, LeaseReserved)
        else (stream, fact)
        for stream, fact in told.past
    )
    return replace(told, past=past)


def test_v_8_a_drain_reclaims_leases_that_were_quoted_a_window_and_no_other() -> None:
    drain = DrainNode(node_id=market.NODE, keep_leases=False, by="o", at_us=market.NOON_US)
    drained, reclaimed = _running(WINDOW_US).when(drain).changes()
    assert isinstance(drained.fact, NodeDrainStarted)
    assert isinstance(reclaimed.fact, ReclaimStarted)
    assert reclaimed.fact.deadline_us == market.NOON_US + WINDOW_US
    assert reclaimed.fact.code == DECOMMISSION
    for kept in (
        _running(None).when(drain),
        _running(WINDOW_US).when(replace(drain, keep_leases=True)),
    ):
        assert [type(one.fact) for one in kept.changes()] == [NodeDrainStarted]


@pytest.mark.parametrize(("is_kept", "closes_us"), [(True, 2 * HOUR_US), (False, 0)])
def test_v_8_a_kept_lease_falls_silent_and_comes_back_within_the_announced_time(
    is_kept: bool, closes_us: int
) -> None:
    """Silent from the start of a maintenance of two hours: the limit counts from its end."""
    at_us = market.NOON_US + HOUR_US
    planned = replace(
        PLANNED,
        node_id=market.NODE,
        from_us=at_us,
        until_us=at_us + 2 * HOUR_US,
        keep_leases=is_kept,
        at_us=market.NOON_US,
    )
    degrade = DegradeLease(
        lease_id=market.LEASE,
        since_us=at_us,
        lane=1,
        usage_position=1,
        at_us=at_us + DEGRADED_AFTER_US,
    )
    scene = market.opened(term_us=20 * HOUR_US).after(planned).after(degrade)
    lease = lease_of(scene, market.LEASE)
    assert lease.status == "degraded"
    assert unreachable_us(lease) == at_us + closes_us + DEGRADED_LIMIT_US
    back_us = at_us + 2 * HOUR_US
    close = CloseLease(
        lease_id=market.LEASE,
        closed_at_us=at_us + DEGRADED_LIMIT_US,
        party="job",
        code=UNREACHABLE,
        at_us=at_us + DEGRADED_LIMIT_US,
    )
    if not is_kept:
        assert lease_of(scene.after(close), market.LEASE).closed is not None
        return
    with pytest.raises(Refused):
        scene.when(close).changes()
    recover = RecoverLease(lease_id=market.LEASE, healthy_us=back_us, at_us=back_us)
    assert lease_of(scene.after(recover), market.LEASE).status == "active"


# --- freshness -------------------------------------------------------------------------------


def test_the_same_inventory_told_again_is_fresh_and_not_every_call_is_recorded() -> None:
    told = ReportSpecs(node_id=NODE, devices=supply.specs.devices, host=supply.HOST, at_us=NOON_US)
    ACTIVE.when(replace(told, at_us=NOON_US + SPEC_CONFIRM_US - 1)).then_nothing()
    later = replace(told, at_us=NOON_US + SPEC_CONFIRM_US)
    ACTIVE.when(later).then((NODE_STREAM, NodeSpecConfirmed(node_id=NODE, at_us=later.at_us)))
    assert node_of(ACTIVE, NODE).specs_at_us == NOON_US
    assert node_of(ACTIVE.after(later), NODE).specs_at_us == later.at_us
