"""Views are there, empty; those of the story are made once, and each test that changes them has a
copy of its own.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg
import pytest

from projections import tables
from tests.conftest import Databases, fresh
from tests.projections.reports import append_reports
from tests.projections.story import Size, Writer, story


@pytest.fixture(scope="session")
def template(template_with_views: str) -> str:
    """Tests find the views made."""
    return template_with_views


@pytest.fixture
def bare_database(postgres: Databases, template_without_views: str) -> Generator[str, None, None]:
    """The address of a migrated database for a test that makes the views itself."""
    with fresh(postgres, template_without_views) as address:
        yield address


@pytest.fixture
def bare(bare_database: str) -> Generator[psycopg.Connection[Any], None, None]:
    """A connection to `bare_database` on which each statement is a transaction of its own."""
    with psycopg.connect(bare_database, autocommit=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def story_template(postgres: Databases, template: str) -> str:
    """The name of a database with the story, in which every table of every view has rows, with
    reports, and with views that followed all of it.
    """
    name = "template_story"
    address = postgres.create_database(name, template=template)
    with psycopg.connect(address, autocommit=True) as connection:
        Writer(connection).write(story(Size()))
        append_reports(connection, nodes=5, reports=4)
        tables.step_all(connection)
    return name


@pytest.fixture
def followed_database(postgres: Databases, story_template: str) -> Generator[str, None, None]:
    """The address of a copy of it."""
    with fresh(postgres, story_template) as address:
        yield address


@pytest.fixture
def followed(followed_database: str) -> Generator[psycopg.Connection[Any], None, None]:
    """A connection to `followed_database` on which each statement is a transaction of its own."""
    with psycopg.connect(followed_database, autocommit=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def followed_by_all(
    postgres: Databases, story_template: str
) -> Generator[psycopg.Connection[Any], None, None]:
    """A connection to a copy for all tests of a module: they leave every row as they found it."""
    with (
        fresh(postgres, story_template) as address,
        psycopg.connect(address, autocommit=True) as opened,
    ):
        yield opened
