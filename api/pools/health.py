"""How a pool is: each node and each component of it, and what is not well.

    nodes == sum of all healths          components in the pool == sum of all healths

What a node says of itself is in its signed reports; what a component says is what its owner
reported. Nothing is charged or decided by it. Row J-8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from fastapi import Response

from api.door.auth import everybody
from api.door.call import Caller
from api.door.models import AnswerModel, Count, NodeId, Position, Told_at
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.pools.controllers import PoolComponentAnswer, component_told
from api.pools.pools import PoolId, PoolInPath, existing_pool
from domain.lease.lease import DEGRADED_AFTER_US
from domain.pools.component import COMPONENTS_MAX
from domain.pools.reasons import PoolsReason
from projections.fleet.fleet import FLEET
from projections.lease.leases import LEASES
from projections.metering.usage import USAGE
from projections.pools import controllers
from projections.pools.controllers import CONTROLLERS
from projections.pools.health import NodeHealth, read_node_healths
from projections.pools.pools import POOLS

resource = Resource("pools")

Health = Literal[
    "well", "silent", "maintenance", "quarantined", "draining", "joining", "retired", "degraded"
]
TROUBLED_MAX = 100


class NodeTroubleAnswer(AnswerModel):
    """A node that is not well. `silent`: active, and no signed report in the last three minutes;
    `degraded`: it reports, and a lease on it is degraded.
    """

    node_id: NodeId
    health: Health
    role: str | None = None
    degraded_leases: Count
    reported_at: Told_at | None = None


class HealthCountAnswer(AnswerModel):
    """How many nodes, or components, are so."""

    health: str
    count: Count


class PoolHealthAnswer(AnswerModel):
    """`troubled_nodes`, `troubled_components`: at most 100 each, in the order they were added."""

    pool_id: PoolId
    nodes: list[HealthCountAnswer]
    components: list[HealthCountAnswer]
    waiting: Count
    degraded_leases: Count
    troubled_nodes: list[NodeTroubleAnswer]
    troubled_components: list[PoolComponentAnswer]
    position: Position | None = None


@resource.get(
    "/v1/pools/{pool_id}/health", everybody(), PoolHealthAnswer, problems=[PoolsReason.POOL_UNKNOWN]
)
def read_pool_health(pool_id: PoolInPath, call: Caller) -> Response:
    """Returns how many nodes and components of a pool are well, and which are not."""
    with call.read(POOLS, FLEET, LEASES, USAGE, CONTROLLERS) as view:
        pool = existing_pool(view.connection, pool_id)
        nodes = read_node_healths(view.connection, pool_id, call.now_us)
        healths = {one.node_id: _health(one, call.now_us) for one in nodes}
        parts = [
            component_told(row, call.now_us)
            for row in controllers.read_components(view.connection, pool_id, limit=COMPONENTS_MAX)
            if row.removed_position is None
        ]
        told = PoolHealthAnswer(
            pool_id=pool_id,
            nodes=_counts(healths.values()),
            components=_counts(one.health for one in parts),
            waiting=pool.waiting,
            degraded_leases=sum(one.degraded_leases for one in nodes),
            troubled_nodes=[
                _trouble(one, healths[one.node_id])
                for one in nodes
                if healths[one.node_id] != "well"
            ][:TROUBLED_MAX],
            troubled_components=[one for one in parts if one.health != "well"][:TROUBLED_MAX],
        )
        return call.answer(view, told)


def _health(node: NodeHealth, now_us: int) -> Health:
    """The first that applies."""
    if node.quarantined:
        return "quarantined"
    if node.phase in ("maintenance", "draining", "retired"):
        phase: Health = node.phase  # type: ignore[assignment]
        return phase
    if node.phase != "active":
        return "joining"
    if node.is_away:
        return "maintenance"
    reported_us = node.reported_us
    if reported_us is None or now_us - reported_us >= DEGRADED_AFTER_US:
        return "silent"
    return "degraded" if node.degraded_leases else "well"


def _trouble(node: NodeHealth, health: Health) -> NodeTroubleAnswer:
    return NodeTroubleAnswer(
        node_id=node.node_id,
        health=health,
        role=node.role,
        degraded_leases=node.degraded_leases,
        reported_at=moment_or_none(node.reported_us),
    )


def _counts(healths: Iterable[str]) -> list[HealthCountAnswer]:
    counted = Counter(healths)
    return [HealthCountAnswer(health=name, count=counted[name]) for name in sorted(counted)]
