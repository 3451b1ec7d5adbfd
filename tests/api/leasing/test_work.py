"""The work of leases over HTTP: the executor's own key, what it answers, and what work prints."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from nacl.public import PrivateKey, SealedBox

from domain.jobs.job import workload_hash
from domain.jobs.plan import Reference
from ledger.beside import lease_logs
from tests.scenes.server import Caller, Provider, Scene

EXECUTOR = "e0" * 8
COMMAND = ["python", "train.py"]
KEY = PrivateKey(b"renter" + b"\0" * 26)


def executor_of(scene: Scene, provider: Provider) -> Caller:
    told = provider.node.made(f"/v1/nodes/{provider.node_id}/executor-key")
    return Caller(scene.http, told["executor_key"], provider.node_id)


def work(**changes: Any) -> dict[str, Any]:
    cap = {"asset": "CREDIT", "units": "5000000"}
    return {"command": COMMAND, "env_refs": ["HF_TOKEN"], "max_price_per_gpu_hour": cap, **changes}


class Told:
    """One lease on the first provider's node, as its executor sees it."""

    def __init__(self, scene: Scene, executor: Caller, **lease: Any) -> None:
        self.scene, self.executor = scene, executor
        self.lease = scene.lease(job=work(), **lease)
        self.lease_id = self.lease["lease_id"]
        self.node = f"/v1/nodes/{scene.provider.node_id}/assignments"
        self.path = f"{self.node}/{self.lease_id}"

    def answer(self, command: str = "start", **changes: Any) -> Any:
        body = {
            "command": command,
            "executor": EXECUTOR,
            "runner": "process",
            "workload_sha256": workload_hash(None, tuple(COMMAND), ("HF_TOKEN",)),
            **changes,
        }
        return self.executor.post(f"{self.path}/acknowledge", body)

    def assignments(self) -> dict[str, Any]:
        return self.executor.read(self.node)

    def ended(self, **changes: Any) -> Any:
        body = {"executor": EXECUTOR, "outcome": "exited", "exit_code": 3, **changes}
        return self.executor.post(f"{self.path}/ended", body)

    def print(self, seq: int, *bodies: bytes, left_out: int = 0) -> dict[str, Any]:
        pieces = [{"stream": "stdout", "body": base64.b64encode(one).decode()} for one in bodies]
        body = {"seq": seq, "data": pieces, "left_out": left_out}
        return self.executor.made(f"{self.path}/log", body)


@pytest.fixture
def told(scene: Scene) -> Told:
    return Told(scene, executor_of(scene, scene.provider))


def test_r_18_a_command_is_an_assignment_answered_by_acknowledged_ready_and_ended(
    told: Told,
) -> None:
    (pending,) = told.assignments()["pending"]
    assert pending["work"]["command"] == COMMAND
    assert pending["memory_mib"] == 81_559
    assert "executor" not in pending
    assert told.answer().status_code == 200
    assert told.assignments()["pending"][0]["executor"] == EXECUTOR
    told.executor.made(f"{told.path}/ready")
    (running,) = told.assignments()["data"]
    assert (running["executor"], running["work_ended"]) == (EXECUTOR, False)
    assert told.ended().json()["exit_code"] == 3
    lease = told.scene.renter.read(f"/v1/leases/{told.lease_id}")
    assert (lease["state"], lease["closed_by"], lease["close_code"]) == ("closing", "job", 0)
    (stop,) = told.assignments()["stopping"]
    assert (stop["lease_id"], stop["close_code"]) == (told.lease_id, 0)
    assert told.answer("stop").status_code == 200
    assert told.assignments()["stopping"] == []
    seen = told.scene.renter.read(f"/v1/leases/{told.lease_id}/work")
    assert (seen["outcome"], seen["exit_code"], seen["runner"]) == ("exited", 3, "process")
    history = told.scene.renter.read(f"/v1/leases/{told.lease_id}/history")["data"]
    named = [fact["type"] for fact in history if "work" in fact["type"] or "comm" in fact["type"]]
    assert named == [
        "lease.command_acknowledged.v1",
        "lease.work_ended.v1",
        "lease.command_acknowledged.v1",
    ]


