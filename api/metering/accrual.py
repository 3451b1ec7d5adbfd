"""The accrual timer: from signed reports in the usage log to lease hours in the market log.

The view lists the leases that are due by `domain/leasing/due.py`; all are charged, and a lease that
fails stops alone. For each lease the timer reads the node's reports that are not consumed yet,
hands their rows to the domain and records what the domain decides. It keeps no cursor of its own:
what was read is in the `UsageAccrued` facts, so a crash between the two logs is harmless and a
repeated run adds nothing.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg

from api.process.service import Service
from domain.funds.reasons import FundsReason
from domain.lease.lease import AccrueUsage, Lease, LeaseReserved, TopUpLease, lease_stream
from domain.leasing.accrual import reports_from_us
from domain.leasing.due import PATIENCE_US, due_commands, reports_due_us
from domain.metering.counting import Passed
from domain.metering.reasons import MeteringReason
from domain.metering.report import lane_of
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from ledger.log.handle import LOG_AWAY, Ahead, Ledger, Order
from ledger.log.lane_store import LanesStopped
from ledger.log.market import Held
from ledger.log.usage_reads import NodeReader
from ledger.tree import trees
from projections import tables
from projections.lease import leases
from projections.runner import Connection

NO_MONEY = frozenset(
    {FundsReason.CREDIT_TOO_LOW, FundsReason.UNPAID_DEBT, PartiesReason.BUDGET_EXHAUSTED}
)
LEASES_TOGETHER = 1_000
"""Leases loaded together. Their reports are held in memory until they are recorded, and those of
the next as many."""
LEASES_MAX = 1_000
"""Leases listed together; a run of the timer goes through all of them."""

logger = logging.getLogger(__name__)


# --- a round of the timer --------------------------------------------------------------------


def run_accrual(service: Service, connection: Connection, now_us: int) -> int:
    """Start timeouts, finished lease hours, ends of funds and terms, settlements."""
    tables.step_all(connection, only=("leases",))
    stopped: list[str] = []

    def on_stopped(lease_id: str, error: Exception) -> None:
        logger.error("accrual of %s stops: %s", lease_id, error)
        stopped.append(lease_id)

    _make_room(service, connection)
    due = due_leases(connection, now_us)
    done = accrue(service.ledger, connection, due, now_us, on_stopped=on_stopped)
    if stopped:
        raise AccrualStopped(f"{len(stopped)} leases stop, the first is {stopped[0]}")
    return done


def _make_room(service: Service, connection: Connection) -> None:
    """For the states of all open leases, and half as many other streams."""
    service.ledger.market.make_room(leases.count_open(connection) * 3 // 2)


def due_leases(connection: Connection, now_us: int) -> Iterator[str]:
    """Leases that are due by `domain/leasing/due.py`: what there is to do for each says
    `due_commands`.

    By node, so that a report is read once for all the leases it names.
    """
    node_id, after = "", -1
    while rows := leases.read_due(connection, now_us, node_id, after, LEASES_MAX):
        yield from (lease_id for lease_id, _, _ in rows)
        _, node_id, after = rows[-1]


class AccrualStopped(Exception):
    """Some leases could not be accrued; the others were. Their epoch cannot close."""


# --- what is due for each lease --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reports:
    """The reports of one lease's node, read when they are asked for."""

    lease: Lease
    lease_id: str
    reader: NodeReader
    now_us: int

    def unread(self) -> AccrueUsage:
        return unread(self.lease, self.lease_id, self.reader, self.now_us)

    def passed(self) -> tuple[Passed, ...]:
        reserved = self.lease.reserved
        assert reserved is not None
        after = first_unread(self.lease, self.reader)
        return self.reader.passed(reserved.node_id, reserved.device_ids, after)


def due_now(
    lease: Lease, lease_id: str, reader: NodeReader, now_us: int, patience_us: int = PATIENCE_US
) -> list[Any]:
    """What is due for one lease now, by what its node has reported."""
    reports = _Reports(lease, lease_id, reader, now_us)
    return due_commands(lease, lease_id, reports, now_us, patience_us)


def first_unread(lease: Lease, reader: NodeReader) -> int:
    """The lane position after which the reports lie that hold rows not consumed yet."""
    assert lease.reserved is not None
    if lease.usage_position:
        return lease.resume_position
    return first_position(reader, lease.reserved)


def look_up(reader: NodeReader, some: Iterable[Lease]) -> None:
    """Find together where the reports of leases begin that nothing was accrued of yet."""
    begun = [one.reserved for one in some if one.reserved is not None and not one.usage_position]
    reader.look_up((lane_of(one.node_id), reports_from_us(one)) for one in begun)


def first_position(reader: NodeReader, reserved: LeaseReserved) -> int:
    """The lane position after which the first report that may name a lease lies."""
    return reader.received_before(lane_of(reserved.node_id), reports_from_us(reserved))


def unread(lease: Lease, lease_id: str, reader: NodeReader, now_us: int) -> AccrueUsage:
    """Everything received and not consumed yet, as the command that would accrue it."""
    assert lease.reserved is not None
    node_id = lease.reserved.node_id
    lane = lane_of(node_id)
    return AccrueUsage(
        lease_id=lease_id,
        lane=lane,
        usage_position=max(reader.head(lane), lease.usage_position),
        rows=reader.rows(node_id, lease_id, first_unread(lease, reader)),
        at_us=now_us,
    )


