"""What our distributions hold, what each extra needs, and that its first command starts with it.

    files of tallystick, tallystick-client and tallystick-node: none is in two of them
    every command starts with its extra, or names the extra that is missing

Here the extras are put together from this environment; the long test installs each with pip into a
virtual environment of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.e2e.test_tutorial import blocks
from tests.scenes.installed import (
    FOLDERS,
    ROOT,
    build,
    install,
    needed,
    needed_by,
    run_alone,
    size_of,
    unpacked,
)
from tests.test_shape import CLIENT, ROOMS

MIB = 1024 * 1024
CLI_BYTES_MAX = 45 * MIB
DATA = {".py", ".sql", ".html", ".json", ".sol", ".mjs", ".typed", ".css", ".js", ".svg"}
"""What a package holds beside code: migrations, a page, contracts and what was compiled of them."""
OF_THE_NODE = {"domain", "node_reporter"}
OF_THE_SERVER = {
    "eventsourcing",
    "fastapi",
    "jinja2",
    "numpy",
    "psycopg",
    "pyarrow",
    "pydantic",
    "stripe",
    "uvicorn",
    "web3",
}
PROGRAM = "from cli.__main__ import main; sys.exit(main())"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Wheel and sdist of each distribution."""
    folder = tmp_path_factory.mktemp("built")
    return {
        (name, kind): build(name, kind, folder / kind)
        for name in FOLDERS
        for kind in ("wheel", "sdist")
    }


@pytest.fixture(scope="module")
def cli(built: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `tallystick[cli]`, and nothing else."""
    target = tmp_path_factory.mktemp("cli") / "target"
    wheels = [path for (_, kind), path in built.items() if kind == "wheel"]
    install(target, wheels, needed("cli"))
    return target


@pytest.fixture(scope="module")
def bare(built: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `tallystick` and no extra."""
    wheels = [built[name, "wheel"] for name in ("tallystick", "tallystick-node")]
    return unpacked(tmp_path_factory.mktemp("bare"), wheels)


WRITERS = {
    *("api/openapi/client_generator.py", "api/openapi/lease_reference.py"),
    *("api/openapi/write.py", "cli/reference.py"),
}
"""Programs that write files of the repository: no installation has any use for them."""


def _names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


# --- what is in them -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("tallystick", set(ROOMS) - OF_THE_NODE),
        ("tallystick-node", OF_THE_NODE),
        ("tallystick-client", {CLIENT}),
    ],
)
def test_a_wheel_holds_its_packages_and_nothing_else(
    built: dict[tuple[str, str], Path], name: str, packages: set[str]
) -> None:
    names = _names(built[name, "wheel"])
    inside = {one for one in names if ".dist-info/" not in one}
    assert {one.split("/")[0] for one in inside} == packages
    assert {Path(one).suffix for one in inside} <= DATA
    code = {
        path.relative_to(ROOT).as_posix()
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if "node_modules" not in path.parts
    }
    left_out = {one for one in WRITERS if one.split("/")[0] in packages}
    assert left_out <= code
    assert code - left_out == {one for one in inside if one.endswith(".py")}
    assert any(one.endswith("/licenses/LICENSE") for one in names)
    assert name != "tallystick-client" or f"{CLIENT}/py.typed" in names, "types are told"


def test_a_source_distribution_holds_the_packages_and_what_describes_them(
    built: dict[tuple[str, str], Path],
) -> None:
    about = {"LICENSE", "README.md", "PKG-INFO", "pyproject.toml", ".gitignore"}
    for name, own in (
        ("tallystick", {*(set(ROOMS) - OF_THE_NODE), "CHANGELOG.md"}),
        ("tallystick-node", {*OF_THE_NODE, "hatch_build.py"}),
        ("tallystick-client", {"py.typed", *(one.name for one in (ROOT / CLIENT).glob("*.py"))}),
    ):
        with tarfile.open(built[name, "sdist"]) as archive:
            found = {member.split("/")[1] for member in archive.getnames()}
        assert found == own | about, name


def test_no_file_belongs_to_two(built: dict[tuple[str, str], Path]) -> None:
    names = [one for name in FOLDERS for one in _names(built[name, "wheel"])]
    assert len(names) == len(set(names))


