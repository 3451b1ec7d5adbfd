"""What a lease mounts: a volume at a path of its program; and which paths are confined.

    a path that is accepted, put below any folder, stays below that folder

Names alone count, and none of them is a way up: no `..`, no empty name, nothing absolute below the
folder. Where real folders and their links are followed, the reader of the file system asks again
(`node_reporter/executor/volume_store.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

MOUNT_ROOT = "/vol/"
"""Volumes are mounted below it, beside the folders of the system and of the job."""
PATH_BYTES_MAX = 1_024
NAME_BYTES_MAX = 255
MOUNTS_MAX = 16
"""Volumes of one lease."""


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """A volume that every lease of a job mounts; `path` as its program sees it."""

    volume_id: str
    path: str  # absolute, below MOUNT_ROOT
    read_only: bool


def confined_rule(path: str) -> str | None:
    """The rule that a path inside of a folder breaks; None: it stays inside."""
    if not path or len(path.encode(errors="replace")) > PATH_BYTES_MAX:
        return f"from 1 to {PATH_BYTES_MAX} bytes"
    if any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 for sign in path):
        return "no control characters"
    if "\\" in path or not path.isprintable():
        return "printable characters and no backslash"
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return "relative, and no name is empty, . or .."
        if len(name.encode(errors="replace")) > NAME_BYTES_MAX:
            return f"at most {NAME_BYTES_MAX} bytes in each name"
    return None


def mount_rule(path: str) -> str | None:
    """The rule that a path to mount at breaks."""
    if not path.startswith(MOUNT_ROOT):
        return f"an absolute path below {MOUNT_ROOT}"
    return confined_rule(path.removeprefix(MOUNT_ROOT))


def mounts_rule(mounts: tuple[VolumeMount, ...]) -> str | None:
    """The rule that the mounts of one job break: each volume once, and no path inside another."""
    if len(mounts) > MOUNTS_MAX:
        return f"at most {MOUNTS_MAX} volumes"
    broken = next((rule for one in mounts if (rule := mount_rule(one.path)) is not None), None)
    if broken is not None:
        return broken
    if len({one.volume_id for one in mounts}) != len(mounts):
        return "each volume once"
    paths = sorted(f"{one.path}/" for one in mounts)
    pairs = pairwise(paths)
    return "no path inside another" if any(b.startswith(a) for a, b in pairs) else None
