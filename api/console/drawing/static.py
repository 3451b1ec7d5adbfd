"""Style and script of the pages: served from here, under a name that changes with their bytes.

the same address  =>  the same bytes, so a browser keeps them for a year
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parents[1] / "static"
PATH = "/static/"
FILES = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "verify.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
KEPT = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent."""

    media_type: str
    plain: bytes
    packed: bytes
    mark: str


@cache
def _files() -> dict[str, File]:
    found = {}
    for name, media_type in FILES.items():
        plain = (FOLDER / name).read_bytes()
        packed = gzip.compress(plain, 9, mtime=0)
        found[name] = File(media_type, plain, packed, hashlib.sha256(plain).hexdigest()[:16])
    return found


def address(name: str) -> str:
    """Where a file is."""
    return f"{PATH}{_files()[name].mark}/{name}"


def answer(request: Request) -> Response | None:
    """The file of this request; None: there is none of this name and these bytes."""
    mark, _, name = request.url.path.removeprefix(PATH).partition("/")
    found = _files().get(name)
    if found is None or mark != found.mark or request.method not in ("GET", "HEAD"):
        return None
    headers = {"Cache-Control": KEPT, "Vary": "Accept-Encoding"}
    body = found.plain
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], body = "gzip", found.packed
    return Response(body, headers=headers, media_type=found.media_type)
