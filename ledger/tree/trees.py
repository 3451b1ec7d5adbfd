"""Audit trees behind both logs: followers that append leaf hashes, and the tiles they keep.

    tree_head[log] == (n, RFC 6962 root of the first n leaves of that log)     at every commit

Not part of the append: a follower reads what is committed, in batches, in transactions of its own.
The rows of `tree_head` are the fence; two followers take turns, and a killed one leaves the last
committed state. Whether the leaves themselves are right is for `ledger/bundle/verify.py`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from domain.authority.log_key import LOG_KEYS
from domain.metering.report import LANES
from domain.nesting import read_json
from ledger.log import lane_store
from ledger.log.chain import genesis_usage
from ledger.log.durable import wait_for_standbys, wait_for_standbys_until
from ledger.log.lane_map import ranges
from ledger.tree import merkle
from ledger.tree.checkpoint import Signer, VerifierKey
from ledger.tree.log_keys import Rotation

logger = logging.getLogger(__name__)

MARKET = LANES
"""The number of the market log beside the usage lanes 0 to 63."""
LEAVES_MAX = 65_536
"""Leaves of one log in one step: 2 MiB of hashes."""

Connection = psycopg.Connection[Any]
TileKey = tuple[int, int]

_BEHIND = """
    SELECT t.log FROM tree_head t JOIN usage_head u ON u.lane = t.log WHERE u.pos > t.size
    UNION ALL
    SELECT t.log FROM tree_head t, market_events_head m WHERE t.log = %s AND m.pos > t.size
    ORDER BY log
"""
_LOCK = "SELECT log, size FROM tree_head WHERE log = ANY(%s) ORDER BY log FOR UPDATE"
_USAGE_LEAVES = """
    SELECT t.log, e.count, e.last, e.leaves FROM tree_head t CROSS JOIN LATERAL (
        SELECT count(*), max(position) AS last, string_agg(leaf, '' ORDER BY position) AS leaves
        FROM (SELECT position, leaf FROM usage_event WHERE lane = t.log AND position > t.size
              ORDER BY position LIMIT %s) AS next
    ) AS e WHERE t.log = ANY(%s)
"""
_MARKET_LEAVES = """
    SELECT t.log, e.count, e.last, e.leaves FROM tree_head t CROSS JOIN LATERAL (
        SELECT count(*), max(notification_id) AS last,
               string_agg(leaf, '' ORDER BY notification_id) AS leaves
        FROM (SELECT notification_id, leaf FROM market_events WHERE notification_id > t.size
              ORDER BY notification_id LIMIT %s) AS next
    ) AS e WHERE t.log = ANY(%s)
"""
_TILES = """
    SELECT log, level, index, hashes FROM tree_tile
    JOIN unnest(%s::int[], %s::int[], %s::bigint[]) AS wanted (log, level, index)
    USING (log, level, index)
"""
_KEEP_TILES = """
    INSERT INTO tree_tile (log, level, index, hashes)
    SELECT * FROM unnest(%s::int[], %s::int[], %s::bigint[], %s::bytea[])
    ON CONFLICT (log, level, index) DO UPDATE SET hashes = excluded.hashes
"""
_KEEP_HEADS = """
    UPDATE tree_head t SET size = n.size, root = n.root
    FROM unnest(%s::int[], %s::bigint[], %s::bytea[]) AS n (log, size, root) WHERE t.log = n.log
"""


class KeyReplaced(Exception):
    """The log announced another key than the signer's: nothing was signed."""


@dataclass(frozen=True, slots=True)
class TreeHead:
    """So many leaves of one log have this root."""

    log: int
    size: int
    root: bytes


def follow(conn: Connection, leaves_max: int = LEAVES_MAX) -> int:
    """One step: append up to `leaves_max` new leaves of every log; how many were appended.

    0 means that the trees had reached the logs. Opens its own transaction; `conn` must be in
    autocommit mode or otherwise outside of one.
    """
    with conn.transaction():
        # The logs are durable before their leaves are seen here, and the tree follows from them.
        conn.execute("SET LOCAL synchronous_commit = off")
        return _step(conn, [log for (log,) in conn.execute(_BEHIND, (MARKET,))], leaves_max)


def follow_lane(conn: Connection, lane: int) -> None:
    """Bring the tree of a lane to its end, within a transaction that holds the lane's head."""
    while _step(conn, [lane], LEAVES_MAX):
        pass


def _step(conn: Connection, logs: list[int], leaves_max: int) -> int:
    if not logs:
        return 0
    sizes = dict(conn.execute(_LOCK, (logs,)).fetchall())
    leaves = _new_leaves(conn, sizes, leaves_max)
    trees = _trees(conn, {log: sizes[log] for log in leaves})
    for log, tree in trees.items():
        tree.extend(leaves[log])
    _keep(conn, trees)
    return sum(map(len, leaves.values())) // merkle.HASH


