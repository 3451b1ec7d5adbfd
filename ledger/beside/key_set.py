"""Which machine made the keys of this log: one row, written with the keys and never changed.

    two machines open an empty log  =>  one makes keys, the other one is told whose they are

Not a fact: it says so before the log has one. Once the log itself depends on a key, the log
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

_THERE = "SELECT to_regclass('public.key_set')"
_READ = "SELECT machine, folder, blinding_sha256, signer_public FROM key_set"
_KEEP = """
    INSERT INTO key_set (machine, folder, blinding_sha256, signer_public) VALUES (%s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Where it was made, and by what its two keys that the log depends on are known."""

    machine: str
    folder: str
    blinding_sha256: bytes
    signer_public: bytes


def read(connection: Connection) -> KeySet | None:
    """None: no keys were made for this log, or the database is of a version before this table."""
    if connection.execute(_THERE).fetchone() == (None,):
        return None
    row = connection.execute(_READ).fetchone()
    if row is None:
        return None
    machine, folder, blinding, signer = row
    return KeySet(str(machine), str(folder), bytes(blinding), bytes(signer))


def keep(connection: Connection, made: KeySet) -> None:
    """Raises UniqueViolation where it is there."""
    connection.execute(_KEEP, (made.machine, made.folder, made.blinding_sha256, made.signer_public))
