"""A pool's components, metadata and heads: what may be registered, and what a head counts."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.licence import LicenceGranted, licence_stream
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.pools.component import (
    COMPONENTS_MAX,
    RegisterComponent,
    RemoveComponent,
    ReportComponentHealth,
    components_stream,
)
from domain.pools.controller import (
    ALLOCATION,
    LICENCES,
    CutPoolHeads,
    MetadataEntry,
    PoolMetadataSet,
    RecordControllerCheck,
    SetPoolMetadata,
    fold,
    genesis,
    metadata_hash,
    pool_controller_stream,
)
from domain.pools.controller_address import ControllerNamed, controller_stream
from domain.pools.pool import DEFAULT_POLICY, CreatePool
from domain.pools.reasons import PoolsReason
from tests.domain.scenes.market import NOON_US, OWNER, scene
from tests.given import Scene

POOL, LICENCE, ADDRESS = "pool_a", "lic_a", "0x" + "Ab" * 20
GATEWAY = RegisterComponent(
    pool_id=POOL,
    component_id="comp_a",
    kind="gateway",
    name="gateway-1",
    endpoint="https://gateway-1.example:8443/",
    licence_id=None,
    by="mem_a",
    at_us=NOON_US,
)
CREATE = CreatePool(
    pool_id=POOL,
    account_id=OWNER,
    name="research",
    policy=DEFAULT_POLICY,
    controller_address=ADDRESS,
    by="mem_a",
    at_us=NOON_US,
)
LEAVES = st.lists(st.binary(min_size=32, max_size=32), max_size=5)


@pytest.fixture
def pool() -> Scene:
    return scene().after(CREATE)


def health(said: str, at_us: int, detail: str = "") -> ReportComponentHealth:
    return ReportComponentHealth(
        pool_id=POOL, component_id="comp_a", health=said, detail=detail, by="mem_a", at_us=at_us
    )


def cut(position: int, allocation: list[bytes], licence: list[bytes]) -> CutPoolHeads:
    return CutPoolHeads(
        pool_id=POOL,
        cut_position=position,
        allocation=tuple(allocation),
        licence=tuple(licence),
        by="mem_a",
        at_us=NOON_US,
    )


# The address.


def test_an_address_answers_for_one_pool_whatever_its_case(pool: Scene) -> None:
    named = ControllerNamed(address=ADDRESS.lower(), pool_id=POOL, at_us=NOON_US)
    assert [one.fact for one in scene().when(CREATE).changes()][1:] == [named]
    other = replace(CREATE, pool_id="pool_b", controller_address=ADDRESS.upper().replace("X", "x"))
    pool.when(other).then_refused(PoolsReason.CONTROLLER_TAKEN)
    assert pool.state(controller_stream(ADDRESS)).pool_id == POOL


@pytest.mark.parametrize("address", ["0x12", "Ab" * 21, "0x" + "g" * 40])
def test_what_is_no_address_names_no_contract(address: str) -> None:
    command = replace(CREATE, controller_address=address)
    scene().when(command).then_refused(PartiesReason.BAD_ADDRESS)


# Components.


def test_a_component_is_registered_once_and_found_again(pool: Scene) -> None:
    after = pool.after(GATEWAY)
    after.when(GATEWAY).then_nothing()
    (found,) = after.state(components_stream(POOL)).present
    assert (found.registered.kind, found.registered.name) == ("gateway", "gateway-1")
    same_name = replace(GATEWAY, component_id="comp_b")
    after.when(same_name).then_refused(PoolsReason.COMPONENT_TAKEN, component_id="comp_a")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "Gate way"}, "kind"),
        ({"kind": "g" * 32}, "kind"),
        ({"name": ""}, "name"),
        ({"endpoint": "https://user@gateway-1.example"}, "endpoint"),
        ({"endpoint": "gateway-1"}, "endpoint"),
        ({"endpoint": "https://a/?token=x"}, "endpoint"),
        ({"kind": "licence"}, "licence_id"),
        ({"licence_id": LICENCE}, "licence_id"),
    ],
)
def test_a_component_that_breaks_a_rule_is_named_with_it(
    pool: Scene, changes: dict[str, Any], field: str
) -> None:
    command = replace(GATEWAY, **changes)
    pool.when(command).then_refused(PoolsReason.COMPONENT_INVALID, field=field)


def test_a_licence_is_in_a_pool_once_and_must_have_been_granted(pool: Scene) -> None:
    command = replace(GATEWAY, kind="licence", licence_id=LICENCE, endpoint=None)
    pool.when(command).then_refused(FleetReason.LICENCE_UNKNOWN)
    granted = LicenceGranted(
        licence_id=LICENCE,
        provider_id="prov_a",
        vendor="thirdai",
        model="Bolt",
        seats=4,
        terms_sha256="0a" * 32,
        from_us=NOON_US,
        until_us=None,
        by="mem_a",
        at_us=NOON_US,
    )
    after = pool.given((licence_stream(LICENCE), granted)).after(command)
    again = replace(command, component_id="comp_b", name="another")
    after.when(again).then_refused(PoolsReason.COMPONENT_TAKEN)
    gone = after.after(
        RemoveComponent(pool_id=POOL, component_id="comp_a", by="mem_a", at_us=NOON_US)
    )
    assert len(gone.when(again).changes()) == 1


def test_a_removed_component_stays_removed(pool: Scene) -> None:
    remove = RemoveComponent(pool_id=POOL, component_id="comp_a", by="mem_a", at_us=NOON_US)
    pool.when(remove).then_refused(PoolsReason.COMPONENT_UNKNOWN)
    gone = pool.after(GATEWAY).after(remove)
    gone.when(remove).then_nothing()
    gone.when(health("well", NOON_US)).then_refused(PoolsReason.COMPONENT_REMOVED)


def test_a_pool_has_had_so_many_components_at_most(pool: Scene) -> None:
    stream = components_stream(POOL)
    (first,) = pool.when(GATEWAY).changes()
    many = [
        (stream, replace(first.fact, component_id=f"comp_{n}", name=f"gateway-{n}"))
        for n in range(COMPONENTS_MAX)
    ]
    command = replace(GATEWAY, component_id="comp_last", name="last")
    full = pool.given(*many)
    full.when(command).then_refused(PoolsReason.COMPONENTS_FULL, most=COMPONENTS_MAX)


def test_health_is_recorded_when_it_changes_and_once_an_hour(pool: Scene) -> None:
    after = pool.after(GATEWAY).after(health("well", NOON_US))
    after.when(health("well", NOON_US + HOUR_US - 1)).then_nothing()
    assert len(after.when(health("well", NOON_US + HOUR_US)).changes()) == 1
    assert len(after.when(health("down", NOON_US + 1)).changes()) == 1
    assert len(after.when(health("well", NOON_US + 1, "slow")).changes()) == 1
    after.when(health("fine", NOON_US)).then_refused(PoolsReason.COMPONENT_INVALID, field="health")


# Metadata and heads.


def test_metadata_has_a_version_and_a_hash_over_all_of_it(pool: Scene) -> None:
    entries = (MetadataEntry("b", "2"), MetadataEntry("a", "1"))
    command = SetPoolMetadata(pool_id=POOL, metadata=entries, by="mem_a", at_us=NOON_US)
    (change,) = pool.when(command).changes()
    text = b'{"metadata":{"a":"1","b":"2"},"pool_id":"pool_a","version":1}'
    assert isinstance(change.fact, PoolMetadataSet)
    assert change.fact.sha256 == sha256(text).hexdigest() == metadata_hash(POOL, 1, entries)
    after = pool.after(command)
    after.when(replace(command, metadata=entries[::-1])).then_nothing()
    (second,) = after.when(replace(command, metadata=())).changes()
    assert second.fact.version == 2
    twice = replace(command, metadata=(entries[0], entries[0]))
    pool.when(twice).then_refused(PoolsReason.METADATA_INVALID)
    long = replace(command, metadata=(MetadataEntry("a", "x" * 501),))
    pool.when(long).then_refused(PoolsReason.METADATA_INVALID, name="a")


@given(first=LEAVES, second=LEAVES, seats=LEAVES)
def test_cutting_in_two_gives_the_heads_of_cutting_once(
    first: list[bytes], second: list[bytes], seats: list[bytes]
) -> None:
    twice = scene().after(CREATE).after(cut(10, first, [])).after(cut(20, second, seats))
    last = twice.state(pool_controller_stream(POOL)).last
    assert last is not None
    counted = first + second
    assert last.allocation_head == fold(genesis(ALLOCATION, POOL), counted).hex()
    assert last.licence_head == fold(genesis(LICENCES, POOL), seats).hex()
    assert last.cut_position == (20 if second or seats else 10)


def test_two_pools_with_the_same_leases_have_other_heads() -> None:
    assert genesis(ALLOCATION, POOL) != genesis(ALLOCATION, "pool_b") != genesis(LICENCES, POOL)


def test_a_cut_goes_forward_and_nothing_new_is_no_cut(pool: Scene) -> None:
    after = pool.after(cut(10, [b"\x01" * 32], []))
    after.when(cut(10, [b"\x02" * 32], [])).then_refused(PoolsReason.CUT_MOVED)
    after.when(cut(11, [], [])).then_nothing()


def test_a_check_of_the_contract_is_recorded_when_its_answer_changes(pool: Scene) -> None:
    command = RecordControllerCheck(pool_id=POOL, block=7, differences=(), at_us=NOON_US)
    after = pool.after(command)
    after.when(replace(command, block=8)).then_nothing()
    assert len(after.when(replace(command, differences=("metadata hash",))).changes()) == 1
