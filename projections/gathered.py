"""Which tables of a view its rules only add rows to, so that a proof may add them without a key?

    rows of such a table == its rows without a key, grouped by the key, added up

A key costs more than all else of a row that is added, and a rule that adds rows reads none. So a
proof (`projections/anew.py`) leaves keys and indexes of such a table away, with `ON CONFLICT`, and
adds up what came when it compares. Read off the text of the rules: a rule that reads the table, or
changes it in another way than adding to sums and taking the larger value, leaves it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from projections.runner import Connection, Projection, own

_TABLE = re.compile(r"CREATE TABLE own\.(\w+) \((.*?)\)(?: WITH \([^)]*\))?;", re.DOTALL)
_KEY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_COLUMN_KEY = re.compile(r"(?:^|,)\s*(\w+) \w+(?: COLLATE \"C\")? PRIMARY KEY")
_KINDS = re.compile(
    r"(?:^|,)\s*(\w+) (?=text|bigint|int|boolean|numeric|smallint|json)(\w+)([^,]*)"
)
_CONFLICT = re.compile(r"ON CONFLICT \(([^)]*)\)\s+DO UPDATE\s+SET\s+", re.DOTALL)
_NEITHER_KEYS = """
    SELECT i.indexrelid::regclass::text, k.conname, i.indrelid::regclass::text
    FROM pg_index i LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid
        AND k.conrelid = i.indrelid
    WHERE i.indrelid = to_regclass(%s)
"""


@dataclass(frozen=True, slots=True)
class Gathered:
    """A table that rows are only added to: its columns in their order, and how those are added up
    that are not of its key. Without any every row has a key of its own.
    """

    columns: tuple[str, ...]
    sums: Mapping[str, str]

    def rows(self, table: str) -> str:
        """SQL: the rows that the table would have with its key."""
        if not self.sums:
            return table
        told = ", ".join(self.sums.get(name, name) for name in self.columns)
        key = ", ".join(name for name in self.columns if name not in self.sums)
        return f"(SELECT {told} FROM {table} GROUP BY {key}) gathered"


@lru_cache(maxsize=512)
def tables_of(projection: Projection) -> dict[str, Gathered]:
    """By name, those tables of a view that rows are only added to."""
    if projection.reports is not None:  # they are applied by statements that are not told here
        return {}
    rules = "\n;".join(rule.sql for rule in projection.rules)
    found = {}
    for name, body in _TABLE.findall(projection.tables):
        told = len(re.findall(rf"\bown\.{name}\b", rules))
        inserts = [at.end() for at in re.finditer(rf"INSERT INTO own\.{name}\b", rules)]
        ways = [_way(rules, at) for at in inserts]
        gathered = _gathered(body, ways) if told == len(inserts) else None
        if gathered is not None:
            found[name] = gathered
    return found


def without_conflicts(sql: str, tables: Mapping[str, Gathered]) -> str:
    """The statement, with rows simply added to these tables."""
    for name in tables:
        at = 0
        while (place := re.compile(rf"INSERT INTO own\.{name}\b").search(sql, at)) is not None:
            at = place.end()
            end = _end(sql, at)
            found = _CONFLICT.search(sql, at, end)
            if found is not None:
                sql = sql[: found.start()] + sql[end:]
    return sql


def drop_keys(connection: Connection, projection: Projection, schema: str) -> None:
    """Of tables that rows are only added to, in a schema beside the view: no keys, no indexes."""
    for name in tables_of(projection):
        for index, constraint, table in connection.execute(_NEITHER_KEYS, (f"{schema}.{name}",)):
            dropped = f"DROP INDEX {index}"
            if constraint is not None:
                dropped = f"ALTER TABLE {table} DROP CONSTRAINT {constraint}"
            connection.execute(own(schema, dropped))


def _end(sql: str, at: int) -> int:
    """Where the statement ends that goes on at a place: it may stand in brackets."""
    depth = 0
    for place in range(at, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[place], 0)
        if depth < 0 or (depth == 0 and sql[place] == ";"):
            return place
    return len(sql)


def _way(sql: str, at: int) -> tuple[str, dict[str, str]] | None:
    """Key and sums of the rows that are added there; no key: all of them are new. None: they may
    do something else to rows that are there.
    """
    end = _end(sql, at)
    if "ON CONFLICT" not in sql[at:end] and "RETURNING" not in sql[at:end]:
        return "", {}
    found = _CONFLICT.search(sql, at, end)
    if found is None or "RETURNING" in sql[at:end]:
        return None
    sums = dict(_sums(sql[found.end() : end]))
    return (_names(found.group(1)), sums) if "" not in sums else None


def _names(told: str) -> str:
    return " ".join(told.replace(",", " ").split())


def _sums(told: str) -> Iterator[tuple[str, str]]:
    """Column and how it is added up, of each that a conflict sets; an empty name of others."""
    each = re.split(r",\s*(?=\w+ = )", " ".join(told.split()))
    for one in each:
        added = re.fullmatch(r"(\w+) = \w+\.\1 \+ excluded\.\1", one)
        larger = re.fullmatch(r"(\w+) = greatest\(\w+\.\1, excluded\.\1\)", one)
        if added is not None:
            yield added.group(1), f"sum({added.group(1)})"
        elif larger is not None:
            yield larger.group(1), f"max({larger.group(1)})"
        else:
            yield "", one


def _gathered(body: str, ways: list[tuple[str, dict[str, str]] | None]) -> Gathered | None:
    """The table of this text, if all rows come in one of these ways, and no column is lost."""
    flat = " ".join(body.split())
    told = [*_KEY.findall(flat), *_COLUMN_KEY.findall(flat)]
    kinds = {name: (kind, rest) for name, kind, rest in _KINDS.findall(_KEY.sub("", flat))}
    if len(told) != 1 or not ways or None in ways or "UNIQUE" in flat:
        return None
    key, sums = _names(told[0]).split(), ways[0][1] if ways[0] else {}
    if any(way != ((" ".join(key), sums) if sums else ("", {})) for way in ways):
        return None
    if not sums:
        return Gathered((), {})
    if {*key, *sums} != kinds.keys() or any("NOT NULL" not in kinds[name][1] for name in sums):
        return None
    as_kept = {name: f"{told}::{kinds[name][0]} AS {name}" for name, told in sums.items()}
    return Gathered(tuple(kinds), as_kept)
