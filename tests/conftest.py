"""One embedded PostgreSQL for the whole run, and a fresh migrated database for each test.

The database is migrated once and copied, so a test pays for a copy and not for the migrations;
where a server is tested, it is copied with its views.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from api.process.embedded_postgres import EmbeddedPostgres
from cli.operating import kept_code
from ledger import migrate
from projections import tables
from tests import examples
from tests.processes import memory

OTHER_POSTGRES = "TALLYSTICK_TEST_POSTGRES"
"""The folder of `initdb` and `postgres` of the version to test on, instead of the embedded one."""
CLONES_FROM = 180_000
"""The version of PostgreSQL that lets the kernel copy files."""
LEFT_MAX = 1
"""Databases that were given back and are still there when another one is made."""
examples.register()
if (_in_memory := memory()) is not None:
    # Where `tmp_path` lies: spools and databases of tests wait for no disk.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_in_memory))
_numbers: Iterator[int] = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is imported and collected stays until the end: the collector never looks at it again.

    Ten thousand tests and what they import are millions of objects; passing over them again and
    again took a third of the processor time of the quick tests. What tests themselves leave behind
    is looked for every twenty thousand objects, not every seven hundred: 1.1 s instead of 1.8 s of
    27 s of the domain's tests of markets, pools and leasing.
    """
    recursion_max = sys.getrecursionlimit()
    gc.disable()
    try:
        with kept_code.kept():
            _import_in_turn(session.config)
            return (yield)
    finally:
        # Libraries under the Ethereum ones lift it where they are imported before ours, which put
        # it back: deeply nested JSON then overflows the C stack of the parser.
        sys.setrecursionlimit(recursion_max)
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def _import_in_turn(config: pytest.Config) -> None:
    """Each worker imports all tests, and begins at a place of its own: what one has compiled, the
    others find. In a fresh clone they would compile all of it beside each other.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return
    tests = Path(__file__).parent
    files = sorted(tests.rglob("test_*.py"))
    begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[begin:] + files[:begin]:
        name = file.relative_to(tests.parent).with_suffix("")
        with suppress(Exception, pytest.skip.Exception):  # collecting it says what is wrong
            import_module(".".join(name.parts))


class Databases(EmbeddedPostgres):
    """A server where one connection makes and drops all databases, and lets the roles make views in
    them: what was granted on a database is not copied with it.

    A connection of its own for each of the three takes as long as a third of the copy. A session
    ends a moment after its connection was closed, and PostgreSQL waits a tenth of a second for one
    that is ending: the database that was given back last is dropped later.
    """

    def __enter__(self) -> Databases:
        super().__enter__()
        self._left: list[str] = []
        self._connection = psycopg.connect(self.uri, autocommit=True)
        if self._connection.info.server_version >= CLONES_FROM:
            self._connection.execute("SET file_copy_method = clone")  # bytes stay in the kernel
        return self

    def __exit__(self, *error: Any) -> None:
        self._connection.close()
        super().__exit__(*error)

    def _settings(self) -> str:
        """Nothing is backed up from here: no process reads the WAL again for a summary of it."""
        return super()._settings() + "summarize_wal = off\n" * (self._binaries is None)

    def create_database(self, name: str, *, template: str | None = None) -> str:
        """Its address. As a copy of `template`, if given, with what was granted on that."""
        while len(self._left) > LEFT_MAX or name in self._left:
            self._drop(self._left.pop(0))
        database = sql.Identifier(name)
        if template is None:
            self._connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
            return self.uri_of(name)
        # By files: block by block through the WAL takes twice as long for many small tables.
        copied = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self._connection.execute(copied.format(database, sql.Identifier(template)))
        granted = sql.SQL("GRANT CREATE ON DATABASE {} TO tallystick_owner, tallystick_projections")
        self._connection.execute(granted.format(database))
        return self.uri_of(name)

    def drop_database(self, name: str) -> None:
        """Away with it, whoever is still connected, when others are made."""
        self._left.append(name)

    def _drop(self, name: str) -> None:
        self._connection.execute(
            sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        )


@pytest.fixture(scope="session")
def postgres() -> Generator[Databases, None, None]:
    """A server without fsync: a killed process loses nothing, only a crashed machine would."""
    other = os.environ.get(OTHER_POSTGRES)
    with running(None if other is None else Path(other)) as server:
        yield server


@contextmanager
def running(binaries: Path | None = None) -> Generator[Databases, None, None]:
    """A server of these binaries, or of the embedded ones, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tally", dir=memory()) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL does not run as root
        with Databases(Path(folder), durable=False, binaries=binaries) as server:
            yield server


def migrated(postgres: Databases) -> str:
    """The name of a migrated database, made to be copied."""
    migrate.migrate(postgres.create_database("template_tally"))
    return "template_tally"


def with_views(postgres: Databases, template: str) -> str:
    """The name of a copy of it that has empty views."""
    name = f"{template}_views"
    address = postgres.create_database(name, template=template)
    with psycopg.connect(address, autocommit=True) as connection:
        tables.ensure(connection)
    return name


@pytest.fixture(scope="session")
def template_without_views(postgres: Databases) -> str:
    """The name of the migrated database."""
    return migrated(postgres)


@pytest.fixture(scope="session")
def template_with_views(postgres: Databases, template_without_views: str) -> str:
    """The name of the migrated database with empty views, so that no server has to make them."""
    return with_views(postgres, template_without_views)


@pytest.fixture(scope="session")
def template(template_without_views: str) -> str:
    """The name of the migrated database that every `database` is a copy of."""
    return template_without_views


@pytest.fixture
def database(postgres: Databases, template: str) -> Generator[str, None, None]:
    """The address of a fresh, migrated database of this test alone."""
    with fresh(postgres, template) as address:
        yield address


@pytest.fixture
def connection(database: str) -> Generator[psycopg.Connection[Any], None, None]:
    """A connection to `database` on which each statement is a transaction of its own."""
    with psycopg.connect(database, autocommit=True) as opened:
        yield opened


@contextmanager
def fresh(postgres: Databases, template: str) -> Generator[str, None, None]:
    """The address of a migrated database that is dropped at the end."""
    name = f"test_{next(_numbers)}"
    yield postgres.create_database(name, template=template)
    postgres.drop_database(name)


@pytest.fixture
def empty_database(postgres: Databases) -> Generator[str, None, None]:
    """The address of a database in which nothing was created yet."""
    name = f"empty_{next(_numbers)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)
