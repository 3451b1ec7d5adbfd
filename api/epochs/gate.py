"""The closing gate of an epoch: what has to be there before it may be cut.

    end + the policy's wait <= now;  every lease accrued, every talking node heard, every chain
    final: all of them past the end;  every usage lane seen after the wait;  sources that agree on a
    price, where prices are fed

A node that is away or silent is not waited for, and nobody is a day after the wait: what comes
later counts in the next epoch, so nothing is lost by going on. The one way round is an operator's
reason, which is a fact. A price that moved too far is not waited for: no reward depends on it, and
the seal names no snapshot then. Source: design economics 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from domain.duration import DAY_US, HOUR_US
from domain.epochs.epoch import MISSING_MAX, EpochOpened
from domain.epochs.policy import NETWORK
from domain.epochs.reward_terms import NO_TERMS
from domain.lease.lease import lease_stream
from domain.prices.price_feed import FEED, MOVED, reading_of
from ledger.beside import chain_store
from ledger.log.handle import Ledger
from ledger.log.lane_map import ranges
from ledger.tree import trees
from projections import tables
from projections.epochs.gate import read_behind, read_unaccrued

Connection = psycopg.Connection[Any]

SILENT_US = HOUR_US
"""A node that nothing came from for so long, or for the policy's wait, is offline."""
NODES_WAIT_US = DAY_US
"""After the policy's wait, a node whose clock or spool is this late holds up nobody any more."""


def missing_for(
    ledger: Ledger, connection: Connection, opened: EpochOpened, now_us: int
) -> tuple[str, ...]:
    """What the closing gate still waits for, in words; nothing when the epoch may be closed.

    At most `MISSING_MAX` leases and as many nodes are named.
    """
    unseen = trees.see_elsewhere(connection).unseen
    tables.step_all(connection, only=("leases", "fleet", "usage"))
    wait_us = _wait_us(ledger, opened)
    return (
        *_too_early(opened.end_us + wait_us, now_us),
        *_not_seen(unseen),
        *_not_accrued(ledger, connection, opened.end_us),
        *_not_heard(connection, opened.end_us, wait_us, now_us),
        *_not_final(connection, opened.end_us),
        *_no_price(ledger, now_us),
    )


def _wait_us(ledger: Ledger, opened: EpochOpened) -> int:
    policy = ledger.market.state_of(NETWORK).published[opened.policy_version - 1]
    terms = policy.rewards or NO_TERMS
    return int(terms.min_wait_us)


def _too_early(due_us: int, now_us: int) -> Iterator[str]:
    if now_us < due_us:
        yield f"wait: the policy's wait ends at {due_us}"


def _not_seen(lanes: tuple[int, ...]) -> Iterator[str]:
    """Reports may lie there that were never read, however long ago they were acknowledged."""
    if lanes:
        yield f"usage lanes {ranges(lanes)}: their server cannot be read"


def _not_accrued(ledger: Ledger, connection: Connection, end_us: int) -> Iterator[str]:
    named, after = 0, ""
    while named < MISSING_MAX:
        found = read_unaccrued(connection, end_us, after=after, limit=MISSING_MAX)
        for lease_id in found:
            lease = ledger.market.state_of(lease_stream(lease_id))
            if lease.opened is None or lease.is_over or lease.accrued_until_us >= end_us:
                continue
            named += 1
            yield f"lease {lease_id}: accrued up to {lease.accrued_until_us}, needed {end_us}"
        if len(found) < MISSING_MAX:
            return
        after = found[-1]


def _not_heard(connection: Connection, end_us: int, wait_us: int, now_us: int) -> Iterator[str]:
    if now_us >= end_us + wait_us + NODES_WAIT_US:
        return
    silent_us = now_us - max(wait_us, SILENT_US)
    behind = read_behind(connection, end_us, silent_us=silent_us, limit=MISSING_MAX)
    for node in behind:
        yield f"node {node.node_id}: reported up to {node.last_end_us}, needed {end_us}"
    if behind and behind[0].nodes > len(behind):
        yield f"nodes: {behind[0].nodes - len(behind)} more report, but not up to {end_us}"


def _not_final(connection: Connection, end_us: int) -> Iterator[str]:
    settled_us = chain_store.settled_us(connection)
    if settled_us is not None and settled_us < end_us:
        yield f"chain: final and taken up to {settled_us}, needed {end_us}"


def _no_price(ledger: Ledger, now_us: int) -> Iterator[str]:
    feed = ledger.market.state_of(FEED)
    if feed.is_set:
        reading = reading_of(feed, now_us)
        if reading.price is None and reading.health != MOVED:
            yield f"price: {reading.health}"
