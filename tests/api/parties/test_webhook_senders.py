"""S-H2, S-M7: an endpoint that never answers holds up its own account, and nobody else."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

import pytest

from api.parties import webhook_sender, webhook_senders
from api.parties.webhook_sender import Sent
from api.parties.webhook_senders import ACCOUNT_TURNS_MAX, Senders
from api.process.service import READERS_MAX
from domain.parties.webhook import ENDPOINTS_MAX
from tests.scenes.server import Scene

TARPIT, GOOD = "https://tarpit.example/", "https://good.example/"


@dataclass
class Tarpit:
    """Endpoints of one host never answer before `over`; all others take at once what they get."""

    over: threading.Event = field(default_factory=threading.Event)
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    taken: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def __call__(self, url: str, _body: bytes, _headers: dict[str, str]) -> Sent:
        if url.startswith(TARPIT):
            self.tried.append(url)
            self.held.release()
            assert self.over.wait(60)
            return Sent(None, "timed_out")
        self.taken.append(url)
        return Sent(200, None)


@pytest.fixture
def tarpit() -> Generator[Tarpit, None, None]:
    made = Tarpit()
    yield made
    made.over.set()


def _round(scene: Scene, senders: Senders, tarpit: Tarpit) -> int:
    with scene.service.connect() as connection:
        return webhook_sender.tell_all(scene.service, connection, 0, senders, tarpit)


def test_s_m7_a_tenant_of_tarpits_takes_its_own_turns_and_delays_no_other(
    scene: Scene, tarpit: Tarpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_senders, "ROUND_SECONDS_MAX", 0.3)
    for number in range(ENDPOINTS_MAX):
        scene.renter.made("/v1/webhooks", {"url": f"{TARPIT}{number}"})
    more = scene.renter.post("/v1/webhooks", {"url": f"{TARPIT}more"})
    assert (more.status_code, more.json()["code"]) == (422, "count_out_of_range")
    scene.stranger.made("/v1/webhooks", {"url": GOOD, "types": ["deposit."]})
    for who in (scene.renter, scene.stranger):
        scene.deposit(who, 1)
    with closing(Senders()) as senders:
        assert _round(scene, senders, tarpit) == 1
        assert tarpit.taken == [GOOD]
        scene.deposit(scene.stranger, 2)
        assert _round(scene, senders, tarpit) == 1, "while all tarpits hold on"
        assert len(tarpit.tried) == ACCOUNT_TURNS_MAX
        tarpit.over.set()
    # What was on its way when the process ended was noted before it was sent, and how it went.
    waiting = [
        one
        for hook in scene.renter.read("/v1/webhooks", limit=50)["data"]
        for one in scene.renter.read(f"/v1/webhooks/{hook['endpoint_id']}/deliveries")["data"]
    ]
    assert [(one["attempts"], one["error"]) for one in waiting] == [(1, "timed_out")] * 2


def test_an_attempt_that_another_process_makes_is_not_made_twice(
    scene: Scene, tarpit: Tarpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_senders, "ROUND_SECONDS_MAX", 0.3)
    scene.renter.made("/v1/webhooks", {"url": TARPIT, "types": ["deposit."]})
    scene.deposit(scene.renter, 1)
    with closing(Senders()) as first, closing(Senders()) as second:
        _round(scene, first, tarpit)
        _round(scene, second, tarpit)
        assert tarpit.tried == [TARPIT]
        tarpit.over.set()


def test_s_h2_tests_of_endpoints_that_never_answer_leave_the_api_to_others(
    scene: Scene, tarpit: Tarpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many tests as there are connections: one is sent, the others are refused at once."""
    sending = partial(webhook_sender.send_test, send=tarpit)
    monkeypatch.setattr(webhook_sender, "send_test", sending)
    hook = scene.renter.made("/v1/webhooks", {"url": TARPIT})["endpoint_id"]
    path = f"/v1/webhooks/{hook}/test"
    with ThreadPoolExecutor(READERS_MAX) as callers:
        asked = [callers.submit(scene.renter.post, path) for _ in range(READERS_MAX)]
        assert tarpit.held.acquire(timeout=30)
        for _ in range(READERS_MAX):
            assert scene.stranger.get("/v1/offers").status_code == 200
        assert scene.service.readers.get_stats()["pool_available"] >= 1
        theirs = scene.stranger.made("/v1/webhooks", {"url": GOOD})["endpoint_id"]
        assert scene.stranger.made(f"/v1/webhooks/{theirs}/test")["delivered"]
        tarpit.over.set()
        answers = sorted(one.result().status_code for one in asked)
    assert answers.count(200) >= 1
    assert set(answers) == {200, 429}


def test_a_turn_that_finds_nothing_to_do_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two turns of an account for its last endpoint: the slower one has none left."""
    monkeypatch.setattr(webhook_senders, "SENDERS_MAX", 1)
    with closing(Senders()) as senders:
        for turn in range(3):
            names = [f"hook_{turn}_{n}" for n in range(ACCOUNT_TURNS_MAX + 1)]
            assert senders.round(("acct", name, lambda: 1) for name in names) == len(names)
    assert not senders._lanes
    assert not senders._waiting
