"""Stores and reserved ports: who may have them, whose name is whose, who holds a port."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.fleet.reasons import FleetReason
from domain.hardware.constraints import Constraints
from domain.jobs.job import JobSubmitted
from domain.lease.lease import LeaseReserved
from domain.leasing.accrual import _reservation_released
from domain.parties.plan import AccountPlanSet, SetAccountPlan, has_plan, plan_stream
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.sites.attached import Attached, Mount, require_attached
from domain.sites.datastore import (
    AddDatastore,
    DatastoreAdded,
    RemoveDatastore,
    advice_of,
    datastore_stream,
)
from domain.sites.names import SiteNameTaken, name_stream
from domain.sites.reasons import SitesReason
from domain.sites.reservation import (
    AddReservation,
    RemoveReservation,
    ReservationHeld,
    ReservationReleased,
    hold,
    release,
    reservation_stream,
)
from domain.stream import Stream
from tests.domain.scenes.supply import ALICE, NOON_US, REGION, with_region
from tests.given import Scene
from tests.scenes.samples import sample

team = SetAccountPlan(account_id=ALICE, plan="team", by="op", at_us=NOON_US)
with_team = with_region.after(team)
store = AddDatastore(
    datastore_id="datastore_1",
    region_id=REGION,
    name="renders",
    kind="nfs",
    address="10.0.0.5",
    root_path="/dir2",
    has_login=False,
    machines=1,
    by="mem_alice",
    at_us=NOON_US,
)
port = AddReservation(
    reservation_id="reservation_1",
    region_id=REGION,
    name="viewer",
    kind="port",
    host_name="viewer",
    port=8_888,
    machines=1,
    by="mem_alice",
    at_us=NOON_US,
)
PORT = reservation_stream("reservation_1")
with_both = with_team.after(store).after(port)


def test_plans_follow_each_other_and_an_account_begins_with_the_first() -> None:
    assert not has_plan(with_region, ALICE, "team")
    fact = AccountPlanSet(account_id=ALICE, plan="team", by="op", at_us=NOON_US)
    with_region.when(team).then((plan_stream(ALICE), fact))
    with_team.when(team).then_nothing()
    assert has_plan(with_region.after(replace(team, plan="enterprise")), ALICE, "team")
    with_region.when(replace(team, plan="gold")).then_refused(PartiesReason.UNKNOWN_MODE)
    with_region.when(replace(team, account_id="acct_x")).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_stores_and_ports_need_the_plan_team_and_a_machine() -> None:
    for command in (store, port):
        with_region.when(command).then_refused(SitesReason.PLAN_NEEDED, needed="team")
        with_team.when(replace(command, machines=0)).then_refused(SitesReason.REGION_EMPTY)
        with_team.when(replace(command, region_id="region_9")).then_refused(
            FleetReason.REGION_UNKNOWN
        )
        assert with_team.when(command).changes()


def test_a_store_is_recorded_with_its_name_and_without_a_login() -> None:
    taken = SiteNameTaken(
        region_id=REGION, sort="datastore", name="renders", holder="datastore_1", at_us=NOON_US
    )
    added = DatastoreAdded(
        datastore_id="datastore_1",
        region_id=REGION,
        account_id=ALICE,
        name="renders",
        kind="nfs",
        address="10.0.0.5",
        root_path="/dir2",
        has_login=False,
        by="mem_alice",
        at_us=NOON_US,
    )
    with_team.when(store).then(
        (name_stream(REGION, "datastore", "renders"), taken),
        (datastore_stream("datastore_1"), added),
    )
    with_both.when(store).then_nothing()


def test_names_are_unique_in_their_region_until_what_has_them_is_removed() -> None:
    second = replace(store, datastore_id="datastore_2")
    with_both.when(second).then_refused(SitesReason.SITE_NAME_TAKEN, sort="datastore")
    remove = RemoveDatastore(datastore_id="datastore_1", by="m", at_us=NOON_US)
    gone = with_both.after(remove)
    assert gone.when(second).changes()
    gone.when(remove).then_nothing()
    other = replace(port, reservation_id="reservation_2")
    with_both.when(other).then_refused(SitesReason.SITE_NAME_TAKEN, sort="reservation")
    with_both.when(replace(other, name="second")).then_refused(
        SitesReason.SITE_NAME_TAKEN, sort="endpoint", name="viewer:8888"
    )
    assert with_both.when(replace(other, name="second", port=8_889)).changes()
    removal = RemoveReservation(reservation_id="reservation_1", by="m", at_us=NOON_US)
    assert with_both.after(removal).when(other).changes()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (replace(store, name="Renders!"), "name"),
        (replace(store, kind="ftp"), "kind"),
        (replace(store, address="user@host"), "address"),
        (replace(store, address="host/share"), "address"),
        (replace(store, has_login=True), "user"),
        (replace(store, kind="smb"), "user"),
    ],
)
def test_a_store_is_told_as_it_can_be(wrong: AddDatastore, field: str) -> None:
    with_team.when(wrong).then_refused(SitesReason.DATASTORE_INVALID, field=field)


def test_a_root_is_a_path_and_a_port_is_one() -> None:
    with_team.when(replace(store, root_path="/a/../b")).then_refused(
        SitesReason.PATH_REFUSED, field="root_path"
    )
    for wrong, field in (
        (replace(port, port=0), "port"),
        (replace(port, port=65_536), "port"),
        (replace(port, host_name="a.local"), "host_name"),
        (replace(port, kind="gpu"), "kind"),
        (replace(port, name=""), "name"),
    ):
        with_team.when(wrong).then_refused(SitesReason.RESERVATION_INVALID, field=field)


def test_one_lease_at_a_time_holds_a_port_and_it_is_handed_on() -> None:
    (held,) = hold(with_both, "reservation_1", "lease_1", "node_1", NOON_US)
    fact = ReservationHeld(
        reservation_id="reservation_1", lease_id="lease_1", node_id="node_1", at_us=NOON_US
    )
    assert (held.stream, held.fact) == (PORT, fact)
    holding = with_both.given((PORT, fact))
    with pytest.raises(Refused) as refused:
        hold(holding, "reservation_1", "lease_2", "node_2", NOON_US)
    assert refused.value.reason is SitesReason.RESERVATION_HELD
    holding.when(RemoveReservation(reservation_id="reservation_1", by="m", at_us=NOON_US))
    assert release(holding, "reservation_1", "lease_2", NOON_US) == []
    (released,) = release(holding, "reservation_1", "lease_1", NOON_US)
    assert isinstance(released.fact, ReservationReleased)
    free = holding.given((PORT, released.fact))
    assert hold(free, "reservation_1", "lease_2", "node_2", NOON_US)
    assert free.state(PORT).added.host_name == "viewer", "the name is the same on another machine"


def test_a_lease_that_is_over_hands_on_the_port_of_its_job() -> None:
    held = ReservationHeld(
        reservation_id="reservation_1", lease_id="lease_1", node_id="node_1", at_us=NOON_US
    )
    told = replace(sample(JobSubmitted), job_id="job_1")
    lease = replace(sample(LeaseReserved), job_id="job_1", lease_id="lease_1")
    for attached, released in (
        (None, []),
        (Attached(mounts=(MOUNT,)), []),
        (BOTH, [ReservationReleased(reservation_id="reservation_1", lease_id="lease_1", at_us=7)]),
    ):
        scene = with_both.given(
            (PORT, held), (Stream("job", "job_1"), replace(told, attached=attached))
        )
        assert [one.fact for one in _reservation_released(lease, 7, scene)] == released
    assert _reservation_released(replace(lease, job_id="job_2"), 7, with_both) == []


def test_a_port_that_is_held_is_not_removed() -> None:
    (held,) = hold(with_both, "reservation_1", "lease_1", "node_1", NOON_US)
    holding = with_both.given((PORT, held.fact))
    holding.when(
        RemoveReservation(reservation_id="reservation_1", by="m", at_us=NOON_US)
    ).then_refused(SitesReason.RESERVATION_HELD, lease_id="lease_1")


MOUNT = Mount("datastore_1", "/subdir2", "input")
PINNED = Constraints(pinned_region=REGION)
BOTH = Attached(mounts=(MOUNT,), reservation_id="reservation_1")


def _refusal(
    scene: Scene, account_id: str, attached: Attached | None, asked: Constraints
) -> SitesReason:
    with pytest.raises(Refused) as refused:
        require_attached(scene, account_id, attached, asked)
    reason = refused.value.reason
    assert isinstance(reason, SitesReason)
    return reason


def test_what_a_job_is_attached_to_is_its_owner_s_of_one_region_and_pins_it_there() -> None:
    require_attached(with_both, ALICE, BOTH, PINNED)
    require_attached(with_both, ALICE, None, Constraints())
    elsewhere = SitesReason.ATTACHED_ELSEWHERE
    assert _refusal(with_both, ALICE, BOTH, Constraints()) is elsewhere
    assert _refusal(with_both, ALICE, None, PINNED) is elsewhere, "nobody pins a job by hand"
    assert _refusal(with_both, ALICE, BOTH, Constraints(pinned_region="region_9")) is elsewhere
    far = replace(PINNED, regions=("region_9",))
    assert _refusal(with_both, ALICE, BOTH, far) is elsewhere
    require_attached(with_both, ALICE, BOTH, replace(PINNED, regions=(REGION, "region_9")))


def test_another_account_s_stores_and_ports_are_none_and_a_lower_plan_attaches_nothing() -> None:
    port_alone = Attached(reservation_id="reservation_1")
    assert _refusal(with_both, "acct_bob", BOTH, PINNED) is SitesReason.DATASTORE_UNKNOWN
    assert _refusal(with_both, "acct_bob", port_alone, PINNED) is SitesReason.RESERVATION_UNKNOWN
    lower = with_both.after(replace(team, plan="individual"))
    assert _refusal(lower, ALICE, BOTH, PINNED) is SitesReason.PLAN_NEEDED
    removed = with_both.after(RemoveDatastore(datastore_id="datastore_1", by="m", at_us=NOON_US))
    assert _refusal(removed, ALICE, BOTH, PINNED) is SitesReason.DATASTORE_UNKNOWN


def test_mounts_are_few_each_once_for_a_use_that_there_is() -> None:
    twice = Attached(mounts=(MOUNT, MOUNT))
    assert _refusal(with_both, ALICE, twice, PINNED) is SitesReason.DATASTORE_INVALID
    for wrong, reason in (
        (replace(MOUNT, use="boot"), SitesReason.DATASTORE_INVALID),
        (replace(MOUNT, path="/../dir1"), SitesReason.PATH_REFUSED),
    ):
        assert _refusal(with_both, ALICE, Attached(mounts=(wrong,)), PINNED) is reason


def test_the_owner_of_an_nfs_server_is_advised() -> None:
    squash, ids = advice_of("nfs")
    assert "root_squash" in squash
    assert "anonuid" in ids
    assert "anongid" in ids
    assert advice_of("smb") == ()
