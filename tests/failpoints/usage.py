"""Reports on their way into the usage log: two groups of a commit each; one comes twice."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from ledger.log import usage
from ledger.log.usage import Item, Receipt, Status, UsageLog
from tests.failpoints.lives import Tell
from tests.failpoints.places import Answered, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.scenes.usage_reports import Node

DEATH, LOST = Fault.DEATH, Fault.LOST
REPORTS = 2
"""Of each node in one life."""


class ReportLog(Scene):
    failpoints: ClassVar = (
        Failpoint(
            "usage.taken", Before("ledger.log.usage:UsageLog._append_once"), (DEATH, LOST), 3
        ),
        Failpoint("usage.rows_written", Inside("usage_event", "INSERT"), IN_DATABASE, 2),
        Failpoint("usage.keys_written", Inside("usage_key", "INSERT"), IN_DATABASE, 2),
        Failpoint("usage.head_moved", Inside("usage_head", "UPDATE"), IN_DATABASE, 2),
        Failpoint("usage.node_moved", Inside("usage_node", "INSERT"), IN_DATABASE, 2),
        Failpoint("usage.committed", Answered("usage_event", "INSERT"), (DEATH, LOST), 2),
        Failpoint(
            "usage.found_again", Before("ledger.log.usage:wait_for_standbys_async"), (DEATH, LOST)
        ),
        Failpoint("usage.receipted", Before("ledger.log.usage:_Group.resolve"), (DEATH, LOST), 3),
    )

    def found(self) -> None:
        self.nodes = [Node("north"), Node("east")]
        self.groups: list[list[Item]] = []

    def prepare(self) -> None:
        self.groups = [node.items(REPORTS) for node in self.nodes]

    def act(self, tell: Tell) -> None:
        asyncio.run(self._send(tell))

    async def _send(self, tell: Tell) -> None:
        async with UsageLog(self.conninfo) as log:
            for group in (*self.groups, self.groups[0][:1]):
                for item, receipt in zip(group, await log.append(group), strict=True):
                    tell(_told(item, receipt))

    def check(self, told: list[Any], again: list[Any]) -> None:
        assert told == again[: len(told)], "a receipt changed"
        assert len(again) == 2 * REPORTS + 1
        connection = self.observer
        stored = usage.verify(connection, range(64))
        assert stored == len(self.nodes) * REPORTS * self.round
        for node in self.nodes:
            assert usage.head_of(connection, node.id) == (node.seq, node.head)
        for lane, _, seq, position, link in again:
            found = connection.execute(
                "SELECT node_seq, encode(chain, 'hex') FROM usage_event"
                " WHERE lane = %s AND position = %s",
                (lane, position),
            ).fetchone()
            assert found == (seq, link)


def _told(item: Item, receipt: Receipt) -> list[Any]:
    assert receipt.status in (Status.STORED, Status.DUPLICATE), receipt
    assert receipt.lane_hash is not None
    return [item.lane, item.node.decode(), item.seq, receipt.position, receipt.lane_hash.hex()]
