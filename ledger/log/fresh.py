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
from typing import Any, LiteralString
from uuid import UUID

from domain.stream import Stream
from ledger.log.market import Held, Market

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
        self._held: OrderedDict[Stream[Any], Held] = OrderedDict()
        self._streams: dict[UUID, Stream[Any]] = {}  # ids are hashes, and slow to make
        self._position = 0

    def refresh(self) -> None:
        """From here on no state is older than now."""
        head = self._market.head()[0]
        if head - self._position > GROWN_MAX:
            self._held.clear()
            self._streams.clear()
        elif head > self._position:
            for id_, version in self._market.datastore.tuples(_GROWN, (self._position, head)):
                stream = self._streams.get(id_)
                if stream is not None and self._held[stream].originator_version < version:
                    self._forget(stream)
        self._position = head

    def get(self, stream: Stream[Any], /) -> Held:
        """The state of a stream, loaded if it is not known."""
        held = self._held.get(stream)
        if held is None:
            held = self._market.load(stream)
            self._keep(stream, held)
        return held

    def prepare(self, streams: Iterable[Stream[Any]]) -> None:
        """Load those that are not known, together."""
        missing = [stream for stream in streams if stream not in self._held]
        if missing:
            for stream, held in self._market.load_many(missing).items():
                self._keep(stream, held)

    def _keep(self, stream: Stream[Any], held: Held) -> None:
        self._held[stream] = held
        self._streams[held.originator_id] = stream
        while len(self._held) > STREAMS_MAX:
            self._forget(next(iter(self._held)))

    def _forget(self, stream: Stream[Any]) -> None:
        del self._streams[self._held.pop(stream).originator_id]
