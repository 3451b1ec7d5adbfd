"""Migrations: once, in order, from two processes at once, and never with a changed history."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from ledger import migrate


def test_migrating_twice_does_nothing_the_second_time(empty_database: str) -> None:
    assert migrate.migrate(empty_database) == [m.name for m in migrate.shipped()]
    assert migrate.migrate(empty_database) == []
    with psycopg.connect(empty_database) as connection:
        rows = connection.execute("SELECT name FROM migration ORDER BY number").fetchall()
    assert [name for (name,) in rows] == [m.name for m in migrate.shipped()]


def test_four_at_once_migrate_once(empty_database: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(migrate.migrate, [empty_database] * 4))
    assert sorted(applied, key=len) == [[], [], [], [m.name for m in migrate.shipped()]]


def test_a_changed_migration_is_refused(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE migration SET sha256 = sha256('other') WHERE number = 1")
    with pytest.raises(migrate.HistoryChanged, match="other bytes"):
        migrate.migrate(database)


def test_a_database_of_a_newer_version_is_refused(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO migration VALUES (9999, 'later', sha256(''))")
    with pytest.raises(migrate.HistoryChanged, match="not shipped"):
        migrate.migrate(database)
