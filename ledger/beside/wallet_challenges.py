"""Texts that wallets were asked to sign, until they are used or their time is over. Not facts.

a text is taken at most once:  the DELETE that finds its row is the only one that does
"""

from __future__ import annotations

from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

_KEEP = "INSERT INTO wallet_challenge VALUES (%s, %s, %s, %s, %s)"
_FORGET = "DELETE FROM wallet_challenge WHERE expires_at_us <= %s"
_FIND = """
    SELECT address, message FROM wallet_challenge
    WHERE nonce = %s AND account_id = %s AND expires_at_us > %s
"""
_TAKE = "DELETE FROM wallet_challenge WHERE nonce = %s RETURNING 1"


def keep(
    connection: Connection,
    nonce: str,
    account_id: str,
    address: str,
    message: str,
    *,
    expires_at_us: int,
    now_us: int,
) -> None:
    """Keep a text, and forget those whose time is over."""
    connection.execute(_FORGET, (now_us,))
    connection.execute(_KEEP, (nonce, account_id, address, message, expires_at_us))


def find(
    connection: Connection, nonce: str, account_id: str, now_us: int
) -> tuple[str, str] | None:
    """(address, text) that this account was given; None: none, used, or too late."""
    row = connection.execute(_FIND, (nonce, account_id, now_us)).fetchone()
    return None if row is None else (str(row[0]), str(row[1]))


def take(connection: Connection, nonce: str) -> bool:
    """Use a text up; False when somebody else has."""
    return connection.execute(_TAKE, (nonce,)).fetchone() is not None
