"""Two servers for the tests of lanes."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from psycopg import sql

from ledger.log import lane_store, usage
from ledger.tree import lane_move
from tests.conftest import Databases, fresh, running
from tests.ledger.tree.two_servers import UPPER, Two, execute


@pytest.fixture(scope="session")
def second() -> Generator[Databases, None, None]:
    """The other server."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def moved(postgres: Databases, template: str, second: Databases) -> str:
    """The name of a market whose upper lanes lie in `lanes_kept` of the other server. They move
    there once: each test finds a copy of both.
    """
    execute(second, sql.SQL("CREATE DATABASE lanes"))
    market = postgres.create_database("template_moved", template=template)
    made = Two(market, second.uri_of("lanes"), second)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lane_move, "FORGET_SECONDS", 0.0)
        made.move(list(UPPER))
    lane_store._IDLE.forget(made.other)
    execute(second, sql.SQL("ALTER DATABASE lanes RENAME TO lanes_kept"))
    return "template_moved"


@pytest.fixture
def two(
    postgres: Databases, second: Databases, moved: str, monkeypatch: pytest.MonkeyPatch
) -> Generator[Two, None, None]:
    """Not as patient as a market: a server that was away is asked again at once, and a lane that
    comes back does not wait.
    """
    monkeypatch.setattr(usage, "RECONNECT_SECONDS_MAX", 0.1)
    monkeypatch.setattr(lane_store, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(lane_move, "FORGET_SECONDS", 0.0)
    execute(second, sql.SQL("CREATE DATABASE lanes TEMPLATE lanes_kept STRATEGY FILE_COPY"))
    execute(second, sql.SQL("GRANT CREATE ON DATABASE lanes TO tallystick_owner"))
    with fresh(postgres, moved) as market:
        made = Two(market, second.uri_of("lanes"), second)
        yield made
        second.ensure_running()
        lane_store._IDLE.forget(made.other)
        execute(second, sql.SQL("DROP DATABASE lanes WITH (FORCE)"))
