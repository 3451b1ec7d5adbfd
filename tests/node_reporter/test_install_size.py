"""What `pipx install 'tallystick[node]'` puts on a disk: four other packages, 25 MiB at most.

No package index is asked. The wheel is built and installed here, and what it needs is taken file by
file from this environment, as its own installer recorded it, bytecode included.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DEPENDENCIES_MAX = 4
BYTES_MAX = 25 * 1024 * 1024


def _required(name: str, extra: str) -> set[str]:
    """Names of the distributions that this one needs here, by way of others too."""
    found: set[str] = set()
    for text in distribution(name).requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            found |= {requirement.name, *_required(requirement.name, "")}
    return found


def _files(installed: Distribution) -> Iterator[tuple[Path, Path]]:
    """(where it lies here, where it lies in any environment); programs and headers left out."""
    for file in installed.files or []:
        here = Path(str(installed.locate_file(file)))
        if here.is_file() and ".." not in file.parts:
            yield here, Path(file)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the installer would put there, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    wheels, target = folder / "wheels", folder / "target"
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = wheels.iterdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, capture_output=True)
    for name in sorted(_required("tallystick", "node")):
        for here, there in _files(distribution(name)):
            (target / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, target / there)
    return target


def test_the_reporter_needs_four_other_packages_or_fewer() -> None:
    required = {name.lower() for name in _required("tallystick", "node")}
    assert {"nvidia-ml-py", "pynacl"} <= required
    assert len(required) <= DEPENDENCIES_MAX, required


def test_an_installed_reporter_takes_25_mib_or_less(target: Path) -> None:
    total = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    assert 1_000_000 < total <= BYTES_MAX, f"{total} bytes"


def test_nothing_more_is_needed_to_run_it(target: Path, tmp_path: Path) -> None:
    """`-S` and `-I`: no other package of this environment can be found."""
    words = ["doctor", "--backend", "sim", "--json", "--state", str(tmp_path)]
    program = (
        f"import sys; sys.path.insert(0, {str(target)!r});"
        " from node_reporter.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", program, *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
