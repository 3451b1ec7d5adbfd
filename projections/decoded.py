"""The facts of a range of the market log, found and decoded once for all rules that are to run.

    facts of a rule == what `runner.statement` would give it for the same range

In a log of many kinds most are seldom, and each rule would search the whole range for its own:
those are sorted into one copy first, and looked up there. A kind that several rules read has a
table, with a column for every field that some rule reads of it, where it has facts enough.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
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
    read. Raises GapInLog.
    """

    def __init__(
        self,
        connection: Connection,
        projections: Iterable[Projection],
        schema: str,
        first: int,
        last: int,
    ) -> None:
        self._first, self._last = first, last
        self._counted = runner.counted(connection, first, last)
        rules = [rule for projection in projections for rule in projection.rules]
        readers = Counter(topic for rule in rules for topic in self._topics(rule))
        again = {topic: self._counted[topic] * (each - 1) for topic, each in readers.items()}
        decoded = [topic for topic in readers if again[topic] > DECODED_AGAIN_MAX]
        self._columns: dict[str, dict[str, str]] = {topic: {} for topic in decoded}
        for rule in rules:
            for topic in self._topics(rule):
                for name, kind in runner.fields_of(rule):
                    self._columns.get(topic, {}).setdefault(name, kind)
        self._tables = {topic: f"{schema}.t{n}" for n, topic in enumerate(decoded)}
        with connection.transaction():
            connection.execute(
                "SET LOCAL synchronous_commit = off; SET LOCAL work_mem = '64MB';"
                f" SET LOCAL ROLE {runner.OWNER};"
                f" DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}".encode()
            )
            self._found_in = self._sort_seldom(connection, rules, f"{schema}.seldom")
            for topic in decoded:
                self._decode(connection, topic)

    def apply(self, connection: Connection, projection: Projection, schema: str) -> float:
        """Run the rules of one view over the range, in `schema`; returns the seconds."""
        began = time.perf_counter()
        span = {"first": self._first, "last": self._last}
        with connection.transaction():
            assert runner.lock(connection, schema) == self._first, schema
            for rule in projection.rules:
                if runner.is_asked(rule, self._counted):
                    connection.execute(self._statement(rule, schema), span)
            runner.move(connection, schema, self._last)
        return time.perf_counter() - began

    def _sort_seldom(
        self, connection: Connection, rules: Iterable[Rule], table: str
    ) -> dict[str, str]:
        """Kinds that are few, and the table that has their facts as they are stored. Facts of a
        kind keep the order of their positions.
        """
        most = (self._last - self._first) / SELDOM
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
            f" AND notification_id <= {self._last} AND topic IN ({runner.names_of(seldom)})"
            f" ORDER BY topic, notification_id; CREATE INDEX ON {table} (topic)".encode()
        )
        return dict.fromkeys(seldom, table)

    def _decode(self, connection: Connection, topic: str) -> None:
        told = ", ".join(f"{name} {kind}" for name, kind in self._columns[topic].items())
        try:
            with connection.transaction():
                connection.execute(
                    f"CREATE UNLOGGED TABLE {self._tables[topic]} AS"
                    f" {' UNION ALL '.join(self._stored([topic], told))}".encode()
                )
        except psycopg.DataError:
            del self._tables[topic]

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
        parts, others = [], []
        for topic in self._topics(rule):
            table, columns = self._tables.get(topic), self._columns.get(topic, {})
            if table is not None and all(columns[name] == kind for name, kind in fields):
                parts.append(f"SELECT {names} FROM {table}")
            else:
                others.append(topic)
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
        bounds = (("%(first)s", str(self._first)), ("%(last)s", str(self._last)))
        for name, value in bounds:
            found = [part.replace(name, value) for part in found]
        return found