def follow_all(conn: Connection) -> int:
    """Follow until the trees have reached the logs; how many leaves were appended.

    Trees of lanes on other servers are followed there, and their heads seen here.
    """
    total = 0
    while appended := follow(conn):
        total += appended
    return total + see_elsewhere(conn).grown


def follow_to_now(conn: Connection, leaves_max: int = LEAVES_MAX) -> int:
    """Follow as far as the logs were when this began: it ends although they grow all the time."""
    total = 0
    while True:
        appended = follow(conn, leaves_max)
        total += appended
        if appended < leaves_max:
            return total


# --- lanes on other servers ------------------------------------------------------------------

LEAVES_THERE_MAX = 8_192
"""In one step at another server, whose answer is waited for only so long."""

_SEEN = "SELECT lane, server, pos, hash FROM usage_elsewhere WHERE lane = ANY(%s)"
_LOCK_SEEN = "SELECT FROM usage_elsewhere WHERE lane = ANY(%s) ORDER BY lane FOR UPDATE"
# Of a lane that does not hold what was seen of it before nothing is taken over.
_THERE = """
    SELECT h.lane, v.server, t.size, e.chain, coalesce(e.recorded_us, 0), t.root
    FROM unnest(%s::int2[], %s::uuid[], %s::int8[], %s::bytea[]) s(lane, server, pos, hash)
    JOIN usage_server v ON v.server = s.server
    JOIN usage_head h ON h.lane = s.lane JOIN tree_head t ON t.log = s.lane AND t.size >= s.pos
    LEFT JOIN usage_event e ON e.lane = s.lane AND e.position = t.size
    WHERE s.pos = 0 OR s.hash = (
        SELECT b.chain FROM usage_event b WHERE b.lane = s.lane AND b.position = s.pos)
"""
_IS_TOLD = """
    SELECT count(*) FROM unnest(%s::int2[], %s::int8[]) n(lane, pos)
    JOIN usage_elsewhere s ON s.lane = n.lane AND s.pos = n.pos AND NOT s.is_stopped
"""
_TAKE_OVER = """
    UPDATE usage_elsewhere s SET pos = n.pos, hash = n.hash, recorded_us = n.at_us,
        is_stopped = false
    FROM unnest(%s::int2[], %s::uuid[], %s::int8[], %s::bytea[], %s::int8[])
        n(lane, server, pos, hash, at_us)
    WHERE s.lane = n.lane AND s.server = n.server AND n.pos >= s.pos
        AND (n.pos > s.pos OR s.is_stopped)
    RETURNING s.lane
"""
_STOP = """
    UPDATE usage_elsewhere SET is_stopped = true WHERE lane = ANY(%s) AND NOT is_stopped
"""
_STOPPED = "SELECT lane FROM usage_elsewhere WHERE is_stopped ORDER BY lane"


class Look(NamedTuple):
    """What one look at the other servers found: how many leaves their trees grew by, and the lanes
    elsewhere that could not be seen.
    """

    grown: int
    unseen: tuple[int, ...]


class _Far(NamedTuple):
    """A lane at its own server, as far as its tree."""

    lane: int
    server: UUID
    size: int
    chain: bytes
    recorded_us: int
    root: bytes


def see_elsewhere(conn: Connection) -> Look:
    """Follow the trees of lanes on other servers and remember here how far they go: heads and trees
    at one size. A job does so before it decides by how far lanes go.

    Lanes that cannot be seen, or have lost what was seen of them, are stopped. Where nothing can be
    recorded, no look is taken: what was seen before is told.
    """
    unseen = set(lane_store.lanes_elsewhere(conn))
    if not unseen or _is_read_only(conn):
        return Look(0, stopped_lanes(conn) if unseen else ())
    total, stopped = 0, set[int]()
    for address, lanes in lane_store.of(conn).elsewhere().items():
        grown, found, lost = _look(conn, address, lanes)
        total += grown
        unseen -= _take_over(conn, found)
        stopped |= lost
    conn.execute(_STOP, (sorted(stopped & unseen),))
    return Look(total, tuple(sorted(unseen)))


