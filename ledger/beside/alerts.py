"""Which alerts hold now, since when, and whether that was told. Not facts.

Losing these rows loses nothing but sends the messages of what holds again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.rows import class_row

from domain.record import dataclass

Connection = psycopg.Connection[Any]

_HELD = """
    INSERT INTO alert (name, about, since_us) SELECT name, about, %(now)s
    FROM unnest(%(names)s::text[], %(abouts)s::text[]) holding(name, about)
    ON CONFLICT DO NOTHING
"""
_READ = "SELECT name, about, since_us, told_us FROM alert ORDER BY name, about"
_TOLD = "UPDATE alert SET told_us = %s WHERE name = %s AND about = %s"
_ENDED = "DELETE FROM alert WHERE name = %s AND about = %s"


@dataclass(frozen=True, slots=True)
class HeldAlert:
    """An alert that held at the last look; `about` is empty or names one of several things."""

    name: str
    about: str
    since_us: int
    told_us: int | None


def hold(connection: Connection, holding: Iterable[tuple[str, str]], now_us: int) -> None:
    """Note what holds now, by name and what it is about; what held before keeps its moment."""
    found = list(holding)
    connection.execute(
        _HELD,
        {
            "names": [name for name, _ in found],
            "abouts": [each for _, each in found],
            "now": now_us,
        },
    )


def read(connection: Connection) -> list[HeldAlert]:
    """Every alert that holds or whose end was not told, by name."""
    with connection.cursor(row_factory=class_row(HeldAlert)) as cursor:
        return cursor.execute(_READ).fetchall()


def told(connection: Connection, alert: HeldAlert, now_us: int) -> None:
    """Note that the message of its beginning was sent."""
    connection.execute(_TOLD, (now_us, alert.name, alert.about))


def ended(connection: Connection, alert: HeldAlert) -> None:
    """Forget an alert that does not hold any more."""
    connection.execute(_ENDED, (alert.name, alert.about))
