"""Datastores of work: real bind mounts in real sandboxes, and the `mount` that a file server needs.

Row C-36: below the root and nowhere else, whatever the server told; input is read, output and
scratch are written; unmounted however the work ends. No kernel here mounts NFS or SMB: a program
named `mount` stands for the one of the system, writes down what it was asked, and binds a folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from node_reporter.__main__ import main
from node_reporter.executor import binds, datastores
from node_reporter.executor.datastores import Datastores, StoreMount, StoreSettings
from node_reporter.executor.docker import arguments
from node_reporter.executor.executor import Allowed
from node_reporter.executor.runner import Limits, NotStarted
from node_reporter.executor.sandbox import job_user
from node_reporter.executor.state import ExecutorFolder, store_settings
from node_reporter.executor.volume_store import StoreUnusable
from node_reporter.identity import KeyUnreadable
from node_reporter.terminal import ConfigUnreadable
from tests.node_reporter.confined import MIB
from tests.node_reporter.executor.test_docker import grant
from tests.node_reporter.executor.test_executor import Make, World, world

__all__ = ["world"]

HERE, NFS, SMB = "10.0.0.7", "10.0.0.5", "files.example"
LEASE = f"lease_{1:0>32}"
SECRET = "s3cret, of smb"


def _reason() -> str | None:
    """Why nothing can be mounted here; None: it can."""
    if os.geteuid() != 0:
        return "not root: datastores are mounted by root alone"
    tried = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    return None if tried.returncode == 0 else "this root may not mount"


pytestmark = pytest.mark.skipif(_reason() is not None, reason=str(_reason()))


@dataclass
class Site:
    """`/` of the server at HERE is a folder of this machine."""

    exports: Path
    stores: Datastores
    mounts: Path

    @property
    def mounted(self) -> list[Path]:
        return binds.mounted_below(self.mounts)


@pytest.fixture
def site(tmp_path: Path) -> Generator[Site, None, None]:
    """`/dir2` with what is asked for, and beside it `/dir1`, which nobody is to see."""
    exports = tmp_path / "exports"
    for name in ("dir1", "dir2/subdir2", "dir2/out", "dir2/tmp"):
        (exports / name).mkdir(parents=True)
    (exports / "dir1/file").write_text("hidden\n")
    (exports / "dir2/subdir2/file").write_text("given\n")
    for name in ("dir2/out", "dir2/tmp"):
        (exports / name).chmod(0o777)
    mounts = tmp_path / "state" / "mounts"
    stores = made(mounts, {HERE: exports})
    stores.check()
    yield Site(exports, stores, mounts)
    for left in binds.mounted_below(mounts):
        binds.unmount(left, 10)


def made(mounts: Path, folders: dict[str, Path], *servers: str) -> Datastores:
    settings = StoreSettings(servers=frozenset(servers), folders=folders)
    return Datastores(settings, mounts, job_user(None))


def told(path: str = "/dir2/subdir2", use: str = "input", **changes: Any) -> dict[str, Any]:
    """What the server tells of one mount."""
    return {
        "name": "renders",
        "kind": "nfs",
        "address": HERE,
        "root_path": "/dir2",
        "path": path,
        "use": use,
        "at": "/anywhere",  # the node says itself where
        **changes,
    }


def ran(here: World, script: str, *mounts: dict[str, Any], number: str = "1") -> str:
    lease_id = here.server.asks(number, script, work={"mounts": list(mounts)})
    here.until_settled(lease_id)
    return lease_id


def declined(here: World, *mounts: dict[str, Any]) -> str:
    """Why work that mounts these was not started."""
    lease_id = ran(here, "echo started", *mounts)
    assert here.server.said(lease_id, "decline")
    assert "started\n" not in here.server.out(lease_id)
    return here.server.out(lease_id, "note")


# --- in the sandbox --------------------------------------------------------------------------


def test_c_36_work_reads_its_input_and_writes_output_and_scratch(world: Make, site: Site) -> None:
    here = world(datastores=site.stores)
    script = """
        cat /data/input/renders/subdir2/file; echo no > /data/input/renders/subdir2/new
        echo kept > /data/output/renders/out/frame; echo more > /data/scratch/renders/tmp/part
        cp /bin/true /data/scratch/renders/tmp/run; chmod 755 /data/scratch/renders/tmp/run
        /data/scratch/renders/tmp/run; echo $?; echo "$TALLYSTICK_STORES"
    """
    mounts = told(), told("/dir2/out", "output"), told("/dir2/tmp", "scratch")
    lease_id = ran(here, script, *mounts)
    given, code, variable = here.server.out(lease_id).splitlines()
    assert (given, code) == ("given", "126"), "what is in a store is no program"
    assert "Read-only file system" in here.server.out(lease_id, "stderr")
    assert (site.exports / "dir2/out/frame").read_text() == "kept\n"
    assert (site.exports / "dir2/tmp/part").read_text() == "more\n"
    assert [one["path"] for one in json.loads(variable)] == [
        "/data/input/renders/subdir2",
        "/data/output/renders/out",
        "/data/scratch/renders/tmp",
    ]
    assert site.mounted == []
    assert list(site.mounts.iterdir()) == []


def test_c_36_a_root_hides_what_lies_beside_it(world: Make, site: Site) -> None:
    """By names that the server told, and by links that lie in the store."""
    (site.exports / "dir2/up").symlink_to("../dir1")
    (site.exports / "dir2/absolute").symlink_to(site.exports / "dir1")
    (site.exports / "dir2/machine").symlink_to("/etc")
    (site.exports / "dir2/stays").symlink_to("subdir2")
    (site.exports / "out").symlink_to("/etc")
    here = world(datastores=site.stores)
    names = ["/dir1", "/dir2/../dir1", "/dir2/subdir2/../../dir1", "/", "/dir2x", "dir2/subdir2"]
    for path in names:
        assert "a path that is not below its root" in declined(here, told(path)), path
    for link in ("up", "absolute", "machine"):
        assert "leads out of it" in declined(here, told(f"/dir2/{link}")), link
    assert "leads out of it" in declined(here, told("/out", root_path="/out"))
    assert "No such file" in declined(here, told("/dir2/subdir2/absent"))
    assert "Not a directory" in declined(here, told("/dir2/subdir2/file"))
    assert site.mounted == []
    at = "/data/input/renders/stays"
    script = f"cat {at}/file; ls {at}/../.. ; cat {at}/../../dir1/file {at}/../up/file"
    assert here.server.out(ran(here, script, told("/dir2/stays"))) == "given\nrenders\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../etc"},
        {"name": ""},
        {"use": "input/../../etc"},
        {"kind": "ext4"},
        {"address": "-o"},
        {"address": "h,exec"},
        {"root_path": "/dir2/.."},
        {"root_path": "dir2"},
    ],
)
def test_c_36_nothing_else_that_the_server_tells_is_taken_as_it_is(
    site: Site, changes: dict[str, str]
) -> None:
    told_so = {name: value for name, value in told(**changes).items() if name != "at"}
    with pytest.raises(NotStarted, match="refused for"):
        site.stores.open(LEASE, (StoreMount(**told_so),))
    site.stores.close(LEASE)
    assert list(site.mounts.iterdir()) == []


def test_what_was_opened_is_bound_though_its_name_was_changed_meanwhile(site: Site) -> None:
    """Other work that may write in the store exchanges a folder for a link, between the two."""
    target = site.mounts / "target"
    target.mkdir()
    opened = binds.open_below(binds.open_folder(site.exports / "dir2"), "/subdir2")
    (site.exports / "dir2/subdir2").rename(site.exports / "dir2/away")
    (site.exports / "dir2/subdir2").symlink_to(site.exports / "dir1")
    binds.bind(opened, target, read_only=True)
    assert (target / "file").read_text() == "given\n"


def test_c_36_what_the_owner_mounted_to_be_read_is_not_written(site: Site) -> None:
    """By a job's output neither: the owner's mount says no, whatever the market says."""
    out = site.exports / "dir2/out"
    for words in (
        ["--bind", str(site.exports / "dir2"), str(out)],
        ["-o", "remount,bind,ro", str(out)],
    ):
        subprocess.run(["mount", *words], check=True)
    try:
        store = StoreMount(**_without_at(told("/dir2/out", "output")))
        (bound,) = site.stores.open(LEASE, (store,))
        with pytest.raises(OSError, match="Read-only"):
            (bound.folder / "new").write_text("x")
    finally:
        site.stores.close(LEASE)
        subprocess.run(["umount", out], check=True)


# --- letting go ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["exits", "is killed", "is limited", "is closed", "executor goes"])
def test_c_36_nothing_is_mounted_once_the_work_is_over(world: Make, site: Site, way: str) -> None:
    limits = Limits(memory_bytes=256 * MIB, folder_bytes=MIB, grace_s=0)
    here = world(Allowed(limits=limits), datastores=site.stores)
    end = {
        "exits": "exit 3",
        "is killed": "kill -9 $$",
        "is limited": "dd if=/dev/zero of=a bs=512k count=1; cp a b; cp a c; cp a d; sleep 60",
    }
    script = f"echo x > /data/output/renders/out/{LEASE}; echo up; {end.get(way, 'sleep 60')}"
    lease_id = here.server.asks("1", script, work={"mounts": [told("/dir2/out", "output")]})
    here.until(lambda: here.server.out(lease_id) == "up\n", "it runs")
    if way in ("is closed", "executor goes"):
        assert [one.name for one in site.mounted] == ["0"]
    if way == "executor goes":
        here.executor.close()
    else:
        if way == "is closed":
            here.server.closes(lease_id)
        here.until_settled(lease_id)
    assert site.mounted == []
    assert list(site.mounts.iterdir()) == []
    assert (site.exports / f"dir2/out/{LEASE}").read_text() == "x\n", "what it wrote is kept"


def test_c_36_what_a_killed_executor_left_mounted_is_let_go_at_the_next_start(site: Site) -> None:
    """Its files are touched by neither."""
    program = f"""if True:
        import os, signal
        from pathlib import Path
        from node_reporter.executor.datastores import *
        from node_reporter.executor.sandbox import job_user
        settings = StoreSettings(folders={{"{HERE}": Path("{site.exports}")}})
        stores = Datastores(settings, Path("{site.mounts}"), job_user(None))
        store = StoreMount(name="renders", kind="nfs", address="{HERE}", root_path="/dir2",
                           path="/dir2", use="output")
        stores.open("{LEASE}", (store,))
        (Path("{site.mounts}") / ".login-left").write_text("password=x")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    assert [one.parent.name for one in site.mounted] == [LEASE]
    made(site.mounts, {HERE: site.exports}).check()
    assert site.mounted == []
    assert list(site.mounts.iterdir()) == []
    assert (site.exports / "dir2/subdir2/file").read_text() == "given\n"


