"""A database with the views of a story, for all tests of a module."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import psycopg

from projections import tables
from tests.conftest import Databases, fresh
from tests.projections.story import Told, Writer


@contextmanager
def views(
    postgres: Databases, template: str, told: Iterable[Told]
) -> Generator[psycopg.Connection[Any], None, None]:
    """All views of the facts `told`. The connection refuses to write: its tests share them."""
    with (
        fresh(postgres, template) as database,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        Writer(connection).write(told)
        tables.step_all(connection)
        connection.execute("SET default_transaction_read_only = on")
        yield connection
