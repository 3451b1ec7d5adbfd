"""What the operating system's files tell, from real folders laid out as Linux lays them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from node_reporter.gpus import hardware
from node_reporter.gpus.seam import Device
from node_reporter.machine import inventory

TB = 1_000_204_886_016 // 512
"""Sectors of a drive sold as 1 TB."""


class Machine:
    """A folder that looks like `/` of one machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("sys/class/net", "sys/block", "proc"):
            (root / folder).mkdir(parents=True)

    def file(self, path: str, text: str | int) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")

    def drive(
        self, name: str, at: str, sectors: int, *, rotational: int = 0, removable: int = 0
    ) -> None:
        """A block device that hangs at this place of the device tree, as /sys/block shows it."""
        place = f"sys/devices/{at}/block/{name}"
        self.file(f"{place}/size", sectors)
        self.file(f"{place}/removable", removable)
        self.file(f"{place}/queue/rotational", rotational)
        self.file(f"{place}/dev", f"8:{16 * (ord(name[-1]) - ord('a'))}")
        (self.root / "sys/block" / name).symlink_to(f"../devices/{at}/block/{name}")

    def ethernet(self, name: str, mbps: int, *, kind: int = 1, has_device: bool = True) -> None:
        self.file(f"sys/class/net/{name}/speed", mbps)
        self.file(f"sys/class/net/{name}/type", kind)
        if has_device:
            (self.root / f"sys/class/net/{name}/device").mkdir()


def told(machine: Machine) -> dict[str, object]:
    found = hardware.facts(machine.root)
    assert found is not None
    return found


def test_a_machine_with_a_bare_sys_has_no_drives_and_no_tpm_and_says_nothing_else(
    tmp_path: Path,
) -> None:
    assert told(Machine(tmp_path)) == {
        "nvme_drives_gb": [],
        "sata_drives": [],
        "tpm_2_0": False,
        "ram_gb": None,
        "cpu_cores": None,
        "ethernet_mbps": None,
    }


def test_where_there_is_no_sys_nothing_is_claimed(tmp_path: Path) -> None:
    assert hardware.facts(tmp_path) is None
    assert "hardware" not in inventory.specs([], "nvml", tmp_path)


def test_nvme_drives_count_once_each_in_decimal_gigabytes(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.drive("nvme0n1", "pci0000:00/nvme/nvme0", 2 * TB)
    machine.drive("nvme1n1", "pci0000:00/nvme/nvme1", TB)
    machine.drive("nvme1c0n1", "virtual/nvme-subsystem", TB)  # a hidden path of the same drive
    machine.drive("zram0", "virtual", TB)
    assert told(machine)["nvme_drives_gb"] == [1_000, 2_000]


def test_only_fixed_drives_on_an_ata_port_are_sata(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.drive("sda", "pci0000:00/ata1/host0/target0", 2 * TB)
    machine.drive("sdb", "pci0000:00/ata2/host1/target1", 4 * TB, rotational=1)
    machine.drive("sdc", "pci0000:00/usb1/1-1/host2", TB)
    machine.drive("sdd", "pci0000:00/ata3/host3/target3", TB, removable=1)
    machine.drive("sde", "pci0000:00/host4/port-4:0/end_device", 8 * TB)  # SAS
    machine.drive("sdf", "pci0000:00/ata4/host5/target5", 0)  # an empty tray
    assert told(machine)["sata_drives"] == [
        {"size_gb": 2_000, "kind": "ssd", "rpm": 0},
        {"size_gb": 4_000, "kind": "hdd", "rpm": None},
    ]


def test_how_fast_a_disk_turns_is_what_udev_wrote_down(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.drive("sdb", "pci0000:00/ata2/host1/target1", 2 * TB, rotational=1)
    machine.file("run/udev/data/b8:16", "I:1\nE:ID_ATA=1\nE:ID_ATA_ROTATION_RATE_RPM=7200")
    assert told(machine)["sata_drives"] == [{"size_gb": 2_000, "kind": "hdd", "rpm": 7_200}]


def test_a_tpm_of_another_version_is_none_and_one_that_does_not_say_is_unknown(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.file("sys/class/tpm/tpm0/tpm_version_major", "1")
    assert told(machine)["tpm_2_0"] is False
    (tmp_path / "sys/class/tpm/tpm1").mkdir()
    assert told(machine)["tpm_2_0"] is None
    machine.file("sys/class/tpm/tpm1/tpm_version_major", "2")
    assert told(machine)["tpm_2_0"] is True


def test_ram_is_what_is_built_in_and_not_what_the_kernel_left(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("proc/meminfo", "MemTotal:       330000000 kB\nMemFree: 1 kB")
    assert told(machine)["ram_gb"] == 314
    machine.file("sys/devices/system/memory/block_size_bytes", "80000000")  # 2 GiB, in hex
    for number in range(161):
        machine.file(f"sys/devices/system/memory/memory{number}/online", int(number < 160))
    assert told(machine)["ram_gb"] == 320


def test_two_threads_are_one_core_and_two_sockets_are_two(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for thread in range(8):
        place = f"sys/devices/system/cpu/cpu{thread}/topology"
        machine.file(f"{place}/physical_package_id", thread // 4)
        machine.file(f"{place}/core_id", thread % 2)
    machine.file("sys/devices/system/cpu/cpufreq/boost", 1)
    assert told(machine)["cpu_cores"] == 4


def test_the_fastest_port_with_a_link_counts_and_virtual_ones_do_not(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.ethernet("eno1", 1_000)
    machine.ethernet("eno2", 10_000)
    machine.ethernet("eno3", -1)  # no cable
    machine.ethernet("ib0", 200_000, kind=32)  # InfiniBand
    machine.ethernet("docker0", 40_000, has_device=False)
    machine.ethernet("wlan0", 54_000)
    (tmp_path / "sys/class/net/wlan0/wireless").mkdir()
    assert told(machine)["ethernet_mbps"] == 10_000


def test_the_inventory_carries_the_hardware_beside_devices_and_host(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.drive("nvme0n1", "pci0000:00/nvme/nvme0", TB)
    gpu = Device(id="GPU-1", name="NVIDIA H200", mem_bytes=2**37)
    specs = inventory.specs([gpu], "nvml", tmp_path)
    assert specs["hardware"]["nvme_drives_gb"] == [1_000]
    assert specs["devices"][0]["model"] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("driver", "is_told"),
    [
        ("580.159.04", False),
        ("24.35.30872", False),
        (None, False),
        ("simulated", True),
        ("fake-nvml 580.159.04", True),
    ],
)
def test_a_driver_that_is_no_real_one_is_told_to_the_owner(
    driver: str | None, *, is_told: bool
) -> None:
    note = inventory.driver_note([Device(id="GPU-1", driver=driver), Device(id="GPU-2")])
    assert (note is not None) is is_told
    assert note is None or f"'{driver}'" in note
