"""What `tallystick run` sends and takes back, without a server: folders, and a node that lies."""

from __future__ import annotations

import base64
import io
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli import run as cli_run
from cli.running import live, options, parcels, priced
from cli.running.folder import scan
from cli.running.parcels import Parcel
from cli.running.waiting import waits_for
from cli.terminal import AnswerIsNo, InputUnusable

MIB = 1_048_576


class Node:
    """Answers as a server would that holds what a node sent: path and content, or a lie."""

    def __init__(
        self, *files: tuple[str, bytes], lie: bytes | None = None, left_out: Any = ()
    ) -> None:
        self.files, self.lie, self.asked, self.left_out = files, lie, 0, left_out

    def ask(self, call: Any) -> Any:
        return call(self)

    def read_lease_results(self, _lease_id: str) -> Any:
        told = [
            {
                "path": path,
                "is_program": False,
                "size": len(body),
                "sha256": [sha256(body).hexdigest()],
            }
            for path, body in self.files
        ]
        return {"is_listed": True, "missing": [], "files": told, "left_out": self.left_out}

    def read_result_pieces(self, _lease_id: str, asked: Any) -> Any:
        key = asked["sha256"][0]
        self.asked += 1
        bodies = {sha256(body).hexdigest(): body for _, body in self.files}
        body = bodies[key] if self.lie is None else self.lie
        others = [bodies[one] for one in asked["sha256"][1:]] if self.lie is None else []
        told = [(key, body), *((sha256(one).hexdigest(), one) for one in others)]
        return {"data": [_told(*one) for one in told]}


def _told(key: str, body: bytes) -> dict[str, str]:
    return {"sha256": key, "body": base64.b64encode(body).decode()}


def fetch(node: Any, root: Path, *asked: str) -> int:
    came = parcels.fetch(node, "lease_1", root, asked, MIB)
    assert not came.lost
    return came.changed


def test_what_comes_back_is_written_where_it_was_asked_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine")
    assert fetch(Node(("out/a", b"new"), ("out/deep/b", b"b")), tmp_path, "out") == 2
    assert (tmp_path / "out" / "deep" / "b").read_bytes() == b"b"
    assert fetch(Node(("out/a", b"new")), tmp_path, "out") == 0, "it is here as it is"
    many = Node(*((f"out/many/{n}", b"%d" % n) for n in range(600)))
    assert fetch(many, tmp_path, "out") == 600
    assert many.asked == 2, "not a request for each small file"
    git = ("out/.git/hooks/post", "out/.GIT/hooks/post")
    for path in ("train.py", "outside", "out/../train.py", "/etc/x", *git):
        with pytest.raises(AnswerIsNo):
            fetch(Node((path, b"theirs")), tmp_path, "out")
    assert (tmp_path / "train.py").read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "train.py"]


def test_no_link_of_the_renters_is_followed_and_no_other_bytes_are_taken(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "out").symlink_to(elsewhere)
    with pytest.raises(AnswerIsNo, match="no folder here"):
        fetch(Node(("out/a", b"x")), root, "out")
    assert list(elsewhere.iterdir()) == []
    (elsewhere / "kept").write_text("kept")
    (root / "model").symlink_to(elsewhere / "kept")
    assert fetch(Node(("model", b"new")), root, "model") == 1
    assert (elsewhere / "kept").read_text() == "kept", "the link was replaced, not followed"
    with pytest.raises(AnswerIsNo, match="not the one that the node named"):
        fetch(Node(("log", b"right"), lie=b"wrong"), root, "log")
    assert not [one for one in root.iterdir() if "log" in one.name], "nothing half is left"
    with pytest.raises(AnswerIsNo, match="size-max"):
        parcels.fetch(Node(("log", b"ab")), "lease_1", root, ("log",), 1)  # type: ignore[arg-type]


