"""`doctor`: each thing ok, absent, denied or failed, what to do, and what earned nothing."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from domain.metering import report
from node_reporter.agent import doctor
from node_reporter.agent.checks import Check
from node_reporter.clock import SteppedClock
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.machine.config import Settings, StateFolder
from node_reporter.reports import server_view, spool_view
from node_reporter.reports.client import Response
from node_reporter.reports.server_view import ServerView
from node_reporter.reports.spool import Spool
from tests.node_reporter.conftest import FakeMachine
from tests.node_reporter.model_server import NODE, NODE_KEY
from tests.node_reporter.programs.test_program import Machines, ran
from tests.node_reporter.reporter_scene import KEY, WALL_US, Scene

GOOD: tuple[Check, list[dict[str, Any]]] = (
    Check(name="driver", state="ok", said="1 device(s)"),
    [],
)
JOINED = ServerView(rtt_us=8_000, offset_us=-120, acked_seq=3, phase="active")


def checks_of(result: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in result["checks"]}


def examined(folder: Path, view: ServerView | None = JOINED) -> dict[str, Any]:
    return doctor.examine("sim", GOOD, StateFolder(folder), view)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    StateFolder(tmp_path).signing_key_or_new()
    return tmp_path


def test_a_node_that_is_well_has_nothing_to_do(home: Path) -> None:
    result = examined(home)
    assert result["ok"]
    assert {name for name, check in checks_of(result).items() if check["state"] == "ok"} >= {
        "driver",
        "key",
        "folder",
        "disk",
        "server",
        "joined",
        "clock",
    }


@pytest.mark.parametrize(
    ("view", "name", "state", "todo"),
    [
        (None, "joined", "absent", "tallystick-node join"),
        (replace(JOINED, phase="joining"), "joined", "absent", "compare the fingerprint"),
        (replace(JOINED, phase="confirmed"), "joined", "absent", "operator"),
        (replace(JOINED, phase="maintenance"), "joined", "absent", "activate"),
        (replace(JOINED, quarantined=True), "joined", "failed", "node retire"),
        (ServerView(why="revoked: -", code="revoked"), "server", "failed", "join anew"),
        (ServerView(why="no answer", code="unreachable"), "server", "failed", "network"),
        (replace(JOINED, offset_us=-3_000_000), "clock", "absent", "set-ntp"),
    ],
)
def test_what_the_server_says_comes_with_what_to_do(
    home: Path, view: ServerView | None, name: str, state: str, todo: str
) -> None:
    check = checks_of(examined(home, view))[name]
    assert check["state"] == state
    assert todo in check["todo"]


def test_files_others_can_read_have_failed(home: Path) -> None:
    home.chmod(0o755)
    result = examined(home)
    assert checks_of(result)["folder"]["state"] == "failed"
    assert not result["ok"]
    home.chmod(0o700)
    (home / "signing.key").chmod(0o644)
    assert checks_of(examined(home))["key"]["state"] == "failed"


def test_an_agent_that_works_in_the_folder_is_seen_by_its_lock(home: Path) -> None:
    assert checks_of(examined(home))["agent"]["state"] == "absent"
    with (home / "agent.lock").open("w") as lock:
        assert checks_of(examined(home))["agent"]["said"] == "not running"
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert checks_of(examined(home))["agent"]["said"] == "metering now"


def test_every_failing_rule_of_the_verdict_is_told(home: Path) -> None:
    view = replace(
        JOINED,
        joinable=True,
        sellable=False,
        failing=("nvme_drives", "ethernet_10g"),
        waived=("ethernet_10g",),
    )
    lines = list(doctor.lines(examined(home, view)))
    assert "        joinable: yes, sellable: no" in lines
    assert "        rule not met: nvme_drives" in lines
    assert "        rule not met: ethernet_10g (waived)" in lines


def test_a_report_that_earned_nothing_is_told_with_its_rule_and_its_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    lease = scene.lease(1, 0, WALL_US)
    scene.run(3)
    leased_us = sum(row.len_us for _, name, row in scene.server.rows() if name == lease)
    seq = next(one.seq for one in scene.server.reports() if lease in one.leases)
    leased_in_it = sum(
        row.len_us for row in scene.server.reports()[seq - 1].rows if row.lease is not None
    )
    scene.reporter.spool.flag(seq, "1")
    scene.reporter.close()
    (flagged,) = spool_view.look(tmp_path / "spool.db").flagged
    assert 0 < leased_in_it <= leased_us
    assert (flagged.seq, flagged.us) == (seq, leased_in_it)
    result = examined(tmp_path, replace(JOINED, flagged={seq: "device_elsewhere"}))
    assert result["flagged"][0]["rule"] == "device_elsewhere"
    assert any("earned nothing: device_elsewhere" in line for line in doctor.lines(result))


def test_the_rule_of_a_broken_report_is_named_without_the_server(tmp_path: Path) -> None:
    with_spool = Spool(tmp_path / "spool.db", NODE, KEY)
    with_spool.close()
    import sqlite3

    body = json.dumps({"v": 1, "n": "many"}).encode()
    with sqlite3.connect(tmp_path / "spool.db") as db:
        db.execute(
            "INSERT INTO report(seq, body, signature, hash, prev, flags)"
            " VALUES(7, ?, x'', x'', x'', '1')",
            (body,),
        )
    db.close()
    (flagged,) = spool_view.look(tmp_path / "spool.db").flagged
    with pytest.raises(report.ReportInvalid) as broken:
        report.parse(body)
    assert flagged.rule == f"{broken.value.rule} at {broken.value.pointer}"
    assert flagged.us is None


def test_a_spool_that_is_damaged_is_not_to_be_deleted(home: Path) -> None:
    (home / "spool.db").write_bytes(b"no database at all" * 100)
    check = checks_of(examined(home))["spool"]
    assert check["state"] == "failed"
    assert "do not delete" in check["todo"]


class Answers:
    """A server that says these things, whatever they are."""

    def __init__(self, **documents: Any) -> None:
        self.documents = documents
        self.asked: list[str] = []

    def request(self, method: str, path: str, headers: Any, body: bytes | None) -> Response:
        assert (method, body) == ("GET", None)
        assert headers["Authorization"] == f"Bearer {NODE_KEY}"
        self.asked.append(path)
        name = {"head": "head", "usage": "usage", "today": "today"}.get(path.rpartition("/")[2])
        document = self.documents.get(name or "node", {})
        status = document.get("status", 200) if isinstance(document, dict) else 200
        return Response(status=status, headers={}, body=json.dumps(document).encode())


def seen(**documents: Any) -> ServerView:
    settings = Settings(
        url="", node_id=NODE, node_key=NODE_KEY, signing_key=KEY, spool=Path("spool.db")
    )
    return server_view.look(settings, Answers(**documents), SteppedClock(wall_us=WALL_US))


def test_time_that_earned_nothing_is_read_with_lease_and_rule() -> None:
    row = {"lease_id": "lease_1", "rule": "outside_lease", "microseconds": "2500000", "until": "-"}
    view = seen(usage={"refused": [row], "flagged": [{"seq": 4, "rule": "content"}]}, node={})
    assert [(one.rule, one.us) for one in view.refused] == [("outside_lease", 2_500_000)]
    assert view.flagged == {4: "content"}


@pytest.mark.parametrize("nonsense", [[], "x", {"usage": 1}, {"flagged": 3, "refused": [1, {}]}])
def test_a_server_that_talks_nonsense_is_listened_to_calmly(nonsense: Any) -> None:
    told = {"verdict": nonsense, "phase": nonsense, "status": 200}
    view = seen(usage=nonsense, today=nonsense, node=told, head=nonsense)
    assert (view.today, view.joinable) == (None, None)
    evil = seen(node={"status": 403, "code": "revoked", "detail": "\x1b[2J" * 100})
    assert (evil.code, "\x1b" in evil.why) == ("revoked", False)


def test_what_the_driver_does_not_show_us_is_denied_and_not_absent(
    machine: Machines, tmp_path: Path
) -> None:
    found: FakeMachine = machine(1)
    found.set(gpu__0__err__nvmlDeviceGetTotalEnergyConsumption="4")
    done = ran("doctor", "--state", str(tmp_path), "--json", environment=found.environment())
    values = json.loads(done.stdout)["devices"][0]["values"]
    assert (values["energy_mj"], values["mem_used_bytes"]) == ("denied", "ok")


@pytest.mark.parametrize(
    ("code", "todo"),
    [("9", "modprobe nvidia"), ("18", "restart the machine"), ("999", "daemon-reload")],
)
def test_a_driver_that_does_not_load_says_what_to_do(
    machine: Machines, tmp_path: Path, code: str, todo: str
) -> None:
    found = machine(1)
    found.set(init_error=code)
    done = ran("doctor", "--state", str(tmp_path), "--json", environment=found.environment())
    assert done.returncode == 1
    driver = checks_of(json.loads(done.stdout))["driver"]
    assert (driver["state"], todo in driver["todo"]) == ("failed", True)


def test_looking_changes_nothing(home: Path) -> None:
    scene_files = sorted(home.iterdir())
    backend = SimulatedGpus(SteppedClock(wall_us=WALL_US))
    doctor.examine("sim", doctor.probe(backend), StateFolder(home), None)
    assert sorted(home.iterdir()) == scene_files
