"""Defects of the library's projections (eventsourcing 9.5.6) that ours avoid: one test each.

Those of its recorder are in `tests/ledger/log/test_library_defects.py`.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest

from projections import runner, tables
from projections.audit.audit_index import AUDIT_INDEX
from tests.projections.story import Size, Writer, story

SECONDS_MAX = 20


def _position(connection: psycopg.Connection[Any]) -> int:
    return tables.position_of(connection, AUDIT_INDEX)


def _wait_for(connection: psycopg.Connection[Any], position: int) -> float:
    """Seconds until the view has reached a position."""
    began = time.monotonic()
    while _position(connection) < position:
        assert time.monotonic() < began + SECONDS_MAX, "the follower never saw it"
        time.sleep(0.002)
    return time.monotonic() - began


def test_a_fact_recorded_before_the_follower_listens_is_not_missed(
    database: str, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library reads before it listens, and then waits for the next notification, for ever."""
    tables.ensure(connection)
    about_to_listen, recorded = threading.Event(), threading.Event()
    execute = psycopg.Connection.execute

    def late(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(query, str) and query.startswith("LISTEN"):
            about_to_listen.set()
            assert recorded.wait(SECONDS_MAX)
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", late)
    stop = threading.Event()
    thread = threading.Thread(target=tables.follow, args=(database, stop, (AUDIT_INDEX,)))
    thread.start()
    try:
        assert about_to_listen.wait(SECONDS_MAX)
        writer = Writer(connection)
        writer.write(story(Size()))
        recorded.set()  # nothing is recorded after this: no notification will come
        _wait_for(connection, writer.position)
    finally:
        stop.set()
        recorded.set()
        thread.join(SECONDS_MAX)
    assert not thread.is_alive()


def test_a_batch_of_facts_is_one_transaction(connection: psycopg.Connection[Any]) -> None:
    """The library's runner commits fact by fact, and any exception ends it."""
    tables.ensure(connection)
    writer = Writer(connection)
    writer.write(story(Size()))
    assert runner.step(connection, AUDIT_INDEX) == writer.position > 100
    row = connection.execute(
        "SELECT count(DISTINCT xmin::text) FROM proj_audit_index.mention"
    ).fetchone()
    assert row == (1,)


def test_who_waits_for_a_position_learns_of_it_at_once(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """The library asks again after 100 ms and more; ours is woken, and the poll is 250 ms."""
    tables.ensure(connection)
    stop = threading.Event()
    thread = threading.Thread(target=tables.follow, args=(database, stop, (AUDIT_INDEX,)))
    thread.start()
    writer = Writer(connection)
    took: list[float] = []
    try:
        for fact in list(story(Size()))[:9]:
            time.sleep(0.02)  # the follower is idle again
            writer.write([fact])
            took.append(_wait_for(connection, writer.position))
    finally:
        stop.set()
        thread.join(SECONDS_MAX)
    assert sorted(took)[len(took) // 2] < tables.POLL_SECONDS / 2
