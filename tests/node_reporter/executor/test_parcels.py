"""A renter's folder, variables and results at the executor: real jobs, and a server that lies."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from nacl.public import PrivateKey, SealedBox

from domain.jobs import workspace as rules
from domain.jobs.workspace import PIECE_BYTES, File, Workspace
from node_reporter.clock import SystemClock
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.executor import Allowed, Executor
from node_reporter.executor.parcels.bringing import Bringing, give, make_files, opened
from node_reporter.executor.parcels.returning import LeftOut, told
from node_reporter.executor.runner import Limits, NotStarted
from node_reporter.executor.sandbox import JobUser, TrustedRunner, job_user
from node_reporter.executor.state import ExecutorSettings
from node_reporter.reports.client import Response, Unreachable
from tests.node_reporter.confined import MIB, ground, needs_walls
from tests.node_reporter.executor.test_executor import ME, NODE, Server, World

pytestmark = needs_walls
KEY = PrivateKey(b"executor" + b"\0" * 24)
LONG = os.urandom(PIECE_BYTES + 1)


def pieces(body: bytes) -> list[bytes]:
    return [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]


@dataclass
class Files(Server):
    """The server of a test, with one workspace. `lies`: what it answers for a piece instead."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    workspace: Workspace = field(default_factory=lambda: Workspace(salt="5a" * 16))
    sealed: str | None = None
    lies: dict[str, bytes] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    refuses: bool = False
    is_old: bool = False
    returned: dict[str, bytes] = field(default_factory=dict)
    away_for: int = 0

    def holds(self, *files: tuple[str, bytes], **changes: Any) -> None:
        told = []
        for path, body in files:
            keys = [sha256(one).hexdigest() for one in pieces(body)]
            self.bodies |= dict(zip(keys, pieces(body), strict=True))
            told.append(File(path, path.endswith(".sh"), len(body), tuple(keys)))
        self.workspace = replace(self.workspace, files=tuple(told), **changes)

    def asks_with(self, lease: str, script: str) -> str:
        digest = rules.digest(self.workspace)
        references = [{"kind": "workspace", "name": digest}]
        return self.asks(lease, script, work={"references": references})

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        told = json.loads(body or b"{}")
        if path.endswith("/workspace"):
            if self.away_for:
                self.away_for -= 1
                raise Unreachable("away")
            found = {"workspace": rules.document(self.workspace), "sealed": self.sealed}
            return _answer(found)
        if path.endswith("/workspace/pieces"):
            known = {**self.bodies, **self.lies}
            data = [(key, known[key]) for key in told["sha256"] if key in known][:1]
            return _answer({"data": [_piece(*one) for one in data], "unknown": []})
        if path.endswith("/results"):
            if self.is_old and "left_out" in told:
                body = json.dumps({"code": "invalid", "detail": "#/left_out: extra"}).encode()
                return Response(status=422, headers={}, body=body)
            self.results, self.left_out = told["files"], told.get("left_out", [])
            if self.refuses and self.results:
                body = json.dumps({"code": "workspace_too_large", "detail": "no room"}).encode()
                return Response(status=413, headers={}, body=body)
            return _answer({"missing": [key for one in self.results for key in one["sha256"]]})
        if path.endswith("/results/pieces"):
            assert len(told["data"]) <= rules.PIECES_MAX
            bodies = [base64.b64decode(one) for one in told["data"]]
            self.returned |= {sha256(one).hexdigest(): one for one in bodies}
            return _answer({"kept": len(bodies)})
        return super().request(method, path, headers, body)


def _answer(told: dict[str, Any]) -> Response:
    return Response(status=200, headers={}, body=json.dumps(told).encode())


def _piece(key: str, body: bytes) -> dict[str, str]:
    return {"sha256": key, "body": base64.b64encode(body).decode()}


@pytest.fixture
def world(tmp_path: Path) -> Any:
    on, server = ground(tmp_path), Files()
    settings = ExecutorSettings(
        url="",
        node_id=NODE,
        executor=ME,
        executor_key="ts_exec_key",
        variables={},
        sealing_key=bytes(KEY),
    )
    executor = Executor(
        settings,
        ExecutorClient(NODE, "ts_exec_key", server),
        [on.runner],
        on.jobs,
        SystemClock(),
        user=job_user(None),
        allowed=Allowed(limits=Limits(memory_bytes=256 * MIB, folder_bytes=8 * MIB, grace_s=1)),
    )
    yield World(server, executor, on)
    executor.close()
    assert not list(on.jobs.glob(".incoming*"))


