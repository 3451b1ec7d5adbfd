"""One change, drawn by a seed: of a row of a table, or of a file. Says in words what it did."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import sql

Connection = psycopg.Connection[Any]
KINDS = ("flip", "delete", "swap", "insert", "truncate")
BITS = {"byte": 6, "smallint": 15, "integer": 31, "bigint": 63}
ATTEMPTS = 200
_COLUMNS: LiteralString = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    ORDER BY attnum
"""
_CONSTRAINTS: LiteralString = """
    SELECT conname FROM pg_constraint
    WHERE conrelid = %s::regclass AND contype IN ('c', 'f', 'u', 'p', 'x')
"""
_IDENTITIES: LiteralString = """
    SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attidentity <> ''
"""
_UNIQUE: LiteralString = """
    SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass AND indisunique
"""


class NothingToChange(Exception):
    """This table, file or kind offers nothing: draw again."""


def defenceless(conn: Connection, name: str) -> None:
    """What a superuser can do: no trigger, no constraint and no unique index is in the way."""
    table = sql.Identifier(*name.split("."))
    conn.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER ALL").format(table))
    for (constraint,) in conn.execute(_CONSTRAINTS, (name,)).fetchall():
        dropping = sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {} CASCADE")
        conn.execute(dropping.format(table, sql.Identifier(constraint)))
    for (column,) in conn.execute(_IDENTITIES, (name,)).fetchall():
        numbered = sql.SQL("ALTER TABLE {} ALTER COLUMN {} DROP IDENTITY")
        conn.execute(numbered.format(table, sql.Identifier(column)))
    for (index,) in conn.execute(_UNIQUE, (name,)).fetchall():
        conn.execute(f"DROP INDEX {index}".encode())


class Table:
    """One table whose rows are changed; `spared` columns are not."""

    def __init__(self, conn: Connection, name: str, spared: frozenset[str] = frozenset()) -> None:
        self.name, self._conn = name, conn
        self._table = sql.Identifier(*name.split("."))
        found = conn.execute(_COLUMNS, (name,)).fetchall()
        self._all = [column for column, _ in found]
        self._columns = [(column, kind) for column, kind in found if column not in spared]

    def change(self, kind: str, draw: Random) -> str:
        """Do it. Raises NothingToChange, also where the rows are the same as before, as when two
        equal rows change places.
        """
        before = self._sum()
        done = self._change(kind, draw)
        if self._sum() == before:
            raise NothingToChange
        return done

    def _sum(self) -> Any:
        query = sql.SQL("SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {} t")
        return self._conn.execute(query.format(self._table)).fetchone()

    def _change(self, kind: str, draw: Random) -> str:
        rows = self._rows()
        if not rows:
            raise NothingToChange
        if kind == "flip":
            return self._flip(draw, draw.choice(rows))
        if kind == "swap":
            return self._swap(draw, rows)
        if kind == "insert":
            return self._insert(draw, draw.choice(rows))
        gone = [draw.choice(rows)] if kind == "delete" else rows[draw.randrange(len(rows)) :]
        self._run("DELETE FROM {} WHERE ctid = ANY(%s::tid[])", gone)
        return f"{kind} {len(gone)} of {len(rows)} rows of {self.name}"

    def _rows(self) -> list[str]:
        found = self._conn.execute(
            sql.SQL("SELECT ctid::text FROM {} ORDER BY ctid").format(self._table)
        )
        return [row for (row,) in found]

    def _run(self, query: LiteralString, *parameters: Any) -> None:
        self._conn.execute(sql.SQL(query).format(self._table), parameters)

    def _value(self, column: str, row: str) -> Any:
        query = sql.SQL("SELECT {} FROM {} WHERE ctid = %s::tid")
        found = self._conn.execute(query.format(sql.Identifier(column), self._table), (row,))
        (value,) = found.fetchone() or (None,)
        return value

    def _put(self, column: str, kind: str, row: str, value: Any) -> None:
        query = sql.SQL("UPDATE {} SET {} = %s::" + kind + " WHERE ctid = %s::tid RETURNING 1")
        done = self._conn.execute(query.format(self._table, sql.Identifier(column)), (value, row))
        assert done.rowcount == 1, (self.name, column, row)

    def _flip(self, draw: Random, row: str) -> str:
        column, kind = draw.choice(self._columns)
        value = self._value(column, row)
        other = changed(draw, value, kind)
        self._put(column, kind, row, other)
        return f"flip {self.name}.{column} of row {row}: {value!r:.80} to {other!r:.80}"

    def _swap(self, draw: Random, rows: list[str]) -> str:
        if len(rows) < 2:
            raise NothingToChange
        one, two = draw.sample(rows, 2)
        column, kind = draw.choice(self._columns)
        first, second = self._value(column, one), self._value(column, two)
        if first == second or isinstance(first, dict):
            raise NothingToChange
        query = sql.SQL(
            "UPDATE {} SET {} = CASE WHEN ctid = %s::tid THEN %s::"
            + kind
            + " ELSE %s::"
            + kind
            + " END WHERE ctid IN (%s::tid, %s::tid)"
        ).format(self._table, sql.Identifier(column))
        self._conn.execute(query, (one, second, first, one, two))
        return f"swap {self.name}.{column} of rows {one} and {two}"

    def _insert(self, draw: Random, row: str) -> str:
        """A row as another, with another value in one column."""
        column, kind = draw.choice(self._columns)
        other = changed(draw, self._value(column, row), kind)
        names = sql.SQL(", ").join(map(sql.Identifier, self._all))
        values = sql.SQL(", ").join(
            sql.SQL("%s::" + kind) if one == column else sql.Identifier(one) for one in self._all
        )
        query = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE ctid = %s::tid")
        self._conn.execute(query.format(self._table, names, values, self._table), (other, row))
        return f"insert into {self.name} a row as {row} with {column} {other!r:.80}"


