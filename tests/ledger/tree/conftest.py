"""Two servers for the tests of lanes."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from psycopg import sql

from ledger.log import lane_store, usage
from ledger.tree import lane_move
from tests.conftest import Databases, running
from tests.ledger.tree.two_servers import UPPER, Two, execute


@pytest.fixture(scope="module")
def second() -> Generator[Databases, None, None]:
    """The other server."""
    with running() as server:
        yield server


@pytest.fixture
def two(
    database: str, second: Databases, monkeypatch: pytest.MonkeyPatch
) -> Generator[Two, None, None]:
    """Not as patient as a market: a server that was away is asked again at once, and a lane that
    comes back does not wait.
    """
    monkeypatch.setattr(usage, "RECONNECT_SECONDS_MAX", 0.1)
    monkeypatch.setattr(lane_store, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(lane_move, "FORGET_SECONDS", 0.0)
    execute(second, sql.SQL("CREATE DATABASE lanes"))
    made = Two(database, second.uri_of("lanes"), second)
    made.move(list(UPPER))
    yield made
    second.ensure_running()
    lane_store._IDLE.forget(made.other)
    execute(second, sql.SQL("DROP DATABASE lanes WITH (FORCE)"))