def test_what_did_not_come_is_told_with_its_reason_and_links_are_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = {"path": "out/link", "detail": "left out", "is_lost": False}
    gone = {"path": "none", "detail": "there is no such file", "is_lost": True}
    node: Any = Node(("out/a", b"new"), left_out=[link, gone])
    came = parcels.fetch(node, "lease_1", tmp_path, ("out", "none", "other"), MIB)
    assert came == parcels.Came(
        changed=1,
        lost=("none: there is no such file", "other: nothing of it came"),
        left_out=("out/link: left out",),
    )
    assert live.of_results(came, ("out", "none", "other")) == [
        "left out of what came back: out/link: left out",
        "did not come back: none: there is no such file",
        "did not come back: other: nothing of it came",
        "1 new or changed file came back of out, none, other",
    ]
    monkeypatch.setattr(parcels, "RESULT_SECONDS_MAX", 0)
    silent: Any = SimpleNamespace(ask=lambda _call: {"is_listed": False, "missing": []})
    (lost,) = parcels.fetch(silent, "lease_1", tmp_path, ("out",), MIB).lost
    assert lost.startswith("out: the node did not send it; `tallystick lease log lease_1`")


def test_an_empty_folder_is_not_missed_and_an_older_servers_list_is_read(tmp_path: Path) -> None:
    empty = {"path": "out", "detail": "no file comes back of this folder", "is_lost": False}
    node: Any = Node(left_out=[empty])
    came = parcels.fetch(node, "lease_1", tmp_path, ("out",), MIB)
    assert (came.lost, came.left_out) == ((), ("out: no file comes back of this folder",))
    old: Any = Node(("out/a", b"new"))
    told = old.read_lease_results("lease_1")
    del told["left_out"]
    old.read_lease_results = lambda _lease_id: told
    assert parcels.fetch(old, "lease_1", tmp_path, ("out",), MIB) == parcels.Came(changed=1)
    unsure: Any = Node(left_out=[{"path": "out", "detail": "x"}])
    assert parcels.fetch(unsure, "lease_1", tmp_path, ("out",), MIB).lost == ("out: x",)


def test_a_folder_travels_but_for_what_is_ignored_and_what_leads_out(tmp_path: Path) -> None:
    secret = (".env", ".env.local", "keep/.env", ".ssh/id", ".netrc", ".kube/config", "sub/.npmrc")
    for path in ("a.py", ".git/config", "x.log", "data/x.log", *secret):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / ".tallystickignore").write_text("*.log\n!data/x.log\n!keep/.env\n")
    (tmp_path / "same").symlink_to("a.py")
    (tmp_path / "out").symlink_to("/etc/hostname")
    (tmp_path / "folder").symlink_to("keep")
    found = scan(tmp_path, MIB)
    paths = [one.path for one in found.files]
    assert paths == [".tallystickignore", "a.py", "data/x.log", "keep/.env", "same"]
    assert sorted(line.split(":")[0] for line in found.left_out) == ["folder", "out"]


def test_a_whole_home_and_too_much_do_not_travel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big").write_bytes(bytes(2_000))
    with pytest.raises(InputUnusable, match="the largest is big"):
        scan(tmp_path, 1_000)
    for home in (tmp_path, tmp_path / "someone"):
        monkeypatch.setattr(Path, "home", lambda home=home: home)
        with pytest.raises(InputUnusable, match="would travel as a whole"):
            scan(tmp_path, MIB)


def test_usage_is_signed_and_billed_though_results_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node that lies about results takes nobody's signature and bill away."""
    told: list[str] = []

    def fails(*_: Any) -> None:
        raise AnswerIsNo("the node sent '../x', which was not asked for")

    def bills(*_: Any) -> tuple[dict[str, Any], int]:
        told.append("billed")
        return {}, 0

    stubs: dict[str, Any] = {
        "_bring": lambda *_: None,
        "_open": lambda session, _body: session.lease.update(lease_id="lease_1"),
        "_through_interrupts": lambda *_: 0,
        "_read": lambda *_: {"opened_at": "2026-11-29T10:00:00Z"},
        "sign": lambda *_: told.append("signed"),
        "told": bills,
    }
    for name, stub in stubs.items():
        monkeypatch.setattr(cli_run.Session, name, stub)
    monkeypatch.setattr(parcels, "fetch", fails)
    remote: Any = SimpleNamespace(key="key")
    session = cli_run.Session(remote, io.StringIO(), Parcel(results=("out",)))
    body: Any = {}
    code = cli_run._through(session, body, [], Path("key"), 0, as_json=True)
    assert (code, told) == (1, ["signed", "billed"])
    assert "did not come back: the node sent '../x'" in capsys.readouterr().err


