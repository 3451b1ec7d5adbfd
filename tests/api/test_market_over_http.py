"""The straight way through, over HTTP: from an account to a closed lease."""

from __future__ import annotations

from tests.api.scene import HOUR_US, Scene


def test_a_lease_is_matched_reserved_started_and_closed(scene: Scene) -> None:
    lease = scene.lease()
    assert lease["state"] == "reserved"
    assert lease["node_id"] == scene.provider.node_id
    assert lease["held"]["units"] == "2000000"
    pending = scene.provider.node.read(f"/v1/nodes/{lease['node_id']}/assignments")["pending"]
    assert [one["lease_id"] for one in pending] == [lease["lease_id"]]
    ready = scene.provider.node.made(
        f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
    )
    assert ready["state"] == "active"
    data = scene.provider.node.read(f"/v1/nodes/{lease['node_id']}/assignments")["data"]
    assert data[0]["until_us"] - data[0]["from_us"] == HOUR_US
    scene.clock.advance(60_000_000)  # type: ignore[attr-defined]
    closed = scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert (closed["state"], closed["closed_by"], closed["close_code"]) == ("closing", "renter", 1)
    read = scene.renter.read(f"/v1/leases/{lease['lease_id']}")
    assert read["state"] == "closing"
    assert read["position"] >= closed["position"]
