"""Unmodified nvidia-ml-py on the scripted library: every error ends in the documented bucket."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from node_reporter.gpus.nvml import backend, driver
from node_reporter.gpus.seam import MonitorBlind
from tests.node_reporter.conftest import FakeMachine
from tests.node_reporter.scripted_machines import Probe

UUIDS = [f"GPU-{n:08x}-0000-0000-0000-000000000000" for n in range(16)]
NO_INSTANCE = {"gi": None, "ci": None}


Machines = Callable[[int], FakeMachine]


def opened(machine: FakeMachine) -> Probe:
    probe = Probe("nvml", machine.environment())
    assert probe("open") is None
    return probe


def test_the_inventory_names_every_gpu_by_uuid(machine: Machines) -> None:
    probe = opened(machine(2))
    devices = probe("inventory")
    probe.end()
    assert [device["id"] for device in devices] == UUIDS[:2]
    assert devices[0] == {
        "id": UUIDS[0],
        "name": "NVIDIA H200",
        "mem_bytes": 150_754_820_096,
        "pci": "00000000:0F:00.0",
        "pci_id": "0x233510de",
        "compute_capability": "9.0",
        "driver": "fake-nvml 580.159.04",
        "serial": "1650000000000",
        "vbios": "96.00.A0.00.01",
        "power_limit_mw": 700_000,
        "pcie_gen": 5,
        "pcie_lanes": 16,
        "mig_enabled": False,
        "parent": None,
        "gi": None,
        "ci": None,
        "shape": "whole",
        "share_ppm": 1_000_000,
        "mem_ppm": 1_000_000,
        "busy_source": "util",
        "energy_scope": "device",
        "vendor": None,
        "kind": None,
        "connection": None,
        "memory": None,
    }


def test_a_reading_holds_what_the_gpu_tells(machine: Machines) -> None:
    probe = opened(machine(1))
    reading = probe("read", UUIDS[0])
    probe.end()
    assert reading["energy_mj"] >= 1_000_000
    assert (reading["busy_ppm"], reading["mem_used_bytes"]) == (500_000, 1_073_741_824)
    assert (reading["power_limit_mw"], reading["power_mw"]) == (700_000, 500_000)


def test_throttling_is_told_by_the_fields_that_are_there(machine: Machines) -> None:
    """75 is the thermal policy, 76 beside it sync boost; 269 and 270 stand in for 75."""
    found = machine(1)
    probe = opened(found)

    def throttled() -> tuple[int | None, int | None]:
        reading = probe("read", UUIDS[0])
        return reading["throttle_power_ns"], reading["throttle_thermal_ns"]

    assert throttled() == (None, None)
    found.set(gpu__0__field__74="5", gpu__0__field__75="7", gpu__0__field__76="1000")
    assert throttled() == (5, 7)
    found.set(gpu__0__field__271="3", gpu__0__field__269="900")
    assert throttled() == (8, 7)
    found.set(gpu__0__field__75="", gpu__0__field__270="20", gpu__0__field_err__74="2")
    assert throttled() == (3, 920)
    found.set(gpu__0__field_err__74="999")
    assert probe("read", UUIDS[0])["blind"] == 999
    probe.end()


def test_a_gpu_without_memory_of_its_own_uses_the_hosts(machine: Machines) -> None:
    found = machine(2)
    found.set(gpu__0__mem_total="", gpu__0__name="NVIDIA GB10")
    probe = opened(found)
    (shared, own), reading = probe("inventory"), probe("read", UUIDS[0])
    probe.end()
    assert (shared["memory"], own["memory"]) == ("unified", None)
    assert shared["mem_bytes"] > 2**30
    assert reading["mem_used_bytes"] is None


def test_a_board_whose_counter_counts_its_processor_too_says_so(machine: Machines) -> None:
    found = machine(1)
    found.set(gpu__0__name="NVIDIA GH200 480GB")
    probe = opened(found)
    assert probe("inventory")[0]["energy_scope"] == "module"
    probe.end()


@pytest.mark.parametrize("code", [8, 11, 15, 16])
def test_a_gpu_that_is_gone_is_lost_and_its_neighbour_is_not(machine: Machines, code: int) -> None:
    found = machine(2)
    probe = opened(found)
    found.set(gpu__0__err__ALL=str(code))
    lost, neighbour = probe("read", UUIDS[0]), probe("read", UUIDS[1])
    found.set(gpu__0__err__ALL="")
    back = probe("read", UUIDS[0])
    probe.end()
    assert lost["lost"] == code
    assert "energy_mj" in neighbour
    assert "energy_mj" in back


@pytest.mark.parametrize(("code", "restart"), [(1, True), (9, True), (17, True), (18, True)])
def test_a_driver_that_went_away_asks_for_a_new_process(
    machine: Machines, code: int, *, restart: bool
) -> None:
    found = machine(1)
    probe = opened(found)
    found.set(gpu__0__err__ALL=str(code))
    blind = probe("read", UUIDS[0])
    probe.end()
    assert (blind["blind"], blind["restart"]) == (code, restart)


def test_999_is_blind_and_not_lost(machine: Machines) -> None:
    found = machine(1)
    probe = opened(found)
    found.set(gpu__0__err__ALL="999")
    blind = probe("read", UUIDS[0])
    probe.end()
    assert (blind["blind"], blind["restart"]) == (999, False)


OPTIONAL = {
    "nvmlDeviceGetTotalEnergyConsumption": {"energy_mj"},
    "nvmlDeviceGetUtilizationRates": {"busy_ppm"},
    "nvmlDeviceGetMemoryInfo_v2": {"mem_used_bytes"},
    "nvmlDeviceGetPowerManagementLimitConstraints": {"power_limit_mw"},
    "nvmlDeviceGetMigMode": set(),
    "nvmlDeviceGetFieldValues": set(),
}


@pytest.mark.parametrize("code", [3, 4, 6, 13, 25])
def test_a_call_this_gpu_does_not_have_costs_its_own_value_only(
    machine: Machines, code: int
) -> None:
    found = machine(1)
    probe = opened(found)
    asked = ("energy_mj", "busy_ppm", "mem_used_bytes", "power_limit_mw")
    for function, values in OPTIONAL.items():
        found.set(**{f"err__{function}": str(code)})
        probe("open")  # forgets what was absent
        reading = probe("read", UUIDS[0])
        assert {name for name in asked if reading[name] is None} == values
        found.set(**{f"err__{function}": ""})
        again = probe("read", UUIDS[0])
        assert again == reading | {"energy_mj": again["energy_mj"]}, "absent is remembered"
    probe.end()


def test_a_gpu_that_answers_nothing_is_blind(machine: Machines) -> None:
    found = machine(1)
    probe = opened(found)
    found.set(gpu__0__err__ALL="3")
    blind = probe("read", UUIDS[0])
    probe.end()
    assert blind == {"blind": None, "restart": False, "why": "no call answers on this GPU"}


def test_a_gpu_in_mig_mode_stands_in_the_inventory_and_is_never_claimed(machine: Machines) -> None:
    found = machine(2)
    found.set(gpu__0__mig="1")
    probe = opened(found)
    devices, blind = probe("inventory"), probe("read", UUIDS[0])
    whole = probe("read", UUIDS[1])
    probe.end()
    assert [device["mig_enabled"] for device in devices] == [True, False]
    assert blind["blind"] is None
    assert "MIG" in blind["why"]
    assert "energy_mj" in whole


def test_one_gpu_lost_before_the_start_does_not_hide_the_others(machine: Machines) -> None:
    found = machine(3)
    found.set(gpu__1__err__ALL="15")
    probe = opened(found)
    devices = probe("inventory")
    probe.end()
    assert [device["id"] for device in devices] == [UUIDS[0], UUIDS[2]]


def test_another_distribution_with_the_same_module_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`pynvml` is also the name of a package of somebody else's."""

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(driver, "version", absent)
    with pytest.raises(MonitorBlind, match="not nvidia-ml-py"):
        backend.NvmlGpus().open()


