"""What the work of leases printed: chunks in order, bounded for each lease, forgotten in time.

    bytes kept of a lease <= LEASE_BYTES_MAX          PostgreSQL checks it too
    a chunk sent twice is kept once                   by its number

Not facts: nothing is charged or decided by what a program says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

STREAMS = ("stdout", "stderr", "note")
"""`note`: what the executor says itself."""
CHUNK_BYTES_MAX = 16_384
LEASE_BYTES_MAX = 2_097_152
LEASE_CHUNKS_MAX = 65_536
KEPT_US = 7 * 86_400_000_000
FORGOTTEN_MAX = 1_000
END_BYTES, END_CHUNKS = 65_536, 1_000
"""What is read of the end of a log: more is not looked at as it runs."""

_BEGIN = """
    INSERT INTO lease_log VALUES (%(id)s, 0, 0, 0, %(now)s) ON CONFLICT (lease_id) DO NOTHING
"""
_LOCK = "SELECT next_seq, bytes FROM lease_log WHERE lease_id = %s FOR UPDATE"
_KEEP = "INSERT INTO lease_log_chunk VALUES (%s, %s, %s, %s, %s)"
_MOVE = """
    UPDATE lease_log SET next_seq = %(next)s, bytes = bytes + %(bytes)s,
        left_out = left_out + %(left_out)s, at_us = %(now)s WHERE lease_id = %(id)s
"""
_HEAD = "SELECT next_seq, bytes, left_out FROM lease_log WHERE lease_id = %s"
_READ = """
    SELECT seq, stream, at_us, body FROM lease_log_chunk WHERE lease_id = %s AND seq >= %s
    ORDER BY seq LIMIT %s
"""
_ENDS = """
    SELECT h.lease_id, h.next_seq, coalesce(string_agg(c.body, ''::bytea ORDER BY c.seq), ''::bytea)
    FROM unnest(%(ids)s::text[], %(seqs)s::int4[]) a(lease_id, seq)
    JOIN lease_log h ON h.lease_id = a.lease_id AND h.next_seq > a.seq
    LEFT JOIN LATERAL (
        SELECT n.seq, n.body,
            sum(octet_length(n.body)) OVER (ORDER BY n.seq DESC) - octet_length(n.body) AS after
        FROM (SELECT seq, body FROM lease_log_chunk
            WHERE lease_id = h.lease_id AND seq >= a.seq ORDER BY seq DESC LIMIT %(most)s) n
    ) c ON c.after < %(bytes)s
    GROUP BY h.lease_id, h.next_seq
"""
_FORGET = """
    DELETE FROM lease_log WHERE lease_id IN (
        SELECT lease_id FROM lease_log WHERE at_us <= %s ORDER BY at_us LIMIT %s)
"""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of what was printed; `at_us` is when it arrived here."""

    seq: int
    stream: str
    at_us: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """`next_seq` is the number of the chunk that comes next; `left_out` bytes are not kept."""

    next_seq: int
    bytes: int
    left_out: int


def append(
    connection: Connection,
    lease_id: str,
    seq: int,
    chunks: Sequence[tuple[str, bytes]],
    left_out: int,
    now_us: int,
) -> Head:
    """Keep chunks numbered from `seq` on, as far as there is room; the head after them.

    Numbers that are known already are passed over. A gap keeps nothing: the head says where to go
    on. `left_out`: bytes that the sender did not keep itself.
    """
    with connection.transaction():
        connection.execute(_BEGIN, {"id": lease_id, "now": now_us})
        row = connection.execute(_LOCK, (lease_id,)).fetchone()
        assert row is not None
        next_seq, kept = row
        if seq <= next_seq < seq + len(chunks):
            new = chunks[next_seq - seq :]
            taken, lost = _as_many_as_fit(new, LEASE_BYTES_MAX - kept, next_seq)
            for number, (stream, body) in enumerate(taken, start=next_seq):
                connection.execute(_KEEP, (lease_id, number, stream, now_us, body))
            moved = {
                "id": lease_id,
                "now": now_us,
                "next": next_seq + len(new),
                "bytes": sum(len(body) for _, body in taken),
                "left_out": lost + left_out,
            }
            connection.execute(_MOVE, moved)
        return head(connection, lease_id)


def _as_many_as_fit(
    chunks: Sequence[tuple[str, bytes]], room: int, next_seq: int
) -> tuple[list[tuple[str, bytes]], int]:
    """The first chunks that fit, and how many bytes do not. Once one does not fit, none does."""
    taken: list[tuple[str, bytes]] = []
    for stream, body in chunks:
        room -= len(body)
        if room < 0 or next_seq + len(taken) >= LEASE_CHUNKS_MAX:
            break
        taken.append((stream, body))
    return taken, sum(len(body) for _, body in chunks[len(taken) :])


def head(connection: Connection, lease_id: str) -> Head:
    """How much there is; of a lease that printed nothing, nothing."""
    row = connection.execute(_HEAD, (lease_id,)).fetchone()
    return Head(0, 0, 0) if row is None else Head(*row)


def read(connection: Connection, lease_id: str, from_seq: int, limit: int) -> list[Chunk]:
    """Chunks from a number on, in order."""
    found = connection.execute(_READ, (lease_id, from_seq, limit)).fetchall()
    return [Chunk(seq, stream, at_us, bytes(body)) for seq, stream, at_us, body in found]


def ends(connection: Connection, from_seqs: Mapping[str, int]) -> dict[str, tuple[int, bytes]]:
    """Of many leases, by one query: the number of the next chunk, and the end of what was printed
    from a number on, of END_BYTES and a chunk at most. Leases with nothing new are left out.
    """
    asked = {"ids": list(from_seqs), "seqs": list(from_seqs.values())}
    rows = connection.execute(_ENDS, {**asked, "most": END_CHUNKS, "bytes": END_BYTES})
    return {str(lease_id): (int(seq), bytes(body)) for lease_id, seq, body in rows}


def forget(connection: Connection, now_us: int) -> int:
    """Delete what was last written to a week ago or before; how many leases' logs that were."""
    return connection.execute(_FORGET, (now_us - KEPT_US, FORGOTTEN_MAX)).rowcount
