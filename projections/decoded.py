"""The facts of a range of the market log, decoded once for all rules of all views.

    facts of a rule == what `runner.statement` would give it for the same range

There is a table for each kind of fact that a rule reads, with a column for every field that some
rule reads of the kind. In a log of many kinds most are seldom, and each would search the whole
range for its own: those are sorted into one copy first, and looked up there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

import psycopg

from projections import runner, tables
from projections.runner import Connection, Projection, Rule, own

SELDOM: Final = 10
"""A kind of less than one of so many facts of a range is looked up, not searched for."""
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
        self._columns: dict[str, dict[str, str]] = {}
        for rule in (rule for projection in projections for rule in projection.rules):
            for topic in self._topics(rule):
                columns = self._columns.setdefault(topic, {})
                for name, kind in runner.fields_of(rule):
                    columns.setdefault(name, kind)
        self._tables = {topic: f"{schema}.t{n}" for n, topic in enumerate(self._columns)}
        with connection.transaction():
            connection.execute(
                f"SET LOCAL synchronous_commit = off; SET LOCAL ROLE {tables.OWNER};"
                f" DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}".encode()
            )
            found_in = self._sort_seldom(connection, f"{schema}.seldom")
            for topic in list(self._tables):
                self._decode(connection, topic, found_in.get(topic, runner.LOG))

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

    def _sort_seldom(self, connection: Connection, table: str) -> dict[str, str]:
        """Kinds that are few, and the table that has their facts as they are stored. Facts of a
        kind keep the order of their positions.
        """
        most = (self._last - self._first) / SELDOM
        seldom = [topic for topic in self._tables if self._counted[topic] < most]
        if len(seldom) < 2:  # to copy one kind is to search for it
            return {}
        connection.execute(
            f"CREATE UNLOGGED TABLE {table} AS SELECT notification_id, originator_version, topic,"
            f" recorded_us, state FROM {runner.LOG} WHERE notification_id > {self._first}"
            f" AND notification_id <= {self._last} AND topic IN ({runner.names_of(seldom)})"
            f" ORDER BY topic, notification_id; CREATE INDEX ON {table} (topic)".encode()
        )
        return dict.fromkeys(seldom, table)

    def _decode(self, connection: Connection, topic: str, log: str) -> None:
        told = ", ".join(f"{name} {kind}" for name, kind in self._columns[topic].items())
        facts = self._own_facts([topic], told, log)
        try:
            with connection.transaction():
                connection.execute(
                    f"CREATE UNLOGGED TABLE {self._tables[topic]} AS {facts}".encode()
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
            table, columns = self._tables.get(topic), self._columns[topic]
            if table is not None and all(columns[name] == kind for name, kind in fields):
                parts.append(f"SELECT {names} FROM {table}")
            else:
                others.append(topic)
        if others:
            parts.append(self._own_facts(others, rule.fields, runner.LOG))
        return own(schema, f"WITH facts AS ({' UNION ALL '.join(parts)}) {rule.sql}")

    def _own_facts(self, topics: Iterable[str], fields: str, log: str) -> str:
        facts = runner.facts_of(topics, fields, log).replace("%(first)s", str(self._first))
        return facts.replace("%(last)s", str(self._last))
