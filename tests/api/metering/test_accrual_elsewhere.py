"""Leases whose nodes report into lanes on another server are accrued as they are on one server."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import psycopg
import pytest

from api.metering.accrual import accrue
from ledger.log import lane_store
from ledger.log.lane_map import HERE, MARKET
from ledger.log.lane_store import LanesStopped
from ledger.tree import lane_move, trees
from projections import tables
from tests.api.metering.test_accrual_together import NOW_US, build, open_market
from tests.conftest import Databases
from tests.scenes.written import written

NOWHERE = "postgresql://postgres@127.0.0.1:1/lanes"
"""No server answers there."""


@pytest.fixture
def leases(database: str) -> list[str]:
    with open_market(database) as market:
        return build(market)


@pytest.fixture
def copy(database: str, leases: list[str], postgres: Databases) -> Iterator[str]:
    """The same market once more."""
    assert leases
    name = database.split("/")[-1].split("?")[0]
    yield postgres.create_database(f"{name}_copy", template=name)
    postgres.drop_database(f"{name}_copy")


@pytest.fixture
def other(postgres: Databases) -> Generator[str, None, None]:
    address = postgres.create_database("lanes_elsewhere")
    yield address
    lane_store._IDLE.forget(address)
    postgres.drop_database("lanes_elsewhere")


def test_accrual_writes_the_same_log_and_views_are_the_same(
    database: str, leases: list[str], copy: str, other: str
) -> None:
    with open_market(database) as market:
        done = accrue(market.ledger, market.connection, leases, NOW_US)
        wanted = written(market)
        tables.step_all(market.connection)
        views = _resources(market.connection)
        pinned = trees.follow_all(market.connection)
    moved = lane_move.move(copy, MARKET, other, range(64))
    assert sum(each.reports for each in moved) > 0
    with open_market(lane_store.carried(HERE.moved(range(64), other), copy)) as market:
        assert accrue(market.ledger, market.connection, leases, NOW_US) == done > 0
        assert written(market) == wanted
        tables.step_all(market.connection)
        assert _resources(market.connection) == views
        assert trees.follow_all(market.connection) <= pinned


def _resources(connection: psycopg.Connection[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """How far the views that read reports have read, which they do to the end."""
    query = "SELECT source, position FROM proj_resources.position ORDER BY source"
    return connection.execute(query).fetchall()


def test_leases_of_stopped_lanes_wait_and_the_others_are_accrued(
    database: str, leases: list[str], other: str
) -> None:
    with open_market(database) as market:
        lane = _lane_of(market.connection)
    lane_move.move(database, MARKET, other, [lane])
    stopped: dict[str, Exception] = {}
    with open_market(lane_store.carried(HERE.moved([lane], NOWHERE), database)) as market:
        done = accrue(
            market.ledger, market.connection, leases, NOW_US, on_stopped=stopped.__setitem__
        )
        assert done > 0
        assert trees.stopped_lanes(market.connection) == (lane,)
        tables.step_all(market.connection)
        behind = {
            (part.projection, part.log) for part in tables.lag(market.connection) if part.behind
        }
        assert ("resources", "usage") in behind
        assert {log for _, log in behind} == {"usage"}
        by_lane = {str(log): int(str(at)) for log, at in _resources(market.connection)}
        assert by_lane.pop("market") > by_lane.pop(f"usage/{lane}") == 0
        assert max(by_lane.values()) > 0
    assert stopped
    assert all(isinstance(each, LanesStopped) for each in stopped.values())
    assert len(stopped) < len(leases)

    with open_market(lane_store.carried(HERE.moved([lane], other), database)) as market:
        assert accrue(market.ledger, market.connection, list(stopped), NOW_US) > 0


def _lane_of(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """A lane that has reports."""
    row = connection.execute("SELECT min(lane) FROM usage_head WHERE pos > 0").fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]
