"""The console in front of the API: what is a page goes to the pages, everything else to the API.

    a call below /v1 or of a probe never loads a page, nor the library that draws them

The pages and their library are loaded with the first visitor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from api.door.lines import entrance
from api.door.operation import Operation
from api.process.service import Service

if TYPE_CHECKING:
    from api.console.site import Site

Asgi = Callable[[Any, Any, Any], Awaitable[None]]

APIS = ("/v1/", "/healthz", "/readyz", "/metrics", "/openapi.json")


@dataclass(frozen=True, slots=True)
class Reference:
    """What the API says of itself: its description, its operations, and the part of its OpenAPI
    document that is about one tag.
    """

    description: str
    operations: Callable[[], Sequence[Operation]]
    part: Callable[[str], Mapping[str, Any]]


def with_pages(app: Asgi, service: Service, reference: Reference) -> Asgi:
    """`app`, the whole API, with the pages before it."""
    site: Site | None = None

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        nonlocal site
        if scope["type"] != "http" or scope["path"].startswith(APIS):
            return await app(scope, receive, send)
        entrance.leave(scope)  # a page asks many questions, each in its own turn
        if site is None:
            site = await run_in_threadpool(_loaded, app, service, reference)
        return await site(scope, receive, send)

    return wrapped


def _loaded(app: Asgi, service: Service, reference: Reference) -> Site:
    from api.console.site import Site  # with the library that draws pages

    return Site(app, service, reference)
