"""The executor before a server made for tests: real jobs, a model of what the server answers."""

from __future__ import annotations

import base64
import json
import os
import re
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nacl.public import PrivateKey, SealedBox

from domain.jobs.job import workload_hash
from domain.jobs.plan import Reference
from node_reporter.clock import SystemClock
from node_reporter.executor import executor as executor_module
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.datastores import Datastores
from node_reporter.executor.executor import Allowed, Executor
from node_reporter.executor.job_log import HELD_BYTES_MAX, PIECE_BYTES_MAX, PIECES_MAX, JobLog
from node_reporter.executor.reserved_names import ReservedNames
from node_reporter.executor.runner import Limits
from node_reporter.executor.sandbox import job_user
from node_reporter.executor.state import ExecutorFolder, ExecutorSettings, load
from node_reporter.executor.usage import CGROUPS
from node_reporter.executor.volume_store import VolumeStore
from node_reporter.executor.work import Work, WorkUnreadable, parse
from node_reporter.identity import KeyUnreadable
from node_reporter.reports.client import Response, Unreachable
from tests.node_reporter.confined import MIB, SECONDS_MAX, Ground, ground, needs_walls

pytestmark = needs_walls
NODE, ME, RENTER = "node_12345678", "e0" * 8, "acct_" + "1" * 32
KEY = PrivateKey(b"renter" + b"\0" * 26)


def lease_of(name: str) -> str:
    """A lease of this process: it has one cgroup on a machine, and tests beside each other would
    end each other's work.
    """
    return f"lease_{os.getpid():08x}{name:0>24}"


@dataclass
class Server:
    """What the server would answer; `away`: it cannot be reached, `refuse`: codes of problems."""

    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    stops: dict[str, dict[str, Any]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)  # ready, while their gang is not
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    printed: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    refuse: dict[str, str] = field(default_factory=dict)
    away: bool = False
    free_us: int | None = None  # of each start
    to_erase: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)

    def asks(self, lease: str, script: str, **changes: Any) -> str:
        """A lease whose work is a shell script."""
        lease_id = lease_of(lease)
        work = {
            "kind": "batch",
            "command": ["sh", "-c", script],
            "env_refs": [],
            "image": None,
            **changes.pop("work", {}),
        }
        digest = workload_hash(
            work["image"],
            tuple(work["command"]),
            tuple(work["env_refs"]),
            tuple(Reference(**one) for one in work.get("references", ())),
        )
        self.starts[lease_id] = {
            "lease_id": lease_id,
            "job_id": "job_1",
            "account_id": RENTER,
            "device_ids": ["GPU-1"],
            "share_ppm": 370_000,
            "mem_ppm": 370_000,
            "mode": "memory",
            "memory_mib": 30_176,
            "reserved_at": "2026-11-20T00:00:00Z",
            "work": {"workload_sha256": digest, **work},
            **changes,
        }
        return lease_id

    def opens(self, lease_id: str) -> None:
        """The gang of a lease that waits is billed from now on."""
        self.waiting.remove(lease_id)
        self.running[lease_id] = {"lease_id": lease_id, "executor": ME}

    def closes(self, lease_id: str) -> None:
        self.waiting.discard(lease_id)
        self.running.pop(lease_id, None)
        digest = self.starts[lease_id]["work"]["workload_sha256"]
        self.stops[lease_id] = {"lease_id": lease_id, "workload_sha256": digest}

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.away:
            raise Unreachable("nobody there")
        assert headers["Authorization"] == "Bearer ts_exec_key"
        if method == "GET":
            begun = {*self.running, *self.waiting}
            pending = [one for key, one in self.starts.items() if key not in begun]
            pending = [one for one in pending if one["lease_id"] not in self.stops]
            told = {
                "pending": pending,
                "data": [*self.running.values()],
                "stopping": [*self.stops.values()],
                "to_erase": self.to_erase,
            }
            return Response(status=200, headers={}, body=json.dumps(told).encode())
        return self._post(path, json.loads(body or b"{}"))

    def _post(self, path: str, body: dict[str, Any]) -> Response:
        gone = re.search(r"/volumes/(volume_\w+)/erased$", path)
        if gone is not None:
            self.erased.append(gone[1])
            self.to_erase.remove(gone[1])
            return Response(status=200, headers={}, body=b"{}")
        found = re.search(r"/(lease_\w+)/(\w+)$", path)
        assert found is not None
        lease_id, what = found[1], found[2]
        self.calls.append((lease_id, what, body))
        if what in self.refuse:
            code = self.refuse[what]
            return Response(status=409, headers={}, body=json.dumps({"code": code}).encode())
        answer: dict[str, Any] = {}
        if what == "log":
            pieces = self.printed.setdefault(lease_id, [])
            pieces += [(one["stream"], base64.b64decode(one["body"])) for one in body["data"]]
            answer = {"next_seq": body["seq"] + len(body["data"])}
        if what == "ready":
            self.waiting.add(lease_id)
            if "waits_for_gang" not in self.starts[lease_id]:
                self.opens(lease_id)
        if what in ("ended", "decline"):
            self.closes(lease_id)
        if what == "acknowledge" and body["command"] == "start" and self.free_us is not None:
            answer = {"free_start_us": self.free_us}
        if what == "acknowledge" and body["command"] == "stop":
            self.stops.pop(lease_id)
            self.starts.pop(lease_id, None)
        return Response(status=200, headers={}, body=json.dumps(answer).encode())

    def said(self, lease_id: str, what: str) -> list[dict[str, Any]]:
        return [body for lease, name, body in self.calls if (lease, name) == (lease_id, what)]

    def out(self, lease_id: str, stream: str = "stdout") -> str:
        pieces = self.printed.get(lease_id, [])
        return b"".join(body for name, body in pieces if name == stream).decode()


