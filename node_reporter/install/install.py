"""Making the node start by itself: what would be written and run, and doing it.

Linux with systemd is done. A task for the scheduler of Windows and a job for launchd of macOS are
written by the makers' documents and their text is tested; nobody has run either on such a machine.
A plan is data, so that `--dry-run` shows exactly what the same call without it does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from node_reporter.agent.unit_file import NAME, SYSTEM_STATE, Unit
from node_reporter.install import launchd_job, windows_task
from node_reporter.machine.config import StateFolder
from node_reporter.machine.machine import InstallRefused, Machine, Plan

SYSTEM_UNITS = Path("/etc/systemd/system")
COMMAND_S_MAX = 60
HOMES = (Path("/home"), Path("/root"))
"""What ProtectHome hides from a system unit."""
DEVICE_GROUPS = ("render", "video")
WINDOWS_NOTE = (
    "Never run on a Windows machine. The task runs as the account of this command; sc.exe cannot"
    " keep a program that does not speak with the service manager, and this one does not."
)
MACOS_NOTE = "Never run on a Mac."
MACOS_BACKENDS = ("seats", "sim")
MACOS_LACKS = (
    "macOS: there is no backend for Apple's GPUs (NVIDIA's library does not exist there, and the"
    " energy and busy counters of Apple's are for root alone). What can be started by itself needs"
    " no driver: --backend seats, or --backend sim in development"
)


def install_plan(
    machine: Machine,
    folder: StateFolder,
    arguments: Sequence[str],
    *,
    user: bool,
    dry_run: bool,
    is_named: bool = False,
) -> Plan:
    """How the node starts by itself from now on. `is_named`: somebody said which folder it is.

    Raises InstallRefused.
    """
    program = _known_program(machine)
    if machine.platform == "win32":
        return _windows(machine, program, folder, arguments, user=user)
    if machine.platform == "darwin":
        return _macos(machine, program, folder, arguments, user=user, dry_run=dry_run)
    _require_systemd(machine, dry_run=dry_run)
    is_system = not user
    _require_root(machine, is_system=is_system, dry_run=dry_run)
    if is_system:
        _require_visible(program)
        _require_system_state(folder, is_named=is_named)
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


KEPT = "The node's keys and its spool are kept: reports may still wait in there."


def uninstall_plan(machine: Machine, *, user: bool, dry_run: bool) -> Plan:
    """The node starts by itself no more; its keys and its spool stay. Raises InstallRefused."""
    if machine.platform == "win32":
        name = windows_task.NAME
        return Plan(
            attempts=[["schtasks", "/End", "/TN", name]],
            commands=[["schtasks", "/Delete", "/F", "/TN", name]],
            notes=[KEPT, WINDOWS_NOTE],
        )
    is_system = not user
    if machine.platform == "darwin":
        path = _job_path(machine, is_system=is_system)
        _require_installed(path, dry_run=dry_run)
        where = launchd_job.domain(None if is_system else machine.user_id)
        stop = ["launchctl", "bootout", f"{where}/{launchd_job.LABEL}"]
        return Plan(path=path, commands=[stop], notes=[KEPT, MACOS_NOTE])
    _require_systemd(machine, dry_run=dry_run)
    path = _unit_path(machine, is_system=is_system)
    _require_installed(path, dry_run=dry_run)
    return Plan(
        path=path,
        commands=[
            _systemctl(is_system, "disable", "--now", NAME),
            _systemctl(is_system, "daemon-reload"),
        ],
        notes=[KEPT],
    )


def carry_out(plan: Plan) -> None:
    """Write, run. A file is removed after what stops its service. Raises InstallRefused."""
    if plan.path is not None and plan.text is not None:
        plan.path.parent.mkdir(parents=True, exist_ok=True)
        plan.path.write_text(plan.text, encoding=plan.encoding)
    for command in plan.attempts:
        with suppress(InstallRefused):
            _run(command)
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


def _windows(
    machine: Machine, program: Path, folder: StateFolder, arguments: Sequence[str], *, user: bool
) -> Plan:
    account = windows_task.account_of(machine.environment)
    if not account:
        raise InstallRefused("Windows does not name the user: USERNAME is not set")
    state = folder.path.absolute()
    words = ["--state", str(state), *arguments]
    if not all(word.isprintable() for word in words):
        raise InstallRefused("an argument holds a character that a task cannot have")
    task = windows_task.Task(
        program=program, arguments=words, folder=state, account=account, is_system=not user
    )
    path = state / windows_task.FILE
    return Plan(
        path=path,
        text=task.text(),
        encoding=windows_task.ENCODING,
        commands=task.commands(path),
        notes=[WINDOWS_NOTE, *([] if user else ["It needs a console opened as administrator."])],
    )


def _macos(
    machine: Machine,
    program: Path,
    folder: StateFolder,
    arguments: Sequence[str],
    *,
    user: bool,
    dry_run: bool,
) -> Plan:
    chosen = [after for word, after in pairwise(arguments) if word == "--backend"]
    if not set(chosen) & set(MACOS_BACKENDS):
        raise InstallRefused(MACOS_LACKS)
    is_system = not user
    _require_root(machine, is_system=is_system, dry_run=dry_run)
    runs_as = machine.environment.get("SUDO_USER") if is_system else None
    if is_system and not runs_as:
        raise InstallRefused("root needs no accelerators: use sudo from your account, or --user")
    state = folder.path.absolute()
    job = launchd_job.Job(
        program=program,
        arguments=["--state", str(state), *arguments],
        log=state / "node.log",
        user=runs_as,
    )
    path = _job_path(machine, is_system=is_system)
    where = launchd_job.domain(None if is_system else machine.user_id)
    return Plan(
        path=path,
        text=job.text(),
        attempts=[["launchctl", "bootout", f"{where}/{launchd_job.LABEL}"]],
        commands=[["launchctl", "bootstrap", where, str(path)]],
        notes=[f"Its log: {job.log}", MACOS_NOTE],
    )


def _job_path(machine: Machine, *, is_system: bool) -> Path:
    folder = launchd_job.DAEMONS if is_system else machine.home / launchd_job.AGENTS
    return Path(folder / launchd_job.FILE)


def _require_installed(path: Path, *, dry_run: bool) -> None:
    if not path.exists() and not dry_run:
        raise InstallRefused(f"{path} is not there: nothing was installed")


def _require_root(machine: Machine, *, is_system: bool, dry_run: bool) -> None:
    if is_system and not machine.is_root and not dry_run:
        raise InstallRefused(
            "a service of the system needs root: use sudo, or --user for your account"
        )


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
            " `sudo pipx install --global tallystick-node`, or use --user"
        )


def _require_system_state(folder: StateFolder, *, is_named: bool) -> None:
    """The service has one folder, which systemd makes for it: no other is taken in silence."""
    here = folder.path.absolute()
    if here == SYSTEM_STATE or here.is_relative_to("/var/lib/private"):
        return
    if folder.settings.exists():
        raise InstallRefused(
            f"this node lives in {here}, the service looks in {SYSTEM_STATE}: stop it, move the"
            f" folder there (`sudo mv {here} {SYSTEM_STATE}`), and install again"
        )
    if is_named:
        raise InstallRefused(
            f"the service of the system lives in {SYSTEM_STATE} and nowhere else: leave {here} out"
            " (--state, TALLYSTICK_NODE_DIR), or use --user"
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
