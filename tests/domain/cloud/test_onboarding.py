"""The checklist of a cloud provider: what is required, and what opens the first region."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.cloud.onboarding import STEP_NAMES, STEPS, CheckCloudAccount, required_of
from domain.cloud.reasons import CloudReason
from domain.fleet.cloud_regions import LISTS, regions_on
from domain.fleet.provider import CloudAccountChecked, OpenRegion, RegionOpened, provider_stream
from domain.fleet.reasons import FleetReason
from domain.stream import Stream
from tests.domain.scenes.supply import NOON_US, PROVIDER, registered, with_account

cloud = with_account.given((Stream("provider", PROVIDER), replace(registered, kind="gcp")))
required = tuple(step.name for step in STEPS if step.is_required)
check = CheckCloudAccount(
    provider_id=PROVIDER,
    project_id="render-farm-7",
    project_made_on="2022-03-01",
    done=tuple(name for name in required if name != "token_creator"),
    by="mem_alice",
    at_us=NOON_US,
)
opening = OpenRegion(
    region_id="region_1",
    provider_id=PROVIDER,
    name="iowa",
    storage_mode="central",
    setting="datacenter",
    admission="operator",
    allow_public_jobs=True,
    at_us=NOON_US,
    cloud_region="us-central1",
)


def test_the_checklist_is_that_of_the_row() -> None:
    optional = [step.name for step in STEPS if not step.is_required]
    assert optional == ["api_billing", "role_billing_viewer"]
    assert len(STEPS) == 13


@pytest.mark.parametrize(
    ("made_on", "is_asked"), [("2021-04-07", True), ("2021-04-08", False), ("2019-01-01", True)]
)
def test_the_token_creator_is_asked_of_projects_made_before_8_april_2021(
    made_on: str, is_asked: bool
) -> None:
    assert ("token_creator" in required_of(made_on)) is is_asked
    (change,) = cloud.when(replace(check, project_made_on=made_on)).changes()
    assert isinstance(change.fact, CloudAccountChecked)
    assert change.fact.missing == (("token_creator",) if is_asked else ())


def test_no_region_opens_before_every_required_step_is_done() -> None:
    cloud.when(opening).then_refused(FleetReason.PROVIDER_NOT_READY, missing="the whole checklist")
    for name in check.done:
        without = replace(check, done=tuple(one for one in check.done if one != name))
        cloud.after(without).when(opening).then_refused(
            FleetReason.PROVIDER_NOT_READY, missing=name
        )
    ready = cloud.after(check)
    assert any(isinstance(one.fact, RegionOpened) for one in ready.when(opening).changes())
    # A step that is taken back stops the next region.
    back = ready.after(replace(check, done=()))
    back.when(opening).then_refused(FleetReason.PROVIDER_NOT_READY)


def test_the_same_list_again_changes_nothing_and_its_order_does_not_matter() -> None:
    ready = cloud.after(check)
    again = replace(check, done=tuple(reversed(check.done)), at_us=NOON_US + 5)
    ready.when(again).then_nothing()


def test_a_checklist_is_told_as_it_can_be() -> None:
    for wrong, field in (
        (replace(check, project_id="x"), "project_id"),
        (replace(check, project_id="Farm-7-render"), "project_id"),
        (replace(check, project_made_on="2022-02-30"), "project_made_on"),
        (replace(check, project_made_on="2030-01-01"), "project_made_on"),
        (replace(check, done=("root",)), "done"),
        (replace(check, done=("project", "project")), "done"),
    ):
        cloud.when(wrong).then_refused(CloudReason.CHECKLIST_INVALID, field=field)
    assert set(check.done) < set(STEP_NAMES)


def test_machines_of_ones_own_have_no_checklist_and_need_none() -> None:
    own = with_account.given((provider_stream(PROVIDER), registered))
    own.when(check).then_refused(CloudReason.NOT_A_CLOUD_PROVIDER)
    assert own.when(replace(opening, cloud_region=None)).changes()


def test_there_are_ten_regions_each_once_and_the_list_has_its_day() -> None:
    found = regions_on("2026-11-20")
    names = [one.name for one in found.regions if one.cloud == "gcp"]
    assert len(names) == len(set(names)) == 10
    assert regions_on("1999-01-01") is LISTS[0]
