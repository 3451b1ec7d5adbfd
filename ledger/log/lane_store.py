"""Where do the usage lanes lie? On the market's server, or each on one of several.

    every lane lies on exactly one server;   what reads or writes one lane asks `at` for its server
    a server is used  =>  it was made one of this market's, and holds all that was seen of its lanes

A lane that lies elsewhere has its rows, keys, head and tiles there. The market's server keeps who
holds it and how far it was seen (`usage_elsewhere`), so that views, pins and gates join it as any
other. Each new connection to another server is held against that: an empty database, one of another
market, and one that was restored to an earlier time are not read and take nothing. Such a server,
and one that does not answer, stops its own lanes: `LanesStopped`.

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
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from domain.metering.report import LANES
from ledger.log.durable import DurableConnection, given_up_in_time
from ledger.log.lane_map import HERE, MARKET, LaneMap, ranges

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]

CONNECT_SECONDS_MAX = 2
ANSWER_MILLISECONDS_MAX = 15_000
"""A statement at another server is given up after this, and its lanes are stopped."""
AWAY_SECONDS = 2.0
"""A server that did not answer is not asked again for so long; nor who holds a lane."""
KNOWN_SECONDS = 60.0
"""So long a committer stores at another server before it asks the market again who holds a lane."""
IDLE_MAX = 4
"""Connections to one server that are kept open for the next reader of this process."""

_OPTION = "tallystick.usage_lanes"
_CARRIED = re.compile(rf"-c {re.escape(_OPTION)}=(\S+)")
_ELSEWHERE = "SELECT lane FROM usage_elsewhere ORDER BY lane"
_PLACED = "SELECT lane, server IS NULL FROM usage_elsewhere"


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
    """That the database has the same lanes elsewhere as the setting; one that is on its way from
    here may be told at either place. Raises LanesMisplaced.
    """
    told = {lane for lanes in of(connection).elsewhere().values() for lane in lanes}
    there = dict(connection.execute(_PLACED).fetchall())
    arrived = {lane for lane, is_leaving in there.items() if not is_leaving}
    if not arrived <= told <= set(there):
        raise LanesMisplaced(
            f"TALLYSTICK_USAGE_LANES has the lanes [{ranges(sorted(told))}] on other servers than"
            f" the market's, and the database has [{ranges(sorted(there))}] there. Set the map that"
            " `tallystick move-lanes` said; if that command was ended, run it again"
        )


def require_market(connection: Connection) -> None:
    """That this database is no server of lanes. Raises LanesMisplaced."""
    if connection.execute("SELECT to_regclass('public.usage_server')").fetchone() == (None,):
        return
    server, market = identity(connection)
    if server != market:
        raise LanesMisplaced(
            "this database was made a server of usage lanes: TALLYSTICK_DATABASE_URL has to name"
            " the market's"
        )


def identity(connection: Connection) -> tuple[UUID, UUID]:
    """The name of this database, and of the market that it belongs to: its own, but for a server
    of lanes.
    """
    row = connection.execute("SELECT server, market FROM usage_server").fetchone()
    assert row is not None
    return row[0], row[1]


def lanes_elsewhere(connection: Connection) -> list[int]:
    """The lanes that do not lie in this database; one of an older version has them all."""
    if connection.execute("SELECT to_regclass('public.usage_elsewhere')").fetchone() == (None,):
        return []
    return [lane for (lane,) in connection.execute(_ELSEWHERE)]


def leaving(connection: Connection) -> list[int]:
    """The lanes that were taken out of this database, which has not heard that they arrived."""
    query = "SELECT lane FROM usage_elsewhere WHERE moving_to IS NOT NULL ORDER BY lane"
    return [lane for (lane,) in connection.execute(query)]


# --- whether a server may be used ------------------------------------------------------------

_RECORDED = """
    SELECT m.market, e.lane, e.server, e.pos, e.hash FROM usage_server m
    LEFT JOIN usage_elsewhere e ON e.lane = ANY(%s) AND e.server IS NOT NULL
    WHERE m.server = m.market
