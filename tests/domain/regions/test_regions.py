"""Who waits, who administers, where a machine belongs, and what nodes measure of the way there."""

from __future__ import annotations

from typing import Any

import pytest

from domain.calendar import day_of
from domain.duration import DAY_US, HOUR_US
from domain.fleet.growth import (
    OPEN,
    OPENING,
    WAITLISTED,
    GrowthTerms,
    RegionGrowthSet,
    RegionPhaseSet,
    growth_of,
    growth_stream,
)
from domain.fleet.node import NodeRoleSet
from domain.fleet.reasons import FleetReason
from domain.fleet.roles import SetNodeRole
from domain.parties.account import OpenAccount
from domain.parties.reasons import PartiesReason
from domain.regions.administrators import (
    GrantRegionAdmin,
    RegionAdminGranted,
    RegionAdminRevoked,
    RevokeRegionAdmin,
    admins_of,
    admins_stream,
)
from domain.regions.boundaries import (
    Boundary,
    Candidate,
    Place,
    RegionPlaceSet,
    SetRegionPlace,
    choose,
    place_stream,
)
from domain.regions.reachability import (
    BYTES_PER_US_MAX,
    Latency,
    NodeLatencyReported,
    ReportIngressBytes,
    ReportLatency,
    reach_of,
    reach_stream,
)
from domain.regions.wait_list import (
    JoinWaitList,
    LeaveWaitList,
    RegionThresholdReached,
    RegionWaitlistJoined,
    SetWaitListTerms,
    wait_list_of,
    wait_list_stream,
)
from tests.domain.scenes.supply import (
    ALICE,
    NODE,
    NODE_STREAM,
    NOON_US,
    REGION,
    with_active_node,
    with_region,
)

BOB, CAROL = "acct_bob", "acct_carol"
SAID: dict[str, Any] = {"by": "mem", "at_us": NOON_US}


def account(account_id: str) -> OpenAccount:
    return OpenAccount(
        account_id=account_id,
        kind="party",
        opened_by="key_ops",
        owner_member_id=f"mem_{account_id}",
        first_key=None,
        at_us=NOON_US,
    )


with_people = with_region.after(account(BOB)).after(account(CAROL))
waitlisted = with_people.given(
    (
        growth_stream(REGION),
        RegionGrowthSet(region_id=REGION, terms=GrowthTerms(workers_min=2), **SAID),
    ),
    (
        growth_stream(REGION),
        RegionPhaseSet(region_id=REGION, phase=WAITLISTED, cause="hand", **SAID),
    ),
)


def waits(account_id: str, list_id: str = REGION) -> JoinWaitList:
    return JoinWaitList(
        list_id=list_id, account_id=account_id, latitude_e6=None, longitude_e6=None, **SAID
    )


def terms(threshold: int, *, first_user: bool = False) -> SetWaitListTerms:
    return SetWaitListTerms(
        list_id=REGION, threshold=threshold, first_user_administers=first_user, **SAID
    )


# --- wait lists --------------------------------------------------------------------------------


def test_who_waits_is_a_fact_and_the_threshold_lets_nodes_in() -> None:
    scene = waitlisted.after(terms(2)).after(waits(BOB))
    scene.when(waits(BOB)).then_nothing()
    assert growth_of(scene, REGION).phase == WAITLISTED
    joined = RegionWaitlistJoined(
        list_id=REGION, account_id=CAROL, number=2, latitude_e6=None, longitude_e6=None, **SAID
    )
    reached = RegionThresholdReached(list_id=REGION, waiting=2, threshold=2, at_us=NOON_US)
    opening = RegionPhaseSet(region_id=REGION, phase=OPENING, cause="wait_list", **SAID)
    scene.when(waits(CAROL)).then(
        (wait_list_stream(REGION), joined),
        (wait_list_stream(REGION), reached),
        (growth_stream(REGION), opening),
    )
    after = scene.after(waits(CAROL))
    after.when(waits(ALICE)).then_refused(FleetReason.REGION_PHASE, rule="waits")


def test_the_first_user_becomes_the_administrator_and_starts_the_region() -> None:
    scene = waitlisted.after(terms(5, first_user=True)).after(waits(BOB))
    assert admins_of(scene, REGION) == (BOB,)
    assert growth_of(scene, REGION).phase == OPENING


