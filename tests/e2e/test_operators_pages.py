"""The commands of the operator's pages on backup, restore and failover do what the pages say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from api.backup.programs import Programs
from tests.e2e.test_tutorial import blocks, run
from tests.processes import until
from tests.servers.standby import Server, folder

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.long
@pytest.mark.timeout(280)
def test_a_market_is_backed_up_lost_and_restored_by_the_commands_of_the_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with folder() as root:
        monkeypatch.setenv("TMPDIR", str(root))
        until_it_streams = "until ls backups/wal/*.partial 2> /dev/null; do sleep 0.1; done\n"
        script = "\n".join([*blocks(PAGES / "backup.md"), *blocks(PAGES / "restore.md")])
        out = run(script.replace("stream=$!\n", f"stream=$!\n{until_it_streams}"), root)
        assert "damaged" not in out
        assert len(re.findall(r"^whole +yes$", out, re.MULTILINE)) == 3, out
        assert (root / "restored" / "pg" / "PG_VERSION").exists()
        assert (root / "earlier" / "pg" / "PG_VERSION").exists()


@pytest.mark.timeout(120)
def test_the_standby_takes_over_and_the_lost_one_comes_back_by_the_commands_of_the_page() -> None:
    with folder() as root:
        a, b = Server(root / "a"), Server(root / "b")
        try:
            a.initialise()
            a.configure()
            a.start()
            _walk("make", a, b)
            _walk("wait", a, b)
            until(lambda: a.ask("SELECT max(sync_state) FROM pg_stat_replication") == ("sync",))
            a.tell("CREATE TABLE kept AS SELECT 7 AS number")
            a.kill()
            _walk("promote", a, b)
            assert b.ask("SELECT number FROM kept") == (7,)
            _walk("again", a, b)
            until(lambda: b.ask("SELECT max(sync_state) FROM pg_stat_replication") == ("sync",))
            b.tell("INSERT INTO kept VALUES (8)")
            until(lambda: a.ask("SELECT count(*) FROM kept") == (2,))
            assert a.ask("SELECT pg_is_in_recovery()") == (True,)
        finally:
            a.stop()
            b.stop()


def _walk(name: str, a: Server, b: Server) -> None:
    """One block of the page, as PostgreSQL's own user."""
    (script,) = blocks(PAGES / "fail-over.md", f"sh {name}")
    programs = Programs(durable=False)
    known = {
        "FOLDER_A": str(a.folder),
        "FOLDER_B": str(b.folder),
        "URL_A": a.uri,
        "URL_B": b.uri,
        "PORT_A": str(a.port),
        "PORT_B": str(b.port),
        "PATH": f"{programs.folder}{os.pathsep}{os.defpath}",
        "LC_ALL": "C",
    }
    done = subprocess.run(
        programs.as_user([shutil.which("bash") or "/bin/bash", "-eu", "-c", script]),
        env=known,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_recipe_for_patroni_has_what_keeps_an_acknowledgement() -> None:
    recipe = yaml.safe_load((PAGES / "fail-over" / "patroni.yml").read_text(encoding="utf-8"))
    shared = recipe["bootstrap"]["dcs"]
    assert recipe["restapi"]["authentication"]["username"]
    assert recipe["postgresql"]["parameters"]["ssl"] == "on"
    assert not any("trust" in line for line in recipe["postgresql"]["pg_hba"])
    assert (shared["synchronous_mode"], shared["synchronous_mode_strict"]) == ("quorum", True)
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        assert shared["postgresql"]["parameters"][name] == "on"
