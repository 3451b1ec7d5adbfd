"""What `tallystick serve` runs: uvicorn, and the background jobs in the first process.

One worker: everything in this process. More: each worker is a process of its own that opens the
service by itself; this one keeps the embedded database running and does the jobs.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from api import settings as settings_file
from api import timers as jobs
from api.door.http_bounds import BoundedProtocol, raise_files_max
from api.ingest.door import Asgi, Receive, Scope, Send, tune_collector
from api.main import create_app
from api.process import founding, key_files, secret_files
from api.process.database_watch import warn_of_standby, watching
from api.process.service import Service
from api.settings import Settings, SettingsInvalid, is_here
from api.telemetry import logs, metrics
from cli.operating import kept_code
from cli.terminal import AnswerIsNo
from ledger.log.durable import cancelled_after

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""How long one thread computes while another waits to. A small request changes threads some twenty
times, and beside a large one it waits so long each time; Python's own value is 5 ms.
"""
DRAIN_SECONDS = 10
"""After SIGTERM no connection is accepted, and requests in progress have so long to be answered;
then timers have as long before what they wait for is cancelled."""


def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""
    logs.configure(settings.log_form, settings.log_level)
    raise_files_max()
    sys.setswitchinterval(SWITCH_SECONDS)
    _require_files(settings)
    _require_shared_key(settings)
    with (
        cancelled_after(ending := threading.Event(), DRAIN_SECONDS),
        Service.open(settings) as service,
        _stopped_by_sigterm(),
        closing(_bound(settings)) as sock,
        watching(service.embedded),
        _jobs(service, begin=(listening := threading.Event())),
        _setting(ending),
    ):
        founding.warn(service.ledger, settings)
        warn_of_standby(service)
        warn_of_plain_http(settings)
        scheme = "http" if settings.ssl_certfile is None else "https"
        where = f"{scheme}://{settings.host}:{settings.port}"
        logger.info("serving on %s, data in %s", where, settings.data_dir)
        if settings.workers == 1:
            config = uvicorn.Config(_app(service), **_how(settings))
            tune_collector()
            Server(config, listening).run([sock])
            return 0
        listening.set()
        tune_collector()
        _hand_down(settings)
        how = {**_how(settings), "factory": True, "workers": settings.workers}
        config = uvicorn.Config("cli.serve:application", **how)
        with TemporaryDirectory(prefix="tallystick-metrics-") as numbers:
            os.environ[metrics.SHARED_FOLDER] = numbers
            Multiprocess(config, sockets=[sock]).run()
    return 0


@contextmanager
def _setting(ending: threading.Event) -> Generator[None, None, None]:
    """Set when the block ends, whichever way."""
    try:
        yield
    finally:
        ending.set()


def _require_files(settings: Settings) -> None:
    """That certificate and key can be read, each by its name. Raises SettingsInvalid."""
    for name in ("ssl_certfile", "ssl_keyfile"):
        file = getattr(settings, name)
        if file is not None and not os.access(file, os.R_OK):
            raise SettingsInvalid(f"{name}: {file} is no file that can be read")


def _require_shared_key(settings: Settings) -> None:
    """A server that records nothing makes no key: of several workers each would have another one,
    and none could read a cursor of the next. Raises SettingsInvalid.
    """
    key = secret_files.folder_of(settings.data_dir) / key_files.SERVER
    if settings.read_only and settings.workers > 1 and not key.exists():
        raise SettingsInvalid(
            f"workers: {settings.workers} with read_only share {key}, which is not there: set"
            " workers to 1, or copy the file from the server that records"
        )


def _bound(settings: Settings) -> socket.socket:
    """The socket everybody listens on, before anything else is begun. Raises AnswerIsNo."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except OSError as error:
        sock.close()
        raise AnswerIsNo(
            f"{settings.host}:{settings.port}: {error.strerror}; give another --host or --port"
        ) from None
    sock.set_inheritable(True)
    return sock


def warn_of_plain_http(settings: Settings) -> None:
    """Say it where keys would cross a network that others can read."""
    if (
        settings.ssl_certfile is None
        and not is_here(settings.host)
        and not settings.trusted_proxies
    ):
        logger.warning(
            "keys of callers can be read on their way: %s is open to others, and there is no TLS."
            " Set ssl_certfile and ssl_keyfile, or put a proxy with TLS before it and name it in"
            " trusted_proxies",
            settings.host,
        )


def application() -> Asgi:
    """The application of one worker process, with a service of its own."""
    settings = settings_file.load().settings
    logs.configure(settings.log_form, settings.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    _end_with_parent()
    service = Service.open(settings)
    app = _app(service)
    tune_collector()

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            if scope["type"] == "lifespan":
                (ending := threading.Event()).set()
                with cancelled_after(ending, DRAIN_SECONDS):
                    await asyncio.to_thread(service.close)

    return closing


def _end_with_parent() -> None:
    """A killed parent ends no worker: it would keep the port, and no next start could listen."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def follow() -> None:
        parent.join()
        logger.error("the first process of the server ended: this worker ends")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(DRAIN_SECONDS + 10)
        os._exit(1)

    threading.Thread(target=follow, name="parent-watch", daemon=True).start()


class Server(uvicorn.Server):
    """Says when requests are answered."""

    def __init__(self, config: uvicorn.Config, listening: threading.Event) -> None:
        super().__init__(config)
        self.listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextmanager
def _jobs(service: Service, begin: threading.Event) -> Generator[None, None, None]:
    """The background jobs in a thread, unless the settings leave them to `tallystick jobs`. They
    are imported and begin once `begin` is set: at a start forty of them would delay the first
    answer. Jobs that cannot begin end the server, and raise what it was.
    """
    if not service.settings.jobs or service.settings.read_only:
        yield
        return
    stop, failed = threading.Event(), list[Exception]()

    def work() -> None:
        begin.wait()
        if stop.is_set():
            return
        try:
            with kept_code.kept():
                jobs.load()
            jobs.run(service, once=False, stop=stop)
        except Exception as error:
            logger.exception("the timers cannot run: the server ends")
            failed.append(error)
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=work, name="jobs")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        begin.set()
        thread.join()
        if failed:
            raise failed[0]


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


def _app(service: Service) -> Asgi:
    """Every worker has the pages, where there are any: a server that only reads has no sessions."""
    settings = service.settings
    return create_app(service, with_console=settings.console and not settings.read_only)


def _how(settings: Settings) -> dict[str, Any]:
    files = (settings.ssl_certfile, settings.ssl_keyfile)
    certfile, keyfile = (None if file is None else str(file) for file in files)
    return {
        "loop": "uvloop",
        "http": BoundedProtocol,
        "ws": "none",
        "access_log": False,
        "server_header": False,
        # Otherwise uvicorn believes whoever comes from this machine, and FORWARDED_ALLOW_IPS.
        "proxy_headers": settings.trusted_proxies is not None,
        "forwarded_allow_ips": settings.trusted_proxies or "",
        "timeout_graceful_shutdown": DRAIN_SECONDS,
        "ssl_certfile": certfile,
        "ssl_keyfile": keyfile,
        "log_config": None,
    }


def _hand_down(settings: Settings) -> None:
    """Into the environment of the workers, secrets among them: nowhere else."""
    os.environ.pop(f"{settings_file.PREFIX}CONFIG", None)  # it is read, once
    for name in (each.name for each in fields(settings)):
        value, variable = getattr(settings, name), settings_file.PREFIX + name.upper()
        if value is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = str(value)
