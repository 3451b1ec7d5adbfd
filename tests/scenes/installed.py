"""What extras put on a disk: our distributions built here, and a folder as an installer leaves it.

No package index is asked. What a wheel needs is taken file by file from this environment, as its
own installer recorded it, bytecode included.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "tallystick": ROOT,
    "tallystick-client": ROOT / "tallystick_client",
    "tallystick-node": ROOT / "tallystick_node",
}


def build(name: str, kind: str, folder: Path) -> Path:
    """The wheel or sdist of one of our distributions, made into a folder."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(words, cwd=FOLDERS[name], check=True, capture_output=True)
    ends = {"wheel": ".whl", "sdist": ".tar.gz"}[kind]
    (made,) = folder.glob(f"{name.replace('-', '_')}-*{ends}")
    return made


def needed(extra: str) -> set[str]:
    """Names of the other distributions that an extra needs here, by way of others too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return _closure([*project["dependencies"], *project["optional-dependencies"][extra]])


def needed_by(name: str) -> set[str]:
    """The same of another distribution of ours, `tallystick-client` or `tallystick-node`."""
    return _closure([name])


def _closure(texts: Iterable[str], extras: Iterable[str] = ("",)) -> set[str]:
    found: set[str] = set()
    for text in texts:
        requirement = Requirement(text)
        marker, name = requirement.marker, canonicalize_name(requirement.name)
        if marker is not None and not any(marker.evaluate({"extra": one}) for one in extras):
            continue
        if name == "tallystick":
            found |= set().union(*(needed(extra) for extra in requirement.extras))
        elif name in FOLDERS:
            read = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text(encoding="utf-8"))
            found |= _closure(read["project"]["dependencies"])
        else:
            own = distribution(name).requires or []
            found |= {name, *_closure(own, requirement.extras or ("",))}
    return found


def install(target: Path, wheels: Iterable[Path], names: Iterable[str]) -> None:
    """Put wheels of ours, and distributions of this environment, into a folder."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    for wheel in wheels:
        subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, capture_output=True)
    for name in sorted(names):
        for here, there in _files(distribution(name)):
            (target / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, target / there)


def unpacked(target: Path, wheels: Iterable[Path]) -> Path:
    """The folder, with what these wheels hold."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    return target


def linked(target: Path, names: Iterable[str]) -> Path:
    """The folder, with links to distributions of this environment: to run, not to measure."""
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        for here, there in _files(distribution(name)):
            top = there.parts[0]
            if not (target / top).exists():
                (target / top).symlink_to(here.parents[len(there.parts) - 1] / top)
    return target


def program(file: Path, folders: Iterable[Path], starts: str) -> None:
    """A program `file` that has these folders and the standard library, and nothing else; `starts`
    is the line that imports its `main`.
    """
    first = [str(each) for each in folders]
    code = f"import sys; sys.path[:0] = {first!r}; {starts}; sys.exit(main())"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I -c "{code}" "$@"\n')
    file.chmod(0o755)


def _files(installed: Distribution) -> Iterator[tuple[Path, Path]]:
    """(where it lies here, where it lies in any environment); programs and headers left out."""
    for file in installed.files or []:
        here = Path(str(installed.locate_file(file)))
        if here.is_file() and ".." not in file.parts:
            yield here, Path(file)


def size_of(target: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def run_alone(target: Path, program: str, words: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """A program with the folder and the standard library, and nothing else of this environment."""
    script = f"import sys; sys.path.insert(0, {str(target)!r}); {program}"
    return subprocess.run(
        [sys.executable, "-S", "-I", "-c", script, *words],
        cwd=target,
        capture_output=True,
        text=True,
        check=False,
    )
