"""The install pages do what they say, where nothing but the extra that they name is installed.

Here the extras are put together from this environment, and the lines that call pip are compared
with what is built; the long test calls pip as the pages do.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_remote import Server, server
from tests.e2e.test_tutorial import blocks
from tests.scenes.installed import FOLDERS, build, linked, needed, needed_by, program, unpacked
from tests.scenes.shell import tallystick
from tests.test_install import skip_without_a_registry

PAGES = Path(__file__).parents[2] / "docs" / "howto"
ADDRESS, CODE = "https://the.server", "ts_invite_..."
TALLYSTICK = "from cli.__main__ import main"
NODE = "from node_reporter.__main__ import main"
EXTRA_OF = {"install-renter": "cli", "install-owner": "cli", "install-auditor": "audit"}
ONLY = {
    "cli": ("pyarrow", "msgspec", "fastapi", "psycopg"),
    "audit": ("fastapi", "psycopg"),
    "node": ("httpx", "typer", "fastapi", "psycopg"),
}
"""What an environment with one extra has not."""
__all__ = ["server"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("wheels")
    return [build(name, "wheel", folder / name) for name in FOLDERS]


@pytest.fixture(scope="module")
def programs(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By extra, a folder with its programs, for PATH."""
    every = unpacked(tmp_path_factory.mktemp("every"), wheels)
    alone = unpacked(tmp_path_factory.mktemp("alone"), [one for one in wheels if _node(one)])
    made = {}
    for extra, ours in (("cli", every), ("audit", every), ("node", alone)):
        folder = tmp_path_factory.mktemp(extra)
        others = linked(
            folder / "others", needed_by("tallystick-node") if extra == "node" else needed(extra)
        )
        for missing in ONLY[extra]:
            assert not (others / missing).exists(), (extra, missing)
        (folder / "bin").mkdir()
        program(folder / "bin" / "tallystick-node", [ours, others], NODE)
        if extra != "node":
            program(folder / "bin" / "tallystick", [ours, others], TALLYSTICK)
        made[extra] = folder / "bin"
    return made


def _node(wheel: Path) -> bool:
    return wheel.name.startswith("tallystick_node-")


def walk(script: str, folder: Path, *programs: Path, **names: str) -> str:
    """What a reader's shell prints, with these programs and none of this environment."""
    here = Path(sys.executable).parent
    system = [one for one in os.environ["PATH"].split(os.pathsep) if Path(one) != here]
    path = os.pathsep.join([*map(str, programs), *system])
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8", **names},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, script + done.stdout + done.stderr
    return done.stdout


def script_of(page: str, server: Server) -> str:
    """The commands of a page after its installation, on this server, with a code of the operator's
    where the page needs one.
    """
    script = "\n".join(blocks(PAGES / f"{page}.md"))
    assert script.count(ADDRESS) == 1, "the address is named once"
    script = script.replace(ADDRESS, server.url)
    if page != "install-auditor":
        assert script.count(CODE) == 1, "the code is named once"
        code = server.run("account", "invite", "--json").document["code"]
        script = script.replace(CODE, code)
    return script


def must_have_worked(page: str, out: str, folder: Path) -> None:
    if page == "install-auditor":
        assert re.search(r"^verified( +yes)?$", out, re.MULTILINE), out
        return
    assert (folder / "account.json").stat().st_mode & 0o777 == 0o600
    assert re.search(r"^account_id +acct_[0-9a-f]{32}$", out, re.MULTILINE), out
    if page == "install-renter":
        assert re.search(r"^payment_id +\S+$", out, re.MULTILINE), out
    else:
        assert re.search(r"^prov_[0-9a-f]{32} ", out, re.MULTILINE), out


@pytest.mark.parametrize("page", EXTRA_OF)
def test_a_page_installs_the_files_that_are_built_with_the_extra_that_it_needs(
    page: str, wheels: list[Path]
) -> None:
    names = {path.name for path in wheels}
    asked = dict[str, set[str]]()
    for block in blocks(PAGES / f"{page}.md", "sh install"):
        (line,) = re.findall(r"^\S+/bin/pip install (.*)$", block, re.MULTILINE)
        for word in shlex.split(line):
            file, _, extra = word.removeprefix("./").partition("[")
            asked.setdefault(extra.removesuffix("]"), set()).add(file)
    told = {extra: files for extra, files in asked.items() if extra}
    assert set(told) == {EXTRA_OF[page]}
    assert set().union(*asked.values()) == names


def test_renter_owner_auditor_and_operator_follow_their_pages_word_for_word(
    server: Server, programs: dict[str, Path], tmp_path: Path
) -> None:
    server.jobs()
    for page, extra in EXTRA_OF.items():
        folder = tmp_path / page
        folder.mkdir()
        out = walk(script_of(page, server), folder, programs[extra])
        must_have_worked(page, out, folder)
    (node,) = blocks(PAGES / "install-owner.md", "sh node")
    assert "driver: 1 device(s)" in walk(node, tmp_path, programs["node"])
    _verify_a_bundle(server, programs["audit"], tmp_path / "install-auditor")
    _let_people_in(server, programs["cli"], tmp_path)


def _verify_a_bundle(server: Server, audit: Path, folder: Path) -> None:
    settings = server.service.settings
    exported = tallystick(
        "audit",
        "export",
        folder / "bundle",
        "--json",
        DATA_DIR=settings.data_dir,
        DATABASE_URL=settings.database_url,
    )
    (script,) = blocks(PAGES / "install-auditor.md", "sh bundle")
    out = walk(script, folder, audit, LOG_KEY=exported.document["log_key"])
    assert re.search(r"^verified( +yes)?$", out, re.MULTILINE), out


def _let_people_in(server: Server, cli: Path, folder: Path) -> None:
    (script,) = blocks(PAGES / "let-people-in.md")
    script = script.replace(ADDRESS, server.url).replace("ts_live_...", server.operator_key)
    out = walk(script, folder, cli)
    assert out.count("acct_") == 4, "the operator, two readers, and the one invited here"
    assert "ts_invite_" in (folder / "invitation.json").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("page", EXTRA_OF)
def test_a_page_is_followed_with_pip_itself(
    page: str, server: Server, wheels: list[Path], tmp_path: Path
) -> None:
    skip_without_a_registry(tmp_path)
    server.jobs()
    for wheel in wheels:
        shutil.copy(wheel, tmp_path)
    install = "\n".join(blocks(PAGES / f"{page}.md", "sh install"))
    # pip of this environment knows where packages are asked for; the reader's asks there too.
    asked = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    out = walk(f"{install}\n{script_of(page, server)}", tmp_path, **asked)
    must_have_worked(page, out, tmp_path)