"""
_HELD = """
    SELECT n.lane, s.market = n.market AND s.server <> s.market, s.server = n.server,
        h.lane IS NOT NULL, n.pos = 0 OR coalesce(e.chain = n.hash AND
            (h.lane IS NULL OR h.pos >= n.pos), false)
    FROM unnest(%s::uuid[], %s::int2[], %s::uuid[], %s::int8[], %s::bytea[])
        n(market, lane, server, pos, hash)
    CROSS JOIN usage_server s LEFT JOIN usage_head h ON h.lane = n.lane
    LEFT JOIN usage_event e ON e.lane = n.lane AND e.position = n.pos
"""
_IS_MADE = "SELECT to_regclass('public.usage_server') IS NOT NULL"


class NotAdmitted(Exception):
    """This database may not stand for these lanes; the message says why."""


def admit(market: Connection, there: Connection, lanes: Iterable[int]) -> frozenset[int]:
    """Which of these lanes `there` holds, by what the market remembers of them. Raises NotAdmitted:
    it is no server of this market's lanes, or has lost reports that were seen.
    """
    told = market.execute(_RECORDED, (list(lanes),)).fetchall()
    _require_made(there.execute(_IS_MADE).fetchone())
    return _admitted(there.execute(_HELD, _columns(told)).fetchall())


async def admit_async(
    market: AsyncConnection, there: AsyncConnection, lanes: Iterable[int]
) -> frozenset[int]:
    """`admit` for an event loop."""
    told = await (await market.execute(_RECORDED, (list(lanes),))).fetchall()
    _require_made(await (await there.execute(_IS_MADE)).fetchone())
    return _admitted(await (await there.execute(_HELD, _columns(told))).fetchall())


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """At least one row, if no lane is told then without one."""
    if not rows:
        raise NotAdmitted("the market's database is none")
    return [list(column) for column in zip(*rows, strict=True)]


def _require_made(row: tuple[Any, ...] | None) -> None:
    if row != (True,):
        raise NotAdmitted("its database was not made a server of lanes by `tallystick move-lanes`")


def _admitted(found: Sequence[tuple[int, bool, bool, bool, bool]]) -> frozenset[int]:
    """By (lane, is ours, is named, is held, is whole); a row without a lane is of no name."""
    if not all(is_ours for _, is_ours, *_ in found):
        raise NotAdmitted("its database is no server of this market's lanes")
    lost = sorted(lane for lane, _, is_named, _, is_whole in found if is_named and not is_whole)
    if lost:
        raise NotAdmitted(
            f"it has lost reports of lane {ranges(lost)} that the market has seen: it was restored"
            " to an earlier time"
        )
    return frozenset(lane for lane, _, is_named, is_held, _ in found if is_named and is_held)


@lru_cache(maxsize=64)
def reached(address: str) -> str:
    """The address of a server of lanes, what does not answer given up in time; what the address
    says itself stays.
    """
    told = conninfo_to_dict(address)
    options = f"-c statement_timeout={ANSWER_MILLISECONDS_MAX} {told.get('options') or ''}"
    connect = {} if "connect_timeout" in told else {"connect_timeout": CONNECT_SECONDS_MAX}
    return make_conninfo(given_up_in_time(address), options=options.strip(), **connect)


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
    with on(connection, lanes.addresses[lane], [lane]) as there:
        yield there


def each(
    connection: Connection, lanes: Iterable[int] = range(LANES)
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each server that holds some of these lanes, by its address, with those. Lanes that it does
    not hold now, or that cannot be asked for, come apart: `on` refuses them.
    """
    wanted = set(lanes)
    if of(connection) is HERE:
        if wanted:
            yield MARKET, tuple(sorted(wanted))
        return
    for address, told in of(connection).servers().items():
        some = tuple(lane for lane in told if lane in wanted)
        held = some if address == MARKET or not some else _held_of(connection, address, some)
        for part in (held, tuple(lane for lane in some if lane not in held)):
            if part:
                yield address, part


