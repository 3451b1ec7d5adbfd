"""What `tallystick serve` runs: uvicorn, and the background jobs in the first process.

One worker: everything in this process. More: each worker is a process of its own that opens the
service by itself; this one keeps the embedded database running and does the jobs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import uvicorn

from api import jobs
from api import settings as settings_file
from api.main import create_app
from api.service import Service
from api.settings import Settings
from api.usage import Asgi, Receive, Scope, Send

HANDED_DOWN = (
    "data_dir", "database_url", "host", "port", "workers", "log_origin", "chain_url",
    "chain_deployment", "reports_per_second", "reports_burst", "requests_per_second",
    "requests_burst", "environment",
)  # fmt: skip
"""Settings a worker process reads from its environment, secrets among them: nowhere else."""


def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""
    _log_to_stderr()
    with Service.open(settings) as service, _stopped_by_sigterm(), _jobs(service):
        if settings.workers == 1:
            server = uvicorn.Server(uvicorn.Config(create_app(service), **_how(settings)))
            server.run()
            return 0 if server.started else 1
        _hand_down(settings)
        uvicorn.run("api.cli_serve:application", factory=True, **_how(settings))
    return 0


def application() -> Asgi:
    """The application of one worker process, with a service of its own."""
    _log_to_stderr()
    service = Service.open(settings_file.load().settings)
    app = create_app(service)

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            if scope["type"] == "lifespan":
                await asyncio.to_thread(service.close)

    return closing


@contextmanager
def _jobs(service: Service) -> Generator[None, None, None]:
    """The background jobs in a thread, unless the settings leave them to `tallystick jobs`."""
    if not service.settings.jobs:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(
        target=jobs.run, args=(service,), kwargs={"once": False, "stop": stop}, name="jobs"
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _stopped_by_sigterm() -> Generator[None, None, None]:
    """SIGTERM ends like SIGINT: uvicorn raises it again when it is done, and we still clean up."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _how(settings: Settings) -> dict[str, Any]:
    files = (settings.ssl_certfile, settings.ssl_keyfile)
    certfile, keyfile = (None if file is None else str(file) for file in files)
    return {
        "host": settings.host,
        "port": settings.port,
        "workers": settings.workers,
        "loop": "uvloop",
        "http": "httptools",
        "ws": "none",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 10,
        "ssl_certfile": certfile,
        "ssl_keyfile": keyfile,
        "log_config": None,
    }


def _hand_down(settings: Settings) -> None:
    for name in HANDED_DOWN:
        value = getattr(settings, name)
        variable = settings_file.PREFIX + name.upper()
        if value is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = str(value)


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