def test_what_work_refers_to_is_told_to_the_node_by_name_and_stands_in_its_hash(
    scene: Scene,
) -> None:
    """A dataset, a checkpoint and a key: another dataset is other work, and is refused."""
    refers = [
        {"kind": "dataset", "name": "s3://corpus/v3"},
        {"kind": "checkpoint", "name": "s3://models/7b"},
        {"kind": "third_party_key", "name": "team/hf"},
    ]
    executor = executor_of(scene, scene.provider)
    lease = scene.lease(job=work(references=refers))
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    (pending,) = executor.read(path)["pending"]
    assert pending["work"]["references"] == refers
    names = tuple(Reference(**one) for one in refers)
    hashed = workload_hash(None, tuple(COMMAND), ("HF_TOKEN",), names)
    assert pending["work"]["workload_sha256"] == hashed
    body = {"command": "start", "executor": EXECUTOR, "runner": "process"}
    acknowledge = f"{path}/{lease['lease_id']}/acknowledge"
    other = (Reference("dataset", "s3://corpus/v4"), *names[1:])
    for wrong in ((), other):
        told = {
            **body,
            "workload_sha256": workload_hash(None, tuple(COMMAND), ("HF_TOKEN",), wrong),
        }
        assert executor.post(acknowledge, told).json()["code"] == "workload_mismatch"
    assert executor.post(acknowledge, {**body, "workload_sha256": hashed}).status_code == 200


def test_a_command_that_is_not_the_jobs_hash_is_refused_by_name(told: Told) -> None:
    refused = told.answer(workload_sha256="f" * 64)
    assert (refused.status_code, refused.json()["code"]) == (422, "workload_mismatch")
    assert told.executor.made(f"{told.path}/decline")["state"] in ("closing", "settled")
    lease = told.scene.renter.read(f"/v1/leases/{told.lease_id}")
    assert (lease["close_code"], lease["charge"]["units"]) == (10_006, "0")
    assert told.executor.post(f"{told.path}/decline").status_code == 200, "twice is once"


def test_work_that_the_node_lost_ends_the_lease_at_the_nodes_fault(told: Told) -> None:
    told.answer()
    told.executor.made(f"{told.path}/ready")
    told.ended(outcome="lost", exit_code=None)
    lease = told.scene.renter.read(f"/v1/leases/{told.lease_id}")
    assert lease["close_code"] == 10_000
    assert told.executor.post(f"{told.path}/decline").json()["code"] == "lease_state"


def test_an_executor_key_is_for_one_node_and_ends_when_another_is_issued(scene: Scene) -> None:
    first, rival = executor_of(scene, scene.provider), executor_of(scene, scene.other)
    path = f"/v1/nodes/{scene.provider.node_id}"
    assert first.get(f"{path}/assignments").status_code == 200
    assert rival.get(f"{path}/assignments").status_code == 404
    assert first.post(f"{path}/specs", {"devices": [], "host": {}}).status_code == 403
    assert first.get(f"{path}/usage/head").status_code == 403
    assert first.post(f"{path}/executor-key").status_code == 403, "it cannot prolong itself"
    second = executor_of(scene, scene.provider)
    assert first.get(f"{path}/assignments").status_code == 401
    assert second.get(f"{path}/assignments").status_code == 200
    scene.owner.made(f"{path}/executor-key/revoke")
    assert second.get(f"{path}/assignments").status_code == 401
    text = str([one.fact for one in scene.service.ledger.market.read_facts(0, 1_000)])
    assert second.key is not None
    assert second.key not in text


def test_credentials_are_sealed_and_only_the_renter_opens_them(scene: Scene) -> None:
    executor = executor_of(scene, scene.provider)
    told = Told(scene, executor, encryption_key=bytes(KEY.public_key).hex())
    (pending,) = told.assignments()["pending"]
    assert pending["encryption_key"] == bytes(KEY.public_key).hex()
    sealed = base64.b64encode(SealedBox(KEY.public_key).encrypt(b'{"token":"t0p-s3cret"}')).decode()
    told.answer()
    ready = {"endpoint": "http://10.0.0.7:8888", "credentials": sealed}
    executor.made(f"{told.path}/ready", ready)
    seen = scene.renter.read(f"/v1/leases/{told.lease_id}/work")
    assert seen["endpoint"] == "http://10.0.0.7:8888"
    opened = SealedBox(KEY).decrypt(base64.b64decode(seen["credentials"]))
    assert opened == b'{"token":"t0p-s3cret"}'
    facts = str([one.fact for one in scene.service.ledger.market.read_facts(0, 1_000)])
    assert sealed in facts
    assert "t0p-s3cret" not in facts
    assert scene.stranger.get(f"/v1/leases/{told.lease_id}/work").status_code == 404


