"""A node's place in a pool. The facts are the node's own, so that it is in at most one pool:

    pools of a node <= 1          every fact of a node is in one stream, and each checks the last

Who may put a node into a pool says `domain/pools/pool.py`.
"""

from __future__ import annotations

from domain.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNodeAdded:
    """Stream `node:{node_id}`."""

    pool_id: str
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNodeRemoved:
    """Stream `node:{node_id}`. Leases that run there go on."""

    pool_id: str
    node_id: str
    by: str
    at_us: int