def test_terms_that_are_met_already_count_at_once() -> None:
    scene = waitlisted.after(waits(BOB)).after(terms(1))
    assert growth_of(scene, REGION).phase == OPENING
    left = waitlisted.after(waits(BOB)).after(LeaveWaitList(list_id=REGION, account_id=BOB, **SAID))
    assert wait_list_of(left, REGION).account_ids == ()


def test_a_place_without_a_region_has_a_list_that_starts_nothing() -> None:
    scene = with_people.after(waits(BOB, "place_FR-IDF"))
    assert wait_list_of(scene, "place_FR-IDF").account_ids == (BOB,)
    scene.when(waits(BOB, "place_France")).then_refused(PartiesReason.UNKNOWN_MODE)
    scene.when(waits(BOB, "region_none")).then_refused(FleetReason.REGION_UNKNOWN)
    scene.when(waits("acct_nobody")).then_refused(PartiesReason.ACCOUNT_UNKNOWN)
    scene.when(waits(BOB)).then_refused(FleetReason.REGION_PHASE, rule="waits")
    scene.when(terms(0)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


# --- administrators ----------------------------------------------------------------------------


def test_an_administrator_is_granted_once_and_revoked() -> None:
    grant = GrantRegionAdmin(region_id=REGION, account_id=BOB, **SAID)
    granted = RegionAdminGranted(region_id=REGION, account_id=BOB, cause="hand", **SAID)
    with_people.when(grant).then((admins_stream(REGION), granted))
    scene = with_people.after(grant)
    scene.when(grant).then_nothing()
    revoke = RevokeRegionAdmin(region_id=REGION, account_id=BOB, **SAID)
    revoked = RegionAdminRevoked(region_id=REGION, account_id=BOB, **SAID)
    scene.when(revoke).then((admins_stream(REGION), revoked))
    with_people.when(revoke).then_nothing()
    with_people.when(GrantRegionAdmin(region_id=REGION, account_id=ALICE, **SAID)).then_nothing()


def test_nobody_administers_what_is_not_there() -> None:
    grant = GrantRegionAdmin(region_id="region_none", account_id=BOB, **SAID)
    with_people.when(grant).then_refused(FleetReason.REGION_UNKNOWN)
    nobody = GrantRegionAdmin(region_id=REGION, account_id="acct_nobody", **SAID)
    with_people.when(nobody).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


# --- boundaries --------------------------------------------------------------------------------

BERLIN = Place("DE", "DE-BE", "Berlin", "203.0.113.7")


def candidate(name: str, kind: str, value: str, **more: Any) -> Candidate:
    known = {"phase": OPEN, "workers": 0, "workers_max": None, **more}
    return Candidate(region_id=name, boundaries=(Boundary(kind, value),), **known)


WIDE = candidate("country", "country", "DE")
STATE = candidate("state", "state", "DE-BE")
CITY = candidate("city", "city", "DE-BE/berlin")
NET = candidate("net", "network", "203.0.113.0/24")
NARROW_NET = candidate("narrow", "network", "203.0.113.0/28")
ELSEWHERE = candidate("else", "state", "FR-IDF")


def test_the_narrower_boundary_wins() -> None:
    ladder = [ELSEWHERE, WIDE, STATE, CITY, NET, NARROW_NET]
    for place in range(2, len(ladder) + 1):
        chosen = choose(ladder[:place], BERLIN)
        assert chosen is not None
        assert chosen.region_id == ladder[place - 1].region_id
    assert choose([ELSEWHERE], BERLIN) is None
    assert choose([NET], Place("DE")) is None


def test_a_full_or_closed_region_is_passed_over_and_a_waitlisted_one_comes_last() -> None:
    full = candidate("full", "city", "DE/Berlin", workers=3, workers_max=3)
    waits_ = candidate("waits", "city", "DE/Berlin", phase=WAITLISTED)
    gone = candidate("gone", "city", "DE/Berlin", phase="draining")
    chosen = choose([full, waits_, gone, WIDE], BERLIN)
    assert chosen is WIDE
    assert choose([full, waits_, gone], BERLIN) is waits_
    few = candidate("b", "state", "DE-BE", workers=1)
    many = candidate("a", "state", "DE-BE", workers=2)
    assert choose([many, few], BERLIN) is few


def place(*boundaries: Boundary, **more: Any) -> SetRegionPlace:
    told = {"address": None, "latitude_e6": None, "longitude_e6": None, **more}
    return SetRegionPlace(region_id=REGION, boundaries=boundaries, **told, **SAID)


def test_a_region_says_where_it_is() -> None:
    told = place(Boundary("state", "DE-BE"), latitude_e6=52_520_000, longitude_e6=13_405_000)
    fact = RegionPlaceSet(
        region_id=REGION,
        boundaries=(Boundary("state", "DE-BE"),),
        address=None,
        latitude_e6=52_520_000,
        longitude_e6=13_405_000,
        **SAID,
    )
    with_region.when(told).then((place_stream(REGION), fact))
    with_region.after(told).when(told).then_nothing()


@pytest.mark.parametrize(
    "boundary",
    [
        Boundary("network", "203.0.113.7/24"),
        Boundary("city", "Berlin"),
        Boundary("state", "Berlin"),
        Boundary("country", "de"),
        Boundary("planet", "Earth"),
    ],
)
def test_a_boundary_is_written_as_its_kind_is(boundary: Boundary) -> None:
    with_region.when(place(boundary)).then_refused(PartiesReason.UNKNOWN_MODE)


def test_a_dot_has_two_numbers_on_the_globe_and_an_address_a_port() -> None:
    with_region.when(place(latitude_e6=1)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    with_region.when(place(latitude_e6=90_000_001, longitude_e6=0)).then_refused(
        PartiesReason.COUNT_OUT_OF_RANGE
    )
    with_region.when(place(address="no port")).then_refused(PartiesReason.UNKNOWN_MODE)


# --- reachability ------------------------------------------------------------------------------


def latency(*ways: Latency, at_us: int = NOON_US) -> ReportLatency:
    return ReportLatency(node_id=NODE, ways=ways, at_us=at_us)


def test_latency_is_told_by_the_node_and_recorded_every_five_minutes() -> None:
    way = Latency("control", 18_000, 5)
    fact = NodeLatencyReported(node_id=NODE, region_id=REGION, ways=(way,), at_us=NOON_US)
    with_active_node.when(latency(way)).then((reach_stream(NODE), fact))
    scene = with_active_node.after(latency(way))
    scene.when(latency(way, at_us=NOON_US + 299_000_000)).then_nothing()
    assert len(scene.when(latency(way, at_us=NOON_US + 300_000_000)).changes()) == 1
    with_active_node.when(latency(way, way)).then_refused(PartiesReason.UNKNOWN_MODE)
    with_active_node.when(latency(Latency("control", 0, 5))).then_refused(
        PartiesReason.COUNT_OUT_OF_RANGE
    )


with_ingress = with_active_node.after(
    SetNodeRole(node_id=NODE, role="ingress", ingress_node_id=None, address="in.example:1", **SAID)
)


def through(from_us: int, until_us: int, count: int = 2**30) -> ReportIngressBytes:
    return ReportIngressBytes(
        node_id=NODE,
        from_us=from_us,
        until_us=until_us,
        bytes_in=count,
        bytes_out=1,
        signature="00" * 64,
        at_us=NOON_US,
    )


def test_bytes_are_an_ingress_nodes_and_counted_once_by_day() -> None:
    hour = through(NOON_US - HOUR_US, NOON_US)
    with_active_node.when(hour).then_refused(FleetReason.NODE_ROLE)
    scene = with_ingress.after(hour)
    assert reach_of(scene, NODE).bytes_on(day_of(NOON_US)) == 2**30 + 1
    scene.when(hour).then_nothing()
    scene.when(through(NOON_US - 1, NOON_US)).then_refused(FleetReason.BAD_PERIOD)
    with_ingress.when(through(NOON_US, NOON_US + HOUR_US)).then_refused(FleetReason.BAD_PERIOD)
    midnight = NOON_US - NOON_US % DAY_US
    with_ingress.when(through(midnight - 1, midnight + 1)).then_refused(FleetReason.BAD_PERIOD)
    with_ingress.when(through(NOON_US - 1, NOON_US, BYTES_PER_US_MAX)).then_refused(
        PartiesReason.COUNT_OUT_OF_RANGE
    )


def test_an_ingress_has_an_address_and_nobody_else() -> None:
    bad = SetNodeRole(
        node_id=NODE, role="worker", ingress_node_id=None, address="in.example:1", **SAID
    )
    with_active_node.when(bad).then_refused(FleetReason.NODE_ROLE)
    told = NodeRoleSet(node_id=NODE, role="ingress", address="in.example:1", **SAID)
    assert (NODE_STREAM, told) in with_ingress.past
