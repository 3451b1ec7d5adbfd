"""Roles of nodes: who runs a region's control, who lets traffic in, and who works behind whom.

    a worker's ingress is an ingress of the same region;  control and ingress stand behind nobody

A worker of other people often sits behind a home router; an ingress node of its region carries the
traffic of its leases. Without a role a node is a worker that is reached directly. Source: rows K-12
and K-13.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from domain.fleet.node import existing_node
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoleSet:
    """Stream `node-role:{node_id}`; the latest counts."""

    node_id: str
    role: str  # ROLES
    ingress_node_id: str | None  # for a worker: the node it is reached through
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNodeRole:
    node_id: str
    role: str
    ingress_node_id: str | None
    by: str
    at_us: int


ROLES = ("worker", "ingress", "control")


@dataclass(frozen=True, slots=True)
class RoleState:
    told: NodeRoleSet | None = None

    @property
    def role(self) -> str:
        return "worker" if self.told is None else self.told.role

    @property
    def ingress_node_id(self) -> str | None:
        return None if self.told is None else self.told.ingress_node_id


def evolve(_state: RoleState, fact: NodeRoleSet) -> RoleState:
    return RoleState(fact)


def role_stream(node_id: str) -> Stream[RoleState]:
    return Stream("node-role", node_id)


def role_of(world: World, node_id: str) -> RoleState:
    return world.state(role_stream(node_id))


def decide_role(command: SetNodeRole, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, UNKNOWN_MODE, NODE_ROLE."""
    node = existing_node(world, command.node_id)
    assert node.joined is not None
    if node.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    told = NodeRoleSet(
        node_id=command.node_id,
        role=command.role,
        ingress_node_id=command.ingress_node_id,
        by=command.by,
        at_us=command.at_us,
    )
    present = role_of(world, command.node_id).told
    if present is not None and replace(told, at_us=present.at_us) == present:
        return []
    if command.role not in ROLES:
        raise Refused(PartiesReason.UNKNOWN_MODE, role=command.role)
    if command.ingress_node_id is not None:
        _require_ingress(command, node.joined.region_id, world)
    return [Change(role_stream(command.node_id), told)]


def _require_ingress(command: SetNodeRole, region_id: str, world: World) -> None:
    assert command.ingress_node_id is not None
    ingress = existing_node(world, command.ingress_node_id)
    assert ingress.joined is not None
    if command.role != "worker" or role_of(world, command.ingress_node_id).role != "ingress":
        raise Refused(FleetReason.NODE_ROLE, rule="a_worker_behind_an_ingress")
    if ingress.joined.region_id != region_id:
        raise Refused(FleetReason.NODE_ROLE, rule="of_the_same_region", region_id=region_id)


STREAMS: dict[str, tuple[Any, Any]] = {"node-role": (RoleState(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetNodeRole: decide_role}
