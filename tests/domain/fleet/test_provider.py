"""Who offers nodes, and where."""

from __future__ import annotations

from dataclasses import replace

from domain.fleet.provider import (
    CloudAccountChecked,
    CloudRegionTaken,
    OpenRegion,
    RegionNameTaken,
    RegionPolicySet,
    RegisterProvider,
    SetRegionPolicy,
    cloud_region_stream,
    region_name_stream,
    region_of,
)
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.stream import Change, Stream
from tests.domain.scenes.supply import (
    ALICE,
    ALICE_STREAM,
    NOON_US,
    PROVIDER,
    REGION,
    opened,
    region_named,
    region_opened,
    registered,
    with_account,
    with_provider,
    with_region,
)
from tests.given import Scene

REGION_STREAM = Stream("region", REGION)

register = RegisterProvider(
    provider_id=PROVIDER, account_id=ALICE, kind="physical", payment_mode="credits", at_us=NOON_US
)
open_home = OpenRegion(
    region_id=REGION,
    provider_id=PROVIDER,
    name="home",
    storage_mode="local",
    setting="edge",
    admission="operator",
    allow_public_jobs=True,
    at_us=NOON_US,
)
close_doors = SetRegionPolicy(
    region_id=REGION, allow_public_jobs=False, by="mem_alice", at_us=NOON_US + 1
)
doors_closed = RegionPolicySet(
    region_id=REGION,
    allow_public_jobs=False,
    by="mem_alice",
    at_us=NOON_US + 1,
    refused_workloads=("ip_lease",),
    down_ranked_workloads=("large_storage",),
    security_tier=0,
)


def test_an_account_registers_as_a_provider() -> None:
    with_account.when(register).then((Stream("provider", PROVIDER), registered))


def test_registering_twice_is_once_and_never_for_another_account() -> None:
    with_provider.when(replace(register, at_us=NOON_US + 1)).then_nothing()
    with_provider.when(replace(register, kind="gcp")).then_refused(FleetReason.PROVIDER_EXISTS)


def test_a_provider_has_an_account_that_can_earn() -> None:
    Scene().when(register).then_refused(PartiesReason.ACCOUNT_UNKNOWN)
    auditor = Scene().given((ALICE_STREAM, replace(opened, kind="auditor")))
    auditor.when(register).then_refused(PartiesReason.NOT_PERMITTED)


def test_a_provider_is_of_a_known_kind() -> None:
    with_account.when(replace(register, kind="azure")).then_refused(
        FleetReason.PROVIDER_KIND_UNKNOWN
    )


def test_a_provider_is_not_enabled_without_a_payment_mode() -> None:
    """C-2: the mode is in the fact of the registration."""
    for mode in (None, "", "barter"):
        with_account.when(replace(register, payment_mode=mode)).then_refused(
            FleetReason.PAYMENT_MODE_NEEDED
        )
    cash = replace(register, payment_mode="cash")
    with_account.when(cash).then(
        (Stream("provider", PROVIDER), replace(registered, payment_mode="cash"))
    )


def test_a_provider_uses_each_region_of_its_cloud_once() -> None:
    """C-3: one region per cloud region, under whatever name; another provider has its own."""
    clouds = [
        (Stream("provider", name), replace(registered, provider_id=name, kind="gcp"))
        for name in (PROVIDER, "prov_bob")
    ]
    ready = [
        (
            Stream("provider", name),
            CloudAccountChecked(
                provider_id=name,
                project_id="farm-7",
                project_made_on="2022-03-01",
                done=(),
                missing=(),
                by="mem",
                at_us=NOON_US,
            ),
        )
        for name in (PROVIDER, "prov_bob")
    ]
    cloud = with_account.given(*clouds, *ready)
    iowa = replace(open_home, storage_mode="central", cloud_region="us-central1")
    taken = CloudRegionTaken(
        provider_id=PROVIDER, cloud_region="us-central1", region_id=REGION, at_us=NOON_US
    )
    assert Change(cloud_region_stream(PROVIDER, "us-central1"), taken) in cloud.when(iowa).changes()
    scene = cloud.after(iowa)
    scene.when(replace(iowa, at_us=NOON_US + 1)).then_nothing()
    second = replace(iowa, region_id="region_2", name="second")
    scene.when(second).then_refused(FleetReason.CLOUD_REGION, region_id=REGION)
    assert len(scene.when(replace(second, cloud_region="europe-west4")).changes()) == 3
    assert len(scene.when(replace(second, provider_id="prov_bob")).changes()) == 3
    for unfit in ({"cloud_region": None}, {"cloud_region": "US 1"}, {"site": "hall"}):
        cloud.when(replace(iowa, **unfit)).then_refused(FleetReason.CLOUD_REGION, rule="named")
    cloud.when(replace(iowa, cloud_region="us-central9")).then_refused(
        FleetReason.CLOUD_REGION, rule="listed", cloud_region="us-central9"
    )
    cloud.when(replace(iowa, storage_mode="local")).then_refused(
        FleetReason.REGION_NOT_SUITED, what="cloud_region"
    )


