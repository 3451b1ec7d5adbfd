"""What one connection may cost before anybody knows who it is: bytes of a head, time for a request.

    connections of a process <= CONNECTIONS_MAX, and half of the files that it may open
    connections of one address <= ADDRESS_CONNECTIONS_MAX      unless a proxy brings all of them
    a request whose body has not come is not begun, unless it is longer than BODY_HELD_BYTES
    head, trailers and framing of a request <= 64 KiB + what its body may take
    seconds from a request's first byte to its last <= 15 + bytes received / 8 KiB

uvicorn's own protocol has none of these bounds: a stranger could send headers until memory ends, or
hold connections open by sending nothing. What the door and usage ingest bound stays theirs: the
body.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from api.door.limits import bucket_of

HEAD_BYTES_MAX = 65_536
HEADERS_MAX = 100
MESSAGE_BYTES_MAX = 8 * 1_048_576
"""A body of 1 MiB in chunks of one byte, and some more."""
CONNECTIONS_MAX = 4_096
ADDRESS_CONNECTIONS_MAX = 512
BODY_HELD_BYTES = 32_768
"""As long as no more of a body has come, the request waits for the rest of it before it begins."""
REQUEST_SECONDS_MAX = 15.0
BYTES_PER_SECOND_MIN = 8_192


_open: Counter[str] = Counter()
"""Connections of this process by address, as rate limits count addresses."""


def _files_max() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS_MAX * 2 if limit == resource.RLIM_INFINITY else limit


def raise_files_max() -> None:
    """As many files as the machine lets this process open: most systems begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS_MAX
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn speaks it; a request that goes beyond a bound ends its connection."""

    _address = ""
    _in_head = True
    _head_bytes = 0
    _message_bytes = 0
    _began_s = 0.0
    _deadline: asyncio.TimerHandle | None = None
    _held: tuple[RequestResponseCycle, Any] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = bucket_of(self.client[0]) if self.client else ""
        _open[self._address] += 1
        if self._is_one_too_many():
            transport.abort()  # nothing is answered: whoever opens so many reads no answers
            return
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._held = None
        _open[self._address] -= 1
        if not _open[self._address]:
            del _open[self._address]
        super().connection_lost(exc)

    def _is_one_too_many(self) -> bool:
        if _open.total() > min(CONNECTIONS_MAX, _files_max() // 2):
            return True
        is_proxys = self.config.proxy_headers
        return not is_proxys and _open[self._address] > ADDRESS_CONNECTIONS_MAX

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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Held back until its body is there: who opens a thousand requests and ends none costs
        their connections alone. Who asks whether to go on is answered.
        """
        if cycle is self.cycle and self._is_body_to_come(cycle):
            self._held = cycle, app
            return
        super()._start_asgi_task(cycle, app)

    def _is_body_to_come(self, cycle: RequestResponseCycle) -> bool:
        if cycle.waiting_for_100_continue or not cycle.more_body:
            return False
        for name, value in self.headers:
            if name == b"content-length":
                return value.isdigit() and 0 < int(value) <= MESSAGE_BYTES_MAX
            if name == b"transfer-encoding":
                return True
        return False

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self._held is not None and len(self.cycle.body) > BODY_HELD_BYTES:
            self._start_held()

    def on_message_complete(self) -> None:
        self._end()
        super().on_message_complete()
        self._start_held()

    def _start_held(self) -> None:
        if self._held is not None:
            (cycle, app), self._held = self._held, None
            super()._start_asgi_task(cycle, app)

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
