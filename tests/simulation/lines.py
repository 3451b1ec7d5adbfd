"""Connections to the database that break at a drawn statement, and processes that die there.

    nothing leaves a process but by a statement, a file or an answer
    =>  a crash between any two of its steps is a crash before or after some statement

What is cut `before` a statement was never sent; what is cut `after` it was done and nobody was
told, a COMMIT included. `aside` is no fault: another call is made, from its beginning to its end,
between two statements of this one, so that two commands overlap the same way each time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakSet

import psycopg
from psycopg.pq import ConnStatus, TransactionStatus

from ledger.log.handle import LogBusy
from ledger.log.sharing import Sharing

LOST, DIED, ASIDE = "lost", "died", "aside"
GONE_MS_MAX = 10_000
LOCKED_MS = 50
"""So long a call waits for a lock of another one: where both are of one thread, the other one goes
on only once this one has given up.
"""
OBSERVER = "simulation"
"""The name of connections that are no part of what is simulated."""


class Died(LogBusy):
    """The process is dead and asks for more. As a busy log it unwinds without another try."""


@dataclass(frozen=True, slots=True)
class Cut:
    """At the `at`-th statement of a step, counting appends alone if `of_appends`."""

    kind: str
    at: int
    is_after: bool = False
    of_appends: bool = False

    def __str__(self) -> str:
        what = "append" if self.of_appends else "statement"
        return f"{self.kind} {'after' if self.is_after else 'before'} {what} {self.at}"


class Lines:
    """All connections of one process to one database. `dead`: it may say nothing more."""

    here: ClassVar[Lines | None] = None

    def __init__(self, database: str, admin: psycopg.Connection[Any]) -> None:
        self.database = database
        self.dead = False
        self.statements = 0
        self.struck = ""
        self._admin = admin
        self._open: WeakSet[Any] = WeakSet()
        self._cut: Cut | None = None
        self._aside: Callable[[], None] | None = None
        self._seen = 0
        self._appending = threading.local()

    @contextmanager
    def cutting(
        self, cut: Cut | None, aside: Callable[[], None] | None = None
    ) -> Generator[None, None, None]:
        """While one step is made, it may be cut once."""
        before = self._cut, self._aside, self._seen, self.struck
        self._cut, self._aside, self._seen, self.struck = cut, aside, 0, ""
        try:
            yield
        finally:
            self._cut, self._aside, self._seen, self.struck = before

    def settle(self, backend: int | None = None) -> None:
        """Until PostgreSQL has noticed what was cut: its locks are free and its changes undone. Of
        a process that is gone that is every connection.
        """
        query = (
            "SELECT count(pg_terminate_backend(pid, %s)) FROM pg_stat_activity"
            f" WHERE datname = %s AND pid = coalesce(%s, pid) AND application_name <> '{OBSERVER}'"
        )
        while self._admin.execute(query, (GONE_MS_MAX, self.database, backend)).fetchone() != (0,):
            pass

    def end(self) -> None:
        """The process is gone: so are its connections, and PostgreSQL has noticed."""
        for connection in list(self._open):
            connection.pgconn.finish()
        self._open.clear()
        self.settle()

    # --- at each statement -------------------------------------------------------------------

    def before(self, connection: Any, work: Any) -> Cut | None:
        """What is to strike after the statement. Raises Died, psycopg.OperationalError."""
        self._open.add(connection)
        if threading.current_thread().name.startswith("pool-"):
            return None  # the pool makes connections when it likes
        if self.dead:
            raise Died("the process is dead")
        self.statements += 1
        cut = self._cut
        if cut is None or (cut.of_appends and not _appends(work)):
            return None
        self._seen += 1
        if self._seen < cut.at:
            return None
        if cut.kind == ASIDE:
            is_free = connection.pgconn.transaction_status == TransactionStatus.IDLE
            if is_free and not getattr(self._appending, "here", False):
                self._step_aside(cut)
            return None
        self._cut, self.struck = None, str(cut)
        if cut.is_after:
            return cut
        self.strike(connection, cut)
        return None

    @contextmanager
    def appending(self) -> Generator[None, None, None]:
        """A decision was made and goes to be recorded. The other call comes before it, or not until
        it has ended: what another one records waits for this.
        """
        cut = self._cut
        if cut is not None and cut.kind == ASIDE and cut.of_appends and not self.dead:
            self._step_aside(cut)
        self._appending.here = True
        try:
            yield
        finally:
            self._appending.here = False

    def strike(self, connection: Any, cut: Cut) -> None:
        if cut.kind == DIED:
            self.dead = True
            raise Died("the process died")
        backend = connection.pgconn.backend_pid
        connection.pgconn.finish()
        self.settle(backend)
        raise psycopg.OperationalError("the connection was lost")

    def _step_aside(self, cut: Cut) -> None:
        """Only where no loop would wait for itself."""
        aside = self._aside
        if aside is None or _in_a_loop() or _at_the_desk():
            return
        self._cut = self._aside = None
        self.struck = str(cut)
        aside()
        if self.dead:
            raise Died("the process died")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _at_the_desk() -> bool:
    """Where leases are opened one after the other: who waits there for another opening, waits."""
    return threading.current_thread().name.startswith("lease-desk")


def _says_nothing(work: Any) -> bool:
    """A pipeline that begins: only this end of the line changes, so nothing can be lost there."""
    return getattr(work, "__qualname__", "") == "BasePipeline._enter_gen"


def _appends(work: Any) -> bool:
    """Whether the statement appends to one of the logs."""
    frame = getattr(work, "gi_frame", None)
    query = None if frame is None else frame.f_locals.get("query")
    if isinstance(query, bytes):
        query = query.decode()
    return isinstance(query, str) and "_append" in query


def _lines_of(connection: Any, work: Any) -> Lines | None:
    here = Lines.here
    if here is None or connection.pgconn.status != ConnStatus.OK or _says_nothing(work):
        return None
    name = getattr(connection, "simulated_name", None)
    if name is None:
        told = connection.info.get_parameters()
        name = "" if told.get("application_name") == OBSERVER else told["dbname"]
        connection.simulated_name = name
    return here if name == here.database else None


@contextmanager
def watched(lines: Lines) -> Generator[None, None, None]:
    """Every statement of this database on any connection of this process passes here first."""
    plain, plain_async = psycopg.Connection.wait, psycopg.AsyncConnection.wait
    plain_append = Sharing.append

    def wait(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        on = _lines_of(self, gen)
        after = None if on is None else on.before(self, gen)
        done = plain(self, gen, *args, **kwargs)
        if on is not None and after is not None:
            on.strike(self, after)
        return done

    async def wait_async(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        on = _lines_of(self, gen)
        after = None if on is None else on.before(self, gen)
        done = await plain_async(self, gen, *args, **kwargs)
        if on is not None and after is not None:
            on.strike(self, after)
        return done

    def append(self: Sharing, events: Any, append: Any) -> None:
        with lines.appending():
            plain_append(self, events, append)

    Lines.here = lines
    Sharing.append = append  # type: ignore[method-assign]
    psycopg.Connection.wait = wait  # type: ignore[method-assign]
    psycopg.AsyncConnection.wait = wait_async  # type: ignore[method-assign]
    try:
        yield
    finally:
        Lines.here = None
        Sharing.append = plain_append  # type: ignore[method-assign]
        psycopg.Connection.wait = plain  # type: ignore[method-assign]
        psycopg.AsyncConnection.wait = plain_async  # type: ignore[method-assign]
