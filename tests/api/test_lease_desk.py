"""Leases that are opened at once: each device once, each key once, each caller answered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from api.lease_desk import LeaseDesk
from domain.lease import LeaseRequested
from domain.stream import Stream
from ledger.handle import LogBusy
from tests.api.scene import Scene

ASKERS = 12


def _at_once(count: int, ask: Callable[[int], Any]) -> list[Any]:
    barrier = Barrier(count)

    def when_all_are_there(number: int) -> Any:
        barrier.wait(30)
        return ask(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(when_all_are_there, range(count)))


def test_who_asks_at_once_for_the_same_devices_gets_each_once(scene: Scene) -> None:
    answers = _at_once(
        ASKERS,
        lambda number: scene.renter.post("/v1/leases", {"job": scene.job()}, key=f"k{number}"),
    )
    devices = [*scene.provider.device_ids, *scene.other.device_ids]
    opened = [answer.json() for answer in answers if answer.status_code == 201]
    assert sorted(one["device_ids"][0] for one in opened) == sorted(devices)
    for answer in answers:
        if answer.status_code != 201:
            assert (answer.status_code, answer.json()["code"]) == (409, "no_match"), answer.text
    for device_id in devices:
        state = scene.service.ledger.market.load(Stream("device", device_id)).state
        assert len(state.holders) == 1
    assert scene.service.ledger.books.faults() == []


def test_one_key_sent_many_times_at_once_opens_one_lease(scene: Scene) -> None:
    body = {"job": scene.job()}
    answers = _at_once(ASKERS, lambda _: scene.renter.post("/v1/leases", body, key="the-same"))
    told = {answer.text for answer in answers if answer.status_code == 201}
    assert len(told) == 1
    assert {answer.status_code for answer in answers} <= {201, 409}  # 409: still in progress
    facts = scene.service.ledger.market.read_facts(0, 10_000)
    assert sum(isinstance(each.fact, LeaseRequested) for each in facts) == 1


def test_an_answer_from_the_desk_is_told_again_as_it_was(scene: Scene) -> None:
    body = {"job": scene.job()}
    first = scene.renter.post("/v1/leases", body, key="again")
    again = scene.renter.post("/v1/leases", body, key="again")
    assert first.text == again.text
    assert again.headers["Idempotent-Replayed"] == "true"
    other = scene.renter.post("/v1/leases", {"job": scene.job(image="other")}, key="again")
    assert other.json()["code"] == "idempotency_key_reused"


def test_a_desk_that_fails_leaves_nobody_waiting(scene: Scene, monkeypatch: Any) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise LogBusy

    monkeypatch.setattr(scene.service.ledger, "handle_together", fails)
    answers = _at_once(
        4, lambda number: scene.renter.post("/v1/leases", {"job": scene.job()}, key=f"f{number}")
    )
    assert {answer.status_code for answer in answers} <= {201, 503}
    assert isinstance(scene.service.lease_desk, LeaseDesk)
    monkeypatch.undo()
    assert scene.renter.post("/v1/leases", {"job": scene.job()}).status_code == 201
