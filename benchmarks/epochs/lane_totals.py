"""What every node of a cut was used for and how long it was there: usage rows added up, by lane.

A model of a store whose lanes are files (stage S3 of the architecture), for measuring what comes
after the sums. A seal does not read this way: it asks the views
(`projections/epochs/cut_rows.py`).

    sum over all lanes == sum over all rows, exactly: integers, and no sum can pass 2^63
    the same totals for every order of the rows, and for every executor

A node is in one lane alone, so the lanes have nothing to add to each other: each gives its nodes,
and the cut is all of them in order of lanes. Rows are columns of a file, so that a process that
adds up a lane reads it by itself. What the totals are worth says `domain/epochs/settlement.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.epochs.settlement import Attested, NodeCut, Use
from ledger.fan_out.executor import Executor

Column = NDArray[np.int64]
SUMS = ("burned", "gpu_us", "attested_us")
FIELDS = ("node", "source", *SUMS)
"""Of a row: which node of the lane and which source, both by number, and what is added up."""
SUM_MAX = 2**63 - 1


class SumTooWide(Exception):
    """The sums of a lane might pass 2^63: nothing of it was added up."""


@dataclass(frozen=True, slots=True)
class LaneTotals:
    """A row per node and source, in order of both; columns as in `FIELDS`."""

    columns: dict[str, Column]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of a node beside its rows."""

    node_id: str
    account_id: str
    burned_tokens: int
    score_ppm: int | None
    hardware_class: str
    tier: int
    promised_us: int


def lane_totals(file: Path) -> LaneTotals:
    """Add up the rows of one lane, kept by `write_lane`. Raises SumTooWide."""
    with np.load(file) as rows:
        return totals_of({name: rows[name] for name in FIELDS})


def write_lane(file: Path, rows: dict[str, Column]) -> None:
    """Keep the rows of a lane for `lane_totals`."""
    np.savez(file, **{name: rows[name] for name in FIELDS})  # type: ignore[arg-type]


def totals_of(rows: dict[str, Column]) -> LaneTotals:
    """Add up rows by node and source. Raises SumTooWide."""
    count = len(rows["node"])
    for name in SUMS:
        column = rows[name]
        # No value below zero, so a part of a sum is never above it.
        if count and (int(column.min()) < 0 or int(column.max()) * count > SUM_MAX):
            raise SumTooWide(f"{name}: {count} rows of up to {int(column.max())}")
    order = np.lexsort((rows["source"], rows["node"]))
    node, source = rows["node"][order], rows["source"][order]
    is_first = np.ones(count, bool)
    is_first[1:] = (node[1:] != node[:-1]) | (source[1:] != source[:-1])
    starts = np.flatnonzero(is_first)
    found = {"node": node[starts], "source": source[starts]}
    for name in SUMS:
        found[name] = np.add.reduceat(rows[name][order], starts) if count else rows[name]
    return LaneTotals(found)


def totals(executor: Executor, files: Iterable[Path]) -> list[LaneTotals]:
    """The totals of all lanes, in order of `files`. Raises SumTooWide."""
    return list(executor.map(lane_totals, files))


def node_cuts(
    lane: LaneTotals, nodes: Sequence[NodeFacts], sources: Sequence[str]
) -> list[NodeCut]:
    """The nodes of one lane as a settlement takes them, those without a row as well."""
    uses: list[list[Use]] = [[] for _ in nodes]
    attested = [0] * len(nodes)
    for node, source, burned, gpu_us, attested_us in _rows(lane):
        if burned or gpu_us:
            uses[node].append(Use(sources[source], burned, gpu_us))
        attested[node] += attested_us
    return [
        NodeCut(
            one.node_id,
            one.account_id,
            tuple(used),
            one.burned_tokens,
            one.score_ppm,
            _attested(one, there_us),
        )
        for one, used, there_us in zip(nodes, uses, attested, strict=True)
    ]


def _attested(one: NodeFacts, gpu_us: int) -> tuple[Attested, ...]:
    if not gpu_us:
        return ()
    return (Attested(one.hardware_class, one.tier, gpu_us, one.promised_us),)


def _rows(lane: LaneTotals) -> Iterable[tuple[Any, ...]]:
    return zip(*(lane.columns[name].tolist() for name in FIELDS), strict=True)