def test_a_wheel_made_from_the_source_distribution_is_the_same(
    built: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    for name in FOLDERS:
        with tarfile.open(built[name, "sdist"]) as archive:
            archive.extractall(tmp_path, filter="data")
        (source,) = tmp_path.glob(f"{name.replace('-', '_')}-*")
        words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(source)]
        subprocess.run(words, cwd=source, check=True, capture_output=True)
        (again,) = source.glob("*.whl")
        assert again.read_bytes() == built[name, "wheel"].read_bytes()
        source.rename(tmp_path / f"done of {name}")


def test_all_have_one_version_one_licence_and_the_pins_that_join_them() -> None:
    read = {
        name: tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        for name, folder in FOLDERS.items()
    }
    versions = {one["project"]["version"] for one in read.values()}
    assert len(versions) == 1
    extras = read["tallystick"]["project"]["optional-dependencies"]
    version = versions.pop()
    assert f"tallystick-client=={version}" in extras["cli"]
    assert read["tallystick"]["project"]["dependencies"] == [f"tallystick-node=={version}"]
    licences = {(folder / "LICENSE").read_bytes() for folder in FOLDERS.values()}
    assert len(licences) == 1


def test_what_builds_is_no_dependency_of_what_runs() -> None:
    for found in (needed_by("tallystick-node"), *map(needed, ("cli", "audit", "server"))):
        assert not found & {"hatchling", "editables", "setuptools", "pip"}
    assert "hatchling==" in (ROOT / "requirements" / "build.txt").read_text(encoding="utf-8")


def test_s_l24_what_python_brings_along_is_replaced_by_pinned_versions_before_anything_else() -> (
    None
):
    """ensurepip's pip 23.2 and setuptools 65 have known vulnerabilities."""
    pinned = (ROOT / "requirements" / "venv.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(\S+)==.* \\\n    --hash=sha256:[0-9a-f]{64}", pinned, re.MULTILINE) == [
        "pip",
        "setuptools",
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"\$\(PIP\) install (.*)", makefile)
    assert installs[0] == "--require-hashes -r requirements/venv.txt"


# --- what an extra needs ---------------------------------------------------------------------


def test_the_cli_takes_45_mib_or_less(cli: Path) -> None:
    total = size_of(cli)
    assert 10 * MIB < total <= CLI_BYTES_MAX, f"{total} bytes"


def test_the_cli_needs_nothing_of_the_server() -> None:
    assert not needed("cli") & OF_THE_SERVER
    assert needed("audit") - needed("cli") == {"msgspec", "pyarrow", "safe-pysha3"}


def test_every_command_shows_its_help_with_the_cli_alone(cli: Path) -> None:
    """One process: the module of each command is imported where the server's packages are not."""
    program = (
        "import io, json, sys; from contextlib import redirect_stdout\n"
        "from cli.__main__ import main\n"
        "from cli.index import COMMANDS\n"
        "told = {}\n"
        "for name in COMMANDS:\n"
        "    sys.argv = ['tallystick', name, '--help']\n"
        "    with redirect_stdout(io.StringIO()) as out:\n"
        "        code = main()\n"
        "    told[name] = [code, out.getvalue().startswith(f'Usage: tallystick {name}')]\n"
        "print(json.dumps(told))"
    )
    done = run_alone(cli, f"exec({program!r})", ())
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told) > 50
    assert {name: found for name, found in told.items() if found != [0, True]} == {}


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("serve",), "server"),
        (("jobs", "--once"), "server"),
        (("migrate",), "server"),
        (("demo",), "server"),
        (("admin", "bootstrap"), "server"),
        (("epoch", "close", "1"), "server"),
        (("audit", "export", "bundle"), "server"),
        (("audit", "verify", "."), "audit"),
        (("audit", "replay", "."), "audit"),
    ],
    ids=" ".join,
)
def test_a_command_names_the_extra_that_it_misses(
    cli: Path, words: tuple[str, ...], extra: str
) -> None:
    done = run_alone(cli, PROGRAM, words)
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.endswith(f"pip install 'tallystick[{extra}]'"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("lease", "list"),
        ("run", "--", "true"),
        ("statement",),
        ("offer", "list"),
        ("audit", "verify", "http://127.0.0.1:9"),
    ],
    ids=" ".join,
)
def test_a_command_that_talks_to_a_server_gets_as_far_as_its_port(
    cli: Path, words: tuple[str, ...]
) -> None:
    slow = "from cli import remote; remote.START_SECONDS_MAX = 0\n"
    at = "import os; os.environ['TALLYSTICK_URL'] = 'http://127.0.0.1:9'\n"
    done = run_alone(cli, f"exec({at + slow + 'import sys; ' + PROGRAM!r})", words)
    assert done.returncode == 1
    assert "check that `tallystick serve` runs there, and TALLYSTICK_URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_and_the_help_need_no_extra(bare: Path) -> None:
    version = run_alone(bare, PROGRAM, ["--version"])
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("tallystick 0.")
    for words in ([], ["--help"]):
        told = run_alone(bare, PROGRAM, words)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.splitlines() == [
            "tallystick: this needs typer, which is not installed: pip install 'tallystick[cli]'"
        ]
    refused = run_alone(bare, PROGRAM, ["lease", "list"])
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "pip install 'tallystick[cli]'" in refused.stderr


