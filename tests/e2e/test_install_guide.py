"""`docs/howto/install.md` and `upgrade.md` do what they say, on a PostgreSQL of their own."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from api.process.embedded_postgres import EmbeddedPostgres
from tests.e2e.test_tutorial import PORT, SECONDS_MAX, blocks, empty_folder, run
from tests.processes import free_port

PAGES = Path(__file__).parents[2] / "docs" / "howto"
ADDRESS = "postgresql://tally:CHANGE-ME@127.0.0.1/tally"
DATA = "/var/lib/tallystick-server"
__all__ = ["empty_folder"]


@pytest.mark.guides(
    "tests/cli/test_guides.py::test_every_command_of_a_guide_is_there_with_all_that_it_is_given",
    "tests/cli/test_install_pages.py::test_renter_owner_auditor_and_operator_follow_their_pages_word_for_word",
)
@pytest.mark.timeout(SECONDS_MAX + 60)
def test_an_operator_installs_and_upgrades_by_the_commands_of_the_pages(empty_folder: Path) -> None:
    with EmbeddedPostgres(empty_folder / "database") as server:
        (statements,) = blocks(PAGES / "install.md", "sql")
        with psycopg.connect(server.uri, autocommit=True) as connection:
            for statement in statements.split(";\n"):
                connection.execute(statement.encode())
        script = "\n".join([*blocks(PAGES / "install.md"), *blocks(PAGES / "upgrade.md")])
        assert (script.count(ADDRESS), script.count(DATA), script.count(PORT)) == (1, 1, 0)
        port = f"export TALLYSTICK_PORT={free_port()}\n"
        port += 'export TALLYSTICK_URL="http://127.0.0.1:$TALLYSTICK_PORT"\n'
        address = server.uri_of("tally").replace("postgres@", "tally@")
        script = script.replace(ADDRESS, f"'{address}'").replace(DATA, '"$PWD/data"')
        out = run(port + script + "\nkill $SERVER\nwait $SERVER\n", empty_folder)
    assert "0001_market.sql" in out
    looks = re.findall(r"^(\w+) +(ok|warn|failed|absent) ", out, re.MULTILINE)
    assert [name for name, state in looks if state == "failed"] == []
    assert [state for name, state in looks if name == "server"] == ["ok", "ok", "ok"]
    assert [state for name, state in looks if name == "keys"] == ["ok", "ok", "ok"]
    assert "nothing to do" in out, "the pages were walked with one version"
    assert (empty_folder / "keys.sealed").is_file()
    assert (empty_folder / "before-upgrade.sealed").is_file()
