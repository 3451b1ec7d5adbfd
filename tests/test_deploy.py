"""What an operator installs from `deploy/`: units that are fenced in, and an image without root."""

from __future__ import annotations

import errno
import re
import shlex
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.settings import Settings
from cli.index import COMMANDS
from cli.terminal import expected

ROOT = Path(__file__).parents[1]
SYSTEMD = ROOT / "deploy" / "systemd"
CONTAINER = ROOT / "deploy" / "container"
UNITS = sorted(SYSTEMD.glob("*.service"))
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze here")
FENCE = {
    *("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes"),
    *("PrivateDevices=yes", "StateDirectoryMode=0700", "CapabilityBoundingSet=", "UMask=0077"),
    *("RestrictNamespaces=yes", "SystemCallFilter=@system-service"),
}
EXPOSURE_MAX = 25
"""Tenths; systemd's own measure: 0 is none, 100 is all."""


def lines_of(unit: Path) -> list[str]:
    return unit.read_text().splitlines()


def settings_named(text: str) -> set[str]:
    return set(re.findall(r"^\s*(TALLYSTICK_[A-Z_]+)[=:]", text, re.MULTILINE))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_of_ours_as_its_own_user(unit: Path) -> None:
    lines = lines_of(unit)
    (command,) = (line for line in lines if line.startswith("ExecStart="))
    assert shlex.split(command)[1] in COMMANDS
    assert {"User=tallystick", "Restart=always", "EnvironmentFile=/etc/tallystick/server.env"} <= (
        set(lines)
    )
    assert set(lines) >= FENCE


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, 1), (errno.EIO, 1), (errno.EMFILE, 1), (errno.ENOENT, 2), (errno.EACCES, 2)],
)
def test_a_full_disk_is_no_wrong_setting_and_the_unit_starts_again(number: int, code: int) -> None:
    assert all("RestartPreventExitStatus=2" in lines_of(unit) for unit in UNITS)
    known = expected(OSError(number, "x"))
    assert known is not None
    assert known[0] == code


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_the_unit_sound_and_fenced_in(unit: Path, tmp_path: Path) -> None:
    assert ANALYZE is not None
    done = subprocess.run(
        [ANALYZE, "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for .*: ([0-9]+)\.([0-9])", done.stdout)
    if found is None:
        pytest.skip(f"this systemd-analyze cannot judge a file: {done.stderr[:100]}")
    assert int(found[1]) * 10 + int(found[2]) < EXPOSURE_MAX, done.stdout
    here = tmp_path / unit.name
    here.write_text(unit.read_text().replace("/opt/tallystick/bin/tallystick", "/usr/bin/env"))
    words = [ANALYZE, "verify", "--man=no", str(here)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_the_two_units_differ_in_what_they_run_alone() -> None:
    server, timers = (set(lines_of(unit)) for unit in UNITS)
    different = {line.split("=")[0] for line in server ^ timers if not line.startswith("#")}
    assert different == {"Description", "ExecStart"}


def test_the_settings_of_the_files_are_settings() -> None:
    known = {f"TALLYSTICK_{each.name.upper()}" for each in fields(Settings)}
    for file in (SYSTEMD / "server.env", CONTAINER / "compose.yaml"):
        named = settings_named(file.read_text())
        assert named
        assert named <= known, file


def test_the_image_is_no_roots_has_a_health_check_and_pins_what_it_installs() -> None:
    """By its form: a builder needs a registry, and none is asked by tests."""
    text = (CONTAINER / "Containerfile").read_text().replace("\\\n", " ")
    steps = [line.split(" ", 1) for line in text.splitlines() if line and line[0].isupper()]
    last = {name: told.strip() for name, told in steps[_last_from(steps) :]}
    assert re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", last["USER"])
    assert "/readyz" in last["HEALTHCHECK"]
    assert last["ENTRYPOINT"] == '["tallystick"]'
    assert last["STOPSIGNAL"] == "SIGTERM"
    for lock in ("venv", "build", "server"):
        assert f"--require-hashes -r requirements/{lock}.txt" in text
    for installed in re.findall(r"pip (?:install|wheel) [^;&]*", text):
        assert "--require-hashes" in installed or "--no-deps" in installed, installed
    assert "pip wheel --no-deps --no-build-isolation" in text
    for name, told in steps:
        if name == "COPY" and not told.startswith("--from"):
            for source in told.split()[:-1]:
                assert (ROOT / source).exists(), source
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*", "nothing that is not named: no keys, no .git"
    for line in ignored:
        if line.startswith("!"):
            assert (ROOT / line[1:]).exists(), line


def _last_from(steps: list[list[str]]) -> int:
    """Where what runs begins."""
    return max(at for at, step in enumerate(steps) if step[0] == "FROM")


def test_the_compose_file_runs_every_part_fenced_in_on_a_database_of_its_own() -> None:
    told: Any = yaml.safe_load((CONTAINER / "compose.yaml").read_text())
    services = told["services"]
    assert services["database"]["image"].startswith("postgres:")
    ours = {name: one for name, one in services.items() if name != "database"}
    assert {name: one["command"][0] for name, one in ours.items()} == {
        "migrate": "migrate",
        "server": "serve",
        "timers": "jobs",
    }
    for name, one in ours.items():
        assert one["command"][0] in COMMANDS
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in one["security_opt"], name
        (volume,) = one["volumes"]
        assert volume.partition(":")[0] in told["volumes"]
        assert (CONTAINER / one["build"]["context"] / one["build"]["dockerfile"]).is_file()
    for name in ("server", "timers"):
        assert ours[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert all(port.startswith("127.0.0.1:") for port in ours["server"]["ports"])
    text = (CONTAINER / "compose.yaml").read_text()
    assert not re.search(r"PASSWORD: [^$]", text), "no password in the file"
    assert subprocess.run(["sh", "-n", str(CONTAINER / "login.sh")], check=False).returncode == 0
