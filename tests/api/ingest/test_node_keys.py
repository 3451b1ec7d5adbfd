"""A node's key over HTTP: shown at joining, handed on with two signatures, taken back."""

from __future__ import annotations

import base64
import json
from copy import copy
from hashlib import sha256
from typing import Any

import psycopg
import pytest
from nacl.exceptions import CryptoError
from nacl.public import SealedBox
from nacl.signing import SigningKey

from api.door import auth
from api.process import secret_files
from api.timers import Timers
from domain.duration import DAY_US
from domain.fleet import keys as node_key
from domain.fleet.keys import NodeBootsAlternated
from domain.metering import report
from ledger.log import usage
from tests.scenes.server import Caller, Provider, Scene
from tests.scenes.usage_reports import BOOT, STEP_US, Node

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


def rotate(
    scene: Scene,
    provider: Provider,
    body: dict[str, Any],
    new: SigningKey = NEW,
    headers: dict[str, str] | None = None,
) -> Any:
    """Say so: the new key signs the request, and no other credential is needed."""
    raw = json.dumps(body).encode()
    signature = new.sign(node_key.envelope(node_key.ROTATE_REQUEST_TYPE, raw)).signature
    named = {
        "Node-Signature": base64.b64encode(signature).decode(),
        "Content-Type": "application/json",
        "Idempotency-Key": sha256(raw).hexdigest()[:32],
        **(headers or {}),
    }
    path = f"/v1/nodes/{provider.node_id}/keys/rotate"
    return scene.http.post(path, content=raw, headers=named)


def rotated(scene: Scene, provider: Provider, from_seq: int, new: SigningKey = NEW) -> Any:
    """The node signs with another key from here on, and calls with the bearer key it was given."""
    answer = rotate(scene, provider, rotation(provider, from_seq, new), new)
    assert answer.status_code == 200, answer.text
    provider.node.key = opened(answer.json(), new)
    return answer.json()


def opened(told: dict[str, Any], new: SigningKey = NEW) -> str:
    """The bearer key of an answer, as the holder of the new key reads it."""
    sealed = bytes.fromhex(told["sealed_node_key"])
    return SealedBox(new.to_curve25519_private_key()).decrypt(sealed).decode()


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
    told = rotated(scene, provider, 3)
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
    sent(scene, provider.signing)
    good = rotation(provider, 2)
    for field in ("previous_signature", "signature"):
        response = rotate(scene, provider, {**good, field: "ab" * 64})
        assert (response.status_code, response.json()["code"]) == (401, "bad_signature")
    sent(scene, provider.signing)
    response = rotate(scene, provider, good)
    assert (response.status_code, response.json()["code"]) == (409, "node_key_used")
    unasked = rotate(scene, provider, rotation(provider, 3), SigningKey(b"x" * 32))
    assert (unasked.status_code, unasked.json()["code"]) == (401, "bad_signature")
    stranger = scene.http.post(
        f"/v1/nodes/node_{'9' * 32}/keys/rotate", json=good, headers={"Idempotency-Key": "k"}
    )
    assert (stranger.status_code, stranger.json()["code"]) == (404, "node_unknown")
    rotated(scene, provider, 3)
    newest = SigningKey(b"n" * 32)
    stale = rotate(scene, provider, rotation(provider, 4, newest), newest)
    assert (stale.status_code, stale.json()["code"]) == (409, "node_key_mismatch")


def test_the_bearer_key_changes_with_the_key_and_is_told_again_to_whoever_holds_that(
    scene: Scene,
) -> None:
    provider = scene.provider
    path = f"/v1/nodes/{provider.node_id}/assignments"
    sent(scene, provider.signing)
    before = Caller(scene.http, provider.node.key)
    asked = rotation(provider, 2)
    told = rotated(scene, provider, 2)
    assert before.get(path).status_code == 401, "a bearer key that leaked is good no longer"
    assert provider.node.get(path).status_code == 200
    for headers in ({}, {"Idempotency-Key": "another"}):
        again = rotate(scene, provider, asked, headers=headers)
        assert (again.status_code, opened(again.json())) == (200, opened(told))
    clock: Any = scene.clock
    clock.advance(400 * DAY_US)
    assert opened(rotate(scene, provider, asked).json()) == opened(told), "away for a year"
    facts = str(scene.service.ledger.market.read_facts(0, 100_000))
    assert opened(told) not in facts
    assert told["sealed_node_key"] in facts
    with pytest.raises(CryptoError):
        opened(told, SigningKey(scene.service.server_key))
    seen = rotate(scene, provider, asked, SigningKey(b"e" * 32), {"Idempotency-Key": "third"})
    assert seen.status_code == 401, "both signatures stand in the log for everybody to see"


