"""Both logs of a database, recomputed from their stored bytes: for a database that was restored.

    every row    as `ledger/tree/walk.py` says
    last rows    == the heads that the database keeps, of the log and of its tree
    signed heads == the root at their size;   a larger one names facts that are not here
    last pin     == chain and root of each usage lane at its size
    what is kept beside the rows follows from them                     (`ledger/tree/kept.py`)

Only reads, in one snapshot. What an export says of the same rows is `ledger/bundle/verify.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import psycopg

from domain.metering.pin import UsagePinned
from domain.metering.report import LANES
from ledger.log import codec
from ledger.log.chain import GENESIS_MARKET, genesis_usage
from ledger.tree import kept, merkle, rows, trees
from ledger.tree.checkpoint import Checkpoint
from ledger.tree.walk import RowWrong, Walk

Connection = psycopg.Connection[Any]
_MARKET_HEAD = "SELECT pos, hash FROM market_events_head"
_LAST_PIN = """
    SELECT state FROM market_events WHERE topic = %s ORDER BY notification_id DESC LIMIT 1
"""
PIN = codec.NAME_OF[UsagePinned]
_USAGE_HEAD = "SELECT pos, hash FROM usage_head WHERE lane = %s"


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What is there, and what is wrong with it; `missing` are facts that were signed and are not
    here.
    """

    facts: int
    reports: int
    missing: int
    problems: tuple[str, ...]


def recompute(
    conn: Connection,
    signed: Sequence[Checkpoint],
    known: Sequence[Checkpoint] = (),
    told: Callable[[str], None] = lambda _stage: None,
) -> Recomputed:
    """Walk both logs. `signed`: heads from outside that must all be here; `known`: such as may be
    of a later time than these rows, and must agree where they are not.
    """
    wanted: dict[int, bytes] = {}
    problems = [
        f"market: two heads of {head.size} facts are known from outside"
        for head in chain(signed, known)
        if wanted.setdefault(head.size, head.root) != head.root
    ]
    reports = 0
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        heads = _tree_heads(conn, problems)
        problems += kept.strangers(conn)
        beside = kept.Beside.read(conn)
        told("market log")
        facts = _walk(conn, heads[trees.MARKET], beside, problems, wanted)
        pinned = _pinned(conn, problems)
        for lane in range(LANES):
            told(f"usage lane {lane}")
            reports += _walk(conn, heads[lane], beside, problems, {}, pinned.get(lane))
    missing = max((head.size for head in signed if head.size > facts), default=facts) - facts
    if missing:
        problems.append(f"{missing} facts are missing: {facts + missing} were signed before")
    return Recomputed(facts, reports, missing, tuple(problems))


def _pinned(conn: Connection, problems: list[str]) -> dict[int, tuple[int, bytes, bytes]]:
    """What the last pin says of each lane; the chain makes it hold for all before it."""
    row = conn.execute(_LAST_PIN, (PIN,)).fetchone()
    if row is None:
        return {}
    try:
        return kept.pinned(codec.decode(PIN, bytes(row[0])))
    except ValueError as error:  # a changed row, which the walk has told with its position
        problems.append(f"market: the last pin cannot be read: {error}")
        return {}


def _walk(
    conn: Connection,
    head: trees.TreeHead,
    beside: kept.Beside,
    problems: list[str],
    wanted: dict[int, bytes],
    pinned: tuple[int, bytes, bytes] | None = None,
) -> int:
    """One log; the number of its rows up to the first wrong one."""
    log, is_market = head.log, head.log == trees.MARKET
    name = "market" if is_market else f"usage/{log}"
    stored = kept.heads(conn) if is_market else iter(())
    due = next(stored, None)
    walk = Walk(GENESIS_MARKET if is_market else genesis_usage(log))
    tiling, lane = kept.Tiling(log, head.size), kept.Lane(log)

    def look() -> None:
        """What is said of the log at the size that was reached."""
        nonlocal due
        size, root = walk.position, walk.tree.root
        while due is not None and due[0] <= size:
            if due != (size, root()):
                problems.append(f"{name}: the signed head of {due[0]} facts has another root here")
            due = next(stored, None)
        if size == head.size and root() != head.root:
            problems.append(f"{name}: its tree of {size} has another root than its rows")
        if size in wanted and wanted[size] != root():
            problems.append(f"{name}: the first {size} facts are not those that were signed")
        if pinned is not None and size == pinned[0] and (walk.head, root()) != pinned[1:]:
            problems.append(f"{name}: the first {size} reports are not those that were pinned")

    look()
    try:
        for row in rows.market(conn, walk) if is_market else rows.usage(conn, walk, log):
            if is_market:
                tiling.take(row[5])
            else:
                _, position, node, number, _, body, leaf, _, flags, _ = row
                tiling.take(leaf)
                lane.take(position, node, number, body, flags)
            look()
    except RowWrong as wrong:
        problems.append(f"{name}: {wrong}")
        return walk.position
    ends = conn.execute(_MARKET_HEAD if is_market else _USAGE_HEAD, None if is_market else (log,))
    if ends.fetchall() != [(walk.position, walk.head)]:
        problems.append(f"{name}: the rows end at {walk.position}, and its head says otherwise")
    if head.size > walk.position:
        problems.append(f"{name}: its tree has {head.size} leaves, the log {walk.position} rows")
    if due is not None:
        problems.append(f"{name}: a head of {due[0]} facts was signed, and they are not here")
    if pinned is not None and pinned[0] > walk.position:
        problems.append(f"{name}: {pinned[0] - walk.position} reports are missing: a pin has them")
    problems += [f"{name}: {fault}" for fault in tiling.faults(conn, beside)]
    if not is_market:
        problems += [f"{name}: {fault}" for fault in lane.faults(conn, beside)]
    return walk.position


def _tree_heads(conn: Connection, problems: list[str]) -> dict[int, trees.TreeHead]:
    """One for each log; an empty one for a log that has none, or several."""
    found: dict[int, list[trees.TreeHead]] = {log: [] for log in range(LANES + 1)}
    for log, size, root in conn.execute("SELECT log, size, root FROM tree_head"):
        found.setdefault(log, []).append(trees.TreeHead(log, size, bytes(root)))
    problems += [
        f"tree_head: {len(heads)} rows of log {log}"
        for log, heads in found.items()
        if len(heads) != (log <= LANES)
    ]
    return {
        log: heads[0] if heads else trees.TreeHead(log, 0, merkle.EMPTY_ROOT)
        for log, heads in found.items()
    }
