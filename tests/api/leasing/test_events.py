"""Live lease events: every fact once and in order, for who may see the lease, and bounded."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from api.leasing import events as lease_events
from api.leasing.events import STREAMS
from tests.scenes.server import Caller, Scene


def events(text: str) -> list[dict[str, Any]]:
    """The events of a stream that ended; comments and `retry` left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            found.append({"id": fields.get("id"), "event": fields["event"], "data": fields["data"]})
    return found


def told(caller: Caller, **query: Any) -> list[dict[str, Any]]:
    response = caller.get("/v1/lease-events", **query)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return events(response.text)


def test_the_events_are_the_history_of_the_lease(scene: Scene) -> None:
    lease = scene.running()
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close", {})
    history = scene.renter.read(f"/v1/leases/{lease['lease_id']}/history")["data"]
    seen = told(scene.renter, after=0, lease_id=lease["lease_id"])
    assert [json.loads(one["data"]) | {"version": None} for one in seen] == [
        {
            "lease_id": lease["lease_id"],
            "type": one["type"],
            "at": one["at"],
            "state": one["state"],
            "position": one["position"],
            "version": None,
        }
        for one in history
    ]
    assert [one["event"] for one in seen] == [one["type"] for one in history]
    assert [one["id"] for one in seen] == [str(one["position"]) for one in history]


def test_a_reader_who_comes_back_misses_nothing_and_sees_nothing_twice(scene: Scene) -> None:
    lease = scene.running()
    first = told(scene.renter, after=0)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close", {})
    response = scene.renter.get("/v1/lease-events", headers={"Last-Event-ID": first[-1]["id"]})
    rest = events(response.text)
    assert [one["event"] for one in rest][:1] == ["lease.closed.v1"]
    assert [one["id"] for one in first + rest] == [one["id"] for one in told(scene.renter, after=0)]


def test_pages_and_windows_of_a_long_log_leave_no_gap(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        shared.running()
    whole = told(shared.renter, after=0)
    for page, window in ((2, 5), (1, 1), (200, 3)):
        monkeypatch.setattr(lease_events, "PAGE", page)
        monkeypatch.setattr(lease_events, "WINDOW", window)
        assert told(shared.renter, after=0) == whole


def test_strangers_see_nothing_and_providers_their_nodes_leases(scene: Scene) -> None:
    lease = scene.running()
    assert told(scene.stranger, after=0) == []
    assert (
        scene.stranger.get("/v1/lease-events", lease_id=lease["lease_id"]).json()["code"]
        == "lease_unknown"
    )
    assert told(scene.owner, after=0) == told(scene.renter, after=0)
    assert told(scene.operator, after=0) == told(scene.renter, after=0)


def test_what_happens_while_somebody_listens_is_told_at_once(scene: Scene) -> None:
    lease = scene.running()
    seen: list[dict[str, Any]] = []
    listener = threading.Thread(
        target=lambda: seen.extend(told(scene.renter, lease_id=lease["lease_id"], seconds=2))
    )
    listener.start()
    time.sleep(0.5)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close", {})
    listener.join(30)
    assert seen[0]["event"] == "lease.closed.v1"


def test_a_key_has_so_many_streams_and_no_more(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_events, "STREAMS_EACH_MAX", 0)
    assert told(shared.renter) == [{"id": None, "event": "problem", "data": "rate_limited"}]
    monkeypatch.undo()
    monkeypatch.setattr(lease_events, "STREAMS_MAX", 0)
    assert told(shared.renter) == [{"id": None, "event": "problem", "data": "busy"}]
    monkeypatch.undo()
    assert told(shared.renter) == []
    assert not STREAMS._open, "every stream that ended gave its place back"


@pytest.mark.parametrize("last", ["x", "1.5", "-1", "9" * 17])
def test_an_event_id_that_is_no_position_is_refused(shared: Scene, last: str) -> None:
    response = shared.renter.get("/v1/lease-events", headers={"Last-Event-ID": last})
    assert (response.status_code, response.json()["code"]) == (400, "malformed_header")
