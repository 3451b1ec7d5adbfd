"""What the work of a lease has used so far: processor, memory, its folder, the network. Linux.

    every counter only grows from the start of the work on;   None: it cannot be known here
    cpu_us        the cgroup's usage; or the sum over processes of the most seen of each
                  of a container from the first look on: its server starts it, not we
    *_byte_us     sum over looks of (bytes at the look before x time since)
    bytes         of the work's own network namespace, loopback left out

A cgroup of its own (version 2, or 1 where the machine has that) counts exactly, also what has
ended. Where none can be made, processes are added up from /proc: what one used after the last look
at it is lost, in the renter's favour. Work that shares the machine's network cannot be told from
others' bytes: None.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from node_reporter.executor import launch
from node_reporter.executor.nameless import BLOCK_BYTES

CPU_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CGROUPS = Path("/sys/fs/cgroup")
KEPT_S = 3_600
"""So long the last counters of work that is over wait for the reporter to sign them."""
FILES_MAX = 1_000
END_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What was used from the start of the work up to a moment of this boot."""

    lease_id: str
    boot: str
    start_us: int
    mono_us: int
    cpu_us: int | None
    memory_byte_us: int | None
    storage_byte_us: int | None
    received_bytes: int | None
    sent_bytes: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Group:
    """A group of processes of the kernel: where its processor and its memory are told."""

    version: int
    cpu: Path
    memory: Path
    pids: Path | None = None  # of version 1; of version 2 it is the same folder
    is_ours: bool = True

    @classmethod
    def of(
        cls, pid: int, container: str, root: Path = CGROUPS, proc: Path = Path("/proc")
    ) -> Group | None:
        """The one that a container's server made for it; None where it tells nothing, or where the
        process of this number is not in that container: then it runs on another machine.
        """
        found = groups_of(pid, container, proc)
        if (root / "cgroup.controllers").exists() and "" in found:
            group = cls(2, root / found[""], root / found[""], is_ours=False)
        elif "cpuacct" in found and "memory" in found:
            cpu, memory = root / "cpuacct" / found["cpuacct"], root / "memory" / found["memory"]
            group = cls(1, cpu, memory, is_ours=False)
        else:
            return None
        return group if group.cpu_us() is not None else None

    @classmethod
    def make(cls, root: Path, name: str) -> Group | None:
        """A new one below `root`; None where this machine or this user may not."""
        try:
            if (root / "cgroup.controllers").exists():
                found = cls(2, root / name, root / name)
            elif (root / "cpuacct").is_dir() and (root / "memory").is_dir():
                pids = root / "pids" / name if (root / "pids").is_dir() else None
                found = cls(1, root / "cpuacct" / name, root / "memory" / name, pids)
            else:
                return None
            for folder in found.folders:
                folder.mkdir(exist_ok=True)
        except OSError:
            return None
        return found if found.cpu_us() is not None else None

    @property
    def folders(self) -> set[Path]:
        """One of version 2, one for each controller of version 1."""
        return {self.cpu, self.memory} | ({self.pids} if self.pids is not None else set())

    @property
    def doors(self) -> tuple[str, ...]:
        """The files through which a process joins it."""
        return tuple(sorted(str(folder / "cgroup.procs") for folder in self.folders))

    def limit(self, memory_bytes: int, processes: int) -> bool:
        """Have the kernel hold all that is in it to these limits; False where it does not."""
        memory = {1: "memory.limit_in_bytes", 2: "memory.max"}[self.version]
        try:
            (self.memory / memory).write_text(str(memory_bytes))
            ((self.pids or self.memory) / "pids.max").write_text(str(processes))
        except OSError:
            return False
        swap = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}[self.version]
        with suppress(OSError):  # where the kernel counts no swap there is none to hold
            (self.memory / swap).write_text(str(memory_bytes if self.version == 1 else 0))
        return True

    def ran_out(self) -> bool:
        """Whether the kernel ended a process in it for want of memory."""
        name = {1: "memory.oom_control", 2: "memory.events"}[self.version]
        try:
            told = dict(line.split() for line in (self.memory / name).read_text().splitlines())
            return int(told["oom_kill"]) > 0
        except (OSError, ValueError, KeyError):
            return False

    def take(self, pids: list[int]) -> bool:
        """Put processes into it; False when one could not be: it would count only a part."""
        try:
            for folder in self.folders:
                for pid in pids:
                    with suppress(ProcessLookupError):
                        (folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    def cpu_us(self) -> int | None:
        """Processor time of everything that was ever in it."""
        try:
            if self.version == 1:
                return int((self.cpu / "cpuacct.usage").read_text()) // 1_000
            told = dict(line.split() for line in (self.cpu / "cpu.stat").read_text().splitlines())
            return int(told["usage_usec"])
        except (OSError, ValueError, KeyError):
            return None

    def memory_bytes(self) -> int | None:
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        try:
            return int((self.memory / name).read_text())
        except (OSError, ValueError):
            return None

    def remove(self) -> None:
        for folder in self.folders if self.is_ours else ():
            with suppress(OSError):
                folder.rmdir()

    def end(self) -> None:
        """End every process in it, and remove it."""
        ends_s = time.monotonic() + END_SECONDS_MAX
        while (pids := self._processes()) and time.monotonic() < ends_s:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        self.remove()

    def _processes(self) -> list[int]:
        """Those that we can see: one outside of our namespace reads as 0, which is ourselves."""
        try:
            told = (self.memory / "cgroup.procs").read_text().split()
        except OSError:
            return []
        return [pid for pid in map(int, told) if pid > 0]


def groups_of(pid: int, container: str, proc: Path = Path("/proc")) -> dict[str, str]:
    """The path of a process's group for each controller, of those that are the container's. Empty:
    the process of this number is not in it, and it runs on another machine.
    """
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in (proc / str(pid) / "cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if container in path and ".." not in path.split("/"):
                found |= dict.fromkeys(names.split(","), path.lstrip("/"))
    return found


@dataclass(slots=True)
class WorkMeter:
    """The counters of one lease's work. `first` is the process that all of its others are below."""

    lease_id: str
    boot: str
    start_us: int
    first: int
    folder: Path
    group: Group | None
    _at_us: int = 0
    _before_us: int = 0  # processor time of a container before the first look
    _seen: dict[tuple[int, str], int] = field(default_factory=dict)
    _memory_bytes: int = 0
    _storage_bytes: int = 0
    _memory_byte_us: int = 0
    _storage_byte_us: int = 0
    _cpu_us: int = 0
    _network: tuple[int, int] | None = None

    @classmethod
    def begin(
        cls,
        lease_id: str,
        boot: str,
        now_us: int,
        first: int,
        folder: Path,
        group: Group | None = None,
        root: Path = CGROUPS,
    ) -> WorkMeter:
        """Of work that has just begun. `group`: the one it was started in, and whoever made that
        removes it; else one is made, where this machine lets us.
        """
        if group is not None:
            group = replace(group, is_ours=False)
            return cls(lease_id, boot, now_us, first, folder, group, now_us)
        group = Group.make(root, f"tallystick-{lease_id}")
        if group is not None and not group.take([first, *launch.descendants(first)]):
            group.remove()
            group = None
        return cls(lease_id, boot, now_us, first, folder, group, now_us)

    @classmethod
    def join(
        cls,
        lease_id: str,
        boot: str,
        now_us: int,
        first: int,
        container: str,
        folder: Path,
        root: Path = CGROUPS,
        proc: Path = Path("/proc"),
    ) -> WorkMeter | None:
        """Of work that is in a container: from now on, in the group that it has. None: not here."""
        group = Group.of(first, container, root, proc)
        if group is None:
            return None
        found = cls(lease_id, boot, now_us, first, folder, group, now_us)
        pids = [first, *launch.descendants(first)]
        found._before_us = max(group.cpu_us() or 0, found._of_processes(pids))
        return found

    def look(self, now_us: int) -> Counters:
        """The counters up to now."""
        since_us = max(0, now_us - self._at_us)
        self._memory_byte_us += self._memory_bytes * since_us
        self._storage_byte_us += self._storage_bytes * since_us
        self._at_us = now_us
        pids = [self.first, *launch.descendants(self.first)]
        group_us = 0 if self.group is None else self.group.cpu_us() or 0
        # Both are at most what was used, so the larger is nearer: there are kernels whose groups
        # take processes and count nothing.
        used_us = max(group_us, self._of_processes(pids)) - self._before_us
        self._cpu_us = max(self._cpu_us, used_us)
        held = None if self.group is None else self.group.memory_bytes()
        self._memory_bytes = held or sum(resident_of(pid)[0] for pid in pids)
        self._storage_bytes = _bytes_in(self.folder)
        self._network = network_of(pids[-1]) or self._network
        is_grouped = self.group is not None and group_us > 0
        source = f"cgroup{self.group.version}" if self.group and is_grouped else "proc"
        received, sent = self._network or (None, None)
        return Counters(
            lease_id=self.lease_id,
            boot=self.boot,
            start_us=self.start_us,
            mono_us=now_us,
            cpu_us=self._cpu_us,
            memory_byte_us=self._memory_byte_us,
            storage_byte_us=self._storage_byte_us,
            received_bytes=received,
            sent_bytes=sent,
            source=source,
        )

    def close(self) -> None:
        if self.group is not None:
            self.group.remove()

    def _of_processes(self, pids: list[int]) -> int:
        """Of each process the most that was seen of it; one that has ended keeps it."""
        for pid in pids:
            with suppress(OSError, IndexError, ValueError):
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks = int(stat[11]) + int(stat[12])
                self._seen[pid, stat[19]] = ticks * CPU_TICK_US
        return sum(self._seen.values())


def network_of(pid: int) -> tuple[int, int] | None:
    """(received, sent) bytes of a process's own network namespace; None: it has none of its own."""
    try:
        if os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            return None
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    except OSError:
        return None
    received = sent = 0
    for line in lines:
        name, _, told = line.partition(":")
        if name.strip() != "lo":
            numbers = told.split()
            received, sent = received + int(numbers[0]), sent + int(numbers[8])
    return received, sent


def resident_of(pid: int) -> tuple[int, int]:
    """(resident, shared) bytes of a process: the second are part of the first."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0, 0
    return int(resident) * PAGE_BYTES, int(shared) * PAGE_BYTES


def _bytes_in(folder: Path) -> int:
    found = 0
    for where, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                found += os.lstat(os.path.join(where, name)).st_blocks * BLOCK_BYTES
    return found


def write_counters(folder: Path, told: Counters) -> None:
    """Hand the counters to the reporter: a file for each lease, written beside and renamed."""
    folder.mkdir(mode=0o755, exist_ok=True)
    for old in list(folder.iterdir())[:FILES_MAX]:
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > KEPT_S:
                old.unlink()
    fresh = folder / f".{told.lease_id}"
    fresh.write_text(json.dumps(asdict(told)))
    fresh.chmod(0o644)
    fresh.replace(folder / told.lease_id)
