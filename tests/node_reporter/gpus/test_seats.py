"""Seats of a licence on a machine without a GPU: they are there while the software answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from node_reporter.gpus.seam import DeviceLost, MonitorBlind, Reading
from node_reporter.gpus.seats import LicenceSeats
from node_reporter.machine import inventory
from tests.node_reporter.model_server import ModelServer, serve
from tests.node_reporter.programs.test_program import ran

LICENCE = "lic_bolt"
SEATS = (
    "--backend",
    "seats",
    "--seats",
    "2",
    "--seats-licence",
    LICENCE,
    "--seats-model",
    "Bolt",
    "--seats-vendor",
    "thirdai",
    "--seats-check",
)


class Scene:
    """Two seats whose check counts its calls and ends as the test says."""

    def __init__(self, folder: Path) -> None:
        self.script, self.calls = folder / "check.sh", folder / "calls"
        self.calls.touch()
        self.says("exit 0")
        self.now_s = 0.0
        self.seats = LicenceSeats(
            LICENCE,
            2,
            model="Bolt",
            maker="thirdai",
            check=("sh", str(self.script)),
            now_s=lambda: self.now_s,
        )
        self.seats.open()

    def says(self, line: str) -> None:
        self.script.write_text(f"echo >> {self.calls}\n{line}\n")

    def asked(self) -> int:
        return len(self.calls.read_text())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_seats_are_devices_of_the_licence_without_memory(scene: Scene) -> None:
    told = inventory.specs(scene.seats.inventory(), scene.seats.vendor)["devices"]
    assert [
        (one["device_id"], one["kind"], one["vendor"], one["model"], one["memory_mib"])
        for one in told
    ] == [
        (f"{LICENCE}:1", "seat", "thirdai", "Bolt", 0),
        (f"{LICENCE}:2", "seat", "thirdai", "Bolt", 0),
    ]


def test_one_check_a_second_speaks_for_all_seats(scene: Scene) -> None:
    assert scene.seats.read(f"{LICENCE}:1") == scene.seats.read(f"{LICENCE}:2") == Reading()
    assert scene.asked() == 1
    scene.now_s = 1.0
    scene.seats.read(f"{LICENCE}:1")
    assert scene.asked() == 2


def test_software_that_does_not_answer_is_unavailable(scene: Scene) -> None:
    scene.says("exit 3")
    for seat in (1, 2):
        with pytest.raises(DeviceLost) as lost:
            scene.seats.read(f"{LICENCE}:{seat}")
        assert lost.value.code == 3
    assert scene.asked() == 1


@pytest.mark.parametrize("line", ["kill -TERM $$", "exec sleep 60"])
def test_a_check_that_does_not_end_by_itself_is_blind(
    scene: Scene, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node_reporter.gpus.seats.CHECK_S", 0.3)
    scene.says(line)
    with pytest.raises(MonitorBlind):
        scene.seats.read(f"{LICENCE}:1")


def test_a_check_that_is_not_there_is_blind() -> None:
    seats = LicenceSeats(LICENCE, 1, model="Bolt", maker="thirdai", check=("/nowhere/check",))
    seats.open()
    with pytest.raises(MonitorBlind, match="cannot be started"):
        seats.read(f"{LICENCE}:1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--backend", "seats"), "--seats-licence, --seats-model"),
        ((*SEATS, "true", "--seats-licence", "bolt"), "no licence's id"),
        ((*SEATS, "'"), "--seats-check"),
    ],
)
def test_seats_that_are_not_described_are_refused(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    done = ran("doctor", "--state", str(tmp_path), *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_machine_without_a_gpu_joins_and_meters_its_seats(tmp_path: Path) -> None:
    server, state = ModelServer(), str(tmp_path / "node")
    with serve(server) as url:
        joining = ran("join", url, "7Q4K9XWD", "--state", state, *SEATS, "true")
        assert joining.returncode == 0, joining.stderr
        running = ran(
            "run",
            "--state",
            state,
            "--seconds",
            "3",
            "--interval",
            "1",
            "--tick",
            "100",
            *SEATS,
            "true",
        )
    assert running.returncode == 0, running.stderr
    rows = server.rows()
    assert {device for device, _, _ in rows} == {f"{LICENCE}:1", f"{LICENCE}:2"}
    assert sum(row.available_us for _, _, row in rows) > 2 * 1_000_000
    assert {(row.busy_us, row.energy_mj, row.mem_byte_s) for _, _, row in rows} == {
        (None, None, None)
    }
    told = [event.data for one in server.reports() for event in one.events]
    assert any(data.get("backend") == "seats" for data in told)
