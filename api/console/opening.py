"""The pages are loaded when the first of them is asked for: their library takes 20 MiB and half a
second, and most servers never show one.

    no request below `/console`  =>  nothing of NiceGUI is imported
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from api.console.guard import is_consoles

Message = Any
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def opened_when_asked(app: FastAPI, asgi: Asgi) -> Asgi:
    """`asgi`, the whole application around `app`, which gets the pages with the first call of one.
    They begin and end with a life of their own within the application's.
    """
    one_opens, life = asyncio.Lock(), AsyncExitStack()
    is_open = False

    async def opened() -> None:
        nonlocal is_open
        async with one_opens:
            if not is_open:
                await life.enter_async_context(await run_in_threadpool(_added, app, asgi))
                is_open = True

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def heard() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await life.aclose()
            return message

        if scope["type"] == "lifespan":
            return await asgi(scope, heard, send)
        if not is_open and is_consoles(scope["path"]):
            await opened()
        return await asgi(scope, receive, send)

    return wrapped


def _added(app: FastAPI, asgi: Asgi) -> Any:
    """Add the pages; what begins and ends what the library wants begun and ended with `app`."""
    from api.console import pages  # its library takes long to import

    before = app.router.lifespan_context
    app.router.lifespan_context = _alone
    try:
        pages.add(app, asgi)
        return app.router.lifespan_context(app)
    finally:
        app.router.lifespan_context = before


@asynccontextmanager
async def _alone(_app: FastAPI) -> AsyncGenerator[None, None]:
    yield
