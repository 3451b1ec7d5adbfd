"""Rows of several questions side by side, some nodes at a time, in order of nodes.

    rows of all slices together == all rows;    the rows of one node are in one slice

Each question gives the node first and is in order of it. None is read further than its next
`ROWS_MAX` rows or some times as many, so that what is in memory does not grow with the fleet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

ROWS_MAX = 4_096
"""Rows of one question in one slice, times how many a node commonly has there, unless a single node
has more."""

Row = tuple[Any, ...]
NARROW: Mapping[int, int] = {}
_NODE = itemgetter(0)


class Source(Protocol):
    """Where rows come from, the next ones at each call; fewer than asked for: there are no more."""

    def fetchmany(self, size: int, /) -> Sequence[Row]: ...


class Known:
    """Rows that are in memory already, in any order."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = iter(sorted(rows, key=_NODE))

    def fetchmany(self, size: int, /) -> Sequence[Row]:
        return list(islice(self._rows, size))


class _Stream:
    def __init__(self, source: Source, width: int) -> None:
        self._source = source
        self._rows: list[Row] = []
        self._room = self._step = ROWS_MAX * width
        self._is_over = False

    def fill(self) -> None:
        wanted = self._room - len(self._rows)
        if wanted > 0 and not self._is_over:
            more = self._source.fetchmany(wanted)
            self._is_over = len(more) < wanted
            self._rows += more

    def last(self) -> str | None:
        """The node whose rows may go on behind those that were read; None: all were read."""
        return None if self._is_over else str(self._rows[-1][0])

    def take(self, before: str | None) -> list[Row]:
        """The rows of nodes before this one; None: all."""
        rows = self._rows
        end = len(rows) if before is None else bisect_left(rows, before, key=_NODE)
        self._rows = rows[end:]
        return rows[:end]

    def widen(self) -> None:
        """One node has more rows than fit."""
        self._room += self._step


def sliced(
    sources: Sequence[Source], widths: Mapping[int, int] = NARROW
) -> Iterator[list[list[Row]]]:
    """The rows of each source for the next nodes, until all are read. None of it is a slice of no
    rows, but where there are none at all. `widths`: how many rows a node commonly has in the source
    at a place, which is 1 where nothing is told: slices are not smaller for it.
    """
    streams = [_Stream(source, widths.get(place, 1)) for place, source in enumerate(sources)]
    while True:
        for stream in streams:
            stream.fill()
        lasts = [last for stream in streams if (last := stream.last()) is not None]
        before = min(lasts, default=None)
        taken = [stream.take(before) for stream in streams]
        if any(taken):
            yield taken
        if before is None:
            return
        if not any(taken):
            for stream in streams:
                if stream.last() == before:
                    stream.widen()
