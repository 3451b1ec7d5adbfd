"""A small real history in both logs for the audit tests: facts, signed reports, pins, a checkpoint.

Facts go in as the log stores them, through the SQL function that everybody's facts go through, but
past the door: these tests need no rule of the marketplace.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from nacl.signing import SigningKey

from domain.fleet.node import NodeKeyConfirmed
from domain.lease.lease import LeaseReady
from domain.metering import report
from domain.stream import Stream
from ledger.log import codec, report_form, usage
from ledger.log.chain import market_leaf
from ledger.tree import cut, trees
from ledger.tree.checkpoint import Signer

ORIGIN = "tallystick.example/v1/audit/log"
LOG_SEED = bytes(range(32))
_ARRAYS = (
    "%s::uuid[], %s::bigint[], %s::text[], %s::bytea[], %s::bytea[], %s::bigint,"
    "'{}','{}','{}','{}','{}','{}','{}','{}','{}','{}','{}','{}','{}',"
    "NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL"
)


@dataclass
class Node:
    """A machine that signs reports, one after the other."""

    id: str
    key: SigningKey
    key_id: str
    seq: int = 0
    head: bytes = b""

    @property
    def public(self) -> bytes:
        return bytes(self.key.verify_key)

    def __post_init__(self) -> None:
        self.head = report.genesis(self.id, self.public)

    def report(self) -> usage.Item:
        """The next report, signed: idle, no rows."""
        self.seq += 1
        signed = report.encode(
            report.Report(
                node=self.id,
                seq=self.seq,
                prev=self.head.hex(),
                boot="00000000-0000-4000-8000-000000000000",
                agent="test",
                mono_us=self.seq * 60_000_000,
                wall_us=1_795_161_600_000_000 + self.seq * 60_000_000,
            )
        )
        return self.signed(signed)

    def broken(self) -> usage.Item:
        """A signed report in order whose content breaks a rule."""
        self.seq += 1
        content = {"node": self.id, "seq": self.seq, "prev": self.head.hex(), "v": 7}
        return self.signed(json.dumps(content).encode(), flags=report_form.FLAG_CONTENT)

    def signed(self, content: bytes, flags: int = 0) -> usage.Item:
        signature = self.key.sign(report.pae(content)).signature
        item = usage.item(
            self.id,
            self.seq,
            self.head,
            content,
            self.key_id,
            signature,
            report.genesis(self.id, self.public),
            flags,
        )
        self.head = report.report_hash(content)
        return item


@dataclass
class Scene:
    """Both logs of one database."""

    conn: psycopg.Connection[Any]
    versions: dict[UUID, int] = field(default_factory=dict)
    now_us: int = 1_795_161_600_000_000

    def fact(self, stream: Stream[Any], fact: Any) -> int:
        """Append one fact to the market log; its position."""
        return self.facts([(stream, fact)])

    def facts(self, changes: Sequence[tuple[Stream[Any], Any]]) -> int:
        """Append facts in one transaction; the position of the last."""
        rows: list[tuple[UUID, int, str, bytes, bytes]] = []
        for stream, fact in changes:
            version = self.versions.get(stream.uuid, 0) + 1
            self.versions[stream.uuid] = version
            blind = codec.blind(bytes(32), stream.uuid, version)
            name, body = codec.encode(fact, "test", blind)
            leaf = market_leaf(stream.uuid, version, name, body)
            rows.append((stream.uuid, version, name, body, leaf))
        columns = [list(column) for column in zip(*rows, strict=True)]
        query = f"SELECT pos FROM market_events_append({_ARRAYS})"
        found = self.conn.execute(query.encode(), (*columns, self.now_us)).fetchone()
        assert found is not None
        return int(found[0])

    def anything(self, count: int) -> int:
        """Append so many facts that the audit has no use for; the position of the last."""
        first = len(self.versions)
        names = [f"lease_{first + i:032x}" for i in range(count)]
        return self.facts(
            [
                (
                    Stream("lease", name),
                    LeaseReady(
                        lease_id=name,
                        node_id="test",
                        endpoint=None,
                        at_us=self.now_us,
                        credentials=None,
                    ),
                )
                for name in names
            ]
        )

    def join(self, number: int) -> Node:
        """A node whose key the market log knows."""
        node = Node(f"node_{number:032x}", SigningKey(number.to_bytes(32, "big")), f"k{number}")
        self.fact(
            Stream("node", node.id),
            NodeKeyConfirmed(
                node_id=node.id,
                key_id=node.key_id,
                public_key=node.public.hex(),
                by="test",
                at_us=self.now_us,
            ),
        )
        return node

    def send(self, *items: usage.Item) -> list[usage.Receipt]:
        """Append reports; all must be stored."""
        receipts = usage.append(self.conn, items, self.now_us)
        assert {one.status for one in receipts} == {usage.Status.STORED}, receipts
        return receipts

    def pin(self) -> int:
        """Let the trees catch up and pin them; the pin's position."""
        trees.follow_all(self.conn)
        return self.fact(Stream("pins", "usage"), cut.pin(self.conn).fact(self.now_us))

    def sign(self, folder: Path) -> str:
        """Let the trees catch up and sign the head."""
        trees.follow_all(self.conn)
        heads = folder / "signed"
        heads.touch()
        with Signer(heads, ORIGIN, LOG_SEED) as signer:
            return trees.publish_checkpoint(self.conn, signer, self.now_us)


def open_scene(conninfo: str) -> Scene:
    """Connect, in autocommit mode, ready to append."""
    conn: psycopg.Connection[Any] = psycopg.connect(conninfo, autocommit=True)
    usage.prepare(conn)
    return Scene(conn)
