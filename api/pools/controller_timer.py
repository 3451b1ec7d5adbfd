"""The timer that holds each pool's controller contract against the log.

    contract at a final block == what the log says, or a fact names each difference

A pool's owner chooses its contract and fills it, so a wrong one stops nothing but trust in this
pool: the answer is recorded when it changes, and told with the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from api.process.service import Service
from api.process.timer import Timer
from domain.pools.component import COMPONENTS_MAX
from domain.pools.controller import DIFFERENCES_MAX, RecordControllerCheck, pool_controller_stream
from projections import tables
from projections.pools import controllers, pools
from projections.runner import Connection

if TYPE_CHECKING:
    from contracts.chain import Chain
    from contracts.pool_controller import PoolRecord

EVERY_S = 60
PAGE = 100


def controller_timer(service: Service) -> Timer | None:
    """None without a chain."""
    settings = service.settings
    if not (settings.embedded_chain or settings.chain_url is not None):
        return None
    from api.chain.side import chain_side  # its libraries take a second to import
    from contracts.chain import Chain

    side = chain_side(service)

    def run(_service: Service, connection: Connection, now_us: int) -> int:
        chain = side.chain  # an embedded chain is open where its jobs run
        if chain is None and settings.chain_url is not None:
            chain = Chain.http(settings.chain_url)
        return 0 if chain is None else check_controllers(service, connection, chain, now_us)

    return Timer("pool_controllers", EVERY_S, 7_200, run, turn=215)


def check_controllers(service: Service, connection: Connection, chain: Chain, now_us: int) -> int:
    """Compare every controller with the log; how many answers changed."""
    from contracts.pool_controller import differences

    tables.step_all(connection, only=("pools", "controllers"))
    block, changed = chain.finalized(), 0
    for pool in _with_contract(connection):
        assert pool.controller_address is not None
        record = record_of(connection, pool.pool_id)
        found = differences(chain, pool.controller_address, record, block)
        told = tuple(str(one) for one in found)[:DIFFERENCES_MAX]
        before = service.ledger.market.state_of(pool_controller_stream(pool.pool_id)).checked
        if before is None or before.differences != told:
            command = RecordControllerCheck(
                pool_id=pool.pool_id, block=block, differences=told, at_us=now_us
            )
            service.ledger.handle(command, key=None, now_us=now_us)
            changed += 1
    return changed


def record_of(connection: Connection, pool_id: str) -> PoolRecord:
    """What the log says of a pool's controller. The views must have been followed."""
    from contracts.pool_controller import Component, Heads, PoolRecord

    rows = controllers.read_components(connection, pool_id, limit=COMPONENTS_MAX)
    metadata = controllers.read_metadata(connection, pool_id, limit=VERSIONS_MAX)
    cuts = controllers.read_cuts(connection, pool_id, limit=VERSIONS_MAX)
    return PoolRecord(
        tuple(
            Component(one.component_id, one.kind, one.removed_position is not None) for one in rows
        ),
        tuple(bytes.fromhex(one.sha256) for one in reversed(metadata)),
        {
            one.position: Heads(
                one.position, bytes.fromhex(one.allocation_head), bytes.fromhex(one.licence_head)
            )
            for one in cuts
        },
    )


VERSIONS_MAX = 10_000
"""A contract that is more cuts, or versions of metadata, behind is told as one that differs."""


def _with_contract(connection: Connection) -> Iterator[pools.Pool]:
    after = 0
    while page := pools.read_pools(connection, after=after, limit=PAGE):
        yield from (pool for pool in page if pool.controller_address is not None)
        after = page[-1].position