def _look(
    conn: Connection, address: str, lanes: tuple[int, ...]
) -> tuple[int, list[_Far], set[int]]:
    """Ask one server, with nothing locked here: how many leaves its trees grew by, the lanes that
    it holds as the market remembers them, and those that it should hold and does not.

    Whatever goes wrong there stops its lanes, and nothing else.
    """
    told = conn.execute(_SEEN, (list(lanes),)).fetchall()
    try:
        with lane_store.on(conn, address, lanes, some=True) as there:
            server, _ = lane_store.identity(there)
            grown = follow_to_now(there, LEAVES_THERE_MAX)
            columns = [list(column) for column in zip(*told, strict=True)]
            rows = there.execute(_THERE, columns).fetchall() if told else []
            if any(size > pos for (_, _, size, *_), pos in _paired(rows, told)):
                # What a failover may take back has not been seen.
                wait_for_standbys_until(there, lane_store.ANSWER_MILLISECONDS_MAX / 1_000)
    except Exception as error:
        logger.warning("usage lanes %s cannot be seen: %s", ranges(lanes), error)
        return 0, [], set(lanes)
    found = [
        _Far(
            lane, at, size, genesis_usage(lane) if chain is None else bytes(chain), us, bytes(root)
        )
        for lane, at, size, chain, us, root in rows
    ]
    holders = {lane: holder for lane, holder, *_ in told}
    its_own = {lane for lane, holder in holders.items() if holder == server}
    if others := [lane for lane in lanes if holders.get(lane, conn) not in (server, None)]:
        logger.warning(
            "the market's database names another holder of usage lanes %s than the setting: start"
            " this process again with the map that `tallystick move-lanes` said",
            ranges(others),
        )
    return grown, found, its_own - {far.lane for far in found}


def _paired(
    rows: list[tuple[Any, ...]], told: list[tuple[Any, ...]]
) -> list[tuple[tuple[Any, ...], int]]:
    """Each row with how far its lane had been seen."""
    seen = {lane: pos for lane, _, pos, _ in told}
    return [(row, seen[row[0]]) for row in rows]


def _take_over(conn: Connection, found: list[_Far]) -> set[int]:
    """Remember what was seen, unless another look has seen more; the lanes that are seen now."""
    if not found:
        return set()
    lanes, servers, sizes, hashes, times, _ = map(list, zip(*found, strict=True))
    if conn.execute(_IS_TOLD, (lanes, sizes)).fetchone() == (len(lanes),):
        return set(lanes)
    with conn.transaction():
        conn.execute(_LOCK_SEEN, (lanes,))
        taken = conn.execute(_TAKE_OVER, (lanes, servers, sizes, hashes, times)).fetchall()
        grown = {lane for (lane,) in taken}
        kept = [TreeHead(far.lane, far.size, far.root) for far in found if far.lane in grown]
        if kept:
            keep_heads(conn, kept)
    return set(lanes) - set(stopped_lanes(conn))


def _is_read_only(conn: Connection) -> bool:
    """The server tells its sessions by itself, so this asks nothing."""
    status = conn.info.parameter_status
    return "on" in (status("in_hot_standby"), status("default_transaction_read_only"))


def stopped_lanes(conn: Connection) -> tuple[int, ...]:
    """The lanes on other servers that could not be seen at the last look."""
    return tuple(lane for (lane,) in conn.execute(_STOPPED))


# --- trees -----------------------------------------------------------------------------------


def head(conn: Connection, log: int = MARKET) -> TreeHead:
    """Size and root that the tree of a log has reached."""
    row = conn.execute("SELECT size, root FROM tree_head WHERE log = %s", (log,)).fetchone()
    assert row is not None, log
    return TreeHead(log, row[0], bytes(row[1]))


def tree(conn: Connection, log: int = MARKET, size: int | None = None) -> merkle.Tiles:
    """The tree of a log, for roots and proofs at any size up to `size`; tiles are read on demand.

    Without a size, the size it has reached.
    """

    def fetch(level: int, index: int) -> bytes:
        with nullcontext(conn) if log == MARKET else lane_store.at(conn, log) as there:
            row = there.execute(
                "SELECT hashes FROM tree_tile WHERE log = %s AND level = %s AND index = %s",
                (log, level, index),
                prepare=False,
            ).fetchone()
        assert row is not None, (log, level, index)
        return bytes(row[0])

    return merkle.Tiles(head(conn, log).size if size is None else size, fetch)


# --- signed heads ----------------------------------------------------------------------------


def publish_checkpoint(conn: Connection, signer: Signer, now_us: int) -> str:
    """Sign the head the market tree has reached, keep the note and return it.

    Raises SigningRefused like `Signer.sign`, and KeyReplaced.
    """
    _require_in_force(conn, signer.verifier_key)
    wait_for_standbys(conn)  # of facts that no standby has, a head would bind us to a lost history
    reached = head(conn)

    def prove(old: int) -> list[bytes]:
        return merkle.consistency(old, reached.size, tree(conn, MARKET, reached.size).hash_at)

    note = signer.sign(reached.size, reached.root, prove, now_us)
    keep_note(conn, reached, note, now_us)
    return note


