"""Leases that are opened at once: each device once, each key once, each caller answered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, current_thread
from typing import Any

from psycopg.errors import LockNotAvailable

from api.process import lease_desk
from api.process.lease_desk import LeaseDesk, Opening
from domain.lease.lease import LeaseRequested
from domain.stream import Stream
from ledger.log.handle import NO_ANSWER, CommandKey, Handled, LogBusy
from tests.processes import until
from tests.scenes.server import Scene

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

    monkeypatch.setattr(scene.service.ledger, "handle_all", fails)
    answers = _at_once(
        4, lambda number: scene.renter.post("/v1/leases", {"job": scene.job()}, key=f"f{number}")
    )
    assert {answer.status_code for answer in answers} <= {201, 503}
    assert isinstance(scene.service.lease_desk, LeaseDesk)
    monkeypatch.undo()
    assert scene.renter.post("/v1/leases", {"job": scene.job()}).status_code == 201


def test_who_gives_up_before_its_turn_is_not_served_and_keeps_nobody_waiting(scene: Scene) -> None:
    desk, may_go_on, asked = scene.service.lease_desk, Event(), list[str]()

    def commands(_: object) -> list[object]:
        asked.append("asked")
        return []

    desk._thread.submit(may_go_on.wait, 30)
    account_id = scene.renter.account_id
    given_up, other = (
        desk.open(
            Opening(account_id, CommandKey(account_id, key), 1, commands, lambda _: NO_ANSWER)
        )
        for key in ("given-up", "other")
    )
    assert given_up.cancel()
    may_go_on.set()
    assert other.result(30).outcome is None
    assert asked == ["asked"]
    assert scene.renter.post("/v1/leases", {"job": scene.job()}).status_code == 201


def test_an_error_nobody_expects_leaves_every_call_to_itself(scene: Scene, caplog: Any) -> None:
    def breaks(_: object) -> list[object]:
        raise AssertionError("a bug")

    account_id = scene.renter.account_id
    key = CommandKey(account_id, "breaks")
    served = scene.service.lease_desk.open(Opening(account_id, key, 1, breaks, lambda _: NO_ANSWER))
    assert served.result(30).outcome is None
    assert "a round of openings failed" in caplog.text
    assert scene.renter.post("/v1/leases", {"job": scene.job()}).status_code == 201


def _rounds(scene: Scene, monkeypatch: Any) -> list[list[str]]:
    """The keys of each append that the desk tries from here on."""
    tried: list[list[str]] = []
    handle_all = scene.service.ledger.handle_all

    def noted(orders: Any, **rest: Any) -> Any:
        tried.append([order.key.key for order in orders])
        return handle_all(orders, **rest)

    monkeypatch.setattr(scene.service.ledger, "handle_all", noted)
    return tried


def _in_one_round(scene: Scene, count: int, ask: Callable[[int], Any]) -> list[Any]:
    """What is told of so many calls that wait for the desk together."""
    desk, may_go_on = scene.service.lease_desk, Event()
    desk._thread.submit(may_go_on.wait, 30)
    with ThreadPoolExecutor(count) as pool:
        asks = [pool.submit(ask, number) for number in range(count)]
        until(lambda: len(desk._waiting) == count)
        may_go_on.set()
        return [one.result() for one in asks]


def test_a_key_that_is_known_already_spoils_the_round_of_nobody_else(
    scene: Scene, monkeypatch: Any
) -> None:
    """Sent again and again it kept rounds of up to 64 from being recorded."""
    old = scene.renter.post("/v1/leases", {"job": scene.job()}, key="old")
    tried = _rounds(scene, monkeypatch)

    def ask(number: int) -> Any:
        key = ("old", "new", "new", "other")[number]
        return scene.renter.post("/v1/leases", {"job": scene.job()}, key=key)

    told, *new, other = _in_one_round(scene, 4, ask)
    assert told.text == old.text
    assert tried[0] in (["new", "other"], ["other", "new"])
    assert {answer.status_code for answer in (*new, other)} == {201}
    assert len({answer.text for answer in new}) == 1


def test_who_cannot_be_recorded_spoils_a_round_for_a_few_alone(
    scene: Scene, monkeypatch: Any
) -> None:
    monkeypatch.setattr(lease_desk, "SPOILED_MAX", 1)
    tried = _rounds(scene, monkeypatch)
    noted = scene.service.ledger.handle_all

    def spoiled(orders: Any, **rest: Any) -> Any:
        if any(order.key.key == "k2" for order in orders):
            tried.append([order.key.key for order in orders])
            return [Handled(0)] * len(orders)
        return noted(orders, **rest)

    monkeypatch.setattr(scene.service.ledger, "handle_all", spoiled)
    answers = _in_one_round(
        scene, 4, lambda n: scene.renter.post("/v1/leases", {"job": scene.job()}, key=f"k{n}")
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len(tried[0]) == 4
    assert ["k2"] in tried
    assert scene.service.ledger.books.faults() == []
    devices = [device for answer in answers for device in answer.json()["device_ids"]]
    assert len(devices) == len(set(devices)) == 4


def test_views_that_cannot_be_read_are_told_to_all_of_a_round_at_once(
    scene: Scene, monkeypatch: Any
) -> None:
    """Each went alone into the same wait, and held a place at the door for it."""
    asked = list[str]()

    def away(*_: Any, **__: Any) -> Any:
        asked.append(current_thread().name)  # a start looks at the fleet, too
        raise LockNotAvailable("it is being rebuilt")

    monkeypatch.setattr(type(scene.service.fleet), "ask", away)
    answers = _in_one_round(
        scene, 3, lambda n: scene.renter.post("/v1/leases", {"job": scene.job()}, key=f"a{n}")
    )
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(503, "busy")}
    assert sum(name.startswith("lease-desk") for name in asked) == 1


def test_the_desk_loads_what_a_round_asks_for_together(scene: Scene, monkeypatch: Any) -> None:
    """Its new job was looked for alone, once for each opening: a quarter of the desk's time."""
    scene.lease()
    market, alone = scene.service.ledger.market, []
    load = type(market).load

    def loads(market: Any, stream: Stream[Any]) -> Any:
        alone.append(stream.kind)
        return load(market, stream)

    monkeypatch.setattr(type(market), "load", loads)
    scene.lease()
    assert alone == []
