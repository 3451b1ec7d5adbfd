"""Secrets that the server itself needs for long: random or told, and sealed with `sealing.key`.

    read(name) == what was kept under this name        with that key alone, and under no other name

What signs the webhooks of accounts, the logins of SMB datastores, and the variables of device
configurations. Not facts: nothing in the log and in `server.key` gives one back. Without the
sealing key they are lost, and are replaced.
"""

from __future__ import annotations

import hashlib
from typing import Any

import psycopg
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

Connection = psycopg.Connection[Any]

_KEEP = """
    INSERT INTO sealed_secret VALUES (%s, %s, %s, NULL)
    ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, kept_us = excluded.kept_us
"""
_READ = "SELECT sealed FROM sealed_secret WHERE name = %s"
_NEWEST = "SELECT name FROM sealed_secret ORDER BY kept_us DESC, name LIMIT 1"
_END = "UPDATE sealed_secret SET until_us = %s WHERE name = %s"
_ERASE = "DELETE FROM sealed_secret WHERE name = %s"
_FORGET = "DELETE FROM sealed_secret WHERE until_us <= %s"


def keep(connection: Connection, key: bytes, name: str, secret: bytes, now_us: int) -> None:
    """Seal a secret and keep it, in place of the one that had this name. `key`: 32 bytes."""
    connection.execute(_KEEP, (name, bytes(_box(key, name).encrypt(secret)), now_us))


def read(connection: Connection, key: bytes, name: str) -> bytes | None:
    """The secret of this name; None: there is none, or another key sealed it."""
    row = connection.execute(_READ, (name,)).fetchone()
    if row is None:
        return None
    try:
        return bytes(_box(key, name).decrypt(bytes(row[0])))
    except CryptoError:
        return None


def newest(connection: Connection) -> str | None:
    """The name of the secret that was kept last; None: there is none."""
    row = connection.execute(_NEWEST).fetchone()
    return None if row is None else str(row[0])


def end(connection: Connection, name: str, until_us: int) -> None:
    """Keep a secret until then, and no longer."""
    connection.execute(_END, (until_us, name))


def erase(connection: Connection, name: str) -> None:
    """Forget a secret now; nothing to forget is well too."""
    connection.execute(_ERASE, (name,))


def forget(connection: Connection, now_us: int) -> int:
    """Erase the secrets whose end has come; how many."""
    return connection.execute(_FORGET, (now_us,)).rowcount


def _box(key: bytes, name: str) -> SecretBox:
    """Each name has a key of its own, so a row that is moved to another name does not open."""
    return SecretBox(hashlib.blake2b(name.encode(), key=key, digest_size=32).digest())