def keep_note(conn: Connection, signed: TreeHead, note: str, now_us: int) -> None:
    """Keep a signed head of the market log, the first of those of one size."""
    conn.execute(
        "INSERT INTO checkpoint VALUES (%s, %s, %s, %s) ON CONFLICT (size) DO NOTHING",
        (signed.size, signed.root, note, now_us),
    )


def _require_in_force(conn: Connection, key: VerifierKey) -> None:
    """That the last rotation, if there was one, announced this key: a process that began before it
    still holds the key that was replaced. Raises KeyReplaced.
    """
    announced = rotations(conn)
    if announced and announced[-1].new != key:
        raise KeyReplaced(
            f"rotation {announced[-1].number} announced another key than the one held here"
        )


def latest_checkpoint(conn: Connection, size_max: int | None = None) -> tuple[int, str] | None:
    """Size and note of the last signed head, of at most `size_max` facts."""
    row = conn.execute(
        "SELECT size, note FROM checkpoint WHERE %s::bigint IS NULL OR size <= %s"
        " ORDER BY size DESC LIMIT 1",
        (size_max, size_max),
    ).fetchone()
    return None if row is None else (row[0], row[1])


def rotations(conn: Connection) -> list[Rotation]:
    """Every rotation of the key that signs heads, in order."""
    rows = conn.execute(
        "SELECT notification_id, state FROM public.market_events WHERE originator_id = %s"
        " ORDER BY originator_version",
        (LOG_KEYS.uuid,),
    )
    return [Rotation.of(position, read_json(bytes(body))) for position, body in rows]


# --- the step, part by part ------------------------------------------------------------------


def _new_leaves(conn: Connection, sizes: dict[int, int], leaves_max: int) -> dict[int, bytes]:
    # Never prepared: a plan made while the tables were empty would scan them whole for ever.
    lanes = [log for log in sizes if log != MARKET]
    found: dict[int, bytes] = {}
    for query, logs in ((_USAGE_LEAVES, lanes), (_MARKET_LEAVES, [MARKET] * (MARKET in sizes))):
        if not logs:
            continue
        with conn.cursor(binary=True) as cursor:
            for log, count, last, leaves in cursor.execute(
                query, (leaves_max, logs), prepare=False
            ):
                if count:
                    assert last == sizes[log] + count, ("a gap", log, sizes[log], count, last)
                    assert len(leaves) == count * merkle.HASH, (log, count)
                    found[log] = bytes(leaves)
    return found


def _trees(conn: Connection, sizes: dict[int, int]) -> dict[int, merkle.Tiles]:
    """The trees with the tiles at their right edge, all read at once."""
    wanted = [(log, *key) for log, size in sizes.items() for key in _right_edge(size)]
    edges: dict[int, dict[TileKey, bytes]] = defaultdict(dict)
    if wanted:
        with conn.cursor(binary=True) as cursor:
            columns = [list(column) for column in zip(*wanted, strict=True)]
            for log, level, index, hashes in cursor.execute(_TILES, columns, prepare=False):
                edges[log][level, index] = bytes(hashes)
    return {
        log: merkle.Tiles(size, lambda level, index, edge=edges[log]: edge[level, index])  # type: ignore[misc]
        for log, size in sizes.items()
    }


def _right_edge(size: int) -> list[TileKey]:
    """The tiles of a tree that are not full."""
    levels = range((size.bit_length() + merkle.TILE_HEIGHT - 1) // merkle.TILE_HEIGHT)
    counts = [size >> (merkle.TILE_HEIGHT * level) for level in levels]
    return [
        (level, count // merkle.TILE_WIDTH)
        for level, count in enumerate(counts)
        if count % merkle.TILE_WIDTH
    ]


def _keep(conn: Connection, trees: dict[int, merkle.Tiles]) -> None:
    if keep_tiles(conn, trees):
        keep_heads(conn, [TreeHead(log, tree.size, tree.root()) for log, tree in trees.items()])


def keep_tiles(conn: Connection, trees: dict[int, merkle.Tiles]) -> bool:
    """Write the tiles that changed; whether there are any."""
    tiles = [
        (log, *key, hashes) for log, tree in trees.items() for key, hashes in tree.changed.items()
    ]
    if tiles:
        columns = [list(column) for column in zip(*tiles, strict=True)]
        conn.execute(_KEEP_TILES, columns, binary=True)
    return bool(tiles)


def keep_heads(conn: Connection, heads: list[TreeHead]) -> None:
    """Write how far trees have reached."""
    columns = [list(column) for column in zip(*map(astuple, heads), strict=True)]
    conn.execute(_KEEP_HEADS, columns, binary=True)
