"""What the work of one lease brings and leaves beside its log: sealed variables, and results.

    a result's piece is kept  =>  its bytes have its SHA-256, and the lease's results name it
    bytes that the results of a lease name <= the most of one workspace
    bytes that the results of an account name, and of their lists, <= its quota;  of all together
        <= the server's

Not facts. Sealed variables go as soon as the work has begun, results a day after they came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

import psycopg

from ledger.beside.workspaces import QuotaReached, Room, hashes

Connection = psycopg.Connection[Any]

KEPT_US = 86_400_000_000
FORGOTTEN_MAX = 1_000
_LOCK = "SELECT pg_advisory_xact_lock(7418530018)"

_SEAL = """
    INSERT INTO lease_secret VALUES (%s, %s, %s) ON CONFLICT (lease_id) DO NOTHING
"""
_LIST = """
    INSERT INTO lease_result VALUES (%s, %s, %s, %s, %s) ON CONFLICT (lease_id) DO NOTHING
"""
_NAME = """
    INSERT INTO lease_result_piece
    SELECT %s, named.sha256, named.bytes, NULL
    FROM unnest(%s::bytea[], %s::int[]) AS named (sha256, bytes) ON CONFLICT DO NOTHING
"""
_MISSING = """
    SELECT sha256 FROM lease_result_piece WHERE lease_id = %s AND body IS NULL ORDER BY sha256
"""
_FILL = """
    UPDATE lease_result_piece SET body = %(body)s
    WHERE lease_id = %(lease)s AND sha256 = %(id)s AND bytes = %(bytes)s AND body IS NULL
"""
_HERE = """
    FROM lease_result_piece WHERE lease_id = %s AND sha256 = ANY(%s) AND body IS NOT NULL
"""
_LENGTHS = "SELECT sha256, bytes" + _HERE
_PIECES = "SELECT sha256, body" + _HERE
_USED = """
    SELECT coalesce(sum(bytes) FILTER (WHERE account_id = %s), 0)::bigint,
        coalesce(sum(bytes), 0)::bigint FROM lease_result
"""
_FORGET = """
    DELETE FROM lease_result WHERE lease_id IN (
        SELECT lease_id FROM lease_result WHERE at_us <= %s ORDER BY at_us LIMIT %s)
"""


def seal(connection: Connection, lease_id: str, sealed: bytes, now_us: int) -> bool:
    """Keep the sealed variables of a lease; False: it has some, and they stay."""
    return connection.execute(_SEAL, (lease_id, sealed, now_us)).rowcount == 1


def sealed_of(connection: Connection, lease_id: str) -> bytes | None:
    row = connection.execute(
        "SELECT sealed FROM lease_secret WHERE lease_id = %s", (lease_id,)
    ).fetchone()
    return None if row is None else bytes(row[0])


def sealed_leases(connection: Connection) -> list[str]:
    """The leases that have sealed variables here."""
    found = connection.execute("SELECT lease_id FROM lease_secret ORDER BY at_us LIMIT 1000")
    return [str(one) for (one,) in found]


def unseal(connection: Connection, lease_ids: Collection[str]) -> int:
    """Delete the sealed variables of these leases; of how many there were some."""
    deleted = connection.execute(
        "DELETE FROM lease_secret WHERE lease_id = ANY(%s)", (list(lease_ids),)
    )
    return deleted.rowcount


def list_results(
    connection: Connection,
    lease_id: str,
    account_id: str,
    document: bytes,
    pieces: Mapping[str, int],
    room: Room,
    now_us: int,
) -> list[str]:
    """Keep the list of what came of a lease, once; the pieces that are to be sent, as hex. Raises
    QuotaReached.
    """
    with connection.transaction():
        connection.execute(_LOCK)
        size = len(document) + sum(pieces.values())
        listed = connection.execute(_LIST, (lease_id, account_id, document, size, now_us))
        if listed.rowcount:
            told = (lease_id, hashes(pieces), list(pieces.values()))
            connection.execute(_NAME, told)
            _require_room(connection, account_id, room)
        return missing(connection, lease_id)


def _require_room(connection: Connection, account_id: str, room: Room) -> None:
    """Results have room of their own, as much as folders. Raises QuotaReached."""
    row = connection.execute(_USED, (account_id,)).fetchone()
    assert row is not None
    of_account, of_all = row
    if of_account > room.of_account:
        raise QuotaReached(of_account, room.of_account, of_all=False)
    if of_all > room.of_all:
        raise QuotaReached(of_all, room.of_all, of_all=True)


def missing(connection: Connection, lease_id: str) -> list[str]:
    """The pieces of the results that are named and not here."""
    return [bytes(one).hex() for (one,) in connection.execute(_MISSING, (lease_id,))]


def fill(connection: Connection, lease_id: str, bodies: Iterable[bytes]) -> int:
    """Keep pieces that the results name; how many were new."""
    kept = 0
    for body in bodies:
        told = {"lease": lease_id, "id": sha256(body).digest(), "bytes": len(body), "body": body}
        kept += connection.execute(_FILL, told).rowcount
    return kept


def results_of(connection: Connection, lease_id: str) -> bytes | None:
    """The list of files; None: nothing came."""
    row = connection.execute(
        "SELECT document FROM lease_result WHERE lease_id = %s", (lease_id,)
    ).fetchone()
    return None if row is None else bytes(row[0])


def lengths(connection: Connection, lease_id: str, wanted: Collection[str]) -> dict[str, int]:
    """Those of the wanted pieces that came of this lease: the bytes of each."""
    rows = connection.execute(_LENGTHS, (lease_id, hashes(wanted))).fetchall()
    return {bytes(key).hex(): length for key, length in rows}


def pieces(connection: Connection, lease_id: str, wanted: Collection[str]) -> dict[str, bytes]:
    """Those of the wanted pieces that came of this lease, by their hash."""
    rows = connection.execute(_PIECES, (lease_id, hashes(wanted))).fetchall()
    return {bytes(key).hex(): bytes(body) for key, body in rows}


def delete_results(connection: Connection, lease_id: str) -> bool:
    """Delete what a lease left, its list and every piece; whether there was something."""
    deleted = connection.execute("DELETE FROM lease_result WHERE lease_id = %s", (lease_id,))
    return deleted.rowcount == 1


def forget(connection: Connection, now_us: int) -> int:
    """Delete results that came a day ago or before; of how many leases."""
    return connection.execute(_FORGET, (now_us - KEPT_US, FORGOTTEN_MAX)).rowcount
