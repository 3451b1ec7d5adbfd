"""The usage log of all lanes: each server's reports through a committer of its own.

    a report is answered  =>  it was stored by the server that the market names for its lane

A server that is away makes the reports of its lanes wait, and then answers `Unavailable` for them;
those of other servers do not wait for it. Each new connection to one is held against what the
market has seen of its lanes before anything is stored or read there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from psycopg import AsyncConnection, OperationalError

from ledger.log import lane_store
from ledger.log.lane_map import MARKET
from ledger.log.lane_store import NotAdmitted
from ledger.log.lanes import lane_of
from ledger.log.usage import Admit, Item, Receipt, UsageLog, wall_clock_us


class LaneLogs:
    """`async with LaneLogs(conninfo) as log`; `conninfo` says where the lanes lie."""

    def __init__(self, conninfo: str, *, now_us: Callable[[], int] = wall_clock_us) -> None:
        lanes = lane_store.of_address(conninfo)
        self._addresses = lanes.addresses
        self._market = UsageLog(conninfo, now_us=now_us)
        self._elsewhere = {
            address: UsageLog(
                lane_store.reached(address), now_us=now_us, admit=_admitting(conninfo, some)
            )
            for address, some in lanes.elsewhere().items()
        }

    async def __aenter__(self) -> LaneLogs:
        await self._market.start()
        for log in self._elsewhere.values():
            await log.start(is_there=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(log.close() for log in self._logs))

    @property
    def _logs(self) -> tuple[UsageLog, ...]:
        return (self._market, *self._elsewhere.values())

    @property
    def transactions(self) -> int:
        """So many transactions stored reports, of all servers."""
        return sum(log.transactions for log in self._logs)

    @property
    def waiting(self) -> int:
        """Reports in the queues of all servers."""
        return sum(log.waiting for log in self._logs)

    async def append(self, items: list[Item]) -> list[Receipt]:
        """Store the reports of one node; they lie in one lane. Raises as `UsageLog.append`."""
        if not self._elsewhere:
            return await self._market.append(items)
        (lane,) = {item.lane for item in items}
        return await self._of(lane).append(items)

    async def head(self, node_id: str) -> tuple[int, bytes | None]:
        """As `UsageLog.head`."""
        return await self._of(lane_of(node_id)).head(node_id)

    async def hashes(self, node_id: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """As `UsageLog.hashes`."""
        return await self._of(lane_of(node_id)).hashes(node_id, seqs)

    def _of(self, lane: int) -> UsageLog:
        address = self._addresses[lane]
        return self._market if address == MARKET else self._elsewhere[address]


def _admitting(conninfo: str, lanes: Sequence[int]) -> Admit:
    """Asks the market at this address which of these lanes a connection may be used for."""

    async def admit(there: AsyncConnection[Any]) -> frozenset[int]:
        try:
            market = await AsyncConnection.connect(conninfo, autocommit=True)
        except OperationalError as error:
            raise NotAdmitted(f"the market's database cannot be asked: {error}") from error
        async with market:
            return await lane_store.admit_async(market, there, lanes)

    return admit
