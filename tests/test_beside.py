"""`make test` checks the types beside the tests: if either fails it fails, and both are heard."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[1] / ".ci" / "beside"


def run(check: str, command: str) -> subprocess.CompletedProcess[str]:
    words = [str(BESIDE), "sh", "-c", check, "--", "sh", "-c", command]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_what_the_check_says_comes_after_what_the_command_says() -> None:
    ran = run("echo types are fine", "sleep 0.2; echo tests are fine")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "tests are fine\ntypes are fine\n", "")


@pytest.mark.parametrize(
    ("check", "command", "status", "said"),
    [
        ("echo bad types >&2; exit 3", "echo tests", 3, "tests\nbad types\n"),
        ("sleep 0.2; echo bad types; exit 3", "true", 3, "bad types\n"),
        ("kill -9 $$", "true", 137, ""),
        ("echo types", "echo bad tests; exit 1", 1, "bad tests\ntypes\n"),
        ("echo bad types; exit 3", "echo bad tests; exit 1", 1, "bad tests\nbad types\n"),
    ],
)
def test_if_either_fails_it_fails_and_nothing_that_was_said_is_lost(
    check: str, command: str, status: int, said: str
) -> None:
    ran = run(check, command)
    assert (ran.returncode, ran.stdout) == (status, said)
    assert ("failed while the rest ran: sh -c" in ran.stderr) == (check != "echo types")


def test_an_interrupt_ends_the_check_too(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    words = [str(BESIDE), "sh", "-c", f"echo $$ >{left}; exec sleep 60", "--", "sleep", "60"]
    ran = subprocess.Popen(words, start_new_session=True)
    ends = time.monotonic() + 30
    while not (left.exists() and left.read_text().strip()):
        assert time.monotonic() < ends
        time.sleep(0.01)
    # As ctrl-c does it; a program started in the background has SIGINT ignored, so its kin.
    os.killpg(ran.pid, signal.SIGTERM)
    assert ran.wait(30) == 130
    pid = int(left.read_text())
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < ends, "the check goes on after the interrupt"
        time.sleep(0.01)
