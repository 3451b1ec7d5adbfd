"""The door every call passes, in one order: size, form, caller, scope, rate, parameters, key.

Only then does the framework read the fields and the endpoint run. Nothing is decided here about
the marketplace, and nothing has been recorded when a call is turned away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from api import auth, errors
from api.auth import KEY, NODE, Authenticator, Principal
from api.call import Call
from api.errors import Problem
from api.idempotency import key_of
from api.limits import Buckets
from api.models import LIST_MAX
from api.operation import Operation
from api.service import Service
from domain.nesting import is_too_deep

BODY_BYTES_MAX = 1_048_576
DEPTH_MAX = 16
AS_OF = frozenset({"as_of", "as_of_position"})

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Door(APIRoute):
    """A route that lets nobody in who has not passed."""

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()
        operation: Operation = self.endpoint.operation  # type: ignore[attr-defined]
        known = frozenset(_parameters(self.dependant))

        async def handler(request: Request) -> Response:
            try:
                request.state.call = await _admit(request, operation, known)
                return await inner(request)
            except Exception as error:
                found = errors.of_failure(error)
                if found is None:
                    raise
                raise found from error

        return handler


def _parameters(dependant: Dependant) -> set[str]:
    """The query parameters an operation reads, by the names on the wire."""
    found = {param.alias for param in dependant.query_params}
    return found.union(*(_parameters(inner) for inner in dependant.dependencies))


async def _admit(request: Request, operation: Operation, known: frozenset[str]) -> Call:
    app = request.app.state
    service: Service = app.service
    body = await _body(request, operation)
    principal = await _principal(app.authenticator, request.headers.get("authorization"))
    auth.admit(operation.access, principal)
    _spend(request, app.key_buckets, principal)
    _check_parameters(request, known)
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


async def _principal(authenticator: Authenticator, header: str | None) -> Principal:
    known = authenticator.remembered(header)
    if known is not None:
        return known
    return await run_in_threadpool(authenticator.authenticate, header)


def _spend(request: Request, buckets: Buckets, principal: Principal) -> None:
    if principal.kind not in (KEY, NODE):
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
    """The raw body, and for JSON its value, read strictly. Raises Problem."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > BODY_BYTES_MAX:
        raise _too_large()
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > BODY_BYTES_MAX:
            raise _too_large()
    request._body = raw
    if operation.method == "POST" and operation.media_type == "application/json":
        _check_media_type(request)
        request._json = parse(raw)
    return raw


def _too_large() -> Problem:
    # What was not read must not be taken for the next request.
    return errors.problem("too_large", f"at most {BODY_BYTES_MAX} bytes", Connection="close")


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


def parse(raw: bytes) -> Any:
    """JSON read strictly: UTF-8, no key twice, bounded depth and lists, no NUL, whole characters.

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
    _check(value, "#", 0)
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


def _check(value: Any, pointer: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise _malformed(f"more than {DEPTH_MAX} levels deep", pointer)
    if isinstance(value, str):
        _check_text(value, pointer)
    elif isinstance(value, list):
        if len(value) > LIST_MAX:
            raise _malformed(f"a list has at most {LIST_MAX} items", pointer)
        for index, item in enumerate(value):
            _check(item, f"{pointer}/{index}", depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_text(name, pointer)
            _check(item, f"{pointer}/{name[:80]}", depth + 1)


def _check_text(text: str, pointer: str) -> None:
    """What PostgreSQL and UTF-8 can hold."""
    if "\0" in text:
        raise _malformed("a NUL character", pointer)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _malformed("half of a character", pointer)


def _malformed(rule: str, pointer: str = "#") -> Problem:
    return Problem(400, "malformed_json", rule, errors=({"pointer": pointer, "detail": rule},))