def test_credentials_without_a_key_to_seal_them_to_are_refused(told: Told) -> None:
    told.answer()
    refused = told.executor.post(f"{told.path}/ready", {"credentials": "c2VhbGVk" * 8})
    assert (refused.status_code, refused.json()["code"]) == (422, "encryption_key_unknown")


def test_what_work_prints_is_for_its_two_parties_in_order_and_once(told: Told) -> None:
    assert told.print(0, b"one\n", b"two\n")["next_seq"] == 2
    assert told.print(0, b"one\n", b"two\n", b"three\n")["next_seq"] == 3
    assert told.print(7, b"later\n")["next_seq"] == 3, "a gap keeps nothing"
    path = f"/v1/leases/{told.lease_id}/log"
    for reader in (told.scene.renter, told.scene.owner):
        found = reader.read(path)
        printed = [base64.b64decode(piece["body"]) for piece in found["data"]]
        assert printed == [b"one\n", b"two\n", b"three\n"]
        assert not found["ended"]
    assert [one["seq"] for one in told.scene.renter.read(path, from_seq=2)["data"]] == [2]
    for other in (told.scene.stranger, told.scene.rival):
        assert other.get(path).status_code == 404
    assert told.scene.operator.get(path).status_code in (403, 404), "not the operator's either"
    assert told.scene.auditor.get(path).status_code == 403


def test_a_lease_prints_no_more_than_its_bound_and_says_what_is_left_out(told: Told) -> None:
    whole, full = b"x" * lease_logs.CHUNK_BYTES_MAX, lease_logs.LEASE_BYTES_MAX
    each = 32
    for number in range(full // (len(whole) * each)):
        told.print(number * each, *[whole] * each)
    after = told.print(full // len(whole), b"over", left_out=5)
    assert (after["bytes"], after["left_out"]) == (full, 9)
    big = base64.b64encode(whole + b"x").decode()
    body = {"seq": after["next_seq"], "data": [{"stream": "stdout", "body": big}]}
    assert told.executor.post(f"{told.path}/log", body).status_code == 422
    with told.scene.service.connect() as connection:
        now_us = told.scene.clock.now_us()
        assert lease_logs.forget(connection, now_us) == 0
        assert lease_logs.forget(connection, now_us + lease_logs.KEPT_US) == 1
        assert lease_logs.read(connection, told.lease_id, 0, 10) == []


def test_v_13_a_lease_names_its_remoting_session(scene: Scene) -> None:
    lease = scene.lease(remoting_session_id="session-7", split_label="module functions")
    plain = scene.lease()
    assert lease["price_per_gpu_hour"] == plain["price_per_gpu_hour"]
    assert lease["held"] == plain["held"]
    long = scene.renter.post("/v1/leases", {"job": scene.job(), "split_label": "x" * 129})
    assert long.status_code == 422
    for who in (scene.renter, scene.owner, scene.operator):
        told = who.read(f"/v1/leases/{lease['lease_id']}")
        assert told["remoting_session_id"] == "session-7"
        assert told["split_label"] == "module functions"
    before = scene.renter.read(f"/v1/leases/{lease['lease_id']}", as_of_position=lease["position"])
    assert before["split_label"] == "module functions"
    assert scene.stranger.get(f"/v1/leases/{lease['lease_id']}").status_code == 404
    told = scene.renter.read(f"/v1/leases/{plain['lease_id']}")
    assert not {"remoting_session_id", "split_label"} & told.keys()
    asked = scene.lease(pricing={"module": "reverse_auction"}, split_label="decoder")
    told = scene.renter.read(f"/v1/leases/{asked['lease_id']}")
    assert (told["state"], told["split_label"]) == ("requested", "decoder")