def test_machines_of_ones_own_stand_at_a_site_that_may_hold_several_regions() -> None:
    """C-3: more than one region of a site, for different policies."""
    hall = replace(open_home, site="Hall 2")
    scene = with_provider.after(hall)
    second = replace(hall, region_id="region_2", name="private", allow_public_jobs=False)
    both = scene.after(second)
    sites = [region_of(both, name).opened.site for name in (REGION, "region_2")]  # type: ignore[union-attr]
    assert sites == ["Hall 2", "Hall 2"]
    with_provider.when(replace(hall, site="x" * 101)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    with_provider.when(replace(open_home, cloud_region="us-central1")).then_refused(
        FleetReason.CLOUD_REGION, rule="physical"
    )


def test_a_region_opens_under_a_name_of_its_own() -> None:
    with_provider.when(open_home).then(
        (region_name_stream(PROVIDER, "home"), region_named), (REGION_STREAM, region_opened)
    )


def test_opening_the_same_region_twice_is_once() -> None:
    with_region.when(replace(open_home, at_us=NOON_US + 1)).then_nothing()


def test_two_regions_of_a_provider_never_share_a_name_or_an_id() -> None:
    with_region.when(replace(open_home, region_id="region_2")).then_refused(
        FleetReason.REGION_EXISTS
    )
    with_region.when(replace(open_home, name="attic")).then_refused(FleetReason.REGION_EXISTS)


def test_another_provider_may_use_the_name() -> None:
    both = with_region.given(
        (Stream("provider", "prov_bob"), replace(registered, provider_id="prov_bob"))
    )
    both.when(replace(open_home, region_id="region_2", provider_id="prov_bob")).then(
        (
            region_name_stream("prov_bob", "home"),
            RegionNameTaken(
                provider_id="prov_bob", name="home", region_id="region_2", at_us=NOON_US
            ),
        ),
        (
            Stream("region", "region_2"),
            replace(region_opened, region_id="region_2", provider_id="prov_bob"),
        ),
    )


def test_a_region_belongs_to_a_provider() -> None:
    with_account.when(open_home).then_refused(FleetReason.PROVIDER_UNKNOWN)


def test_the_storage_mode_is_local_or_central_and_never_changes() -> None:
    with_provider.when(replace(open_home, storage_mode="cloud")).then_refused(
        FleetReason.STORAGE_MODE_UNKNOWN
    )
    with_region.when(replace(open_home, storage_mode="central")).then_refused(
        FleetReason.REGION_EXISTS
    )


def test_setting_and_admission_are_known_modes() -> None:
    with_provider.when(replace(open_home, setting="moon")).then_refused(
        PartiesReason.UNKNOWN_MODE, setting="moon"
    )
    with_provider.when(replace(open_home, admission="anyone")).then_refused(
        PartiesReason.UNKNOWN_MODE, admission="anyone"
    )


def test_a_region_may_close_its_doors_to_other_peoples_jobs() -> None:
    with_region.when(close_doors).then((REGION_STREAM, doors_closed))
    closed = with_region.after(close_doors)
    assert not region_of(closed, REGION).allow_public_jobs
    closed.when(close_doors).then_nothing()


def test_an_unknown_region_has_no_policy() -> None:
    with_provider.when(close_doors).then_refused(FleetReason.REGION_UNKNOWN)
