"""A market behind a server: shared by a module that only adds to it, or one test's own."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from api.process.embedded_postgres import EmbeddedPostgres
from tests.conftest import grant
from tests.scenes.server import Scene, opened


@pytest.fixture(scope="session")
def template(template_with_views: str) -> str:
    """Servers find their views made."""
    return template_with_views


@pytest.fixture(scope="module")
def shared(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Scene, None, None]:
    """One market for a whole module: its tests may add to it, and count on nothing of others."""
    folder: Path = tmp_path_factory.mktemp("service")
    name = f"scene_{abs(hash(str(folder)))}"
    address = postgres.create_database(name, template=template)
    grant(address, name)
    with opened(address, folder) as scene:
        yield scene
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def scene(database: str, tmp_path: Path) -> Generator[Scene, None, None]:
    """A market of one test alone."""
    with opened(database, tmp_path) as found:
        yield found


@pytest.fixture
def in_development(database: str, tmp_path: Path) -> Generator[Scene, None, None]:
    """A market where simulated devices join and count, for tests that need one: they say why."""
    with opened(database, tmp_path, environment="development") as found:
        yield found
