"""Lists, page by page: opaque cursors that only this server can make.

    pages joined == the list at the first page's position        where the source keeps history

A cursor seals version, principal, filters, the last key and the first page's position with an
HMAC: changed, or used by somebody else or with other filters, it is refused. No offsets, no totals.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Query
from starlette.requests import Request

from api.door.errors import Problem
from api.door.models import Digits
from api.process import secret_files
from domain.record import dataclass

LIST_LIMIT = 50
LIMIT_MAX = 500
VERSION = 1
_MAC_BYTES = 16

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX), Digits]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=2_000, description="`next_cursor` of the page before"),
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after this key, at the first page's position (None: this is it)."""

    after: list[Any]
    first_position: int | None


class Cursors:
    """Makes and reads cursors under one server key."""

    def __init__(self, server_key: bytes) -> None:
        self._key = secret_files.derive(server_key, "cursor/v1")

    def make(self, request: Request, principal: str, after: list[Any], position: int) -> str:
        """The cursor of the page after this one."""
        told = [VERSION, principal, _filters(request), after, position]
        body = json.dumps(told, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(body) + body).decode().rstrip("=")

    def read(self, request: Request, principal: str, cursor: str | None, zero: list[Any]) -> Place:
        """Raises Problem: 400 cursor_invalid."""
        if cursor is None:
            return Place(zero, None)
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _invalid() from None
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body)):
            raise _invalid()
        version, who, filters, after, position = json.loads(body)
        if (version, who, filters) != (VERSION, principal, _filters(request)):
            raise _invalid()
        assert len(after) == len(zero), (after, zero)
        return Place(after, position)

    def _mac(self, body: bytes) -> bytes:
        return hmac.new(self._key, body, hashlib.sha256).digest()[:_MAC_BYTES]


def next_link(request: Request, cursor: str) -> str:
    """The value of a Link header to the next page."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    query = urlencode([*kept, ("cursor", cursor)], quote_via=quote)
    return f'<{request.url.path}?{query}>; rel="next"'


def _filters(request: Request) -> str:
    """Hash of the path and of every parameter but the page's own."""
    kept = sorted(
        pair for pair in request.query_params.multi_items() if pair[0] not in ("cursor", "limit")
    )
    return hashlib.sha256(json.dumps([request.url.path, kept]).encode()).hexdigest()[:32]


def _invalid() -> Problem:
    return Problem(400, "cursor_invalid", "not a cursor of this list, or of another caller")
