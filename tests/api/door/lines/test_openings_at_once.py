"""Openings of leases that wait for the desk hold no place at the door; of one account only so many.

On the server of before each held one of eight places while another thread worked for it: eight
openings were served in a round however many waited, and everybody else waited for those rounds.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx2 as httpx
import pytest

from api.door import door
from api.door.lines import turns
from tests.api.door.lines.test_one_renters_worst import MEANWHILE_S, Served, asked, served
from tests.processes import until
from tests.scenes.server import Caller

__all__ = ["served"]


def opening(served: Served, who: Caller, key: str) -> httpx.Response:
    address = f"http://127.0.0.1:{served.port}/v1/leases"
    headers = {**who.headers, "Idempotency-Key": key}
    return httpx.post(address, json={"job": served.scene.job()}, headers=headers, timeout=60)


def test_openings_that_wait_for_the_desk_hold_no_place_at_the_door(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "REQUEST_SECONDS_MAX", 60.0)  # on a busy machine, too
    monkeypatch.setattr(turns, "WAIT_SECONDS_MAX", 60.0)
    scene, desk, may_go_on = served.scene, served.scene.service.lease_desk, Event()
    most, at_once = (
        scene.service.settings.account_requests_at_once,
        scene.service.settings.requests_at_once,
    )
    others = [scene.account() for _ in range(at_once // most)]
    accounts = [scene.renter, *others]
    assert len(accounts) * most > at_once
    desk._thread.submit(may_go_on.wait, 60)
    with ThreadPoolExecutor(len(accounts) * (most + 2)) as threads:
        asks: list[Future[Any]] = [
            threads.submit(opening, served, who, f"{who.account_id}/{number}")
            for who in accounts
            for number in range(most + 2)
        ]
        try:
            until(lambda: len(desk._waiting) == len(accounts) * most)
            began = time.monotonic()
            assert asked(served.port, scene.rival).status_code == 200
            assert time.monotonic() - began < MEANWHILE_S
            assert len(desk._waiting) == len(accounts) * most, "two more of each wait in its line"
        finally:
            may_go_on.set()
        answers = [ask.result() for ask in asks]
    of_renter, of_others = answers[: most + 2], answers[most + 2 :]
    assert {each.status_code for each in of_renter} == {201, 409}
    # Who cannot pay is served alone, for the reason to be told, and stands in line for that anew.
    assert {each.json()["code"] for each in of_others} <= {"credit_too_low", "no_match"}
