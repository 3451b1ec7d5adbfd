"""Idempotency-Key over HTTP: what is sent twice takes effect once, and is answered alike."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from starlette.datastructures import Headers

from api.door import call as call_module
from api.door.call import After
from api.door.errors import Problem
from api.door.idempotency import fingerprint, key_of
from tests.scenes.server import Caller, Scene

PATH = "/v1/jobs"


def _post(scene: Scene, body: Any, headers: dict[str, str], path: str = PATH) -> Any:
    return scene.http.post(path, json=body, headers={**scene.renter.headers, **headers})


def test_the_same_request_is_answered_alike_and_recorded_once(shared: Scene) -> None:
    first = shared.renter.post(PATH, shared.job(), key="once")
    head = shared.head()
    again = shared.renter.post(PATH, shared.job(), key="once")
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["Tallystick-Position"] == first.headers["Tallystick-Position"]
    assert shared.head() == head


def test_the_same_key_with_another_body_is_refused(shared: Scene) -> None:
    shared.renter.made(PATH, shared.job(), **{"Idempotency-Key": "reused"})
    for body in (shared.job(gpu_count=2), {**shared.job(), "image": "work "}):
        response = _post(shared, body, {"Idempotency-Key": "reused"})
        assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


def test_the_same_key_on_another_address_is_refused(shared: Scene) -> None:
    assert shared.renter.post(PATH, shared.job(), key="elsewhere").status_code == 201
    response = shared.renter.post("/v1/leases", {"job": shared.job()}, key="elsewhere")
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


def test_the_same_bytes_in_another_order_are_another_request(shared: Scene) -> None:
    job = shared.job()
    assert shared.renter.post(PATH, job, key="order").status_code == 201
    turned = dict(reversed(job.items()))
    response = shared.renter.post(PATH, turned, key="order")
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


def test_two_accounts_may_use_the_same_key(shared: Scene) -> None:
    mine = shared.renter.made(PATH, shared.job(), **{"Idempotency-Key": "common"})
    theirs = shared.stranger.made(PATH, shared.job(), **{"Idempotency-Key": "common"})
    assert mine["job_id"] != theirs["job_id"]


def test_a_rotated_key_of_the_same_member_repeats_the_request(shared: Scene) -> None:
    caller = shared.account()
    path = f"/v1/accounts/{caller.account_id}/api-keys"
    first = caller.made(PATH, shared.job(), **{"Idempotency-Key": "rotating"})
    key_id = caller.read(path)["data"][0]["key_id"]
    rotated = caller.made(f"{path}/{key_id}/rotate")
    successor = Caller(shared.http, rotated["key"], caller.account_id)
    assert successor.made(PATH, shared.job(), **{"Idempotency-Key": "rotating"}) == first


def test_quoted_and_unquoted_are_the_same_key(shared: Scene) -> None:
    first = _post(
        shared, shared.job(), {"Idempotency-Key": '"with \\"quotes\\""'.replace(" ", "-")}
    )
    assert first.status_code == 201
    second = _post(shared, shared.job(), {"Idempotency-Key": 'with-"quotes"'})
    assert second.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize(
    "name",
    ["X-Idempotency-Key", "X-Idempotency", "Idempotency", "Idempotent-Key", "IdempotencyKey", None],
)
def test_a_missing_or_misnamed_key_is_never_dropped_silently(
    name: str | None, shared: Scene
) -> None:
    head = shared.head()
    response = _post(shared, shared.job(), {name: "k"} if name else {})
    assert (response.status_code, response.json()["code"]) == (400, "idempotency_key_missing")
    assert name is None or name.lower() in response.json()["detail"]
    assert shared.head() == head


@pytest.mark.parametrize("value", ["", " ", "a b", "k" * 256, '"open', "sm\xf6rg\xe5s", '""', "\t"])
def test_a_key_of_the_wrong_form_is_refused(value: str, shared: Scene) -> None:
    headers = {b"Idempotency-Key": value.encode("latin-1")}
    mine = {name.encode(): text.encode() for name, text in shared.renter.headers.items()}
    response = shared.http.post(PATH, json=shared.job(), headers={**mine, **headers})
    assert response.status_code == 400
    assert response.json()["code"] == "idempotency_key_invalid"


def test_two_keys_on_one_request_are_refused() -> None:
    headers = Headers(raw=[(b"idempotency-key", b"a"), (b"idempotency-key", b"b")])
    with pytest.raises(Problem) as refused:
        key_of(headers)
    assert refused.value.code == "idempotency_key_invalid"


def test_the_fingerprint_has_no_ambiguous_borders() -> None:
    assert fingerprint("POST", b"/ab", "c", b"") != fingerprint("POST", b"/a", "bc", b"")
    assert fingerprint("POST", b"/a", "b", b"c") != fingerprint("POST", b"/a", "bc", b"")


def test_a_refusal_by_state_is_repeated_even_when_the_state_has_changed(shared: Scene) -> None:
    poor = shared.account()
    body = {"job": shared.job()}
    first = poor.post("/v1/leases", body, key="poor")
    assert (first.status_code, first.json()["code"]) == (402, "credit_too_low")
    shared.deposit(poor, 50_000_000)
    again = poor.post("/v1/leases", body, key="poor")
    assert again.status_code == 402
    assert again.headers["Idempotent-Replayed"] == "true"
    for told in (first, again):
        assert told.headers["Tallystick-Position"] == first.headers["Tallystick-Position"]
    assert {**again.json(), "request_id": ""} == {**first.json(), "request_id": ""}
    assert poor.post("/v1/leases", body, key="rich-now").status_code == 201


def test_a_request_that_was_malformed_may_be_sent_again_corrected(shared: Scene) -> None:
    malformed = shared.renter.post(PATH, {"kind": "batch"}, key="corrected")
    assert (malformed.status_code, malformed.json()["code"]) == (422, "invalid")
    assert shared.renter.post(PATH, shared.job(), key="corrected").status_code == 201


def test_a_match_that_cannot_be_is_kept_with_the_key(shared: Scene) -> None:
    body = {"job": shared.job(models=["a model nobody has"])}
    first = shared.renter.post("/v1/leases", body, key="no match")
    assert first.status_code == 400
    first = shared.renter.post("/v1/leases", body, key="no-match")
    again = shared.renter.post("/v1/leases", body, key="no-match")
    assert (first.status_code, first.json()["code"]) == (409, "match_impossible")
    assert again.headers["Idempotent-Replayed"] == "true"


def test_what_is_shown_once_is_shown_again_to_the_same_request(shared: Scene) -> None:
    path = f"/v1/accounts/{shared.renter.account_id}/api-keys"
    body = {"scopes": ["account"]}
    first = shared.renter.post(path, body, key="shown")
    again = shared.renter.post(path, body, key="shown")
    assert first.json()["key"] == again.json()["key"]
    listed = [one for one in shared.renter.read(path)["data"] if "key" in one]
    assert listed == []


def test_a_node_that_lost_its_answer_joins_once(shared: Scene) -> None:
    region = {"region_id": shared.provider.region_id}
    code = shared.owner.made("/v1/nodes/join-codes", region)["code"]
    body = shared.provider.joining(code, "NVIDIA A100-PCIE-80GB", "5a" * 32)
    first = shared.anybody.post("/v1/nodes/join", body, key="joining")
    again = shared.anybody.post("/v1/nodes/join", body, key="joining")
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert first.json()["node_key"].startswith("ts_node_")


def test_a_key_being_handled_is_answered_409(scene: Scene) -> None:
    account = scene.renter.account_id
    with psycopg.connect(scene.service.conninfo) as other:
        other.execute("INSERT INTO command VALUES (%s, 'running', '', 201, '{}', 0, 0)", (account,))
        response = scene.renter.post(PATH, scene.job(), key="running")
        other.rollback()
    assert (response.status_code, response.json()["code"]) == (409, "idempotency_in_progress")
    assert response.headers["Retry-After"] == "1"
    assert scene.renter.post(PATH, scene.job(), key="running").status_code == 201


def test_a_log_that_is_held_is_answered_503_and_records_nothing(scene: Scene) -> None:
    head = scene.head()
    with psycopg.connect(scene.service.conninfo) as other:
        other.execute("SELECT 1 FROM market_events_head FOR UPDATE")
        response = scene.renter.post(PATH, scene.job(), key="held")
        other.rollback()
    assert (response.status_code, response.json()["code"]) == (503, "busy")
    assert response.headers["Retry-After"] == "1"
    assert scene.head() == head
    assert scene.renter.post(PATH, scene.job(), key="held").status_code == 201


def test_twins_at_the_same_moment_are_one(shared: Scene) -> None:
    answers: list[Any] = []
    start = threading.Barrier(4)

    def send() -> None:
        start.wait()
        answers.append(shared.renter.post(PATH, shared.job(), key="twins"))

    before = shared.head()
    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert shared.head() == before + 1


def test_s_l13_what_was_faster_while_an_answer_is_made_is_no_500(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two closes of a lease: the second is recorded while the answer of the first is made. That
    answer is made of the states that the first was decided on, and then the first loses the race.
    """
    lease = scene.running()
    path = f"/v1/leases/{lease['lease_id']}/close"
    answers: list[Any] = []

    def interrupted(*arguments: Any) -> After:
        if not answers:
            answers.append(None)
            other = threading.Thread(target=lambda: answers.append(scene.renter.post(path)))
            other.start()
            other.join()
        return After(*arguments)

    monkeypatch.setattr(call_module, "After", interrupted)
    first = scene.renter.post(path)
    assert [answer.status_code for answer in (first, answers[1])] == [200, 200], first.text
    assert {**first.json(), "position": 0} == {**answers[1].json(), "position": 0}
    assert scene.service.ledger.books.faults() == []