def changed(draw: Random, value: Any, kind: str) -> Any:
    """Another value of its type. Raises NothingToChange for what has no other one to draw."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and kind in BITS:
        return value ^ (1 << draw.randrange(BITS[kind]))
    if isinstance(value, UUID):
        return UUID(int=value.int ^ (1 << draw.randrange(128)))
    if isinstance(value, str) and kind == "text":
        at = draw.randrange(len(value) + 1)
        other = draw.choice([one for one in "abcdefgh0123456789" if one != value[at : at + 1]])
        return value[:at] + other + value[at + 1 :]
    if isinstance(value, bytes | memoryview):
        return changed_bytes(draw, bytes(value))
    if isinstance(value, list) and value and isinstance(value[0], int | str):
        at = draw.randrange(len(value))
        return [*value[:at], changed(draw, value[at], kind.removesuffix("[]")), *value[at + 1 :]]
    raise NothingToChange


def changed_bytes(draw: Random, value: bytes) -> bytes:
    """One bit of them; one byte more where there is none."""
    if not value:
        return bytes([draw.randrange(256)])
    at = draw.randrange(len(value))
    return value[:at] + bytes([value[at] ^ (1 << draw.randrange(8))]) + value[at + 1 :]


def change_files(kind: str, draw: Random, folder: Path) -> str:
    """Of all files below a folder. Raises NothingToChange."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = draw.choice(files)
    name, old = path.relative_to(folder), path.read_bytes()
    if kind == "delete":
        path.unlink()
        return f"delete {name}"
    if kind == "swap":
        other = draw.choice(files)
        if other.read_bytes() == old:
            raise NothingToChange
        path.write_bytes(other.read_bytes())
        other.write_bytes(old)
        return f"swap {name} and {other.relative_to(folder)}"
    at = draw.randrange(len(old) + 1)
    if kind == "insert":
        path.write_bytes(old[:at] + draw.randbytes(draw.randrange(1, 9)) + old[at:])
    elif kind == "truncate":
        at = at if at < len(old) else 0
        path.write_bytes(old[:at])
    else:
        new = changed_bytes(draw, old)
        at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
        path.write_bytes(new)
    if path.read_bytes() == old:
        raise NothingToChange
    return f"{kind} {name} at byte {at} of {len(old)}"


def copied(folder: Path, to: Path) -> Path:
    """A fresh copy, whatever lies there from the time before."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to
