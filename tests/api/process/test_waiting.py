"""Who waits, waits for a bounded time, holds up nobody else, and is told when to come back."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from api.door import door
from api.ingest import door as usage
from api.process import waiting
from api.process.service import READERS_MAX
from api.process.waiting import WAITERS_MAX, HeadWait, ProjectionBehind
from tests.scenes.server import Scene
from tests.scenes.usage_reports import Node


class Log:
    """A log whose head is set by hand; it knows how often it was asked at once."""

    def __init__(self) -> None:
        self.head, self.asking, self.asking_max = 0, 0, 0
        self.lock = threading.Lock()

    def __call__(self) -> int:
        with self.lock:
            self.asking += 1
            self.asking_max = max(self.asking_max, self.asking)
        time.sleep(0.001)
        with self.lock:
            self.asking -= 1
        return self.head


def test_a_hundred_reads_wait_with_one_question_and_one_more_is_told_to_come_back() -> None:
    async def crowd() -> None:
        log = Log()
        wait = HeadWait(log)
        waiters = [asyncio.ensure_future(wait.until(7)) for _ in range(WAITERS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(ProjectionBehind, match="too many"):
            await wait.until(7)
        log.head = 7
        await asyncio.gather(*waiters)
        assert log.asking_max == 1
        await wait.until(7)
        log.head = 8
        await wait.until(8)

    assert WAITERS_MAX == 100
    asyncio.run(crowd())


def test_a_wait_ends_in_time_and_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr(waiting, "WAITERS_MAX", 1)

    async def alone() -> None:
        wait = HeadWait(lambda: 3)
        for _ in range(2):
            with pytest.raises(ProjectionBehind, match="the log is at 3 of 4"):
                await wait.until(4)
        await wait.until(3)

    asyncio.run(alone())


def test_reads_that_wait_hold_no_connection_that_another_read_needs(shared: Scene) -> None:
    crowd = 2 * READERS_MAX
    ahead = {"Tallystick-Min-Position": str(shared.head() + 1)}
    with ThreadPoolExecutor(crowd) as pool:
        waiters = [pool.submit(shared.renter.get, "/v1/jobs", ahead) for _ in range(crowd)]
        assert shared.stranger.get("/v1/jobs").status_code == 200
        assert not any(waiter.done() for waiter in waiters)
        shared.renter.made("/v1/jobs", shared.job())
        assert {waiter.result().status_code for waiter in waiters} == {200}


def test_a_call_that_takes_too_long_is_answered_503_and_its_append_is_never_cut_short(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "REQUEST_SECONDS_MAX", 0.2)
    before = shared.head()
    with psycopg.connect(shared.service.conninfo) as other:
        other.execute("SELECT 1 FROM market_events_head FOR UPDATE")
        late = shared.renter.post("/v1/jobs", shared.job(), key="late")
        other.rollback()
    assert (late.status_code, late.json()["code"]) == (503, "timed_out")
    assert (late.headers["Retry-After"], late.json()["retryable"]) == ("1", True)
    monkeypatch.undo()
    again = shared.renter.post("/v1/jobs", shared.job(), key="late")
    assert again.status_code == 201
    assert shared.head() == before + 1, "once, whoever came first"


def test_a_node_whose_reports_are_not_stored_in_time_sends_them_again(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "REQUEST_SECONDS_MAX", 0.2)
    node: Node = shared.provider.signing
    path = f"/v1/nodes/{shared.provider.node_id}/usage"
    envelope = node.envelope(node.body())

    def send() -> Any:
        return shared.http.post(path, json=[envelope], headers={"Content-Type": usage.MEDIA_TYPE})

    with psycopg.connect(shared.service.conninfo) as other:
        other.execute("SELECT 1 FROM usage_head FOR UPDATE")
        late = send()
        other.rollback()
    assert (late.status_code, late.json()["code"]) == (503, "unavailable")
    assert int(late.headers["Retry-After"]) >= 1
    monkeypatch.undo()
    assert send().status_code == 200


def test_a_statement_of_the_log_ends_in_time(shared: Scene) -> None:
    rows = shared.service.ledger.market.datastore.rows("SHOW statement_timeout")
    assert rows == [{"statement_timeout": "10s"}]
