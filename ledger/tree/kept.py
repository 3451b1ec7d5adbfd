"""What a database keeps beside the rows of its logs, held against those rows.

    every tile        == the hashes of the leaves below it
    every signed head == the root at its size, as its note says
    usage_key         == (lane, node, number, position, leaf) of every report
    usage_node        == number and hash of each node's last report
    the last pin      == chain and root of each lane at its size
    a report's flag   == 1 where it breaks a rule of the form, else 0

None of it is under a hash itself: proofs, receipts and the refusal of a repeated report read it.
Not held here is the second body of an equivocation (`usage_evidence`), which follows from no row.
Each report is judged anew, by the reading that the door uses.

What grows with the logs is read by cursors on the server, a group of rows at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from domain.metering.pin import UsagePinned
from domain.metering.report import LANES, report_hash
from ledger.log import report_form
from ledger.log.chain import split_body
from ledger.tree import merkle
from ledger.tree.checkpoint import NoteInvalid, VerifierKey, parse_checkpoint, split_note
from ledger.tree.log_keys import Rotation, open_by_any

Connection = psycopg.Connection[Any]
LEAVES = 65_536
"""Leaves that are put into tiles together."""
GROUP_ROWS = 1_000
"""Rows fetched together."""
NOTES_MAX = 20
"""So many signed heads that cannot be used are told; and so many wrong flags of a lane."""

_TILES = "SELECT level, index, hashes FROM tree_tile WHERE log = %s"
_CHECKPOINTS = "SELECT size, root, note FROM checkpoint ORDER BY size"
_KEYS_DIFFER = """
    SELECT count(*) FROM (
        (SELECT node_id, node_seq, position, leaf FROM usage_event WHERE lane = %(lane)s
         EXCEPT ALL SELECT node_id, node_seq, position, leaf FROM usage_key WHERE lane = %(lane)s)
        UNION ALL
        (SELECT node_id, node_seq, position, leaf FROM usage_key WHERE lane = %(lane)s
         EXCEPT ALL SELECT node_id, node_seq, position, leaf FROM usage_event WHERE lane = %(lane)s)
    ) d
"""
_NODES = "SELECT lane, node_id, last_node_seq, last_hash FROM usage_node"
_KEYED = """
    SELECT g.lane FROM generate_series(0, 63) AS g (lane)
    WHERE EXISTS (SELECT FROM usage_key k WHERE k.lane = g.lane)
"""
_TILED = "SELECT DISTINCT log FROM tree_tile"


@dataclass(frozen=True, slots=True)
class Beside:
    """What of it is small, of all lanes, read once."""

    nodes: dict[int, list[tuple[str, int, bytes]]]
    keyed: frozenset[int]
    tiled: frozenset[int]

    @classmethod
    def read(cls, conn: Connection) -> Beside:
        nodes: dict[int, list[tuple[str, int, bytes]]] = {}
        for lane, node_id, number, last in conn.execute(_NODES):
            nodes.setdefault(lane, []).append((node_id, number, bytes(last)))
        keyed, tiled = (
            frozenset(one for (one,) in conn.execute(query)) for query in (_KEYED, _TILED)
        )
        return cls(nodes, keyed, tiled)


class Tiling:
    """The tiles of the first `size` leaves of one log, compared with those that are kept."""

    def __init__(self, log: int, size: int) -> None:
        self._log, self._size = log, size
        self._tree = merkle.Tiles()
        self._waiting = bytearray()
        self._left = size
        self._wanted: dict[tuple[int, int], bytes] = {}

    def take(self, leaf: bytes) -> None:
        """The next leaf; those behind `size` are in no tile yet."""
        if self._left:
            self._left -= 1
            self._waiting += leaf
            if len(self._waiting) == LEAVES * merkle.HASH:
                self._lay()

    def _lay(self) -> None:
        """Of a full tile the hash is enough; one that grows is needed as it is."""
        self._tree.extend(bytes(self._waiting))
        self._waiting.clear()
        changed = self._tree.changed
        for key in list(changed):
            self._wanted[key] = sha256(changed[key]).digest()
            if len(changed[key]) == merkle.TILE_WIDTH * merkle.HASH:
                del changed[key]

    def faults(self, conn: Connection, beside: Beside) -> Iterator[str]:
        """Where fewer leaves came than the tree has, its head says so already."""
        if self._left or not (self._size or self._log in beside.tiled):
            return
        self._lay()
        for level, index, hashes in _streamed(conn, _TILES, self._log):
            if self._wanted.pop((level, index), None) != sha256(hashes).digest():
                yield f"tile {index} of level {level} has other hashes than the rows below it"
        for level, index in self._wanted:
            yield f"tile {index} of level {level} is missing"


class Lane:
    """The rows of one usage lane, held against its keys and nodes, and each against its flag."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._last: dict[str, tuple[int, bytes]] = {}
        self._flags: list[str] = []

    def take(self, position: int, node_id: str, number: int, body: bytes, flags: int) -> None:
        self.take_last(node_id, number, body)
        fault = report_form.flag_fault(flags, report_form.read_if_valid(_signed(body)))
        if fault is not None and len(self._flags) <= NOTES_MAX:
            self._flags.append(f"position {position} {fault}")

    def take_last(self, node_id: str, number: int, body: bytes) -> None:
        """A row whose flag is not judged."""
        self._last[node_id] = number, body

    def nodes(self) -> dict[str, tuple[int, bytes]]:
        """By node: the number of its last report, and the hash that the next one follows."""
        return {node_id: (number, _hash(body)) for node_id, (number, body) in self._last.items()}

    def faults(self, conn: Connection, beside: Beside) -> Iterator[str]:
        if self._last or self._lane in beside.keyed:
            row = conn.execute(_KEYS_DIFFER, {"lane": self._lane}).fetchone()
            if row != (0,):
                yield "the list of reports by node differs from the rows"
        here = {(node_id, *last) for node_id, last in self.nodes().items()}
        told = beside.nodes.get(self._lane, [])
        for node_id, *_ in sorted(here ^ set(told)):
            yield f"the last report of {node_id} is another one than its rows say"
        if len(told) != len(set(told)):
            yield "a node has two last reports"
        yield from self._flags[:NOTES_MAX]
        if len(self._flags) > NOTES_MAX:
            yield "and more reports with a wrong flag"


