"""What the tools of a Mac print, as recorded: asked by a call, or as programs that a PATH finds."""

from __future__ import annotations

import json
import os
import plistlib
import subprocess
from pathlib import Path

from node_reporter.gpus import apple

MACHINE = "01234567-89AB-CDEF-0123-456789ABCDEF"
QUESTIONS = (apple.PLATFORM, apple.ACCELERATOR, apple.DISPLAYS, apple.MEMORY)


class Mac:
    """What the tools of one machine print; `gone`: the tools that do not answer."""

    def __init__(self, chip: str = "Apple M2 Max") -> None:
        self.chip = chip
        self.busy = 37
        self.gone: set[str] = set()
        self.is_listed = True

    def __call__(self, command: tuple[str, ...]) -> bytes:
        if command[0] in self.gone:
            raise subprocess.CalledProcessError(1, command)
        if command == apple.PLATFORM:
            return plistlib.dumps([{"IOPlatformUUID": MACHINE}])
        if command == apple.DISPLAYS:
            return json.dumps({"SPDisplaysDataType": [{"sppci_model": self.chip}]}).encode()
        if command == apple.MEMORY:
            return b"68719476736\n"
        assert command == apple.ACCELERATOR
        told = {"Device Utilization %": self.busy, "In use system memory": 1_000}
        return plistlib.dumps([{"PerformanceStatistics": told}] if self.is_listed else [])


class MacTools:
    """The tools of one machine as programs: each prints what `Mac` answers to the same words, and
    fails to other ones.
    """

    def __init__(self, folder: Path) -> None:
        self.mac = Mac()
        self._folder = folder
        folder.mkdir()
        for name in {command[0] for command in QUESTIONS}:
            tool = folder / name
            tool.write_text('#!/bin/sh\nexec cat "$0: $*"\n')
            tool.chmod(0o755)
        self.tell()

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self._folder}:{os.environ['PATH']}"}

    def tell(self, *, is_listed: bool = True, gone: frozenset[str] = frozenset()) -> None:
        """Answer like this from now on."""
        self.mac.is_listed, self.mac.gone = is_listed, set(gone)
        for command in QUESTIONS:
            answer = self._folder / f"{command[0]}: {' '.join(command[1:])}"
            if command[0] in gone:
                answer.unlink(missing_ok=True)
                continue
            fresh = self._folder / "fresh"
            fresh.write_bytes(self.mac(command))
            fresh.replace(answer)

    def work(self) -> None:
        """It is busier by one percent."""
        self.mac.busy += 1
        self.tell()
