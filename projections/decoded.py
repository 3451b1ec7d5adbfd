"""The facts of a range of the market log, decoded once for all rules that read them.

    facts of a rule == what `runner.statement` would give it for the same range

Nearly all of a rebuild that is not the writing of rows is the reading of JSON, and rules of one
view read the same facts, rules of twenty views as well. Here is a table for each kind of fact, with
a column for every field that some rule reads of the kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import psycopg

from projections import runner
from projections.runner import Connection, Projection, Rule, own

SELDOM: Final = 10
"""A kind of less than one of so many facts of a range is looked up, not searched for."""
_MAY_KEEP = "SELECT has_database_privilege(current_database(), 'TEMP')"
_ALWAYS = "position, stream_version, topic, recorded_us"


class Decoded:
    """The facts first < position <= last, in a table for each kind that so many rules read.

    In `schema`; None: in tables that end with the transaction. Where two rules read one field as
    different types, the column has the first one's, and the other rule decodes the facts of that
    kind for itself; so do all, where one of these facts cannot be read. Raises GapInLog.
    """

    def __init__(
        self,
        connection: Connection,
        rules: Sequence[Rule],
        first: int,
        last: int,
        *,
        schema: str | None = None,
        readers_min: int = 1,
    ) -> None:
        self.first, self.last = first, last
        self._schema = schema
        self._counted = runner.counted(connection, first, last)
        self._columns: dict[str, dict[str, str]] = {}
        readers = Counter[str]()
        for rule in rules:
            is_counted = readers_min == 1 or rule.topics != (runner.EVERY,)
            for topic in self._topics(rule) if is_counted else ():
                readers[topic] += 1
                columns = self._columns.setdefault(topic, {})
                for name, kind in runner.fields_of(rule):
                    columns.setdefault(name, kind)
        wanted = [topic for topic in self._columns if readers[topic] >= readers_min]
        self._tables = {topic: self._named(f"t{n}") for n, topic in enumerate(wanted)}
        seldom = [topic for topic in wanted if self._is_seldom(topic)]
        sorted_out = self._named("seldom")
        if len(seldom) > 1:
            connection.execute(self._sorted(seldom, sorted_out).encode())
            connection.execute(f"CREATE INDEX ON {sorted_out} (topic)".encode())
        for topic in wanted:
            is_sorted = len(seldom) > 1 and topic in seldom
            self._decode(connection, topic, sorted_out if is_sorted else runner.LOG)

    def run(self, connection: Connection, rule: Rule, schema: str) -> None:
        """One rule over the range, in the tables of `schema`, if there is anything for it."""
        if runner.is_asked(rule, self._counted):
            span = {"first": self.first, "last": self.last}
            connection.execute(self._statement(rule, schema), span)

    def _named(self, name: str) -> str:
        return f"pg_temp.decoded_{name}" if self._schema is None else f"{self._schema}.{name}"

    def _made(self, table: str) -> str:
        if self._schema is None:
            return f"CREATE TEMPORARY TABLE {table} ON COMMIT DROP AS"
        return f"CREATE UNLOGGED TABLE {table} AS"

    def _is_seldom(self, topic: str) -> bool:
        return self._counted[topic] * SELDOM < self.last - self.first

    def _sorted(self, topics: Iterable[str], table: str) -> str:
        """SQL: a table of the facts of these kinds as they are stored, in their order."""
        names = ", ".join(f"'{topic}'" for topic in topics)
        return (
            f"{self._made(table)} SELECT notification_id, originator_version, topic,"
            f" recorded_us, state FROM {runner.LOG} WHERE notification_id > {self.first}"
            f" AND notification_id <= {self.last} AND topic IN ({names}) ORDER BY topic"
        )

    def _decode(self, connection: Connection, topic: str, log: str) -> None:
        told = ", ".join(f"{name} {kind}" for name, kind in self._columns[topic].items())
        table = self._tables[topic]
        try:
            with connection.transaction():
                facts = self._own_facts([topic], told, log)
                connection.execute(f"{self._made(table)} {facts}".encode())
        except psycopg.DataError:
            del self._tables[topic]

    def _topics(self, rule: Rule) -> list[str]:
        """The kinds of facts in the range that a rule reads."""
        if rule.topics == (runner.EVERY,):
            return list(self._counted)
        return [topic for topic in rule.topics if topic in self._counted]

    def _statement(self, rule: Rule, schema: str) -> bytes:
        if not rule.topics:
            return own(schema, rule.sql)
        fields = runner.fields_of(rule)
        names = ", ".join([_ALWAYS, *(name for name, _ in fields)])
        parts, others = [], []
        for topic in self._topics(rule):
            table, columns = self._tables.get(topic), self._columns.get(topic, {})
            if table is not None and all(columns.get(name) == kind for name, kind in fields):
                parts.append(f"SELECT {names} FROM {table}")
            else:
                others.append(topic)
        if others:
            parts.append(self._own_facts(others if parts else rule.topics, rule.fields))
        return own(schema, f"WITH facts AS ({' UNION ALL '.join(parts)}) {rule.sql}")

    def _own_facts(self, topics: Iterable[str], fields: str, log: str = runner.LOG) -> str:
        facts = runner.facts_of(topics, fields, log).replace("%(first)s", str(self.first))
        return facts.replace("%(last)s", str(self.last))


def apply(
    connection: Connection, projection: Projection, schema: str, first: int, last: int
) -> None:
    """`runner.apply` for a long range: kinds of facts that several rules read are decoded once,
    where this role may make tables for that.
    """
    if connection.execute(_MAY_KEEP).fetchone() != (True,):
        runner.apply(connection, projection, schema, first, last)
        return
    decoded = Decoded(connection, projection.rules, first, last, readers_min=2)
    for rule in projection.rules:
        decoded.run(connection, rule, schema)