def sealed(lease_id: str, **variables: str) -> str:
    inside = json.dumps({"lease_id": lease_id, "variables": variables}).encode()
    return base64.b64encode(SealedBox(KEY.public_key).encrypt(inside)).decode()


def test_the_folder_is_there_as_it_was_sent_and_the_job_may_change_it(world: World) -> None:
    server: Any = world.server
    server.holds(("a/b.txt", b"hello\n"), ("long", LONG), ("go.sh", b"echo went\n"), ("empty", b""))
    lease = server.asks_with(
        "a",
        "cat a/b.txt; sha256sum < long; sh ./go.sh; echo more >> empty; ls -l go.sh; stat -c %u .",
    )
    server.away_for = 1
    world.until_settled(lease)
    out = server.out(lease)
    assert out.startswith(f"hello\n{sha256(LONG).hexdigest()}  -\nwent\n-rwx------"), out
    assert out.endswith("\n1000\n"), "the job's own user has it"


def test_variables_and_secrets_are_set_inside_the_walls_and_nowhere_else(world: World) -> None:
    """LD_PRELOAD of a renter runs nothing of his outside: no program of ours has it."""
    server: Any = world.server
    preload = "./evil.so"
    server.holds(environment=(("LD_PRELOAD", preload), ("PLAIN", "a b\nc")), secrets=("TOKEN",))
    lease = server.asks_with("a", 'echo "$PLAIN|$TOKEN|$LD_PRELOAD"; sleep 60')
    server.sealed = sealed(lease, TOKEN="s3cret")
    world.until(lambda: "\n" in server.out(lease), "it printed")
    assert server.out(lease) == f"a b\nc|s3cret|{preload}\n"
    run: Any = world.executor.jobs[lease].run
    outside = Path(f"/proc/{run.pid}")
    for file in ("environ", "cmdline"):
        assert not any(word in (outside / file).read_bytes() for word in (b"evil", b"s3cret"))
    server.closes(lease)
    world.until_settled(lease)


def test_without_walls_the_launcher_has_none_of_a_renters_variables(tmp_path: Path) -> None:
    on = replace(ground(tmp_path), runner=TrustedRunner(job_user(None)))
    run: Any = on.start("sh", "-c", "echo $X; sleep 60", variables={"X": "renters", "LD_AUDIT": ""})
    try:
        assert os.read(run.outputs[0], 100) == b"renters\n"
        assert b"renters" not in Path(f"/proc/{run.pid}/environ").read_bytes()
    finally:
        run.end()
        while run.poll() is None:
            time.sleep(0.01)
        run.close()


@pytest.mark.parametrize("lie", ["piece", "list", "absent", "large"])
def test_a_folder_that_is_not_the_jobs_is_not_started(world: World, lie: str) -> None:
    server: Any = world.server
    server.holds(("train.py", b"print(1)"), ("big", b"x" * (9 * MIB if lie == "large" else 1)))
    lease = server.asks_with("a", "echo ran")
    key = sha256(b"print(1)").hexdigest()
    if lie == "piece":
        server.lies[key] = b"print(2)"
    elif lie == "list":
        server.workspace = replace(server.workspace, salt="5b" * 16)
    elif lie == "absent":
        server.bodies.clear()
    world.until(lambda: server.said(lease, "decline"), "it is declined")
    note = server.out(lease, "note")
    words = {
        "piece": "not the one asked for",
        "list": "not the one that the job's hash covers",
        "absent": "does not have all of its files",
        "large": "this node gives",
    }
    assert words[lie] in note, note
    assert server.out(lease) == ""
    assert not server.said(lease, "ready"), "nothing is billed"


