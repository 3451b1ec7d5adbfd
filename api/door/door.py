"""The door every call passes, in one order: size, caller, scope, rate, form, parameters, key.

Only then does the framework read the fields and the endpoint run. Nothing is decided here about
the marketplace, and nothing has been recorded when a call is turned away. What takes longer than
`REQUEST_SECONDS_MAX` is answered 503 and goes on by itself: an append is never cut short.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence, Sized
from functools import cached_property
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from api.door import auth, errors, positions, unverified
from api.door.auth import EXECUTOR, KEY, NODE, PUBLIC, Authenticator, Principal
from api.door.call import Call
from api.door.errors import Problem
from api.door.http_bounds import BODY_HELD_BYTES
from api.door.idempotency import key_of
from api.door.limits import Buckets, bucket_of
from api.door.lines import entrance
from api.door.lines.turns import Waiting, caller_of, keys_of, stranger_at
from api.door.models import LIST_MAX
from api.door.operation import Operation
from api.process.service import Service
from domain.nesting import is_too_deep
from ledger.log.full_disk import DISK

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 1_048_576
STRANGER_BYTES_MAX = 65_536
"""JSON of callers without a key: the inventory of 64 devices fits twice."""
VALUES_MAX = 10_000
"""Values in one body: a check of fields makes an error of each, and strangers choose the body.
In proportion where longer lists are taken (`items_max` of an operation).
"""
DEPTH_MAX = 16
REQUEST_SECONDS_MAX = 15.0
"""From the last byte of a request to the first of its answer."""
AS_OF = frozenset({"as_of", "as_of_position"})

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Way(BaseRoute):
    """The way to one operation; its door is made when the first request comes that may be for it.

    Hundreds of doors take longer to make than everything else at a start.
    """

    def __init__(self, path: str, make: Callable[[], Door]) -> None:
        self._beginning = path.partition("{")[0]
        self.words = words = path.split("/")  # a parameter holds no slash
        self._length = len(words)
        self._fixed = [(at, word) for at, word in enumerate(words) if "{" not in word]
        self._make = make

    @cached_property
    def door(self) -> Door:
        """Made once."""
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As the door's; most of the hundreds are told apart by how their path looks, so that a
        request imports the files of its own operation and of no other.
        """
        path = scope["path"]
        if not scope.get("root_path"):
            if not path.startswith(self._beginning):
                return Match.NONE, {}
            words = path.split("/")
            if len(words) != self._length or any(words[at] != word for at, word in self._fixed):
                return Match.NONE, {}
        return self.door.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.door.handle(scope, receive, send)


class Ways(BaseRoute):
    """All ways, as one route: a request looks at those of the length of its path whose `WORD` is
    its own, and not at hundreds.
    """

    WORD = 2
    """"/v1/leases/{lease_id}" is told by "leases"."""
    _FOUND = "tallystick.way"

    def __init__(self, ways: Sequence[Way]) -> None:
        assert all("{" not in way.words[self.WORD] for way in ways)
        self._all = ways
        self._alike: dict[tuple[int, str], list[Way]] = {}
        for way in ways:
            self._alike.setdefault((len(way.words), way.words[self.WORD]), []).append(way)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """The first way that a request is for; else the first whose path it has."""
        partly: tuple[Match, Scope] = Match.NONE, {}
        for way in self._all if scope.get("root_path") else self._of(scope["path"]):
            match, found = way.matches(scope)
            if match == Match.FULL:
                return match, {**found, self._FOUND: way}
            if match == Match.PARTIAL and partly[0] == Match.NONE:
                partly = match, {**found, self._FOUND: way}
        return partly

    def _of(self, path: str) -> Sequence[Way]:
        words = path.split("/", 64)
        return self._alike.get((len(words), words[self.WORD]), ()) if len(words) > self.WORD else ()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[self._FOUND].handle(scope, receive, send)


class Door(APIRoute):
    """A route that lets nobody in who has not passed."""

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()
        operation: Operation = self.endpoint.operation  # type: ignore[attr-defined]
        known = frozenset(_parameters(self.dependant))

        async def handler(request: Request) -> Response:
            try:
                body = await _body(request, operation)
                return await _in_time(serve(request, body))
            except Exception as error:
                DISK.notice(error)
                found = errors.of_failure(error)
                if found is None:
                    raise
                raise found from error

        async def serve(request: Request, body: bytes) -> Response:
            principal = await _known(request, operation, known)
            caller = caller_of(principal, _address(request))
            turns: Waiting = request.app.state.turns
            entrance.leave(request.scope)
            async with turns.turn(caller, request.receive, body_bytes=len(body)) as at_work:
                request.state.at_work = at_work
                request.state.call = await _admit(request, body, operation, principal)
                return await inner(request)

        return handler


