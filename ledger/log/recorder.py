"""The market log's recorder: the library's, with one way to append and none of its own SQL for it.

Everything an append does, `market_events_append` of migration 0001 does: one call, one statement,
one transaction, no pipeline. Positions are gapless and the commit order is the order of positions.

    one append == facts + chain + books + guards + idempotency row + tracking row + notification

Not here: what may be appended (`domain`), and what to do when it could not be
(`ledger/log/handle.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, LiteralString
from uuid import UUID

from eventsourcing.persistence import InterfaceError, OperationalError, StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore, PostgresFactory
from eventsourcing.utils import Environment
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row
from psycopg.sql import SQL
from psycopg.types.numeric import Int4, Int8
from psycopg_pool import PoolTimeout

from ledger.books.chart import kind_of
from ledger.books.entry import Entry
from ledger.log import pgbin
from ledger.log.append import Append, Appended
from ledger.log.chain import market_leaf
from ledger.log.durable import DurableConnection, wait_for_standbys
from ledger.log.sharing import Sharing, was_rolled_back

APP_ROLE = "tallystick_app"
READ_ATTEMPTS_MAX = 10
RECONNECT_SECONDS = 0.2
POOL_SECONDS_MAX = 10
WAITING_MAX = 200
STATEMENT_MS_MAX = 10_000
"""A statement that is ended so is rolled back: nothing was recorded."""

_APPEND: LiteralString = (
    "SELECT recorded, pos, fingerprint, status, body, new_ids FROM market_events_append("
    "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
    " %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)

_APPEND_ANSWERED: LiteralString = (
    "SELECT pos, new_ids FROM market_events_append_answered("
    "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
    " %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)


class _BookArrays:
    """The entries of one append as the arrays that `market_events_append` takes."""

    def __init__(self, entries: Sequence[tuple[int, Entry]], known_ids: dict[str, int]) -> None:
        self.new_names: list[str] = []
        ids: list[int] = []
        assets: list[bytes] = []
        row_facts: list[int] = []
        row_assets: list[bytes] = []
        row_ends: list[int] = []
        line_accounts: list[int] = []
        line_units: list[int] = []
        places: dict[str, int] = {}
        for offset, entry in entries:
            asset = entry.asset.encode()
            for name, units in entry.lines:
                place = places.get(name)
                if place is None:
                    place = places[name] = len(ids)
                    known = known_ids.get(name)
                    if known is None:
                        assert kind_of(name).asset is entry.asset, (name, entry.asset)
                        self.new_names.append(name)
                        known = -len(self.new_names)
                    ids.append(known)
                    assets.append(asset)
                line_accounts.append(place + 1)
                line_units.append(units)
            row_facts.append(offset)
            row_assets.append(asset)
            row_ends.append(len(line_accounts))
        self.parameters = (
            *(_opened(self.new_names) if self.new_names else _NONE_OPENED),
            pgbin.int4s(ids),
            pgbin.texts(assets),
            pgbin.int4s(row_facts),
            pgbin.texts(row_assets),
            pgbin.int4s(row_ends),
            pgbin.int4s(line_accounts),
            pgbin.int8s(line_units),
        )


def _opened(names: list[str]) -> tuple[pgbin.Array, pgbin.Array, pgbin.Array]:
    kinds = [kind_of(name) for name in names]
    return (
        pgbin.texts([name.encode() for name in names]),
        pgbin.texts([kind.asset.value.encode() for kind in kinds]),
        pgbin.int2s([kind.side for kind in kinds]),
    )


_NO_UUIDS, _NO_INT8S, _NO_TEXTS = pgbin.uuids([]), pgbin.int8s([]), pgbin.texts([])
_NONE_OPENED = _opened([])
_NO_BOOKS = _BookArrays((), {})


class ChainRecorder(PostgresApplicationRecorder):
    """The market log behind the library's interface. Tables and functions come from migrations."""

    def __init__(
        self, datastore: PostgresDatastore, *, events_table_name: str = "market_events"
    ) -> None:
        super().__init__(datastore, events_table_name=events_table_name)
        assert isinstance(datastore, MarketDatastore)
        assert events_table_name == "market_events"
        assert not datastore.enable_db_functions, "that path of the library loses events"
        self.sql_create_statements = []
        # Account numbers are local to the database and never change there.
        self._account_ids: dict[str, int] = {}
        self._sharing = Sharing(self._write)
        datastore.when_lost += [self._account_ids.clear, self._sharing.forget]

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Append, or answer with what was answered before; the result is in `append.appended`.
        Appends of several threads share a transaction (`ledger/log/sharing.py`).

        Never retried here: after a lost connection nobody knows whether it was committed.
        Raises the library's errors; `__cause__.diag` says which constraint was violated.
        """
        append = kwargs.pop("append", None) or Append()
        assert not kwargs, f"not passed on: {sorted(kwargs)}"
        self._sharing.append(stored_events, append)
        assert append.appended is not None
        if not append.appended.recorded:
            return None
        last = append.appended.position
        return range(last - len(stored_events) + 1, last + 1)

    def _write(self, events: Sequence[StoredEvent], append: Append) -> None:
        """One append in a transaction of its own."""
        books = _BookArrays(append.entries, self._account_ids) if append.entries else _NO_BOOKS
        query = _APPEND_ANSWERED if append.answered else _APPEND
        parameters = (
            *_facts_of(events, append, books),
            *(_answers_of(append) if append.answered else _answer_of(append)),
        )
        try:
            with self.datastore.get_connection() as connection, connection.cursor() as cursor:
                cursor.execute(query, parameters, prepare=True)
                row = cursor.fetchone()
        except (OperationalError, InterfaceError) as error:
            if not was_rolled_back(error):
                self.datastore.forget()  # type: ignore[attr-defined]
            raise
        assert row is not None
        if not append.answered and not row["recorded"]:
            append.appended = Appended(
                False, row["pos"], row["fingerprint"], row["status"], row["body"]
            )
            return
        if books.new_names and row["new_ids"]:
            self._account_ids.update(zip(books.new_names, row["new_ids"], strict=True))
        append.appended = Appended(True, row["pos"])


def record_again(
    connection: Connection[Any],
    events: Sequence[StoredEvent],
    append: Append,
    account_ids: dict[str, int],
) -> int:
    """Record facts that another database has, in the caller's transaction; the position of the
    last. On a connection with `pgbin.register` and the role of the application.

    `account_ids`: numbers of accounts as far as they are known, which grow. Raises psycopg.Error;
    the numbers are then of no use.
    """
    books = _BookArrays(append.entries, account_ids) if append.entries else _NO_BOOKS
    parameters = (*_facts_of(events, append, books), *_answer_of(append))
    row = connection.execute(_APPEND, parameters, prepare=True).fetchone()
    assert row is not None
    is_recorded, position, *_, new_ids = row
    assert is_recorded, "there is no command that was answered before"
    if books.new_names:
        account_ids.update(zip(books.new_names, new_ids, strict=True))
    return int(position)


def _facts_of(events: Sequence[StoredEvent], append: Append, books: _BookArrays) -> tuple[Any, ...]:
    ids: list[bytes] = []
    versions: list[int] = []
    names: list[bytes] = []
    bodies: list[bytes] = []
    leaves: list[bytes] = []
    for event in events:
        stream = event.originator_id
        assert isinstance(stream, UUID)
        ids.append(stream.bytes)
        versions.append(event.originator_version)
        names.append(event.topic.encode())
        bodies.append(event.state)
        leaves.append(market_leaf(stream, event.originator_version, event.topic, event.state))
    return (
        pgbin.uuids(ids),
        pgbin.int8s(versions),
        pgbin.texts(names),
        pgbin.byteas(bodies),
        pgbin.byteas(leaves),
        Int8(append.now_us),
        pgbin.uuids([stream.bytes for stream, _ in append.seen]) if append.seen else _NO_UUIDS,
        pgbin.int8s([version for _, version in append.seen]) if append.seen else _NO_INT8S,
        *books.parameters,
        pgbin.texts([name.encode() for name in append.guards]) if append.guards else _NO_TEXTS,
    )


def _answer_of(append: Append) -> tuple[Any, ...]:
    command = append.command
    tracking = append.tracking
    return (
        command and command.account,
        command and command.key,
        command and command.fingerprint,
        command and Int4(command.status),
        command and command.body,
        append.limit_is_final,
        append.limit_body,
        append.guard_body,
        tracking and tracking[0],
        tracking and Int8(tracking[1]),
    )


def _answers_of(append: Append) -> tuple[Any, ...]:
    assert append.command is None, "one command or several"
    assert append.tracking is None
    assert not append.limit_is_final
    rows = [row for row, _ in append.answered]
    return (
        pgbin.texts([row.account.encode() for row in rows]),
        pgbin.texts([row.key.encode() for row in rows]),
        pgbin.byteas([row.fingerprint for row in rows]),
        pgbin.int4s([row.status for row in rows]),
        pgbin.byteas([row.body for row in rows]),
        pgbin.int4s([end for _, end in append.answered]),
    )


class MarketDatastore(PostgresDatastore):
    """The library's connection pool, with every setting of the address and our role."""

    def __init__(self, conninfo: str, *, role: str, connections_max: int) -> None:
        given = {name: value for name, value in conninfo_to_dict(conninfo).items() if value}
        super().__init__(
            dbname=str(given.get("dbname", "postgres")),
            host=str(given.get("host", "")),
            port=str(given.get("port", "5432")),
            user=str(given.get("user", "")),
            password=str(given.get("password", "")),
            connect_timeout=POOL_SECONDS_MAX,
            max_waiting=WAITING_MAX,
            idle_in_transaction_session_timeout=5,
            pool_size=1,
            max_overflow=connections_max - 1,
            lock_timeout=2,
        )
        assert isinstance(self.pool.kwargs, dict)
        self.pool.kwargs.update(given)  # the library would drop sslmode and the like
        self.pool.connection_class = DurableConnection
        self.pool._configure = _configure(role, self.after_connect_func())
        self.when_lost: list[Callable[[], None]] = []
        """What forgets, once a connection was lost, what this process remembers of the database."""

    def rows(self, query: LiteralString, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Read; a lost connection is tried again for two seconds, for reading twice is harmless."""
        return self._read(lambda c: c.execute(query, parameters, prepare=True).fetchall())

    def tuples(self, query: LiteralString, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """`rows` for many of them: plain tuples, sent in binary form."""
        return self._read(
            lambda c: (
                c.cursor(binary=True, row_factory=tuple_row)
                .execute(query, parameters, prepare=True)
                .fetchall()
            )
        )

    def wait_for_standbys(self) -> None:
        """Return when the synchronous standbys have all that is visible now."""
        with self.get_connection() as connection:
            wait_for_standbys(connection)

    def _read(self, read: Callable[[Connection[Any]], list[Any]]) -> list[Any]:
        for attempt in range(1, READ_ATTEMPTS_MAX + 1):
            try:
                with self.get_connection() as connection:
                    return read(connection)
            except (OperationalError, InterfaceError) as error:
                if attempt == READ_ATTEMPTS_MAX or isinstance(error.__cause__, PoolTimeout):
                    raise
                self.forget_lost_connections()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def forget_lost_connections(self) -> None:
        """Wait a moment, then throw out the connections that do not answer any more."""
        self.forget()
        time.sleep(RECONNECT_SECONDS)
        self.pool.check()

    def forget(self) -> None:
        """A connection was lost: what comes back may be an earlier state, of a standby that lacked
        the last transactions. Where a stream ended there and which numbers accounts had, is asked.
        """
        for forget in self.when_lost:
            forget()


def _configure(
    role: str, library: Callable[[Connection[Any]], None]
) -> Callable[[Connection[Any]], None]:
    def configure(connection: Connection[Any]) -> None:
        library(connection)
        pgbin.register(connection)
        connection.execute(
            SQL("SET ROLE {}; SET statement_timeout = {}").format(SQL(role), STATEMENT_MS_MAX)
        )

    return configure


class MarketFactory(PostgresFactory):
    """The library's factory on our pool and our recorder; the tables are made by migrations."""

    application_recorder_class = ChainRecorder

    def __init__(self, env: Environment, datastore: MarketDatastore) -> None:
        super().__init__(env)
        self.datastore = datastore

    def env_create_table(self) -> bool:
        return False
