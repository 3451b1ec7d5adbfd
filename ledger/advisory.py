"""Advisory locks of a session: waited for within bounds, and told whose they are.

    waited <= SECONDS_MAX         then LockHeld names the sessions that hold the lock

A session that waits says so in its log, and for whom, long before it gives up. PostgreSQL ends a
lock with its session, so what is waited for is a process that works or hangs, never one that died.
Connections are in autocommit mode, outside a transaction.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

import psycopg

Connection = psycopg.Connection[Any]
SECONDS_MAX: Final = 900
"""Longer than a view of a large market is rebuilt while the next server of a restart waits."""
TOLD_EVERY_SECONDS: Final = 15

logger = logging.getLogger(__name__)

_HOLDERS = """
    SELECT l.pid, a.application_name, host(a.client_addr), a.usename,
        to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"')
    FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()
        AND l.classid::bigint = %s AND l.objid::bigint = %s AND l.objsubid = 1
    ORDER BY a.backend_start
"""


class LockHeld(Exception):
    """Another session kept a lock for longer than it is waited for."""


def lock(connection: Connection, key: int, what: str, *, shared: bool = False) -> None:
    """Take the lock of this key for the session, for this one alone or `shared`. `what` completes
    "the lock of ...". Raises LockHeld after SECONDS_MAX.
    """
    if try_lock(connection, key, shared=shared):
        return
    ends = time.monotonic() + SECONDS_MAX
    while (left := ends - time.monotonic()) > 0:
        if _waited(connection, key, min(left, TOLD_EVERY_SECONDS), shared):
            return
        logger.warning("waiting for the lock of %s: %s has it", what, held_by(connection, key))
    holder = held_by(connection, key)
    raise LockHeld(f"{holder} has the lock of {what}, and was waited for {SECONDS_MAX} s")


def try_lock(connection: Connection, key: int, *, shared: bool = False) -> bool:
    """Whether the session has the lock now; it does not wait."""
    query = f"SELECT pg_try_advisory_lock{'_shared' if shared else ''}(%s)"
    return connection.execute(query.encode(), (key,)).fetchone() == (True,)


def unlock(connection: Connection, key: int, *, shared: bool = False) -> None:
    """Give the lock back; of a closed connection PostgreSQL has it back already."""
    if not connection.closed:
        query = f"SELECT pg_advisory_unlock{'_shared' if shared else ''}(%s)"
        connection.execute(query.encode(), (key,))


def held_by(connection: Connection, key: int) -> str:
    """The sessions that hold the lock, in words."""
    high, low = divmod(key % 2**64, 2**32)
    rows = connection.execute(_HOLDERS, (high, low)).fetchall()
    return "; ".join(_told(*row) for row in rows) or "a session that ended just now"


def _told(pid: int, name: str | None, address: str | None, user: str | None, since: str) -> str:
    """Of a session of another login PostgreSQL may tell its number alone."""
    parts = [
        name or "without a name",
        f"as {user}" if user else None,
        f"from {address}" if address else None,
        f"connected since {since}" if since else None,
    ]
    return f"session {pid} ({', '.join(part for part in parts if part)})"


def _waited(connection: Connection, key: int, seconds: float, shared: bool) -> bool:
    """Whether the lock came within so many seconds."""
    try:
        with connection.transaction():
            limit = f"{max(1, round(1_000 * seconds))}ms"
            connection.execute("SELECT set_config('lock_timeout', %s, true)", (limit,))
            query = f"SELECT pg_advisory_lock{'_shared' if shared else ''}(%s)"
            connection.execute(query.encode(), (key,))
    except psycopg.errors.LockNotAvailable:
        return False
    return True
