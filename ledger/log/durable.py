"""Connections that never take a commit for durable which no standby has.

    a statement returned  =>  its commit is on this server and on the synchronous standbys, if any

With `synchronous_standby_names` set, PostgreSQL makes a commit wait for the standby. Whoever
cancels that wait (`pg_cancel_backend`, a driver, an administrator) ends it with success and a
WARNING, and the commit stands on this server alone. Here that warning ends the connection and is
an error: `NotReplicated`. The commit may still arrive, so the same command is sent again later, and
whoever finds it recorded then asks `wait_for_standbys` before answering: a row that is visible may
be one that no standby has, after such a cancel or after a crash of this server.

Without a synchronous standby nothing here costs more than one question for each repeated command.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import Diagnostic
from psycopg.rows import AsyncRowFactory, Row, RowFactory, tuple_row

WAITS_IN = "SyncRepWaitForLSN"
"""The function of PostgreSQL that warns; its message is translated, its name is not."""

ALONE = "the synchronous standby has not confirmed this commit: the wait for it was cancelled"

_WAIT = b"""
    SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
        THEN pg_logical_emit_message(true, 'tallystick', ''::text) END
"""
"""A transaction that writes something and so waits like any other, for all that was written before.
Nobody decodes the message."""


ALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""Seconds, seconds, times, milliseconds: a machine that is cut off without a word is given up after
25 seconds. The kernel's own time is two hours, in which every thread that waits would wait on.
"""


def given_up_in_time(conninfo: str) -> str:
    """The address, its connections given up as `ALIVE` says; what the address says itself stays."""
    told = conninfo_to_dict(conninfo)
    return make_conninfo(
        conninfo, **{name: value for name, value in ALIVE.items() if name not in told}
    )


_AWAY = b"""
    WITH streaming AS (SELECT count(*) AS any_state,
            count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS waited_for,
            count(*) FILTER (WHERE sync_state IS NULL) AS hidden FROM pg_stat_replication),
        named AS (SELECT current_setting('synchronous_standby_names') AS names),
        demanded AS (SELECT coalesce(substring(names
            from '(?i)^\\s*(?:first|any)?\\s*([0-9]+)\\s*[(]')::int, 1) AS standbys FROM named)
    SELECT names <> '' AND NOT pg_is_in_recovery()
        AND current_setting('synchronous_commit') NOT IN ('off', 'local')
        AND CASE WHEN hidden = 0 THEN waited_for < standbys
            ELSE any_state < standbys OR EXISTS (SELECT FROM pg_stat_activity
                WHERE wait_event = 'SyncRep'
                AND query_start < clock_timestamp() - interval '5 seconds') END
    FROM streaming, named, demanded
"""
"""A login sees of others' sessions that they are there, and of its own what they wait for."""
AWAY_TOLD = "too few synchronous standbys stream, so every write waits and none is answered"
AWAY_ADVICE = (
    "start the standby, or `tallystick backup FOLDER --follow` where that is it; how to go on"
    " without it: docs/howto/alerts.md#standbyaway"
)
CANCEL_EVERY_S = 0.5
LOOK_EVERY_S = 2.0
CONNECT_SECONDS = 5
_open: WeakSet[DurableConnection[Any]] = WeakSet()
_opening = threading.Lock()


class NotReplicated(psycopg.OperationalError):
    """The wait for the synchronous standby was cancelled: the commit stands on this server alone.

    Nothing may be answered. The same command later finds what became of it.
    """


class _Warned:
    """Whether PostgreSQL has warned that it gave up the wait."""

    def __init__(self) -> None:
        self.is_alone = False

    def __call__(self, told: Diagnostic) -> None:
        self.is_alone = self.is_alone or told.source_function == WAITS_IN


class DurableConnection(Connection[Row]):
    """A connection whose every statement is checked for the warning, whatever it was asked by."""

    def __init__(
        self,
        pgconn: psycopg.pq.abc.PGconn,
        row_factory: RowFactory[Row] = tuple_row,  # type: ignore[assignment]
    ) -> None:
        super().__init__(pgconn, row_factory)
        self._warned = _Warned()
        self.add_notice_handler(self._warned)
        with _opening:
            _open.add(self)

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """As psycopg's. Raises NotReplicated, with the connection closed."""
        try:
            done = super().wait(gen, *args, **kwargs)
        except BaseException:  # whoever was interrupted is told that, and uses it no more
            if self._warned.is_alone:
                self.close()
            raise
        if self._warned.is_alone:
            self.close()
            raise NotReplicated(ALONE)
        return done


class DurableAsyncConnection(AsyncConnection[Row]):
    """`DurableConnection` for an event loop."""

    def __init__(
        self,
        pgconn: psycopg.pq.abc.PGconn,
        row_factory: AsyncRowFactory[Row] = tuple_row,  # type: ignore[assignment]
    ) -> None:
        super().__init__(pgconn, row_factory)
        self._warned = _Warned()
        self.add_notice_handler(self._warned)

    async def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """As psycopg's. Raises NotReplicated, with the connection closed."""
        try:
            done = await super().wait(gen, *args, **kwargs)
        except BaseException:
            if self._warned.is_alone:
                await self.close()
            raise
        if self._warned.is_alone:
            await self.close()
            raise NotReplicated(ALONE)
        return done


