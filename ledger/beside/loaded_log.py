"""Is this database a copy that was loaded from an export? One row says so, written before its first
fact and never taken away.

    a copy  =>  it is read, and nothing is recorded, signed or paid with it

Its facts are those of another machine, which goes on with them: a second one that recorded would
have another log under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from ledger.bundle.load import LoadRefused

Connection = psycopg.Connection[Any]

_THERE = "SELECT to_regclass('public.loaded_log')"
_READ = "SELECT origin, log_key, facts FROM public.loaded_log"
_HOLDS = """
    SELECT (SELECT pos > 0 FROM public.market_events_head)
        OR EXISTS (SELECT FROM public.usage_head WHERE pos > 0)
        OR EXISTS (SELECT FROM public.usage_elsewhere) OR EXISTS (SELECT FROM public.command)
        OR EXISTS (SELECT FROM public.key_set)
"""
_BEGIN = """
    INSERT INTO public.loaded_log (origin, log_key, facts) VALUES (%s, %s, NULL)
    ON CONFLICT (is_only) DO UPDATE SET facts = NULL
"""
_END = "UPDATE public.loaded_log SET log_key = %s, facts = %s"


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """`origin` and `log_key` are those of the export; `facts` is None while a load has not ended,
    else so many are there with all views of them.
    """

    origin: str
    log_key: str
    facts: int | None


def read(connection: Connection) -> LoadedLog | None:
    """None: the database has a log of its own, or is of a version before this table."""
    if connection.execute(_THERE).fetchone() == (None,):
        return None
    row = connection.execute(_READ).fetchone()
    return None if row is None else LoadedLog(*row)


def begin(connection: Connection, origin: str, log_key: str) -> None:
    """From here on this is a copy, and no whole one. Raises LoadRefused, with nothing written: it
    is a copy of another log, or has a log of its own.
    """
    there = read(connection)
    if there is None and connection.execute(_HOLDS).fetchone() != (False,):
        raise LoadRefused(
            "this database has a log of its own: an export is loaded into an empty one. Name"
            " another data folder, or another TALLYSTICK_DATABASE_URL"
        )
    if there is not None and there.origin != origin:
        raise LoadRefused(
            f"this database is a copy of the log {there.origin}, and the export is of {origin}:"
            " name another data folder"
        )
    connection.execute(_BEGIN, (origin, log_key))


def end(connection: Connection, log_key: str, facts: int) -> None:
    """So many facts are there, with all views of them."""
    connection.execute(_END, (log_key, facts))
