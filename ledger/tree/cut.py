"""The cut: what one `UsagePinned` fact commits to, 64 lane records and the root over them.

    lane record = lane:1 || size:8 || head:32 || lane_root:32                       (73 bytes)
    lanes_root  = RFC 6962 root over the 64 records, in lane order, empty lanes included

The records are formulas; `pin` reads them at the sizes the tree followers have reached. When to
pin, and that a cut covers every position accrued before it, is for the job that appends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from domain.metering.pin import LanePin, UsagePinned
from domain.metering.report import LANES
from ledger.log.chain import genesis_usage
from ledger.tree import merkle

if TYPE_CHECKING:
    # The verifier shares these formulas and runs where no driver is installed.
    import psycopg

_RECORDS = """
    SELECT t.log, t.size, coalesce(s.hash, e.chain), t.root FROM tree_head t
    LEFT JOIN usage_event e ON e.lane = t.log AND e.position = t.size
    LEFT JOIN usage_elsewhere s ON s.lane = t.log AND s.pos = t.size AND s.pos > 0
    WHERE t.log < %s ORDER BY t.log
"""


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """One lane at one size: its chain value and the root of its tree there."""

    lane: int
    size: int
    head: bytes
    root: bytes

    @property
    def bytes(self) -> bytes:
        """The 73 bytes that `lanes_root` is computed over."""
        record = b"%c%b%b%b" % (self.lane, self.size.to_bytes(8, "big"), self.head, self.root)
        assert len(record) == 73, len(record)
        return record


@dataclass(frozen=True, slots=True)
class Pin:
    """All 64 lanes at one moment."""

    lanes: tuple[LaneRecord, ...]

    @property
    def lanes_root(self) -> bytes:
        return lanes_tree(self.lanes).root()

    def fact(self, at_us: int) -> UsagePinned:
        """The fact to append to the market log."""
        lanes = tuple(
            LanePin(lane.lane, lane.size, lane.head.hex(), lane.root.hex()) for lane in self.lanes
        )
        return UsagePinned(lanes=lanes, lanes_root=self.lanes_root.hex(), at_us=at_us)

    def covers(self, lane: int, position: int) -> bool:
        """Whether the report at this position is committed to by this pin."""
        return 1 <= position <= self.lanes[lane].size


def pin(conn: psycopg.Connection[Any]) -> Pin:
    """The 64 lanes as far as their trees have been built, and seen where they lie elsewhere, read
    in one snapshot.
    """
    rows = conn.execute(_RECORDS, (LANES,), prepare=False).fetchall()
    return Pin(tuple(_record(lane, size, chain, root) for lane, size, chain, root in rows))


def _record(lane: int, size: int, chain: bytes | None, root: bytes) -> LaneRecord:
    assert (size == 0) == (chain is None), (lane, size)
    return LaneRecord(lane, size, genesis_usage(lane) if chain is None else bytes(chain), root)


def lanes_tree(lanes: tuple[LaneRecord, ...]) -> merkle.Tiles:
    """The tree over the 64 records: its root, and the proof of one of them."""
    assert [lane.lane for lane in lanes] == list(range(LANES))
    tree = merkle.Tiles()
    tree.extend(b"".join(merkle.leaf(lane.bytes) for lane in lanes))
    return tree
