"""A market whose upper lanes lie on another PostgreSQL server."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from ledger.log import lane_store
from ledger.log.lane_logs import LaneLogs
from ledger.log.lane_map import HERE, MARKET
from ledger.log.usage import Item, Receipt, Unavailable
from ledger.tree import lane_move
from tests.conftest import Databases
from tests.scenes.usage_reports import Node

Connection = psycopg.Connection[Any]
NOW_US = 1_795_161_720_000_000
UPPER = range(32, 64)


@dataclass
class Two:
    """The addresses of both databases, and the server of the second."""

    market: str
    other: str
    server: Databases

    @property
    def address(self) -> str:
        """The market's, told where the lanes lie."""
        return self.told([])

    def told(self, more: list[int]) -> str:
        """Likewise, with more lanes elsewhere."""
        return lane_store.carried(HERE.moved([*UPPER, *more], self.other), self.market)

    def connect(self, more: list[int] | None = None) -> Connection:
        return psycopg.connect(self.told(more or []), autocommit=True)

    def kill(self) -> None:
        os.kill(self.server.pid, signal.SIGKILL)

    def move(self, lanes: list[int]) -> list[lane_move.Moved]:
        """To the other server."""
        return lane_move.move(self.market, MARKET, self.other, lanes)

    def move_back(self, lanes: list[int]) -> list[lane_move.Moved]:
        return lane_move.move(self.market, self.other, MARKET, lanes)

    def keep(self, name: str) -> None:
        """Copy the other database as it is now."""
        lane_store._IDLE.forget(self.other)
        self._execute("CREATE DATABASE {} TEMPLATE lanes", name)

    def restore(self, name: str) -> None:
        """Put the copy in its place."""
        self._execute("DROP DATABASE {} WITH (FORCE)", "lanes")
        self._execute("ALTER DATABASE {} RENAME TO lanes", name)

    def _execute(self, query: LiteralString, name: str) -> None:
        execute(self.server, sql.SQL(query).format(sql.Identifier(name)))


def execute(server: Databases, query: sql.Composed | sql.SQL) -> None:
    """On a connection of its own: the server dies between tests."""
    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute(query)


def put(address: str, some: list[list[Item]]) -> list[list[Receipt] | None]:
    """Send what each node has; None: it is to be sent again."""

    async def send() -> list[Any]:
        async with LaneLogs(address, now_us=lambda: NOW_US) as log:
            sent = [log.append(items) for items in some]
            return await asyncio.gather(*sent, return_exceptions=True)

    found: list[list[Receipt] | None] = []
    for told in asyncio.run(send()):
        assert isinstance(told, list | Unavailable), told
        found.append(told if isinstance(told, list) else None)
    return found


def nodes(count: int) -> list[Node]:
    return [Node(f"node {number}") for number in range(count)]


def in_lanes(upper: bool) -> Node:
    """A node in one of these lanes."""
    return next(node for node in nodes(100) if (node.lane in UPPER) == upper)


def seen(connection: Connection) -> list[tuple[int, int]]:
    return connection.execute("SELECT lane, pos FROM usage_lane ORDER BY lane").fetchall()
