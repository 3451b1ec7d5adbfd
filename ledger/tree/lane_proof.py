"""A usage lane hashed anew where it was copied to, as far as its rows go, and read on from there.

    position, leaf and chain of every row follow from the bytes before it
    tiles kept   == the hashes of the leaves that were read
    usage_key    == (node, number, position, leaf) of every row
    usage_node   == number and hash of each node's last row

Rows that were read cannot change: the tables take none away. So the most of a lane is read while it
still takes reports elsewhere, and only what came meanwhile is read while it takes none.
"""

from __future__ import annotations

from typing import Any

import psycopg

from ledger.log.chain import chain, genesis_usage, usage_leaf
from ledger.tree import kept, merkle, trees

Connection = psycopg.Connection[Any]
GROUP_ROWS = 1_000
"""Rows fetched together."""

_ROWS = """
    SELECT position, node_id, node_seq, name, body, leaf, chain FROM usage_event
    WHERE lane = %s AND position > %s ORDER BY position
"""
_TILE = "SELECT hashes FROM tree_tile WHERE log = %s AND level = %s AND index = %s"


class CopyDiffers(Exception):
    """What lies at the new place is not the lane; the message says where."""


class LaneProof:
    """The rows of one lane on one connection, as far as they were read.

    `position` and `hash` are those of the last row, `tree` holds the leaves up to there.
    """

    def __init__(self, connection: Connection, lane: int) -> None:
        self.position, self.hash = 0, genesis_usage(lane)
        self.tree = merkle.Tiles(0, self._tile)
        self._connection, self._lane = connection, lane
        self._rows = kept.Lane(lane)
        self._leaves = bytearray()

    def read(self) -> None:
        """Read on to the last row, and keep the tiles. Raises CopyDiffers."""
        connection = self._connection
        with (
            connection.transaction(),
            connection.cursor(f"lane_{self._lane}", binary=True) as cursor,
        ):
            cursor.itersize = GROUP_ROWS
            for row in cursor.execute(_ROWS, (self._lane, self.position)):
                self._take(*row)
            self._keep()

    def require_kept_beside(self) -> None:
        """That keys and nodes follow from the rows that were read. Raises CopyDiffers."""
        connection = self._connection
        for fault in self._rows.faults(connection, kept.Beside.read(connection)):
            raise CopyDiffers(f"lane {self._lane}: {fault}")

    def _take(
        self,
        position: int,
        node: str,
        number: int,
        name: str,
        body: bytes,
        leaf: bytes,
        link: bytes,
    ) -> None:
        wanted = usage_leaf(self._lane, node, number, body, name.encode())
        after = chain(self.hash, wanted)
        if (position, leaf, link) != (self.position + 1, wanted, after):
            raise CopyDiffers(f"lane {self._lane}, position {self.position + 1}")
        self.position, self.hash = position, after
        self._rows.take_last(node, number, body)
        self._leaves += wanted
        if len(self._leaves) == trees.LEAVES_MAX * merkle.HASH:
            self._keep()

    def _keep(self) -> None:
        """Full tiles are not needed again; one that grows is."""
        self.tree.extend(bytes(self._leaves))
        self._leaves.clear()
        trees.keep_tiles(self._connection, {self._lane: self.tree})
        for key, hashes in list(self.tree.changed.items()):
            if len(hashes) == merkle.TILE_WIDTH * merkle.HASH:
                del self.tree.changed[key]

    def _tile(self, level: int, index: int) -> bytes:
        row = self._connection.execute(_TILE, (self._lane, level, index)).fetchone()
        assert row is not None, (self._lane, level, index)
        return bytes(row[0])
