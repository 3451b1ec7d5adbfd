"""The always-on storage node of a region: a fixed cost per hour from provisioning to removal.

    none --StorageNodeProvisioned--> provisioned --StorageNodeReady--> ready
    provisioned, ready --StorageNodeCharged + StorageNodeRemoved--> none     while it serves no node
    provisioned, ready --StorageNodeCharged + Removed + Provisioned--> provisioned      Replace Node

    nodes == admitted nodes of the region that are not retired         in a region with mode central

    charge = floor(time x price per hour / 3,600,000,000 us)         cumulative, in whole hours, and
    drawn + owed == charge_new                                       the rest at the removal

A region with the storage mode central has one storage node, before its first node; another one has
the next number. The machine says itself that it is ready, with a key of its provider's account. The
price is that of the tariff in force when it was provisioned, for as long as it stands; the region's
provider pays, and has credits when it provisions. Rows C-8, C-25 and C-30. Which class of
storage it has is the provider's choice and does not change the price here; an always-on machine is
what clouds sell cheaper for a commitment, which we advise and cannot see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.duration import HOUR_US
from domain.fleet.provider import CENTRAL, existing_provider, existing_region
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.draw import Drawn, draw
from domain.funds.funding import require_balance
from domain.money import Amount, Big, credit
from domain.parties.account import open_account
from domain.prices.tariff import tariff_in_force
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `storage-node:{region_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNodeProvisioned:
    region_id: str
    number: int  # from 1 in each region
    provider_id: str
    account_id: str  # who pays: the provider's
    storage_class: str
    per_hour: Amount  # locked
    tariff_version: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNodeReady:
    """It serves, as the machine itself says: nodes may join the region now."""

    region_id: str
    number: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNodeCharged:
    """Its cost up to a moment: whole hours, or the last part of one at the removal."""

    region_id: str
    number: int
    account_id: str
    until_us: int
    elapsed_us: Big  # since it was provisioned
    charge: Amount  # cumulative
    charge_new: Amount
    drawn: tuple[Drawn, ...]  # new: what paid for it, in spend order
    owed: Amount  # new: what nothing was there for
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNodeRemoved:
    region_id: str
    number: int
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeServed:
    """A node of the region was admitted: the storage node stays for as long as it is."""

    region_id: str
    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeServedNoMore:
    """The node is retired."""

    region_id: str
    node_id: str
    at_us: int


Fact: TypeAlias = (
    StorageNodeProvisioned
    | StorageNodeReady
    | StorageNodeCharged
    | StorageNodeRemoved
    | NodeServed
    | NodeServedNoMore
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionStorageNode:
    region_id: str
    storage_class: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyStorageNode:
    region_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeStorageNode:
    """Charge the hours that are over and not charged yet; there may be none."""

    region_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveStorageNode:
    region_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceStorageNode:
    """Another one in its place, of the same class or another; the nodes of the region stay."""

    region_id: str
    storage_class: str
    by: str
    at_us: int


# What is remembered.


@dataclass(frozen=True, slots=True)
class StorageNode:
    """The storage node of a region; `provisioned` is None when there is none."""

    number: int = 0  # of the last one there was
    provisioned: StorageNodeProvisioned | None = None
    is_ready: bool = False
    charged_until_us: int = 0
    charge_units: Big = 0
    nodes: frozenset[str] = frozenset()  # admitted in the region and not retired


def evolve(state: StorageNode, fact: Fact) -> StorageNode:
    """The storage node after one more fact."""
    match fact:
        case StorageNodeProvisioned():
            return StorageNode(fact.number, fact, charged_until_us=fact.at_us, nodes=state.nodes)
        case StorageNodeReady():
            return replace(state, is_ready=True)
        case StorageNodeCharged():
            return replace(state, charged_until_us=fact.until_us, charge_units=fact.charge.units)
        case StorageNodeRemoved():
            return StorageNode(fact.number, nodes=state.nodes)
        case NodeServed():
            return replace(state, nodes=state.nodes | {fact.node_id})
        case NodeServedNoMore():
            return replace(state, nodes=state.nodes - {fact.node_id})
        case _:
            assert_never(fact)


def stream_of(region_id: str) -> Stream[StorageNode]:
    return Stream("storage-node", region_id)


def storage_node_of(world: World, region_id: str) -> StorageNode:
    return world.state(stream_of(region_id))


def require_storage(world: World, region_id: str) -> None:
    """A region with the storage mode central is of use once its storage is ready (C-8, C-30).

    Raises Refused: REGION_UNKNOWN, STORAGE_NODE_STATE.
    """
    if existing_region(world, region_id).storage_mode != CENTRAL:
        return
    if not storage_node_of(world, region_id).is_ready:
        raise Refused(FleetReason.STORAGE_NODE_STATE, region_id=region_id, needs="ready")


def serving(world: World, region_id: str, node_id: str, at_us: int) -> list[Change]:
    """The storage node of a central region serves a node that is admitted now.

    Raises Refused: REGION_UNKNOWN, STORAGE_NODE_STATE.
    """
    if existing_region(world, region_id).storage_mode != CENTRAL:
        return []
    if node_id in storage_node_of(world, region_id).nodes:
        return []
    require_storage(world, region_id)
    served = NodeServed(region_id=region_id, node_id=node_id, at_us=at_us)
    return [Change(stream_of(region_id), served)]


def serving_no_more(world: World, region_id: str, node_id: str, at_us: int) -> list[Change]:
    """The node is retired, and the storage node serves one less."""
    if node_id not in storage_node_of(world, region_id).nodes:
        return []
    gone = NodeServedNoMore(region_id=region_id, node_id=node_id, at_us=at_us)
    return [Change(stream_of(region_id), gone)]


# How we decide.


def decide_provision(command: ProvisionStorageNode, world: World) -> list[Change]:
    """One per central region, at the price in force now. The same class again changes nothing.

    Raises Refused: REGION_UNKNOWN, ACCOUNT_CLOSED, REGION_NOT_SUITED, STORAGE_NODE_STATE,
    UNPAID_DEBT, CREDIT_TOO_LOW, TARIFF_UNKNOWN.
    """
    region = existing_region(world, command.region_id)
    open_account(world, existing_provider(world, region.provider_id).account_id)
    if region.storage_mode != CENTRAL:
        raise Refused(
            FleetReason.REGION_NOT_SUITED, region_id=command.region_id, what="storage_node"
        )
    present = storage_node_of(world, command.region_id).provisioned
    if present is not None:
        if present.storage_class == command.storage_class:
            return []
        raise Refused(FleetReason.STORAGE_NODE_STATE, storage_class=present.storage_class)
    return [_provisioned(command, world)]


def _provisioned(command: ProvisionStorageNode | ReplaceStorageNode, world: World) -> Change:
    region = existing_region(world, command.region_id)
    account_id = existing_provider(world, region.provider_id).account_id
    require_balance(world, account_id, command.at_us)
    tariff = tariff_in_force(world, command.at_us)
    provisioned = StorageNodeProvisioned(
        region_id=command.region_id,
        number=storage_node_of(world, command.region_id).number + 1,
        provider_id=region.provider_id,
        account_id=account_id,
        storage_class=command.storage_class,
        per_hour=tariff.storage_node_per_hour or credit(0),
        tariff_version=tariff.version,
        by=command.by,
        at_us=command.at_us,
    )
    return Change(stream_of(command.region_id), provisioned)


def decide_ready(command: ReadyStorageNode, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, STORAGE_NODE_STATE."""
    state, _ = _standing(world, command.region_id)
    if state.is_ready:
        return []
    ready = StorageNodeReady(
        region_id=command.region_id, number=state.number, by=command.by, at_us=command.at_us
    )
    return [Change(stream_of(command.region_id), ready)]


