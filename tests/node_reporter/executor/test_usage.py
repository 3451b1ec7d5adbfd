"""What work uses beside its GPU is measured where it runs: real programs, real or made-up groups.

Tolerance for a real program: processor time from 80 % of what it burned (before the first look and
after the last nothing is seen) to 130 % of it (its interpreter starts too).
"""

from __future__ import annotations

import os
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from node_reporter.executor import usage
from node_reporter.executor.usage import CGROUPS, Counters, Group, WorkMeter
from tests.node_reporter.confined import Ground, ground, needs_walls

LEASE = "lease_" + "0" * 32
BURN_S = 1.5
BURN = f"""
import time
kept = bytearray(48 * 1024 * 1024)
with open("file", "wb") as file:  # the work folder is where it starts
    file.write(bytes(4 * 1024 * 1024))
while time.process_time() < {BURN_S}:
    pass
time.sleep(1)
"""


def now_us() -> int:
    return time.monotonic_ns() // 1_000


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


@needs_walls
@pytest.mark.parametrize("root", [CGROUPS, Path("/nowhere")], ids=["groups", "processes"])
def test_a_real_program_behind_walls_is_metered(here: Ground, root: Path) -> None:
    """R-7: CPU, memory, storage and network of a program in the real sandbox: with the groups of
    this machine where it lets us make some, and by its processes alone.
    """
    started_us = now_us()
    run = here.start("/usr/bin/python3", "-c", BURN)
    assert run.pid is not None
    folder = here.jobs / "lease_test"
    meter = WorkMeter.begin(LEASE, "boot", started_us, run.pid, folder, root=root)
    seen: list[Counters] = []
    while run.poll() is None:
        seen.append(meter.look(now_us()))
        time.sleep(0.05)
    run.close()
    meter.close()
    last = seen[-1]
    allowed = {"proc"} if meter.group is None else {"proc", f"cgroup{meter.group.version}"}
    assert last.source in allowed
    assert last.cpu_us is not None
    assert 0.8 * BURN_S * 1e6 < last.cpu_us < 1.3 * BURN_S * 1e6 + 300_000
    assert last.memory_byte_us is not None
    elapsed_us = last.mono_us - last.start_us
    assert last.memory_byte_us / elapsed_us > 30 * 1024 * 1024
    assert last.storage_byte_us is not None
    assert last.storage_byte_us > 4 * 1024 * 1024 * 500_000
    assert (last.received_bytes, last.sent_bytes) == (0, 0), "it has no network, and moved nothing"
    for before, after in pairwise(seen):
        assert (before.cpu_us or 0) <= (after.cpu_us or 0), "a counter only grows"
        assert (before.memory_byte_us or 0) <= (after.memory_byte_us or 0)


def test_groups_of_both_versions_are_read_where_the_kernel_tells_them(tmp_path: Path) -> None:
    second = tmp_path / "v2"
    (second / "work").mkdir(parents=True)
    (second / "cgroup.controllers").write_text("cpu memory")
    (second / "work" / "cpu.stat").write_text("usage_usec 1234\nuser_usec 1000\n")
    (second / "work" / "memory.current").write_text("4096\n")
    group = Group.make(second, "work")
    assert group is not None
    assert (group.version, group.cpu_us(), group.memory_bytes()) == (2, 1234, 4096)
    first = tmp_path / "v1"
    for name in ("cpuacct", "memory"):
        (first / name / "work").mkdir(parents=True)
    (first / "cpuacct" / "work" / "cpuacct.usage").write_text("5678000\n")
    (first / "memory" / "work" / "memory.usage_in_bytes").write_text("8192\n")
    group = Group.make(first, "work")
    assert group is not None
    assert (group.version, group.cpu_us(), group.memory_bytes()) == (1, 5678, 8192)
    assert Group.make(tmp_path / "none", "work") is None
    (second / "work" / "cpu.stat").unlink()
    assert Group.make(second, "work") is None, "a group that tells nothing is none"