@dataclass
class World:
    server: Server
    executor: Executor
    ground: Ground

    def until(self, holds: Callable[[], Any], what: str) -> None:
        ends = time.monotonic() + SECONDS_MAX
        while not holds():
            assert time.monotonic() < ends, what
            self.executor.step()
            time.sleep(0.02)

    def until_settled(self, lease_id: str) -> None:
        self.until(lambda: lease_id not in self.server.starts, "its stop is acknowledged")


Make = Callable[..., World]


@pytest.fixture
def world(tmp_path: Path) -> Generator[Make, None, None]:
    """Makes the one executor of a test, and lets go of it afterwards."""
    on, made = ground(tmp_path), []

    def make(
        allowed: Allowed | None = None,
        volumes: VolumeStore | None = None,
        datastores: Datastores | None = None,
        names: ReservedNames | None = None,
        **variables: dict[str, str],
    ) -> World:
        server = Server()
        settings = ExecutorSettings(
            url="", node_id=NODE, executor=ME, executor_key="ts_exec_key", variables=variables
        )
        executor = Executor(
            settings,
            ExecutorClient(NODE, "ts_exec_key", server),
            [on.runner],
            on.jobs,
            SystemClock(),
            user=job_user(None),
            volumes=volumes,
            datastores=datastores,
            names=names,
            allowed=allowed or Allowed(limits=Limits(memory_bytes=256 * MIB, grace_s=1)),
        )
        made.append(executor)
        return World(server, executor, on)

    yield make
    for executor in made:
        executor.close()


@pytest.fixture
def here(world: Make) -> World:
    return world()


def test_a_program_is_told_which_part_of_its_job_it_is(here: World) -> None:
    """R-4: three chunks ran the same command in the same environment."""
    script = "echo ${TALLYSTICK_PART-none} ${TALLYSTICK_PARTS-none} ${TALLYSTICK_ATTEMPT-none}"
    chunk = here.server.asks("a", script, part=2, parts=3, attempt=1)
    here.until_settled(chunk)
    alone = here.server.asks("b", script)
    here.until_settled(alone)
    assert (here.server.out(chunk), here.server.out(alone)) == ("2 3 1\n", "none none none\n")


def test_a_program_finds_the_lease_it_runs_for(here: World) -> None:
    lease = here.server.asks("a", "echo $TALLYSTICK_LEASE_ID; env | grep ^TALLYSTICKL")
    here.until_settled(lease)
    assert here.server.out(lease) == f"{lease}\n"


