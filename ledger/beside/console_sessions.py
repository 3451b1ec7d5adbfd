"""Which browsers are signed in to the console. Not facts: losing these rows signs everybody out.

    a row opens anything at t  =>  begun_us <= t < ends_us  and  t < seen_us + IDLE_US

The token itself is kept nowhere, only its SHA-256; neither is an API key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row

Connection = psycopg.Connection[Any]

LIFE_US = 12 * 3_600_000_000
IDLE_US = 2 * 3_600_000_000
SEEN_STEP_US = 60_000_000
"""How exactly it is known when a browser was last seen: a row is written once a minute at most."""
MEMBER_MAX = 20
"""Sessions of one member; the one that was seen least recently ends when another begins."""

_COLUMNS = "session_id, account_id, member_id, key_id, wallet, browser, begun_us, seen_us, ends_us"
_LIVE = "ends_us > %(now)s AND seen_us > %(now)s - %(idle)s"
_KEEP = f"""
    INSERT INTO console_session (token_sha256, {_COLUMNS})
    VALUES (%(token)s, %(session_id)s, %(account_id)s, %(member_id)s, %(key_id)s, %(wallet)s,
        %(browser)s, %(begun_us)s, %(seen_us)s, %(ends_us)s)
"""  # noqa: S608
_FORGET = f"DELETE FROM console_session WHERE NOT ({_LIVE})"  # noqa: S608
_CROWDED = """
    DELETE FROM console_session WHERE session_id IN (
        SELECT session_id FROM console_session
        WHERE account_id = %(account_id)s AND member_id = %(member_id)s
        ORDER BY seen_us DESC, session_id OFFSET %(most)s)
"""
_FIND = f"SELECT {_COLUMNS} FROM console_session WHERE token_sha256 = %(token)s AND {_LIVE}"  # noqa: S608
_SEEN = "UPDATE console_session SET seen_us = greatest(seen_us, %s) WHERE token_sha256 = %s"
_OF = f"""
    SELECT {_COLUMNS} FROM console_session
    WHERE account_id = %(account_id)s AND member_id = %(member_id)s AND {_LIVE}
    ORDER BY seen_us DESC, session_id
"""  # noqa: S608
_STILL = f"SELECT session_id FROM console_session WHERE session_id = ANY(%(ids)s) AND {_LIVE}"  # noqa: S608
_END = """
    DELETE FROM console_session WHERE session_id = %s AND account_id = %s AND member_id = %s
    RETURNING 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSession:
    """One browser; `key_id` names the API key it was begun with, `wallet` the address."""

    session_id: str
    account_id: str
    member_id: str
    key_id: str | None
    wallet: str | None
    browser: str
    begun_us: int
    seen_us: int
    ends_us: int


def keep(connection: Connection, token_sha256: str, session: ConsoleSession) -> None:
    """Keep a new session, forget those that are over, and the oldest of a member with many."""
    named = {name: getattr(session, name) for name in ConsoleSession.__slots__}
    connection.execute(_FORGET, {"now": session.begun_us, "idle": IDLE_US})
    connection.execute(_CROWDED, {**named, "most": MEMBER_MAX - 1})
    connection.execute(_KEEP, {**named, "token": token_sha256})


def find(connection: Connection, token_sha256: str, now_us: int) -> ConsoleSession | None:
    """The session of this token, noted as seen; None: there is none, or it is over."""
    with connection.cursor(row_factory=class_row(ConsoleSession)) as cursor:
        named = {"token": token_sha256, "now": now_us, "idle": IDLE_US}
        found = cursor.execute(_FIND, named).fetchone()
    if found is not None and found.seen_us + SEEN_STEP_US <= now_us:
        connection.execute(_SEEN, (now_us, token_sha256))
    return found


def of_member(
    connection: Connection, account_id: str, member_id: str, now_us: int
) -> list[ConsoleSession]:
    """The sessions of one member that are not over, last seen first."""
    with connection.cursor(row_factory=class_row(ConsoleSession)) as cursor:
        named = {"account_id": account_id, "member_id": member_id, "now": now_us, "idle": IDLE_US}
        return cursor.execute(_OF, named).fetchall()


def still_there(connection: Connection, session_ids: Sequence[str], now_us: int) -> set[str]:
    """Which of these sessions are not over."""
    named = {"ids": list(session_ids), "now": now_us, "idle": IDLE_US}
    return {str(found) for (found,) in connection.execute(_STILL, named)}


def end(connection: Connection, session_id: str, account_id: str, member_id: str) -> bool:
    """End a session of this member; False: the member has none of this id."""
    return connection.execute(_END, (session_id, account_id, member_id)).fetchone() is not None
