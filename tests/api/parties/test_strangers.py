"""S-M6: a caller without a credential stores nothing and takes nobody's turn."""

from __future__ import annotations

from typing import Any

from nacl.signing import SigningKey

from api.parties.refusals_timer import REFUSALS_US, run_refusals
from tests.api.ingest.test_node_keys import rotate, rotation
from tests.scenes.server import Scene

KEPT = ("command", "secret_salt", "sealed_secret", "market_events")


def rows(scene: Scene) -> dict[str, int]:
    with scene.service.connection() as connection:
        connection.execute("RESET ROLE")
        found = {}
        for table in KEPT:
            row = connection.execute(f"SELECT count(*) FROM public.{table}".encode()).fetchone()
            assert row is not None
            found[table] = int(row[0])
        return found


def _asked_by_a_stranger(scene: Scene) -> list[Any]:
    """A rotation of a foreign node's key, a joining and an invitation, with invented credentials,
    and events of a payment.
    """
    mine, node = SigningKey(b"s" * 32), scene.provider
    named = rotation(node, 2, mine)
    machine = node.joining("22222222", "NVIDIA A100-PCIE-80GB", "5b" * 32)
    return [
        rotate(scene, node, {**named, "previous_key_id": "ab" * 8}, mine),
        rotate(scene, node, {**named, "previous_signature": "ab" * 64}, mine),
        scene.anybody.post("/v1/nodes/join", machine),
        scene.anybody.post("/v1/invitations/redeem", {"code": "ts_invite_" + "a" * 43}),
        scene.anybody.post("/v1/payments/events/stripe", {}),
        scene.anybody.post("/v1/payments/events/bank", {}),
        scene.anybody.post("/v1/leases", {}),
        scene.anybody.post("/v1/sign-up", {"nonce": "0" * 22}),
    ]


def test_s_m6_what_a_stranger_asks_for_is_refused_and_nothing_of_it_is_kept(scene: Scene) -> None:
    before = rows(scene)
    answers = [(one.status_code, one.json()["code"]) for one in _asked_by_a_stranger(scene)]
    assert answers[:4] == [
        (409, "node_key_mismatch"),
        (401, "bad_signature"),
        (404, "join_code_unknown"),
        (404, "invitation_unknown"),
    ]
    assert all(400 <= status < 500 for status, _ in answers[4:])
    assert rows(scene) == before


def test_s_m6_a_stranger_does_not_take_the_turn_of_a_node(scene: Scene) -> None:
    """The node's own request is on its way: a stranger's is refused for what it is, not 429."""
    with scene.service.ingest.hold(scene.provider.node_id):
        busy, *_ = _asked_by_a_stranger(scene)
        assert busy.json()["code"] == "node_key_mismatch"
        mine = rotate(scene, scene.provider, rotation(scene.provider, 2))
        assert mine.json()["code"] == "one_request_at_a_time"


def test_s_m6_refusals_are_kept_for_30_days_and_what_was_recorded_for_ever(scene: Scene) -> None:
    for number in range(3):
        assert scene.renter.post(f"/v1/webhooks/hook_{number:032x}/start").status_code == 404
    made_us = scene.clock.now_us()
    kept = rows(scene)["command"]
    with scene.service.connection() as connection:
        assert run_refusals(scene.service, connection, made_us + REFUSALS_US) == 0
        gone = run_refusals(scene.service, connection, made_us + REFUSALS_US + 1)
        assert gone >= 3
        assert run_refusals(scene.service, connection, made_us + REFUSALS_US + 1) == 0
    assert rows(scene)["command"] == kept - gone
