"""A server whose lanes lie on several databases: one that is away gets 503 for its own reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api.audit.tree_timer import run_trees
from api.ingest.door import MEDIA_TYPE
from ledger.log import lane_store, usage
from ledger.log.lane_map import HERE, MARKET
from ledger.log.lane_store import LanesMisplaced
from ledger.log.lanes import lane_of
from ledger.tree import lane_move
from tests.conftest import Databases
from tests.scenes.server import Provider, Scene, opened

NOWHERE = "postgresql://postgres@127.0.0.1:1/lanes"
"""No server answers there."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "RECONNECT_SECONDS_MAX", 0.1)
    monkeypatch.setattr(lane_store, "AWAY_SECONDS", 0.0)


def send(scene: Scene, provider: Provider, envelope: dict[str, Any]) -> Any:
    content = json.dumps([envelope]).encode()
    headers = {**provider.node.headers, "content-type": MEDIA_TYPE}
    return scene.http.post(f"/v1/nodes/{provider.node_id}/usage", content=content, headers=headers)


def test_reports_of_a_stopped_lane_get_503_and_are_taken_when_its_server_is_back(
    database: str, postgres: Databases, tmp_path: Path
) -> None:
    other = postgres.create_database("lanes_of_a_server")
    with opened(database, tmp_path) as founded:
        here, there = founded.provider, founded.other
        while lane_of(here.node_id) == lane_of(there.node_id):
            there.join(founded, "gamma", "NVIDIA H100 PCIe", 3_000_000)
    lanes = [lane_of(there.node_id)]
    lane_move.move(database, MARKET, other, lanes)
    with (
        pytest.raises(LanesMisplaced, match=rf"the database has \[{lanes[0]}\] there"),
        opened(database, tmp_path, founded),
    ):
        pass

    first = {one.name: one.signing.envelope(one.signing.next()[0]) for one in (here, there)}
    stopped = str(HERE.moved(lanes, NOWHERE))
    with opened(database, tmp_path, founded, usage_lanes=stopped) as scene:
        assert send(scene, scene.provider, first[here.name]).status_code == 200
        refused = send(scene, scene.other, first[there.name])
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
        _look(scene)
        told = scene.http.get("/readyz")
        assert (told.status_code, told.json()["lanes_stopped"]) == (200, str(lanes[0]))

    with opened(database, tmp_path, founded, usage_lanes=str(HERE.moved(lanes, other))) as scene:
        assert send(scene, scene.other, first[there.name]).status_code == 200
        _look(scene)
        assert "lanes_stopped" not in scene.http.get("/readyz").json()
        with scene.service.connection() as connection:
            (stored,) = usage.reports_of_node(connection, there.node_id, 0)
            assert (stored.lane, stored.position) == (lanes[0], 1)
            assert lane_store.lanes_elsewhere(connection) == lanes
    lane_store._IDLE.forget(other)
    postgres.drop_database("lanes_of_a_server")


def _look(scene: Scene) -> None:
    with scene.service.connect() as connection:
        run_trees(scene.service, connection, scene.service.clock.now_us())
