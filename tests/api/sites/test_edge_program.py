"""An edge device runs what is deployed to it, before the real API. Docker is stood in for by a
client that really runs the command on this machine; none of this ever ran on a Jetson. Row C-34.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node_reporter.__main__ import main
from node_reporter.executor import edge_device as edge_module
from node_reporter.executor.datastores import Datastores, StoreSettings
from node_reporter.executor.edge_device import (
    Containers,
    EdgeClient,
    EdgeDevice,
    board_arguments,
    parse_work,
)
from node_reporter.executor.work import WorkUnreadable
from node_reporter.reports.client import Response, Unreachable
from tests.node_reporter import stand_in_docker
from tests.scenes.holdings import added_edge_device, datastore, device_config, with_plan_team
from tests.scenes.server import Scene

BOOT, NEXT_BOOT = "3f0c9a52-7d1e", "9b57c1aa-11e0"
SECRET = "s3cret-of-the-camera"
SECONDS_MAX = 30.0
STAYS = ["sh", "-c", 'echo "began $THRESHOLD"; exec sleep 600']


@dataclass
class InServer:
    """The scene's server, in this process."""

    scene: Scene
    away: bool = False
    proxy: Response | None = None  # what stands before it answers instead

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.away:
            raise Unreachable("nobody there")
        if self.proxy is not None:
            return self.proxy
        told = self.scene.http.request(method, path, headers=dict(headers), content=body)
        return Response(status=told.status_code, headers={}, body=told.content)


@dataclass
class Board:
    """A device with its docker client; `boot`: the program begins, in this boot."""

    scene: Scene
    device_id: str
    region_id: str
    folder: Path
    server: InServer
    said: list[str]

    def boot(self, boot_id: str = BOOT) -> EdgeDevice:
        assert self.scene.owner.key is not None
        return EdgeDevice(
            device_id=self.device_id,
            boot_id=boot_id,
            client=EdgeClient(self.device_id, self.scene.owner.key, self.server),
            containers=Containers(self.device_id, {"PATH": f"{self.folder}:{os.environ['PATH']}"}),
            models=self.folder / "models",
            tell=self.said.append,
        )

    def deploys(self, revision: int, command: list[str], **work: Any) -> None:
        body = {**device_config(), "revision": revision}
        body["work"] = {**body["work"], "command": command, **work}
        self.scene.owner.made(f"/v1/regions/{self.region_id}/device-configs", body)
        self.deploys_again()

    def deploys_again(self) -> None:
        self.scene.owner.made(f"/v1/edge-devices/{self.device_id}/deploy", {"config": "counter"})

    @property
    def shown(self) -> dict[str, Any]:
        listed = self.scene.owner.read("/v1/edge-devices", limit=100)["data"]
        return next(dict(one) for one in listed if one["device_id"] == self.device_id)

    @property
    def printed(self) -> list[str]:
        path = self.folder / "printed"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def runs(self) -> list[list[str]]:
        """What `docker run` was asked, each time."""
        lines = (self.folder / "asked").read_text().splitlines()
        return [words for words in map(json.loads, lines) if words[0] == "run"]


