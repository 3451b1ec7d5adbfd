"""Datasets: under the name that jobs refer to them by, the regions where their data lie.

    a job's reference of the kind dataset resolves to the dataset of its account with that name

A name that is registered nowhere stays a name: it ranks nothing and refuses nothing. Where a place
is known, the matcher counts it (`domain/market/need.py`): nodes in a region of the data come first
among equals, and where the data are pinned nodes elsewhere are refused. The data themselves are
not held here; what of them moves is metered by transfers of leases. Row R-24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.fleet.provider import existing_region
from domain.frozen import replace
from domain.parties.account import open_account
from domain.paths import PATH_BYTES_MAX
from domain.refusal import Refused
from domain.storage.reasons import StorageReason
from domain.stream import Change, Stream, World

# Facts. Stream `dataset:{account_id}/{name}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPlaced:
    """Where its data lie from now on: registered, or moved."""

    dataset_id: str
    account_id: str
    name: str  # as the references of jobs have it
    region_ids: tuple[str, ...]
    pinned: bool  # jobs that refer to it run only there
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRemoved:
    """The name has no place any more; the data are wherever they are."""

    dataset_id: str
    account_id: str
    name: str
    by: str
    at_us: int


Fact: TypeAlias = DatasetPlaced | DatasetRemoved

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceDataset:
    """`dataset_id`: that of a new one; one that is there keeps its own."""

    dataset_id: str
    account_id: str
    name: str
    region_ids: tuple[str, ...]
    pinned: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDataset:
    dataset_id: str
    account_id: str
    name: str
    by: str
    at_us: int


REGIONS_MAX = 32

# What is remembered.


@dataclass(frozen=True, slots=True)
class Dataset:
    """One name of one account; `placed` is None where it has no place."""

    placed: DatasetPlaced | None = None
    was_placed: bool = False


def evolve(state: Dataset, fact: Fact) -> Dataset:
    """The dataset after one more fact."""
    match fact:
        case DatasetPlaced():
            return Dataset(fact, was_placed=True)
        case DatasetRemoved():
            return replace(state, placed=None)
        case _:
            assert_never(fact)


def dataset_stream(account_id: str, name: str) -> Stream[Dataset]:
    return Stream("dataset", f"{account_id}/{name}")


def dataset_of(world: World, account_id: str, name: str) -> Dataset:
    return world.state(dataset_stream(account_id, name))


def placed_of(world: World, account_id: str, names: Iterable[str]) -> tuple[DatasetPlaced, ...]:
    """Those of an account's references to datasets that have a place."""
    found = (dataset_of(world, account_id, name).placed for name in names)
    return tuple(one for one in found if one is not None)


# How we decide.


def decide_place(command: PlaceDataset, world: World) -> list[Change]:
    """Register a dataset, or move it. The same places again change nothing.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, DATASET_INVALID, REGION_UNKNOWN.
    """
    open_account(world, command.account_id)
    broken = _broken(command)
    if broken is not None:
        raise Refused(StorageReason.DATASET_INVALID, field=broken[0], rule=broken[1])
    for region_id in command.region_ids:
        existing_region(world, region_id)
    present = dataset_of(world, command.account_id, command.name).placed
    placed = DatasetPlaced(
        dataset_id=command.dataset_id if present is None else present.dataset_id,
        account_id=command.account_id,
        name=command.name,
        region_ids=tuple(sorted(command.region_ids)),
        pinned=command.pinned,
        by=command.by,
        at_us=command.at_us,
    )
    if present is not None and replace(placed, by=present.by, at_us=present.at_us) == present:
        return []
    return [Change(dataset_stream(command.account_id, command.name), placed)]


def _broken(command: PlaceDataset) -> tuple[str, str] | None:
    if not 1 <= len(command.name) <= PATH_BYTES_MAX // 2 or not command.name.isprintable():
        return "name", "from 1 to 512 printable characters, as jobs refer to it"
    if not 1 <= len(command.region_ids) <= REGIONS_MAX:
        return "region_ids", f"from 1 to {REGIONS_MAX} regions"
    if len(set(command.region_ids)) != len(command.region_ids):
        return "region_ids", "each region once"
    return None


def decide_remove(command: RemoveDataset, world: World) -> list[Change]:
    """Twice is once; one that was placed anew under the same name stays.

    Raises Refused: DATASET_UNKNOWN.
    """
    state = dataset_of(world, command.account_id, command.name)
    placed = state.placed
    if not state.was_placed:
        raise Refused(StorageReason.DATASET_UNKNOWN, name=command.name)
    if placed is None or placed.dataset_id != command.dataset_id:
        return []
    removed = DatasetRemoved(
        dataset_id=placed.dataset_id,
        account_id=command.account_id,
        name=command.name,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(dataset_stream(command.account_id, command.name), removed)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"dataset": (Dataset(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    PlaceDataset: decide_place,
    RemoveDataset: decide_remove,
}
