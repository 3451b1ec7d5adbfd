"""Row R-24: where the data of a name lie, registered, moved and removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.fleet.reasons import FleetReason
from domain.storage.dataset import (
    DatasetPlaced,
    DatasetRemoved,
    PlaceDataset,
    RemoveDataset,
    dataset_of,
    dataset_stream,
)
from domain.storage.reasons import StorageReason
from tests.domain.scenes.supply import ALICE, NOON_US, REGION, with_region

NAME = "s3://corpus/v3"
STREAM = dataset_stream(ALICE, NAME)
place = PlaceDataset(
    dataset_id="dataset_a",
    account_id=ALICE,
    name=NAME,
    region_ids=(REGION,),
    pinned=False,
    by="mem",
    at_us=NOON_US,
)
remove = RemoveDataset(dataset_id="dataset_a", account_id=ALICE, name=NAME, by="mem", at_us=NOON_US)


def placed(command: PlaceDataset, dataset_id: str = "dataset_a") -> DatasetPlaced:
    return DatasetPlaced(
        dataset_id=dataset_id,
        account_id=ALICE,
        name=NAME,
        region_ids=command.region_ids,
        pinned=command.pinned,
        by="mem",
        at_us=NOON_US,
    )


def test_a_dataset_is_placed_once_and_keeps_its_id_when_it_moves() -> None:
    with_region.when(place).then((STREAM, placed(place)))
    scene = with_region.after(place)
    scene.when(replace(place, dataset_id="dataset_b")).then_nothing()
    pinned = replace(place, dataset_id="dataset_b", pinned=True)
    scene.when(pinned).then((STREAM, placed(pinned)))


def test_a_dataset_is_removed_once_and_a_new_one_of_the_name_stays() -> None:
    with_region.when(remove).then_refused(StorageReason.DATASET_UNKNOWN, name=NAME)
    scene = with_region.after(place)
    gone = DatasetRemoved(
        dataset_id="dataset_a", account_id=ALICE, name=NAME, by="mem", at_us=NOON_US
    )
    scene.when(remove).then((STREAM, gone))
    scene = scene.after(remove)
    scene.when(remove).then_nothing()
    again = scene.after(replace(place, dataset_id="dataset_b"))
    again.when(remove).then_nothing()
    assert dataset_of(again, ALICE, NAME).placed == placed(place, "dataset_b")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\n"}, "name"),
        ({"name": "a" * 513}, "name"),
        ({"region_ids": ()}, "region_ids"),
        ({"region_ids": (REGION, REGION)}, "region_ids"),
    ],
)
def test_what_is_no_place_is_refused_with_the_field(changes: dict[str, object], field: str) -> None:
    command = replace(place, **changes)  # type: ignore[arg-type]
    with_region.when(command).then_refused(StorageReason.DATASET_INVALID, field=field, rule=...)


def test_a_place_is_a_region_that_is_there() -> None:
    elsewhere = replace(place, region_ids=("region_gone",))
    with_region.when(elsewhere).then_refused(FleetReason.REGION_UNKNOWN)
