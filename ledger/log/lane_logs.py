"""The usage log of all lanes: each server's reports through a committer of its own.

A server that is away makes the reports of its lanes wait, and then answers `Unavailable` for them;
those of other servers do not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ledger.log import lane_store
from ledger.log.lane_map import MARKET
from ledger.log.lanes import lane_of
from ledger.log.usage import Item, Receipt, UsageLog, wall_clock_us


class LaneLogs:
    """`async with LaneLogs(conninfo) as log`; `conninfo` says where the lanes lie."""

    def __init__(self, conninfo: str, *, now_us: Callable[[], int] = wall_clock_us) -> None:
        self._addresses = lane_store.of_address(conninfo).addresses
        self._logs = {
            address: UsageLog(conninfo if address == MARKET else address, now_us=now_us)
            for address in (MARKET, *self._addresses)
        }

    async def __aenter__(self) -> LaneLogs:
        await asyncio.gather(*(log.start(is_there=at == MARKET) for at, log in self._logs.items()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(log.close() for log in self._logs.values()))

    @property
    def transactions(self) -> int:
        """So many transactions stored reports, of all servers."""
        return sum(log.transactions for log in self._logs.values())

    @property
    def waiting(self) -> int:
        """Reports in the queues of all servers."""
        return sum(log.waiting for log in self._logs.values())

    async def append(self, items: list[Item]) -> list[Receipt]:
        """Store the reports of one node; they lie in one lane. Raises as `UsageLog.append`."""
        (address,) = {self._addresses[item.lane] for item in items}
        return await self._logs[address].append(items)

    async def head(self, node_id: str) -> tuple[int, bytes | None]:
        """As `UsageLog.head`."""
        return await self._of(node_id).head(node_id)

    async def hashes(self, node_id: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """As `UsageLog.hashes`."""
        return await self._of(node_id).hashes(node_id, seqs)

    def _of(self, node_id: str) -> UsageLog:
        return self._logs[self._addresses[lane_of(node_id)]]
