"""When the executor says `ready`: a start is free for so long as the server says, and no longer."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from node_reporter.executor.docker import DockerRunner
from node_reporter.executor.executor import Allowed
from node_reporter.executor.parcels import bringing
from node_reporter.executor.runner import Grant, Limits, NotStarted
from node_reporter.executor.sandbox import job_user, make_folder
from tests.node_reporter import walled_docker
from tests.node_reporter.confined import MIB, needs_walls
from tests.node_reporter.executor import test_parcels
from tests.node_reporter.executor.test_executor import ME, Make, World, world

pytestmark = needs_walls
parcels = test_parcels.world
__all__ = ["parcels", "world"]
OPEN = Allowed(
    network=True,
    host="127.0.0.1",
    ports=range(9_340, 9_360),
    limits=Limits(memory_bytes=256 * MIB, grace_s=1),
)


@pytest.mark.parametrize("free_us", [0, 300_000])
def test_an_endpoint_that_never_answers_is_billed_when_its_free_time_is_over(
    world: Make, free_us: int
) -> None:
    """It used the device for ten minutes, ended by itself, and cost nothing."""
    here = world(OPEN)
    here.server.free_us = free_us
    began = time.monotonic()
    lease = here.server.asks("a", "echo computing; sleep 60", work={"kind": "endpoint"})
    here.until(lambda: here.server.said(lease, "ready"), "billing starts")
    assert time.monotonic() - began >= free_us / 1_000_000
    (ready,) = here.server.said(lease, "ready")
    assert ready["endpoint"].startswith("http://127.0.0.1:93")
    here.until(lambda: "computing" in here.server.out(lease), "it runs")
    for _ in range(60):
        here.executor.step()
        time.sleep(0.02)
    assert here.server.said(lease, "health") == [], "it starts: nobody is told that it is unwell"
    here.server.closes(lease)
    here.until_settled(lease)


def test_without_a_bound_an_endpoint_is_billed_when_it_answers_or_ends(world: Make) -> None:
    here = world(OPEN)
    lease = here.server.asks("a", "echo up; sleep 60", work={"kind": "endpoint"})
    here.until(lambda: "up" in here.server.out(lease), "it runs")
    for _ in range(10):
        here.executor.step()
    here.executor.jobs[lease].run.end()  # type: ignore[union-attr]
    assert not here.server.said(lease, "ready")
    here.until_settled(lease)
    assert len(here.server.said(lease, "ready")) == 1


def test_a_folder_that_comes_slowly_is_billed_when_the_free_time_is_over(parcels: World) -> None:
    server: Any = parcels.server
    server.holds(("a", b"1"))
    server.free_us, server.away_for = 0, 0
    slow: list[int] = []
    pieces_of = server.request

    def request(method: str, path: str, headers: Any, body: Any) -> Any:
        if path.endswith("/pieces") and not server.said(lease, "ready"):
            slow.append(1)
            time.sleep(0.2)
        return pieces_of(method, path, headers, body)

    server.request = request
    lease = server.asks_with("a", "cat a")
    parcels.until(lambda: server.said(lease, "ready"), "billing starts")
    assert server.out(lease) == "", "before the program"
    parcels.until_settled(lease)
    assert server.out(lease) == "1"
    assert len(server.said(lease, "ready")) == 1


def test_what_was_ready_and_cannot_be_begun_is_said_against_the_node_itself(parcels: World) -> None:
    server: Any = parcels.server
    server.holds(("a", b"1"))
    server.bodies.clear()
    server.free_us = 0
    pieces_of = server.request

    def request(method: str, path: str, headers: Any, body: Any) -> Any:
        if path.endswith("/pieces"):
            time.sleep(0.5)
        return pieces_of(method, path, headers, body)

    server.request = request
    lease = server.asks_with("a", "echo ran")
    parcels.until(lambda: server.said(lease, "ended"), "it ends")
    (ended,) = server.said(lease, "ended")
    assert ended["outcome"] == "not_started"
    assert not server.said(lease, "decline")
    assert "not started, and not charged: its files did not come" in server.out(lease, "note")


def test_no_time_is_billed_while_a_secret_is_waited_for_and_the_wait_is_short(
    parcels: World,
) -> None:
    """`ready` would shut the door for it. The wait is bounded, and shorter for an account whose
    starts fail: it holds the device meanwhile.
    """
    server: Any = parcels.server
    server.holds(secrets=("TOKEN",))
    server.free_us = 0
    lease = server.asks_with("a", "echo $TOKEN")
    parcels.until(lambda: lease in parcels.executor.jobs, "it is fetched")
    fetch: Any = parcels.executor.jobs[lease].bringing
    assert fetch.secrets_s == bringing.HURRIED_SECONDS_MAX < bringing.SECRETS_SECONDS_MAX
    for _ in range(10):
        parcels.executor.step()
        time.sleep(0.02)
    assert not server.said(lease, "ready")
    server.sealed = test_parcels.sealed(lease, TOKEN="s3cret")
    parcels.until_settled(lease)
    assert server.out(lease) == "s3cret\n"


# --- a gang --------------------------------------------------------------------------------------


def test_nothing_of_a_gangs_member_runs_before_the_gang_is_billed(world: Make) -> None:
    """The attack: a renter owns the node of one member, lets it never be ready, and the programs
    of the others compute until the gang's timeout, at charge 0.
    """
    here = world(OPEN)
    here.server.free_us = 60_000_000
    work = {"kind": "endpoint"}
    leases = [here.server.asks(one, "echo ran", waits_for_gang=True, work=work) for one in "ab"]
    here.until(lambda: len(here.server.waiting) == 2, "both are ready at once")
    addresses = {here.server.said(lease, "ready")[0]["endpoint"] for lease in leases}
    assert len(addresses) == 2, "their renter is told where each will be"
    for _ in range(20):
        here.executor.step()
        time.sleep(0.02)
    assert [job.run for job in here.executor.jobs.values()] == [None, None]
    opened, late = leases
    here.server.opens(opened)
    here.server.closes(late)
    for lease in leases:
        here.until_settled(lease)
    assert [here.server.out(lease) for lease in leases] == ["ran\n", ""]
    assert [len(here.server.said(lease, "ready")) for lease in leases] == [1, 1]
    assert not here.server.said(late, "ended")
    assert here.executor.jobs == {}
    assert [path.name for path in here.ground.jobs.iterdir() if path.name[0] != "."] == []


def test_a_gangs_member_that_is_over_before_it_began_does_not_begin(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    lease = here.server.asks("a", "echo ran", waits_for_gang=True)
    here.until(lambda: here.server.waiting, "it is ready")
    here.server.closes(lease)
    here.server.running[lease] = {"lease_id": lease, "executor": ME}  # it waits for its last report
    with monkeypatch.context() as lost:
        lost.setattr(here.executor, "_answer", lambda *_: None)
        here.executor.step()
        here.executor.step()
    assert [job.run for job in here.executor.jobs.values()] == [None]
    here.until_settled(lease)
    assert here.server.out(lease) == ""


def test_a_member_that_cannot_begin_when_its_gang_is_billed_is_not_charged(world: Make) -> None:
    here = world()
    volume = {"volume_id": "volume_" + "1" * 32, "path": "/data", "read_only": False, "size_gib": 1}
    lease = here.server.asks("a", "echo ran", waits_for_gang=True, volumes=[volume])
    here.until(lambda: here.server.waiting, "it is ready")
    here.server.opens(lease)
    here.until_settled(lease)
    (ended,) = here.server.said(lease, "ended")
    assert ended["outcome"] == "not_started"
    assert "this node has no store of volumes" in here.server.out(lease, "note")


# --- a container ---------------------------------------------------------------------------------


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulator of the client: real processes behind bubblewrap."""
    folder = tmp_path / "docker"
    folder.mkdir()
    (folder / "here").write_text("trainer:1\n")
    client = folder / "docker"
    client.write_text(
        f'#!/bin/sh\nexec {sys.executable} -I -S {walled_docker.__file__} {folder} "$@"\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def _grant(folder: Path, **variables: str) -> Grant:
    return Grant(
        lease_id="lease_" + "1" * 32,
        command=("sh", "-c", "echo $TOKEN; sleep 60"),
        image="trainer:1",
        environment={},
        folder=folder,
        device_ids=(),
        variables=variables,
    )


def test_no_secret_of_a_container_is_on_a_disk_or_in_the_clients_environment(
    docker: Path, world: Make
) -> None:
    """A file with the renter's variables stayed in the folder of the job until its end, and for
    good where the executor was killed.
    """
    here = world()
    folder = make_folder(here.ground.jobs, "lease_" + "1" * 32, job_user(None))
    run = DockerRunner(os.environ, job_user(None)).start(_grant(folder, TOKEN="s3cret"))
    try:
        assert os.read(run.outputs[0], 100) == b"s3cret\n"
        assert sorted(one.name for one in folder.rglob("*")) == ["tmp", "work"]
        assert "s3cret" not in (docker / "asked").read_text()
    finally:
        run.end()
        run.process.wait()
        run.close()


def test_a_value_of_several_lines_is_no_second_variable(docker: Path, world: Make) -> None:
    folder = make_folder(world().ground.jobs, "lease_" + "1" * 32, job_user(None))
    for value in ("a\nLD_PRELOAD=x", "a\rb"):
        with pytest.raises(NotStarted, match="several lines"):
            DockerRunner(os.environ).start(_grant(folder, TOKEN=value))
    assert not (docker / "asked").exists() or '"run"' not in (docker / "asked").read_text()
