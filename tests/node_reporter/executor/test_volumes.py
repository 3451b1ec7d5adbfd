"""Volumes in real sandboxes, in a real folder and in a bucket of a real S3-compatible server.

Row R-20: mounted when the work starts, kept when it is over, seen by later jobs; nothing else of
the machine is reached through a volume, its size is held, and an erased one leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

import pytest

from node_reporter.executor.bucket_store import Bucket, BucketStore
from node_reporter.executor.runner import NotStarted
from node_reporter.executor.sandbox import job_user
from node_reporter.executor.volume_store import (
    FolderStore,
    Mount,
    StoreUnusable,
    VolumeStore,
    folder_bytes,
)
from node_reporter.executor.work import WorkUnreadable, parse
from tests.node_reporter.confined import MIB, needs_walls
from tests.node_reporter.executor.bucket_server import BUCKET, KEY, bucket_server
from tests.node_reporter.executor.bucket_server import SECRET as SECRET_KEY
from tests.node_reporter.executor.test_executor import Make, World, lease_of, world

__all__ = ["world"]

pytestmark = needs_walls
ONE, OTHER = "volume_" + "1" * 32, "volume_" + "2" * 32
SECRET = "SECRET-OF-RENTER"


class Left(Protocol):
    """What of a volume is in its store, told past the store itself."""

    def __call__(self) -> bytes: ...


Store = tuple[VolumeStore, Left]


@pytest.fixture
def folder(tmp_path: Path) -> Store:
    """A folder that the region's storage exports."""
    root = tmp_path / "export"
    root.mkdir(mode=0o711)
    store = FolderStore(root, job_user(None))
    store.check()

    def left() -> bytes:
        files = [one for one in root.rglob("*") if one.is_file() and not one.is_symlink()]
        return b"".join([str(one).encode() + one.read_bytes() for one in files])

    return store, left


@pytest.fixture(scope="module")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The address of a server."""
    with bucket_server(tmp_path_factory.mktemp("weed")) as address:
        yield address


@pytest.fixture
def bucket(weed: str, tmp_path: Path) -> Store:
    """A bucket of a real server."""
    import obstore

    told = Bucket(endpoint=weed, bucket=BUCKET, access_key=KEY, secret_key=SECRET_KEY)
    store = BucketStore(told, tmp_path / "copies", job_user(None))
    (tmp_path / "copies").mkdir(mode=0o711)
    store.check()
    for each in (ONE, OTHER):
        store.erase(each)

    def left() -> bytes:
        found = b""
        for batch in obstore.list(store._store(), prefix="volumes/"):
            for one in batch:
                body = obstore.get(store._store(), one["path"]).bytes()
                found += one["path"].encode() + bytes(body)
        copies = [one for one in (tmp_path / "copies").rglob("*") if one.is_file()]
        return found + b"".join(one.read_bytes() for one in copies)

    return store, left


@pytest.fixture(params=["folder", "bucket"])
def kind(request: pytest.FixtureRequest) -> Store:
    """Each kind of store."""
    found: Store = request.getfixturevalue(request.param)
    return found


def mounts(*volumes: str, read_only: bool = False, gib: int = 1) -> list[dict[str, Any]]:
    return [
        {"volume_id": one, "path": f"/vol/v{number}", "read_only": read_only, "size_gib": gib}
        for number, one in enumerate(volumes)
    ]


def ran(here: World, number: int, script: str, *volumes: str, **changes: Any) -> str:
    """What a job that mounts these printed."""
    lease_id = here.server.asks(str(number), script, volumes=mounts(*volumes, **changes))
    here.until_settled(lease_id)
    return here.server.out(lease_id)


def test_a_later_job_finds_what_an_earlier_one_kept(world: Make, kind: Store) -> None:
    here = world(volumes=kind[0])
    ran(here, 1, "mkdir -p /vol/v0/a && echo kept > /vol/v0/a/file && echo x > /vol/v0/b", ONE)
    assert ran(here, 2, "cat /vol/v0/a/file && rm /vol/v0/b && echo more >> /vol/v0/a/file", ONE)
    assert ran(here, 3, "cat /vol/v0/a/file; ls /vol/v0", ONE) == "kept\nmore\na\n"
    assert ran(here, 4, "ls /vol/v0 /vol/v1", OTHER, ONE) == "/vol/v0:\n\n/vol/v1:\na\n"


def test_two_jobs_have_a_volume_at_once_and_one_of_them_only_reads(
    world: Make, kind: Store
) -> None:
    here = world(volumes=kind[0])
    ran(here, 1, "echo here > /vol/v0/file", ONE)
    reads = here.server.asks(
        "2", "cat /vol/v0/file; echo no > /vol/v0/file", volumes=mounts(ONE, read_only=True)
    )
    writes = here.server.asks("3", "cat /vol/v0/file; echo new > /vol/v0/new", volumes=mounts(ONE))
    for each in (reads, writes):
        here.until_settled(each)
        assert here.server.out(each) == "here\n"
    assert "Read-only file system" in here.server.out(reads, "stderr")
    assert ran(here, 4, "cat /vol/v0/file /vol/v0/new", ONE) == "here\nnew\n"


def test_no_link_in_a_volume_leads_out_of_it(world: Make, kind: Store, tmp_path: Path) -> None:
    """A job reaches nothing of the machine by links, and the executor follows none of them."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "key").write_text("key of the machine")
    here = world(volumes=kind[0])
    script = f"""
        ln -s {outside} /vol/v0/out; ln -s {outside}/key /vol/v0/key; ln -s /etc/shadow /vol/v0/s
        cat /vol/v0/out/key /vol/v0/key /vol/v0/s /vol/v0/../../{outside}/key; ls {tmp_path}
    """
    assert ran(here, 1, script, ONE) == ""
    assert "key of the machine" not in ran(here, 2, "cat /vol/v0/key; cat /vol/v0/out/key", ONE)
    assert b"key of the machine" not in kind[1]()
    kind[0].erase(ONE)
    assert (outside / "key").read_text() == "key of the machine"


