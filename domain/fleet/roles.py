"""What a node is for: a worker that runs jobs, an ingress that others are reached through, or one
that controls the region.

    a node behind an ingress      <=>  a worker, and the ingress is one of the same region
    a node that leases go to       =>  a worker

Only workers are leased; what control and ingress nodes cost is paid by the terms of their region.
An admitted worker without an ingress gets the one with the fewest workers
(`domain/fleet/growth.py`). Source: rows K-12, K-13.
"""

from __future__ import annotations

import re
from typing import Any

from domain.fleet.growth import INGRESS, ROLES, WORKER, growth_of, member_changes
from domain.fleet.node import NodeRoleSet, existing_node, member_of, node_stream, require_idle
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World

ADDRESS = re.compile(r"(?=.{3,255}$)(\[[0-9a-fA-F:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):[0-9]{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNodeRole:
    """`ingress_node_id`: of a worker; None: the server chooses."""

    node_id: str
    role: str
    ingress_node_id: str | None
    by: str
    at_us: int
    address: str | None = None  # host:port of an ingress


def decide_role(command: SetNodeRole, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, UNKNOWN_MODE, NODE_ROLE, NODE_BUSY, REGION_FULL,
    REGION_MIX.
    """
    node = existing_node(world, command.node_id)
    assert node.joined is not None
    if node.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if command.role not in ROLES:
        raise Refused(PartiesReason.UNKNOWN_MODE, role=command.role)
    region_id = node.joined.region_id
    if command.ingress_node_id is not None:
        _require_ingress(command, region_id, is_admitted=node.is_admitted, world=world)
    if command.role != WORKER:
        require_idle(command.node_id, node, world)
    changes = []
    if command.address is not None and (
        command.role != INGRESS or not ADDRESS.fullmatch(command.address)
    ):
        raise Refused(FleetReason.NODE_ROLE, rule="an_ingress_has_an_address")
    address = None if node.role_told is None else node.role_told.address
    if (command.role, command.address) != (node.role, address):
        told = NodeRoleSet(
            node_id=command.node_id,
            role=command.role,
            address=command.address,
            by=command.by,
            at_us=command.at_us,
        )
        changes.append(Change(node_stream(command.node_id), told))
    if not node.is_admitted:
        return changes
    member = member_of(
        node,
        command.role,
        _ingress_of(command, growth_of(world, region_id).member(command.node_id)),
    )
    others = member_changes(
        world, region_id, member, is_new=False, by=command.by, at_us=command.at_us
    )
    return [*changes, *others]


def _ingress_of(command: SetNodeRole, known: Any) -> str | None:
    if command.role != WORKER or command.ingress_node_id is not None:
        return command.ingress_node_id
    return None if known is None else known.ingress_node_id


def _require_ingress(
    command: SetNodeRole, region_id: str, *, is_admitted: bool, world: World
) -> None:
    assert command.ingress_node_id is not None
    ingress = existing_node(world, command.ingress_node_id)
    assert ingress.joined is not None
    if command.role != WORKER:
        raise Refused(FleetReason.NODE_ROLE, rule="a_worker_behind_an_ingress")
    if ingress.joined.region_id != region_id:
        raise Refused(FleetReason.NODE_ROLE, rule="of_the_same_region", region_id=region_id)
    known = growth_of(world, region_id).member(command.ingress_node_id)
    if known is None or known.role != INGRESS:
        raise Refused(FleetReason.NODE_ROLE, rule="a_worker_behind_an_ingress")
    if not is_admitted:
        raise Refused(FleetReason.NODE_ROLE, rule="admitted_first")


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {SetNodeRole: decide_role}
