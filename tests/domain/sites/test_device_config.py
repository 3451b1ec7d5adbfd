"""Configurations of edge devices: whose name it is, what is required, how revisions follow."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from domain.fleet.reasons import FleetReason
from domain.references import REFERENCE_MAX
from domain.refusal import Refused
from domain.sites.device_config import (
    COMMAND_BYTES_MAX,
    LIST_MAX,
    DeviceConfigSet,
    DeviceEnvironment,
    DeviceMount,
    DeviceWork,
    SetDeviceConfig,
    device_config_stream,
    existing_device_config,
)
from domain.sites.reasons import SitesReason
from ledger.log import codec
from tests.domain.scenes.supply import ALICE, NOON_US, REGION, with_region
from tests.domain.sites.test_sites import store, with_both, with_team

work = DeviceWork(image="counter:1", model="models/counter", command=("python", "run.py"))
first = SetDeviceConfig(
    region_id=REGION, name="counter", revision=1, work=work, by="mem_alice", at_us=NOON_US
)
told = DeviceConfigSet(
    region_id=REGION,
    account_id=ALICE,
    name="counter",
    revision=1,
    work=work,
    by="mem_alice",
    at_us=NOON_US,
)
STREAM = device_config_stream(REGION, "counter")
SECRET = "hf_" + "a" * 24


def test_the_first_revision_takes_the_name_and_the_next_ones_follow_it() -> None:
    """C-35: unique in its region, with revisions."""
    with_region.when(first).then((STREAM, told))
    scene = with_region.after(first)
    scene.when(first).then_nothing()
    other = replace(work, command=("python", "other.py"))
    scene.when(replace(first, work=other)).then_refused(
        SitesReason.SITE_NAME_TAKEN, sort="device_config", name="counter"
    )
    second = replace(first, work=other, revision=2)
    scene.when(second).then((STREAM, replace(told, work=other, revision=2)))
    for revision in (3, 0):
        scene.when(replace(second, revision=revision)).then_refused(
            SitesReason.DEVICE_CONFIG_REVISION, expected=2, revision=revision
        )
    with_region.when(second).then_refused(SitesReason.DEVICE_CONFIG_REVISION, expected=1)
    assert existing_device_config(scene.after(second), REGION, "counter").revision == 2
    with pytest.raises(Refused):
        existing_device_config(scene, REGION, "other")


def test_only_in_a_region_that_is_there() -> None:
    with_region.when(replace(first, region_id="region_9")).then_refused(FleetReason.REGION_UNKNOWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("image", ""),
        ("image", "a b"),
        ("image", f"registry/{SECRET}"),
        ("model", ""),
        ("model", "s3://user:pw@host/model"),
        ("command", ()),
        ("command", ("",)),
        ("command", ("python", "a\0b")),
        ("command", ("python", "x" * COMMAND_BYTES_MAX)),
        ("command", ("python", "--token", SECRET)),
        ("checkpoints", ("s3://ck?X-Amz-Signature=1",)),
        ("checkpoints", ("ck", "ck")),
        ("keys", (SECRET,)),
        ("keys", tuple(f"k{number}" for number in range(LIST_MAX + 1))),
        ("environment", DeviceEnvironment(("1A",), "0a" * 32)),
        ("environment", DeviceEnvironment(("A", "A"), "0a" * 32)),
    ],
)
def test_what_is_wrong_is_refused_by_its_field_and_never_repeated(field: str, value: Any) -> None:
    """C-35: image, model and start command are required."""
    command = replace(first, work=replace(work, **{field: value}))
    with pytest.raises(Refused) as caught:
        with_region.when(command).changes()
    refused = caught.value
    assert (refused.reason, refused.facts["field"]) == (SitesReason.DEVICE_INVALID, field)
    assert SECRET not in str(refused.facts)


def test_a_name_is_a_label() -> None:
    with_region.when(replace(first, name="A B")).then_refused(
        SitesReason.DEVICE_INVALID, field="name"
    )


def test_the_store_is_the_account_s_in_the_region_and_its_path_stays_inside() -> None:
    """C-35, C-36: confined; C-9: the plan team."""
    mount = DeviceMount("datastore_1", "/out")
    mounting = replace(first, work=replace(work, datastore=mount))
    assert len(with_both.when(mounting).changes()) == 1
    with_region.when(mounting).then_refused(SitesReason.PLAN_NEEDED)
    with_team.when(mounting).then_refused(SitesReason.DATASTORE_UNKNOWN)
    away = replace(mounting, work=replace(work, datastore=replace(mount, path="/../x")))
    with_both.when(away).then_refused(SitesReason.PATH_REFUSED, field="datastore.path")
    elsewhere = with_team.given(
        *(
            (stream, replace(fact, region_id="region_9"))
            for stream, fact in ((c.stream, c.fact) for c in with_team.when(store).changes())
        )
    )
    elsewhere.when(mounting).then_refused(SitesReason.DATASTORE_UNKNOWN)


def test_the_largest_configuration_that_is_accepted_fits_into_a_fact() -> None:
    """Quotes are the characters that JSON doubles."""
    each = [f"{number:02d}" for number in range(LIST_MAX)]
    keys = tuple("/".join((one + "k" * 62, "k" * 64, "k" * 64, "k" * 64)) for one in each)
    names = tuple("N" + one + "n" * 97 for one in each)
    largest = DeviceWork(
        image="\U0001f600" * 512,
        model="m" * 401,
        command=('"' * COMMAND_BYTES_MAX,),
        checkpoints=tuple("scheme0123456789://" + one + "c" * 399 for one in each),
        datastore=DeviceMount("datastore_1", "/" + "/".join(["p" * 99] * 4)),
        environment=DeviceEnvironment(names, "0a" * 32),
        keys=keys,
    )
    assert all(len(one) <= REFERENCE_MAX for one in (*largest.checkpoints, *largest.keys))
    assert all(getattr(largest, one.name) for one in fields(largest))
    (change,) = with_both.when(replace(first, work=largest)).changes()
    _, body = codec.encode(change.fact, "c" * 64, "0" * 32)
    assert len(body) < codec.BODY_BYTES_MAX
