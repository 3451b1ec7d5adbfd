"""A file of the API on its way to a browser: passed on while it is written.

    in memory of a file of any length: one piece, for as long as the browser takes to read it

So a slow reader of a page holds what a slow reader of the API holds, and the API's own bound on
files that are written at once counts both. A file that ends early ends the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

import anyio
from starlette.responses import StreamingResponse

from api.console.front import Asgi

logger = logging.getLogger(__name__)

Message = dict[str, Any]


class Written:
    """One call of the API, of which `begin` has the status and the headers, and `pieces` the rest.
    `close` ends it, whatever was read.
    """

    def __init__(self, app: Asgi, scope: Message) -> None:
        self._app, self._scope = app, scope
        self._to, self._from = anyio.create_memory_object_stream[Message](0)
        self._is_asked, self._is_over = False, asyncio.Event()
        self._call: asyncio.Task[None] | None = None
        self.status = 500
        self.headers: Mapping[str, str] = {}

    async def begin(self) -> None:
        """Ask. What fails before it answers has answered 500."""
        self._call = asyncio.create_task(self._work())
        try:
            start = await self._from.receive()
        except anyio.EndOfStream:
            return
        self.status = start["status"]
        self.headers = {n.decode().lower(): v.decode("latin-1") for n, v in start["headers"]}

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Raises ConnectionError: the file ended early."""
        async for message in self._from:
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return
        raise ConnectionError(f"{self._scope['path']} ended early")

    async def whole(self) -> bytes:
        """All of it, for an answer that is no file; empty: it never came."""
        return b"".join([message.get("body", b"") async for message in self._from])

    async def close(self) -> None:
        """Tell the call that its reader is gone, and wait until it has let go of what it holds."""
        self._is_over.set()
        self._from.close()
        if self._call is not None:
            await asyncio.wait({self._call})

    async def _work(self) -> None:
        async with self._to:
            try:
                await self._app(self._scope, self._receive, self._send)
            except Exception:
                logger.exception("a file of a page failed: %s", self._scope["path"])

    async def _receive(self) -> Message:
        if self._is_asked:
            await self._is_over.wait()
            return {"type": "http.disconnect"}
        self._is_asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        # That its reader is gone is what `_receive` says.
        with suppress(anyio.BrokenResourceError):
            await self._to.send(message)


class Passed(StreamingResponse):
    """The answer of a page that is such a file."""

    def __init__(self, written: Written, headers: Mapping[str, str]) -> None:
        super().__init__(written.pieces(), headers=headers)
        self._written = written

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._written.close()
