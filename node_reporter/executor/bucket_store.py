"""Volumes in a bucket of an S3-compatible server: one prefix for each volume.

    objects of a volume  ==  volumes/{volume_id}/{path of the file}

A job gets a copy in a folder of its own, made before it starts, and what it changed is written back
when it is over: a file that is new or other is put, one that is gone is deleted. Two leases that
write the same file at once: the one that ends last wins, file by file. Folders without files,
links, owners and rights are not kept. What is more than the volume's size is not written back: the
job was ended for it, and its log says so. Library: obstore (MIT), which reads and writes in pieces.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.paths import confined_rule
from node_reporter.executor.runner import NotStarted
from node_reporter.executor.sandbox import JobUser
from node_reporter.executor.volume_store import (
    VOLUME_ID,
    Mount,
    NotErased,
    StoreUnusable,
    folder_bytes,
    remove_folder,
)

if TYPE_CHECKING:
    from obstore.store import S3Store

PREFIX = "volumes"
DELETES_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Which bucket, and the key that opens it. The key is in a file of the executor alone."""

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"


class BucketStore:
    """One bucket as the store of a region's volumes; `copies` is a folder of the executor."""

    def __init__(self, bucket: Bucket, copies: Path, user: JobUser | None = None) -> None:
        self._bucket = bucket
        self._copies = copies
        self._user = user
        self._opened: S3Store | None = None
        self._seen: dict[str, Mapping[str, tuple[int, int]]] = {}  # lease/volume -> file -> stat

    def check(self) -> None:
        """Raises StoreUnusable."""
        try:
            self._delete([])
            next(iter(self._objects("check")), None)
        except ImportError as error:
            raise StoreUnusable("obstore is missing: install tallystick-node[s3]") from error
        except Exception as error:
            raise StoreUnusable(
                f"the bucket {self._bucket.bucket} cannot be used: {error}"
            ) from error

    def open(self, mount: Mount, lease_id: str) -> Path:
        folder = self._copies / f"{lease_id}.{_known(mount.volume_id)}"
        remove_folder(folder)
        try:
            folder.mkdir(mode=0o700, parents=True)
            for path, size in self._objects(mount.volume_id):
                self._fetch(mount.volume_id, path, size, folder)
            self._own(folder)
        except Exception as error:
            remove_folder(folder)
            raise NotStarted(f"{mount.volume_id} cannot be read: {error}") from error
        self._seen[folder.name] = dict(_files(folder))
        return folder

    def used_bytes(self, folder: Path, most: int) -> int:
        return folder_bytes(folder, most)

    def close(self, mount: Mount, lease_id: str, folder: Path) -> str:
        del lease_id
        before = self._seen.get(folder.name, {})
        try:
            return "" if mount.read_only else self._write_back(mount, folder, before)
        except Exception as error:
            return f"{mount.volume_id} could not be written back: {error}"
        finally:
            self._seen.pop(folder.name, None)
            remove_folder(folder)

    def erase(self, volume_id: str) -> None:
        try:
            while found := [path for path, _ in self._objects(_known(volume_id))]:
                self._delete([self._key(volume_id, path) for path in found])
        except Exception as error:
            raise NotErased(f"{volume_id}: {error}") from error
        if self._copies.exists():
            for copy in self._copies.glob(f"*.{volume_id}"):
                remove_folder(copy)

    def forget(self, lease_id: str) -> None:
        """What was not written back is lost with the job, which is told as lost."""
        if self._copies.exists():
            for copy in self._copies.glob(f"{lease_id}.*"):
                remove_folder(copy)

    # --- the bucket ----------------------------------------------------------------------------

    def _store(self) -> S3Store:
        if self._opened is None:
            from obstore.store import S3Store

            told = self._bucket
            self._opened = S3Store(
                told.bucket,
                endpoint=told.endpoint,
                access_key_id=told.access_key,
                secret_access_key=told.secret_key,
                region=told.region,
                client_options={"allow_http": told.endpoint.startswith("http://")},
            )
        return self._opened

    def _objects(self, volume_id: str) -> Iterator[tuple[str, int]]:
        """Path and size of each object of a volume."""
        import obstore

        prefix = f"{PREFIX}/{volume_id}/"
        for batch in obstore.list(self._store(), prefix=prefix):
            for one in batch:
                yield one["path"].removeprefix(prefix), one["size"]

    def _key(self, volume_id: str, path: str) -> str:
        return f"{PREFIX}/{volume_id}/{path}"

    def _delete(self, keys: list[str]) -> None:
        import obstore

        for first in range(0, len(keys), DELETES_MAX):
            obstore.delete(self._store(), keys[first : first + DELETES_MAX])

    def _fetch(self, volume_id: str, path: str, size: int, folder: Path) -> None:
        """One object as a file. A name that leaves the volume is refused. Raises NotStarted."""
        import obstore

        broken = confined_rule(path)
        if broken is not None:
            raise NotStarted(f"an object has a name that is no path in a volume: {broken}")
        target = folder.joinpath(*path.split("/"))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with target.open("xb") as file:
            for piece in obstore.get(self._store(), self._key(volume_id, path)).stream():
                file.write(piece)
            if file.tell() != size:
                raise NotStarted(f"{path}: {file.tell()} bytes of {size}")

    def _write_back(self, mount: Mount, folder: Path, before: Mapping[str, tuple[int, int]]) -> str:
        used = folder_bytes(folder, mount.size_bytes)
        if used > mount.size_bytes:
            return f"{mount.volume_id} is over its size: nothing was written back"
        import obstore

        after, left_out = dict(_files(folder)), 0
        for path, seen in after.items():
            if before.get(path) == seen:
                continue
            if confined_rule(path) is not None:
                left_out += 1
                continue
            # Opened without following a link: what was looked at is what is sent.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(folder / path, flags)
            with os.fdopen(descriptor, "rb") as file:
                obstore.put(self._store(), self._key(mount.volume_id, path), file)
        gone = [path for path in before if path not in after]
        self._delete([self._key(mount.volume_id, path) for path in gone])
        return f"{left_out} files of {mount.volume_id} have no name to keep" if left_out else ""

    def _own(self, folder: Path) -> None:
        if self._user is None:
            return
        for where, folders, files in os.walk(folder):
            for name in (".", *folders, *files):
                os.chown(os.path.join(where, name), self._user.uid, self._user.gid)


def _known(volume_id: str) -> str:
    if VOLUME_ID.fullmatch(volume_id) is None:
        raise NotStarted("needed the id of a volume")
    return volume_id


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Path, and size and moment of change, of each file below a folder; links are no files."""
    for where, folders, files in os.walk(folder):
        del folders
        for name in files:
            full = os.path.join(where, name)
            found: Any = os.lstat(full)
            if stat.S_ISREG(found.st_mode):
                yield os.path.relpath(full, folder), (found.st_size, found.st_mtime_ns)
