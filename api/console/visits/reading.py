"""How a page asks the API: the same operations, in the same process, as the session's principal.

    what the API refuses the principal, the page is refused

No network, no key and no second set of rules: the call passes the API's own door. Each answer says
which position of the log it reflects, and the reader remembers them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from api.console.front import Asgi
from api.console.visits.files import Written
from api.door import errors
from api.door.auth import IN_PROCESS, PUBLIC, Principal
from api.door.limits import SPEND, Spent
from api.door.positions import POSITION

logger = logging.getLogger(__name__)

Told = dict[str, Any]
Value = str | int | bool | None

_PATH = re.compile(r"/readyz|/v1/[0-9A-Za-z_.:~@+=/-]{1,400}")
_LAST_RESORT = {"code": "internal_error", "title": "Internal error"}


class Refused(Exception):
    """The API answered with a problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{problem.get('title', status)}: {problem.get('detail', '')}")
        self.status = status
        self.problem = problem

    @property
    def code(self) -> str:
        return str(self.problem.get("code", "internal_error"))

    @property
    def detail(self) -> str:
        """The sentence for a person, without the fields."""
        return str(self.problem.get("detail") or self.problem.get("title", ""))

    @property
    def ends_visit(self) -> bool:
        """Whether no form can be shown with it: the reader is unknown, or may not see what it is
        about, or there is no such thing.
        """
        return self.status in (401, 403, 404)


def refused(code: str, detail: str = "") -> Refused:
    """A refusal of the page itself, by one of the API's codes."""
    found = errors.problem(code, detail)
    return Refused(found.status, found.document("", ""))


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer as it was sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Reader:
    """Calls of one visit. `positions` are those that the answers so far reflect.

    A visitor who is not signed in pays a token of the address for each call, as for the same calls
    over the network: the first is paid with the page. One who is pays with the key's bucket.
    """

    def __init__(self, app: Asgi, outer: Mapping[str, Any], principal: Principal) -> None:
        self._app, self._outer, self.principal = app, outer, principal
        self.positions: set[int] = set()
        self._is_paid = True

    def _pay(self) -> None:
        """Raises Refused: the bucket of the address is empty."""
        if self._is_paid or self.principal.kind != PUBLIC:
            self._is_paid = False
            return
        spend: Callable[[], Spent] | None = self._outer["state"].get(SPEND)
        if spend is not None and not spend().allowed:
            raise refused("rate_limited", "your address calls too often; wait some seconds")

    async def read(self, path: str, **query: Value) -> Told:
        """The answer of a GET. Raises Refused."""
        found = await self.fetch("GET", path, query)
        told: Told = json.loads(found.body)
        return told

    async def record(self, method: str, path: str, body: Told, headers: Mapping[str, str]) -> Told:
        """The answer of a call that may record facts. Raises Refused."""
        found = await self.fetch(method, path, {}, headers, json.dumps(body).encode())
        return json.loads(found.body) if found.body else {}

    async def fetch(
        self,
        method: str,
        path: str,
        query: Mapping[str, Value],
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Fetched:
        """An answer with its headers, of 300 at most. Raises Refused."""
        _require_plain(path)
        self._pay()
        asked = {name: _written(value) for name, value in query.items() if value is not None}
        named = {} if body is None else {"content-type": "application/json"}
        named |= {name.lower(): value for name, value in (headers or {}).items()}
        scope = self._scope(method, path, urlencode(asked), named)
        found = await _called(self._app, scope, body or b"")
        if POSITION.lower() in found.headers and method == "GET":
            self.positions.add(int(found.headers[POSITION.lower()]))
        if found.status >= 300:
            raise Refused(found.status, _problem(found.body))
        return found

    async def begin(self, path: str) -> Written:
        """A file of which nothing but the headers is read yet. Raises Refused."""
        _require_plain(path)
        self._pay()
        found = Written(self._app, self._scope("GET", path, "", {}))
        try:
            await found.begin()
            if found.status >= 300:
                raise Refused(found.status, _problem(await found.whole()))
        except BaseException:
            await found.close()
            raise
        return found

    def _scope(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> Told:
        written = [(name.encode(), value.encode()) for name, value in headers.items()]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": self._outer.get("scheme", "http"),
            "method": method,
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"console"), *written],
            "client": self._outer.get("client"),
            "server": self._outer.get("server"),
            "state": {"request_id": self._outer["state"]["request_id"]},
            IN_PROCESS: self.principal,
        }


def _require_plain(path: str) -> None:
    """Raises Refused: an address that no operation of the API has."""
    if _PATH.fullmatch(path) is None or ".." in path:
        raise refused("not_found")


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(body: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return _LAST_RESORT
    return told if isinstance(told, dict) else _LAST_RESORT


async def _called(app: Asgi, scope: Told, body: bytes) -> Fetched:
    """The whole answer of one call. What fails before it answers has answered 500."""
    status, headers, parts = 500, dict[str, str](), list[bytes]()
    is_told, is_over = False, asyncio.Event()

    async def receive() -> Told:
        nonlocal is_told
        if is_told:
            # A file that is written while it is read would stop at a caller that is gone.
            await is_over.wait()
            return {"type": "http.disconnect"}
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Told) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers.update((n.decode().lower(), v.decode("latin-1")) for n, v in message["headers"])
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                is_over.set()

    try:
        await app(scope, receive, send)
    except Exception:
        logger.exception("a call of a page failed: %s %s", scope["method"], scope["path"])
        status = 500
    return Fetched(status, headers, b"".join(parts))
