"""What a machine runs on, read from files as the kernel and the firmware write them."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from domain.hardware.host_kind import kernel_number
from node_reporter.machine.inventory import specs
from node_reporter.machine.substrate import substrate

BARE, GUEST = "flags\t\t: fpu vme sse2", "flags\t\t: fpu vme hypervisor"


def _machine(root: Path, flags: str | None, vendor: str = "", product: str = "") -> Path:
    (root / "proc").mkdir()
    if flags is not None:
        (root / "proc/cpuinfo").write_text(f"processor\t: 0\n{flags}\nprocessor\t: 1\n{flags}\n")
    firmware = root / "sys/class/dmi/id"
    firmware.mkdir(parents=True)
    (firmware / "sys_vendor").write_text(f"{vendor}\n")
    (firmware / "product_name").write_text(f"{product}\n")
    return root


@pytest.mark.parametrize(
    ("flags", "vendor", "product", "expected"),
    [
        (BARE, "Supermicro", "SYS-420GP", ["bare_metal"]),
        (GUEST, "VMware, Inc.", "VMware20,1", ["esxi"]),
        (GUEST, "QEMU", "Standard PC", ["kvm"]),
        (GUEST, "Microsoft Corporation", "Virtual Machine", ["hyperv"]),
        (GUEST, "Somebody", "Cloud", ["virtual"]),
        (None, "", "", None),
        (None, "QEMU", "KVM Virtual Machine", ["kvm"]),
    ],
)
def test_firmware_and_processor_tell_what_is_underneath(
    tmp_path: Path, flags: str | None, vendor: str, product: str, expected: list[str] | None
) -> None:
    assert substrate(_machine(tmp_path, flags, vendor, product), {}) == expected


def test_a_pod_and_a_node_of_a_cluster_are_told_with_what_is_below(tmp_path: Path) -> None:
    root = _machine(tmp_path, GUEST, "VMware, Inc.", "VMware7,1")
    in_pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert substrate(root, in_pod) == ["esxi", "kubernetes"]
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").touch()
    assert substrate(root, {}) == ["esxi", "kubernetes"]


def test_this_machine_tells_its_kernel_with_its_inventory() -> None:
    host = specs([], "sim")["host"]
    assert host["kernel"] == platform.release()
    assert kernel_number(host["kernel"])
