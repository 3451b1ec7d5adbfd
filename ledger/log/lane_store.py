"""Where do the usage lanes lie? On the market's server, or each on one of several.

    every lane lies on exactly one server;   what reads or writes one lane asks `at` for its server

A lane that lies elsewhere has its rows, keys, head and tiles there. The market's server keeps how
far it has seen the lane (`usage_elsewhere`), so that views, pins and gates join it as any other. A
server that does not answer stops its own lanes: `LanesStopped`.

The map travels inside the address of the market's database, as an option of the session. So each
connection knows it, in whatever thread or process it was opened, and without the setting there is
none: then every lane lies where the connection leads.
"""

from __future__ import annotations

import atexit
import base64
import re
import select
import threading
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from domain.metering.report import LANES
from ledger.log.lane_map import HERE, MARKET, LaneMap, ranges

Connection = psycopg.Connection[Any]

CONNECT_SECONDS_MAX = 2
ANSWER_MILLISECONDS_MAX = 10_000
"""A machine that is gone without a word is given up after this."""
IDLE_MAX = 4
"""Connections to one server that are kept open for the next reader of this process."""

_OPTION = "tallystick.usage_lanes"
_CARRIED = re.compile(rf"-c {re.escape(_OPTION)}=(\S+)")
_ELSEWHERE = "SELECT lane FROM usage_elsewhere ORDER BY lane"


class LanesStopped(Exception):
    """The server of these lanes does not answer: what needs them waits, other lanes go on."""

    def __init__(self, lanes: Iterable[int], cause: object = "it does not answer") -> None:
        self.lanes = tuple(lanes)
        super().__init__(f"usage lanes {ranges(self.lanes)} are stopped: {cause}")


class LanesMisplaced(Exception):
    """The setting says another place of a lane than the database; the message says what to do."""


def carried(lanes: LaneMap, conninfo: str) -> str:
    """The address of the market's database, its connections told where the lanes lie."""
    if not lanes.elsewhere():
        return conninfo
    told = base64.urlsafe_b64encode(str(lanes).encode()).decode()
    options = conninfo_to_dict(conninfo).get("options") or ""
    return make_conninfo(conninfo, options=f"{options} -c {_OPTION}={told}".lstrip())


def of(connection: Connection) -> LaneMap:
    """Where the lanes lie for readers on this connection to the market's server."""
    return _told(connection.info.options)


def of_address(conninfo: str) -> LaneMap:
    """Likewise, by the address that `carried` gave."""
    return _told(str(conninfo_to_dict(conninfo).get("options") or ""))


@lru_cache(maxsize=64)
def _told(options: str) -> LaneMap:
    found = _CARRIED.search(options)
    if found is None:
        return HERE
    return LaneMap.parse(base64.urlsafe_b64decode(found[1]).decode())


def require_placed(connection: Connection) -> None:
    """That the database has the same lanes elsewhere as the setting. Raises LanesMisplaced."""
    told = sorted(lane for lanes in of(connection).elsewhere().values() for lane in lanes)
    there = lanes_elsewhere(connection)
    if told != there:
        raise LanesMisplaced(
            f"TALLYSTICK_USAGE_LANES has the lanes [{ranges(told)}] on other servers than the"
            f" market's, and the database has [{ranges(there)}] there. Lanes go to another server"
            " by `tallystick move-lanes`, which says what to set"
        )


def lanes_elsewhere(connection: Connection) -> list[int]:
    """The lanes that do not lie in this database; one of an older version has them all."""
    if connection.execute("SELECT to_regclass('public.usage_elsewhere')").fetchone() == (None,):
        return []
    return [lane for (lane,) in connection.execute(_ELSEWHERE)]


def lanes_held(connection: Connection) -> list[int]:
    """The lanes that lie in this database."""
    return [lane for (lane,) in connection.execute("SELECT lane FROM usage_head ORDER BY lane")]


# --- one connection each ---------------------------------------------------------------------


@contextmanager
def at(connection: Connection, lane: int) -> Generator[Connection, None, None]:
    """The connection on which one lane is read: this one, or one to the lane's server.

    Raises LanesStopped.
    """
    lanes = of(connection)
    if lanes is HERE:
        yield connection
        return
    address = lanes.addresses[lane]
    with on(connection, address, lanes.servers()[address]) as there:
        yield there


def each(
    connection: Connection, lanes: Iterable[int] = range(LANES)
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each server that holds some of these lanes, by its address, with those."""
    wanted = set(lanes)
    if of(connection) is HERE:
        if wanted:
            yield MARKET, tuple(sorted(wanted))
        return
    for address, held in of(connection).servers().items():
        if some := tuple(lane for lane in held if lane in wanted):
            yield address, some


class _Idle:
    """Open connections to the servers of lanes, by address, of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: defaultdict[str, list[Connection]] = defaultdict(list)

    def take(self, address: str) -> Connection:
        with self._lock:
            while self._free[address]:
                connection = self._free[address].pop()
                if _is_open(connection):
                    return connection
                connection.close()
        connection = psycopg.connect(
            address,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS_MAX,
            tcp_user_timeout=ANSWER_MILLISECONDS_MAX,
        )
        connection.execute("SET ROLE tallystick_projections")
        return connection

    def give(self, address: str, connection: Connection) -> None:
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if is_idle and len(self._free[address]) < IDLE_MAX:
                self._free[address].append(connection)
                return
        connection.close()

    def close(self) -> None:
        """At the end of the process."""
        for address in list(self._free):
            self.forget(address)

    def forget(self, address: str) -> None:
        """One is broken, so those from before are too."""
        with self._lock:
            stale = self._free.pop(address, [])
        for connection in stale:
            connection.close()


def _is_open(connection: Connection) -> bool:
    """Whether the server has said nothing since the last answer: a farewell would wait there."""
    if connection.closed:
        return False
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return not waiting.poll(0)


_IDLE = _Idle()
atexit.register(_IDLE.close)


@contextmanager
def on(
    connection: Connection, address: str, lanes: Sequence[int]
) -> Generator[Connection, None, None]:
    """The connection on which lanes of one address are read. Raises LanesStopped."""
    if address == MARKET:
        yield connection
        return
    try:
        there = _IDLE.take(address)
    except psycopg.OperationalError as error:
        raise LanesStopped(lanes) from error
    try:
        yield there
    except psycopg.OperationalError as error:
        if not there.broken:
            raise
        _IDLE.forget(address)
        raise LanesStopped(lanes) from error
    finally:
        _IDLE.give(address, there)