def _streamed(conn: Connection, query: LiteralString, *of: int) -> Iterator[tuple[Any, ...]]:
    """Within a transaction."""
    with conn.cursor(f"kept_{next(_cursors)}", binary=True) as cursor:
        cursor.itersize = GROUP_ROWS
        yield from cursor.execute(query, of)


_cursors = itertools.count()


def _hash(body: bytes) -> bytes:
    """Of the bytes that the node signed; nothing if they cannot be told apart."""
    signed = _signed(body)
    return report_hash(signed) if signed else b""


def _signed(body: bytes) -> bytes:
    """The bytes that the node signed; none if they cannot be told apart."""
    try:
        return split_body(body)[0]
    except ValueError:
        return b""


def pinned(pin: UsagePinned | None) -> dict[int, tuple[int, bytes, bytes]]:
    """By lane: size, chain and root at that size."""
    if pin is None:
        return {}
    return {
        one.lane: (one.size, bytes.fromhex(one.head), bytes.fromhex(one.root)) for one in pin.lanes
    }


def heads(conn: Connection) -> Iterator[tuple[int, bytes]]:
    """Size and root of each head that was signed, the smallest first. Within a transaction."""
    return ((size, bytes(root)) for size, root, _ in _streamed(conn, _CHECKPOINTS))


def strangers(conn: Connection) -> Iterator[str]:
    """Rows of lanes that there are not: no walk comes by them."""
    for table in ("usage_event", "usage_key", "usage_node", "usage_head"):
        query = sql.SQL("SELECT count(*) FROM {} WHERE lane NOT BETWEEN 0 AND %s")
        row = conn.execute(query.format(sql.Identifier(table)), (LANES - 1,)).fetchone()
        if row != (0,):
            yield f"{table}: rows of lanes that there are not"
    row = conn.execute(
        "SELECT count(*) FROM tree_tile WHERE log NOT BETWEEN 0 AND %s", (LANES,)
    ).fetchone()
    if row != (0,):
        yield "tree_tile: rows of logs that there are not"
    row = conn.execute("SELECT count(*) - count(DISTINCT size) FROM checkpoint").fetchone()
    if row != (0,):
        yield "checkpoint: two signed heads of one size"


def note_faults(
    conn: Connection, key: VerifierKey | None, rotations: Sequence[Rotation]
) -> Iterator[str]:
    """Notes of signed heads that say another head, or that the log's key did not sign. Nothing
    joins a key to the one before it that was lost: earlier heads are not asked for it.
    """
    joined_from = max((one.position for one in rotations if one.old_signature is None), default=0)
    told = 0
    with conn.transaction():
        for size, root, note in _streamed(conn, _CHECKPOINTS):
            fault = _note_fault(size, bytes(root), note, key, rotations, joined_from)
            if fault is not None and told == NOTES_MAX:
                yield "and more signed heads"
                return
            if fault is not None:
                told += 1
                yield f"the signed head of {size} facts {fault}"


def _note_fault(
    size: int,
    root: bytes,
    note: str,
    key: VerifierKey | None,
    rotations: Sequence[Rotation],
    joined_from: int,
) -> str | None:
    try:
        head = parse_checkpoint(split_note(note)[0])
        if key is not None and head.size >= joined_from:
            head, _ = open_by_any(note, key, rotations)
    except NoteInvalid as invalid:
        return f"cannot be used: {invalid}"
    if (head.size, head.root) != (size, root):
        return f"is of {head.size} facts or has another root"
    return None
