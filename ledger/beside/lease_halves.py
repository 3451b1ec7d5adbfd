"""How the two halves of a lease last said they were: the renter's machine and the node's work.

    one row for each half of a lease, the latest        written over, never added to

Not facts: nothing is charged or decided by what a half says of itself. Whether a node was there is
in its signed reports alone.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import class_row

from domain.record import dataclass

Connection = psycopg.Connection[Any]

INITIATOR, ACCEPTOR = "initiator", "acceptor"
KEPT_US = 7 * 86_400_000_000
FORGOTTEN_MAX = 1_000

_HEAR = """
    INSERT INTO lease_half AS h VALUES (%(lease)s, %(half)s, %(machine)s, %(arch)s, %(os)s,
        %(kernel)s, %(is_well)s, %(detail)s, %(now)s, %(now)s)
    ON CONFLICT (lease_id, half) DO UPDATE SET machine = excluded.machine, arch = excluded.arch,
        os = excluded.os, kernel = excluded.kernel, is_well = excluded.is_well,
        detail = excluded.detail, seen_us = greatest(h.seen_us, excluded.seen_us),
        since_us = CASE WHEN h.is_well = excluded.is_well AND h.machine = excluded.machine
            THEN h.since_us ELSE greatest(h.seen_us, excluded.seen_us) END
"""
_READ = """
    SELECT half, machine, arch, os, kernel, is_well, detail, since_us, seen_us FROM lease_half
    WHERE lease_id = %s
"""
_FORGET = """
    DELETE FROM lease_half WHERE (lease_id, half) IN (
        SELECT lease_id, half FROM lease_half WHERE seen_us <= %s ORDER BY seen_us LIMIT %s)
"""


@dataclass(frozen=True, slots=True)
class Half:
    """What one half said last. `since_us`: since when that machine has been so."""

    half: str
    machine: str
    arch: str | None
    os: str | None
    kernel: str | None
    is_well: bool
    detail: str
    since_us: int
    seen_us: int


def hear(
    connection: Connection,
    lease_id: str,
    half: str,
    *,
    machine: str,
    is_well: bool,
    detail: str,
    now_us: int,
    arch: str | None = None,
    os: str | None = None,
    kernel: str | None = None,
) -> None:
    """Keep what a half says of itself, in place of what it said before."""
    told = {
        "lease": lease_id,
        "half": half,
        "machine": machine,
        "arch": arch,
        "os": os,
        "kernel": kernel,
        "is_well": is_well,
        "detail": detail,
        "now": now_us,
    }
    connection.execute(_HEAR, told)


def read(connection: Connection, lease_id: str) -> dict[str, Half]:
    """The halves that have said anything, by name."""
    with connection.cursor(row_factory=class_row(Half)) as cursor:
        return {one.half: one for one in cursor.execute(_READ, (lease_id,)).fetchall()}


def forget(connection: Connection, now_us: int) -> int:
    """Let go of halves that were last heard a week ago; how many."""
    return connection.execute(_FORGET, (now_us - KEPT_US, FORGOTTEN_MAX)).rowcount