def test_work_is_acknowledged_started_ready_streamed_ended_and_let_go(here: World) -> None:
    lease = here.server.asks(
        "a", "echo hello; echo $TALLYSTICK_SHARE_PPM $CUDA_VISIBLE_DEVICES; echo oh >&2; exit 3"
    )
    here.until_settled(lease)
    names = [name for _, name, _ in here.server.calls if name != "log"]
    assert names == ["acknowledge", "ready", "ended", "acknowledge"]
    assert here.server.out(lease) == "hello\n370000 GPU-1\n"
    assert here.server.out(lease, "stderr") == "oh\n"
    (ended,) = here.server.said(lease, "ended")
    assert ended == {"executor": ME, "outcome": "exited", "exit_code": 3}
    start, stop = here.server.said(lease, "acknowledge")
    assert (start["command"], stop["command"], start["runner"]) == ("start", "stop", "process")
    assert here.executor.jobs == {}
    assert [path.name for path in here.ground.jobs.iterdir() if path.name[0] != "."] == []


def test_a_command_that_is_not_the_hash_is_never_run(here: World) -> None:
    lease = here.server.asks("a", "echo ran")
    here.server.starts[lease]["work"]["command"][2] = "echo something else"
    here.until(lambda: here.server.said(lease, "decline"), "it declines")
    assert here.server.said(lease, "acknowledge") == []
    assert "not the job's hash" in here.server.out(lease, "note")
    assert here.executor.jobs == {}


def test_what_no_runner_takes_is_declined(here: World) -> None:
    lease = here.server.asks("a", "true", work={"image": "registry.example/a"})
    here.until(lambda: here.server.said(lease, "decline"), "it declines")
    assert "runs no images" in here.server.out(lease, "note")


def test_when_the_lease_is_over_its_work_is_stopped_and_then_acknowledged(here: World) -> None:
    lease = here.server.asks("a", "trap 'echo bye; exit 0' TERM; echo up; sleep 99 & wait")
    here.until(lambda: here.server.out(lease) == "up\n", "it runs")
    here.server.closes(lease)
    here.until_settled(lease)
    assert here.server.out(lease) == "up\nbye\n"
    assert here.server.said(lease, "ended")[0]["exit_code"] == 0


def test_work_that_does_not_stop_is_ended(here: World) -> None:
    lease = here.server.asks("a", "trap '' TERM; echo up; while true; do sleep 1; done")
    here.until(lambda: here.server.out(lease) == "up\n", "it runs")
    here.server.closes(lease)
    here.until_settled(lease)
    assert here.server.said(lease, "ended")[0]["exit_code"] == 137


def test_a_server_that_is_away_lets_no_job_run_longer_than_it_is_paid_for(here: World) -> None:
    lease = here.server.asks("a", "echo up; sleep 99")
    here.until(lambda: here.server.out(lease) == "up\n", "it runs")
    job = here.executor.jobs[lease]
    here.server.running[lease]["until_us"] = time.time_ns() // 1_000 + 300_000
    here.until(lambda: job.until_us is not None, "it knows the end")
    here.server.away = True
    here.until(lambda: job.is_over, "the job ends by itself")
    here.server.away = False
    here.until(lambda: here.server.said(lease, "ended"), "and says so later")


def test_a_job_that_the_server_does_not_open_is_ended(here: World) -> None:
    here.server.refuse["ready"] = "lease_state"
    lease = here.server.asks("a", "sleep 99")
    here.until(lambda: lease in here.executor.jobs, "it starts")
    job = here.executor.jobs[lease]
    here.until(lambda: job.is_over, "it is ended")
    assert here.server.said(lease, "ended") == []


def test_work_that_is_not_here_any_more_is_lost(here: World) -> None:
    lease = here.server.asks("a", "true")
    here.server.running[lease] = {"lease_id": lease, "executor": ME}
    here.until(lambda: here.server.said(lease, "ended"), "it is said to be lost")
    assert here.server.said(lease, "ended")[0]["outcome"] == "lost"


def test_when_the_executor_goes_its_jobs_go_and_are_lost(here: World) -> None:
    lease = here.server.asks("a", "echo up; sleep 99")
    here.until(lambda: here.server.out(lease) == "up\n", "it runs")
    here.executor.close()
    assert here.server.said(lease, "ended")[0]["outcome"] == "lost"


