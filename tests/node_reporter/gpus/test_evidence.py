"""What a node says of its devices as evidence, and what a server makes of a spoof's answers."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from domain.hardware.known_gpus import board_of
from domain.trust.tiers import Identity
from node_reporter.gpus import evidence
from node_reporter.gpus.seam import Device
from projections.trust.evidence import IDENTITY_FIELDS

LINE = "7f0000000000-7f0000001000 r-xp 00000000 00:1f 123  {path}\n"
MOUNT = "36 25 0:32 / {point} rw - tmpfs tmpfs rw\n"


def test_the_digest_is_of_the_library_that_is_mapped(tmp_path: Path) -> None:
    library, maps = tmp_path / "libnvidia-ml.so.580.95.05", tmp_path / "maps"
    library.write_bytes(b"a driver library")
    maps.write_text(LINE.format(path="/usr/lib/libc.so.6") + LINE.format(path=library))
    assert evidence.library_digest("nvidia", maps) == sha256(b"a driver library").hexdigest()


@pytest.mark.parametrize(
    "path", ["/usr/lib/libc.so.6", "/usr/lib/libnvidia-ml.so.1 (deleted)", "/nowhere/libnvidia-ml"]
)
def test_a_library_that_is_not_there_has_no_digest(tmp_path: Path, path: str) -> None:
    maps = tmp_path / "maps"
    maps.write_text(LINE.format(path=path))
    assert evidence.library_digest("nvidia", maps) is None
    assert evidence.library_digest("nvidia", tmp_path / "none") is None


@pytest.mark.parametrize(
    ("vendor", "name"), [("amd", "libamd_smi.so.26.0"), ("intel", "libze_intel_gpu.so.1.6")]
)
def test_each_vendor_has_its_own_library(tmp_path: Path, vendor: str, name: str) -> None:
    library, maps = tmp_path / name, tmp_path / "maps"
    library.write_bytes(b"a driver library")
    maps.write_text(LINE.format(path=library))
    assert evidence.library_digest(vendor, maps) == sha256(b"a driver library").hexdigest()
    assert evidence.library_digest("nvidia", maps) is None


NVIDIA = ("nvidia", "proc/driver/nvidia/version")
AMD, INTEL, XE = (
    ("amd", "sys/module/amdgpu"),
    ("intel", "sys/module/i915"),
    ("intel", "sys/module/xe"),
)


@pytest.mark.parametrize(
    ("of", "point", "said"),
    [
        (NVIDIA, "/proc", "ok"),
        (NVIDIA, "/proc/driver/nvidia", "mounted"),
        (NVIDIA, "/proc/driver/nvidia/gpus/0000:0f:00.0", "mounted"),
        (NVIDIA, "/proc/driver/nvidia-caps", "ok"),
        (AMD, "/sys", "ok"),
        (AMD, "/proc/driver/nvidia", "ok"),
        (AMD, "/sys/module/amdgpu", "mounted"),
        (AMD, "/sys/module/amdgpu/parameters", "mounted"),
        (INTEL, "/sys", "ok"),
        (XE, "/sys", "ok"),
        (XE, "/sys/module/xe", "mounted"),
    ],
)
def test_what_lies_over_the_drivers_folder_is_seen(
    tmp_path: Path, of: tuple[str, str], point: str, said: str
) -> None:
    vendor, there = of
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNT.format(point=point))
    (tmp_path / there).mkdir(parents=True)
    assert evidence.kernel_driver(vendor, tmp_path, mounts) == said


@pytest.mark.parametrize("vendor", ["nvidia", "nvml", "amd", "intel"])
def test_a_machine_without_the_driver_says_so(tmp_path: Path, vendor: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNT.format(point="/"))
    assert evidence.kernel_driver(vendor, tmp_path, mounts) == "absent"
    assert evidence.kernel_driver(vendor, tmp_path, tmp_path / "none") == "absent"


def test_every_value_the_server_looks_at_is_told_under_its_name() -> None:
    device = Device(
        id="GPU-1",
        name="NVIDIA H200",
        pci_id="0x233510de",
        mem_bytes=150_754_820_096,
        compute_capability="9.0",
        driver="580.95.05",
        power_limit_mw=700_000,
    )
    told = evidence.inventory(device, "5e" * 32, "ok")
    read = {name: told[name] for name in IDENTITY_FIELDS if name in told}
    identity = Identity(**read)  # type: ignore[arg-type]
    assert identity.library_sha256 == "5e" * 32
    assert (identity.name, identity.driver, identity.proc_nvidia) == (
        "NVIDIA H200",
        "580.95.05",
        "ok",
    )
    board = board_of(identity.pci_id)
    assert board is not None
    assert board.is_named(identity.name or "")
    assert set(IDENTITY_FIELDS) - set(told) == {"counter_mj", "integrated_mj"}, "told each hour"