def wait_for_standbys(connection: Connection[Any]) -> None:
    """Return when the synchronous standbys have all that is visible now; at once without any.

    Outside a transaction. Raises NotReplicated when this wait is cancelled, too.
    """
    connection.execute(_WAIT)


def wait_for_standbys_until(connection: Connection[Any], seconds: float) -> None:
    """`wait_for_standbys`, given up after so long: PostgreSQL's own limits end no such wait.

    Raises NotReplicated, with the connection closed.
    """
    done = threading.Event()

    def give_up() -> None:
        if not done.wait(seconds):
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=seconds)

    waiting = threading.Thread(target=give_up, daemon=True)
    waiting.start()
    try:
        wait_for_standbys(connection)
    finally:
        done.set()
        waiting.join()


@contextmanager
def cancelled_after(stop: threading.Event, seconds: float) -> Generator[None, None, None]:
    """In this block: so long after `stop` is set, what this process asks the database is cancelled,
    again and again until the block ends, and once more then. A wait for a standby that is away ends
    in no other way; what was being recorded is there or not, as after a kill.
    """
    over = threading.Event()

    def watch() -> None:
        ends: float | None = None
        while not over.wait(CANCEL_EVERY_S):
            if stop.is_set():
                ends = time.monotonic() + seconds if ends is None else ends
                if time.monotonic() >= ends:
                    _cancel_all()

    watching = threading.Thread(target=watch, name="cancels", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
        if stop.is_set():
            _cancel_all()


def _cancel_all() -> None:
    with _opening:
        connections = [*_open]
    for connection in connections:
        with suppress(psycopg.Error):
            if connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                connection.cancel_safe(timeout=CANCEL_EVERY_S)


@contextmanager
def unwaited(connection: Connection[Any]) -> Generator[None, None, None]:
    """In this block commits of this connection wait for no disk and no standby: for what may be
    lost. Outside a transaction.
    """
    connection.execute("SET synchronous_commit = off")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("RESET synchronous_commit")


async def wait_for_standbys_async(connection: AsyncConnection[Any]) -> None:
    """`wait_for_standbys` for an event loop."""
    await connection.execute(_WAIT)


# --- what the server promises, and who streams from it ----------------------------------------


def setting(connection: Connection[Any], name: str) -> str:
    """A setting of PostgreSQL, as this connection has it."""
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def clock_us(connection: Connection[Any]) -> int:
    """The clock of the database's machine."""
    row = connection.execute(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    ).fetchone()
    assert row is not None
    return int(row[0])


def standby_is_away(connection: Connection[Any]) -> bool:
    """Whether every commit waits for synchronous standbys, and too few of them stream. The login
    itself asks, in no other role: it sees most.
    """
    row = connection.execute(_AWAY).fetchone()
    assert row is not None
    return bool(row[0])


class StandbyLook:
    """`standby_is_away` for a process that is asked often and reads in another role: at most every
    `LOOK_EVERY_S`, over a connection of the login's own.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._looking = threading.Lock()
        self._looked_s = -math.inf
        self._is_away = False

    def is_away(self, connection: Connection[Any]) -> bool:
        """`connection`: of any role; where nothing waits for a standby it is enough. Raises
        psycopg.OperationalError.
        """
        if not setting(connection, "synchronous_standby_names"):
            return False
        with self._looking:
            if time.monotonic() - self._looked_s > LOOK_EVERY_S:
                with psycopg.connect(
                    self._conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS
                ) as own:
                    self._is_away = standby_is_away(own)
                self._looked_s = time.monotonic()
            return self._is_away


def wait_for(connection: Connection[Any], standby: str) -> None:
    """From now on every commit waits for the standby of this name; for none, if it is empty."""
    connection.execute(
        sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(sql.Literal(standby))
    )
    connection.execute("SELECT pg_reload_conf()")


def make_slot(connection: Connection[Any], name: str) -> bool:
    """PostgreSQL keeps its WAL from here on until the slot's reader has it. Once is enough; whether
    this was the first time.
    """
    made = connection.execute(
        "SELECT pg_create_physical_replication_slot(%s, true) WHERE NOT EXISTS"
        " (SELECT FROM pg_replication_slots WHERE slot_name = %s)",
        (name, name),
    )
    return made.rowcount == 1


def drop_slot(connection: Connection[Any], name: str) -> None:
    """PostgreSQL keeps nothing for it any more. Nobody may be reading it."""
    connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))


def kept_for(connection: Connection[Any], name: str) -> int | None:
    """Bytes of WAL that PostgreSQL keeps for a slot which nobody reads now; None: there is no such
    slot, or it is read.
    """
    row = connection.execute(
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM"
        " pg_replication_slots WHERE slot_name = %s AND NOT active AND NOT pg_is_in_recovery()",
        (name,),
    ).fetchone()
    return None if row is None else int(row[0] or 0)
