"""Folders that are opened and bound by the kernel alone, so that no name is read twice. Linux.

    open_below(folder, path)  is in the folder, whatever links and `..` lie on the way
    bind(opened, target)      what is bound is what was opened; it has no programs, no devices, and
                              is not written where that is not allowed, by us or by its owner

A name that was looked at and then used can be changed between the two by other work that may write
there. So a folder is opened once, with `RESOLVE_BENEATH`: a link that stays below is followed, one
that leads out is refused, an absolute one too. It is bound through its descriptor.
Source: Linux, openat2(2), mount(2), proc_pid_mountinfo(5).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import struct
import subprocess
import threading
from pathlib import Path

OPENAT2 = 437  # on every architecture
_BENEATH, _NO_MAGIC_LINKS = 0x08, 0x02
_NO_SETUID, _NO_DEVICES, _NO_PROGRAMS, _READ_ONLY = 2, 4, 8, 1
_REMOUNT, _BIND, _PRIVATE = 32, 4_096, 1 << 18
TRIES = 16
_ESCAPED = re.compile(r"\\([0-7]{3})")


def open_folder(path: Path) -> int:
    """A folder that the owner named; links on the way are the owner's. Raises OSError."""
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def open_below(folder: int, path: str) -> int:
    """A folder at a path below one that is open. Raises OSError: EXDEV, where it leads out."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    how = struct.pack("QQQ", flags, 0, _BENEATH | _NO_MAGIC_LINKS)
    name = (path.strip("/") or ".").encode()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = 0
    for _ in range(TRIES):
        found = libc.syscall(
            ctypes.c_long(OPENAT2),
            ctypes.c_long(folder),
            ctypes.c_char_p(name),
            ctypes.c_char_p(how),
            ctypes.c_size_t(len(how)),
        )
        if found >= 0:
            return int(found)
        number = ctypes.get_errno()
        if number != errno.EAGAIN:  # something was renamed meanwhile
            break
    raise OSError(number, os.strerror(number), path)


def bind(folder: int, target: Path, *, read_only: bool) -> None:
    """What is open appears at a folder too, with less rights. Raises OSError."""
    # A bind mount has rights of its own: what its owner mounted to be read stays so.
    read_only = read_only or bool(os.fstatvfs(folder).f_flag & os.ST_RDONLY)
    _mount(f"/proc/self/fd/{folder}", target, _BIND)
    _mount(None, target, _PRIVATE)
    less = _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS | (_READ_ONLY if read_only else 0)
    _mount(None, target, _REMOUNT | _BIND | less)


def _mount(source: str | None, target: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    told = None if source is None else source.encode()
    done = libc.mount(told, os.fsencode(target), None, ctypes.c_ulong(flags), None)
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def mounted_below(folder: Path) -> list[Path]:
    """What is mounted below a folder, the last mounted first."""
    lines = Path("/proc/self/mountinfo").read_bytes().decode(errors="surrogateescape").splitlines()
    places = [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), one.split()[4]) for one in lines]
    below = [Path(one) for one in places if one.startswith(f"{folder}/")]
    return below[::-1]


def unmount(target: Path, seconds: float) -> str:
    """Let go of what is mounted at a folder; why it could not be done, or nothing. Work that still
    has it open keeps it (`--lazy`).
    """
    return bounded(["umount", "--lazy", str(target)], seconds)


def bounded(argv: list[str], seconds: float) -> str:
    """Run a program of the system; what is wrong, or nothing. One that hangs in the kernel, because
    a server does not answer, is left behind: waiting for it would stop everything else.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        process = subprocess.Popen(  # noqa: S603
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # With what it started: `mount.nfs` would go on, and mount it when nobody waits any more.
        os.killpg(process.pid, signal.SIGKILL)
        assert process.stderr is not None
        process.stderr.close()
        threading.Thread(target=process.wait, daemon=True).start()
        return f"{argv[0]} took longer than {seconds:g} s"
    lines = said.decode(errors="replace").strip().splitlines()
    return "" if process.returncode == 0 else lines[-1] if lines else f"{argv[0]} failed"
