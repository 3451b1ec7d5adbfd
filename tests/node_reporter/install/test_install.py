"""The node starts with the machine: the unit systemd reads, its signs of life, and refusals."""

from __future__ import annotations

import json
import os
import plistlib
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from node_reporter.agent.sd_notify import Notifier
from node_reporter.agent.unit_file import NAME, SYSTEM_STATE, Unit
from node_reporter.install.install import carry_out, install_plan, uninstall_plan
from node_reporter.machine.config import StateFolder
from node_reporter.machine.machine import InstallRefused, Machine, Plan
from tests.node_reporter.model_server import ModelServer, serve
from tests.node_reporter.programs.test_program import ROOT, joined, ran, running

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze here")
HOME = Path("/home") / "ada"
MACHINE = Machine(
    platform="linux",
    environment={},
    is_root=True,
    has_systemd=True,
    program=Path("/usr/bin/env"),
    home=HOME,
    groups=frozenset({"render", "users"}),
)
HARDENED = {
    *("Type=notify", "WatchdogSec=60", "Restart=always", "RestartSec=5", "DynamicUser=yes"),
    *("StateDirectory=tallystick", "StateDirectoryMode=0700", "NoNewPrivileges=yes"),
    *("ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "MemoryMax=128M"),
    "CPUQuota=10%",
}


def plan_of(tmp_path: Path, machine: Machine = MACHINE, **how: Any) -> Plan:
    options = {"user": False, "dry_run": False, **how}
    return install_plan(machine, StateFolder(tmp_path), ["--page", "8479"], **options)


def unit_in(tmp_path: Path, plan: Plan) -> Path:
    assert plan.text is not None
    path = tmp_path / NAME
    path.write_text(plan.text)
    return path


def test_the_units_lines_are_those_of_the_design(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert plan.text is not None
    lines = plan.text.splitlines()
    assert set(lines) >= HARDENED
    assert "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX" in lines
    assert "DeviceAllow=char-nvidia* rw" in lines
    assert "SupplementaryGroups=render" in lines
    assert f"ExecStart=/usr/bin/env run --state {SYSTEM_STATE} --page 8479" in lines
    (prevented,) = (line for line in lines if line.startswith("RestartPreventExitStatus="))
    assert "78" in prevented.split("=")[1].split()
    assert plan.path == Path("/etc/systemd/system") / NAME
    assert plan.commands[-1] == ["systemctl", "enable", "--now", NAME]


@needs_systemd
@pytest.mark.parametrize("user", [False, True])
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path, user: bool) -> None:
    path = unit_in(tmp_path, plan_of(tmp_path, user=user))
    assert ANALYZE is not None
    # Groups of this machine need not be those of the machine that the plan is for.
    path.write_text(re.sub(r"SupplementaryGroups=.*\n", "", path.read_text()))
    words = [ANALYZE, "verify", "--man=no", *(["--user"] if user else []), str(path)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if NAME in line]
    assert (done.returncode, said) == (0, []), done.stderr


@needs_systemd
def test_the_unit_of_the_system_is_fenced_in(tmp_path: Path) -> None:
    """systemd's own measure of exposure: 0 is none, 10 is all; a plain service has about 9.6."""
    path = unit_in(tmp_path, plan_of(tmp_path))
    assert ANALYZE is not None
    words = [ANALYZE, "security", "--offline=true", "--no-pager", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for .*: ([0-9]+)\.([0-9])", done.stdout)
    if found is None:
        pytest.skip(f"this systemd-analyze cannot judge a file: {done.stderr[:100]}")
    assert int(found[1]) * 10 + int(found[2]) <= 25, done.stdout


def test_a_path_with_spaces_and_signs_is_one_argument_of_the_service() -> None:
    unit = Unit(
        program=Path('/opt/my node/$HOME%n/run"it'),
        arguments=["--url", "http://a/%41"],
        is_system=False,
    )
    (line,) = (line for line in unit.text().splitlines() if line.startswith("ExecStart="))
    assert line == 'ExecStart="/opt/my node/$$HOME%%n/run\\"it" run --url http://a/%%41'


def test_a_path_with_a_line_break_adds_no_line_to_the_unit() -> None:
    words = ["--state", "/srv/a\nExecStartPre=/bin/evil\tx"]
    unit = Unit(program=Path("/opt/run"), arguments=words, is_system=True)
    lines = unit.text().splitlines()
    assert not [line for line in lines if line.startswith("ExecStartPre")]
    assert r'ExecStart=/opt/run run --state "/srv/a\x0aExecStartPre=/bin/evil\x09x"' in lines


def test_a_program_in_a_home_folder_is_no_service_of_the_system(tmp_path: Path) -> None:
    at_home = replace(MACHINE, program=HOME / ".local/bin/tallystick-node")
    with pytest.raises(InstallRefused, match="pipx install --global"):
        plan_of(tmp_path, at_home)
    assert plan_of(tmp_path, at_home, user=True).path == (HOME / ".config/systemd/user" / NAME)


def test_a_node_that_lives_elsewhere_is_moved_first(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("")
    with pytest.raises(InstallRefused, match=f"sudo mv {tmp_path}"):
        plan_of(tmp_path)


def test_without_systemd_root_or_program_it_says_what_to_do(tmp_path: Path) -> None:
    for machine, said in (
        (replace(MACHINE, has_systemd=False), "tallystick-node run"),
        (replace(MACHINE, is_root=False), "sudo"),
        (replace(MACHINE, program=None), "not installed"),
    ):
        with pytest.raises(InstallRefused, match=said):
            plan_of(tmp_path, machine)


WINDOWS = replace(
    MACHINE,
    platform="win32",
    environment={"USERDOMAIN": "LAB", "USERNAME": "ada & co"},
    program=Path("C:/Program Files/tallystick/tallystick-node.exe"),
    groups=frozenset(),
)
TASK_ORDER = ("RegistrationInfo", "Triggers", "Principals", "Settings", "Actions")


def task_of(plan: Plan) -> ElementTree.Element:
    assert plan.text is not None
    return ElementTree.fromstring(plan.text.encode(plan.encoding))


def told(task: ElementTree.Element, *path: str) -> str | None:
    space = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
    return task.findtext("/".join(f"{space}{name}" for name in path))


def test_on_windows_a_task_starts_with_the_machine_and_is_said_to_be_untried(
    tmp_path: Path,
) -> None:
    state = tmp_path / "my node"
    plan = plan_of(state, WINDOWS)
    task = task_of(plan)
    assert [part.tag.split("}")[1] for part in task] == list(TASK_ORDER)
    assert told(task, "Triggers", "BootTrigger", "Enabled") == "true"
    assert told(task, "Triggers", "TimeTrigger", "Repetition", "Interval") == "PT5M"
    assert told(task, "Principals", "Principal", "UserId") == "LAB\\ada & co"
    assert told(task, "Principals", "Principal", "LogonType") == "S4U"
    assert told(task, "Settings", "MultipleInstancesPolicy") == "IgnoreNew"
    assert told(task, "Settings", "ExecutionTimeLimit") == "PT0S"
    assert told(task, "Actions", "Exec", "Command") == str(WINDOWS.program)
    assert told(task, "Actions", "Exec", "Arguments") == f'run --state "{state}" --page 8479'
    assert plan.path == state / "tallystick-node.task.xml"
    assert plan.commands == [
        [
            "icacls",
            str(state),
            "/inheritance:r",
            "/grant:r",
            "LAB\\ada & co:(OI)(CI)F",
            "*S-1-5-18:(OI)(CI)F",
        ],
        ["schtasks", "/Create", "/F", "/TN", "tallystick-node", "/XML", str(plan.path)],
        ["schtasks", "/Run", "/TN", "tallystick-node"],
    ]
    assert "Never run" in plan.notes[0]
    carry_out(replace(plan, commands=[]))
    assert plan.path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff"), "schtasks wants UTF-16"


def test_on_windows_a_users_task_starts_when_that_user_signs_in(tmp_path: Path) -> None:
    task = task_of(plan_of(tmp_path, WINDOWS, user=True))
    assert told(task, "Triggers", "LogonTrigger", "UserId") == "LAB\\ada & co"
    assert told(task, "Principals", "Principal", "LogonType") == "InteractiveToken"
    plan = uninstall_plan(WINDOWS, user=True, dry_run=False)
    assert plan.commands == [["schtasks", "/Delete", "/F", "/TN", "tallystick-node"]]
    carry_out(Plan(attempts=[["false"]], commands=[["true"]]))


def test_what_a_task_cannot_hold_is_refused_on_windows(tmp_path: Path) -> None:
    with pytest.raises(InstallRefused, match="character"):
        plan_of(tmp_path / "a\x01b", WINDOWS)
    with pytest.raises(InstallRefused, match="USERNAME"):
        plan_of(tmp_path, replace(WINDOWS, environment={}))


def test_on_a_mac_seats_are_started_by_launchd_and_gpus_are_told_to_be_missing(
    tmp_path: Path,
) -> None:
    mac = replace(MACHINE, platform="darwin", is_root=False, user_id=501)
    folder = StateFolder(tmp_path)
    with pytest.raises(InstallRefused, match="no backend for Apple's GPUs"):
        install_plan(mac, folder, [], user=True, dry_run=False)
    words = ["--backend", "seats", "--seats", "4"]
    plan = install_plan(mac, folder, words, user=True, dry_run=False)
    assert plan.text is not None
    job = plistlib.loads(plan.text.encode())
    assert job["ProgramArguments"] == ["/usr/bin/env", "run", "--state", str(tmp_path), *words]
    assert (job["RunAtLoad"], job["KeepAlive"], job["ThrottleInterval"]) == (True, True, 30)
    assert "UserName" not in job
    assert plan.path == HOME / "Library/LaunchAgents/org.tallystick.node.plist"
    assert plan.commands == [["launchctl", "bootstrap", "gui/501", str(plan.path)]]
    with pytest.raises(InstallRefused, match="needs root"):
        install_plan(mac, folder, words, user=False, dry_run=False)
    sudo = replace(mac, is_root=True, user_id=0, environment={"SUDO_USER": "ada"})
    of_system = install_plan(sudo, folder, words, user=False, dry_run=False)
    assert of_system.text is not None
    assert plistlib.loads(of_system.text.encode())["UserName"] == "ada"
    assert of_system.commands[0][:3] == ["launchctl", "bootstrap", "system"]
    gone = uninstall_plan(mac, user=True, dry_run=True)
    assert gone.commands == [["launchctl", "bootout", "gui/501/org.tallystick.node"]]


def test_a_folder_that_was_named_is_not_swapped_for_the_services_in_silence(tmp_path: Path) -> None:
    for dry_run in (False, True):
        with pytest.raises(InstallRefused, match=f"leave {tmp_path} out"):
            plan_of(tmp_path, is_named=True, dry_run=dry_run)
    assert plan_of(tmp_path, is_named=True, user=True).text
    assert plan_of(SYSTEM_STATE, is_named=True).text


def test_the_reporter_needs_nothing_that_only_unix_has(tmp_path: Path) -> None:
    """Not Windows, but without the modules and clocks that Windows lacks."""
    server = ModelServer()
    lacking = (
        "import sys, time;"
        " sys.modules.update(dict.fromkeys(('fcntl', 'grp', 'pwd', 'resource')));"
        " [delattr(time, name) for name in ('CLOCK_BOOTTIME', 'CLOCK_MONOTONIC',"
        " 'clock_gettime', 'clock_gettime_ns')];"
        " from node_reporter.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )

    def lacks(*words: str) -> int:
        command = [sys.executable, "-c", lacking, *words, "--backend", "sim"]
        return subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode

    with serve(server) as url:
        assert lacks("join", url, "7Q4K9XWD", "--state", str(tmp_path / "node")) == 0
        state = ("--state", str(tmp_path / "node"))
        assert lacks("run", *state, "--tick", "100", "--interval", "1", "--seconds", "2") == 0
        assert lacks("doctor", *state) in (0, 1)
    assert server.seq > 0


def test_uninstall_stops_removes_and_keeps_the_keys(tmp_path: Path) -> None:
    machine = replace(MACHINE, environment={"XDG_CONFIG_HOME": str(tmp_path)})
    unit = tmp_path / "systemd" / "user" / NAME
    with pytest.raises(InstallRefused, match="nothing was installed"):
        uninstall_plan(machine, user=True, dry_run=False)
    unit.parent.mkdir(parents=True)
    unit.write_text("")
    plan = uninstall_plan(machine, user=True, dry_run=False)
    assert plan.commands[0] == ["systemctl", "--user", "disable", "--now", NAME]
    carry_out(replace(plan, commands=[["true"]]))
    assert not unit.exists()
    assert "kept" in plan.notes[0]


def test_a_command_that_fails_is_told_with_its_own_words() -> None:
    with pytest.raises(InstallRefused, match="ended with 1"):
        carry_out(Plan(commands=[["false"]]))


def test_a_dry_run_shows_everything_and_writes_nothing(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tallystick-node"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    words = (
        "install",
        "--user",
        "--dry-run",
        "--backend",
        "sim",
        "--sim-model",
        "AMD Instinct",
        "--sim-gpus",
        "2",
        "--allow-http",
        "--state",
        str(tmp_path),
    )
    done = ran(*words, "--json", environment=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["done"] is False
    (started,) = (line for line in told["unit"].splitlines() if line.startswith("ExecStart="))
    assert started == (
        f"ExecStart={program} run --state {tmp_path} --backend sim --sim-gpus 2"
        ' --sim-model "AMD Instinct" --allow-http --page 8479'
    )
    assert not (tmp_path / "config").exists()
    assert "would write" in ran(*words, environment=environment).stdout


def test_a_machine_without_systemd_is_told_so_by_the_program(tmp_path: Path) -> None:
    if Path("/run/systemd/system").exists():
        pytest.skip("systemd runs this machine")
    done = ran("install", "--user", "--state", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "systemd does not run" in done.stderr or "not installed" in done.stderr


def test_a_running_node_says_ready_and_alive_and_stopping(tmp_path: Path) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(30)
    environment = {
        **os.environ,
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "400000",
    }
    with serve(ModelServer()) as url:
        joined(url, tmp_path / "state", environment, "--backend", "sim")
        words = running(tmp_path / "state", "--backend", "sim", "--tick", "100")
        node = subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
        heard = [manager.recv(100).decode() for _ in range(6)]
        node.send_signal(signal.SIGTERM)
        while heard[-1] != "STOPPING=1":
            heard.append(manager.recv(100).decode())
        node.communicate(timeout=20)
    manager.close()
    assert node.returncode == 0
    assert heard[0] == "READY=1"
    assert set(heard[1:-1]) == {"WATCHDOG=1"}


def test_without_a_service_manager_nothing_is_said() -> None:
    Notifier({}).beat()
    Notifier({"NOTIFY_SOCKET": "@nobody-listens-here"}).stopping()
