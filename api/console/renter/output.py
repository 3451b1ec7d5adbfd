"""What the program of a lease printed: its end for a page, and all of it as a file."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from starlette.responses import Response, StreamingResponse

from api.console.visits.reading import Reader, Told
from api.console.visits.visit import Visit
from api.leasing.work import CHUNKS_MAX

LINES_MAX, TEXT_MAX = 200, 16_384
SEQ_END = 65_536
"""No lease keeps more pieces."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\n\t\x20-\x7e\xa0-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Output:
    """The end of what was printed, and the number of the piece that comes next."""

    text: str = ""
    next_seq: int = 0
    bytes: int = 0
    left_out: int = 0
    ended: bool = False
    exit_code: int | None = None


async def end_of(reader: Reader, lease_id: str) -> Output:
    """The last lines. A long log is halved until its end is found. Raises Refused."""
    told = await _pieces(reader, lease_id, 0)
    low, high = 0, SEQ_END
    while len(told["data"]) == CHUNKS_MAX and high - low > 1:
        middle = (low + high) // 2
        found = await _pieces(reader, lease_id, middle)
        if found["data"]:
            low, told = middle, found
        else:
            high = middle
    return _told(told)


def longer(text: str, printed: bytes) -> str:
    """The last lines of what a page shows, with what was printed since."""
    if not printed:
        return text
    text += _plain(printed)
    return "".join(text[-TEXT_MAX:].splitlines(keepends=True)[-LINES_MAX:])


async def download(visit: Visit) -> Response:
    """`/leases/{lease_id}/log.txt`: all that was printed and is kept."""
    lease_id = visit.params["lease_id"]
    first = await _pieces(visit.reader, lease_id, 0)
    return StreamingResponse(
        _all(visit.reader, lease_id, first),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{lease_id}.txt"'},
    )


async def _all(reader: Reader, lease_id: str, told: Told) -> AsyncGenerator[bytes, None]:
    while told["data"]:
        for one in told["data"]:
            yield base64.b64decode(one["body"])
        told = await _pieces(reader, lease_id, told["next_seq"])


async def _pieces(reader: Reader, lease_id: str, from_seq: int) -> Told:
    return await reader.read(f"/v1/leases/{lease_id}/log", from_seq=from_seq)


def _told(told: Told) -> Output:
    printed = b"".join(base64.b64decode(one["body"]) for one in told["data"])
    return Output(
        text=longer("", printed),
        next_seq=told["next_seq"],
        bytes=told["bytes"],
        left_out=told["left_out"],
        ended=told["ended"],
        exit_code=told.get("exit_code"),
    )


def _plain(printed: bytes) -> str:
    """Text without what moves a terminal's cursor or colours it."""
    return _CONTROL.sub("", printed.decode("utf-8", "replace").replace("\r\n", "\n"))
