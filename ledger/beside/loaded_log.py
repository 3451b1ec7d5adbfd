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

Connection = psycopg.Connection[Any]

_THERE = "SELECT to_regclass('public.loaded_log')"
_READ = "SELECT origin, log_key, facts FROM public.loaded_log"
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
    """From here on this is a copy, and no whole one."""
    connection.execute(_BEGIN, (origin, log_key))


def end(connection: Connection, log_key: str, facts: int) -> None:
    """So many facts are there, with all views of them."""
    connection.execute(_END, (log_key, facts))
