"""What one connection may cost before anybody knows who it is: bytes of a head, time for a request.

    head, trailers and framing of a request <= 64 KiB + what its body may take
    seconds from a request's first byte to its last <= 15 + bytes received / 8 KiB

uvicorn's own protocol has neither bound: a stranger could send headers until memory ends, or hold
connections open by sending nothing. What the door and usage ingest bound stays theirs: the body.
"""

from __future__ import annotations

import asyncio
import time

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 65_536
HEADERS_MAX = 100
MESSAGE_BYTES_MAX = 8 * 1_048_576
"""A body of 1 MiB in chunks of one byte, and some more."""
REQUEST_SECONDS_MAX = 15.0
BYTES_PER_SECOND_MIN = 8_192


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn speaks it; a request that goes beyond a bound ends its connection."""

    _in_head = True
    _head_bytes = 0
    _message_bytes = 0
    _began_s = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._begin()
        self._message_bytes += len(data)
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if self._in_head else 0
        if self._head_bytes > HEAD_BYTES_MAX or self._message_bytes > MESSAGE_BYTES_MAX:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers are dropped: nobody may add a header to a request that is being answered."""
        if not self._in_head:
            return
        if len(self.headers) >= HEADERS_MAX:
            raise ValueError("too many headers")  # the parser makes this a 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end()
        super().on_message_complete()

    def _begin(self) -> None:
        self._end()
        self._in_head, self._head_bytes, self._message_bytes = True, 0, 0
        self._began_s = time.monotonic()
        self._deadline = self.loop.call_later(REQUEST_SECONDS_MAX, self._look_at_the_clock)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look_at_the_clock(self) -> None:
        """A slow line may take longer, as long as something arrives."""
        allowed_s = REQUEST_SECONDS_MAX + self._message_bytes / BYTES_PER_SECOND_MIN
        left_s = self._began_s + allowed_s - time.monotonic()
        if left_s > 0:
            self._deadline = self.loop.call_later(left_s, self._look_at_the_clock)
        else:
            self._deadline = None
            self.transport.close()
