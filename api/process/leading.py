"""Advisory locks of the jobs: one leader of each among all processes, and a way to keep one out.

    at most one session holds the lock of a job;   it ends with the session, however that ends

Whoever leads begins when the synchronous standbys have all that was recorded: what a timer sends
out rests on nothing that may still be lost.

Knows the timers by name only; what they do is in their rooms. Connections must be in autocommit
mode and stay open while the lock is held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg

from ledger import advisory
from ledger.log.durable import wait_for_standbys

Connection = psycopg.Connection[Any]


@contextmanager
def leading(
    connection: Connection, job: str, *, rests_on_log: bool = True
) -> Generator[bool, None, None]:
    """Whether this session leads the job just now; it does not wait for another leader. Of a job
    that does not rest on what is recorded it waits for no standby either.
    """
    leads = advisory.try_lock(connection, _key(job))
    try:
        if leads and rests_on_log:
            wait_for_standbys(connection)
        yield leads
    finally:
        if leads:
            advisory.unlock(connection, _key(job))


@contextmanager
def keeping_out(connection: Connection, job: str) -> Generator[None, None, None]:
    """Wait until nobody leads the job, and let nobody lead it meanwhile. Raises LockHeld."""
    advisory.lock(connection, _key(job), f"the job {job}")
    try:
        yield
    finally:
        advisory.unlock(connection, _key(job))


def _key(job: str) -> int:
    digest = hashlib.sha256(b"tallystick/job/v1" + job.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
