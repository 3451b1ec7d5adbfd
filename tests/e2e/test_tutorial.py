"""The tutorial's commands do what the tutorial says: they are run here, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.processes import free_port

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
PORT = "8420"
SECONDS_MAX = 240


def blocks(page: Path, fence: str = "sh") -> list[str]:
    """Every block of a page with these words after its fence, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{fence}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def empty_folder() -> Generator[Path, None, None]:
    """Open to others: as root, PostgreSQL runs as somebody else."""
    folder = Path(tempfile.mkdtemp(prefix="tally"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def run(script: str, folder: Path) -> str:
    """Run it as a stranger would, stopping at the first command that fails; its output."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TALLYSTICK")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}"
    leave = "trap 'kill $(jobs -p) 2> /dev/null || :; wait' EXIT\n"
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", leave + script],
        cwd=folder,
        env={**ours, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    logs = "".join(f"--- {log.name}\n{log.read_text()}" for log in folder.glob("*/*.log"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    return done.stdout


@pytest.mark.guides(
    "tests/cli/test_guides.py::test_every_command_of_a_guide_is_there_with_all_that_it_is_given",
    "tests/cli/test_install_pages.py::test_renter_owner_auditor_and_operator_follow_their_pages_word_for_word",
)
@pytest.mark.timeout(SECONDS_MAX + 30)
def test_a_stranger_gets_from_an_empty_folder_to_a_settled_lease(empty_folder: Path) -> None:
    script = "\n".join(blocks(TUTORIAL))
    assert script.count(PORT) == 1, "the port is named once"
    out = run(script.replace(PORT, str(free_port())), empty_folder)
    assert re.search(r"^state +settled$", out, re.MULTILINE)
    charge, held_back = re.findall(r"^charge +([0-9.]+) CREDIT$", out, re.MULTILINE)[-1], "25"
    assert 0 < micro(charge) < 1_000_000
    left = re.findall(r"^cash +([0-9.]+) CREDIT$", out, re.MULTILINE)[-1]
    assert micro(left) + micro(charge) == micro(held_back), "what was not charged is back"
    assert out.rstrip().endswith("verified")


def micro(credits: str) -> int:
    whole, _, fraction = credits.partition(".")
    return int(whole) * 1_000_000 + int(fraction.ljust(6, "0"))
