"""Variables of device configurations: in no log, sealed with a key that only the server has.

    unseal(seal(variables)) == variables        with the server's key, with no other
    one digest, one row, for ever               so a revision keeps the values that it was set with

Only the device that runs a configuration is told them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

Connection = psycopg.Connection[Any]

_KEEP = "INSERT INTO device_environment VALUES (%s, %s, %s) ON CONFLICT (digest) DO NOTHING"
_READ = "SELECT sealed FROM device_environment WHERE digest = %s"


def keep(
    connection: Connection, key: bytes, digest: str, variables: Mapping[str, str], now_us: int
) -> None:
    """Seal and keep variables under the digest that covers them; `key`: 32 bytes."""
    sealed = SecretBox(key).encrypt(json.dumps(dict(variables)).encode())
    connection.execute(_KEEP, (digest, bytes(sealed), now_us))


def read(connection: Connection, key: bytes, digest: str) -> dict[str, str] | None:
    """The variables; None: there are none, or another server sealed them."""
    row = connection.execute(_READ, (digest,)).fetchone()
    if row is None:
        return None
    try:
        found: dict[str, str] = json.loads(SecretBox(key).decrypt(bytes(row[0])))
    except CryptoError:
        return None
    return found
