"""What a lease mounts: volumes, each at a path of its program, which is confined."""

from __future__ import annotations

from itertools import pairwise

from domain.paths import confined_rule
from domain.record import dataclass

MOUNT_ROOT = "/vol/"
"""Volumes are mounted below it, beside the folders of the system and of the job."""
MOUNTS_MAX = 16
"""Volumes of one lease."""


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """A volume that every lease of a job mounts; `path` as its program sees it."""

    volume_id: str
    path: str  # absolute, below MOUNT_ROOT
    read_only: bool


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
