"""A client of an application in this process: Starlette's, with one hop to the loop for a call.

Starlette's own way to the application crosses between the thread of the test and the thread of
the event loop about eight times a call, so that an answer can be read while it is written; that
took most of the processor time of a small call. Here the loop runs the whole call and hands over
the whole answer. An answer that never ends is never told: no route of ours has one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

import anyio
import httpx2 as httpx
from anyio.from_thread import BlockingPortal
from starlette.testclient import TestClient

ASGI = {"version": "3.0", "spec_version": "2.3"}
CLIENT = ("testclient", 50_000)


class InProcess(TestClient):
    """Calls of any thread to `app`; while it is entered, the application's lifespan runs.

    An application that fails before it answers has answered 500, as a server does it.
    """

    __test__ = False

    def __init__(self, app: Any, *, client: tuple[str, int] = CLIENT, **options: Any) -> None:
        super().__init__(app, raise_server_exceptions=False, client=client, **options)
        self._transport = _OneHop(self, client)


class _OneHop(httpx.BaseTransport):
    """Hands each request to the event loop of its client."""

    def __init__(self, http: InProcess, client: tuple[str, int]) -> None:
        self.http = http
        self.client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        scope, body = self._scope(request), request.read()
        loop: AbstractContextManager[BlockingPortal] = self.http._portal_factory()
        with loop as portal:
            status, headers, content = portal.call(_answer, self.http.app, scope, body)
        told = b"" if request.method == "HEAD" else content
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(told))

    def _scope(self, request: httpx.Request) -> dict[str, Any]:
        url = request.url
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        return {
            "type": "http",
            "asgi": ASGI,
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(url.path),
            "raw_path": url.raw_path.split(b"?", 1)[0],
            "root_path": "",
            "scheme": url.scheme,
            "query_string": url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": self.client,
            "server": [url.host, port],
            "state": self.http.app_state.copy(),
        }


async def _answer(
    app: Any, scope: dict[str, Any], body: bytes
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Run one call to its end: its status, headers and content."""
    start: dict[str, Any] = {}
    content: list[bytes] = []
    told, complete = False, anyio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal told
        if told:
            await complete.wait()
            return {"type": "http.disconnect"}
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        assert not complete.is_set(), "nothing is sent after the last part"
        if message["type"] == "http.response.start":
            assert not start, "an answer starts once"
            start.update(message)
            return
        assert message["type"] == "http.response.body"
        assert start, "an answer starts before its body"
        content.append(message.get("body", b""))
        if not message.get("more_body", False):
            complete.set()

    try:
        await app(scope, receive, send)
    except Exception:
        if not start:
            return 500, [], b""
    assert start, "the application answers"
    assert complete.is_set(), "an answer comes to its end"
    return start["status"], list(start["headers"]), b"".join(content)


__all__ = ["InProcess"]
