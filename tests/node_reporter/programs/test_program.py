"""`tallystick-node` as an owner runs it: real processes, real HTTP, real time, a fake driver."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from node_reporter.gpus import simulated
from node_reporter.identity import KeyUnreadable, fingerprint, load_key, make_key, public_key
from node_reporter.machine.config import StateFolder, load
from node_reporter.reports.client import HttpTransport, Unreachable, UrlRefused
from tests.node_reporter.conftest import FakeMachine
from tests.node_reporter.model_server import NODE, NODE_KEY, ModelServer, serve
from tests.processes import WITH_STACKS, ended, until

ROOT = Path(__file__).parents[3]
Machines = Callable[[int], FakeMachine]
UUIDS = [f"GPU-{n:08x}-0000-0000-0000-000000000000" for n in range(16)]


def command(*arguments: str) -> list[str]:
    return [*WITH_STACKS, "-m", "node_reporter", *arguments]


def running(state: Path, *more: str) -> list[str]:
    return command("run", "--state", str(state), "--interval", "1", *more)


def ran(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env=environment or dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def joined(url: str, state: Path, environment: dict[str, str], *more: str) -> None:
    done = ran("join", url, "7Q4K9XWD", "--state", str(state), *more, environment=environment)
    assert done.returncode == 0, done.stderr


def totals(server: ModelServer, device: str) -> tuple[int, int, int]:
    rows = [row for device_id, _, row in server.rows() if device_id == device]
    assert all(a.mono_end_us == b.mono_start_us for a, b in pairwise(rows))
    return (
        sum(row.available_us for row in rows),
        sum(row.unavailable_us for row in rows),
        sum(row.unknown_us for row in rows),
    )


def test_a_join_that_is_cut_off_between_its_files_can_be_made_again(tmp_path: Path) -> None:
    """Else `join` says that a node is kept here, and `run` that none is."""
    folder = StateFolder(tmp_path)
    folder.settings.mkdir()  # in the place of the file: it cannot be written
    told = {"url": "https://tallystick.example", "node_id": NODE, "node_key": NODE_KEY}
    with pytest.raises(OSError, match=r"node\.toml"):
        folder.remember(**told)
    assert not folder.node_key.exists()
    folder.settings.rmdir()
    folder.signing_key_or_new()
    folder.remember(**told)
    settings = load(folder, {}, None)
    assert (settings.node_id, settings.node_key) == (NODE, NODE_KEY)


def test_joining_makes_a_key_prints_its_fingerprint_and_remembers_the_node(tmp_path: Path) -> None:
    server = ModelServer()
    state = tmp_path / "state"
    with serve(server) as url:
        done = ran("join", url, "7Q4K9XWD", "--state", str(state), "--backend", "sim", "--json")
        again = ran("join", url, "7Q4K9XWD", "--state", str(state), "--backend", "sim")
    assert done.returncode == 0, done.stderr
    key = load_key(state / "signing.key")
    result = json.loads(done.stdout)
    assert (result["node_id"], result["fingerprint"]) == (NODE, fingerprint(public_key(key)))
    assert result["fingerprint"] in done.stderr
    assert server.joined["code"] == "7Q4K9XWD"
    assert server.joined["public_key"] == public_key(key).hex()
    assert server.joined["devices"][0]["model"] == "NVIDIA H200"
    assert (state / "signing.key").stat().st_mode & 0o777 == 0o600
    assert (state / "node.key").stat().st_mode & 0o777 == 0o600
    assert (state / "node.key").read_text() == NODE_KEY
    assert again.returncode == 1


def test_a_refused_code_says_why_and_keeps_no_node(tmp_path: Path) -> None:
    server = ModelServer(refuse_next=[(409, "join_code_used")])
    with serve(server) as url:
        done = ran("join", url, "7Q4K9XWD", "--state", str(tmp_path), "--backend", "sim")
    assert done.returncode == 1
    assert "join_code_used" in done.stderr
    assert not (tmp_path / "node.toml").exists()


def test_what_this_machine_can_refuse_is_refused_before_a_key_is_made(
    machine: Machines, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    in_clear = ran("join", "http://10.0.0.5", "7Q4K9XWD", "--state", str(state), "--backend", "sim")
    assert in_clear.returncode == 2
    assert "--allow-http" in in_clear.stderr
    blind = machine(1)
    blind.set(init_error="9")
    named = ("join", "http://127.0.0.1:9", "7Q4K9XWD", "--state", str(state))
    no_driver = ran(*named, environment=blind.environment())
    assert no_driver.returncode == 1, "nobody starts this command again"
    assert "tallystick-node doctor" in no_driver.stderr
    assert "Traceback" not in no_driver.stderr
    assert not (state / "signing.key").exists()


def test_running_before_joining_is_wrong_usage(tmp_path: Path) -> None:
    done = ran("run", "--state", str(tmp_path), "--backend", "sim")
    assert done.returncode == 2
    assert "tallystick-node join URL CODE" in done.stderr


def test_simulated_gpus_report_at_once_and_stop_cleanly(tmp_path: Path) -> None:
    server = ModelServer()
    sim = ("--backend", "sim", "--sim-gpus", "2")
    with serve(server) as url:
        joined(url, tmp_path, dict(os.environ), *sim)
        node = subprocess.Popen(running(tmp_path, *sim), cwd=ROOT, stderr=subprocess.PIPE)
        until(lambda: server.seq > 0)
        second = ran("run", "--state", str(tmp_path), "--backend", "sim")
        until(lambda: len(server.rows()) >= 4)
        node.send_signal(signal.SIGTERM)
        ended(node)
    assert node.returncode == 0
    assert second.returncode == 1, "two agents on one spool would sign two chains"
    assert server.alerts == []
    assert server.reports()[-1].events[-1].type == "agent.stopping"
    assert {device for device, _, _ in server.rows()} == {
        simulated.device_uuid("0", 0),
        simulated.device_uuid("0", 1),
    }


@pytest.mark.slow(
    "::test_simulated_gpus_report_at_once_and_stop_cleanly",
    "::test_a_driver_that_goes_away_ends_the_process_with_75_and_nothing_lost",
)
def test_faults_of_a_running_machine_end_in_the_right_buckets(
    machine: Machines, tmp_path: Path
) -> None:
    found = machine(3)
    server = ModelServer()
    lost, hung, good = UUIDS[:3]

    def gaps() -> int:
        return sum(row.energy_gaps for device, _, row in server.rows() if device == good)

    with serve(server) as url:
        joined(url, tmp_path / "state", found.environment())
        node = subprocess.Popen(
            running(tmp_path / "state", "--tick", "400"),
            cwd=ROOT,
            env=found.environment(),
            stderr=subprocess.PIPE,
        )
        until(lambda: all(totals(server, uuid)[0] > 0 for uuid in (lost, hung, good)))
        found.set(gpu__0__err__ALL="15", gpu__1__delay_ms__ALL="2500")
        until(lambda: totals(server, lost)[1] > 0 and totals(server, hung)[2] > 0)
        found.set(gpu__0__err__ALL="", gpu__1__delay_ms__ALL="")
        healed = [totals(server, uuid)[0] for uuid in (lost, hung)]
        until(lambda: totals(server, lost)[0] > healed[0] and totals(server, hung)[0] > healed[1])
        found.set(gpu__2__energy_mj="1", gpu__2__energy_rate_mw="")
        until(lambda: gaps() > 0)
        node.send_signal(signal.SIGTERM)
        said = ended(node)[1].decode()
    assert node.returncode == 0, said
    assert totals(server, lost)[1] > 0
    assert totals(server, hung)[1] == totals(server, good)[1] == 0
    assert totals(server, hung)[2] >= 1_000_000 > totals(server, good)[2]
    assert gaps() == 1
    assert all((row.energy_mj or 0) >= 0 for _, _, row in server.rows())


def test_a_driver_that_goes_away_ends_the_process_with_75_and_nothing_lost(
    machine: Machines, tmp_path: Path
) -> None:
    found = machine(1)
    server = ModelServer()
    with serve(server) as url:
        joined(url, tmp_path / "state", found.environment())
        node = subprocess.Popen(
            running(tmp_path / "state", "--tick", "100"),
            cwd=ROOT,
            env=found.environment(),
            stderr=subprocess.PIPE,
        )
        until(lambda: server.seq > 0)
        found.set(gpu__0__err__ALL="18")
        ended(node)
    assert node.returncode == 75
    assert totals(server, UUIDS[0])[2] > 0


def test_a_server_with_another_history_ends_the_process_with_78(tmp_path: Path) -> None:
    server = ModelServer()
    sim = ("--backend", "sim")
    with serve(server) as url:
        joined(url, tmp_path, dict(os.environ), *sim)
        run = ("run", "--state", str(tmp_path), *sim, "--tick", "100", "--interval", "1")
        assert ran(*run, "--seconds", "2").returncode == 0
        server.bodies[0] = server.bodies[0].replace(b'"v":1', b'"v": 1')
        server.bodies[1:] = []
        stopped = ran(*run, "--seconds", "5")
    assert stopped.returncode == 78
    assert "is not ours" in stopped.stderr


def test_doctor_tells_what_a_gpu_can_and_cannot_say(machine: Machines, tmp_path: Path) -> None:
    found = machine(2)
    found.set(gpu__0__energy_mj="")
    done = ran("doctor", "--state", str(tmp_path), "--json", environment=found.environment())
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert result["devices"][0]["values"]["energy_mj"] == "absent"
    assert result["devices"][1]["values"]["energy_mj"] == "ok"
    found.set(gpu__1__err__ALL="15")
    sick = ran("doctor", "--state", str(tmp_path), environment=found.environment())
    assert sick.returncode == 0, "a GPU lost before the start is not in the inventory"
    found.set(init_error="9")
    none = ran("doctor", "--state", str(tmp_path), environment=found.environment())
    assert none.returncode == 1


@pytest.mark.parametrize(
    "level", [[], ["join"], ["run"], ["rotate"], ["doctor"], ["install"], ["uninstall"]]
)
def test_help_on_every_level_has_an_example(level: list[str]) -> None:
    done = ran(*level, "--help")
    assert done.returncode == 0
    assert "example: tallystick-node" in done.stdout


@pytest.mark.slow(
    "tests/node_reporter/agent/test_page.py::test_a_node_that_runs_shows_itself_and_stays_small"
)
def test_eight_gpus_at_one_hertz_fit_into_48_mib(machine: Machines, tmp_path: Path) -> None:
    found = machine(8)
    server = ModelServer()
    with serve(server) as url:
        joined(url, tmp_path / "state", found.environment())
        node = subprocess.Popen(
            running(tmp_path / "state"), cwd=ROOT, env=found.environment(), stderr=subprocess.PIPE
        )
        until(lambda: server.seq >= 4)
        status = Path(f"/proc/{node.pid}/status")
        if not status.exists():
            pytest.skip("no /proc here to read the resident memory from")
        resident = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
        node.send_signal(signal.SIGTERM)
        ended(node)
    assert resident is not None
    assert int(resident[1]) <= 48 * 1024


def test_a_connection_the_server_closed_is_opened_again_without_a_failure() -> None:
    server = ModelServer(public_key=bytes(32))
    with serve(server, hangs_up=True) as url:
        transport = HttpTransport(url)
        for _ in range(3):
            answer = transport.request("GET", f"/v1/nodes/{NODE}/usage/head", {}, None)
            assert answer.status == 200
            time.sleep(0.05)
    with pytest.raises(Unreachable):
        transport.request("GET", f"/v1/nodes/{NODE}/usage/head", {}, None)


def test_the_nodes_key_is_never_sent_in_the_clear_by_accident() -> None:
    HttpTransport("http://127.0.0.1:8080")
    HttpTransport("https://tallystick.example/base")
    HttpTransport("http://10.0.0.5:8080", allow_http=True)
    for url in ("http://10.0.0.5:8080", "ftp://tallystick.example", "tallystick.example"):
        with pytest.raises(UrlRefused):
            HttpTransport(url)


def test_a_key_file_others_can_read_or_of_wrong_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"
    key = make_key(path)
    assert load_key(path) == key
    with pytest.raises(FileExistsError):
        make_key(path)
    assert StateFolder(tmp_path).signing_key_or_new() == key
    path.chmod(0o644)
    with pytest.raises(KeyUnreadable, match="chmod 600"):
        load_key(path)
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(KeyUnreadable, match="5 bytes"):
        load_key(path)
