"""The facts of a range of the market log, found and decoded once for all rules that are to run.

    facts of a rule == what `runner.statement` would give it for the same range

In a log of many kinds most are seldom, and each rule would search the whole range for its own:
those are copied out first, and looked up there. Kinds that the same rules read have one table, with
a column for every field that some rule reads of them, where there are facts enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from projections import runner
from projections.runner import Connection, Projection, Rule, own

SELDOM: Final = 10
"""A kind of less than one of so many facts of a range is looked up, not searched for."""
DECODED_AGAIN_MAX: Final = 500
"""A table costs as much as to decode so many facts: where fewer would be decoded again, none is
made."""
_ALWAYS = "position, stream_version, topic, recorded_us"


class Decoded:
    """The facts first < position <= last, in tables of `schema`, which is made anew.

    Where two rules read one field as different types, the column has the first one's, and the other
    rule decodes the facts of that kind for itself; so do all, where one of these facts cannot be
    read. `whole`: kinds that one rule reads have tables as well. Raises GapInLog.
    """

    def __init__(
        self,
        connection: Connection,
        projections: Iterable[Projection],
        schema: str,
        first: int,
        last: int,
        *,
        whole: bool = False,
    ) -> None:
        began = time.perf_counter()
        self._first, self.last = first, last
        self._counted = runner.counted(connection, first, last)
        rules = [rule for projection in projections for rule in projection.rules]
        self._columns: dict[str, dict[str, str]] = {}
        self._tables: dict[str, str] = {}
        groups = self._groups(rules, 0 if whole else 1)
        with connection.transaction():
            connection.execute(
                "SET LOCAL synchronous_commit = off; SET LOCAL work_mem = '64MB';"
                f" SET LOCAL ROLE {runner.OWNER};"
                f" DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}".encode()
            )
            self._found_in = self._copy_seldom(connection, rules, f"{schema}.seldom")
            for number, (topics, readers) in enumerate(groups):
                self._decode(connection, topics, readers, f"{schema}.t{number}")
        self.seconds = time.perf_counter() - began

    def apply(self, connection: Connection, projection: Projection, schema: str) -> float:
        """Run the rules of one view over the range, in `schema`; returns the seconds."""
        began = time.perf_counter()
        span = {"first": self._first, "last": self.last}
        with connection.transaction():
            assert runner.lock(connection, schema) == self._first, schema
            for rule in projection.rules:
                if runner.is_asked(rule, self._counted):
                    connection.execute(self._statement(rule, schema), span)
            runner.move(connection, schema, self.last)
        return time.perf_counter() - began

    def _groups(self, rules: Sequence[Rule], once: int) -> list[tuple[list[str], list[Rule]]]:
        """Kinds that the same rules read, and these rules, where enough facts would be decoded by
        more than `once` of them.
        """
        readers: dict[str, list[int]] = {}
        for number, rule in enumerate(rules):
            for topic in self._topics(rule):
                readers.setdefault(topic, []).append(number)
        kinds: dict[tuple[int, ...], list[str]] = {}
        for topic, numbers in readers.items():
            kinds.setdefault(tuple(numbers), []).append(topic)
        return [
            (topics, [rules[number] for number in numbers])
            for numbers, topics in kinds.items()
            if sum(self._counted[topic] for topic in topics) * (len(numbers) - once)
            > DECODED_AGAIN_MAX
        ]

    def _copy_seldom(
        self, connection: Connection, rules: Iterable[Rule], table: str
    ) -> dict[str, str]:
        """Kinds that are few, and the table that has their facts as they are stored."""
        most = (self.last - self._first) / SELDOM
        asking = [
            [topic for topic in self._topics(rule) if self._counted[topic] < most]
            for rule in rules
            if rule.topics != (runner.EVERY,)
        ]
        seldom = sorted({topic for topics in asking for topic in topics})
        if sum(map(bool, asking)) < 2:  # to copy for one is to search for it
            return {}
        connection.execute(
            f"CREATE UNLOGGED TABLE {table} AS SELECT notification_id, originator_version, topic,"
            f" recorded_us, state FROM {runner.LOG} WHERE notification_id > {self._first}"
            f" AND notification_id <= {self.last} AND topic IN ({runner.names_of(seldom)});"
            f" CREATE INDEX ON {table} (topic)".encode()
        )
        return dict.fromkeys(seldom, table)

    def _decode(
        self, connection: Connection, topics: list[str], rules: list[Rule], table: str
    ) -> None:
        columns: dict[str, str] = {}
        for rule in rules:
            for name, kind in runner.fields_of(rule):
                columns.setdefault(name, kind)
        told = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        with suppress(psycopg.DataError), connection.transaction():
            connection.execute(
                f"CREATE UNLOGGED TABLE {table} AS"
                f" {' UNION ALL '.join(self._stored(topics, told))}".encode()
            )
            self._tables |= dict.fromkeys(topics, table)
            self._columns |= dict.fromkeys(topics, columns)

    def _topics(self, rule: Rule) -> list[str]:
        """The kinds of facts in the range that a rule reads."""
        if rule.topics == (runner.EVERY,):
            return list(self._counted)
        return [topic for topic in rule.topics if topic in self._counted]

    def _statement(self, rule: Rule, schema: str) -> bytes:
        if not rule.topics:
            return runner.statement(rule, schema)
        fields = runner.fields_of(rule)
        names = ", ".join([_ALWAYS, *(name for name, _ in fields)])
        found, others = [], []
        for topic in self._topics(rule):
            columns = self._columns.get(topic, {})
            if topic in self._tables and all(columns[name] == kind for name, kind in fields):
                found.append(self._tables[topic])
            else:
                others.append(topic)
        # Of a table all kinds are read: the rules that read one of them read all.
        parts = [f"SELECT {names} FROM {table}" for table in dict.fromkeys(found)]
        if not parts and rule.topics == (runner.EVERY,):
            return runner.statement(rule, schema)
        # A log that was tampered with may hold any name, and this text is given parameters.
        parts += [part.replace("%", "%%") for part in self._stored(others, rule.fields)]
        return own(schema, f"WITH facts AS ({' UNION ALL '.join(parts)}) {rule.sql}")

    def _stored(self, topics: Iterable[str], fields: str) -> list[str]:
        """SQL for each place where facts of these kinds are: they are decoded there."""
        places: dict[str, list[str]] = {}
        for topic in topics:
            places.setdefault(self._found_in.get(topic, runner.LOG), []).append(topic)
        found = [runner.facts_of(some, fields, place) for place, some in places.items()]
        bounds = (("%(first)s", str(self._first)), ("%(last)s", str(self.last)))
        for name, value in bounds:  # the first one: names of facts come behind it
            found = [part.replace(name, value, 1) for part in found]
        return found