def test_no_path_of_a_folder_leaves_it(tmp_path: Path) -> None:
    for path in ("../a", "/a", "a/../../b"):
        with pytest.raises(NotStarted, match="below the folder"):
            make_files(tmp_path, (File(path, False, 0, ()),))
    (tmp_path / "link").symlink_to(tmp_path.parent)
    with pytest.raises(OSError, match="File exists"):
        make_files(tmp_path, (File("link", False, 0, ()),))


def test_secrets_for_another_lease_key_or_name_are_not_used() -> None:
    lease, other = "lease_" + "1" * 32, "lease_" + "2" * 32
    assert opened(bytes(KEY), sealed(lease, A="1"), lease, ("A",)) == {"A": "1"}
    for box, names, key in (
        (sealed(other, A="1"), ("A",), KEY),
        (sealed(lease, A="1", B="2"), ("A",), KEY),
        (sealed(lease, A="1"), ("A",), PrivateKey.generate()),
        ("AAAA", ("A",), KEY),
    ):
        with pytest.raises(NotStarted):
            opened(bytes(key), box, lease, names)


def test_only_files_of_the_job_come_back_and_no_link_is_followed(world: World) -> None:
    server: Any = world.server
    server.holds(("kept", b"as it was"), results=("out", "kept", "leak/passwd", "none"))
    script = """
        mkdir -p out/deep; printf weights > out/deep/model; head -c 600000 /dev/zero > out/long
        ln -s /etc/passwd out/link; ln -s /etc leak; mkfifo out/pipe; chmod 700 out/deep/model
        ln -s /etc/passwd "$(printf 'out/\\377\\033')"
        far=out; while [ ${#far} -lt 1100 ]; do far=$far/d; done; mkdir -p $far; echo > $far/f
    """
    lease = server.asks_with("a", script)
    world.until_settled(lease)
    world.until(lambda: not world.executor.jobs, "it came back")
    found = {one["path"]: one for one in server.results}
    assert sorted(found) == ["kept", "out/deep/model", "out/long"]
    assert found["out/deep/model"]["is_program"]
    assert server.returned[found["out/deep/model"]["sha256"][0]] == b"weights"
    assert b"".join(server.returned[key] for key in found["out/long"]["sha256"]) == bytes(600_000)
    note = server.out(lease, "note")
    assert "out/link: left out" in note
    assert "out/pipe: left out" in note
    assert "out/\\udcff\\x1b: left out" in note, "a name that is no text ends no executor"
    assert "left out, it is not a path of at most 1024 bytes" in note
    assert "leak/passwd: there is no such file" in note
    assert not any(b"root:" in body for body in server.returned.values())
    lost = {one["path"]: one["is_lost"] for one in server.left_out}
    assert (lost["out/link"], lost["out/pipe"]) == (False, False), "which never come back"
    assert (lost["leak/passwd"], lost["none"]) == (True, True), "asked back by their names"
    assert [one["is_lost"] for one in server.left_out] == sorted(lost.values(), reverse=True)


def test_what_is_asked_back_and_holds_no_file_is_told_as_what_it_is(world: World) -> None:
    """A folder that is there and empty was told as no such file, and failed a program that
    succeeded; a file that is another's was told as a link, and was not missed.
    """
    server: Any = world.server
    server.holds(results=("empty", "links", "link", "none", "out"))
    script = "mkdir empty links out; ln -s /etc/passwd links/a; ln -s out link; echo x > out/a"
    lease = server.asks_with("a", script + "; echo > ready; sleep 1")
    world.until(lambda: list(world.ground.jobs.glob("**/ready")), "it has made its files")
    (ready,) = world.ground.jobs.glob("**/ready")
    theirs = ready.parent / "out" / "theirs"
    theirs.write_text("of another user")
    world.until_settled(lease)
    world.until(lambda: not world.executor.jobs, "it came back")
    assert [one["path"] for one in server.results] == ["out/a"]
    told = {one["path"]: (one["is_lost"], one["detail"]) for one in server.left_out}
    assert len(told) == len(server.left_out), "each once"
    folder = (False, "no file comes back of this folder")
    assert (told["empty"], told["links"]) == (folder, folder)
    no_file = "left out, it is no file but a link, a pipe or a device"
    assert (told["links/a"], told["link"]) == ((False, no_file), (True, no_file))
    assert told["none"] == (True, "there is no such file")
    assert told["out/theirs"] == (True, "left out, it is not the work's own")


