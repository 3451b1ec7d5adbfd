"""Folders that travel to nodes with work, in pieces by content, for each account its own.

    a piece is found by (account, SHA-256)       its hash opens nothing of another account
    bytes named by an account, and of its lists, <= its quota;  of all together <= the server's
    a piece is kept  =>  its bytes have its SHA-256, and a workspace of the account names it

Not facts: nothing is charged or decided by what a folder holds. A workspace goes a day after it was
last kept or named, unless open work names it; its pieces go with the last workspace that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]
IsOpen = Callable[[Sequence[str]], bool]
"""Whether one of these jobs has work that is open."""

KEPT_US = 86_400_000_000
FRESH_US = 3_600_000_000
"""For so long a workspace makes no room for another one: its work is being asked for."""
FORGOTTEN_MAX = 1_000
_LOCK = "SELECT pg_advisory_xact_lock(7418530017)"

_KEEP = """
    INSERT INTO workspace VALUES (%(account)s, %(id)s, %(document)s, %(now)s)
    ON CONFLICT (account_id, sha256) DO UPDATE SET at_us = greatest(workspace.at_us, excluded.at_us)
"""
_NAME = """
    INSERT INTO workspace_piece
    SELECT %(account)s, named.sha256, named.bytes, NULL
    FROM unnest(%(pieces)s::bytea[], %(lengths)s::int[]) AS named (sha256, bytes)
    ON CONFLICT (account_id, sha256) DO NOTHING
"""
_JOIN = """
    INSERT INTO workspace_part
    SELECT %(account)s, %(id)s, piece FROM unnest(%(pieces)s::bytea[]) AS piece
    ON CONFLICT DO NOTHING
"""
_MISSING = """
    SELECT p.sha256 FROM workspace_part JOIN workspace_piece p
        ON p.account_id = workspace_part.account_id AND p.sha256 = piece
    WHERE workspace_part.account_id = %s AND workspace = %s AND body IS NULL ORDER BY p.sha256
"""
_USED = """
    SELECT (SELECT coalesce(sum(bytes), 0) FROM workspace_piece WHERE account_id = %(account)s)
        + (SELECT coalesce(sum(octet_length(document)), 0) FROM workspace
            WHERE account_id = %(account)s)
"""
_USED_BY_ALL = """
    SELECT (SELECT coalesce(sum(bytes), 0) FROM workspace_piece)
        + (SELECT coalesce(sum(octet_length(document)), 0) FROM workspace)
"""
"""Lists count too: a list of five thousand empty files has no byte of a piece."""
_FILL = """
    UPDATE workspace_piece SET body = %(body)s
    WHERE account_id = %(account)s AND sha256 = %(id)s AND bytes = %(bytes)s AND body IS NULL
"""
_IS_NAMED = "SELECT 1 FROM workspace_piece WHERE account_id = %s AND sha256 = %s AND bytes = %s"
_OLD = """
    SELECT account_id, sha256 FROM workspace
    WHERE at_us <= %(before)s AND (%(account)s::text IS NULL OR account_id = %(account)s)
    ORDER BY at_us LIMIT %(limit)s
"""
_JOBS = "SELECT job_id FROM workspace_job WHERE account_id = %s AND workspace = %s"
_STAYS = """
    UPDATE workspace SET at_us = greatest(at_us, %s) WHERE account_id = %s AND sha256 = %s
"""
_DROP = "DELETE FROM workspace WHERE account_id = %s AND sha256 = %s AND at_us <= %s"
"""Unless new work has named it since it was found old."""
_DROP_PIECES = """
    DELETE FROM workspace_piece p WHERE (%(account)s::text IS NULL OR p.account_id = %(account)s)
        AND NOT EXISTS (SELECT FROM workspace_part w
            WHERE w.account_id = p.account_id AND w.piece = p.sha256)
"""
_OF_WORKSPACE = """
    FROM workspace_part JOIN workspace_piece p
        ON p.account_id = workspace_part.account_id AND p.sha256 = piece
    WHERE workspace_part.account_id = %s AND workspace = %s AND p.sha256 = ANY(%s)
        AND body IS NOT NULL
