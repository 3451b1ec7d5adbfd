"""The oldest PostgreSQL we say we run on, with the tests that touch most of what SQL we have.

Debian 12 has PostgreSQL 15 (`apt-get install postgresql-15`, binaries alone are enough). All other
tests run on the embedded 18.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from ledger import migrate
from projections import tables
from tests.conftest import OTHER_POSTGRES, Databases, running
from tests.scenes.shell import tallystick

BINARIES = Path("/usr/lib/postgresql/15/bin")
ROOT = Path(__file__).parents[2]
SUITE = (
    "tests/ledger/test_migrate.py",
    "tests/ledger/log/test_market_protection.py",
    "tests/ledger/log/test_market_append.py",
    "tests/projections/test_reads.py",
)

LIKE_OURS = "ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C.UTF-8' TEMPLATE template0"

pytestmark = pytest.mark.skipif(
    not (BINARIES / "postgres").exists(), reason="no PostgreSQL 15: apt-get install postgresql-15"
)


@pytest.fixture(scope="module")
def oldest() -> Generator[Databases, None, None]:
    with running(BINARIES) as server:
        yield server


def test_a_login_that_may_create_roles_begins_a_market(oldest: Databases, tmp_path: Path) -> None:
    with psycopg.connect(oldest.uri, autocommit=True) as connection:
        assert connection.info.server_version // 10_000 == 15
        connection.execute("CREATE ROLE tally LOGIN CREATEROLE")
        connection.execute("CREATE DATABASE tally OWNER tally")
    address = oldest.uri_of("tally").replace("postgres@", "tally@")
    at = {"DATABASE_URL": address, "DATA_DIR": tmp_path}
    migrated = tallystick("migrate", "--json", **at)
    assert migrated.code == 0, migrated.err
    assert migrated.document["applied"] == [one.name for one in migrate.shipped()]
    assert tallystick("migrate", **at).out == "nothing to do\n"
    begun = tallystick("admin", "bootstrap", "--json", **at)
    assert begun.code == 0, begun.err
    assert tallystick("jobs", "--once", "--json", **at).code == 0
    with psycopg.connect(oldest.uri_of("tally"), autocommit=True) as connection:
        connection.execute("UPDATE proj_access.definition SET sha256 = '' RETURNING 1").fetchone()
        assert tallystick("jobs", "--once", "--json", **at).code == 0, "a view is made anew"
        told = connection.execute("SELECT sha256 <> '' FROM proj_access.definition").fetchone()
        assert told == (True,)


@pytest.mark.parametrize(
    ("made_with", "said"),
    [
        ("ENCODING 'SQL_ASCII' LOCALE 'C'", "stores text as SQL_ASCII"),
        ("LOCALE_PROVIDER icu ICU_LOCALE 'en-US'", "sorts text by a language"),
    ],
)
def test_a_database_with_other_text_is_refused_and_told_how_to_make_one(
    oldest: Databases, tmp_path: Path, made_with: str, said: str
) -> None:
    """No test looks at an order by language, and text came back as bytes: views were not made."""
    with psycopg.connect(oldest.uri, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS other")
        connection.execute(f"CREATE DATABASE other {made_with} TEMPLATE template0".encode())
    at = {"DATABASE_URL": oldest.uri_of("other"), "DATA_DIR": tmp_path}
    for command in (("migrate",), ("migrate", "--plan"), ("serve",), ("jobs", "--once")):
        ran = tallystick(*command, **at)
        assert (ran.code, "Traceback" in ran.err) == (1, False), ran
        assert said in ran.err
        make = "CREATE DATABASE name OWNER login " + LIKE_OURS
        assert make in ran.err
    told = tallystick("doctor", **at)
    assert told.code == 1
    assert said in told.out + told.err
    with psycopg.connect(oldest.uri_of("other"), autocommit=True) as connection:
        assert migrate.text_unusable(connection) is not None
        connection.execute("DROP DATABASE IF EXISTS better")
        connection.execute(f"CREATE DATABASE better {LIKE_OURS}".encode())
    with psycopg.connect(oldest.uri_of("better")) as connection:
        assert migrate.text_unusable(connection) is None


def test_the_page_makes_the_database_that_the_refusal_names() -> None:
    for file in ("docs/howto/install.md", "deploy/container/login.sh"):
        assert f"CREATE DATABASE tally OWNER tally {LIKE_OURS};" in Path(file).read_text()


class ByLanguage(Databases):
    """A cluster whose databases sort by a language, if nothing else is said."""

    def _run(self, program: str, *arguments: str, **more: Any) -> Any:
        added = ("--locale-provider=icu", "--icu-locale=en-US") if program == "initdb" else ()
        return super()._run(program, *arguments, *added, **more)


def test_in_a_cluster_that_sorts_by_a_language_the_same_statement_makes_one_that_does_not() -> None:
    """There `LOCALE` alone left the order to the language: the refusal led to itself."""
    with TemporaryDirectory(prefix="tally") as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)  # PostgreSQL does not run as root
        server = stack.enter_context(ByLanguage(Path(folder), durable=False, binaries=BINARIES))
        connection = stack.enter_context(psycopg.connect(server.uri, autocommit=True))
        assert migrate.text_unusable(connection) is not None
        connection.execute(f"CREATE DATABASE better {LIKE_OURS}".encode())
        with psycopg.connect(server.uri_of("better")) as better:
            assert migrate.text_unusable(better) is None


def test_every_view_is_made_by_the_superuser_too(oldest: Databases) -> None:
    address = oldest.create_database("views")
    migrate.migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        tables.ensure(connection)
        tables.step_all(connection)


@pytest.mark.timeout(900)
@pytest.mark.slow(
    "::test_a_login_that_may_create_roles_begins_a_market",
    "::test_every_view_is_made_by_the_superuser_too",
)
def test_logs_books_and_views_hold_what_they_hold_on_the_embedded_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *SUITE],
        cwd=ROOT,
        env={**os.environ, OTHER_POSTGRES: str(BINARIES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
