"""Apple's GPUs on recorded answers of `ioreg` and `system_profiler`. No Mac was asked."""

from __future__ import annotations

import pytest

from node_reporter.gpus import apple
from node_reporter.gpus.seam import DeviceLost, MonitorBlind
from tests.node_reporter.recorded_mac import MACHINE, Mac


def opened(mac: Mac) -> apple.AppleGpus:
    backend = apple.AppleGpus(mac)
    backend.open()
    return backend


def test_the_one_gpu_of_a_mac_is_told_with_the_hosts_memory_and_no_lanes() -> None:
    (device,) = opened(Mac()).inventory()
    assert (device.id, device.name) == (f"APPLE-{MACHINE}", "Apple M2 Max")
    assert (device.memory, device.connection, device.pcie_lanes) == ("unified", "soc", None)
    assert device.mem_bytes == 64 * 2**30


def test_it_tells_how_busy_it_is_and_what_memory_is_used() -> None:
    mac = Mac()
    backend = opened(mac)
    (device,) = backend.inventory()
    reading = backend.read(device.id)
    assert (reading.busy_ppm, reading.mem_used_bytes) == (370_000, 1_000)
    mac.busy = 250
    assert backend.read(device.id).busy_ppm == 1_000_000
    assert backend.look(device.id) == (device,)
    assert backend.attest(device.id, b"") is None
    assert backend.faults(0) == ()


def test_a_machine_without_apples_chip_has_none() -> None:
    with pytest.raises(MonitorBlind):
        opened(Mac("AMD Radeon Pro 5500M"))
    linux = Mac()
    linux.gone = {"ioreg", "system_profiler", "sysctl"}
    with pytest.raises(MonitorBlind):
        opened(linux)


def test_what_does_not_answer_is_unknown_and_what_is_not_listed_is_lost() -> None:
    mac = Mac()
    backend = opened(mac)
    (device,) = backend.inventory()
    mac.is_listed = False
    with pytest.raises(DeviceLost):
        backend.read(device.id)
    mac.gone = {"ioreg"}
    with pytest.raises(MonitorBlind):
        backend.read(device.id)
    with pytest.raises(DeviceLost):
        backend.read("another")
    backend.close()
    assert backend.inventory() == ()
