"""Challenges end to end: the server asks, the reference executor computes, the server checks."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from api.trust.trust_timer import run_trust
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import first_policy
from domain.lease.lease import LeaseRequested
from domain.trust import challenge_cuda
from domain.trust.challenge import ChallengeIssued, ChallengeJudged
from node_reporter.clock import SteppedClock
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.executor import Executor
from node_reporter.executor.sandbox import TrustedRunner
from node_reporter.executor.state import ExecutorSettings
from node_reporter.reports.client import Response
from projections import tables
from tests.api.leasing.test_work import executor_of
from tests.api.trust.test_tiers import A5000, LIBRARY, rules, told, trust
from tests.node_reporter.scripted_machines import HERE, compiled
from tests.scenes.server import HOUR_US, NOW_US, Scene

UUID = "GPU-11111111-2222-4333-8444-555555555555"
SIMULATED = {"name": "NVIDIA A100-PCIE-80GB", "driver": "simulated", "power_limit_mw": 300_000}


class ToScene:
    """The executor's transport: calls of the server in this process."""

    def __init__(self, scene: Scene) -> None:
        self.http = scene.http

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        answer = self.http.request(method, path, headers=dict(headers), content=body)
        return Response(status=answer.status_code, headers={}, body=answer.content)


@pytest.fixture
def asked(in_development: Scene) -> Scene:
    """One idle simulated device, which joins in development only, an epoch at its end, and an
    account that pays for challenges.
    """
    scene = in_development
    node, provider = scene.provider.node, scene.provider
    device = {
        "device_id": UUID,
        "vendor": "sim",
        "model": "NVIDIA A100-PCIE-80GB",
        "memory_mib": 81_920,
    }
    body = {"devices": [device], "host": {"arch": "x86_64", "os": "linux", "driver": "simulated"}}
    node.made(f"/v1/nodes/{provider.node_id}/specs", body)
    scene.operator.made(f"/v1/nodes/{provider.node_id}/admit", {})
    commands = [
        first_policy("operator", NOW_US),
        OpenEpoch(epoch=1, start_us=NOW_US - 7 * 24 * HOUR_US + HOUR_US, at_us=NOW_US),
    ]
    scene.service.ledger.handle(commands, key=None, now_us=NOW_US)
    settings = dataclasses.replace(
        scene.service.settings, challenge_account=scene.renter.account_id
    )
    scene.service.settings = settings
    told(scene, provider, SIMULATED, device=UUID)
    return scene


def turn(scene: Scene) -> int:
    with scene.service.connect() as connection:
        tables.step_all(connection)
        return run_trust(scene.service, connection, scene.clock.now_us())


def facts(scene: Scene, kind: type[Any]) -> list[Any]:
    found = scene.service.ledger.market.read_facts(0, 100_000)
    return [one.fact for one in found if isinstance(one.fact, kind)]


def of_device(scene: Scene) -> ChallengeIssued:
    found: list[ChallengeIssued] = facts(scene, ChallengeIssued)
    return next(one for one in found if one.device_id == UUID)


def test_a_challenge_is_a_lease_that_the_executor_runs_and_the_server_checks(
    asked: Scene, tmp_path: Path
) -> None:
    assert turn(asked) >= 1
    issued = of_device(asked)
    key = executor_of(asked, asked.provider).key
    assert key is not None
    settings = ExecutorSettings(
        url="http://scene",
        node_id=asked.provider.node_id,
        executor="e0" * 8,
        executor_key=key,
        variables={},
    )
    clock = SteppedClock(wall_us=asked.clock.now_us())
    client = ExecutorClient(settings.node_id, key, ToScene(asked))
    executor = Executor(settings, client, [TrustedRunner(None)], tmp_path, clock)
    until = time.monotonic() + 60
    path = f"/v1/leases/{issued.lease_id}"
    while asked.renter.read(path)["state"] not in ("closing", "settled"):
        assert time.monotonic() < until, "the work never ended"
        executor.step()
    executor.close()
    turn(asked)
    (judged,) = [one for one in facts(asked, ChallengeJudged) if one.device_id == UUID]
    assert (judged.challenge_id, judged.rule) == (issued.challenge_id, None)
    device = trust(asked, asked.provider, UUID)
    assert (device["tier"], device["simulated"]) == (3, True)
    assert {one["rule"] for one in device["findings"]} == {"attestation"}
    history = asked.renter.read(f"{path}/history")["data"]
    assert "lease.opened.v1" in {one["type"] for one in history}, "it is paid as a lease"


