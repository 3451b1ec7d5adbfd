"""How often a node was a candidate, and by what it lost: for its owner, from recorded matches."""

from __future__ import annotations

from typing import Any

from tests.scenes.server import Scene
from tests.scenes.shell import tallystick_at


def test_an_owner_sees_by_what_a_node_lost_and_which_price_won(scene: Scene) -> None:
    """Nothing in the API said it: an owner saw no lease, and not why."""
    cheap = (scene.provider.node_id, scene.owner)  # asks 2.00
    dear = (scene.other.node_id, scene.rival)  # asks 3.00
    began = scene.operator.read("/v1/audit/events", order="desc", limit=1)["data"][0]["recorded_at"]
    clock: Any = scene.clock
    clock.advance(1_000_000)
    lease = scene.lease()
    assert lease["node_id"] == cheap[0]
    told = cheap[1].read(f"/v1/nodes/{cheap[0]}/matches")
    assert (told["matches"], told["won"], told["lost"], told["reasons"]) == (1, 1, 0, [])
    lost = dear[1].read(f"/v1/nodes/{dear[0]}/matches")
    assert (lost["matches"], lost["won"], lost["lost"], lost["has_more"]) == (1, 0, 1, False)
    price = lease["price_per_gpu_hour"]
    assert lost["reasons"] == [{"reason": "price", "times": 1, "winning_price_at_most": price}]
    ran = tallystick_at(scene.http, dear[1].key, "node", "matches", dear[0], "--json")
    assert ran.document == lost, "the command says the same"
    shown = tallystick_at(scene.http, dear[1].key, "node", "matches", dear[0]).out.splitlines()
    assert shown[-1].split() == ["price", "1", "2.00"]
    refused = tallystick_at(scene.http, cheap[1].key, "node", "matches", dear[0], "--json")
    assert (refused.code, refused.document["code"]) == (1, "node_unknown")
    for other in (scene.stranger, cheap[1]):
        assert other.get(f"/v1/nodes/{dear[0]}/matches").status_code in (403, 404)
    later = dear[1].read(f"/v1/nodes/{dear[0]}/matches", since="2099-01-01T00:00:00Z")
    assert (later["matches"], later["reasons"]) == (0, [])
    since = dear[1].read(f"/v1/nodes/{dear[0]}/matches", since=began)
    assert since["matches"] == 1
    clock.advance(8 * 86_400_000_000)
    assert dear[1].read(f"/v1/nodes/{dear[0]}/matches")["matches"] == 0, "a week"