def test_the_servers_key_and_the_log_together_do_not_give_a_nodes_bearer_key(scene: Scene) -> None:
    """S-M9: the bearer key after a rotation followed from `server.key` and the public key."""
    provider = scene.provider
    sent(scene, provider.signing)
    drawn: list[str] = []
    for from_seq, new in ((2, NEW), (3, SigningKey(b"m" * 32))):
        rotated(scene, provider, from_seq, new)
        drawn.append(str(provider.node.key))
        provider.signing = with_key(provider.signing, new)
    assert drawn[0] != drawn[1]
    for key, public in zip(drawn, (NEW, SigningKey(b"m" * 32)), strict=True):
        told = (provider.node_id, bytes(public.verify_key).hex())
        for purpose in ("node-key/v1", "node-key/v2"):
            old = secret_files.derive(scene.service.server_key, purpose, *told)
            assert auth.node_key(old) != key


def test_a_key_that_was_replaced_accuses_nobody_and_is_taken_back_alone(scene: Scene) -> None:
    provider, node = scene.provider, scene.provider.signing
    first = sent(scene, node)
    rotated(scene, provider, 2)
    thief = Node("alpha")
    thief.id, old_key_id = node.id, node.key_id
    thief = with_key(thief, node.key)
    with_key(node, NEW)
    forged = json.loads(first)
    forged["agent"] = "forged"
    refused = send(scene, thief, json.dumps(forged, separators=(",", ":")).encode())
    assert (refused.status_code, refused.json()["code"]) == (401, "bad_signature")
    assert send(scene, thief, first).json()["results"][0]["status"] == "duplicate"
    path = f"/v1/nodes/{node.id}"
    told = scene.owner.made(f"{path}/keys/revoke", {"key_id": old_key_id})
    assert (told["phase"], told["quarantined"]) == ("active", False)
    assert send(scene, thief, first).json()["results"][0]["status"] == "duplicate"
    sent(scene, node)
    assert Timers(scene.service).run_once()["equivocation"] == 0
    assert scene.owner.read(path)["quarantined"] is False


@pytest.mark.parametrize("is_first", [True, False], ids=["stored by it", "brought by it"])
def test_evidence_of_a_key_out_of_its_office_quarantines_nobody(
    scene: Scene, is_first: bool
) -> None:
    """What passed another door, which had not heard of the change yet, is looked at again here."""
    provider, node = scene.provider, scene.provider.signing
    sent(scene, node)
    rotated(scene, provider, 2)
    old, new = replace_key(node, node.key), replace_key(node, NEW)
    bodies = [(old, node.body(agent="thief")), (new, node.body(agent="node"))]
    with psycopg.connect(scene.service.conninfo, autocommit=True) as connection:
        usage.prepare(connection)
        for signer, body in bodies if is_first else bodies[::-1]:
            (receipt,) = usage.append(connection, [signer.item(body)], scene.clock.now_us())
    assert receipt.status is usage.Status.EQUIVOCATION
    assert Timers(scene.service).run_once()["equivocation"] == 0
    assert scene.owner.read(f"/v1/nodes/{node.id}")["quarantined"] is False


def replace_key(node: Node, key: SigningKey) -> Node:
    return with_key(copy(node), key)


BOOTS = [f"{number}{BOOT[1:]}" for number in "12"]


def report_of(scene: Scene, node: Node, boot: str, minute: int) -> int:
    """A report without rows of a machine that has run for so long in this boot."""
    nothing: dict[str, Any] = {"devices": (), "leases": (), "rows": ()}
    body, _ = node.next(boot=boot, mono_us=minute * STEP_US, **nothing)
    response = send(scene, node, body)
    return int(response.status_code)


def test_two_machines_with_one_disk_end_in_quarantine_without_an_equivocation(scene: Scene) -> None:
    provider, node = scene.provider, scene.provider.signing
    one, two = BOOTS
    path = f"/v1/nodes/{node.id}"
    for boot, minute in ((one, 1), (one, 5), (two, 1), (one, 5), (two, 2), (one, 3), (two, 9)):
        assert report_of(scene, node, boot, minute) == 200
    assert Timers(scene.service).run_once()["trust"] == 0, (
        "a disk that went back brings what an earlier boot had told before"
    )
    assert report_of(scene, node, one, 6) == 200, "the first machine has gone on"
    assert Timers(scene.service).run_once()["trust"] == 0
    assert report_of(scene, node, two, 10) == 200
    assert Timers(scene.service).run_once()["trust"] == 1
    assert Timers(scene.service).run_once()["trust"] == 0
    assert scene.owner.read(path)["quarantined"] is True
    assert report_of(scene, node, two, 11) == 403
    (fact,) = [
        found.fact
        for found in scene.service.ledger.market.read_facts(0, 100_000)
        if isinstance(found.fact, NodeBootsAlternated)
    ]
    assert (fact.first_boot, fact.second_boot, fact.second_seq) == (one, two, 9)
    leased = scene.renter.made("/v1/leases", {"job": scene.job()})
    assert leased["node_id"] == scene.other.node_id
    scene.owner.made(f"{path}/retire")
    assert _joined_anew(scene, provider) != node.id, "the way out: a key for each machine"


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
    rotated(scene, scene.provider, 2)
    sent(scene, with_key(node, NEW))
    head = scene.provider.node.read(f"/v1/nodes/{node.id}/usage/head")
    assert head["head"] == node.head.hex()
