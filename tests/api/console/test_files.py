"""A file that a page passes on is in memory piece by piece, and lets go when its reader is gone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, StreamingResponse

from api.console.visits.files import Passed, Written
from api.console.visits.reading import Reader, Refused
from api.door.auth import ANYBODY

PIECES = 50
OUTER = {"state": {"request_id": "r"}}


class Api:
    """Writes a file of `PIECES`, and knows how many it wrote and whether it let go."""

    def __init__(self, *, breaks_at: int = PIECES + 1) -> None:
        self.written, self.is_over, self.breaks_at = 0, False, breaks_at

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/v1/refused":
            refusal = JSONResponse({"code": "busy", "detail": "another file"}, 503)
            await refusal(scope, receive, send)
            return
        if scope["path"] == "/v1/broken":
            raise RuntimeError("before it answers")
        pieces = self._pieces()
        try:
            await StreamingResponse(pieces)(scope, receive, send)
        finally:
            await pieces.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            while self.written < PIECES:
                self.written += 1
                if self.written == self.breaks_at:
                    raise RuntimeError("in the middle")
                yield b"x" * 1000
        finally:
            self.is_over = True


async def begun(api: Api, path: str = "/v1/file") -> Written:
    return await Reader(api, OUTER, ANYBODY).begin(path)


def test_a_file_is_read_no_faster_than_it_is_taken_and_ends_with_its_reader() -> None:
    async def work() -> None:
        api = Api()
        found = await begun(api)
        pieces, taken = found.pieces(), 0
        async for piece in pieces:
            taken += bool(piece)
            assert api.written <= taken + 2
            if taken == 5:
                break
        await found.close()
        assert api.is_over, "what it held is given back"
        assert api.written < 10

    anyio.run(work)


def test_a_browser_that_leaves_ends_the_file() -> None:
    async def work() -> None:
        api, sent = Api(), list[int]()

        async def send(message: Any) -> None:
            sent.append(len(message.get("body", b"")))
            if len(sent) == 4:
                raise OSError("the browser is gone")

        async def receive() -> Any:
            await anyio.sleep_forever()

        answer = Passed(await begun(api), {})
        scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
        with pytest.raises(ClientDisconnect):
            await answer(scope, receive, send)
        assert api.is_over
        assert api.written < 10

    anyio.run(work)


def test_half_a_file_is_no_file_and_a_refusal_is_one() -> None:
    async def work() -> None:
        found = await begun(Api(breaks_at=3))
        with pytest.raises(ConnectionError, match="ended early"):
            [piece async for piece in found.pieces()]
        await found.close()
        for path, status, code in (
            ("/v1/refused", 503, "busy"),
            ("/v1/broken", 500, "internal_error"),
            ("/v1/../file", 404, "not_found"),
        ):
            with pytest.raises(Refused) as refused:
                await begun(Api(), path)
            assert (refused.value.status, refused.value.code) == (status, code)

    anyio.run(work)
