"""Processor time of processes: what a rate costs, whatever else the machine does meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12  # in /proc/<pid>/stat, counted after the name
_USER_OF_ENDED, _SYSTEM_OF_ENDED = 13, 14


@dataclass(slots=True)
class Operations:
    """How many were done inside `Spent.counted`."""

    done: int


class Spent:
    """Processor time of this process and of a PostgreSQL server over some operations, added up."""

    def __init__(self, server_pid: int) -> None:
        self._server_pid = server_pid
        self._process = self._server = 0.0
        self._operations = 0

    @contextmanager
    def counted(self, operations: int = 0) -> Generator[Operations, None, None]:
        """What is done inside are so many operations; or what is known at the end."""
        server, process = of_server(self._server_pid), time.process_time()
        count = Operations(operations)
        yield count
        self._process += time.process_time() - process
        self._server += of_server(self._server_pid) - server
        self._operations += count.done

    def each(self) -> dict[str, int]:
        """Nanoseconds of one operation, by who spent them."""
        return {
            "process": round(self._process * 1e9 / self._operations),
            "postgresql": round(self._server * 1e9 / self._operations),
        }


def of_server(pid: int) -> float:
    """Seconds used so far by a PostgreSQL server and by every process of it, ended ones too."""
    found = 0
    for number, fields in _processes():
        if number == pid:
            found += int(fields[_USER_OF_ENDED]) + int(fields[_SYSTEM_OF_ENDED])
        if pid in (number, int(fields[_PARENT])):
            found += int(fields[_USER]) + int(fields[_SYSTEM])
    return found / _TICKS


def of_process(pid: int) -> float:
    """Seconds used so far by one process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS


def _processes() -> list[tuple[int, list[str]]]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it ended just now
            found.append((int(folder.name), text.rsplit(")", 1)[1].split()))
    return found
