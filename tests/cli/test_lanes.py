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
    checks = _checks(env)
    assert checks["lanes 62-63"] == (
        "ok",
        "their server answers and holds all that was seen of them",
    )
    assert "durability of lanes 62-63" in checks
    assert _checks({**env, "USAGE_LANES": f"0-62=market,63={secret}"})["lanes"][0] == "failed"
    wrong = f"0-61=market,62-63={database}&application_name=wrong"
    state, said = _checks({**env, "USAGE_LANES": wrong})["lanes 62-63"]
    assert (state, "no server of this market's lanes" in said) == ("failed", True)
    refused = tallystick("backup", str(tmp_path / "backup"), **env)
    assert (refused.code, "usage lanes 62-63 lie on other servers" in refused.err) == (1, True)
    back = _move("market", env)
    assert LaneMap.parse(back["usage_lanes"]) == LaneMap()
    with psycopg.connect(database, autocommit=True) as connection:
        assert lane_store.lanes_elsewhere(connection) == []
    postgres.drop_database("lanes_moved_by_command")


def _checks(env: dict[str, str]) -> dict[str, tuple[str, str]]:
    """What `tallystick doctor` says: by check, its state and its sentence."""
    ran = tallystick("doctor", "--json", **env)
    return {one["name"]: (one["state"], one["said"]) for one in ran.document["checks"]}


def _move(to: str, env: dict[str, str]) -> Any:
    ran = tallystick("move-lanes", "62-63", "--to", to, "--json", **env)
    assert ran.code == 0, ran.err
    assert "a%20secret" not in ran.out + ran.err
    return ran.document
