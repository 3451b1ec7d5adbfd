"""What every backend owes the reporter, whoever made the device: one suite for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from domain.metering import report
from node_reporter.clock import Moment
from node_reporter.gpus.backends import BACKENDS
from node_reporter.gpus.seam import Device, Health, Reading
from node_reporter.meter.meter import Meter, Poll
from tests.node_reporter.conftest import FakeMachine
from tests.node_reporter.recorded_mac import MacTools
from tests.node_reporter.scripted_machines import Probe, Scripted, amd_machine, intel_machine

SECOND_US = 1_000_000
NONCE = "5a" * 32
Change = Callable[[], object]


@dataclass
class Rig:
    """The devices of one backend, two where a machine can have two, and what can happen to the
    first of them.
    """

    kind: str
    environment: dict[str, str]
    lose: Change
    blind: Change
    heal: Change
    work: Change  # the first device goes on for a second: its counters move
    go_back: Change  # its energy counter leaps back
    is_one_program: bool = False  # what happens to one device happens to all
    counts_energy: bool = True
    devices: int = 2

    def start(self) -> Probe:
        return Probe(self.kind, self.environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def nvml_rig(fixtures: pytest.FixtureRequest, folder: Path) -> Rig:
    machine = FakeMachine(fixtures.getfixturevalue("fake_nvml"), folder / "nvml.txt")
    machine.gpus(2)
    machine.set(gpu__0__energy_rate_mw="0")
    energy = iter(range(1_000_100, 2_000_000, 100))

    def heal() -> None:
        machine.set(gpu__0__err__ALL="")

    return Rig(
        "nvml",
        machine.environment(),
        lose=lambda: machine.set(gpu__0__err__ALL="15"),
        blind=lambda: machine.set(gpu__0__err__ALL="999"),
        heal=heal,
        work=lambda: machine.set(gpu__0__energy_mj=str(next(energy))),
        go_back=lambda: machine.set(gpu__0__energy_mj="5"),
    )


def scripted_rig(kind: str, machine: Scripted, key: str, lost: int, blind: int, step: int) -> Rig:
    energy = iter(range(2_000_000_000, 10**12, step))
    return Rig(
        kind,
        machine.environment(),
        lose=lambda: machine.set(gpu__0__err__ALL=lost),
        blind=lambda: machine.set(gpu__0__err__ALL=blind),
        heal=lambda: machine.set(gpu__0__err__ALL=None),
        work=lambda: machine.set(**{key: next(energy)}),
        go_back=lambda: machine.set(**{key: 5}),
    )


def amd_rig(fixtures: pytest.FixtureRequest, folder: Path) -> Rig:
    library = fixtures.getfixturevalue("amd_library")
    machine = amd_machine(library, folder / "amd.txt", 2)
    return scripted_rig("amd", machine, "gpu__0__energy", 31, 7, 10_000_000)


def intel_rig(fixtures: pytest.FixtureRequest, folder: Path) -> Rig:
    library = fixtures.getfixturevalue("ze_library")
    machine = intel_machine(library, folder / "ze.txt", 2)
    key = "gpu__0__power__1__energy_uj"
    return scripted_rig("intel", machine, key, 0x70000001, 0x7FFFFFFE, 100_000_000)


def seats_rig(fixtures: pytest.FixtureRequest, folder: Path) -> Rig:
    del fixtures
    check = folder / "check.sh"
    check.write_text("exit 0\n")

    def say(line: str) -> Change:
        return lambda: check.write_text(line)

    nothing = say("exit 0\n")
    return Rig(
        "seats",
        {**_environment(), "SEATS_CHECK": str(check)},
        lose=say("exit 3\n"),
        blind=say("kill -TERM $$\n"),
        heal=nothing,
        work=nothing,
        go_back=nothing,
        is_one_program=True,
        counts_energy=False,
    )


def sim_rig(fixtures: pytest.FixtureRequest, folder: Path) -> Rig:
    del fixtures
    clock = folder / "clock.txt"
    clock.write_text(str(SECOND_US))

    def at(second: int) -> Change:
        return lambda: clock.write_text(str(second * SECOND_US))

    return Rig(
        "sim",
        {**_environment(), "TOLD_CLOCK": str(clock)},
        lose=at(150),
        blind=at(350),
        heal=at(500),
        work=lambda: at(int(clock.read_text()) // SECOND_US + 1)(),
        go_back=at(0),
    )


def apple_rig(fixtures: pytest.FixtureRequest, folder: Path) -> Rig:
    """Recorded answers: a Mac has one GPU."""
    del fixtures
    tools = MacTools(folder / "mac")
    return Rig(
        "apple",
        tools.environment(),
        lose=lambda: tools.tell(is_listed=False),
        blind=lambda: tools.tell(gone=frozenset({"ioreg"})),
        heal=tools.tell,
        work=tools.work,
        go_back=tools.tell,
        counts_energy=False,
        devices=1,
    )


def _environment() -> dict[str, str]:
    return dict(os.environ)


ATTESTING: frozenset[str] = frozenset()
"""Backends that prove what a device is: none does yet, and the first that does is named here."""
RIGS = {
    "nvml": nvml_rig,
    "amd": amd_rig,
    "intel": intel_rig,
    "apple": apple_rig,
    "seats": seats_rig,
    "sim": sim_rig,
}


@pytest.fixture(params=BACKENDS)
def rig(request: pytest.FixtureRequest, folder: Path) -> Rig:
    return RIGS[request.param](request, folder)


@pytest.fixture
def probe(rig: Rig) -> Generator[Probe, None, None]:
    found = rig.start()
    assert found("open") is None
    yield found
    found.end()


def ids(probe: Probe) -> list[str]:
    return [device["id"] for device in probe("inventory")]


def test_every_backend_has_a_rig() -> None:
    assert set(RIGS) == set(BACKENDS)


def test_devices_have_distinct_ids_that_another_process_finds_again(rig: Rig, probe: Probe) -> None:
    found = ids(probe)
    assert len(set(found)) == rig.devices
    assert all(0 < len(one) <= 96 for one in found)
    again = rig.start()
    again("open")
    assert ids(again) == found == ids(probe)
    again.end()


def test_a_device_is_told_in_the_form_that_reports_take(probe: Probe) -> None:
    for told in probe("inventory"):
        device = Device(**told)
        own = device.reported()
        assert own.busy_source in report.BUSY_SOURCES
        assert own.energy_scope in ("device", "board_share", "module", "none")
        assert device.name
        assert device.mem_bytes is not None
        assert probe("look", device.board) == [told]


def test_a_reading_holds_whole_numbers_or_nothing(rig: Rig, probe: Probe) -> None:
    for device_id in ids(probe):
        for _ in range(2):
            rig.work()
            told = probe("read", device_id)
            assert told.pop("shape") == "whole"
            assert all(
                value is None or (type(value) is int and 0 <= value < 2**63)
                for value in told.values()
            ), told
            assert told["busy_ppm"] is None or told["busy_ppm"] <= 1_000_000


def steps(rig: Rig, probe: Probe, changes: list[Change]) -> list[tuple[int | None, int]]:
    """(energy, gaps) of each second that ends after such a change."""
    meter, found = Meter(SECOND_US), []
    device_id = ids(probe)[0]
    for second, change in enumerate([rig.work, *changes], 1):
        change()
        at = Moment(second * SECOND_US, second * SECOND_US, second * SECOND_US)
        reading = Reading(**probe("read", device_id))
        step = meter.feed(Poll(at=at, health=Health.HEALTHY, driver_epoch=0, reading=reading))
        if step is not None:
            found.append((step.energy_mj, step.energy_gaps))
    return found


def test_energy_is_counted_forward_and_a_counter_that_leaps_back_is_a_gap(
    rig: Rig, probe: Probe
) -> None:
    found = steps(rig, probe, [rig.work, rig.work, rig.go_back, rig.work])
    if not rig.counts_energy:
        assert found == [(None, 0)] * 4
        return
    assert all(energy is not None and energy > 0 for energy, _ in found[:2])
    assert found[2] == (None, 1)
    assert all(energy is None or energy >= 0 for energy, _ in found)


def test_a_lost_device_is_lost_and_a_hidden_one_is_blind_and_its_neighbour_is_well(
    rig: Rig, probe: Probe
) -> None:
    first, *others = ids(probe)
    assert len(others) == rig.devices - 1
    for change, said in ((rig.lose, "lost"), (rig.blind, "blind")):
        change()
        answer = _asked(probe, first)
        assert said in answer, answer
        assert answer["why"]
        for other in others:
            neighbour = _asked(probe, other)
            assert (said in neighbour) is rig.is_one_program, neighbour
        rig.heal()
        assert "shape" in _asked(probe, first), "and it comes back by itself"


def _asked(probe: Probe, device_id: str) -> dict[str, Any]:
    """As the reporter asks: look at the board, then read what it is."""
    seen = probe("look", device_id)
    return seen if isinstance(seen, dict) else dict(probe("read", device_id))


def test_closing_twice_is_closing_once_and_it_can_be_opened_again(rig: Rig, probe: Probe) -> None:
    first = ids(probe)
    rig.work()
    probe("read", first[0])
    assert probe("close") is None
    assert probe("close") is None
    assert probe("open") is None
    assert ids(probe) == first
    rig.work()
    assert "shape" in probe("read", first[0])


def test_no_thread_is_left_behind(rig: Rig) -> None:
    probe = rig.start()
    before = probe("threads")
    probe("open")
    for device_id in ids(probe):
        probe("read", device_id)
    probe("faults", 0)
    probe("close")
    assert probe("threads") == before
    probe.end()


def test_faults_are_waited_for_no_longer_than_asked(probe: Probe) -> None:
    assert probe("faults", 0) == []


def test_evidence_is_bound_to_the_nonce_where_a_backend_has_any(rig: Rig, probe: Probe) -> None:
    for device_id in ids(probe):
        evidence = probe("attest", device_id, NONCE)
        assert (evidence is not None) is (rig.kind in ATTESTING)
        assert evidence is None or NONCE in evidence