def test_another_thing_in_the_place_of_a_volume_is_no_volume(folder: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "export" / ONE).symlink_to(outside)
    mount = Mount(ONE, "/vol/v0", False, 1)
    with pytest.raises(NotStarted):
        folder[0].open(mount, "lease_1")
    for name in ("../outside", "volume_..", "/etc", "", ONE + "/.."):
        with pytest.raises(NotStarted):
            folder[0].open(Mount(name, "/vol/v0", False, 1), "lease_1")
    with pytest.raises(StoreUnusable):
        FolderStore(tmp_path / "export" / ONE).check()


@pytest.mark.parametrize("path", ["/etc", "/vol/../etc", "/vol/", "/vol/a/../../etc", "volumes/a"])
def test_a_path_that_leaves_the_mounts_is_not_taken_from_the_server_either(path: str) -> None:
    start = {
        "lease_id": "lease_" + "1" * 32,
        "account_id": "a",
        "work": {"kind": "batch", "command": [], "env_refs": [], "workload_sha256": "0" * 64},
        "device_ids": [],
        "share_ppm": 1,
        "mem_ppm": 1,
        "volumes": [{"volume_id": ONE, "path": path, "read_only": False, "size_gib": 1}],
    }
    with pytest.raises(WorkUnreadable):
        parse({"pending": [start], "data": [], "stopping": []})


def test_an_object_whose_name_leaves_the_volume_starts_no_job(
    bucket: Store, tmp_path: Path
) -> None:
    """Who can write the bucket otherwise cannot write the node's files through it."""
    store: Any = bucket[0]
    store._objects = lambda _volume_id: iter([("../../escaped", 1)])
    with pytest.raises(NotStarted):
        store.open(Mount(ONE, "/vol/v0", False, 1), "lease_1")
    assert not list(tmp_path.rglob("escaped"))


def test_a_job_that_fills_its_volume_is_ended_and_the_next_is_not_started(
    world: Make, kind: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is measured: 4 MiB here, so that the test writes little."""
    monkeypatch.setattr("node_reporter.executor.work.GIB", 4 * MIB)
    here = world(volumes=kind[0])
    fill = "dd if=/dev/zero of=/vol/v0/big bs=1M count=16 2>/dev/null; sleep 60"
    ran(here, 1, fill, ONE)
    lease_id = lease_of("1")
    (ended,) = here.server.said(lease_id, "ended")
    assert ended["outcome"] == "limited"
    assert f"of {ONE}" in here.server.out(lease_id, "note")
    second = lease_of("2")
    ran(here, 2, "echo started", ONE)
    if isinstance(kind[0], FolderStore):
        assert "holds more than its size" in here.server.out(second, "note")
        assert "started" not in here.server.out(second)
        assert ran(here, 3, "ls /vol/v0", ONE, read_only=True) == "big\n"
    else:
        assert "nothing was written back" in here.server.out(lease_id, "note")
        assert here.server.out(second) == "started\n", "the bucket never got it"


def test_a_folder_that_hides_what_it_holds_counts_as_full(folder: Store) -> None:
    mount = Mount(ONE, "/vol/v0", False, 4 * MIB)
    place = folder[0].open(mount, "lease_1")
    (place / "hidden").mkdir()
    (place / "hidden").chmod(0)
    if os.geteuid() == 0:
        assert folder_bytes(place, 100) <= 100, "root looks into every folder"
    else:
        assert folder_bytes(place, 100) == 101


def test_nothing_is_left_of_a_deleted_volume(world: Make, kind: Store) -> None:
    """security M5: also in folders that their owner closed, on the real folder and bucket."""
    here = world(volumes=kind[0])
    hide = f"mkdir -p /vol/v0/deep/er; echo {SECRET} > /vol/v0/deep/er/f; chmod 0 /vol/v0/deep/er/f"
    ran(here, 1, hide, ONE)
    ran(here, 2, f"echo other-{SECRET} > /vol/v0/f", OTHER)
    assert kind[1]().count(SECRET.encode()) == 2
    # While a job has it, it stays; then it goes, whatever rights were taken from its folders.
    lease_id = here.server.asks("3", "chmod 0 /vol/v0/deep; echo up; sleep 60", volumes=mounts(ONE))
    here.until(lambda: here.server.out(lease_id) == "up\n", "it runs")
    here.server.to_erase.append(ONE)
    here.executor.step()
    assert here.server.erased == []
    here.server.closes(lease_id)
    here.until(lambda: here.server.erased == [ONE], "it is erased")
    left = kind[1]()
    assert ONE.encode() not in left
    assert left.count(SECRET.encode()) == 1, "the other volume is as it was"


def test_a_job_with_volumes_is_declined_where_there_is_no_store(world: Make) -> None:
    here = world()
    lease_id = here.server.asks("1", "echo started", volumes=mounts(ONE))
    here.until_settled(lease_id)
    assert here.server.said(lease_id, "decline")
    assert "no store of volumes" in here.server.out(lease_id, "note")
