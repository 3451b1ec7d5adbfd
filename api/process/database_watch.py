"""Looks after the database of a running server: one that dies is started again, one that waits for
a standby that is away is told of.

The operating system may kill the embedded PostgreSQL, when memory runs out before all. Nobody else
would start it: it is no service of its own. Several processes may watch one server; the lock of the
start lets one of them through.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ledger.log.durable import AWAY_ADVICE, AWAY_TOLD

if TYPE_CHECKING:
    from api.process.service import Service

logger = logging.getLogger(__name__)

EVERY_SECONDS = 0.5
PAUSE_SECONDS_MAX = 60.0


class Watched(Protocol):
    """A server that can be asked whether it runs, and be started again."""

    @property
    def is_alive(self) -> bool:
        """Whether its process is there."""
        ...

    def ensure_running(self) -> None:
        """Start it if it does not answer."""
        ...


def warn_of_standby(service: Service) -> None:
    """Say it where every write waits for a standby that is away."""
    with service.connection() as connection:
        if service.standby.is_away(connection):
            logger.warning("%s: %s", AWAY_TOLD, AWAY_ADVICE)


@contextmanager
def watching(
    server: Watched | None, *, every_s: float = EVERY_SECONDS
) -> Generator[None, None, None]:
    """Watch the server in a thread; None: the database is somebody else's, nothing is watched."""
    if server is None:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(server, stop, every_s), name="database-watch")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(server: Watched, stop: threading.Event, every_s: float) -> None:
    pause = every_s
    while not stop.wait(pause):
        pause = every_s
        if server.is_alive:
            continue
        logger.error("the embedded PostgreSQL ended: starting it again")
        began = time.monotonic()
        try:
            server.ensure_running()
        except Exception:
            pause = min(PAUSE_SECONDS_MAX, max(1.0, 2 * (time.monotonic() - began)))
            logger.exception("the embedded PostgreSQL does not start; again in %.0f s", pause)
        else:
            took = time.monotonic() - began
            logger.warning("the embedded PostgreSQL runs again, after %.1f s", took)
