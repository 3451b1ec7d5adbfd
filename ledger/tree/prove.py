"""Writes the receipts that `ledger/tree/proof.py` checks: one fact, or one usage report under its
pin.

Reads the logs and the trees; decides nothing.
"""

from __future__ import annotations

from typing import Any

import psycopg

from domain.metering.report import LANES
from ledger.log import lane_store
from ledger.tree import merkle, trees
from ledger.tree.cut import LaneRecord, lanes_tree
from ledger.tree.proof import (
    LaneProof,
    MarketEntry,
    Proof,
    ProofInvalid,
    UsageEntry,
    pin_record,
    render,
)

Connection = psycopg.Connection[Any]


class NotCovered(Exception):
    """No signed checkpoint covers this event yet, or there is no such event."""


def prove(conninfo: str, event: str) -> str:
    """The `.tlog-proof` file of an event: `<position>` of the market log or `<lane>/<position>`.

    Raises NotCovered, and ValueError when `event` is neither.
    """
    first, _, second = event.removeprefix("usage/").partition("/")
    with psycopg.connect(conninfo, autocommit=True) as conn:
        if second:
            return prove_report(conn, int(first), int(second))
        return prove_fact(conn, int(first))


def prove_fact(conn: Connection, position: int) -> str:
    """The proof of one fact under the latest checkpoint. Raises NotCovered."""
    size, note = _checkpoint(conn, position)
    return render(_fact(conn, position, size, note))


def prove_report(conn: Connection, lane: int, position: int) -> str:
    """The proof of one usage report under the first pin that covers it. Raises NotCovered."""
    report = _report(conn, lane, position)
    size, note = _checkpoint(conn, 1)
    pinned = covering_pin(conn, lane, position, size)
    if pinned is None:
        raise NotCovered(f"lane {lane} position {position}: no pin under a checkpoint covers it")
    fact = _fact(conn, pinned, size, note)
    records = tuple(pin_record(fact.entry, each)[0] for each in range(LANES))
    proof = LaneProof(
        records[lane],
        tuple(_lane_path(conn, records[lane], position)),
        tuple(merkle.inclusion(lane, LANES, lanes_tree(records).hash_at)),
    )
    return render(Proof(fact.index, fact.path, fact.checkpoint, fact.entry, report, proof))


def covering_pin(conn: Connection, lane: int, position: int, market_max: int) -> int | None:
    """The market position of the first pin that holds this report, up to `market_max`.

    Lane sizes never fall from one pin to the next, so the pins are bisected.
    """
    low, high, found = 1, market_max, None
    while low <= high:
        middle = (low + high) // 2
        row = conn.execute(
            "SELECT notification_id FROM market_events WHERE topic = 'usage.pinned.v1'"
            " AND notification_id BETWEEN %s AND %s ORDER BY notification_id LIMIT 1",
            (middle, high),
        ).fetchone()
        if row is None:
            high = middle - 1
        elif _pinned_size(conn, row[0], lane) >= position:
            found, high = row[0], middle - 1
        else:
            low = row[0] + 1
    return found


def _pinned_size(conn: Connection, pinned: int, lane: int) -> int:
    return pin_record(_entry(conn, pinned), lane)[0].size


def _checkpoint(conn: Connection, position: int) -> tuple[int, str]:
    latest = trees.latest_checkpoint(conn)
    if latest is None or not 1 <= position <= latest[0]:
        raise NotCovered(f"no signed checkpoint covers fact {position}")
    return latest


def _fact(conn: Connection, position: int, size: int, note: str) -> Proof:
    path = merkle.inclusion(position - 1, size, trees.tree(conn, trees.MARKET, size).hash_at)
    return Proof(position - 1, tuple(path), note, _entry(conn, position))


def _lane_path(conn: Connection, record: LaneRecord, position: int) -> list[bytes]:
    tree = trees.tree(conn, record.lane, record.size)
    if tree.root() != record.root:
        raise ProofInvalid(f"lane {record.lane}: its tree has not the root that was pinned")
    return merkle.inclusion(position - 1, record.size, tree.hash_at)


def _entry(conn: Connection, position: int) -> MarketEntry:
    row = conn.execute(
        "SELECT originator_id, originator_version, topic, state FROM market_events"
        " WHERE notification_id = %s",
        (position,),
    ).fetchone()
    if row is None:
        raise NotCovered(f"there is no fact {position}")
    return MarketEntry(row[0], row[1], row[2], bytes(row[3]))


def _report(conn: Connection, lane: int, position: int) -> UsageEntry:
    with lane_store.at(conn, lane) as there:
        row = there.execute(
            "SELECT node_id, node_seq, name, body FROM usage_event"
            " WHERE lane = %s AND position = %s",
            (lane, position),
        ).fetchone()
    if row is None:
        raise NotCovered(f"there is no report at lane {lane} position {position}")
    return UsageEntry(lane, position, row[0], row[1], row[2], bytes(row[3]))
