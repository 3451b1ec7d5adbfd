"""Snapshots: taken every hundred versions, used, and never trusted when the code is another."""

from __future__ import annotations

import psycopg
import pytest
from eventsourcing.persistence import InternalError

from ledger.log import market as ledger_market
from ledger.log.handle import Ledger
from tests.scenes.told import NOW_US, Count, do, ledger_on, offer, withdrawn


@pytest.fixture
def long_stream(database: str) -> str:
    with ledger_on(database) as ledger:
        _append(ledger, 99)
        assert _snapshots(database) == []
        _append(ledger, 151)
    return database


def _append(ledger: Ledger, count: int) -> None:
    ledger.handle(do(*[withdrawn("a")] * count), key=None, now_us=NOW_US)


def _snapshots(database: str) -> list[int]:
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT originator_version FROM market_snapshots ORDER BY 1")
        return [row[0] for row in rows]


def test_a_snapshot_is_taken_when_a_hundred_versions_are_passed(long_stream: str) -> None:
    assert _snapshots(long_stream) == [250]
    with ledger_on(long_stream) as ledger:
        _append(ledger, 49)
        assert _snapshots(long_stream) == [250]
        _append(ledger, 1)
        assert _snapshots(long_stream) == [250, 300]


def test_folding_starts_at_the_snapshot(long_stream: str) -> None:
    with psycopg.connect(long_stream) as connection:
        connection.execute("UPDATE market_snapshots SET state = %s", (b'{"facts":1000}',))
    with ledger_on(long_stream) as ledger:
        _append(ledger, 2)
        held = ledger.market.load(offer("a"))
        assert (held.originator_version, held.state) == (252, Count(1002))


def test_the_state_is_the_same_without_snapshots(long_stream: str) -> None:
    with ledger_on(long_stream) as ledger:
        with_snapshot = ledger.market.load(offer("a"))
        with psycopg.connect(long_stream) as connection:
            connection.execute("DELETE FROM market_snapshots")
        assert ledger.market.load(offer("a")) == with_snapshot


def test_a_snapshot_of_other_code_is_thrown_away(long_stream: str) -> None:
    with psycopg.connect(long_stream) as connection:
        connection.execute(
            "UPDATE market_snapshots SET topic = 'state/offer/0123456789abcdef',"
            " state = convert_to('{\"old\":1}', 'UTF8')"
        )
    with ledger_on(long_stream) as ledger:
        held = ledger.market.load(offer("a"))
        assert (held.originator_version, held.state) == (250, Count(250))
        assert _snapshots(long_stream) == []


def _by_other_code(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE market_snapshots SET topic = 'state/offer/0123456789abcdef'")


def test_a_snapshot_of_other_code_stays_where_nothing_is_recorded(long_stream: str) -> None:
    _by_other_code(long_stream)
    with psycopg.connect(long_stream, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode()
        )
    with ledger_on(long_stream) as ledger:
        assert ledger.market.load(offer("a")).state == Count(250)
    assert _snapshots(long_stream) == [250]


def test_a_database_that_is_damaged_is_told_when_a_snapshot_is_thrown_away(
    long_stream: str,
) -> None:
    _by_other_code(long_stream)
    with psycopg.connect(long_stream) as connection:
        connection.execute(
            "CREATE FUNCTION damaged() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'torn page' USING ERRCODE = 'data_corrupted'; END$$;"
            " CREATE TRIGGER damaged BEFORE DELETE ON market_snapshots EXECUTE FUNCTION damaged()"
        )
    with ledger_on(long_stream) as ledger, pytest.raises(InternalError, match="torn page"):
        ledger.market.load(offer("a"))


def test_a_second_worker_with_the_same_snapshot_is_no_error(long_stream: str) -> None:
    with ledger_on(long_stream) as ledger:
        ledger.market.snapshot(offer("a"), 250)
        assert _snapshots(long_stream) == [250]


def test_a_past_state_is_the_fold_up_to_that_position(long_stream: str) -> None:
    with ledger_on(long_stream) as ledger:
        held = ledger.market.load_as_of(offer("a"), 120)
        assert (held.originator_version, held.state) == (120, Count(120))
        assert ledger.market.load_as_of(offer("b"), 120).originator_version == 0


def test_states_are_kept_in_memory_up_to_a_bound(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "abcdef"
    with ledger_on(database) as ledger:
        ledger.handle(do(*map(withdrawn, names)), key=None, now_us=NOW_US)
        monkeypatch.setattr(ledger_market, "FOLDED_MAX", 2)
        monkeypatch.setattr(ledger_market, "FOLDED_MOST", 4)
        for asked, kept in ((0, 2), (3, 3), (9, 4), (1, 2)):
            ledger.market.make_room(asked)
            held = ledger.market.load_many([offer(name) for name in names])
            assert {each.state for each in held.values()} == {Count(1)}
            assert len(ledger.market._folded._held) == kept