def test_variables_come_from_files_and_options_and_no_value_is_repeated(tmp_path: Path) -> None:
    file = tmp_path / "vars"
    file.write_text("# mine\n\nA=1\nexport B=two words\nC=x=y\n")

    def parcel(**given: Any) -> Any:
        told = {"env": [], "env_file": [], "secret": [], "get": [], **given}
        return options.parcel_of(**told, no_files=True, size_max=1)

    told = parcel(env_file=[file], env=["A=9", "OWNERS"], secret=["T=s"], get=["./out/"])
    assert told.variables == {"A": "9", "B": "two words", "C": "x=y"}
    assert (told.secrets, told.results) == ({"T": "s"}, ("out",))
    assert options.granted(["A=9", "OWNERS"]) == ["OWNERS"]
    for given in (
        {"env": ["1A=s3cret"]},
        {"env": ["TALLYSTICK_LEASE_ID=s3cret"]},
        {"secret": ["A=s3cret"], "env": ["A=1"]},
        {"secret": ["NOT_SET_ANYWHERE_HERE"]},
        {"get": ["../up"]},
        {"get": [".git/hooks"]},
        {"env_file": [SimpleNamespace(read_bytes=lambda: b"s3cret without a name")]},
    ):
        with pytest.raises(InputUnusable) as refused:
            parcel(**given)
        assert "s3cret" not in str(refused.value)
    assert options.mounts(["volume_1f:/data:ro"]) == [
        {"volume_id": "volume_1f", "path": "/data", "read_only": True}
    ]
    with pytest.raises(InputUnusable):
        options.mounts(["volume_1f:data"])


def test_what_a_lease_waits_for_is_said_in_words() -> None:
    node = {"node_id": "node_1", "node_state": "active", "has_executor": True}
    assert waits_for({"acknowledged_at": "2026-11-29T10:00:00Z"}, node).startswith(
        "node_1 has taken up the work"
    )
    silent = {**node, "node_state": "offline", "heard_at": "2026-11-29T10:00:00Z"}
    told = waits_for({}, {**silent, "has_executor": False})
    assert told.startswith("node_1 is offline, last heard at 2026-11-29T")
    assert " and it has no executor, the program that starts the work of leases. " in told
    assert "Ctrl-C releases the lease" in told
    taken = waits_for({"acknowledged_at": "2026-11-29T10:00:00Z"}, silent)
    assert taken.startswith("node_1 is offline, last heard at 2026-11-29T"), "it brings nothing now"
    assert waits_for({}, {}).startswith("the executor of the node has not taken up the work")
    assert live.closed_with(101) == "101, the renter ended it before it ran"
    assert (live.closed_with(99_999), live.closed_with(None)) == ("99999", "None")


# --- at which price --------------------------------------------------------------------------


