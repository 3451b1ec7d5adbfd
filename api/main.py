"""The application: every operation behind its door, usage ingest in front of the framework.

`create_app(service)` is what uvicorn serves. Wiring only: operations are declared in the resource
files. `index.py` says which there are and where; a resource file is imported with the first request
that may be for one of its room.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, get_type_hints

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response

from api import index, openapi_document
from api.door import errors, health
from api.door.auth import Authenticator
from api.door.door import Door, Way, Ways
from api.door.limits import SPEND, Buckets, Spent, bucket_of
from api.door.lines import entrance
from api.door.lines.turns import Waiting
from api.door.models import RequestModel
from api.door.operation import Operation
from api.door.paging import Cursors
from api.door.positions import MIN_POSITION, MIN_USAGE
from api.door.preconditions import IF_MATCH
from api.door.second_person import HEADER as SIGNATURES
from api.ingest.door import REPORTS_MAX, Asgi, Message, Receive, Scope, Send, fast, node_of
from api.ingest.node_keys import REFRESH_SECONDS
from api.process.service import Service
from api.process.waiting import HeadWait
from api.rooms import PAGES, RESOURCES
from api.telemetry import metrics
from api.telemetry.requests import observed

TITLE, VERSION = "tallystick", "1"
DESCRIPTION = """\
Event-sourced marketplace and settlement ledger for pooled GPUs.

