"""A market behind a server: shared by a module that only adds to it, or one test's own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Databases
from tests.scenes.server import Scene, opened

_numbers: Iterator[int] = itertools.count(1)


@dataclass(frozen=True)
class Market:
    """A market that was founded once; every scene runs on a copy of its database and folder."""

    postgres: Databases
    database: str
    folder: Path
    scene: Scene

    @contextmanager
    def copied(self, folder: Path, **settings: Any) -> Generator[Scene, None, None]:
        name = f"scene_{next(_numbers)}"
        address = self.postgres.create_database(name, template=self.database)
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        with opened(address, folder, self.scene, **settings) as scene:
            yield scene
        self.postgres.drop_database(name)


@pytest.fixture(scope="session")
def template(template_with_views: str) -> str:
    """Servers find their views made."""
    return template_with_views


@pytest.fixture(scope="session")
def founded_market(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Market:
    """Founding takes most of what a scene costs: it is done once."""
    return _founded(postgres, template, tmp_path_factory.mktemp("market"))


@pytest.fixture(scope="session")
def founded_in_development(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Market:
    """What is recorded at a founding says whether it was one for development."""
    folder = tmp_path_factory.mktemp("market")
    return _founded(postgres, template, folder, environment="development")


def _founded(postgres: Databases, template: str, folder: Path, **settings: Any) -> Market:
    name = f"market_{next(_numbers)}"
    address = postgres.create_database(name, template=template)
    with opened(address, folder, **settings) as scene:
        return Market(postgres, name, folder, scene)


@pytest.fixture(scope="module")
def shared(
    founded_market: Market, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Scene, None, None]:
    """One market for a whole module: its tests may add to it, and count on nothing of others."""
    with founded_market.copied(tmp_path_factory.mktemp("service")) as scene:
        yield scene


@pytest.fixture
def scene(founded_market: Market, tmp_path: Path) -> Generator[Scene, None, None]:
    """A market of one test alone."""
    with founded_market.copied(tmp_path) as scene:
        yield scene


@pytest.fixture
def in_development(founded_in_development: Market, tmp_path: Path) -> Generator[Scene, None, None]:
    """A market where simulated devices join and count, for tests that need one: they say why."""
    with founded_in_development.copied(tmp_path, environment="development") as found:
        yield found