def accrue(
    ledger: Ledger,
    connection: psycopg.Connection[Any],
    lease_ids: Iterable[str],
    now_us: int,
    *,
    patience_us: int = PATIENCE_US,
    on_stopped: Callable[[str, Exception], None] | None = None,
) -> int:
    """Record what is due for each lease; returns how many commands took effect.

    Leases are loaded, read for and recorded LEASES_TOGETHER at a time; the facts are those of one
    lease after the other, byte for byte. A lease whose accrual fails stops by itself: the others
    go on, and `on_stopped` is told. That a closed lease still waits for reports is no failure.
    """
    trees.see_elsewhere(connection)
    run = _Run(ledger, NodeReader(connection), now_us, patience_us, on_stopped)
    ids = iter(lease_ids)

    def prepare() -> _Batch | None:
        together = list(islice(ids, LEASES_TOGETHER))
        return run.prepare(together) if together else None

    done = 0
    with _no_collecting(), ThreadPoolExecutor(1, "accrual-ahead") as ahead:
        coming = ahead.submit(prepare)
        while (batch := coming.result()) is not None:
            coming = ahead.submit(prepare)  # while PostgreSQL records this one
            done += run.record(batch)
    return done


@contextmanager
def _no_collecting() -> Generator[None, None, None]:
    """Facts and states hold no cycles: looking for some took a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(slots=True)
class _Batch:
    """What is due for some leases, and the states that says so."""

    waiting: list[tuple[str, list[Any]]]
    ahead: dict[Stream[Any], Held]


@dataclass(frozen=True, slots=True)
class _Run:
    """One run over some leases."""

    ledger: Ledger
    reader: NodeReader
    now_us: int
    patience_us: int
    on_stopped: Callable[[str, Exception], None] | None

    def prepare(self, lease_ids: Sequence[str]) -> _Batch:
        """What is due for these leases, from two queries: their facts, and their reports."""
        streams = [lease_stream(lease_id) for lease_id in lease_ids]
        ahead = self.ledger.market.load_many(streams)
        self._read_ahead([ahead[stream].state for stream in streams])
        waiting: list[tuple[str, list[Any]]] = []
        for stream in streams:
            try:
                commands = self._due(ahead[stream].state, stream.id, self.reader)
            except Exception as error:
                self._stop(stream.id, error)
            else:
                if commands:
                    waiting.append((stream.id, commands))
        return _Batch(waiting, ahead)

    def record(self, batch: _Batch) -> int:
        """Decide and append in as few appends as it fits into; how many commands took effect."""
        waiting, ahead, done = batch.waiting, batch.ahead, 0
        while waiting:
            try:
                parts = self.ledger.handle_all(
                    [Order(commands, is_whole=False) for _, commands in waiting],
                    ahead=Ahead(ahead, {}),
                    now_us=self.now_us,
                )
            except LOG_AWAY:
                raise  # it is no lease's fault, and the next one would wait as long
            except Exception as error:
                logger.warning("%d leases are accrued one by one: %s", len(waiting), error)
                return done + sum(self.alone(lease_id) for lease_id, _ in waiting)
            taken = waiting[: len(parts)]
            waiting = waiting[len(parts) :]
            for (lease_id, commands), part in zip(taken, parts, strict=True):
                done += part.done
                if part.refusal is not None:
                    done += self._again(lease_id, part.refusal)
                elif part.done < len(commands):
                    waiting.insert(0, (lease_id, commands[part.done :]))
                ahead.pop(lease_stream(lease_id), None)  # it is another one by now
        return done

    def alone(self, lease_id: str) -> int:
        """Accrue one lease, every command in an append of its own."""
        done = 0
        try:
            state = self.ledger.market.state_of(lease_stream(lease_id))
            for command in self._due(state, lease_id, self.reader.beside()):
                done += self._take(command)
        except Refused as refused:
            if refused.reason is not MeteringReason.USAGE_INCOMPLETE:
                self._stop(lease_id, refused)
        except Exception as error:
            self._stop(lease_id, error)
        return done

    def _take(self, command: Any) -> int:
        """Record one command. A refill that finds no money is no failure: the lease then ends when
        its funds do.
        """
        try:
            self.ledger.handle(command, key=None, now_us=self.now_us)
        except Refused as refused:
            if isinstance(command, TopUpLease) and refused.reason in NO_MONEY:
                return 0
            raise
        return 1

    def _again(self, lease_id: str, refused: Refused) -> int:
        """A refused lease has moved since it was loaded, or is told of when it is refused again."""
        return 0 if refused.reason is MeteringReason.USAGE_INCOMPLETE else self.alone(lease_id)

    def _due(self, lease: Lease, lease_id: str, reader: NodeReader) -> list[Any]:
        return due_now(lease, lease_id, reader, self.now_us, self.patience_us)

    def _read_ahead(self, leases: Iterable[Lease]) -> None:
        after: dict[str, int] = {}
        for lease in leases:
            reads_us = reports_due_us(lease)
            if reads_us is not None and reads_us <= self.now_us:
                assert lease.reserved is not None
                node_id = lease.reserved.node_id
                with suppress(LanesStopped):  # told when its turn comes
                    position = first_unread(lease, self.reader)
                    after[node_id] = min(position, after.get(node_id, position))
        self.reader.read_ahead(after)

    def _stop(self, lease_id: str, error: Exception) -> None:
        if self.on_stopped is None:
            raise error
        self.on_stopped(lease_id, error)