@pytest.mark.parametrize("has_group", [True, False])
def test_the_tree_of_a_job_is_held_to_its_memory_together(
    world: Make, has_group: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a group of the kernel where one can be made, and by the watch over the tree alone."""
    if not has_group:
        monkeypatch.setattr(executor_module, "_group", lambda *_: None)
    here = world(Allowed(limits=Limits(memory_bytes=96 * MIB, grace_s=1)))
    part = "/usr/bin/python3 -c 'x = bytearray(40 * 1024 * 1024); import time; time.sleep(60)'"
    lease = here.server.asks("a", f"{part} & {part} & {part} & wait")
    here.until(lambda: here.server.said(lease, "ended"), "it is ended")
    assert here.server.said(lease, "ended")[0]["outcome"] == "limited"
    assert ("memory" if has_group else "bytes of memory") in here.server.out(lease, "note")


MEMORY_FILE = """
import os, time
for n in range(50):
    os.write(os.memfd_create("nameless"), bytes(3 << 20))
time.sleep(60)
"""
DELETED = """
import os, time
kept = []
for n in range(4):
    kept.append(open(f"f{n}", "wb", buffering=0))
    os.unlink(f"f{n}")
    kept[-1].write(bytes(3 << 20))
time.sleep(60)
"""
DELETED_LIMITS = Limits(memory_bytes=96 * MIB, folder_bytes=4 * MIB, grace_s=1)


@pytest.mark.parametrize("has_group", [True, False])
@pytest.mark.parametrize("program", [MEMORY_FILE, DELETED], ids=["memfd", "deleted"])
def test_s_m5_memory_and_disk_without_a_name_count_like_any_other(
    world: Make, program: str, has_group: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a group of the kernel where one can be made, and where none can."""
    if not has_group:
        monkeypatch.setattr(executor_module, "_group", lambda *_: None)
    here = world(Allowed(limits=DELETED_LIMITS))
    lease = here.server.asks("a", f"exec /usr/bin/python3 -c '{program}'")
    here.until(lambda: here.server.said(lease, "ended"), "it is ended")
    assert here.server.said(lease, "ended")[0]["outcome"] == "limited", here.server.out(lease)
    note = here.server.out(lease, "note")
    assert ("memory" if program is MEMORY_FILE else "bytes of files") in note


def test_s_m5_a_group_of_the_kernel_holds_a_job_before_anybody_looks(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = executor_module._group("check", DELETED_LIMITS)
    if made is None:
        pytest.skip("this machine or this user may make no group (cgroup 1 or 2)")
    made.remove()
    monkeypatch.setattr(Executor, "_check_limits", lambda *_: None)
    here = world(Allowed(limits=DELETED_LIMITS))
    lease = here.server.asks("a", f"exec /usr/bin/python3 -c '{MEMORY_FILE}'")
    here.until(lambda: here.server.said(lease, "ended"), "the kernel ends it")
    (ended,) = here.server.said(lease, "ended")
    assert (ended["outcome"], ended["exit_code"]) == ("limited", 137)
    here.until_settled(lease)
    assert not list(CGROUPS.glob(f"*/tallystick-{lease}")), "and the group is gone"


def test_s_m5_a_folder_that_its_job_closes_is_removed_all_the_same(here: World) -> None:
    """An ordinary user cannot look into it either, so it counts as too much there."""
    lease = here.server.asks("a", "mkdir d; echo SECRET > d/s; chmod 0 d; echo done")
    here.until_settled(lease)
    assert here.server.out(lease) == "done\n"
    assert [path.name for path in here.ground.jobs.iterdir() if path.name[0] != "."] == []


def test_s_m5_what_cannot_be_counted_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk(_folder: Path, onerror: Callable[[OSError], None]) -> list[Any]:
        onerror(PermissionError("closed"))
        return []

    monkeypatch.setattr(os, "walk", walk)
    assert "closed" in executor_module._over_its_folder(tmp_path, DELETED_LIMITS)
    monkeypatch.undo()
    assert executor_module._over_its_folder(tmp_path, DELETED_LIMITS) == ""


def test_s_m5_a_process_that_goes_on_hiding_its_files_ends_its_job() -> None:
    job: Any = SimpleNamespace(unseen={})
    looks = [{7}, {7}, set(), {7}, {7}, {7, 8}]
    told = [executor_module._hides(job, frozenset(one)) for one in looks]
    assert told == [False, False, False, False, False, True]


def test_a_job_is_held_to_its_folder(world: Make) -> None:
    limits = Limits(memory_bytes=96 * MIB, folder_bytes=4 * MIB, grace_s=1)
    here = world(Allowed(limits=limits))
    script = "for n in 1 2 3; do head -c 3000000 /dev/zero > f$n; done; sleep 60"
    lease = here.server.asks("a", script)
    here.until(lambda: here.server.said(lease, "ended"), "it is ended")
    assert here.server.said(lease, "ended")[0]["outcome"] == "limited"
    assert "bytes of files" in here.server.out(lease, "note")


def test_environment_references_are_granted_by_account(world: Make) -> None:
    mine = {RENTER: {"HF_TOKEN": "mine"}, "acct_other": {"OTHER": "theirs"}, "*": {"TZ": "UTC"}}
    here = world(**mine)
    names = ["HF_TOKEN", "OTHER", "TZ", "PATH"]
    lease = here.server.asks("a", "echo $HF_TOKEN/$OTHER/$TZ", work={"env_refs": names})
    here.until_settled(lease)
    assert here.server.out(lease) == "mine//UTC\n"
    assert "OTHER is not known on this node" in here.server.out(lease, "note")
    sent = json.dumps([body for _, name, body in here.server.calls if name != "log"])
    assert "mine" not in sent


def test_a_job_finds_what_it_refers_to_and_another_dataset_is_other_work(here: World) -> None:
    refers = [{"kind": "dataset", "name": "s3://corpus/v3"}]
    named = {"references": refers}
    lease = here.server.asks("a", "echo $TALLYSTICK_REFERENCES", work=named)
    here.until_settled(lease)
    assert json.loads(here.server.out(lease)) == refers
    other = here.server.asks("b", "echo ran", work=named)
    here.server.starts[other]["work"]["references"] = [{**refers[0], "name": "s3://corpus/v4"}]
    here.until(lambda: here.server.said(other, "decline"), "it declines")
    assert "not the job's hash" in here.server.out(other, "note")


def test_an_endpoint_is_told_with_credentials_that_only_the_renter_opens(world: Make) -> None:
    allowed = Allowed(
        network=True,
        host="10.0.0.7",
        ports=range(9_000, 9_002),
        limits=Limits(memory_bytes=256 * MIB, grace_s=1),
    )
    here = world(allowed)
    lease = here.server.asks(
        "a",
        "echo $TALLYSTICK_PORT $TALLYSTICK_TOKEN",
        work={"kind": "endpoint"},
        encryption_key=bytes(KEY.public_key).hex(),
    )
    here.until_settled(lease)
    (ready,) = here.server.said(lease, "ready")
    port, token = here.server.out(lease).split()
    assert ready["endpoint"] == f"http://10.0.0.7:{port}"
    opened = SealedBox(KEY).decrypt(base64.b64decode(ready["credentials"]))
    assert json.loads(opened) == {"token": token}
    assert token not in json.dumps(ready)


@pytest.mark.slow("::test_an_endpoint_is_told_with_credentials_that_only_the_renter_opens")
def test_a_rest_service_is_ready_when_it_answers_and_its_health_is_told(world: Make) -> None:
    """A real server in the sandbox: it answers late, is asked over HTTP, and stops answering."""
    allowed = Allowed(
        network=True,
        host="127.0.0.1",
        ports=range(9_310, 9_330),
        limits=Limits(memory_bytes=256 * MIB, grace_s=1),
    )
    here = world(allowed)
    service = """
import http.server, os, sys, threading, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.headers["Authorization"].removeprefix("Bearer ").encode()
        self.send_response(200); self.end_headers(); self.wfile.write(b"token " + body)
    def log_message(self, *_): pass
while not os.path.exists("go"):
    print("not yet", flush=True); time.sleep(0.1)
server = http.server.HTTPServer(("", int(os.environ["TALLYSTICK_PORT"])), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
while not os.path.exists("hang"): time.sleep(0.05)
server.shutdown(); server.server_close()
time.sleep(600)
"""
    lease = here.server.asks(
        "a",
        "",
        work={"kind": "endpoint", "command": ["python3", "-c", service]},
        encryption_key=bytes(KEY.public_key).hex(),
    )
    here.until(lambda: "not yet" in here.server.out(lease), "it runs")
    assert here.server.said(lease, "ready") == [], "nobody pays for what does not answer"
    folder = here.executor.jobs[lease].folder
    assert folder is not None
    (folder / "work" / "go").touch()
    here.until(lambda: here.server.said(lease, "health"), "it answers")
    (ready,) = here.server.said(lease, "ready")
    token = json.loads(SealedBox(KEY).decrypt(base64.b64decode(ready["credentials"])))["token"]
    request = urllib.request.Request(
        ready["endpoint"], headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.read().decode() == f"token {token}"
    assert here.server.said(lease, "health")[0] == {"well": True, "detail": ""}
    (folder / "work" / "hang").touch()
    here.until(lambda: not here.server.said(lease, "health")[-1]["well"], "it hangs")
    assert "does not answer" in here.server.said(lease, "health")[-1]["detail"]
    here.server.closes(lease)
    here.until_settled(lease)


def test_two_jobs_share_a_device_at_the_same_time(here: World) -> None:
    meet = "echo $TALLYSTICK_SHARE_PPM on $CUDA_VISIBLE_DEVICES; sleep 1; echo done"
    one = here.server.asks("1", meet)
    two = here.server.asks("2", meet, share_ppm=500_000, mem_ppm=500_000)
    both = lambda: all(here.server.out(each) for each in (one, two))  # noqa: E731
    here.until(both, "both print")
    assert not any(job.is_over for job in here.executor.jobs.values())
    here.until_settled(one)
    here.until_settled(two)
    assert here.server.out(one) == "370000 on GPU-1\ndone\n"
    assert here.server.out(two) == "500000 on GPU-1\ndone\n"


def test_a_job_never_waits_for_its_log_and_what_is_left_out_is_counted(here: World) -> None:
    lease = here.server.asks("a", "sleep 0.5; head -c 3000000 /dev/zero; echo end >&2")
    here.until(lambda: lease in here.executor.jobs, "it starts")
    here.server.away = True
    job = here.executor.jobs[lease]
    here.until(lambda: job.is_over, "it ends while nobody listens")
    here.server.away = False
    here.until_settled(lease)
    kept = sum(len(body) for _, body in here.server.printed[lease])
    left_out = sum(body["left_out"] for body in here.server.said(lease, "log"))
    assert kept + left_out == 3_000_004
    assert kept <= HELD_BYTES_MAX + PIECES_MAX * PIECE_BYTES_MAX


def test_a_list_of_another_form_is_not_acted_on() -> None:
    good: dict[str, Any] = {"pending": [], "data": [], "stopping": []}
    assert parse(good) == Work((), (), {})
    several: tuple[Any, ...] = (
        {},
        [],
        {**good, "pending": {}},
        {**good, "pending": [1]},
        {**good, "stopping": [{}]},
        {**good, "data": [{"lease_id": "../../etc"}]},
        {**good, "stopping": [{"lease_id": "lease_" + "1" * 32, "workload_sha256": "zz"}]},
    )
    for broken in several:
        with pytest.raises(WorkUnreadable):
            parse(broken)


def test_the_executors_secrets_are_its_owners_alone(tmp_path: Path) -> None:
    folder = ExecutorFolder(tmp_path / "executor")
    folder.remember(url="http://127.0.0.1:1", node_id=NODE, executor_key="ts_exec_key")
    first = load(folder)
    folder.remember(url="http://127.0.0.1:1", node_id=NODE, executor_key="ts_exec_two")
    assert (load(folder).executor, load(folder).executor_key) == (first.executor, "ts_exec_two")
    assert folder.key.stat().st_mode & 0o077 == 0
    folder.variables.write_text('["*"]\nHF_TOKEN = "x"\n')
    folder.variables.chmod(0o644)
    with pytest.raises(KeyUnreadable):
        load(folder)
    folder.variables.chmod(0o600)
    assert load(folder).granted("anybody", ("HF_TOKEN", "B")) == ({"HF_TOKEN": "x"}, ["B"])
    assert "ts_exec_two" not in folder.settings.read_text()


def test_a_log_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    other, closed = os.pipe()
    log = JobLog(reading, other)
    os.close(closed)
    os.write(writing, b"last words")
    os.close(writing)
    log.wait_read(5)
    got: list[tuple[str, bytes]] = []

    def keep(seq: int, pieces: list[tuple[str, bytes]], _left_out: int) -> int:
        got.extend(pieces)
        return seq + len(pieces)

    assert log.send(keep)
    assert got == [("stdout", b"last words")]
    assert log.is_empty
    for fd in (reading, other):
        os.close(fd)
