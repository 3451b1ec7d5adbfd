"""The filter of system calls, tried from inside the real sandbox."""

from __future__ import annotations

import errno
import json
import platform
import sys
from pathlib import Path

import pytest

from node_reporter.executor.seccomp import AUDIT, CLONE, CLONE3, DENIED, FAMILIES, SOCKETS, program
from tests.node_reporter.confined import Ground, ground, needs_walls

TRY = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno()
print(json.dumps([errno_of(*call) for call in json.loads(sys.argv[1])]))
"""
ORDINARY = """
import subprocess, threading
thread = threading.Thread(target=print, args=("a thread",))
thread.start(); thread.join()
print(subprocess.run(["echo", "a child"], capture_output=True, text=True).stdout.strip())
"""
knows = pytest.mark.skipif(
    platform.machine() not in AUDIT, reason="no filter is written for this architecture"
)


@needs_walls
@knows
def test_a_job_looks_into_nobody_mounts_nothing_and_loads_nothing(tmp_path: Path) -> None:
    """Each of the denied calls; ptrace and perf_event_open would work for a program's own."""
    on: Ground = ground(tmp_path)
    denied = DENIED[platform.machine()]
    done = on.run("python3", "-c", TRY, json.dumps([[one] for one in denied.values()]))
    assert done.code == 0, done.err
    told = dict(zip(denied, json.loads(done.out), strict=True))
    assert told == dict.fromkeys(denied, errno.EPERM)


@needs_walls
@knows
@pytest.mark.parametrize("flag", [0x00020000, 0x10000000, 0x20000000, 0x40000000])
def test_a_job_makes_no_namespace_of_any_kind(flag: int, tmp_path: Path) -> None:
    calls = [[CLONE[platform.machine()], flag, 0, 0, 0, 0], [CLONE3, 0, 0]]
    done = ground(tmp_path).run("python3", "-c", TRY, json.dumps(calls))
    assert json.loads(done.out) == [errno.EPERM, errno.ENOSYS], done.err


@needs_walls
@knows
def test_s_l20_a_job_has_sockets_of_the_usual_families_and_of_no_others(tmp_path: Path) -> None:
    """VSOCK, which no network namespace holds, ALG, PACKET and the rest fail as unknown; io_uring
    stands among the calls that are denied.
    """
    assert {425, 426, 427} <= set(DENIED[platform.machine()].values())
    calls = [
        [number, family, kind, 0, 0]
        for number in SOCKETS[platform.machine()]
        for family in range(46)
        for kind in (1, 3)
    ]
    done = ground(tmp_path).run("python3", "-c", TRY, json.dumps(calls))
    assert done.code == 0, done.err
    for (_, family, *_), told in zip(calls, json.loads(done.out), strict=True):
        assert (family in FAMILIES) or told == errno.EAFNOSUPPORT, family
    (tmp_path / "b").mkdir()
    usual = "import socket as s; s.socketpair(); [s.socket(f) for f in (s.AF_UNIX, s.AF_INET)]"
    assert ground(tmp_path / "b").run("python3", "-c", usual).code == 0


@needs_walls
def test_threads_and_children_are_what_they_were(tmp_path: Path) -> None:
    done = ground(tmp_path).run("python3", "-c", ORDINARY)
    assert (done.code, done.out) == (0, "a thread\na child\n"), done.err


@pytest.mark.parametrize("machine", AUDIT)
def test_the_program_is_whole_instructions_and_short_enough_to_jump_in(machine: str) -> None:
    told = program(machine)
    assert told is not None
    assert len(told) % 8 == 0
    assert len(told) // 8 < 4_096
    assert len(set(DENIED[machine].values())) == len(DENIED[machine])
    assert set(DENIED["x86_64"]) == set(DENIED["aarch64"]), "the same calls everywhere"
    assert program("riscv64") is None
    assert sys.byteorder == "little"