def test_a_process_that_cannot_be_seen_from_here_is_not_taken_for_ourselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To kill process 0 is to kill the executor and all that is in its group."""
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _number: killed.append(pid))
    monkeypatch.setattr(usage, "END_SECONDS_MAX", 0.05)
    (tmp_path / "cgroup.procs").write_text("0\n4194999\n")
    Group(2, tmp_path, tmp_path).end()
    assert set(killed) == {4194999}


def test_the_group_that_work_was_started_in_is_its_makers(tmp_path: Path) -> None:
    """Its processes are in it already, and whoever made it removes it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    (tmp_path / "work" / "cpu.stat").write_text("usage_usec 5000000\n")
    group = Group.make(tmp_path, "work")
    assert group is not None
    meter = WorkMeter.begin(LEASE, "boot", 0, os.getpid(), tmp_path / "files", group, tmp_path)
    told = meter.look(1)
    assert told.source == "cgroup2"
    (tmp_path / "work" / "cpu.stat").unlink()
    meter.close()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["work"]
    assert list((tmp_path / "work").iterdir()) == [], "nothing was moved"
    group.remove()
    assert not (tmp_path / "work").exists()


CONTAINER = "c0ffee" * 10 + "beef"


def in_group(folder: Path, pid: int, path: str) -> dict[str, Path]:
    """A kernel of cgroup 2 in which this process is in the group of this path."""
    proc, root = folder / "proc", folder / "cgroup"
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cgroup").write_text(f"0::{path}\n")
    (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (root / "cgroup.controllers").write_text("cpu memory")
    (root / path.lstrip("/") / "cpu.stat").write_text("usage_usec 5000000\n")
    (root / path.lstrip("/") / "memory.current").write_text("4096\n")
    return {"root": root, "proc": proc}


@pytest.mark.parametrize(
    "path", [f"/docker/{CONTAINER}", f"/system.slice/docker-{CONTAINER}.scope"]
)
def test_work_in_a_container_is_counted_in_its_group_from_the_first_look_on(
    tmp_path: Path, path: str
) -> None:
    with subprocess.Popen(["sleep", "60"]) as work:
        kernel = in_group(tmp_path, work.pid, path)
        at_us = now_us()
        meter = WorkMeter.join(LEASE, "boot", at_us, work.pid, CONTAINER, tmp_path, **kernel)
        assert meter is not None
        assert meter.look(at_us).cpu_us == 0, "what it used before belongs to nobody's bill"
        stat = kernel["root"] / path.lstrip("/") / "cpu.stat"
        stat.write_text("usage_usec 7500000\n")
        told = meter.look(at_us + 1_000_000)
        assert (told.cpu_us, told.memory_byte_us, told.source) == (
            2_500_000,
            4096 * 10**6,
            "cgroup2",
        )
        meter.close()
        assert stat.exists(), "the group is its server's"
        work.kill()


def test_a_container_of_cgroup_1_is_found_by_its_controllers(tmp_path: Path) -> None:
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "7").mkdir(parents=True)
    path = f"docker/{CONTAINER}"
    lines = (f"4:cpu,cpuacct:/{path}", f"3:memory:/{path}", "1:name=systemd:/elsewhere")
    (proc / "7" / "cgroup").write_text("\n".join(lines) + "\n")
    for name, file, told in (
        ("cpuacct", "cpuacct.usage", "9000000\n"),
        ("memory", "memory.usage_in_bytes", "512\n"),
    ):
        (root / name / path).mkdir(parents=True)
        (root / name / path / file).write_text(told)
    group = Group.of(7, CONTAINER, root, proc)
    assert group is not None
    assert (group.version, group.cpu_us(), group.memory_bytes()) == (1, 9_000, 512)


def test_a_process_that_only_has_the_number_of_a_container_elsewhere_is_not_metered(
    tmp_path: Path,
) -> None:
    """Docker's server may be on another machine: its process ids mean others here."""
    kernel = in_group(tmp_path, 7, "/user.slice/other")
    assert WorkMeter.join(LEASE, "boot", 0, 7, CONTAINER, tmp_path, **kernel) is None
    assert WorkMeter.join(LEASE, "boot", 0, 8, CONTAINER, tmp_path, **kernel) is None
    away = in_group(tmp_path / "b", 7, f"/docker/../{CONTAINER}")
    assert WorkMeter.join(LEASE, "boot", 0, 7, CONTAINER, tmp_path, **away) is None
