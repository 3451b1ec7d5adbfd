"""A live cut settled in bounded memory: read some nodes at a time, a lane each, by processes.

    settled == settle(all nodes of the cut), to the byte of its files

A small epoch is settled here, in memory. One of more than `FEW` lanes is settled by processes, and
what their steps leave for each other lies in a folder that is gone afterwards: the process that
seals, which may answer requests beside it, reads and adds up. Whatever ends it, the next one begins
anew with an empty folder.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, islice
from pathlib import Path

from domain.epochs.lanes import Map, Memory, SettledLanes, Store, settle_lanes
from domain.epochs.settlement import CutHead
from ledger.fan_out.choice import opened
from ledger.fan_out.folder import Folder
from ledger.fan_out.processes import usable
from projections.epochs.cut_nodes import nodes_of, uses_of
from projections.epochs.cut_rows import CutRows, read_rows
from projections.runner import Connection

FEW = 8
"""Lanes for which it does not pay to start processes."""
PROCESSES_MAX = 4
"""More are not kept busy by the one process that reads."""


@contextmanager
def settled_by_lanes(
    connection: Connection, head: CutHead, *, development: bool, folder: Path
) -> Generator[SettledLanes, None, None]:
    """What the closed epoch of a cut pays; its files can be read within the context.

    Raises Refused: DUPLICATE_ID, NEGATIVE_WEIGHT; WorkLost.
    """
    shutil.rmtree(folder, ignore_errors=True)
    rows = read_rows(connection, head.epoch, head.cut_position, development=development)
    with closing(rows) as lanes, ExitStack() as stack:
        first = deque(islice(lanes, FEW + 1))
        apply: Map = map
        store: Store = Memory()
        if len(first) > FEW:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            stack.callback(shutil.rmtree, folder)
            processes = opened(f"processes:{min(usable(), PROCESSES_MAX)}")
            apply, store = stack.enter_context(processes).map, Folder(folder)
        taken = chain(_taken(first), lanes)
        yield settle_lanes(head, taken, nodes_of, uses_of=uses_of, apply=apply, store=store)


def _taken(first: deque[CutRows]) -> Iterator[CutRows]:
    """One after the other, and none is kept."""
    while first:
        yield first.popleft()