def held_now(connection: Connection, address: str, lanes: Sequence[int]) -> frozenset[int]:
    """Which of these lanes the server at an address holds, asked anew; none if it is stopped."""
    try:
        with on(connection, address, lanes, some=True) as there:
            return admit(connection, there, lanes)
    except (LanesStopped, NotAdmitted):
        return frozenset()


def _held_of(connection: Connection, address: str, lanes: Sequence[int]) -> tuple[int, ...]:
    """Likewise, as it was known when its connection was opened."""
    try:
        opened = _IDLE.take(connection, address, lanes)
    except LanesStopped:
        return ()
    _IDLE.give(address, opened)
    return tuple(lane for lane in lanes if lane in opened.lanes)


@dataclass(slots=True)
class _Opened:
    """A connection to a server, and the lanes that it held when it was asked."""

    connection: Connection
    lanes: frozenset[int]
    asked: float


class _Idle:
    """Open connections to the servers of lanes, by address, of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: defaultdict[str, list[_Opened]] = defaultdict(list)
        self._away: dict[str, tuple[float, Exception]] = {}

    def take(self, market: Connection, address: str, lanes: Sequence[int]) -> _Opened:
        """Raises LanesStopped for `lanes`, at once if the server did not answer just now."""
        opened = self._pop(address)
        try:
            if opened is None:
                until, cause = self._away.get(address, (0.0, None))
                if time.monotonic() < until:
                    raise LanesStopped(lanes, cause)
                opened = _open(market, address)
            elif not opened.lanes.issuperset(lanes):
                _ask_again(market, address, opened)
        except (psycopg.Error, NotAdmitted) as error:
            if opened is not None:
                opened.connection.close()
            self._away[address] = time.monotonic() + AWAY_SECONDS, error
            raise LanesStopped(lanes, error) from error
        return opened

    def _pop(self, address: str) -> _Opened | None:
        with self._lock:
            while self._free[address]:
                opened = self._free[address].pop()
                if _is_open(opened.connection):
                    return opened
                opened.connection.close()
        return None

    def give(self, address: str, opened: _Opened) -> None:
        connection = opened.connection
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if is_idle and len(self._free[address]) < IDLE_MAX:
                self._free[address].append(opened)
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
        for opened in stale:
            opened.connection.close()


def _open(market: Connection, address: str) -> _Opened:
    """Raises psycopg.Error and NotAdmitted."""
    connection = DurableConnection.connect(reached(address), autocommit=True)
    try:
        lanes = admit(market, connection, of(market).servers()[address])
        connection.execute("SET ROLE tallystick_projections")
    except BaseException:
        connection.close()
        raise
    return _Opened(connection, lanes, time.monotonic())


def _ask_again(market: Connection, address: str, opened: _Opened) -> None:
    """A lane may have arrived meanwhile."""
    if time.monotonic() >= opened.asked + AWAY_SECONDS:
        opened.lanes = admit(market, opened.connection, of(market).servers()[address])
        opened.asked = time.monotonic()


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
    connection: Connection, address: str, lanes: Sequence[int], *, some: bool = False
) -> Generator[Connection, None, None]:
    """The connection on which lanes of one address are read; with `some` it may lack a few of them.
    Raises LanesStopped.
    """
    if address == MARKET:
        yield connection
        return
    opened = _IDLE.take(connection, address, lanes)
    try:
        if not some and (missing := [lane for lane in lanes if lane not in opened.lanes]):
            raise LanesStopped(missing, "the server that the setting names does not hold them")
        yield opened.connection
    except psycopg.OperationalError as error:
        if opened.connection.broken:
            _IDLE.forget(address)
        raise LanesStopped(lanes, error) from error
    finally:
        _IDLE.give(address, opened)
