"""A job as a process that sees nothing but what it was granted. Linux, without root.

Bubblewrap gives it namespaces of its own: users, processes, network, IPC, mounts. It finds the
system's programs read-only, an empty /work and /tmp of its own, and the device files of its lease;
no other file of the machine, no process, no variable and no network. Limits and `no_new_privs` are
set before (`launch.py`); all of its processes live in one process namespace, so ending the first of
them ends them all, whatever they forked.

`TrustedRunner` has limits and ends the whole tree, and hides nothing: it is for pools whose renters
are trusted, and only runs where the owner says so.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from node_reporter.executor import launch, nameless, seccomp
from node_reporter.executor.runner import Grant, NotStarted, RunnerUnusable, Using
from node_reporter.executor.usage import resident_of

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
)
SHARED_MEMORY_PARTS = 4
"""Shared memory files hold a fourth of the memory at most."""
INFO_SECONDS_MAX = 10
JOB_USER = "nobody"
PRLIMIT = "/usr/bin/prlimit"
OURS = "/opt/tallystick/bin"
"""Where a job finds `python`, on machines that call it `python3` alone."""


@dataclass(frozen=True, slots=True)
class JobUser:
    """Whom jobs run as; None: as ourselves."""

    uid: int
    gid: int


def job_user(name: str | None) -> JobUser | None:
    """Root never runs a job: started as root, jobs are another user's. Raises RunnerUnusable."""
    if os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam(name or JOB_USER)
    except KeyError:
        raise RunnerUnusable(f"there is no user {name or JOB_USER}") from None
    if found.pw_uid == 0:
        raise RunnerUnusable("root runs no jobs: name another user with --job-user")
    return JobUser(found.pw_uid, found.pw_gid)


class ProcessRun:
    """A started process and everything below it."""

    def __init__(self, process: subprocess.Popen[bytes], first: int | None, folder: Path) -> None:
        self._process = process
        self._device = folder.stat().st_dev
        self._first = first  # of its process namespace, as seen from outside; None: no namespace
        self._first_fd = None if first is None else _pidfd(first)

    @property
    def outputs(self) -> tuple[int, int]:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        return self._process.stdout.fileno(), self._process.stderr.fileno()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def container(self) -> str | None:
        return None

    def poll(self) -> int | None:
        code = self._process.poll()
        if code is None or not self._namespace_is_empty():
            return None
        return code if code >= 0 else 128 - code

    def _namespace_is_empty(self) -> bool:
        """Its first process is over only when every other one is."""
        if self._first_fd is None:
            return True
        readable, _, _ = select.select([self._first_fd], [], [], 0)
        if readable:
            os.close(self._first_fd)
            self._first_fd = None
        return bool(readable)

    def ask_to_stop(self) -> None:
        """To the job itself: the child of its namespace's first process, or of its supervisor."""
        if self._first is None:
            self._process.terminate()
            return
        for pid in launch.descendants(self._first)[:1]:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    def end(self) -> None:
        if self._first_fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first_fd, signal.SIGKILL)
        if self._first is None:
            # The supervisor ends what is below it, and itself.
            self._process.send_signal(signal.SIGUSR1)
            return
        self._process.kill()

    def using(self) -> Using:
        """Of the whole tree: resident memory and files of memory, processes, deleted files."""
        below = launch.descendants(self._process.pid)
        held = nameless.held(below, self._device)
        seen = [resident_of(pid) for pid in below]
        resident = sum(all_of_it for all_of_it, _ in seen)
        own = sum(all_of_it - shared for all_of_it, shared in seen)
        return Using(
            # A mapped file of memory is resident too: it counts once.
            max(resident, own + held.memory_bytes),
            len(below),
            held.disk_bytes,
            unseen=held.unseen - {self._first},
        )

    def close(self) -> None:
        close_outputs(self._process)


