"""The unmodified package pyzes on a scripted library: what Intel's GPUs tell, and known traps."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from node_reporter.clock import Moment
from node_reporter.gpus.seam import Health, Reading
from node_reporter.meter.meter import Meter, Poll
from tests.node_reporter.programs.test_program import ran
from tests.node_reporter.scripted_machines import Probe, Scripted, intel_machine

SECOND_US = 1_000_000
FIRST = "01010101-0101-0101-0101-010101010101"
OPTIONAL = {"energy": "energy_mj", "activity": "busy_ppm", "memory": "mem_used_bytes"}
UNSUPPORTED = 0x78000003


@pytest.fixture
def machine(ze_library: Path, tmp_path: Path) -> Scripted:
    return intel_machine(ze_library, tmp_path / "ze.txt", 1)


@pytest.fixture
def probe(machine: Scripted) -> Generator[Probe, None, None]:
    found = Probe("intel", machine.environment())
    yield found
    found.end()


def work(machine: Scripted, at_us: int, active_us: int) -> None:
    machine.set(gpu__0__engine__1__at_us=at_us, gpu__0__engine__1__active_us=active_us)


def test_the_inventory_tells_what_a_renter_asks_for(probe: Probe) -> None:
    probe("open")
    (told,) = probe("inventory")
    assert {key: value for key, value in told.items() if value is not None} == {
        "id": FIRST,
        "name": "Intel Arc Pro B60",
        "mem_bytes": 25_669_140_480,
        "pci": "00000000:03:00.0",
        "pci_id": "0xe2118086",
        "driver": "fake-level-zero 1.0",
        "serial": "S0",
        "power_limit_mw": 200_000,
        "pcie_gen": 5,
        "pcie_lanes": 8,
        "mig_enabled": False,
        "shape": "whole",
        "share_ppm": 1_000_000,
        "mem_ppm": 1_000_000,
        "busy_source": "counter",
        "energy_scope": "device",
    }


def test_a_reading_is_in_our_units_and_of_the_whole_card(machine: Scripted, probe: Probe) -> None:
    probe("open")
    told = probe("read", FIRST)
    assert told["energy_mj"] == 5_000, "of the card, not of its tile"
    assert told["mem_used_bytes"] == 25_669_140_480 - 20_000_000_000
    assert told["busy_ppm"] is None, "one reading of a counter says nothing"
    work(machine, 3_000_000, 501_000)
    assert probe("read", FIRST)["busy_ppm"] == 250_000


@pytest.mark.parametrize(
    ("at_us", "active_us"),
    [(1_000_000, 1_000), (900_000, 2_000), (2_000_000, 0), (2_000_000, 2**63)],
)
def test_a_busy_counter_that_stands_goes_back_or_leaps_tells_nothing_once(
    machine: Scripted, probe: Probe, at_us: int, active_us: int
) -> None:
    probe("open")
    probe("read", FIRST)
    work(machine, at_us, active_us)
    assert probe("read", FIRST)["busy_ppm"] is None
    work(machine, at_us + 1_000_000, active_us + 1_000_000)
    assert probe("read", FIRST)["busy_ppm"] == 1_000_000


def test_energy_that_underflows_is_a_gap_and_no_terawatts(machine: Scripted, probe: Probe) -> None:
    probe("open")
    meter, found = Meter(SECOND_US), []
    counters = [1_000, 2**64 - 500_000, 40_000_000, 90_000_000]
    for second, counter in enumerate(counters, 1):
        machine.set(gpu__0__power__1__energy_uj=counter)
        at = Moment(second * SECOND_US, second * SECOND_US, second * SECOND_US)
        reading = Reading(**probe("read", FIRST))
        step = meter.feed(Poll(at=at, health=Health.HEALTHY, driver_epoch=0, reading=reading))
        if step is not None:
            found.append((step.energy_mj, step.energy_gaps))
    assert found == [(None, 1), (None, 1), (50_000, 0)]


@pytest.mark.parametrize("call", OPTIONAL)
def test_a_call_that_is_not_there_costs_its_own_value_only(
    machine: Scripted, probe: Probe, call: str
) -> None:
    probe("open")
    probe("read", FIRST)
    machine.set(**{f"err__{call}": UNSUPPORTED})
    work(machine, 2_000_000, 501_000)
    told = probe("read", FIRST)
    assert {name for name in OPTIONAL.values() if told[name] is None} == {OPTIONAL[call]}


def test_what_we_may_not_see_is_denied_and_not_absent(machine: Scripted, probe: Probe) -> None:
    probe("open")
    machine.set(err__energy=0x70010000)
    probe("read", FIRST)
    assert probe("denied", FIRST) == ["energy"]


def test_a_wedged_gpu_is_lost_although_its_counters_answer(machine: Scripted, probe: Probe) -> None:
    probe("open")
    machine.set(gpu__0__reset=1)
    assert probe("read", FIRST)["lost"] == 1
    machine.set(gpu__0__reset=0)
    assert "shape" in probe("read", FIRST)


@pytest.mark.parametrize(
    ("code", "said", "restart"),
    [
        (0x70000001, "lost", None),
        (0x70000006, "lost", None),
        (0x78000020, "lost", None),
        (0x7FFFFFFE, "blind", False),
        (0x70000007, "blind", False),
        (0x78000001, "blind", True),
        (0x70020000, "blind", True),
    ],
)
def test_each_error_ends_in_its_class(
    machine: Scripted, probe: Probe, code: int, said: str, restart: bool | None
) -> None:
    probe("open")
    machine.set(gpu__0__err__ALL=code)
    told = probe("read", FIRST)
    assert told[said] == code
    assert told.get("restart") is restart


def test_a_gpu_that_answers_nothing_at_all_is_blind(machine: Scripted, probe: Probe) -> None:
    probe("open")
    machine.set(gpu__0__err__ALL=UNSUPPORTED)
    assert probe("read", FIRST)["blind"] is None


def test_a_gpu_without_memory_of_its_own_works_in_the_hosts(
    machine: Scripted, probe: Probe
) -> None:
    machine.set(gpu__0__memory__0__location=0)
    probe("open")
    (told,) = probe("inventory")
    assert told["memory"] == "unified"
    assert told["mem_bytes"] > 0


def test_a_device_that_is_no_gpu_is_not_listed(machine: Scripted, probe: Probe) -> None:
    machine.set(gpu__0__type=5)
    probe("open")
    assert probe("inventory") == []


def test_a_machine_without_level_zero_is_told_so(tmp_path: Path) -> None:
    if Path("/usr/lib/x86_64-linux-gnu/libze_loader.so.1").exists():
        pytest.skip("this machine has Level Zero")
    done = ran("doctor", "--backend", "intel", "--json", "--state", str(tmp_path))
    driver = json.loads(done.stdout)["checks"][0]
    assert (done.returncode, driver["state"]) == (1, "failed")
    assert "Level Zero" in driver["said"] or "pyzes" in driver["said"]