def test_a_server_of_the_version_before_gets_the_files_alone(world: World) -> None:
    """It knows no list of what is left out: one link lost all results."""
    server: Any = world.server
    server.is_old = True
    server.holds(results=("out",))
    lease = server.asks_with("a", "mkdir out; echo x > out/a; ln -s /etc/passwd out/link")
    world.until_settled(lease)
    world.until(lambda: not world.executor.jobs, "it came back")
    assert [one["path"] for one in server.results] == ["out/a"]
    assert len(server.returned) == 1
    assert "out/link: left out" in server.out(lease, "note"), "it is told there"


def test_what_the_server_refuses_is_told_to_the_renter_in_its_place(world: World) -> None:
    server: Any = world.server
    server.refuses = True
    server.holds(results=("out", "log"))
    lease = server.asks_with("a", "mkdir out; echo x > out/a; echo y > log")
    world.until_settled(lease)
    world.until(lambda: not world.executor.jobs, "it is over")
    assert (server.results, server.returned) == ([], {})
    assert [(one["path"], one["detail"]) for one in server.left_out] == [
        ("out", "does not come back: no room"),
        ("log", "does not come back: no room"),
    ]
    assert "results do not come back: no room" in server.out(lease, "note")


def test_of_much_that_is_left_out_the_first_and_the_number_are_told() -> None:
    links = [LeftOut(f"out/{number}", "left out", is_lost=False) for number in range(30)]
    found = told([*links, LeftOut("none\x1b", "there is no such file")])
    assert len(found) == rules.LEFT_OUT_MAX
    assert found[0] == {"path": "none\\x1b", "detail": "there is no such file", "is_lost": True}
    assert found[-1] == {"path": "12 more", "detail": "left out", "is_lost": False}
    empty = LeftOut("empty", "no file comes back of this folder", is_lost=False)
    assert told([*links, empty], ("empty",))[0]["path"] == "empty", "what was asked goes first"


def test_files_of_holes_are_not_read_for_hours(world: World) -> None:
    server: Any = world.server
    server.holds(results=("out",))
    lease = server.asks_with("a", "mkdir out; truncate -s 5M out/a out/b")
    world.until_settled(lease)
    world.until(lambda: not world.executor.jobs, "it is over")
    assert "results do not come back: more than 8388608 bytes" in server.out(lease, "note")
    assert server.results == []
    (left_out,) = server.left_out
    assert left_out["detail"] == "does not come back: more than 8388608 bytes"


def test_the_folder_itself_is_given_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it is ours nobody exchanges a file in it for a link before that is given."""
    given: list[str] = []
    folder = tmp_path / "folder"
    monkeypatch.setattr(os, "lchown", lambda path, *_: given.append(os.path.relpath(path, folder)))
    folder.mkdir()
    make_files(folder, tuple(File(path, False, 0, ()) for path in ("a", "b/c/d")))
    give(folder, JobUser(1_000, 1_000))
    assert given[-1] == "."
    assert sorted(given) == [".", "a", "b", "b/c", "b/c/d"]


def test_folders_count_as_files_do(tmp_path: Path) -> None:
    server = Files()
    server.holds(("a/b/c", b"x"))
    bringing = Bringing(
        lambda: nullcontext(ExecutorClient(NODE, "ts_exec_key", server)),
        "lease_1",
        rules.digest(server.workspace),
        tmp_path,
        Limits(folder_entries=2),
        None,
        None,
    )
    bringing.start()
    bringing.stop()
    assert bringing.brought is None
    assert "more than 2 files" in bringing.error


def test_a_lease_that_is_over_while_its_files_come_leaves_nothing(world: World) -> None:
    server: Any = world.server
    server.holds(("a", b"1"), secrets=("TOKEN",))
    lease = server.asks_with("a", "echo ran")
    world.until(lambda: lease in world.executor.jobs, "it is fetched")
    server.closes(lease)
    world.until_settled(lease)
    assert lease not in world.executor.jobs
    assert server.out(lease) == ""
    assert not server.said(lease, "decline"), "there is nothing to give back"