def test_a_machine_without_a_driver_says_so(machine: Machines) -> None:
    found = machine(1)
    found.set(init_error="9")
    probe = Probe("nvml", found.environment())
    blind = probe("open")
    probe.end()
    assert (blind["blind"], blind["restart"]) == (9, True)


def test_an_xid_of_a_program_is_told_and_a_fatal_one_takes_the_gpu_away(machine: Machines) -> None:
    found = machine(2)
    probe = opened(found)
    found.set(event__1="0:8:31", gpu__0__field__230="")
    harmless, still = probe("faults", 0.05), probe("read", UUIDS[0])
    found.set(event__2="0:8:79")
    fatal, lost = probe("faults", 0.05), probe("read", UUIDS[0])
    neighbour = probe("read", UUIDS[1])
    probe.end()
    assert harmless == [{"device_id": UUIDS[0], "code": 31, "fatal": False, **NO_INSTANCE}]
    assert "energy_mj" in still
    assert fatal == [{"device_id": UUIDS[0], "code": 79, "fatal": True, **NO_INSTANCE}]
    assert lost["lost"] == 79
    assert "energy_mj" in neighbour


def test_a_fatal_xid_is_over_when_the_driver_needs_no_recovery_any_more(machine: Machines) -> None:
    found = machine(1)
    probe = opened(found)
    found.set(event__1="0:8:74", gpu__0__field__230="2")
    probe("faults", 0.05)
    reads = [probe("read", UUIDS[0])]
    found.set(gpu__0__field__230="0")
    reads += [probe("read", UUIDS[0]), probe("read", UUIDS[0])]
    probe.end()
    assert [read["lost"] for read in reads[:2]] == [74, 74]
    assert "energy_mj" in reads[2]


def test_a_gpu_that_asks_for_recovery_is_not_rented(machine: Machines) -> None:
    found = machine(1)
    probe = opened(found)
    found.set(gpu__0__field__230="1")
    lost = probe("read", UUIDS[0])
    probe.end()
    assert lost["lost"] == 1


def test_an_error_of_the_event_wait_takes_no_gpu_away(machine: Machines) -> None:
    found = machine(1)
    probe = opened(found)
    found.set(err__nvmlEventSetWait_v2="999")
    faults, reading = probe("faults", 0.01), probe("read", UUIDS[0])
    probe.end()
    assert faults == []
    assert "energy_mj" in reading


def test_a_library_replaced_on_disk_asks_for_a_new_process(
    machine: Machines, tmp_path: Path
) -> None:
    found = machine(1)
    own = tmp_path / "lib"
    own.mkdir()
    copy = own / found.library.name
    copy.write_bytes(found.library.read_bytes())
    found.library = copy
    probe = opened(found)
    before = probe("faults", 0.01)
    copy.unlink()
    after = probe("faults", 0.01)
    probe.end()
    assert before == []
    assert after["restart"] is True
