"""`tallystick move-lanes`: what it says, and what it tells to set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from ledger.log import lane_store
from ledger.log.lane_map import LaneMap
from tests.conftest import Databases
from tests.scenes.shell import tallystick


def test_lanes_move_to_the_address_and_back_and_the_command_says_what_to_set(
    database: str, postgres: Databases, tmp_path: Path
) -> None:
    other = postgres.create_database("lanes_moved_by_command")
    assert "?" in other
    secret = f"{other}&password=a%20secret"
    env = {"DATABASE_URL": database, "DATA_DIR": str(tmp_path)}
    told = _move(secret, env)
    assert [one["lane"] for one in told["moved"]] == [62, 63]
    assert told["usage_lanes"] == f"0-61=market,62-63={other}&password=********"
    with psycopg.connect(database, autocommit=True) as connection:
        assert lane_store.lanes_elsewhere(connection) == [62, 63]
    env["USAGE_LANES"] = f"0-61=market,62-63={secret}"
    assert _move(secret, env)["moved"] == [], "they lie there"
    back = _move("market", env)
    assert LaneMap.parse(back["usage_lanes"]) == LaneMap()
    with psycopg.connect(database, autocommit=True) as connection:
        assert lane_store.lanes_elsewhere(connection) == []
    postgres.drop_database("lanes_moved_by_command")


def _move(to: str, env: dict[str, str]) -> Any:
    ran = tallystick("move-lanes", "62-63", "--to", to, "--json", **env)
    assert ran.code == 0, ran.err
    assert "a%20secret" not in ran.out + ran.err
    return ran.document