_left_alone: set[asyncio.Task[Response]] = set()
"""What nobody waits for any more, kept until it is done."""


async def _in_time(work: Coroutine[Any, Any, Response]) -> Response:
    """Its answer, or 503 while it goes on. Raises Problem."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=REQUEST_SECONDS_MAX)
    if done:
        return task.result()
    _left_alone.add(task)
    task.add_done_callback(_forget)
    raise errors.problem("timed_out", Retry_After=str(errors.RETRY_AFTER_SECONDS))


def _forget(task: asyncio.Task[Response]) -> None:
    _left_alone.discard(task)
    error = None if task.cancelled() else task.exception()
    is_expected = isinstance(error, Exception) and errors.of_failure(error) is not None
    if error is not None and not is_expected and not isinstance(error, Problem):
        logger.error("a call that had timed out failed", exc_info=error)


def _parameters(dependant: Dependant) -> set[str]:
    """The query parameters an operation reads, by the names on the wire."""
    found = {param.alias for param in dependant.query_params}
    return found.union(*(_parameters(inner) for inner in dependant.dependencies))


async def _known(request: Request, operation: Operation, known: frozenset[str]) -> Principal:
    """Who asks, once all is looked at that costs nothing, and what a read waits for is there: a
    wait takes no turn of anybody.
    """
    app = request.app.state
    service: Service = app.service
    if service.settings.read_only and (operation.records or operation.method == "DELETE"):
        raise errors.problem("read_only")
    principal: Principal | None = request.scope.get(auth.IN_PROCESS)
    if principal is None:
        principal = await _principal(request, app.authenticator, app.turns)
    auth.admit(operation.access, principal)
    _spend(request, app.key_buckets, principal)
    _check_parameters(request, known)
    wanted = positions.min_position(request.headers) if operation.method == "GET" else None
    if wanted is not None:
        entrance.leave(request.scope)
        await app.heads.until(wanted)
    return principal


async def _admit(request: Request, body: bytes, operation: Operation, principal: Principal) -> Call:
    service: Service = request.app.state.service
    if unverified.is_asked(operation, principal):
        named, own = request.path_params.get("account_id"), principal.account_id
        await run_in_threadpool(unverified.require, service, operation, own, named)
    if len(body) > BODY_HELD_BYTES:  # tens of milliseconds, in which others go on
        await run_in_threadpool(_read_form, request, operation, body)
    else:
        _read_form(request, operation, body)
    key = key_of(request.headers) if operation.records else None
    return Call(
        service=service,
        request=request,
        principal=principal,
        operation=operation,
        key=key,
        body=body,
        now_us=service.clock.now_us(),
        account=principal.account_id,
    )


async def _principal(request: Request, authenticator: Authenticator, turns: Waiting) -> Principal:
    """Who has the key. It is looked up in a line for the keys of its last caller, whose requests
    wait in another, and one that was never good in a line for the keys of its address: who guesses
    keys delays nobody elsewhere, and who asks without one delays no look-up.
    """
    header = request.headers.get("authorization")
    known = authenticator.remembered(header)
    if known is not None:
        return known
    entrance.leave(request.scope)
    line = keys_of(authenticator.caller(header) or stranger_at(_address(request)))
    async with turns.turn(line, request.receive):
        known = authenticator.remembered(header)  # who went before may have asked for it
        if known is not None:
            return known
        found: Principal = await run_in_threadpool(authenticator.authenticate, header)
        return found


def _address(request: Request) -> str:
    client = request.scope.get("client")
    return bucket_of(client[0]) if client else ""


def _spend(request: Request, buckets: Buckets, principal: Principal) -> None:
    if principal.kind not in (KEY, NODE, EXECUTOR):
        return
    spent = buckets.spend(f"{principal.account_id}/{principal.key_id}")
    request.state.rate_limit = spent
    if not spent.allowed:
        raise Problem(429, "rate_limited", headers=spent.headers())


def _check_parameters(request: Request, known: frozenset[str]) -> None:
    """An unknown filter would be an answer to another question; NUL no database can look for."""
    for name, value in request.query_params.multi_items():
        if name in AS_OF - known:
            raise errors.problem("as_of_unsupported", "this operation answers for now only")
        if name not in known:
            raise errors.problem("parameter_unknown", f"there is no parameter {name[:80]!r}")
        if "\0" in value:
            where = {"pointer": f"#/query/{name}", "detail": "a NUL character"}
            raise Problem(422, "invalid", f"{name}: a NUL character", errors=(where,))
    names = [name for name, _ in request.query_params.multi_items()]
    if len(set(names)) != len(names):
        raise errors.problem("parameter_unknown", "a parameter is given twice")


# --- the body --------------------------------------------------------------------------------


async def _body(request: Request, operation: Operation) -> bytes:
    """The raw body, nothing of it looked at. Raises Problem."""
    is_strangers = PUBLIC in operation.access.audiences and _is_json(operation)
    most = STRANGER_BYTES_MAX if is_strangers else BODY_BYTES_MAX
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    is_there = not {"transfer-encoding", "expect"}.intersection(request.headers)
    if is_there and length.isdecimal() and int(length) <= BODY_HELD_BYTES:
        request._body = await _read(request, most)
        return request._body
    # A long one comes over a slow line, perhaps: nobody but the other long ones waits for it.
    entrance.leave(request.scope)
    bodies: entrance.Places = request.app.state.long_bodies
    authenticator: Authenticator = request.app.state.authenticator
    caller = authenticator.caller(request.headers.get("authorization"))
    try:
        # A stranger whose body never ends delays no account behind the same address.
        async with bodies.one(caller or stranger_at(_address(request))) as place:
            request._body = await _read(request, most)
            place.leave_after(len(request._body) / entrance.LONG_BODY_BYTES_PER_S)
    except entrance.Crowded:
        raise errors.too_many_at_once() from None
    return request._body


async def _read(request: Request, most: int) -> bytes:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > most:
            raise _too_large(most)
    return bytes(raw)


def _is_json(operation: Operation) -> bool:
    return operation.method == "POST" and operation.media_type == "application/json"


def _read_form(request: Request, operation: Operation, raw: bytes) -> None:
    """The value of a JSON body, read strictly: work that is done for callers who may ask for it.
    Raises Problem.
    """
    if _is_json(operation):
        _check_media_type(request)
        request._json = parse(raw, operation.items_max)


def _too_large(most: int) -> Problem:
    # What was not read must not be taken for the next request.
    return errors.problem("too_large", f"at most {most} bytes", Connection="close")


def _check_media_type(request: Request) -> None:
    media_type, _, rest = request.headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().replace('"', "")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if (
        media_type.strip().lower() != "application/json"
        or charset not in ("", "charset=utf-8")
        or encoding != "identity"
    ):
        raise errors.problem("unsupported_media_type")


def parse(raw: bytes, items_max: int = LIST_MAX) -> Any:
    """JSON read strictly: UTF-8, no key twice, bounded depth, width and number of values, no NUL,
    whole characters.

    Numbers that no field takes (fractions, NaN) are left for the field to refuse, by its name.
    Raises Problem: 400 malformed_json.
    """
    try:
        text = raw.decode("utf-8")
        if is_too_deep(text):
            raise _malformed(f"more than {DEPTH_MAX} levels deep")
        value = json.loads(text, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise _malformed("the body is not UTF-8") from None
    except RecursionError:
        raise _malformed(f"more than {DEPTH_MAX} levels deep") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise _malformed(str(error)[:200]) from None
    _Checked(items_max).check(value, "#", 0)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = iter(name for name, _ in pairs)
        seen: set[str] = set()
        while (name := next(names)) not in seen:
            seen.add(name)
        raise ValueError(f"the key {name[:80]!r} stands twice")
    return found


class _Checked:
    """One walk over a value, which counts what it has seen."""

    def __init__(self, items_max: int) -> None:
        self.values = 0
        self.items_max, self.values_max = items_max, VALUES_MAX * items_max // LIST_MAX

    def check(self, value: Any, pointer: str, depth: int) -> None:
        self.values += 1
        if self.values > self.values_max:
            raise _malformed(f"more than {self.values_max} values")
        if depth > DEPTH_MAX:
            raise _malformed(f"more than {DEPTH_MAX} levels deep", pointer)
        if isinstance(value, str):
            _check_text(value, pointer)
        elif isinstance(value, list):
            _check_width(value, pointer, self.items_max)
            for index, item in enumerate(value):
                self.check(item, f"{pointer}/{index}", depth + 1)
        elif isinstance(value, dict):
            _check_width(value, pointer)
            for name, item in value.items():
                _check_text(name, pointer)
                self.check(item, f"{pointer}/{name[:80]}", depth + 1)


def _check_width(value: Sized, pointer: str, items_max: int = LIST_MAX) -> None:
    if len(value) > items_max:
        raise _malformed(f"a list or an object has at most {items_max} items", pointer)


def _check_text(text: str, pointer: str) -> None:
    """What PostgreSQL and UTF-8 can hold, and no private key: the log forgets nothing."""
    if "\0" in text:
        raise _malformed("a NUL character", pointer)
    if "PRIVATE KEY-----" in text or text == "private_key":
        where = ({"pointer": pointer, "detail": "a private key"},)
        raise Problem(422, "private_key_sent", "the text is not kept or told", errors=where)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _malformed("half of a character", pointer)


def _malformed(rule: str, pointer: str = "#") -> Problem:
    return Problem(400, "malformed_json", rule, errors=({"pointer": pointer, "detail": rule},))
