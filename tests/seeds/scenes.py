"""What a process of a seeded suite opens once: the servers that pytest's fixtures open, too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tests.conftest import Databases, migrated, running, with_views


@contextmanager
def postgres_migrated() -> Generator[tuple[Databases, str], None, None]:
    """A server, and the name of the migrated database that each seed copies."""
    with running() as postgres:
        yield postgres, migrated(postgres)


@contextmanager
def postgres_with_views() -> Generator[tuple[Databases, str], None, None]:
    """A server, and the name of the migrated database with empty views that each seed copies."""
    with postgres_migrated() as (postgres, template):
        yield postgres, with_views(postgres, template)
