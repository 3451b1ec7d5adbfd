"""What `pipx install tallystick-node` puts on a disk: four other packages, 14 MiB at most."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenes.installed import build, install, needed_by, run_alone, size_of

DEPENDENCIES_MAX = 4
BYTES_MAX = 14 * 1024 * 1024


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the installer would put there, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = build("tallystick-node", "wheel", folder / "wheels")
    install(folder / "target", [wheel], needed_by("tallystick-node"))
    return folder / "target"


def test_the_reporter_needs_four_other_packages_or_fewer() -> None:
    required = needed_by("tallystick-node")
    assert {"nvidia-ml-py", "pynacl"} <= required
    assert len(required) <= DEPENDENCIES_MAX, required


def test_an_installed_reporter_takes_14_mib_or_less(target: Path) -> None:
    total = size_of(target)
    assert 1_000_000 < total <= BYTES_MAX, f"{total} bytes"


def test_nothing_more_is_needed_to_run_it(target: Path, tmp_path: Path) -> None:
    program = "from node_reporter.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = ["doctor", "--backend", "sim", "--json", "--state", str(tmp_path)]
    done = run_alone(target, program, words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
