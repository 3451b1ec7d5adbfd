"""How the background jobs last went, for whoever asks whether anything is stuck.

Written by the process that led a job, read by every process that answers a probe. Losing these
rows loses nothing: the next round of each job writes them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]
ERROR_CHARACTERS_MAX = 1_000

_RECORD = """
    WITH noted AS (INSERT INTO job_run AS j
        (name, ran_us, succeeded_us, alarm_us, error, duration_us, next_us)
    VALUES (%(name)s, %(now)s, %(succeeded)s, %(alarm)s, %(error)s, %(duration)s, %(next)s)
    ON CONFLICT (name) DO UPDATE SET ran_us = excluded.ran_us, alarm_us = excluded.alarm_us,
        error = excluded.error, duration_us = excluded.duration_us, next_us = excluded.next_us,
        succeeded_us = coalesce(excluded.succeeded_us, j.succeeded_us))
    SELECT set_config('synchronous_commit', 'off', true)
"""
"""It waits for no standby: while one is away it says of each timer what it waits for."""
_READ = """
    SELECT name, ran_us, succeeded_us, alarm_us, error, duration_us, next_us
    FROM job_run ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class JobRun:
    """The last round of one job: when it began, how long it took and when the next is due.
    `succeeded_us` None: never yet.
    """

    name: str
    ran_us: int
    succeeded_us: int | None
    alarm_us: int
    error: str | None
    duration_us: int | None = None
    next_us: int | None = None

    def is_late(self, now_us: int) -> bool:
        """Whether its last success is longer ago than its alarm allows."""
        return self.succeeded_us is None or now_us - self.succeeded_us > self.alarm_us


def record(
    connection: Connection,
    name: str,
    now_us: int,
    alarm_us: int,
    error: str | None = None,
    *,
    duration_us: int | None = None,
    next_us: int | None = None,
) -> None:
    """Note that a job ran: well, or with an error that is shown and never sent anywhere."""
    connection.execute(
        _RECORD,
        {
            "name": name,
            "now": now_us,
            "succeeded": now_us if error is None else None,
            "alarm": alarm_us,
            "duration": duration_us,
            "next": next_us,
            "error": None if error is None else error[:ERROR_CHARACTERS_MAX],
        },
    )


def read(connection: Connection) -> list[JobRun]:
    """Every job that ever ran on this database, by name."""
    return [JobRun(*row) for row in connection.execute(_READ)]
