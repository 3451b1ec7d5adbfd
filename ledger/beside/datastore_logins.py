"""Users and passwords of SMB datastores: in no log, sealed with a key that only the server has.

    unseal(seal(user, password)) == user, password        with the server's key, with no other

Only the node of a lease that mounts the store is told them. A store that is removed has none.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

Connection = psycopg.Connection[Any]

_KEEP = """
    INSERT INTO datastore_login VALUES (%s, %s, %s)
    ON CONFLICT (datastore_id)
    DO UPDATE SET sealed = excluded.sealed, updated_us = excluded.updated_us
"""
_READ = "SELECT sealed FROM datastore_login WHERE datastore_id = %s"
_ERASE = "DELETE FROM datastore_login WHERE datastore_id = %s"


def keep(
    connection: Connection, key: bytes, datastore_id: str, user: str, password: str, now_us: int
) -> None:
    """Seal and keep the login of a store; `key`: 32 bytes."""
    sealed = SecretBox(key).encrypt(json.dumps([user, password]).encode())
    connection.execute(_KEEP, (datastore_id, bytes(sealed), now_us))


def read(connection: Connection, key: bytes, datastore_id: str) -> tuple[str, str] | None:
    """User and password; None: there are none, or another server sealed them."""
    row = connection.execute(_READ, (datastore_id,)).fetchone()
    if row is None:
        return None
    try:
        user, password = json.loads(SecretBox(key).decrypt(bytes(row[0])))
    except CryptoError:
        return None
    return str(user), str(password)


def erase(connection: Connection, datastore_id: str) -> None:
    """Forget the login of a store; nothing to forget is well too."""
    connection.execute(_ERASE, (datastore_id,))