def until(device: EdgeDevice, holds: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < ends, what
        device.step()
        time.sleep(0.02)


@pytest.fixture
def board(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Board, None, None]:
    source = Path(stand_in_docker.__file__).read_text()
    (tmp_path / "docker").write_text(f"#!{sys.executable}\n{source}")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    device_id = added_edge_device(scene)
    listed = scene.owner.read("/v1/edge-devices", limit=100)["data"]
    region_id = next(one["region_id"] for one in listed if one["device_id"] == device_id)
    board = Board(scene, device_id, region_id, tmp_path, InServer(scene), [])
    yield board
    Containers(device_id, os.environ).remove()


def test_c_34_what_is_deployed_begins_and_begins_again_after_a_reboot_and_not_when_it_exits(
    board: Board,
) -> None:
    device = board.boot()
    device.step()
    assert board.shown["state"] == "active", "it reported by itself"
    board.deploys(1, STAYS, environment=[{"name": "THRESHOLD", "value": "70"}])
    until(device, lambda: board.printed == ["began 70"], "it begins")
    until(device, lambda: board.shown["inference"] == "running", "it says so")
    began_at = board.shown["inference_at"]
    board.scene.clock.advance(60_000_000)  # type: ignore[attr-defined]
    board.deploys(2, ["sh", "-c", "echo short; exit 3"])
    until(device, lambda: board.shown["inference"] == "exited", "it ends, and says so")
    assert (board.shown["exit_code"], board.shown["revision"]) == (3, 2)
    assert board.shown["inference_at"] > began_at
    again = board.boot()
    for one in (device, device, again, again):
        one.step()
    assert board.printed == ["began 70", "short"], "it does not begin again in this boot"
    rebooted = board.boot(NEXT_BOOT)
    until(rebooted, lambda: board.printed == ["began 70", "short", "short"], "a reboot begins it")
    until(rebooted, lambda: board.shown["inference"] == "exited", "it ends again")
    board.deploys_again()
    until(rebooted, lambda: len(board.printed) == 4, "what is deployed again begins again")


def test_c_34_what_runs_goes_on_without_the_program_and_without_the_server(board: Board) -> None:
    board.boot().step()
    board.deploys(1, STAYS)
    first = board.boot()
    until(first, lambda: board.printed, "it begins")
    later = board.boot()
    board.server.away = True
    later.step()
    board.server.away = False
    until(later, lambda: board.shown["inference"] == "running", "it is found again")
    assert len(board.runs) == 1
    assert len(board.printed) == 1
    # Ended while nobody looked, it is told as it ended.
    stand_in = json.loads((board.folder / "container.json").read_text())["pid"]
    os.kill(stand_in, 9)
    (board.folder / "code").write_text("137")
    until(board.boot(), lambda: board.shown["inference"] == "exited", "its end is told")
    assert board.shown["exit_code"] == 137
    assert len(board.runs) == 1


def test_c_34_a_device_that_is_removed_runs_nothing(board: Board) -> None:
    device = board.boot()
    device.step()
    board.deploys(1, STAYS)
    until(device, lambda: board.printed, "it begins")
    board.scene.owner.made(f"/v1/edge-devices/{board.device_id}/remove")
    until(device, lambda: (board.folder / "code").exists(), "it is stopped")
    assert "nothing is to run: it is stopped" in board.said
    assert len(board.runs) == 1


@pytest.mark.parametrize("body", [b"<h1>404</h1>", b'{"code": "datastore_unknown"}', b"[]"])
def test_c_34_what_runs_goes_on_though_something_was_not_found(board: Board, body: bytes) -> None:
    """A proxy with no server behind it answered 404: the model was stopped, was told as exited, and
    began again in no boot that was.
    """
    device = board.boot()
    device.step()
    board.deploys(1, STAYS)
    until(device, lambda: board.printed, "it begins")
    board.server.proxy = Response(status=404, headers={}, body=body)
    device.step()
    assert not (board.folder / "code").exists(), "it is not stopped"
    board.server.proxy = None
    device.step()
    assert board.shown["inference"] == "running"
    assert len(board.runs) == 1


def test_c_34_a_container_that_was_made_and_has_not_begun_begins(board: Board) -> None:
    """The program was ended while Docker made it: it was told as exited with 0."""
    device = board.boot()
    device.step()
    board.deploys(1, STAYS)
    until(device, lambda: board.printed, "it begins")
    (board.folder / "created").touch()
    again = board.boot()
    until(again, lambda: len(board.printed) == 2, "it begins")
    assert board.shown["inference"] == "running"


def test_c_34_a_configuration_tells_the_docker_client_nothing(board: Board) -> None:
    """With LD_PRELOAD, a file of the image was run on the machine itself, as root."""
    device = board.boot()
    device.step()
    values = {"DOCKER_CERT_PATH": "/x", "HTTPS_PROXY": "http://x", "PEM": "one\ntwo", "EMPTY": ""}
    command = ["sh", "-c", 'echo "$DOCKER_CERT_PATH $HTTPS_PROXY $PEM $EMPTY."; exec sleep 600']
    environment = [{"name": name, "value": value} for name, value in values.items()]
    board.deploys(1, command, environment=environment)
    until(device, lambda: len(board.printed) == 2, "it begins")
    assert board.printed == ["/x http://x one", "two ."]
    clients = json.loads((board.folder / "environment").read_text())
    assert set(values) & set(clients) == {"PEM"}
    board.deploys(2, command, environment=[{"name": "LD_PRELOAD", "value": "/x.so:\n"}])
    device.step()
    assert "the variable LD_PRELOAD cannot have several lines" in board.said


def test_c_34_a_model_is_not_read_where_a_link_in_its_code_leads(board: Board) -> None:
    (board.folder / "models/models").mkdir(parents=True)
    (board.folder / "models/models/counter").symlink_to("/")
    device = board.boot()
    device.step()
    board.deploys(1, STAYS)
    device.step()
    assert f"the model models/counter leads out of {board.folder}/models" in board.said
    assert not (board.folder / "container.json").exists()


def test_c_34_an_image_that_cannot_be_had_is_tried_again(board: Board) -> None:
    device = board.boot()
    device.step()
    (board.folder / "fails").write_text("docker: pull access denied\n")
    board.deploys(1, STAYS)
    device.step()
    assert "docker: pull access denied" in board.said
    assert board.shown["inference"] == "pending"
    (board.folder / "fails").unlink()
    until(device, lambda: board.shown["inference"] == "running", "it begins")


def test_c_34_the_container_has_its_model_its_board_and_its_values_by_name(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    camera, tegra = board.folder / "video0", board.folder / "nvmap"
    camera.touch()
    assert board_arguments() == [] or shutil.which("nvidia-container-runtime") is not None
    monkeypatch.setattr(edge_module, "VIDEO", (f"{board.folder}/video*",))
    monkeypatch.setattr(edge_module, "TEGRA", str(tegra))
    assert board_arguments() == ["--device", str(camera)]
    tegra.touch()
    (board.folder / "models/models/counter").mkdir(parents=True)
    device = board.boot()
    device.step()
    values = [{"name": "PIN", "value": SECRET}, {"name": "PATH", "value": "/nowhere"}]
    command = ["sh", "-c", 'echo "$PIN" "$TALLYSTICK_REFERENCES"; exec sleep 600']
    board.deploys(1, command, environment=values, keys=["camera/rtsp"], checkpoints=["s3://c"])
    until(device, lambda: board.printed, "it begins")
    pin, _, references = board.printed[0].partition(" ")
    assert pin == SECRET
    assert [(one["kind"], one["name"]) for one in json.loads(references)] == [
        ("model", "models/counter"),
        ("checkpoint", "s3://c"),
        ("key", "camera/rtsp"),
    ]
    (words,) = board.runs
    assert SECRET not in str(words)
    line = " ".join(words)
    for wanted in (
        f"--runtime nvidia --device {camera}",
        f"--volume {board.folder}/models/models/counter:/model:ro --workdir /model",
        "--restart no",
        "--security-opt no-new-privileges",
        "-- counter:1 sh -c",
    ):
        assert wanted in line


def test_c_34_a_datastore_is_mounted_where_the_device_s_owner_allows_it(board: Board) -> None:
    with_plan_team(board.scene)
    path = f"/v1/regions/{board.region_id}/datastores"
    store = {**datastore(), "address": "10.0.0.7", "root_path": "/dir2"}
    added = board.scene.owner.made(path, store)
    device = board.boot()
    device.step()
    board.deploys(1, STAYS, datastore={"datastore_id": added["datastore_id"], "path": "/out"})
    device.step()
    assert "this device mounts no datastores" in board.said
    assert board.shown["inference"] == "pending"
    if os.geteuid() != 0:
        pytest.skip("not root: datastores are mounted by root alone")
    exports, mounts = board.folder / "exports", board.folder / "state" / "mounts"
    (exports / "dir2/out").mkdir(parents=True)
    device.stores = Datastores(StoreSettings(folders={"10.0.0.7": exports}), mounts)
    device.stores.check()
    until(device, lambda: board.printed, "it begins")
    place = mounts / board.device_id / "0"
    assert f"{place}:/data/output/{store['name']}/out" in board.runs[-1]
    (place / "seen").write_text("x")
    assert (exports / "dir2/out/seen").read_text() == "x"
    board.scene.owner.made(f"/v1/edge-devices/{board.device_id}/remove")
    until(device, lambda: not list(mounts.iterdir()), "it is unmounted")
    assert (exports / "dir2/out/seen").exists()


def test_what_is_no_answer_of_the_server_is_told_and_changes_nothing(board: Board) -> None:
    work = {"image": "a", "model": "m", "command": ["a"], "checkpoints": [], "keys": []}
    good = {"deployment": 1, "work": work, "environment": []}
    parse_work({"run": good})
    wrongs: list[Any] = [{"run": 1}, {"run": {}}, [], {"run": {"deployment": "1"}}]
    wrongs += [{"run": {**good, "environment": [{"name": n, "value": "x"}]}} for n in ("", "A=B")]
    wrongs += [{"run": {**good, "work": {**work, "command": ["\ud800"]}}}]
    for wrong in wrongs:
        with pytest.raises(WorkUnreadable):
            parse_work(wrong)
    assert parse_work({}) is None
    key = EdgeClient(board.device_id, "no-key", board.server)
    device = board.boot()
    device.client = key
    device._is_reported = True
    device.step()
    assert board.said == ["the key is not good here"]


def test_the_program_runs_a_device_and_wants_a_key_that_others_cannot_read(
    board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "edge.key"
    key.write_text("ts_key\n")
    key.chmod(0o644)
    words = ["edge", board.device_id, "--url", "http://127.0.0.1:1", "--key-file", str(key)]
    words += ["--executor-state", str(tmp_path / "state"), "--seconds", "1", "--every", "50"]
    assert main(words) == 2
    assert "can be read by others" in capsys.readouterr().err
    key.chmod(0o600)
    assert main(["edge", "../x", *words[2:]]) == 2
    assert main(words) == 0
    assert "the server cannot be reached" in capsys.readouterr().err