def decide_charge(command: ChargeStorageNode, world: World) -> list[Change]:
    """All hours that are over, in one fact: the price is one price, so batching changes nothing."""
    state = storage_node_of(world, command.region_id)
    if state.provisioned is None:
        return []
    start_us = state.provisioned.at_us
    hours = (command.at_us - start_us) // HOUR_US
    return _charged(state, state.provisioned, start_us + hours * HOUR_US, command.at_us, world)


def decide_remove(command: RemoveStorageNode, world: World) -> list[Change]:
    """The last part of an hour, and gone, in one append. Without one nothing changes, and while it
    serves nodes it stays: it is always on.

    Raises Refused: REGION_UNKNOWN, STORAGE_NODE_STATE.
    """
    existing_region(world, command.region_id)
    state = storage_node_of(world, command.region_id)
    if state.provisioned is None:
        return []
    if state.nodes:
        raise Refused(
            FleetReason.STORAGE_NODE_STATE, region_id=command.region_id, nodes=len(state.nodes)
        )
    return _removed(command, state, state.provisioned, world)


def decide_replace(command: ReplaceStorageNode, world: World) -> list[Change]:
    """The old one is charged to now and gone, and the next one is provisioned, in one append.

    Raises Refused: REGION_UNKNOWN, STORAGE_NODE_STATE, UNPAID_DEBT, CREDIT_TOO_LOW,
    TARIFF_UNKNOWN.
    """
    state, provisioned = _standing(world, command.region_id)
    return [*_removed(command, state, provisioned, world), _provisioned(command, world)]


def _removed(
    command: RemoveStorageNode | ReplaceStorageNode,
    state: StorageNode,
    provisioned: StorageNodeProvisioned,
    world: World,
) -> list[Change]:
    removed = StorageNodeRemoved(
        region_id=command.region_id,
        number=state.number,
        account_id=provisioned.account_id,
        by=command.by,
        at_us=command.at_us,
    )
    last = _charged(state, provisioned, command.at_us, command.at_us, world)
    return [*last, Change(stream_of(command.region_id), removed)]


def _standing(world: World, region_id: str) -> tuple[StorageNode, StorageNodeProvisioned]:
    existing_region(world, region_id)
    state = storage_node_of(world, region_id)
    if state.provisioned is None:
        raise Refused(FleetReason.STORAGE_NODE_STATE, region_id=region_id, needs="provisioned")
    return state, state.provisioned


def _charged(
    state: StorageNode, provisioned: StorageNodeProvisioned, until_us: int, at_us: int, world: World
) -> list[Change]:
    if until_us <= state.charged_until_us:
        return []
    elapsed_us = until_us - provisioned.at_us
    charge = elapsed_us * provisioned.per_hour.units // HOUR_US
    new = charge - state.charge_units
    assert new >= 0, (charge, state)
    taken = draw(world, provisioned.account_id, new, at_us)
    charged = StorageNodeCharged(
        region_id=provisioned.region_id,
        number=provisioned.number,
        account_id=provisioned.account_id,
        until_us=until_us,
        elapsed_us=elapsed_us,
        charge=credit(charge),
        charge_new=credit(new),
        drawn=taken.drawn,
        owed=taken.owed,
        at_us=at_us,
    )
    counted = taken.counted(world, f"storage_node/{provisioned.region_id}", at_us)
    return [Change(stream_of(provisioned.region_id), charged), *counted]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "storage-node": (StorageNode(), evolve)
}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    ProvisionStorageNode: decide_provision,
    ReadyStorageNode: decide_ready,
    ChargeStorageNode: decide_charge,
    RemoveStorageNode: decide_remove,
    ReplaceStorageNode: decide_replace,
}