@pytest.fixture
def real(asked: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The same device, which tells what an A5000 tells; and work that a processor can do."""
    told(asked, asked.provider, A5000, device=UUID, first=30, minutes=5)
    asked.operator.made("/v1/trust/libraries", LIBRARY)
    monkeypatch.setattr(challenge_cuda, "LANES", 256)
    monkeypatch.setattr(challenge_cuda, "rounds_for", lambda board: board.multiprocessors)
    return asked


def computed(issued: ChallengeIssued, command: list[str], folder: Path) -> bytes:
    """What the command prints where the driver library of the tests stands for a GPU's."""
    library = compiled(folder, "libcuda.so.1", HERE / "fake_cuda.c")
    own = issued.device_id.removeprefix("GPU-").replace("-", "")
    made_up = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_CUDA_UUIDS": own}
    return subprocess.run(
        command, env={**os.environ, **made_up}, capture_output=True, check=True
    ).stdout


def commanded(scene: Scene, issued: ChallengeIssued) -> list[str]:
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    pending = executor_of(scene, scene.provider).read(path)["pending"]
    work = next(one["work"] for one in pending if one["lease_id"] == issued.lease_id)
    command: list[str] = work["command"]
    return command


def test_a_gpu_of_nvidia_is_asked_what_only_the_server_can_shorten_and_reaches_tier_3(
    real: Scene, tmp_path: Path
) -> None:
    turn(real)
    issued = of_device(real)
    assert (issued.program, issued.size, issued.rounds) == ("cuda", 256, 64)
    assert trust(real, real.provider, UUID)["tier"] == 2
    _answer(real, issued, computed(issued, commanded(real, issued), tmp_path))
    turn(real)
    (judged,) = [one for one in facts(real, ChallengeJudged) if one.device_id == UUID]
    assert (judged.program, judged.rule) == ("cuda", None)
    assert trust(real, real.provider, UUID)["tier"] == 3


def test_a_gpu_that_computes_less_than_it_is_asked_stays_at_tier_2(
    real: Scene, tmp_path: Path
) -> None:
    turn(real)
    issued = of_device(real)
    command = commanded(real, issued)
    less = [*command[:-1], str(issued.rounds - 1)]
    _answer(real, issued, computed(issued, less, tmp_path))
    turn(real)
    (judged,) = [one for one in facts(real, ChallengeJudged) if one.device_id == UUID]
    assert judged.rule == "wrong_lanes"
    assert trust(real, real.provider, UUID)["tier"] == 2


def test_a_right_answer_of_a_gpu_that_is_late_counts_for_nothing(
    real: Scene, tmp_path: Path
) -> None:
    turn(real)
    issued = of_device(real)
    clock: Any = real.clock
    answer = computed(issued, commanded(real, issued), tmp_path)
    _answer(real, issued, answer, between=lambda: clock.advance(issued.limit_us + 1))
    turn(real)
    (judged,) = [one for one in facts(real, ChallengeJudged) if one.device_id == UUID]
    assert judged.rule == "too_late"
    assert trust(real, real.provider, UUID)["tier"] == 2


def test_a_gpu_that_no_program_is_written_for_is_asked_the_reference_which_proves_nothing(
    asked: Scene,
) -> None:
    unknown = {**A5000, "pci_id": "0x74a11002", "name": "AMD Instinct MI300X"}
    told(asked, asked.provider, unknown, device=UUID, first=30, minutes=5)
    turn(asked)
    assert of_device(asked).program == "reference"


def test_a_wrong_answer_fails_and_the_device_stays_at_tier_2(asked: Scene) -> None:
    turn(asked)
    issued = of_device(asked)
    _answer(asked, issued, b"product 0 AAAA\nfilled 00\n")
    turn(asked)
    (judged,) = [one for one in facts(asked, ChallengeJudged) if one.device_id == UUID]
    assert judged.rule == "malformed"
    device = trust(asked, asked.provider, UUID)
    assert device["tier"] == 2
    assert "challenge" in rules(device, at_most=3)


def test_an_answer_that_took_too_long_fails(asked: Scene) -> None:
    turn(asked)
    issued = of_device(asked)
    clock: Any = asked.clock
    _answer(asked, issued, b"", between=lambda: clock.advance(issued.limit_us + 1))
    turn(asked)
    (judged,) = [one for one in facts(asked, ChallengeJudged) if one.device_id == UUID]
    assert judged.took_us == issued.limit_us + 1
    assert judged.rule == "no_answer"


def test_a_node_that_never_starts_the_work_fails(asked: Scene) -> None:
    turn(asked)
    issued = of_device(asked)
    path = f"/v1/nodes/{asked.provider.node_id}/assignments/{issued.lease_id}"
    executor_of(asked, asked.provider).made(f"{path}/decline")
    turn(asked)
    (judged,) = [one for one in facts(asked, ChallengeJudged) if one.device_id == UUID]
    assert (judged.rule, judged.took_us) == ("not_started", None)


def test_the_time_in_which_the_work_could_be_read_counts_as_time_to_answer(asked: Scene) -> None:
    """Else a node has another machine compute the answer, and only then opens the lease."""
    turn(asked)
    issued = of_device(asked)
    clock: Any = asked.clock
    clock.advance(issued.limit_us)
    _answer(asked, issued, b"", between=lambda: clock.advance(1))
    turn(asked)
    (judged,) = [one for one in facts(asked, ChallengeJudged) if one.device_id == UUID]
    assert judged.took_us == issued.limit_us + 1


def test_who_asks_more_than_the_limit_is_not_paid_for_a_challenge(asked: Scene) -> None:
    """Else any owner could name a price and empty the account that pays."""
    settings = asked.service.settings
    asked.service.settings = dataclasses.replace(settings, challenge_price_max=1_999_999)
    assert turn(asked) == 0
    asked.service.settings = dataclasses.replace(settings, challenge_price_max=2_000_000)
    turn(asked)
    assert of_device(asked).node_id == asked.provider.node_id


def test_a_challenge_is_paid_for_no_longer_than_it_has_time(asked: Scene) -> None:
    turn(asked)
    issued = of_device(asked)
    leased = facts(asked, LeaseRequested)
    (lease,) = [one for one in leased if one.lease_id == issued.lease_id]
    assert lease.term_us == issued.limit_us


def test_nobody_is_asked_twice_in_one_turn_nor_while_nobody_pays(asked: Scene) -> None:
    turn(asked)
    count = len(facts(asked, ChallengeIssued))
    turn(asked)
    again = [one for one in facts(asked, ChallengeIssued)[count:] if one.device_id == UUID]
    assert again == [], "the device is busy with the first one"
    settings = dataclasses.replace(asked.service.settings, challenge_account=None)
    asked.service.settings = settings
    before = len(facts(asked, ChallengeIssued))
    turn(asked)
    assert len(facts(asked, ChallengeIssued)) == before


def _answer(
    scene: Scene, issued: ChallengeIssued, printed: bytes, between: Any = lambda: None
) -> None:
    """What an executor says, with an answer of our own."""
    executor = executor_of(scene, scene.provider)
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    pending = next(
        one for one in executor.read(path)["pending"] if one["lease_id"] == issued.lease_id
    )
    assert json.dumps(pending["work"]["command"]).count("hashlib") > 1, "the program travels along"
    start = {
        "command": "start",
        "executor": "e0" * 8,
        "runner": "process",
        "workload_sha256": pending["work"]["workload_sha256"],
    }
    lease = f"{path}/{issued.lease_id}"
    executor.made(f"{lease}/acknowledge", start)
    executor.made(f"{lease}/ready")
    between()
    if printed:
        pieces = [{"stream": "stdout", "body": base64.b64encode(printed).decode()}]
        executor.made(f"{lease}/log", {"seq": 0, "data": pieces, "left_out": 0})
    ended = {"executor": "e0" * 8, "outcome": "exited", "exit_code": 0}
    executor.made(f"{lease}/ended", ended)