class Market:
    """Answers as a server would with these nodes of one GPU: MiB, credits an hour, and which part
    of it is free.
    """

    def __init__(self, *nodes: tuple[int, int, int]) -> None:
        self.nodes = nodes

    def ask(self, call: Any) -> Any:
        return call(self)

    def list(self, call: Any, limit: int) -> Any:
        return call(self, {"limit": limit})

    def search_offers(self, memory_mib: int = 0, **_: Any) -> Any:
        nodes = sorted(self.nodes, key=lambda node: node[1])
        return {"data": [self._told(*node) for node in nodes if node[0] >= memory_mib]}

    def quote_job(self, asked: Any) -> Any:
        job = asked["job"]
        share, wanted = job["share_ppm"], job.get("constraints", {}).get("memory_mib", 0)
        meeting = [one for one in self.nodes if one[0] * share // 1_000_000 >= wanted]
        meeting.sort(key=lambda node: node[1])
        free = [one for one in meeting if one[2] >= share][:1]
        held = [one for one in meeting if one[2] < share and (not free or one[1] < free[0][1])][:1]
        told: dict[str, Any] = {}
        for one in free:
            told["offered"] = self._told(*one)
        for one in held:
            told["nearest"] = {**self._told(*one), "missing": "room"}
        return told

    @staticmethod
    def _told(memory: int, price: int, _free: int) -> Any:
        units = {"asset": "CREDIT", "units": str(price * 1_000_000)}
        return {"memory_mib": memory, "price_per_gpu_hour": units}


def asked_for(
    market: Any,
    *,
    part: str | None = None,
    memory: int | None = None,
    max_price: str | None = None,
    waits: bool = False,
) -> tuple[int, int]:
    """Share and highest price of a request, in millionths and in credits."""
    job: Any = {"gpu_count": 1, "models": []}
    job["max_price_per_gpu_hour"] = priced.any_price(max_price)
    body: Any = {"job": job}
    priced.ask_for(market, body, part, memory, max_price, waits=waits)
    return job["share_ppm"], int(job["max_price_per_gpu_hour"]["units"]) // 1_000_000


def test_so_much_memory_is_asked_for_where_it_costs_least_an_hour() -> None:
    """A whole free GPU was quoted first, and its memory taken for the share: of a dear one."""
    half_leased = Market((40_000, 2, 500_000), (160_000, 9, 1_000_000))
    assert asked_for(half_leased, memory=10_000) == (250_000, 2)
    large_is_cheaper = Market((40_000, 2, 1_000_000), (160_000, 6, 1_000_000))
    assert asked_for(large_is_cheaper, memory=10_000) == (62_500, 6)
    assert asked_for(large_is_cheaper, memory=10_000, max_price="7") == (62_500, 7)
    full = Market((40_000, 2, 0), (160_000, 9, 100_000))
    assert asked_for(full, memory=10_000, waits=True) == (250_000, 2), "the cheapest that is busy"
    with pytest.raises(InputUnusable, match="these GPUs have 40000"):
        asked_for(Market((40_000, 2, 0)), memory=40_001)


def test_what_is_free_and_dear_is_told_beside_what_is_busy_and_cheap(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without --max-price a free GPU was taken at any price, with --wait-for-gpu too."""
    market = Market((40_000, 2, 0), (40_000, 200, 1_000_000))
    assert asked_for(market) == (1_000_000, 200)
    told = capsys.readouterr().err
    assert "what is free now costs 200.000000 CREDIT an hour" in told
    assert "the cheapest is busy, at 2.000000 CREDIT; --wait-for-gpu waits for it" in told
    assert asked_for(market, waits=True) == (1_000_000, 2)
    assert "waiting for the cheapest: 2.000000 CREDIT an hour" in capsys.readouterr().err
    assert asked_for(market, part="0.5", waits=True) == (500_000, 2)
    assert asked_for(market, max_price="300", waits=True) == (1_000_000, 300), "as its renter says"
    assert asked_for(Market((40_000, 2, 0)), waits=False) == (1_000_000, 2)


def test_a_cheaper_one_that_is_busy_is_waited_for_while_a_dear_one_is_free() -> None:
    """The price leaves nothing then, not the room: each look was one more try for a lease."""
    dimensions = [{"dimension": "free", "nodes_left": 1}, {"dimension": "price", "nodes_left": 0}]
    quoted = {"dimensions": dimensions, "nearest": {"missing": "room"}}
    assert cli_run._lacks_room(quoted)
    assert not cli_run._lacks_room({**quoted, "offered": {}})
    assert not cli_run._lacks_room({**quoted, "nearest": {"missing": "money"}})
