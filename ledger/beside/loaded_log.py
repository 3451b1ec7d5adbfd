"""Is this database a copy that was loaded from an export? One row says so, written before its first
fact and never taken away.

    a copy  =>  it is read, and nothing is recorded, signed or paid with it
    a copy  =>  no keys of a log were made in it, and none can be (`ledger/beside/key_set.py`)

Its facts are those of another machine, which goes on with them: a second one that recorded would
have another log under the same name. The owner's role alone writes the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from ledger.bundle.shape import LoadRefused

Connection = psycopg.Connection[Any]

OWNER = b"SET LOCAL ROLE tallystick_owner"
_THERE = "SELECT to_regclass('public.' || %s)"
_READ = "SELECT origin, log_key, key_given, root_given, facts FROM public.loaded_log"
_HOLDS = {
    "key_set": b"SELECT EXISTS (SELECT FROM public.key_set)",
    "market_events_head": b"SELECT EXISTS (SELECT FROM public.market_events_head WHERE pos > 0)",
    "usage_head": b"SELECT EXISTS (SELECT FROM public.usage_head WHERE pos > 0)",
    "usage_elsewhere": b"SELECT EXISTS (SELECT FROM public.usage_elsewhere)",
    "command": b"SELECT EXISTS (SELECT FROM public.command)",
}
"""By table: whether it says that there is a log. An earlier version has not all of them."""
_BEGIN = """
    INSERT INTO public.loaded_log (origin, log_key, key_given, root_given, facts)
    VALUES (%s, %s, false, false, NULL) ON CONFLICT (is_only) DO UPDATE SET facts = NULL
"""
_END = "UPDATE public.loaded_log SET log_key = %s, key_given = %s, root_given = %s, facts = %s"
TEXT_MAX = 1000


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """`origin` and `log_key` are those of the export; whether it was held against a key and a head
    that came from elsewhere; `facts` is None while a load has not ended, else so many are there
    with all views of them.
    """

    origin: str
    log_key: str
    key_given: bool
    root_given: bool
    facts: int | None

    @property
    def unproven(self) -> str | None:
        """What the load was not given, in words; None: it was given both."""
        given = (("key", self.key_given), ("root", self.root_given))
        lacks = [f"--{name}" for name, there in given if not there]
        if not lacks:
            return None
        return (
            f"it was loaded without {' and '.join(lacks)} from another source: whether it is the"
            " operator's log was not checked"
        )


def read(connection: Connection) -> LoadedLog | None:
    """None: the database has a log of its own, or is of a version before this table."""
    if not _there(connection, "loaded_log") or _holds(connection, "key_set"):
        return None
    row = connection.execute(_READ).fetchone()
    return None if row is None else LoadedLog(*row)


def is_both(connection: Connection) -> bool:
    """Whether somebody wrote that a log with keys of its own is a copy, past the schema."""
    return (
        _there(connection, "loaded_log")
        and connection.execute(_READ).fetchone() is not None
        and _holds(connection, "key_set")
    )


def require_room(connection: Connection, origin: str) -> None:
    """That an export of this log may be loaded here; asked of a database of any version, and
    nothing is changed. Raises LoadRefused: it is a copy of another log, or has one of its own.
    """
    there = read(connection)
    if there is None and any(_holds(connection, table) for table in _HOLDS):
        raise LoadRefused(
            "this database has a log of its own: an export is loaded into an empty one. Name"
            " another data folder, or another TALLYSTICK_DATABASE_URL"
        )
    if there is not None and there.origin != origin:
        raise LoadRefused(
            f"this database is a copy of the log {there.origin}, and the export is of {origin}:"
            " name another data folder"
        )


def begin(connection: Connection, origin: str, log_key: str) -> None:
    """From here on this is a copy, and no whole one. Raises as `require_room`."""
    if max(len(origin), len(log_key) // 2) > TEXT_MAX:
        raise LoadRefused(f"the name of its log or its key has more than {TEXT_MAX} characters")
    with connection.transaction():
        require_room(connection, origin)
        connection.execute(OWNER)
        connection.execute(_BEGIN, (origin, log_key))


def end(
    connection: Connection, log_key: str, facts: int, *, key_given: bool, root_given: bool
) -> None:
    """So many facts are there, with all views of them."""
    with connection.transaction():
        connection.execute(OWNER)
        connection.execute(_END, (log_key, key_given, root_given, facts))


def _there(connection: Connection, table: str) -> bool:
    return connection.execute(_THERE, (table,)).fetchone() != (None,)


def _holds(connection: Connection, table: str) -> bool:
    return _there(connection, table) and connection.execute(_HOLDS[table]).fetchone() == (True,)
