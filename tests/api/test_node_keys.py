"""A node's key over HTTP: shown at joining, handed on with two signatures, taken back."""

from __future__ import annotations

from typing import Any

from nacl.signing import SigningKey

from domain import node_key, report
from tests.api.scene import Caller, Provider, Scene
from tests.usage_reports import Node

NEW = SigningKey(bytes(range(32)))
NEW_PUBLIC = bytes(NEW.verify_key)


def rotation(provider: Provider, from_seq: int, new: SigningKey = NEW) -> dict[str, Any]:
    """What the node sends to hand on its key, signed by both."""
    old, public = provider.signing.key, bytes(new.verify_key).hex()
    message = node_key.rotation(provider.node_id, from_seq, bytes(old.verify_key).hex(), public)
    return {
        "public_key": public,
        "previous_key_id": provider.signing.key_id,
        "from_seq": from_seq,
        "previous_signature": old.sign(message).signature.hex(),
        "signature": new.sign(message).signature.hex(),
    }


def send(scene: Scene, node: Node, body: bytes) -> Any:
    path = f"/v1/nodes/{node.id}/usage"
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    return scene.http.post(path, json=[node.envelope(body)], headers=headers)


def sent(scene: Scene, node: Node) -> bytes:
    """The next report of the node, stored."""
    body, _ = node.next()
    response = send(scene, node, body)
    assert response.status_code == 200, response.text
    return body


def with_key(node: Node, key: SigningKey) -> Node:
    """The same chain, signed by another key from here on."""
    node.key, node.public_key = key, bytes(key.verify_key)
    node.key_id = node_key.key_id_of(node.public_key.hex())
    return node


def test_a_machine_that_does_not_hold_the_key_it_names_does_not_join(scene: Scene) -> None:
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": scene.provider.region_id})["code"]
    body = scene.provider.joining(code, "NVIDIA A100-PCIE-80GB", "5a" * 32)
    named = {"Idempotency-Key": "k1"}
    unsigned = scene.http.post("/v1/nodes/join", json=body, headers=named)
    forged = {**named, "Node-Signature": "A" * 86 + "=="}
    lying = scene.http.post("/v1/nodes/join", json=body, headers=forged)
    for response in (unsigned, lying):
        assert (response.status_code, response.json()["code"]) == (401, "bad_signature")
    assert scene.anybody.made("/v1/nodes/join", body)["node_id"], "the code was not used up"


def test_reports_go_on_in_one_chain_under_the_next_key(scene: Scene) -> None:
    provider, node = scene.provider, scene.provider.signing
    first = sent(scene, node)
    sent(scene, node)
    told = provider.node.made(f"/v1/nodes/{provider.node_id}/keys/rotate", rotation(provider, 3))
    assert told["key_id"] == node_key.key_id_of(NEW_PUBLIC.hex())
    late = send(scene, node, node.body())
    assert (late.status_code, late.json()["code"]) == (401, "bad_signature")
    old_key = node.key
    sent(scene, with_key(node, NEW))
    again = with_key(Node("alpha"), old_key)
    again.id = node.id
    assert send(scene, again, first).json()["results"][0]["status"] == "duplicate"
    shown = scene.anybody.read(f"/v1/nodes/{node.id}/keys")["data"]
    assert [key["from_seq"] for key in shown] == [1, 3]
    assert scene.owner.read(f"/v1/nodes/{node.id}")["key_id"] == told["key_id"]
    head = provider.node.read(f"/v1/nodes/{node.id}/usage/head")
    assert (head["acked_seq"], head["head"]) == (3, node.head.hex())


def test_a_rotation_needs_both_keys_and_a_report_that_is_not_sent_yet(scene: Scene) -> None:
    provider = scene.provider
    path = f"/v1/nodes/{provider.node_id}/keys/rotate"
    sent(scene, provider.signing)
    good = rotation(provider, 2)
    for field in ("previous_signature", "signature"):
        response = provider.node.post(path, {**good, field: "ab" * 64})
        assert (response.status_code, response.json()["code"]) == (401, "bad_signature")
    sent(scene, provider.signing)
    response = provider.node.post(path, good)
    assert (response.status_code, response.json()["code"]) == (409, "node_key_used")
    assert scene.other.node.post(path, rotation(provider, 3)).status_code == 404
    provider.node.made(path, rotation(provider, 3))
    provider.node.made(path, rotation(provider, 3))
    stale = provider.node.post(path, rotation(provider, 4, SigningKey(b"n" * 32)))
    assert (stale.status_code, stale.json()["code"]) == (409, "node_key_mismatch")


def test_a_revoked_node_is_heard_no_more_and_its_machine_joins_anew(scene: Scene) -> None:
    provider, node = scene.provider, scene.provider.signing
    sent(scene, node)
    path = f"/v1/nodes/{provider.node_id}"
    told = scene.owner.made(f"{path}/keys/revoke", {"key_id": node.key_id})
    assert told["quarantined"] is True
    body = node.body()
    response = send(scene, node, body)
    assert (response.status_code, response.json()["code"]) == (403, "revoked")
    asked = provider.node.get(f"{path}/usage/head")
    assert (asked.status_code, asked.json()["code"]) == (403, "revoked")
    (key,) = scene.anybody.read(f"{path}/keys")["data"]
    assert key["revoked_at"]
    leased = scene.renter.made("/v1/leases", {"job": scene.job()})
    assert leased["node_id"] == scene.other.node_id
    scene.owner.made(f"{path}/retire")
    again = _joined_anew(scene, provider)
    assert again != provider.node_id


def _joined_anew(scene: Scene, provider: Provider) -> str:
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": provider.region_id})["code"]
    joining = provider.joining(code, "NVIDIA A100-PCIE-80GB", "5b" * 32)
    node_id: str = scene.anybody.made("/v1/nodes/join", joining)["node_id"]
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": joining["key_id"]})
    scene.operator.made(f"/v1/nodes/{node_id}/admit")
    device = scene.owner.read("/v1/devices", node_id=node_id)["data"]
    assert {one["device_id"] for one in device} == set(provider.device_ids)
    return node_id


def test_a_key_is_revoked_by_its_owner_or_the_operator_alone(scene: Scene) -> None:
    path = f"/v1/nodes/{scene.provider.node_id}/keys/revoke"
    body = {"key_id": scene.provider.signing.key_id}
    assert Caller(scene.http, scene.rival.key).post(path, body).status_code == 404
    wrong = scene.owner.post(path, {"key_id": "0" * 16})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "node_key_mismatch")
    assert scene.operator.made(path, body)["quarantined"] is True


def test_the_chain_of_two_keys_starts_where_the_first_key_says(scene: Scene) -> None:
    """A node that rotates and then asks where it stands is told the head that its chain has."""
    node = scene.provider.signing
    assert node.genesis == report.genesis(node.id, node.public_key)
    sent(scene, node)
    path = f"/v1/nodes/{node.id}/keys/rotate"
    scene.provider.node.made(path, rotation(scene.provider, 2))
    sent(scene, with_key(node, NEW))
    head = scene.provider.node.read(f"/v1/nodes/{node.id}/usage/head")
    assert head["head"] == node.head.hex()
