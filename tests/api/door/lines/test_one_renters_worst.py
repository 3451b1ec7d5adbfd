"""One renter with 64 connections, and what another one notices of it: a real server in production.

On the server of before, sixty-four requests of one renter held every thread there was, and the next
caller's waited for the first of them to end.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2 as httpx
import pytest

from api.door import auth, door
from api.door.lines import entrance
from api.telemetry.metrics import TURNS_WAITING
from projections.lease import leases as lease_rows
from tests.api.door.test_http_bounds import listening
from tests.processes import until
from tests.scenes.server import Caller, Scene
from tests.scenes.serving import Market

CONNECTIONS = 64
MEANWHILE_S = 5.0


class Served(NamedTuple):
    scene: Scene
    port: int


@pytest.fixture
def served(founded_market: Market, tmp_path: Path) -> Generator[Served, None, None]:
    with founded_market.copied(tmp_path) as scene:
        assert scene.service.settings.environment == "production"
        with listening(scene.http.app) as port:
            yield Served(scene, port)


def asked(port: int, who: Caller, path: str = "/v1/leases") -> httpx.Response:
    address = f"http://127.0.0.1:{port}{path}"
    return httpx.get(address, headers=who.headers, timeout=60)


@contextmanager
def half_sent(
    port: int, count: int, headers: str, body_bytes: int = 0
) -> Generator[list[socket.socket], None, None]:
    """Requests of a stranger that have begun and do not end."""
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}"
    socks = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(count)]
    try:
        for sock in socks:
            sock.sendall(f"{head}\r\n\r\n".encode() + b"[" * body_bytes)
        yield socks
    finally:
        for sock in socks:
            sock.close()


class Stuck:
    """Lists of leases that one account asks for: they do not end before the test says so."""

    def __init__(self, account_id: str) -> None:
        self.begun, self.ends = 0, threading.Event()
        self._account_id, self._read = account_id, lease_rows.read_leases

    def __call__(self, *args: Any, account_id: str | None, **rest: Any) -> Any:
        if account_id == self._account_id:
            self.begun += 1
            self.ends.wait(30)
        return self._read(*args, account_id=account_id, **rest)


@pytest.fixture
def stuck(served: Served, monkeypatch: pytest.MonkeyPatch) -> Generator[Stuck, None, None]:
    made = Stuck(served.scene.renter.account_id)
    monkeypatch.setattr(lease_rows, "read_leases", made)
    yield made
    made.ends.set()


def test_sixty_four_requests_of_one_renter_hold_four_places_and_nobody_else_waits(
    served: Served, stuck: Stuck
) -> None:
    scene, port = served
    most = scene.service.settings.account_requests_at_once
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        heavy = [threads.submit(asked, port, scene.renter) for _ in range(CONNECTIONS)]
        until(lambda: stuck.begun >= most)
        began = time.monotonic()
        for path in ("/v1/leases", "/v1/offers", "/readyz", "/metrics"):
            assert asked(port, scene.rival, path).status_code == 200, path
        assert time.monotonic() - began < MEANWHILE_S
        assert stuck.begun == most
        assert not any(each.done() and each.result().status_code == 200 for each in heavy)
        stuck.ends.set()
        codes = [each.result() for each in heavy]
    full = [each for each in codes if each.status_code != 200]
    assert {(each.status_code, each.json()["code"]) for each in full} <= {(429, "too_many_at_once")}
    waiting = scene.service.settings.account_requests_waiting
    assert len(full) <= CONNECTIONS - waiting, "as many as may wait are answered in their turn"
    for each in full:
        assert each.json()["retryable"]
        assert int(each.headers["Retry-After"]) >= 1


def test_a_key_is_looked_up_before_the_requests_of_its_caller_that_wait(
    served: Served, stuck: Stuck
) -> None:
    scene, port = served
    most = scene.service.settings.account_requests_at_once
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        heavy = [threads.submit(asked, port, scene.renter) for _ in range(most + 5)]
        until(lambda: stuck.begun == most and _waiting() == 5)
        scene.service.keys_changed()
        began = time.monotonic()
        assert asked(port, scene.renter, "/v1/timers").status_code == 403
        assert time.monotonic() - began < MEANWHILE_S
        stuck.ends.set()
        assert {each.result().status_code for each in heavy} == {200}


def test_a_client_that_goes_away_leaves_its_place_in_the_line(served: Served, stuck: Stuck) -> None:
    scene, port = served
    most = scene.service.settings.account_requests_at_once
    ask = f"GET /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {scene.renter.key}\r\n\r\n"
    socks = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(most + 5)]
    for sock in socks:
        sock.sendall(ask.encode())
    until(lambda: stuck.begun == most and _waiting() == 5)
    for sock in socks:
        sock.close()
    until(lambda: _waiting() == 0)
    stuck.ends.set()
    assert asked(port, scene.renter).status_code == 200
    assert stuck.begun == most + 1, "none of those who left was begun"


def _waiting() -> int:
    return int(next(iter(TURNS_WAITING.collect())).samples[0].value)


def test_a_wrong_key_that_is_sent_again_asks_the_database_twice(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, port = served
    looked_up = 0
    found = auth.Authenticator._looked_up

    def counted(self: auth.Authenticator, token: str, digest: str) -> Any:
        nonlocal looked_up
        looked_up += 1
        return found(self, token, digest)

    monkeypatch.setattr(auth, "CACHE_SECONDS", 60.0)
    monkeypatch.setattr(auth.Authenticator, "_looked_up", counted)
    wrong = Caller(scene.http, auth.executor_key(b"x" * 32))
    answers = [asked(port, wrong) for _ in range(5)]
    assert {(each.status_code, each.json()["code"]) for each in answers} == {
        (401, "credential_invalid")
    }
    assert looked_up == 2, "at the first time it might have been about to come"
    assert asked(port, scene.rival).status_code == 200


def test_requests_that_ask_whether_to_go_on_and_do_not_hold_no_entrance(served: Served) -> None:
    """Two of them held both places of their address until the clock of their connection ran out."""
    scene, port = served
    with half_sent(port, 2, "Expect: 100-continue\r\nContent-Length: 9") as socks:
        for sock in socks:
            assert sock.recv(100).startswith(b"HTTP/1.1 100")
        began = time.monotonic()
        assert asked(port, scene.rival).status_code == 200
        assert time.monotonic() - began < MEANWHILE_S


def test_who_waits_too_long_at_the_entrance_is_told_and_leaves_no_trace() -> None:
    async def crowd() -> None:
        places = entrance.Places(1)
        first = await places.take("here")
        with pytest.raises(entrance.Crowded):
            await places.take("here")
        await places.take("elsewhere")
        first.leave()
        async with places.one("here"):
            pass
        assert places._of.keys() == {"elsewhere"}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(entrance, "WAIT_SECONDS_MAX", 0.01)
        asyncio.run(crowd())


def test_a_key_that_was_good_is_looked_up_in_the_line_of_its_caller_and_no_other_is(
    served: Served,
) -> None:
    scene, port = served
    known: Any = scene.service.forgetters[0].__self__  # type: ignore[attr-defined]
    assert isinstance(known, auth.Authenticator)
    header, wrong = f"Bearer {scene.rival.key}", f"Bearer {auth.executor_key(b'x' * 32)}"
    assert asked(port, scene.rival).status_code == 200
    known.forget()
    assert known.remembered(header) is None
    assert known.caller(header) == f"key/{scene.rival.account_id}"
    assert known.caller(wrong) is None
    assert known.caller("nonsense") is None
    assert known.caller(None) is None


def test_long_bodies_of_strangers_that_never_end_delay_no_account_behind_their_address(
    served: Served,
) -> None:
    scene, port = served
    with half_sent(port, 4, "Content-Length: 60000", 40_000):
        address = f"http://127.0.0.1:{port}/v1/jobs"
        assert asked(port, scene.rival).status_code == 200, "from here on its key is known"
        scene.service.keys_changed()
        began = time.monotonic()
        answer = httpx.post(
            address, json={"name": "a" * 50_000}, headers=scene.rival.headers, timeout=60
        )
        assert answer.status_code in (400, 422)
        assert time.monotonic() - began < MEANWHILE_S


def test_a_long_body_is_read_beside_the_requests_of_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop stood still for up to 35 ms while it read a MiB."""
    scene, port = served
    parse, begun, ends = door.parse, threading.Event(), threading.Event()

    def slowly(raw: bytes, items_max: int) -> Any:
        begun.set()
        ends.wait(10)
        return parse(raw, items_max)

    monkeypatch.setattr(door, "parse", slowly)
    with ThreadPoolExecutor(1) as threads:
        address, body = f"http://127.0.0.1:{port}/v1/jobs", {"name": "a" * 50_000}
        headers = scene.renter.headers
        long = threads.submit(httpx.post, address, json=body, headers=headers, timeout=60)
        assert begun.wait(10)
        began = time.monotonic()
        assert asked(port, scene.rival).status_code == 200
        assert time.monotonic() - began < MEANWHILE_S
        ends.set()
        assert long.result().status_code in (400, 422)


def test_a_long_body_that_gets_no_place_is_told_when_to_come_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "WAIT_SECONDS_MAX", 0.2)
    with half_sent(served.port, 3, "Content-Length: 60000", 40_000) as socks:
        answer = socks[2].recv(10_000)
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1\r\n" in answer.lower()
        assert b"too_many_at_once" in answer
