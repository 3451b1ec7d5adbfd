"""States of many streams that are known to be current, without asking the log for each of them.

    state(stream) == what `Market.load` would have given when `refresh` was called last, or later

`Market.load` asks the log for what came after a state it knows, every time: right for one call,
and too much for rounds that look at the same accounts, nodes and lists again and again. Here one
query for each round names the streams that have grown, and only those are loaded again. A state
that is old all the same does no harm: the append names the versions it was decided on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import LiteralString
from uuid import UUID

from domain.stream import Stream
from ledger.market import Held, Market

STREAMS_MAX = 65_536
GROWN_MAX = 20_000
"""Facts looked through for what has grown; after a longer absence everything is loaded anew."""
_GROWN: LiteralString = (
    "SELECT originator_id, max(originator_version) FROM market_events"
    " WHERE notification_id > %s AND notification_id <= %s GROUP BY originator_id"
)


class FreshStates:
    """The states of one log's streams for one who asks again and again. Not for several threads."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._held: OrderedDict[UUID, Held] = OrderedDict()
        self._position = 0

    def refresh(self) -> None:
        """From here on no state is older than now."""
        head = self._market.head()[0]
        if head - self._position > GROWN_MAX:
            self._held.clear()
        elif head > self._position:
            for id_, version in self._market.datastore.tuples(_GROWN, (self._position, head)):
                held = self._held.get(id_)
                if held is not None and held.originator_version < version:
                    del self._held[id_]
        self._position = head

    def get(self, stream: Stream, /) -> Held:
        """The state of a stream, loaded if it is not known."""
        held = self._held.get(stream.uuid)
        if held is None:
            held = self._market.load(stream)
            self.add([held])
        return held

    def prepare(self, streams: Iterable[Stream]) -> None:
        """Load those that are not known, together."""
        missing = [stream for stream in streams if stream.uuid not in self._held]
        if missing:
            self.add(self._market.load_many(missing).values())

    def add(self, some: Iterable[Held]) -> None:
        """States as they were loaded, or as they stand after facts that were recorded."""
        for held in some:
            self._held[held.originator_id] = held
            self._held.move_to_end(held.originator_id)
        while len(self._held) > STREAMS_MAX:
            self._held.popitem(last=False)
