"""A filter of system calls for jobs: a small program for the kernel, written here by hand.

    a call of another architecture            ends the job
    a denied call                             fails with EPERM; clone3 with ENOSYS, so that the C
                                              library takes clone, whose flags can be looked at
    clone with a flag for a new namespace     fails with EPERM
    socket and socketpair of another family   fail with EAFNOSUPPORT; UNIX, INET, INET6 and NETLINK
                                              are there
    every other call                          is allowed

A list of what is denied, not of what is allowed: jobs are programs of renters, and the walls are
bubblewrap's. Denied is what looks into other processes, mounts, keeps keys in the kernel, loads
programs or modules into it, makes namespaces, and makes calls past this filter (io_uring). Sockets
of families such as VSOCK leave the network namespace. Source: Linux, seccomp(2) and filter.h.
"""

from __future__ import annotations

import errno
import struct

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}
"""`socket` and `socketpair`."""
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_NEW = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
}
DENIED = {
    "x86_64": {
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "perf_event_open": 298,
        "mount": 165,
        "umount2": 166,
        "pivot_root": 155,
        "open_by_handle_at": 304,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "bpf": 321,
        "userfaultfd": 323,
        "kexec_load": 246,
        "kexec_file_load": 320,
        "init_module": 175,
        "finit_module": 313,
        "delete_module": 176,
        "unshare": 272,
        "setns": 308,
        "reboot": 169,
        "swapon": 167,
        "acct": 163,
        **_NEW,
    },
    "aarch64": {
        "ptrace": 117,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "perf_event_open": 241,
        "mount": 40,
        "umount2": 39,
        "pivot_root": 41,
        "open_by_handle_at": 265,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_load": 104,
        "kexec_file_load": 294,
        "init_module": 105,
        "finit_module": 273,
        "delete_module": 106,
        "unshare": 97,
        "setns": 268,
        "reboot": 142,
        "swapon": 224,
        "acct": 89,
        **_NEW,
    },
}


def program(machine: str) -> bytes | None:
    """The filter for an architecture as `platform.machine` names it; None: it is not known here."""
    if machine not in AUDIT:
        return None
    calls = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, AUDIT[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        calls += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _KILL)]
    for number in DENIED[machine].values():
        calls += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _FAIL | errno.EPERM)]
    calls += [_step(_EQUAL, CLONE3, 0, 1), _step(_RETURN, _FAIL | errno.ENOSYS)]
    for number in SOCKETS[machine]:
        calls += [_step(_EQUAL, number, 0, len(FAMILIES) + 3), _step(_LOAD, _FIRST_ARGUMENT)]
        left = len(FAMILIES)
        calls += [_step(_EQUAL, one, left - place, 0) for place, one in enumerate(FAMILIES)]
        calls += [_step(_RETURN, _FAIL | errno.EAFNOSUPPORT), _step(_RETURN, _ALLOW)]
    calls += [
        _step(_EQUAL, CLONE[machine], 0, 3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, NAMESPACES, 0, 1),
        _step(_RETURN, _FAIL | errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(calls)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction; the jumps count the instructions that are skipped."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
