"""The one way the database gets its shape: numbered SQL, applied once, in order, never changed.

    applied migrations == a prefix of the numbered files, byte for byte (SHA-256)

Safe to run twice and from several processes at once: an advisory lock lets one through, the rest
find nothing to do. Not a way back: a wrong migration is answered by the next number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

import psycopg

LOCK_ID = 0x7A11_7571
"""The advisory lock under which migrations run: any constant nobody else uses."""

FIRST = 1
"""The migration that makes the roles; every later one runs as `tallystick_owner`."""


class HistoryChanged(Exception):
    """A migration that was already applied has other bytes now, or is gone."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file `NNNN_name.sql`."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.text.encode()).digest()


def shipped() -> list[Migration]:
    """The migrations of this version of the software, in order."""
    files = [
        f for f in (resources.files("ledger") / "migrations").iterdir() if f.name.endswith(".sql")
    ]
    found = [
        Migration(int(file.name[:4]), file.name, file.read_text(encoding="utf-8"))
        for file in sorted(files, key=lambda file: file.name)
    ]
    assert len({migration.number for migration in found}) == len(found), "a number twice"
    return found


def migrate(conninfo: str) -> list[str]:
    """Apply what is missing, each file in its own transaction; return the names applied.

    Raises HistoryChanged when the database was built from other files than these.
    """
    applied: list[str] = []
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (LOCK_ID,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration (number int PRIMARY KEY, name text NOT NULL,"
            " sha256 bytea NOT NULL)"
        )
        for migration in _missing(connection, shipped()):
            with connection.transaction():
                if migration.number > FIRST:
                    connection.execute("SET LOCAL ROLE tallystick_owner")
                connection.execute(migration.text.encode())
                connection.execute("RESET ROLE")
                connection.execute(
                    "INSERT INTO migration VALUES (%s, %s, %s)",
                    (migration.number, migration.name, migration.sha256),
                )
            applied.append(migration.name)
    return applied


def missing(connection: psycopg.Connection[tuple[object, ...]]) -> list[Migration]:
    """What `migrate` would apply; changes nothing. Raises HistoryChanged as it does."""
    return _missing(connection, shipped())


def _missing(
    connection: psycopg.Connection[tuple[object, ...]], wanted: list[Migration]
) -> list[Migration]:
    rows = connection.execute("SELECT number, name, sha256 FROM migration ORDER BY number")
    applied = {row[0]: (row[1], row[2]) for row in rows}
    for migration in wanted:
        if migration.number in applied and applied[migration.number][1] != migration.sha256:
            raise HistoryChanged(f"{migration.name} was applied with other bytes")
    unknown = applied.keys() - {migration.number for migration in wanted}
    if unknown:
        raise HistoryChanged(f"applied, but not shipped: {sorted(map(str, unknown))}")
    missing = [migration for migration in wanted if migration.number not in applied]
    if missing and applied and missing[0].number < max(map(int, map(str, applied))):
        raise HistoryChanged(f"{missing[0].name} comes before one already applied")
    return missing
