"""A year of epochs with faults: nothing appears or is lost, and all compute the same roots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest

from contracts import manifest
from domain.epochs.epoch import EpochGateOverridden
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_changes import RewardSlashed
from domain.leasing.other_resources import ResourceAccrued
from domain.pools.component import ComponentRegistered
from domain.regions.wait_list import RegionWaitlistJoined
from domain.sites.datastore import DatastoreAdded
from domain.sites.edge_device import DeviceFeeCharged, EdgeDeviceActivated
from domain.sites.inference import DeviceConfigDeployed
from domain.sites.reservation import ReservationAdded
from domain.storage.dataset import DatasetPlaced
from domain.storage.volume import VolumeAttached, VolumeErased
from tests.independent.payout_root import root_of
from tests.independent.settlement_sql import breaks, differences
from tests.independent.year import CHAIN_ID, DISTRIBUTOR, Year, leaves_of, live

SHORT = (9, 50)
GROWN = (
    RegionWaitlistJoined,
    ComponentRegistered,
    DatasetPlaced,
    DatastoreAdded,
    ReservationAdded,
    EdgeDeviceActivated,
    DeviceConfigDeployed,
    ResourceAccrued,
    VolumeAttached,
)
"""One of each a week."""
"""Epochs and nodes: enough for each fault to have happened."""


@lru_cache(maxsize=1)
def short() -> Year:
    return live(*SHORT)


def documents(year: Year) -> list[dict[str, Any]]:
    return [json.loads(year.epoch_files[epoch]) for epoch in sorted(year.epoch_files)]


def check_conservation(year: Year) -> None:
    """I1 to I6 over all epochs, from the files and from the books."""
    world, settled = year.world, [year.settlements[n] for n in sorted(year.settlements)]
    kept = sum(s.emission - s.returned_emission for s in settled)
    released = sum(s.release - s.returned_release for s in settled)
    minted, rewards = sum(s.minted for s in settled), sum(s.total for s in settled)
    carried = settled[-1].compute_carry + settled[-1].availability_carry
    assert minted == kept + released == rewards + carried - sum(year.forfeited.values())
    assert world.balance("emission:unissued") == 590_558_000_000_000 - kept
    assert world.balance("recycle:pool") == sum(year.burned.values()) - released
    assert world.balance("chain:distributor") == minted
    assert world.balance("pool:compute:carry") == settled[-1].compute_carry
    assert world.balance("pool:availability:carry") == settled[-1].availability_carry
    for before, after in pairwise(leaves_of(year)):
        assert all(after[address] >= total for address, total in before.items())


def check_against_sql(year: Year) -> None:
    told = documents(year)
    assert [found for document in told for found in differences(document)] == []
    assert list(breaks(told, year.burned, year.adjusted, year.forfeited)) == []
    for data, totals in zip(year.payouts.values(), leaves_of(year), strict=True):
        assert manifest.decode(data).root == root_of(CHAIN_ID, DISTRIBUTOR, totals)


def test_nothing_appears_and_nothing_is_lost() -> None:
    check_conservation(short())


def test_a_second_run_and_shuffled_nodes_give_the_same_bytes() -> None:
    for other in (live(*SHORT), live(*SHORT, order=7)):
        assert other.epoch_files == short().epoch_files
        assert other.payouts == short().payouts
        assert other.world.facts == short().world.facts
    assert live(*SHORT, seed=2).roots != short().roots


def test_the_second_implementation_gives_the_same_files_chain_and_roots() -> None:
    check_against_sql(short())


def test_every_fault_has_happened() -> None:
    year = short()
    facts = [fact for _, fact in year.world.facts]
    assert any(isinstance(fact, EpochGateOverridden) for fact in facts)
    assert sum(isinstance(fact, PolicyPublished) for fact in facts) == 2
    versions = [s.cut.policy.version for s in year.settlements.values()]
    assert versions == [1] * 4 + [2] * 5
    assert len(year.settlements[8].nodes) == 55
    assert len(year.settlements[9].nodes) == 50
    assert all(use.burned == 0 for n in year.settlements[7].cut.nodes for use in n.uses[:1])
    assert _without_use(year, 4) > 0
    reasons = {
        (part.pool, part.reason) for s in year.settlements.values() for part in s.unallocated
    }
    assert {("compute", "cap"), ("compute", "rounding"), ("availability", "rounding")} <= reasons
    assert any(s.returned_emission for s in year.settlements.values())
    assert sum(year.forfeited.values()) > 0
    assert any(isinstance(fact, RewardSlashed) for fact in facts)
    assert any(s.adjustments for s in year.settlements.values()), "a debt outlives its epoch"
    assert all(s.release for s in year.settlements.values())


def test_homes_pools_volumes_and_leases_have_grown_beside_the_rewards() -> None:
    """Charged to the unit (`tests/independent/grown.py`)."""
    facts = Counter(type(fact) for _, fact in short().world.facts)
    weeks = SHORT[0]
    for each in GROWN:
        assert facts[each] == weeks, each
    assert facts[DeviceFeeCharged] >= 7 * (weeks - 1), "each day of devices"
    assert facts[VolumeErased] == weeks - 1, "the last one is kept"


def _without_use(year: Year, epoch: int) -> int:
    nodes: Sequence[Any] = year.settlements[epoch].cut.nodes
    return sum(not node.uses for node in nodes)


def run(seed: int) -> None:
    """Nine epochs of fifty nodes whose faults the seed draws."""
    year = live(*SHORT, seed=seed)
    check_conservation(year)
    check_against_sql(year)


@pytest.mark.long
def test_a_whole_year_of_two_thousand_nodes() -> None:
    year = live(52, 2_000)
    assert len(year.payouts) >= 49
    check_conservation(year)
    check_against_sql(year)
    shuffled = live(52, 2_000, order=3)
    assert shuffled.epoch_files == year.epoch_files
    assert shuffled.payouts == year.payouts