"""
_LENGTHS = "SELECT p.sha256, p.bytes" + _OF_WORKSPACE
_PIECES = "SELECT p.sha256, p.body" + _OF_WORKSPACE


class QuotaReached(Exception):
    """There is no room for it. `of_all`: the server's, and not the account's, is used up."""

    def __init__(self, needed: int, most: int, *, of_all: bool) -> None:
        super().__init__(f"{needed} bytes of {most}")
        self.needed, self.most, self.of_all = needed, most, of_all


@dataclass(frozen=True, slots=True)
class Room:
    """The most bytes that an account, and all accounts together, may have kept."""

    of_account: int
    of_all: int


def keep(
    connection: Connection,
    account_id: str,
    digest: str,
    document: bytes,
    pieces: Mapping[str, int],
    room: Room,
    now_us: int,
    *,
    is_open: IsOpen,
) -> list[str]:
    """Keep a workspace; which of its pieces the account has still to send, as hex.

    What the account kept earlier and no open work names makes room. Raises QuotaReached.
    """
    told = {
        "account": account_id,
        "id": bytes.fromhex(digest),
        "document": document,
        "now": now_us,
        "pieces": hashes(pieces),
        "lengths": list(pieces.values()),
    }
    with connection.transaction():
        connection.execute(_LOCK)
        connection.execute(_KEEP, told)
        connection.execute(_NAME, told)
        connection.execute(_JOIN, told)
        _make_room(connection, account_id, room, now_us, is_open)
        return _missing(connection, account_id, digest)


def _make_room(
    connection: Connection, account_id: str, room: Room, now_us: int, is_open: IsOpen
) -> None:
    """The account's oldest workspaces go until what it names fits. Raises QuotaReached."""
    used = _number(connection, _USED, account=account_id)
    if used > room.of_account:
        _forget(connection, now_us - FRESH_US, now_us, is_open, account_id)
        used = _number(connection, _USED, account=account_id)
    if used > room.of_account:
        raise QuotaReached(used, room.of_account, of_all=False)
    used = _number(connection, _USED_BY_ALL)
    if used > room.of_all:
        raise QuotaReached(used, room.of_all, of_all=True)


def fill(connection: Connection, account_id: str, bodies: Iterable[bytes]) -> int:
    """Keep pieces that a workspace of the account names; how many of these it names. What is here
    already stays as it is.
    """
    named = 0
    for body in bodies:
        told = {"account": account_id, "id": sha256(body).digest(), "bytes": len(body)}
        is_new = connection.execute(_FILL, {**told, "body": body}).rowcount
        if is_new or connection.execute(_IS_NAMED, tuple(told.values())).fetchone() is not None:
            named += 1
    return named


def missing(connection: Connection, account_id: str, digest: str) -> list[str] | None:
    """The pieces of a workspace that are not here; None: the account has no such workspace."""
    if document_of(connection, account_id, digest) is None:
        return None
    return _missing(connection, account_id, digest)


def _missing(connection: Connection, account_id: str, digest: str) -> list[str]:
    found = connection.execute(_MISSING, _key(account_id, digest))
    return [bytes(one).hex() for (one,) in found]


def use(connection: Connection, account_id: str, digest: str, job_id: str, now_us: int) -> None:
    """A job names it: it is kept from now on, and while the job has open work. Which of its pieces
    are here is asked after this, when it does not go any more.
    """
    connection.execute(_STAYS, (now_us, *_key(account_id, digest)))
    connection.execute(
        """INSERT INTO workspace_job SELECT account_id, sha256, %s FROM workspace
            WHERE account_id = %s AND sha256 = %s ON CONFLICT DO NOTHING""",
        (job_id, *_key(account_id, digest)),
    )


def document_of(connection: Connection, account_id: str, digest: str) -> bytes | None:
    """The canonical document of a workspace of this account; None: it has none of this digest."""
    row = connection.execute(
        "SELECT document FROM workspace WHERE account_id = %s AND sha256 = %s",
        _key(account_id, digest),
    ).fetchone()
    return None if row is None else bytes(row[0])


def lengths(
    connection: Connection, account_id: str, digest: str, wanted: Collection[str]
) -> dict[str, int]:
    """Those of the wanted pieces that this workspace of this account has: the bytes of each."""
    rows = connection.execute(_LENGTHS, (*_key(account_id, digest), hashes(wanted))).fetchall()
    return {bytes(key).hex(): length for key, length in rows}


def pieces(
    connection: Connection, account_id: str, digest: str, wanted: Collection[str]
) -> dict[str, bytes]:
    """Those of the wanted pieces that this workspace of this account has, by their hash."""
    rows = connection.execute(_PIECES, (*_key(account_id, digest), hashes(wanted))).fetchall()
    return {bytes(key).hex(): bytes(body) for key, body in rows}


def hashes(told: Iterable[str]) -> list[bytes]:
    """From hex."""
    return [bytes.fromhex(one) for one in told]


def forget(connection: Connection, now_us: int, is_open: IsOpen) -> int:
    """Delete what was last kept or named a day ago and has no open work; how many workspaces."""
    with connection.transaction():
        connection.execute(_LOCK)
        return _forget(connection, now_us - KEPT_US, now_us, is_open, None)


def _forget(
    connection: Connection, before_us: int, now_us: int, is_open: IsOpen, account_id: str | None
) -> int:
    told = {"before": before_us, "account": account_id, "limit": FORGOTTEN_MAX}
    gone = 0
    for owner, key in connection.execute(_OLD, told).fetchall():
        jobs = connection.execute(_JOBS, (owner, key)).fetchall()
        if is_open([str(job_id) for (job_id,) in jobs]):
            connection.execute(_STAYS, (now_us, owner, key))
        else:
            gone += connection.execute(_DROP, (owner, key, before_us)).rowcount
    if gone:
        connection.execute(_DROP_PIECES, {"account": account_id})
    return gone


def _key(account_id: str, digest: str) -> tuple[str, bytes]:
    return account_id, bytes.fromhex(digest)


def _number(connection: Connection, query: Any, **told: Any) -> int:
    row = connection.execute(query, told).fetchone()
    assert row is not None
    return int(row[0])
