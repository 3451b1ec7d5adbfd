"""The accrual job: from signed reports in the usage log to lease hours in the market log.

For each lease it reads the node's reports that are not consumed yet, hands their rows to the
domain and records what the domain decides. It keeps no cursor of its own: what was read is in the
`UsageAccrued` facts, so a crash between the two logs is harmless and a repeated run adds nothing.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg

from domain.duration import HOUR_US
from domain.lease.close_codes import EXPIRED, FUNDS_ENDED, START_TIMEOUT, TERM_REACHED, UNREACHABLE
from domain.lease.closing import expires_us, unreachable_us
from domain.lease.lease import AccrueUsage, CloseLease, Lease, SettleLease, TopUpLease, lease_stream
from domain.leasing.top_up import refill_due
from domain.metering.counting import Passed, UsageRow
from domain.metering.report import lane_of
from domain.refusal import Reason, Refused
from domain.stream import Stream
from ledger.log.handle import LOG_AWAY, Ahead, Ledger, Order
from ledger.log.market import Held
from ledger.log.usage_reads import NodeReader

NO_MONEY = frozenset({Reason.CREDIT_TOO_LOW, Reason.UNPAID_DEBT, Reason.BUDGET_EXHAUSTED})
PATIENCE_US = 600_000_000
"""How long a finished hour waits for its last report before it is accrued without it."""

SKEW_US = HOUR_US
"""How far the clocks of two servers may be apart: reports this much older than a lease are read."""

LEASES_TOGETHER = 1_000
"""Leases loaded together. Their reports are held in memory until they are recorded, and those of
the next as many."""
logger = logging.getLogger(__name__)


def due_commands(
    lease: Lease, lease_id: str, reader: NodeReader, now_us: int, patience_us: int = PATIENCE_US
) -> list[Any]:
    """What is due for one lease now: the end of its start timeout, funds or term, finished hours,
    settlement.
    """
    never_ran = _never_runs(lease, lease_id, now_us)
    if lease.opened is None or lease.is_over:
        return never_ran
    commands: list[Any] = []
    end_us = lease.window_end_us
    is_over = lease.closed is not None
    refill = refill_due(lease, lease_id, now_us)
    if refill is not None:
        commands.append(refill)
    if not is_over and end_us <= now_us:
        code = TERM_REACHED if lease.term_end_us == end_us else FUNDS_ENDED
        commands.append(_close(lease_id, end_us, code, now_us))
        is_over = True
    silent_us = unreachable_us(lease)
    if not is_over and silent_us is not None and silent_us <= now_us:
        commands.append(_close(lease_id, silent_us, UNREACHABLE, now_us))
        is_over, end_us = True, silent_us
    until_us = lease.opened.opened_at_us + (lease.hours_accrued + 1) * HOUR_US
    if not is_over and until_us > now_us:
        return commands
    command = unread(lease, lease_id, reader, now_us)
    reached = _reached(lease, command.rows)
    while until_us < end_us and until_us <= now_us:
        if reached < until_us and now_us < until_us + patience_us:
            return commands
        commands.append(command)
        until_us += HOUR_US
    if is_over:
        commands.append(
            SettleLease(
                lease_id=lease_id,
                lane=command.lane,
                usage_position=command.usage_position,
                rows=command.rows,
                at_us=now_us,
                passed=_passed(lease, reader),
            )
        )
    return commands


def _never_runs(lease: Lease, lease_id: str, now_us: int) -> list[Any]:
    """The end of a lease that has not opened, when its time is over."""
    is_waiting = lease.status in ("reserved", "gang_waiting")
    if is_waiting and now_us >= lease.ready_until_us:
        return [_close(lease_id, lease.ready_until_us, START_TIMEOUT, now_us)]
    ends_us = expires_us(lease)
    if ends_us is not None and ends_us <= now_us:
        return [_close(lease_id, ends_us, EXPIRED, now_us)]
    return []


def _close(lease_id: str, closed_at_us: int, code: int, now_us: int) -> CloseLease:
    return CloseLease(
        lease_id=lease_id, closed_at_us=closed_at_us, party="job", code=code, at_us=now_us
    )


def needs_reports(lease: Lease, now_us: int) -> bool:
    """Whether `due_commands` will read: an hour of the lease is over, or the lease is."""
    if lease.opened is None or lease.is_over:
        return False
    hour_us = lease.opened.opened_at_us + (lease.hours_accrued + 1) * HOUR_US
    ends_us = min(hour_us, lease.window_end_us, unreachable_us(lease) or hour_us)
    return lease.closed is not None or ends_us <= now_us


def first_unread(lease: Lease, reader: NodeReader) -> int:
    """The lane position after which the reports lie that hold rows not consumed yet."""
    assert lease.reserved is not None
    if lease.usage_position:
        return lease.resume_position
    # Nothing read yet: no report can name a lease before it is there. By whole hours, so that the
    # leases of a lane ask the same question.
    since_us = (lease.reserved.at_us - SKEW_US) // HOUR_US * HOUR_US
    return reader.received_before(lane_of(lease.reserved.node_id), since_us)


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


def _passed(lease: Lease, reader: NodeReader) -> tuple[Passed, ...]:
    assert lease.reserved is not None
    node_id, device_ids = lease.reserved.node_id, lease.reserved.device_ids
    return reader.passed(node_id, device_ids, first_unread(lease, reader))


def _reached(lease: Lease, rows: Iterable[UsageRow]) -> int:
    """The moment up to which every device of the lease has reported."""
    assert lease.reserved is not None
    ends = dict.fromkeys(lease.reserved.device_ids, 0)
    ends.update({mark.device_id: mark.wall_end_us for mark in lease.marks})
    for row in rows:
        if row.device_id in ends:
            ends[row.device_id] = max(ends[row.device_id], row.wall_end_us)
    return min(ends.values())


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
            if refused.reason is not Reason.USAGE_INCOMPLETE:
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
        return 0 if refused.reason is Reason.USAGE_INCOMPLETE else self.alone(lease_id)

    def _due(self, lease: Lease, lease_id: str, reader: NodeReader) -> list[Any]:
        return due_commands(lease, lease_id, reader, self.now_us, self.patience_us)

    def _read_ahead(self, leases: Iterable[Lease]) -> None:
        after: dict[str, int] = {}
        for lease in leases:
            if needs_reports(lease, self.now_us):
                assert lease.reserved is not None
                node_id, position = lease.reserved.node_id, first_unread(lease, self.reader)
                after[node_id] = min(position, after.get(node_id, position))
        self.reader.read_ahead(after)

    def _stop(self, lease_id: str, error: Exception) -> None:
        if self.on_stopped is None:
            raise error
        self.on_stopped(lease_id, error)
