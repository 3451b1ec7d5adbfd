"""The seam between the executor and where a region keeps its volumes; and one kind, a folder.

    what a job reaches of a volume   ==   the files of that volume, at its path, and nothing else
    erased(volume)                   =>   no byte of it is left in the store

A store gives a volume as a folder of this machine, which the sandbox mounts at the path that the
job asked for. Links in it are followed inside the sandbox, where they lead nowhere else; here
nothing follows a link. A folder as a store is one that the region's storage exports and that every
node of the region sees: an NFS mount that the owner made, or a folder of the one machine. The size
is measured and not held by the file system: a volume that is full starts no job that writes to it,
and a job that fills it is ended.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from node_reporter.executor.nameless import BLOCK_BYTES
from node_reporter.executor.runner import NotStarted

if TYPE_CHECKING:
    from node_reporter.executor.sandbox import JobUser  # needs modules that only Unix has

GIB = 1024**3
ENTRIES_MAX = 10_000_000
VOLUME_ID = re.compile(r"volume_[0-9a-f]{32}")


class StoreUnusable(Exception):
    """The store of volumes that the owner named cannot be used as it is."""


class NotErased(Exception):
    """Something of a deleted volume is left; it is tried again."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume as a job gets it: a folder of this machine, at a path of the job's."""

    volume_id: str
    path: str
    read_only: bool
    size_bytes: int


class VolumeStore(Protocol):
    """Where a region keeps its volumes."""

    def check(self) -> None:
        """Raises StoreUnusable."""
        ...

    def open(self, mount: Mount, lease_id: str) -> Path:
        """The volume as a folder for one lease. Raises NotStarted."""
        ...

    def used_bytes(self, folder: Path, most: int) -> int:
        """What lies in a volume; counting may end above `most`."""
        ...

    def close(self, mount: Mount, lease_id: str, folder: Path) -> str:
        """The lease lets go of it; what is wrong with what it left, or nothing."""
        ...

    def erase(self, volume_id: str) -> None:
        """Leave nothing of a volume, also when there is none. Raises NotErased."""
        ...

    def forget(self, lease_id: str) -> None:
        """Leave no copy of a lease whose executor was killed; the volumes stay as they are."""
        ...


class FolderStore:
    """Volumes as folders below one that the region's storage exports."""

    def __init__(self, root: Path, user: JobUser | None = None) -> None:
        self._root = root
        self._user = user

    def check(self) -> None:
        """A folder of its own that exists and can be written. Raises StoreUnusable."""
        if not self._root.is_absolute() or self._root.is_symlink() or not self._root.is_dir():
            raise StoreUnusable(f"{self._root} is no folder with an absolute path")
        if not os.access(self._root, os.W_OK | os.X_OK):
            raise StoreUnusable(f"{self._root} cannot be written")

    def open(self, mount: Mount, lease_id: str) -> Path:
        """Raises NotStarted, also where something else than a folder is in the volume's place."""
        del lease_id
        folder = self._place(mount.volume_id)
        try:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                if self._user is not None:
                    os.chown(folder, self._user.uid, self._user.gid)
            found = folder.lstat()
        except OSError as error:
            raise NotStarted(f"{mount.volume_id}: {error.strerror}") from error
        if not stat.S_ISDIR(found.st_mode):
            raise NotStarted(f"{mount.volume_id} is no folder in the store")
        return folder

    def used_bytes(self, folder: Path, most: int) -> int:
        return folder_bytes(folder, most)

    def close(self, mount: Mount, lease_id: str, folder: Path) -> str:
        """What was written is there already."""
        del mount, lease_id, folder
        return ""

    def erase(self, volume_id: str) -> None:
        folder = self._place(volume_id)
        remove_folder(folder)
        if os.path.lexists(folder):
            raise NotErased(f"{volume_id}: {folder} is still there")

    def forget(self, lease_id: str) -> None:
        """What a job wrote is in the volume already."""

    def _place(self, volume_id: str) -> Path:
        """A name of our own below the root: no way up, whatever the server tells."""
        if VOLUME_ID.fullmatch(volume_id) is None:
            raise NotStarted("needed the id of a volume")
        return self._root / volume_id


def folder_bytes(folder: Path, most: int) -> int:
    """Bytes on the disk below a folder, no link followed; more than `most` is not counted on. A
    folder that cannot be looked into counts as too much: a job must not hide what it holds.
    """
    found = entries = 0
    unreadable: list[OSError] = []
    for where, folders, files in os.walk(folder, onerror=unreadable.append):
        entries += len(folders) + len(files)
        for name in files:
            with suppress(FileNotFoundError):
                found += os.lstat(os.path.join(where, name)).st_blocks * BLOCK_BYTES
        if found > most or entries > ENTRIES_MAX:
            return max(found, most + 1)
    if any(not isinstance(error, FileNotFoundError) for error in unreadable):
        return most + 1
    return found


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is below it, whatever rights its owner took from it. No link is
    followed: a link is removed itself.
    """
    if folder.is_symlink() or not folder.is_dir():
        with suppress(FileNotFoundError):
            folder.unlink()
        return
    _give_rights(folder)
    for where, folders, _ in os.walk(folder):
        for name in folders:
            _give_rights(Path(where) / name)
    shutil.rmtree(folder, ignore_errors=True)


def _give_rights(folder: Path) -> None:
    """Ours to read, write and enter, where it is a folder and no link to one."""
    with suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)