Money is `{"asset", "units"}` with units as a decimal string; times are RFC 3339 with an offset.
A POST that records something needs an `Idempotency-Key`; its answer is repeated for the same
request. The header `Tallystick-Position` says which position of the market log an answer reflects.
The body's `position` says the same, but for an answer that is one fact: it has the fact's own. Send
`Tallystick-Min-Position` to read what you wrote. Errors are problem documents (RFC 9457): switch on
`code`.
"""


def operations() -> list[Operation]:
    """Every operation there is; the resource files of all rooms are imported."""
    return [each for room in RESOURCES for each in _operations_of(room).values()]


@cache
def _operations_of(room: str) -> dict[str, Operation]:
    """The operations of one room by name, as its files declare them and the index tells them."""
    declared = [each for resource in RESOURCES[room]() for each in resource.operations]
    found = {each.name: each for each in declared}
    assert len(found) == len(declared), f"two operations of {room} have one name"
    told = {name: each.path for name, each in found.items()}
    assert told == index.WAYS[room], (
        f"{room} is not as in api/index.py: python -m api.openapi.write"
    )
    return found


def create_app(service: Service, *, with_console: bool = False) -> Asgi:
    """The ASGI application of one process. Starts and stops the usage log with itself."""
    app = fast(build(service), service.ingest)
    if with_console:
        from api.console.front import Reference, with_pages

        app = with_pages(app, service, Reference(DESCRIPTION, operations, document_of))
    return envelope(app, service)


def build(service: Service | None) -> FastAPI:
    """The framework's part; without a service only its OpenAPI document can be asked for."""
    app = FastAPI(
        title=TITLE,
        version=VERSION,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan,
        redirect_slashes=False,
    )
    app.router.routes.append(Ways(_ways()))
    errors.install(app)
    health.add(app)
    for page in (each for room in PAGES for each in room()):
        page(app)
    app.openapi = document  # type: ignore[method-assign]
    if service is not None:
        settings = service.settings
        app.state.service = service
        app.state.authenticator = Authenticator(service)
        app.state.heads = HeadWait(service.head_now)
        app.state.cursors = Cursors(service.server_key)
        app.state.key_buckets = Buckets(
            max(1, settings.requests_per_second // settings.workers), settings.requests_burst
        )
        app.state.long_bodies = entrance.Places(entrance.LONG_BODIES)
        app.state.turns = Waiting(
            settings.requests_at_once,
            settings.account_requests_at_once,
            settings.account_requests_waiting,
        )
        service.forgetters.append(app.state.authenticator.forget)
    return app


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, made once in a process: every app has the same operations."""
    doors = [way.door for way in _ways()]
    return openapi_document.of(TITLE, VERSION, DESCRIPTION, doors, operations())


@cache
def document_of(tag: str) -> dict[str, Any]:
    """The part of the document that is about one resource: the whole takes seconds to make."""
    found = operations()
    doors = [way.door for way, each in zip(_ways(), found, strict=True) if each.tag == tag]
    ours = [each for each in found if each.tag == tag]
    return openapi_document.of(TITLE, VERSION, DESCRIPTION, doors, ours)


@cache
def _ways() -> tuple[Way, ...]:
    """Every way, made once in a process: a route knows its operation and nothing of an app."""
    router = APIRouter(route_class=Door)
    return tuple(
        Way(path, partial(_opened, router, room, name))
        for room, found in index.WAYS.items()
        for name, path in found.items()
    )


_making = threading.Lock()
"""Doors are made by requests and by the reference of the API, in threads: one at a time."""


def _opened(router: APIRouter, room: str, name: str) -> Door:
    with _making:
        return _door(router, _operations_of(room)[name])


def _door(router: APIRouter, operation: Operation) -> Door:
    for form in get_type_hints(operation.endpoint).values():
        if isinstance(form, type) and issubclass(form, RequestModel):
            form.model_config["defer_build"] = False  # put together now: nothing waits for it
            form.model_rebuild()
    router.add_api_route(
        operation.path,
        operation.endpoint,
        methods=[operation.method],
        operation_id=operation.name,
        summary=operation.summary,
        tags=[operation.tag],
        status_code=operation.status,
        response_model=operation.answers,
        response_class=_response_class(operation),
        responses=operation.responses(),
        openapi_extra=_extra(operation),
    )
    made = router.routes[-1]
    assert isinstance(made, Door)
    return made


def _response_class(operation: Operation) -> type[Response]:
    """What the framework says in the document that it answers with."""
    if operation.file_type is not None:
        return type("File", (Response,), {"media_type": operation.file_type})
    return PlainTextResponse if operation.is_text else JSONResponse


def _extra(operation: Operation) -> dict[str, Any]:
    """Security, and the headers that every operation of its kind reads."""
    headers: list[dict[str, Any]] = []
    if operation.records:
        headers.append(
            _header(
                "Idempotency-Key",
                True,
                {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!#-~]+$"},
            )
        )
        if operation.guarded:
            tag = {"type": "string", "pattern": '^"v(0|[1-9][0-9]{0,14})"$'}
            headers.append(_header(IF_MATCH, True, tag))
        if operation.checked:
            headers.append(_header(SIGNATURES, False, {"type": "string", "maxLength": 4_000}))
    elif operation.method == "GET":
        digits = {"type": "string", "pattern": "^(0|[1-9][0-9]{0,14})$"}
        headers.append(_header(MIN_POSITION, False, digits))
        if operation.tag in ("nodes", "leases"):
            lane = {"type": "string", "pattern": "^([0-9]|[1-5][0-9]|6[0-3]):(0|[1-9][0-9]{0,14})$"}
            headers.append(_header(MIN_USAGE, False, lane))
    extra: dict[str, Any] = {"security": operation.security()}
    if headers:
        extra["parameters"] = headers
    if operation.raw_items is not None:
        items = {"$ref": f"#/components/schemas/{operation.raw_items.__name__}"}
        schema = {"type": "array", "minItems": 1, "maxItems": REPORTS_MAX, "items": items}
        content = {operation.media_type: {"schema": schema}}
        extra["requestBody"] = {"required": True, "content": content}
    return extra


def _header(name: str, required: bool, schema: dict[str, Any]) -> dict[str, Any]:
    title = "-".join(part.capitalize() for part in name.split("-"))
    return {"name": title, "in": "header", "required": required, "schema": schema}


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    service: Service = app.state.service
    async with service.usage_log:
        refresher = asyncio.create_task(_refresh(service), name="node keys")
        warming = asyncio.create_task(run_in_threadpool(service.warm_up), name="fleet")
        try:
            yield
        finally:
            refresher.cancel()
            await asyncio.gather(refresher, warming, return_exceptions=True)


async def _refresh(service: Service) -> None:
    """Learn of nodes that other processes let in or put into quarantine."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        # A lost database is waited for: until it is back, what is known stays in force.
        await run_in_threadpool(service.refresh_node_keys)
        metrics.copy(service.usage_log, service.readers)


# --- around everything -----------------------------------------------------------------------


def envelope(app: Asgi, service: Service) -> Asgi:
    """Request id, caching and rate headers on every answer; the buckets of the address.

    Nodes pay with their own bucket for reports that are theirs. Who posts what no node signed pays
    with a second bucket of the address, so that strangers cannot have signatures checked for ever.
    """
    settings = service.settings
    rate = max(1, settings.requests_per_second // settings.workers), settings.requests_burst
    buckets, unsigned = Buckets(*rate), Buckets(*rate)
    refusals, places = entrance.Refusals(), entrance.Places(entrance.AT_ENTRANCE)

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id = secrets.token_hex(8)

        client = scope.get("client")
        address = bucket_of(client[0]) if client else ""
        is_usage = scope["method"] == "POST" and node_of(scope["path"]) is not None

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                if is_usage and message["status"] in UNSIGNED:
                    unsigned.spend(address)
                headers = MutableHeaders(scope=message)
                headers["Request-Id"] = request_id
                headers.setdefault("Cache-Control", "private, no-store")
                headers.setdefault("X-Content-Type-Options", "nosniff")
                spent: Spent | None = state.get("rate_limit")
                if spent is not None:
                    for name, value in spent.headers().items():
                        headers[name] = value
            await send(message)

        async def work() -> None:
            if is_usage and settings.read_only:
                return await _say(scope, receive, told, request_id, errors.problem("read_only"))
            if is_usage:
                if unsigned.is_empty(address):
                    state["rate_limit"] = unsigned.spend(address)
                    await refusals.pace(address)
                    return await _turn_away(scope, receive, told, request_id)
            elif scope["path"] not in PROBES:
                spent = buckets.spend(address)
                state["rate_limit"], state[SPEND] = spent, partial(buckets.spend, address)
                if not spent.allowed:
                    await refusals.pace(address)
                    return await _turn_away(scope, receive, told, request_id)
                try:
                    return await places.through(app, scope, receive, told, address)
                except entrance.Crowded:
                    crowded = errors.too_many_at_once()
                    return await _say(scope, receive, told, request_id, crowded)
            return await app(scope, receive, told)

        route = USAGE_ROUTE if is_usage else None
        return await observed(service.traces, scope, route, work)

    return wrapped


USAGE_ROUTE = "/v1/nodes/{node_id}/usage"
PROBES = ("/healthz", "/readyz")
"""Always answered."""
UNSIGNED = frozenset({400, 401, 413, 415})
"""What usage ingest answers when it was not shown a report that its node signed."""


async def _turn_away(scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
    found = errors.problem("rate_limited", "this address calls too often")
    await _say(scope, receive, send, request_id, found)


async def _say(
    scope: Scope, receive: Receive, send: Send, request_id: str, found: errors.Problem
) -> None:
    response = errors.render(found, scope["path"], request_id)
    await response(scope, receive, send)
