"""Lists, page by page: opaque cursors that only this server can make.

    pages joined == the list at the first page's position        where the source keeps history
    the list with order=desc == the list with order=asc, reversed

A cursor seals version, principal, filters and order, the last key and the first page's position
with an HMAC: changed, or used by another caller, with other filters or in the other direction, it
is refused. No offsets, no totals. `order=asc` is the default: what is written while a reader walks
comes at the end. `since` leaves what the log recorded before a moment.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import Depends, Query
from starlette.requests import Request

from api.door.errors import Problem
from api.door.models import Digits, MomentQuery
from api.process import secret_files
from projections.read import OLDEST, Way

LIST_LIMIT = 50
LIMIT_MAX = 500
VERSION = 1
_MAC_BYTES = 16

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX), Digits]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=2_000, description="`next_cursor` of the page before"),
]
LAST = 2**62
"""Above every key of a list."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller asks of a list by position: its direction, and from when on."""

    newest: bool = False
    since_us: int | None = None


Since = Annotated[MomentQuery, Query(description="Only what was recorded from this moment on.")]


def _order(
    order: Annotated[
        Literal["asc", "desc"], Query(description="`desc`: the newest first.")
    ] = "asc",
    since: Since = None,
) -> Order:
    return Order(order == "desc", since)


def _direction(
    order: Annotated[
        Literal["asc", "desc"], Query(description="`desc`: the highest first.")
    ] = "asc",
) -> Order:
    return Order(order == "desc")


def _newest(
    order: Annotated[
        Literal["asc", "desc"], Query(description="`asc`: the oldest first.")
    ] = "desc",
    since: Since = None,
) -> Order:
    return _order(order, since)


InOrder = Annotated[Order, Depends(_order)]
"""Of a list in the order of the log."""
NewestFirst = Annotated[Order, Depends(_newest)]
"""Of a list in the order of the log that is told from its end where nothing else is asked."""
ByNumber = Annotated[Order, Depends(_direction)]
"""Of a list by a number of its own, such as an epoch: it has no moment to begin at."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after this key, at the first page's position (None: this is it)."""

    after: list[Any]
    first_position: int | None
    way: Way = OLDEST


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
