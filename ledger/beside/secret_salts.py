"""Salts of secrets that are shown once: with its salt a secret is made again, for 24 hours.

    secret == HMAC(server key, request || salt)       while its salt is here, nobody's afterwards

Not facts. The table is UNLOGGED: no write-ahead log and no physical backup holds a salt, and a
crash of the database forgets them all. A secret that nobody can be shown any more is replaced.
"""

from __future__ import annotations

from typing import Any

import psycopg

from domain.duration import DAY_US

Connection = psycopg.Connection[Any]

SHOWN_US = DAY_US
"""So long may a secret be asked for again by the same request."""

_FIND = "SELECT salt FROM secret_salt WHERE name = %s AND made_us > %s"
_KEEP = """
    INSERT INTO secret_salt VALUES (%(name)s, %(salt)s, %(now_us)s)
    ON CONFLICT (name) DO UPDATE SET salt = EXCLUDED.salt, made_us = EXCLUDED.made_us
    WHERE secret_salt.made_us <= %(until_us)s
"""
_FORGET = "DELETE FROM secret_salt WHERE made_us <= %s"


def find(connection: Connection, name: bytes, now_us: int) -> bytes | None:
    """The salt of a request's secret; None: there was none, or its time is over."""
    row = connection.execute(_FIND, (name, now_us - SHOWN_US)).fetchone()
    return None if row is None else bytes(row[0])


def keep(connection: Connection, name: bytes, salt: bytes, now_us: int) -> bytes:
    """Keep a salt unless another process has just kept one; the one that is kept."""
    told = {"name": name, "salt": salt, "now_us": now_us, "until_us": now_us - SHOWN_US}
    connection.execute(_KEEP, told)
    found = find(connection, name, now_us)
    assert found is not None, "it was kept, or another's is there"
    return found


def forget(connection: Connection, now_us: int) -> int:
    """Erase the salts whose time is over; how many."""
    return connection.execute(_FORGET, (now_us - SHOWN_US,)).rowcount