def test_c_36_what_was_left_is_let_go_where_the_owner_allows_no_datastores_any_more(
    site: Site,
) -> None:
    """The mount and the login stayed for ever: nothing looked, where there was no file."""
    folder = ExecutorFolder(site.mounts.parent)
    folder.remember(url="http://127.0.0.1:1", node_id="node_12345678", executor_key="ts_exec_a")
    site.stores.open(LEASE, (StoreMount(**_without_at(told())),))
    (site.mounts / ".login-left").write_text("password=x")
    words = ["exec", "--executor-state", str(folder.path), "--trusted", "--seconds", "1"]
    assert main(words) == 0
    assert site.mounted == []
    assert list(site.mounts.iterdir()) == []


def test_a_folder_of_the_executor_that_is_reached_through_a_link_is_unmounted(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(site.mounts.parent)
    stores = made(tmp_path / "link" / "mounts", {HERE: site.exports})
    stores.check()
    stores.open(LEASE, (StoreMount(**_without_at(told())),))
    assert stores.close(LEASE) == ""
    assert site.mounted == []


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """`mount` starts `mount.nfs`, which mounts."""
    started = tmp_path / "started"
    script = f"sh -c 'sleep 2; touch {started}' & echo $! > {tmp_path}/pid; wait"
    assert "took longer" in binds.bounded(["sh", "-c", script], 0.5)
    child = Path("/proc") / (tmp_path / "pid").read_text().strip()
    ends = time.monotonic() + 5
    while child.exists() and "Z" not in (child / "stat").read_text().rpartition(")")[2]:
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert not started.exists()


# --- servers ---------------------------------------------------------------------------------


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> Path:
    """`mount` for a file server: what it was asked, a line a word; then a folder is bound."""
    folder, asked = tmp_path / "bin", tmp_path / "asked"
    folder.mkdir()
    program = f"""#!/bin/sh
        [ "$1" = -t ] || exec /usr/bin/mount "$@"
        for word; do echo "$word" >> {asked}; target=$word; done
        login=${{4##*credentials=}}
        [ "$2" = cifs ] && {{ stat -c '%a %u' "$login"; cat "$login"; }} >> {asked}
        tr '\\0' ' ' < /proc/$$/cmdline >> {asked}; env >> {asked}
        exec /usr/bin/mount --bind {site.exports}/dir2 "$target"
    """
    for name in ("mount", "mount.nfs", "mount.cifs"):
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return asked


def test_c_36_a_server_of_nfs_is_mounted_with_its_root_and_without_rights(
    world: Make, site: Site, helper: Path
) -> None:
    (site.exports / "dir2/up").symlink_to("../dir1")
    stores = made(site.mounts, {}, NFS)
    here = world(datastores=stores)
    script = "cat /data/input/renders/subdir2/file; echo x > /data/output/renders/out/a"
    mounts = told(address=NFS), told("/dir2/out", "output", address=NFS)
    assert here.server.out(ran(here, script, *mounts)) == "given\n"
    words = helper.read_text().splitlines()
    for options in ("ro,nosuid,nodev,noexec,retry=0", "rw,nosuid,nodev,noexec,retry=0"):
        at = words.index(options)
        assert words[at - 3 : at + 2] == ["-t", "nfs", "-o", options, f"{NFS}:/dir2"]
    assert (site.exports / "dir2/out/a").read_text() == "x\n"
    assert "leads out of it" in declined(here, told("/dir2/up", address=NFS))
    assert site.mounted == []
    assert list(site.mounts.iterdir()) == []


def test_c_36_the_login_of_smb_is_in_a_file_for_root_alone_and_then_nowhere(
    world: Make, site: Site, helper: Path
) -> None:
    stores = made(site.mounts, {}, SMB)
    here = world(datastores=stores)
    login = {"kind": "smb", "address": SMB, "user": "farm", "password": SECRET}
    script = "cat /data/input/office/subdir2/file"
    mount = told("/share/in/subdir2", name="office", root_path="/share/in", **login)
    lease_id = ran(here, script, mount)
    assert here.server.out(lease_id) == "given\n", here.server.out(lease_id, "note")
    asked = helper.read_text()
    user = job_user(None)
    assert user is not None
    options = asked.splitlines()[3]
    wanted = "ro,nosuid,nodev,noexec,uid={},gid={},file_mode=0600,dir_mode=0700,credentials={}/"
    assert options.startswith(wanted.format(user.uid, user.gid, site.mounts))
    assert f"//{SMB}/share/in\n" in asked
    assert f"600 0\nusername=farm\npassword={SECRET}\n" in asked
    assert asked.count(SECRET) == 1, "in the file, not on a command line and in no variable"
    assert list(site.mounts.iterdir()) == []
    assert SECRET not in json.dumps(here.server.calls) + repr(StoreMount(**_without_at(mount)))


def _without_at(mount: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in mount.items() if name != "at"}


def test_a_share_is_the_first_name_where_the_root_is_the_whole_server(
    site: Site, helper: Path
) -> None:
    stores = made(site.mounts, {}, SMB)
    login = {"kind": "smb", "address": SMB, "user": "farm", "password": SECRET}
    store = StoreMount(**_without_at(told("/office/subdir2", root_path="/", **login)))
    (bound,) = stores.open(LEASE, (store,))
    assert f"//{SMB}/office\n" in helper.read_text()
    assert (bound.folder / "file").read_text() == "given\n"
    stores.close(LEASE)
    for changes, why in (
        ({"path": "/"}, "ask for a share"),
        ({"password": "a\npassword=b"}, "more than one line"),
        ({"password": None}, "without user and password"),
        ({"address": "2001:db8::5"}, "its IPv4 address"),
    ):
        other = made(site.mounts, {}, SMB, "2001:db8::5")
        with pytest.raises(NotStarted, match=why):
            other.open(LEASE, (replace(store, **changes),))
        other.close(LEASE)
    assert list(site.mounts.iterdir()) == []


def test_c_36_a_mount_that_fails_ends_the_start_with_the_reason(
    world: Make, site: Site, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was mounted before it is let go."""
    here = world(datastores=made(site.mounts, {HERE: site.exports}, NFS))
    assert "allows no datastore of 10.9.9.9" in declined(here, told(address="10.9.9.9"))
    mount = helper.parent / "bin" / "mount"
    mount.write_text("#!/bin/sh\necho 'mount.nfs: access denied by server' >&2\nexit 32\n")
    assert "access denied by server" in declined(here, told(), told(address=NFS, name="b"))
    monkeypatch.setattr(datastores, "MOUNT_SECONDS_MAX", 0.3)
    mount.write_text("#!/bin/sh\nexec sleep 60\n")
    assert "took longer than 0.3 s" in declined(here, told(address=NFS))
    (mount.parent / "mount.nfs").unlink()
    monkeypatch.setattr(datastores, "HELPER_FOLDERS", "")
    monkeypatch.setenv("PATH", f"{mount.parent}:/usr/bin:/bin")
    assert "mount.nfs is not there" in declined(here, told(address=NFS))
    assert site.mounted == []
    assert list(site.mounts.iterdir()) == []


def test_work_with_datastores_is_declined_where_the_owner_allows_none(world: Make) -> None:
    assert "mounts no datastores" in declined(world(), told())


# --- Docker ----------------------------------------------------------------------------------


def test_c_36_a_container_gets_the_mounted_folders(site: Site) -> None:
    """By its arguments: no server of Docker runs here."""
    stores = tuple(StoreMount(**_without_at(one)) for one in (told(), told("/dir2/out", "output")))
    bound = site.stores.open(LEASE, stores)
    argv = arguments("docker", grant(volumes=bound))
    place = site.mounts / LEASE
    assert f"{place}/0:/data/input/renders/subdir2:ro" in argv
    assert f"{place}/1:/data/output/renders/out" in argv
    assert (place / "0" / "file").read_text() == "given\n"
    with pytest.raises(OSError, match="Read-only"):
        (place / "0" / "new").write_text("x")
    assert site.stores.close(LEASE) == site.stores.close(LEASE) == ""


# --- what the owner says ---------------------------------------------------------------------


def test_the_owner_s_folders_are_apart_from_the_machine_and_from_the_executor(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/")
    for folder in ("/", str(tmp_path / "link"), str(site.mounts), str(tmp_path), "exports", "/no"):
        with pytest.raises(StoreUnusable):
            made(site.mounts, {HERE: Path(folder)}).check()


def test_the_owner_s_file_is_read_strictly(tmp_path: Path) -> None:
    folder = ExecutorFolder(tmp_path)
    assert store_settings(folder) is None
    folder.datastores.write_text('servers = ["10.0.0.5"]\n[folders]\n"10.0.0.7" = "/srv"\n')
    folder.datastores.chmod(0o644)
    with pytest.raises(KeyUnreadable):
        store_settings(folder)
    folder.datastores.chmod(0o600)
    found = store_settings(folder)
    assert found == StoreSettings(servers=frozenset({NFS}), folders={HERE: Path("/srv")})
    for wrong in ("servers = 1", "servers = [1]", "folders = 1", "[folders]\na = 1", "other = 1"):
        folder.datastores.write_text(wrong)
        with pytest.raises(ConfigUnreadable):
            store_settings(folder)


def test_the_program_says_at_its_start_that_a_folder_cannot_be_used(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ExecutorFolder(tmp_path / "state")
    folder.settings.write_text(
        'url = "http://127.0.0.1:1"\nnode_id = "node_12345678"\nexecutor = "e0e0e0e0e0e0e0e0"\n'
    )
    folder.datastores.write_text(f'[folders]\n"{HERE}" = "{site.exports}/absent"\n')
    folder.datastores.chmod(0o600)
    words = ["exec", "--executor-state", str(folder.path), "--trusted", "--seconds", "1"]
    assert main(words) == 1
    assert "is no folder with an absolute path" in capsys.readouterr().err
    folder.datastores.write_text(f'[folders]\n"{HERE}" = "{site.exports}"\n')
    assert main(words) == 0
    assert "work mounts the datastores" in capsys.readouterr().err