def close_outputs(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


class SandboxRunner:
    """Bubblewrap around every job."""

    name = "process"

    def __init__(self, jobs: Path, user: JobUser | None = None) -> None:
        """`jobs`: the folder under which the folders of jobs are made."""
        self._jobs = jobs
        self._user = user

    def takes(self, image: str | None) -> bool:
        return image is None

    def check(self) -> None:
        """Start something harmless in it, as a job would be. Raises RunnerUnusable."""
        if sys.platform != "linux":
            raise RunnerUnusable("confinement needs Linux")
        if shutil.which("bwrap") is None:
            raise RunnerUnusable("bubblewrap is not installed: apt-get install bubblewrap")
        self._write_accounts()
        folder = make_folder(self._jobs, "check", self._user)
        grant = Grant(
            lease_id="check",
            command=("true",),
            image=None,
            environment={"PATH": PATH},
            folder=folder,
            device_ids=(),
        )
        run = self.start(grant)
        assert isinstance(run, ProcessRun)
        _, errors = run._process.communicate(timeout=INFO_SECONDS_MAX)
        shutil.rmtree(folder, ignore_errors=True)
        if run._process.returncode != 0:
            said = errors.decode(errors="replace").strip().splitlines()
            raise RunnerUnusable(f"bubblewrap does not work here: {said[-1] if said else '?'}")

    def forget(self, lease_id: str) -> None:
        """The walls fell with the executor, and all within them ended."""

    def start(self, grant: Grant) -> ProcessRun:
        read_end, write_end = os.pipe()
        filter_fd = _filter()
        told_fd = _told_inside(grant.variables)
        kept = tuple(one for one in (write_end, filter_fd, told_fd) if one is not None)
        try:
            argv = self.arguments(grant, write_end, filter_fd, told_fd)
            process = _started(argv, grant, self._user, keep=kept)
        finally:
            for each in kept:
                os.close(each)
        with os.fdopen(read_end, "rb") as told:
            first = _first_process(told.fileno())
        return ProcessRun(process, first if first is not None else process.pid, grant.folder)

    def arguments(
        self, grant: Grant, info_fd: int, filter_fd: int | None = None, told_fd: int | None = None
    ) -> list[str]:
        """The command line of bubblewrap. No variable is in it: others can read command lines.
        `told_fd`: a file with those that are set inside.
        """
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise NotStarted("bubblewrap is not installed")
        argv = [
            bwrap,
            "--unshare-all",
            "--unshare-user",
            "--disable-userns",
            "--uid",
            "1000",
            "--gid",
            "1000",
            "--hostname",
            "lease",
            "--cap-drop",
            "ALL",
            "--new-session",
            "--die-with-parent",
            "--info-fd",
            str(info_fd),
        ]
        argv += ["--share-net"] if grant.network else []
        argv += [] if filter_fd is None else ["--seccomp", str(filter_fd)]
        argv += self._files(grant)
        argv += [] if told_fd is None else ["--args", str(told_fd)]
        argv += ["--chdir", "/work", "--"]
        if Path(PRLIMIT).exists():
            # Inside, where its own processes alone are counted: outside, all of the user's are.
            argv += [PRLIMIT, f"--nproc={grant.limits.processes}", "--"]
        return [*argv, *grant.command]

    def _files(self, grant: Grant) -> list[str]:
        argv = ["--proc", "/proc", "--dev", "/dev"]
        for path in SYSTEM_FOLDERS:
            if Path(path).is_symlink():
                argv += ["--symlink", str(Path(path).readlink()), path]
            else:
                argv += ["--ro-bind-try", path, path]
        for path in (*SYSTEM_FILES, *(NETWORK_FILES if grant.network else ())):
            argv += ["--ro-bind-try", path, path]
        python = shutil.which("python3", path=PATH)
        if python is not None and shutil.which("python", path=PATH) is None:
            argv += ["--symlink", python, f"{OURS}/python"]
        for name in ("passwd", "group"):
            argv += ["--ro-bind-try", str(self._jobs / f".{name}"), f"/etc/{name}"]
        for path in grant.device_files:
            argv += ["--dev-bind", path, path]
        shared = str(grant.limits.memory_bytes // SHARED_MEMORY_PARTS)
        argv += ["--size", shared, "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
        argv += ["--bind", str(grant.folder / "work"), "/work"]
        argv += ["--bind", str(grant.folder / "tmp"), "/tmp"]  # noqa: S108
        for path in grant.read_only:
            argv += ["--ro-bind", path, path]
        for volume in grant.volumes:
            argv += ["--ro-bind" if volume.read_only else "--bind", str(volume.folder), volume.path]
        return [*argv, "--remount-ro", "/dev", "--remount-ro", "/"]

    def _write_accounts(self) -> None:
        """Names for the one user a job sees: programs look them up."""
        for name, line in (
            ("passwd", "lease:x:1000:1000:lease:/work:/bin/sh\n"),
            ("group", "lease:x:1000:\n"),
        ):
            path = self._jobs / f".{name}"
            path.write_text(line)
            path.chmod(0o644)


def _filter() -> int | None:
    """The filter of system calls, to be read from a pipe; None where none is written for this
    architecture.
    """
    program = seccomp.program(platform.machine())
    if program is None:
        return None
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as told:
        told.write(program)
    return read_end


def _told_inside(variables: Mapping[str, str]) -> int | None:
    """A file of memory with bubblewrap's arguments that set these; None where there are none.

    Not in our own environment: LD_PRELOAD there would run a renter's code outside of the walls.
    """
    if not variables:
        return None
    words = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    handle = os.memfd_create("variables")
    with os.fdopen(os.dup(handle), "wb") as told:
        told.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _first_process(info_fd: int) -> int | None:
    """What bubblewrap tells of the process it started; None: it told nothing, so it failed."""
    text = b""
    while select.select([info_fd], [], [], INFO_SECONDS_MAX)[0]:
        more = os.read(info_fd, 4_096)
        text += more
        if not more or b"}" in text:
            break
    try:
        return int(json.loads(text)["child-pid"])
    except (ValueError, KeyError):
        return None


class TrustedRunner:
    """Limits and an end for the whole tree; no walls. Only where the owner trusts every renter."""

    name = "trusted"

    def __init__(self, user: JobUser | None = None) -> None:
        self._user = user

    def takes(self, image: str | None) -> bool:
        return image is None

    def check(self) -> None:
        if sys.platform != "linux":
            raise RunnerUnusable("the executor needs Linux")

    def forget(self, lease_id: str) -> None:
        """Its first process ended with the executor; the others are in the group of the lease."""

    def start(self, grant: Grant) -> ProcessRun:
        if grant.volumes:
            raise NotStarted("without walls around it a job mounts no volume")
        told_fd = _told_to_launcher(grant.variables)
        keep = () if told_fd is None else (told_fd,)
        try:
            process = _started(
                list(grant.command), grant, self._user, keep=keep, supervise=True, told_fd=told_fd
            )
        finally:
            for each in keep:
                os.close(each)
        return ProcessRun(process, None, grant.folder)


def _told_to_launcher(variables: Mapping[str, str]) -> int | None:
    """A file of memory that the launcher reads once it has let go of its rights."""
    if not variables:
        return None
    handle = os.memfd_create("variables")
    with os.fdopen(os.dup(handle), "wb") as told:
        told.write(json.dumps(dict(variables)).encode())
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


PATH = f"/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:{OURS}"


def _started(
    argv: list[str],
    grant: Grant,
    user: JobUser | None,
    *,
    keep: tuple[int, ...] = (),
    supervise: bool = False,
    told_fd: int | None = None,
) -> subprocess.Popen[bytes]:
    """The launcher, which becomes `argv`. Raises NotStarted."""
    told = {
        "argv": argv,
        "limits": asdict(grant.limits),
        "keep": keep,
        "supervise": supervise,
        "told_fd": told_fd,
        "variables": sorted(grant.environment),
        "user": None if user is None else [user.uid, user.gid],
        "groups": grant.groups,
        "executor": os.getpid(),
    }
    launcher = [sys.executable, "-I", "-S", launch.__file__, json.dumps(told)]
    try:
        return subprocess.Popen(  # noqa: S603
            launcher,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(grant.environment),
            cwd=grant.folder / "work",
            pass_fds=keep,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotStarted(str(error)) from error


def make_folder(jobs: Path, name: str, user: JobUser | None) -> Path:
    """A new folder of a job with its `work` and `tmp`; an old one of this name goes."""
    folder = jobs / name
    shutil.rmtree(folder, ignore_errors=True)
    for path in (folder, folder / "work", folder / "tmp"):
        path.mkdir(mode=0o700)
        if user is not None:
            os.chown(path, user.uid, user.gid)
    return folder
