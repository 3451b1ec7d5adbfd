"""The fleet in the memory of one process: kept up to the log, asked by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from projections.runner import Connection

if TYPE_CHECKING:
    from projections.market.columns import Columns
    from projections.market.feed import Feed

T = TypeVar("T")


class FleetMemory:
    """Safe to use from many threads. The first question reads the whole fleet, and imports what it
    is kept with: NumPy would be a tenth of a server's start.
    """

    def __init__(self) -> None:
        self._feed: Feed | None = None
        self._lock = threading.Lock()

    def ask(
        self, connection: Connection, question: Callable[[Columns, int], T], *, follow: bool = True
    ) -> T:
        """What the question finds in the columns at the position they are given with.

        `follow` False: as they were at the last question, if there was one.
        """
        with self._lock:
            if self._feed is None:
                from projections.market.feed import Feed

                self._feed = Feed.empty()
            if follow or self._feed.position < 0:
                self._feed.follow(connection)
            return question(self._feed.columns, self._feed.position)
