"""Both logs of a database, recomputed from their stored bytes: for a database that was restored.

    every row    as `ledger/tree/walk.py` says
    last rows    == the heads that the database keeps, of the log and of its tree
    signed heads == the root at their size;   a larger one names facts that are not here

Only reads, in one snapshot. What an export says of the same rows is `ledger/bundle/verify.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from domain.metering.report import LANES
from ledger.log.chain import GENESIS_MARKET, genesis_usage
from ledger.tree import rows, trees
from ledger.tree.checkpoint import Checkpoint
from ledger.tree.walk import RowWrong, Walk

Connection = psycopg.Connection[Any]
_MARKET_HEAD = "SELECT pos, hash FROM market_events_head"
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
    wanted: dict[int, set[bytes]] = {}
    for head in (*signed, *known):
        wanted.setdefault(head.size, set()).add(head.root)
    problems: list[str] = []
    reports = 0
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        told("market log")
        facts = _walk(conn, trees.MARKET, "market", problems, wanted)
        for lane in range(LANES):
            told(f"usage lane {lane}")
            reports += _walk(conn, lane, f"usage/{lane}", problems, {})
    missing = max((head.size for head in signed if head.size > facts), default=facts) - facts
    if missing:
        problems.append(f"{missing} facts are missing: {facts + missing} were signed before")
    return Recomputed(facts, reports, missing, tuple(problems))


def _walk(
    conn: Connection, log: int, name: str, problems: list[str], wanted: dict[int, set[bytes]]
) -> int:
    """One log; the number of its rows up to the first wrong one."""
    is_market = log == trees.MARKET
    kept = trees.head(conn, log)
    walk = Walk(GENESIS_MARKET if is_market else genesis_usage(log))
    try:
        for _ in rows.market(conn, walk) if is_market else rows.usage(conn, walk, log):
            if walk.position == kept.size and walk.tree.root() != kept.root:
                problems.append(f"{name}: its tree of {kept.size} has another root than its rows")
            roots = wanted.get(walk.position)
            if roots is not None and roots != {walk.tree.root()}:
                problems.append(
                    f"{name}: the first {walk.position} facts are not those that were signed"
                )
    except RowWrong as wrong:
        problems.append(f"{name}: {wrong}")
        return walk.position
    row = conn.execute(_MARKET_HEAD if is_market else _USAGE_HEAD, None if is_market else (log,))
    if row.fetchone() != (walk.position, walk.head):
        problems.append(f"{name}: the rows end at {walk.position}, and its head says otherwise")
    if kept.size > walk.position:
        problems.append(f"{name}: its tree has {kept.size} leaves, the log {walk.position} rows")
    return walk.position
