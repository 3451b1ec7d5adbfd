"""The unmodified package amdsmi on a scripted library: what AMD's GPUs tell, and known traps."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from node_reporter.clock import Moment
from node_reporter.gpus.seam import Device, Health, Reading
from node_reporter.machine import inventory
from node_reporter.meter.meter import Meter, Poll
from tests.node_reporter.programs.test_program import ran
from tests.node_reporter.scripted_machines import Probe, Scripted, amd_machine

SECOND_US = 1_000_000
FIRST = "00000000-0000-1000-8000-0000000000aa"
Machines = Callable[[int], Scripted]
OPTIONAL = {"energy": "energy_mj", "activity": "busy_ppm", "memory": "mem_used_bytes"}


@pytest.fixture
def machines(amd_library: Path, tmp_path: Path) -> Machines:
    return lambda count: amd_machine(amd_library, tmp_path / "amd.txt", count)


@pytest.fixture
def machine(machines: Machines) -> Scripted:
    return machines(1)


@pytest.fixture
def probe(machine: Scripted) -> Generator[Probe, None, None]:
    found = Probe("amd", machine.environment())
    yield found
    found.end()


def seconds(machine: Scripted, probe: Probe, counters: list[int]) -> list[tuple[int | None, int]]:
    """(energy, gaps) of the seconds between readings of these accumulators."""
    meter, found = Meter(SECOND_US), []
    for second, counter in enumerate(counters, 1):
        machine.set(gpu__0__energy=counter)
        at = Moment(second * SECOND_US, second * SECOND_US, second * SECOND_US)
        reading = Reading(**probe("read", FIRST))
        step = meter.feed(Poll(at=at, health=Health.HEALTHY, driver_epoch=0, reading=reading))
        if step is not None:
            found.append((step.energy_mj, step.energy_gaps))
    return found


def test_the_inventory_tells_what_a_renter_asks_for(probe: Probe) -> None:
    probe("open")
    (told,) = probe("inventory")
    assert {key: value for key, value in told.items() if value is not None} == {
        "id": FIRST,
        "name": "AMD Instinct MI300X",
        "mem_bytes": 205_822_885_888,
        "pci": "0000:05:00.0",
        "pci_id": "0x74b51002",
        "driver": "fake-amdsmi 1.0",
        "serial": "0x0000000000001234",
        "vbios": "113-M3000100-103",
        "power_limit_mw": 750_000,
        "pcie_gen": 5,
        "pcie_lanes": 16,
        "mig_enabled": False,
        "shape": "whole",
        "share_ppm": 1_000_000,
        "mem_ppm": 1_000_000,
        "busy_source": "util",
        "energy_scope": "device",
        "connection": "sxm",
    }
    (spec,) = inventory.specs([Device(**told)], "amd")["devices"]
    assert (spec["vendor"], spec["memory_mib"]) == ("amd", 196_288)


def test_a_reading_is_in_our_units(probe: Probe) -> None:
    probe("open")
    told = probe("read", FIRST)
    assert told["energy_mj"] == 1_000_000_000 * 153 // 10_000, "15.3 microjoules a count"
    assert (told["busy_ppm"], told["mem_used_bytes"]) == (500_000, 1_073_741_824)
    assert told["throttle_power_ns"] is None, "firmware ticks are no time"


@pytest.mark.parametrize(
    ("now", "mean", "told_mw"),
    [(310, 305, 310_000), (None, 305, 305_000), (None, None, None), (0, 0, None)],
)
def test_power_is_read_beside_the_counter_for_evidence(
    machine: Scripted, probe: Probe, now: int | None, mean: int | None, told_mw: int | None
) -> None:
    machine.set(gpu__0__power_w=now, gpu__0__mean_power_w=mean)
    probe("open")
    assert probe("read", FIRST)["power_mw"] == told_mw


def test_a_counter_that_stands_still_tells_nothing_and_loses_nothing(
    machine: Scripted, probe: Probe
) -> None:
    probe("open")
    stuck = [10**9, 10**9, 10**9, 10**9 + 30_000_000]
    assert seconds(machine, probe, stuck) == [(None, 0), (None, 0), (459_000, 0)]


def test_a_counter_that_goes_backwards_is_a_gap(machine: Scripted, probe: Probe) -> None:
    probe("open")
    found = seconds(machine, probe, [10**9, 10**9 - 5_000_000, 10**9 + 5_000_000])
    assert found == [(None, 1), (153_000, 0)]


def test_in_a_virtual_machine_without_energy_the_rest_is_told(
    machine: Scripted, probe: Probe
) -> None:
    machine.set(err__energy=2)
    probe("open")
    (told,) = probe("inventory")
    assert told["energy_scope"] == "none"
    reading = probe("read", FIRST)
    assert (reading["energy_mj"], reading["busy_ppm"]) == (None, 500_000)


@pytest.mark.parametrize("call", OPTIONAL)
@pytest.mark.parametrize("code", [2, 3, 40, 55])
def test_a_call_that_is_not_there_costs_its_own_value_only(
    machine: Scripted, probe: Probe, call: str, code: int
) -> None:
    probe("open")
    machine.set(**{f"err__{call}": code})
    told = probe("read", FIRST)
    missing = {name for name in OPTIONAL.values() if told[name] is None}
    assert missing == {OPTIONAL[call]}


def test_what_we_may_not_see_is_denied_and_not_absent(machine: Scripted, probe: Probe) -> None:
    probe("open")
    machine.set(err__energy=10)
    probe("read", FIRST)
    assert probe("denied", FIRST) == ["energy"]


def test_a_gpu_that_answers_nothing_at_all_is_blind(machine: Scripted, probe: Probe) -> None:
    probe("open")
    machine.set(gpu__0__err__ALL=2)
    assert probe("read", FIRST)["blind"] is None


@pytest.mark.parametrize(
    ("code", "said", "restart"),
    [
        (31, "lost", None),
        (54, "lost", None),
        (7, "blind", False),
        (8, "blind", False),
        (32, "blind", True),
        (34, "blind", True),
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


def test_of_a_card_with_two_dies_the_first_by_address_counts_the_energy_of_both(
    machines: Machines,
) -> None:
    machine = machines(2)
    machine.set(gpu__0__name="AMD Instinct MI250X", gpu__1__name="AMD Instinct MI250X")
    machine.set(gpu__0__bus=9, gpu__1__bus=8)
    probe = Probe("amd", machine.environment())
    probe("open")
    told = [(one["pci"], one["energy_scope"]) for one in probe("inventory")]
    assert told == [("0000:08:00.0", "module"), ("0000:09:00.0", "none")]
    assert probe("read", FIRST)["energy_mj"] is None, "it is on the other die"
    probe.end()


def test_a_driver_that_is_not_loaded_asks_for_a_new_process(
    machine: Scripted, probe: Probe
) -> None:
    machine.set(err__init=34)
    told = probe("open")
    assert (told["blind"], told["restart"]) == (34, True)


def test_a_machine_without_rocm_is_told_so_and_standard_output_stays_clean(
    machine: Scripted, tmp_path: Path
) -> None:
    environment = machine.environment() | {"ROCM_HOME": str(tmp_path), "ROCM_PATH": str(tmp_path)}
    done = ran(
        "doctor",
        "--backend",
        "amd",
        "--json",
        "--state",
        str(tmp_path / "node"),
        environment=environment,
    )
    driver: dict[str, Any] = json.loads(done.stdout)["checks"][0]
    assert (done.returncode, driver["state"]) == (1, "failed")
    assert "ROCm" in driver["said"]


def test_doctor_finds_the_amd_gpu_of_a_machine_without_nvidia(
    machine: Scripted, tmp_path: Path
) -> None:
    machine.set(gpu__0__err__energy=10)
    done = ran("doctor", "--json", "--state", str(tmp_path), environment=machine.environment())
    told = json.loads(done.stdout)
    assert (told["backend"], told["devices"][0]["id"]) == ("amd", FIRST)
    assert told["devices"][0]["values"]["energy_mj"] == "denied"
