"""Backends of PostgreSQL that outlive a process of the simulation and serve the next one.

A new backend costs 20 ms of processor until it knows the tables, several a process: most of a run.
What ends with a session ends here as well, in the same order: its transaction is rolled back, and
`DISCARD ALL` takes its advisory locks, settings, prepared statements, plans and temporary tables.
So for every lock and every transaction the old connection is gone. One that is cut in the middle
of a statement, or lost, is really closed.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

KEPT_MAX = 16


class Backends:
    """Those of one database that nobody uses just now, by the way in which they were opened."""

    def __init__(self, database: str, not_of: str) -> None:
        self._database, self._not_of = database, not_of
        self._lock = threading.Lock()
        self._free: list[tuple[str, Any]] = []
        self._opened: dict[int, str] = {}

    def pids(self) -> list[int]:
        """Process ids of those that are free: no process of the simulation has them."""
        with self._lock:
            return [pgconn.backend_pid for _, pgconn in self._free]

    def taken(self, conninfo: str) -> Any:
        """One that was opened in the same way; None if there is none."""
        with self._lock:
            for at, (opened, pgconn) in enumerate(self._free):
                if opened == conninfo:
                    del self._free[at]
                    return pgconn
        return None

    def opened(self, conninfo: str, pgconn: Any) -> None:
        told = conninfo_to_dict(conninfo)
        if told.get("dbname") == self._database and told.get("application_name") != self._not_of:
            with self._lock:
                self._opened[pgconn.backend_pid] = conninfo

    def given_back(self, pgconn: Any) -> bool:
        """Whether it is kept. If not, it is to be closed."""
        if pgconn.status != ConnStatus.OK or len(self._free) >= KEPT_MAX:
            return False
        conninfo = self._opened.get(pgconn.backend_pid)
        if conninfo is None or not _is_as_new(pgconn):
            return False
        with self._lock:
            self._free.append((conninfo, pgconn))
        return True

    def close(self) -> None:
        with self._lock:
            for _, pgconn in self._free:
                pgconn.finish()
            self._free.clear()


def _is_as_new(pgconn: Any) -> bool:
    """After its transaction and everything of its session has ended."""
    status = pgconn.transaction_status
    if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        if pgconn.exec_(b"ROLLBACK").status != ExecStatus.COMMAND_OK:
            return False
    elif status != TransactionStatus.IDLE:
        return False
    return bool(pgconn.exec_(b"DISCARD ALL").status == ExecStatus.COMMAND_OK)


def _closed() -> Any:
    """What stands in a connection that gave its backend back."""
    pgconn = psycopg.pq.PGconn.connect_start(b"host=/nowhere")
    pgconn.finish()
    return pgconn


@contextmanager
def kept(backends: Backends) -> Generator[None, None, None]:
    """Every connection of this process asks here first, and comes here when it is closed."""
    plain_connect = psycopg.Connection._connect_gen.__func__  # type: ignore[attr-defined]
    plain_close, plain_close_async = psycopg.Connection.close, psycopg.AsyncConnection.close
    gone = _closed()

    def connect(cls: Any, conninfo: str = "") -> Any:
        pgconn = backends.taken(conninfo)
        if pgconn is not None:
            return cls(pgconn)
        made = yield from plain_connect(cls, conninfo)
        backends.opened(conninfo, made.pgconn)
        return made

    def give_back(connection: Any) -> None:
        if not connection.closed and backends.given_back(connection.pgconn):
            connection._closed, connection.pgconn = True, gone

    def close(self: Any) -> None:
        give_back(self)
        plain_close(self)

    async def close_async(self: Any) -> None:
        give_back(self)
        await plain_close_async(self)

    with (
        closing(backends),
        _patched(psycopg.Connection, connect, close),
        _patched(psycopg.AsyncConnection, connect, close_async),
    ):
        yield


@contextmanager
def _patched(kind: Any, connect: Any, close: Any) -> Generator[None, None, None]:
    plain_close = kind.close
    kind._connect_gen, kind.close = classmethod(connect), close
    try:
        yield
    finally:
        del kind._connect_gen
        kind.close = plain_close
