"""The one way the database gets its shape: numbered SQL, applied once, in order, never changed.

    applied migrations == a prefix of the numbered files, byte for byte (SHA-256)

Safe to run twice and from several processes at once: an advisory lock lets one through, the rest
find nothing to do. Not a way back: a wrong migration is answered by the next number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

import psycopg

from ledger import advisory

LOCK_ID = 0x7A11_7571
"""The advisory lock under which migrations run: any constant nobody else uses."""

FIRST = 1
"""The migration that makes the roles; every later one runs as `tallystick_owner`."""


LOGS = 2
"""The migrations up to this number make the two logs."""

POSTGRES_MIN = 15
"""The oldest major version that the SQL runs on; `tests/ledger/test_oldest_postgres.py` uses it."""


ROLES = ("tallystick_owner", "tallystick_app", "tallystick_projections", "tallystick_audit")
"""The first owns the tables; nobody else writes these but by the append functions."""
LOG_TABLES = (
    *("market_events", "market_events_head", "command", "account", "posting"),
    *("usage_event", "usage_key", "usage_head", "usage_node", "usage_evidence"),
)

Connection = psycopg.Connection[tuple[object, ...]]


class PostgresTooOld(Exception):
    """The SQL of the logs needs a newer PostgreSQL."""


class TextUnusable(Exception):
    """The database stores or sorts text in another way than the views and the tests do."""


class HistoryChanged(Exception):
    """A migration that was already applied has other bytes now, or is gone."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file `NNNN_name.sql`."""

    number: int
    name: str
    text: str

    @property
    def about(self) -> str:
        """What the file says of itself: the first sentence of its head."""
        lines = []
        for line in self.text.split("\n"):
            if not line.startswith("--"):
                break
            lines.append(line.removeprefix("--").strip())
        return " ".join(lines).split(". ", 1)[0].rstrip(".")

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


def plan(conninfo: str) -> list[Migration]:
    """What `migrate` would apply now, in order; nothing is written. Raises like `migrate`."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return missing(connection)


def migrate(
    conninfo: str, *, begins: Callable[[Migration], None] = lambda _migration: None
) -> list[str]:
    """Apply what is missing, each file in its own transaction; return the names applied.

    `begins` is told each file before it is applied. Raises HistoryChanged when the database was
    built from other files than these, by a newer version among others, PostgresTooOld,
    TextUnusable, and LockHeld where another process migrates for longer than it is waited for.
    """
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return migrate_on(connection, begins=begins)


def migrate_on(
    connection: Connection, *, begins: Callable[[Migration], None] = lambda _migration: None
) -> list[str]:
    """`migrate` on a connection of the login's own role, in autocommit mode: it stays as it was."""
    _require(connection)
    advisory.lock(connection, LOCK_ID, "the migrations, which another process applies")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration (number int PRIMARY KEY, name text NOT NULL,"
            " sha256 bytea NOT NULL)"
        )
        wanted = _missing(connection, shipped())
        for migration in wanted:
            begins(migration)
            _apply(connection, migration)
    finally:
        advisory.unlock(connection, LOCK_ID)
    return [migration.name for migration in wanted]


def _apply(connection: Connection, migration: Migration) -> None:
    with connection.transaction():
        if migration.number > FIRST:
            connection.execute("SET LOCAL ROLE tallystick_owner")
        connection.execute(migration.text.encode())
        connection.execute("RESET ROLE")
        connection.execute(
            "INSERT INTO migration VALUES (%s, %s, %s)",
            (migration.number, migration.name, migration.sha256),
        )


def missing(connection: Connection) -> list[Migration]:
    """What `migrate` would apply, in order; changes nothing. Raises like `migrate`."""
    _require(connection)
    made = connection.execute("SELECT to_regclass('public.migration')").fetchone()
    return shipped() if made == (None,) else _missing(connection, shipped())


def roles_not_held(connection: Connection) -> list[str]:
    """Which of the `ROLES` this login is no member of, by name."""
    found = connection.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
        " AND pg_has_role(current_user, oid, 'MEMBER')",
        (list(ROLES),),
    )
    return sorted(set(ROLES) - {str(name) for (name,) in found})


def writes_past_the_append(connection: Connection) -> tuple[str, str] | None:
    """A role and a table of the logs that it may write without the append functions; None: no role
    but the owner may.
    """
    row = connection.execute(
        "SELECT r.name, t.name FROM unnest(%s::text[]) AS r (name), unnest(%s::text[]) AS t (name)"
        " WHERE has_table_privilege(r.name, 'public.' || t.name,"
        " 'INSERT, UPDATE, DELETE, TRUNCATE') LIMIT 1",
        (list(ROLES[1:]), list(LOG_TABLES)),
    ).fetchone()
    return None if row is None else (str(row[0]), str(row[1]))


_TEXT = """
    SELECT current_setting('server_encoding'),
        array_agg(x ORDER BY x) = array_agg(x ORDER BY x COLLATE "C")
    FROM unnest(ARRAY['a', 'B', '_', 'b', 'A', '-', 'a_', 'aB']) x
"""


def text_unusable(connection: Connection) -> str | None:
    """What is wrong with the encoding or the order of text here, in a sentence; None: nothing."""
    row = connection.execute(_TEXT).fetchone()
    assert row is not None
    encoding = row[0].decode() if isinstance(row[0], bytes) else row[0]
    if encoding != "UTF8":
        return f"this database stores text as {encoding}, and UTF8 is needed"
    return None if row[1] else "this database sorts text by a language, and not by its bytes"


def _require(connection: Connection) -> None:
    """Raises PostgresTooOld, TextUnusable."""
    _require_version(connection.info.server_version)
    wrong = text_unusable(connection)
    if wrong is not None:
        raise TextUnusable(wrong)


def _require_version(number: int) -> None:
    if number // 10_000 < POSTGRES_MIN:
        raise PostgresTooOld(
            f"this is PostgreSQL {number // 10_000}, and {POSTGRES_MIN} or newer is needed"
        )


def _missing(connection: Connection, wanted: list[Migration]) -> list[Migration]:
    rows = connection.execute("SELECT number, name, sha256 FROM migration ORDER BY number")
    applied = {row[0]: (row[1], row[2]) for row in rows}
    for migration in wanted:
        if migration.number in applied and applied[migration.number][1] != migration.sha256:
            raise HistoryChanged(f"{migration.name} was applied with other bytes")
    unknown = applied.keys() - {migration.number for migration in wanted}
    if unknown:
        names = ", ".join(str(applied[number][0]) for number in sorted(unknown, key=str))
        raise HistoryChanged(
            f"a newer version migrated this database: applied, but not shipped here: {names}"
        )
    missing = [migration for migration in wanted if migration.number not in applied]
    if missing and applied and missing[0].number < max(map(int, map(str, applied))):
        raise HistoryChanged(f"{missing[0].name} comes before one already applied")
    return missing
