"""Making the node start by itself: what would be written and run, and doing it.

Linux with systemd is done; for Windows a task of its scheduler is set up, which nobody has tried on
a Windows machine yet; macOS is told what is missing. A plan is data, so that `--dry-run` shows
exactly what the same call without it does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from node_reporter.config import StateFolder
from node_reporter.unit_file import NAME, SYSTEM_STATE, Unit

SYSTEM_UNITS = Path("/etc/systemd/system")
COMMAND_S_MAX = 60
HOMES = (Path("/home"), Path("/root"))
"""What ProtectHome hides from a system unit."""
DEVICE_GROUPS = ("render", "video")
TASK = "tallystick-node"
WINDOWS_NOTE = (
    "Never tried on a Windows machine. The task starts the node with the machine, as the account"
    " that runs this command; sc.exe cannot keep a program that does not speak with the service"
    " manager, and this one does not."
)
MACOS_NOTE = (
    "macOS: nothing is installed. Missing: a backend for Apple's GPUs (metering needs energy and"
    " busy counters that no account without root can read there), and a launchd job. What works"
    " is `tallystick-node run --backend sim` for seats of software."
)


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

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> Machine:
        """This machine."""
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        return cls(
            platform=sys.platform,
            environment=environment,
            is_root=is_root,
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
    commands: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def told(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "path": None if self.path is None else str(self.path),
            "unit": self.text,
            "commands": [list(command) for command in self.commands],
            "notes": list(self.notes),
        }


def install_plan(
    machine: Machine, folder: StateFolder, arguments: Sequence[str], *, user: bool, dry_run: bool
) -> Plan:
    """How the node starts by itself from now on. Raises InstallRefused."""
    program = _known_program(machine)
    if machine.platform == "win32":
        return _windows(program, folder, arguments)
    if machine.platform == "darwin":
        raise InstallRefused(MACOS_NOTE)
    _require_systemd(machine, dry_run=dry_run)
    is_system = not user
    if is_system and not machine.is_root and not dry_run:
        raise InstallRefused(
            "a unit of the system needs root: use sudo, or --user for your account"
        )
    if is_system:
        _require_visible(program)
        _require_system_state(folder)
    state = ["--state", str(SYSTEM_STATE if is_system else folder.path.absolute())]
    groups = [name for name in DEVICE_GROUPS if name in machine.groups]
    unit = Unit(program=program, arguments=[*state, *arguments], is_system=is_system, groups=groups)
    return Plan(
        path=_unit_path(machine, is_system=is_system),
        text=unit.text(),
        commands=[
            _systemctl(is_system, "daemon-reload"),
            _systemctl(is_system, "enable", "--now", NAME),
        ],
        notes=_notes(machine, is_system=is_system),
    )


def uninstall_plan(machine: Machine, *, user: bool, dry_run: bool) -> Plan:
    """The node starts by itself no more; its keys and its spool stay. Raises InstallRefused."""
    if machine.platform == "win32":
        return Plan(commands=[["schtasks", "/Delete", "/F", "/TN", TASK]], notes=[WINDOWS_NOTE])
    if machine.platform == "darwin":
        raise InstallRefused(MACOS_NOTE)
    _require_systemd(machine, dry_run=dry_run)
    is_system = not user
    path = _unit_path(machine, is_system=is_system)
    if not path.exists() and not dry_run:
        raise InstallRefused(f"{path} is not there: nothing was installed")
    return Plan(
        path=path,
        commands=[
            _systemctl(is_system, "disable", "--now", NAME),
            _systemctl(is_system, "daemon-reload"),
        ],
        notes=["The node's keys and its spool are kept: reports may still wait in there."],
    )


def carry_out(plan: Plan) -> None:
    """Write, run. A file is removed after what stops its service. Raises InstallRefused."""
    if plan.path is not None and plan.text is not None:
        plan.path.parent.mkdir(parents=True, exist_ok=True)
        plan.path.write_text(plan.text, encoding="utf-8")
    for command in plan.commands:
        _run(command)
        if plan.path is not None and plan.text is None:
            plan.path.unlink(missing_ok=True)


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program with arguments we wrote
            command, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallRefused(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise InstallRefused(f"{' '.join(command)} ended with {done.returncode}: {said}")


def _windows(program: Path, folder: StateFolder, arguments: Sequence[str]) -> Plan:
    words = [str(program), "run", "--state", str(folder.path.absolute()), *arguments]
    line = subprocess.list2cmdline(words)
    create = ["schtasks", "/Create", "/F", "/TN", TASK, "/SC", "ONSTART", "/TR", line]
    return Plan(commands=[create, ["schtasks", "/Run", "/TN", TASK]], notes=[WINDOWS_NOTE])


def _require_systemd(machine: Machine, *, dry_run: bool) -> None:
    if not machine.has_systemd and not dry_run:
        raise InstallRefused(
            "systemd does not run this machine: let whatever starts programs here keep"
            " `tallystick-node run` alive, and start it again after the exit codes 1 and 75"
        )


def _require_visible(program: Path) -> None:
    """A fenced service sees nobody's home, so it cannot start a program that lies in one."""
    resolved = program.resolve()
    if any(home in resolved.parents for home in HOMES):
        raise InstallRefused(
            f"{resolved} is in a home folder, which the service cannot see: install with"
            " `sudo pipx install --global 'tallystick[node]'`, or use --user"
        )


def _require_system_state(folder: StateFolder) -> None:
    here = folder.path.absolute()
    if (
        folder.settings.exists()
        and here != SYSTEM_STATE
        and not here.is_relative_to("/var/lib/private")
    ):
        raise InstallRefused(
            f"this node lives in {here}, the service looks in {SYSTEM_STATE}: stop it, move the"
            f" folder there (`sudo mv {here} {SYSTEM_STATE}`), and install again"
        )


def _known_program(machine: Machine) -> Path:
    if machine.program is None:
        raise InstallRefused("the program `tallystick-node` is not installed: see the guide")
    return machine.program


def _unit_path(machine: Machine, *, is_system: bool) -> Path:
    if is_system:
        return SYSTEM_UNITS / NAME
    config = machine.environment.get("XDG_CONFIG_HOME")
    return (Path(config) if config else machine.home / ".config") / "systemd" / "user" / NAME


def _systemctl(is_system: bool, *words: str) -> list[str]:
    return ["systemctl", *([] if is_system else ["--user"]), *words]


def _notes(machine: Machine, *, is_system: bool) -> list[str]:
    if is_system:
        return [f"Its log: journalctl -u {NAME}"]
    user = machine.environment.get("USER", "$USER")
    return [
        f"Its log: journalctl --user -u {NAME}",
        f"To meter while you are not logged in: sudo loginctl enable-linger {user}",
    ]


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
