"""What a machine is to whoever installs a node on it, and what an installation would do."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class InstallRefused(Exception):
    """This machine cannot start the node by itself in this way; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What decides how a node is installed here."""

    platform: str
    environment: Mapping[str, str]
    is_root: bool
    has_systemd: bool
    program: Path | None
    home: Path
    groups: frozenset[str] = frozenset()
    user_id: int = 0

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> Machine:
        """This machine."""
        user_id = os.geteuid() if hasattr(os, "geteuid") else 1
        return cls(
            platform=sys.platform,
            environment=environment,
            is_root=user_id == 0,
            user_id=user_id,
            # What sd_booted(3) asks: the manager runs, and not only its tools are there.
            has_systemd=Path("/run/systemd/system").is_dir() and bool(shutil.which("systemctl")),
            program=_program(),
            home=Path.home(),
            groups=_groups(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Files to write or to remove, commands to run after it, and what to tell."""

    path: Path | None = None
    text: str | None = None  # None: the file is removed
    encoding: str = "utf-8"
    attempts: Sequence[Sequence[str]] = ()  # run first; one that fails had nothing to do
    commands: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def told(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "path": None if self.path is None else str(self.path),
            "unit": self.text,
            "commands": [list(command) for command in (*self.attempts, *self.commands)],
            "notes": list(self.notes),
        }


def _program() -> Path | None:
    """The program as it was called, or as it lies beside this interpreter."""
    beside = Path(sys.executable).parent / "tallystick-node"
    found = shutil.which("tallystick-node") or (str(beside) if beside.exists() else None)
    return None if found is None else Path(found).absolute()


def _groups() -> frozenset[str]:
    try:
        import grp
    except ImportError:
        return frozenset()
    return frozenset(one.gr_name for one in grp.getgrall())