def test_the_client_needs_httpx_and_nothing_of_ours(
    built: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    install(
        tmp_path / "client", [built["tallystick-client", "wheel"]], needed_by("tallystick-client")
    )
    assert "typer" not in needed_by("tallystick-client")
    program = (
        "from tallystick_client import ApiProblem, AsyncClient, Client, Retry\n"
        "import tallystick_client.forms\n"
        "with Client('http://127.0.0.1:9', 'key') as client: print(client.position)\n"
        f"print(sorted({set(ROOMS)!r} & set(sys.modules)))\n"
    )
    done = run_alone(tmp_path / "client", f"exec({'import sys' + chr(10) + program!r})", ())
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0\n[]\n"


# --- installed from a registry ---------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "program", "words", "expected"),
    [
        ("node", "tallystick-node", ("doctor", "--backend", "sim", "--json"), 0),
        ("cli", "tallystick", ("lease", "--help"), 0),
        ("cli", "tallystick", ("audit", "verify", "/nowhere"), 2),
        ("audit", "tallystick", ("audit", "verify", "."), 1),
        ("audit", "tallystick", ("audit", "replay", "."), 1),
        ("server", "tallystick", ("config", "--json"), 0),
    ],
)
def test_an_extra_installed_by_pip_runs_its_first_command(
    built: dict[tuple[str, str], Path],
    tmp_path: Path,
    extra: str,
    program: str,
    words: tuple[str, ...],
    expected: int,
) -> None:
    skip_without_a_registry(tmp_path)
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    wheel = built["tallystick", "wheel"]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [str(programs / "python"), "-m", "pip"]
    asked = ["--find-links", str(wheel.parent), f"{wheel}[{extra}]"]
    subprocess.run([*pip, "install", "--quiet", *asked], check=True, timeout=900, env=alone)
    subprocess.run([*pip, "check"], check=True, env=alone)
    done = subprocess.run(
        [programs / program, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_the_programs_of_the_client_s_guide_are_typed_where_only_its_wheel_is(
    built: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    """mypy, strict, in an environment that has the client from its wheel and nothing of ours."""
    skip_without_a_registry(tmp_path)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    alone = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    wheel = str(built["tallystick-client", "wheel"])
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        wheel,
        "mypy>=2,<3",
        "standardwebhooks",
    ]
    subprocess.run(words, check=True, timeout=900, env=ours)
    programs = blocks(ROOT / "docs" / "howto" / "use-the-client.md", "python")
    assert len(programs) == 4
    for number, program in enumerate(programs):
        (tmp_path / f"program_{number}.py").write_text(program, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    mypy = [str(python), "-m", "mypy", "--strict", "--cache-dir", "cache"]
    typed, wrong = (
        subprocess.run([*mypy, *files], cwd=tmp_path, capture_output=True, text=True, env=alone)
        for files in ([one.name for one in sorted(tmp_path.glob("program_*.py"))], ["wrong.py"])
    )
    assert typed.returncode == 0, typed.stdout
    assert wrong.stdout.count("error:") == 3, wrong.stdout


WRONG = """\
from tallystick_client import Client

with Client("https://the.server", "key") as tallystick:
    tallystick.read_lease(7)
    tallystick.iter_leases(state="runing")
    print(next(tallystick.iter_leases())["price"])
"""


def skip_without_a_registry(folder: Path) -> None:
    """Skips the test, and says why."""
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    done = subprocess.run(
        [*asked, "--dest", folder / "asked", "h11"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("no package registry answers: nothing can be installed from it")
