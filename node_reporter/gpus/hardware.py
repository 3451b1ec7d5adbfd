"""What the operating system tells about this machine's build: drives, TPM, RAM, cores, Ethernet.

Read from files anybody may read under a folder that is `/` on a real machine, so no root and no
program is needed. What a file does not tell is None: never 0, never guessed. Linux tells all of it;
elsewhere these facts are not known. The field names are `domain.hardware.facts`'s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECTOR_BYTES = 512
GB = 1_000_000_000
GIB = 1_073_741_824
ETHERNET = 1
"""ARPHRD_ETHER: what /sys/class/net/*/type says of an Ethernet port."""
_NVME = re.compile(r"nvme[0-9]+n[0-9]+")
_SCSI = re.compile(r"sd[a-z]+")
_ATA_PORT = re.compile(r"/ata[0-9]+/")
_ROTATION = re.compile(r"^E:ID_ATA_ROTATION_RATE_RPM=([0-9]+)$", re.MULTILINE)


def facts(root: Path = Path("/")) -> dict[str, Any] | None:
    """The block `hardware` of an inventory; None where there is no /sys to read."""
    if not (root / "sys/class").is_dir():
        return None
    return {
        "nvme_drives_gb": _nvme_drives(root),
        "sata_drives": _sata_drives(root),
        "tpm_2_0": _tpm_2_0(root),
        "ram_gb": _ram_gb(root),
        "cpu_cores": _cpu_cores(root),
        "ethernet_mbps": _ethernet_mbps(root),
    }


def host_bytes() -> int | None:
    """The memory this machine can use, which is also that of a GPU without its own."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _nvme_drives(root: Path) -> list[int] | None:
    """Namespaces of NVMe drives; the hidden paths of a drive with two (nvme0c0n1) are no drives."""
    if not (root / "sys/block").is_dir():
        return None
    sizes = [_size_gb(block) for block in _blocks(root, _NVME)]
    return sorted(size for size in sizes if size)


def _sata_drives(root: Path) -> list[dict[str, Any]] | None:
    """Fixed drives on an ATA port. SAS, USB and virtual disks have names of the same form."""
    if not (root / "sys/block").is_dir():
        return None
    found = [
        _sata_drive(root, block)
        for block in _blocks(root, _SCSI)
        if _ATA_PORT.search(f"{block.resolve()}/") and _number(block / "removable") == 0
    ]
    return [drive for drive in found if drive is not None]


def _sata_drive(root: Path, block: Path) -> dict[str, Any] | None:
    size_gb, rotates = _size_gb(block), _number(block / "queue/rotational")
    if not size_gb or rotates is None:
        return None
    if not rotates:
        return {"size_gb": size_gb, "kind": "ssd", "rpm": 0}
    return {"size_gb": size_gb, "kind": "hdd", "rpm": _rpm(root, block)}


def _rpm(root: Path, block: Path) -> int | None:
    """From udev's record of the drive: the kernel itself only knows that it turns."""
    number = _text(block / "dev")
    record = None if number is None else _text(root / f"run/udev/data/b{number}")
    told = None if record is None else _ROTATION.search(record)
    return None if told is None else int(told[1])


def _blocks(root: Path, name: re.Pattern[str]) -> Iterator[Path]:
    for block in sorted((root / "sys/block").iterdir()):
        if name.fullmatch(block.name):
            yield block


def _size_gb(block: Path) -> int | None:
    sectors = _number(block / "size")
    return None if sectors is None else sectors * SECTOR_BYTES // GB


def _tpm_2_0(root: Path) -> bool | None:
    """Whether any TPM speaks 2.0. A TPM that does not tell its version leaves it unknown."""
    versions = [
        _number(tpm / "tpm_version_major") for tpm in (root / "sys/class/tpm").glob("tpm[0-9]*")
    ]
    if 2 in versions:
        return True
    return None if None in versions else False


def _ram_gb(root: Path) -> int | None:
    """What is built in, by the kernel's blocks of memory; else what it can use, which is less."""
    memory = root / "sys/devices/system/memory"
    block_bytes = _number(memory / "block_size_bytes", base=16)
    if block_bytes:
        online = sum(_number(block / "online") == 1 for block in memory.glob("memory[0-9]*"))
        if online:
            return block_bytes * online // GIB
    told = re.search(r"^MemTotal:\s*([0-9]+) kB$", _text(root / "proc/meminfo") or "", re.MULTILINE)
    return None if told is None else int(told[1]) * 1_024 // GIB


def _cpu_cores(root: Path) -> int | None:
    """Real cores: two threads of one core have its number and its socket in common."""
    found = {
        (_number(topology / "physical_package_id"), _number(topology / "core_id"))
        for topology in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology")
    }
    return len(found) if found and all(None not in core for core in found) else None


def _ethernet_mbps(root: Path) -> int | None:
    """The fastest Ethernet port that has a link; ports without a device behind them are virtual."""
    speeds = [
        _number(port / "speed")
        for port in (root / "sys/class/net").glob("*")
        if _number(port / "type") == ETHERNET
        and (port / "device").exists()
        and not (port / "wireless").exists()
    ]
    # -1 or an error: no link, or a virtual port that has no speed.
    return max((speed for speed in speeds if speed is not None and speed > 0), default=None)


def _number(path: Path, base: int = 10) -> int | None:
    text = _text(path)
    try:
        return None if text is None else int(text, base)
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
