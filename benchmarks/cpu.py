"""Processor time of processes: what a rate costs, whatever else the machine does meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12  # in /proc/<pid>/stat, counted after the name


def of_server(pid: int) -> float:
    """Seconds used so far by a PostgreSQL server and by every process of it that still lives."""
    return sum(
        (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
        for number, fields in _processes()
        if number == pid or int(fields[_PARENT]) == pid
    )


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
