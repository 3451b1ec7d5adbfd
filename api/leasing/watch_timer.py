"""The timer of running leases: silence and its end, warnings, faults revised, archives.

    healthy  <=>  every device of the lease has signed available time that ends less than
                  `DEGRADED_AFTER_US` ago

Harmless to repeat: whatever it finds is decided again from the lease itself. Time that nobody
proves is not charged, whether or not this job has said so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg

from api.epochs.closing import known_epochs
from api.metering.accrual import first_unread
from api.process.service import Service
from domain.lease.lease import DEGRADED_AFTER_US, LATE_WINDOW_US, Lease, lease_stream
from domain.lease.turns import ArchiveLease, DegradeLease, RecoverLease, ReviseFault, WarnFundsEnd
from domain.leasing.life import DISPUTED_US_MAX, WARNINGS_US, runs_since_us, warning_due
from domain.metering.counting import UsageRow
from domain.metering.report import lane_of
from domain.refusal import Refused
from ledger.log.handle import LOG_AWAY
from ledger.log.usage_reads import NodeReader
from ledger.tree import trees
from projections import tables
from projections.lease import turns as lease_turns
from projections.runner import Connection

logger = logging.getLogger(__name__)

LEASES_MAX = 1_000
"""Leases listed together; a run goes through all of them."""
REVISED_US_MAX = 7 * LATE_WINDOW_US
"""For so long after a close late reports are looked at for what they prove."""

AWAY: tuple[type[Exception], ...] = (psycopg.Error, *LOG_AWAY)


class WatchStopped(Exception):
    """Some leases could not take their turn; the others did."""


def run_watch(service: Service, connection: Connection, now_us: int) -> int:
    """Every turn that is due; how many were taken."""
    tables.step_all(connection, only=("leases",))
    run = _Run(service, connection, now_us)
    run.look_for_silence()
    ahead_us = max(WARNINGS_US)
    ending = lease_turns.read_ending(connection, now_us, now_us + ahead_us, LEASES_MAX)
    for lease_id in ending:
        run.look(lease_id, partial(run.warn, lease_id))
    since_us = now_us - REVISED_US_MAX
    for lease_id in lease_turns.read_unreachable(connection, since_us, LEASES_MAX):
        run.look(lease_id, partial(run.look_for_proof, lease_id))
    run.archive()
    if run.stopped:
        raise WatchStopped(f"{len(run.stopped)} leases stop, the first is {run.stopped[0]}")
    return run.done


class _Run:
    """One run: what it has read, how much it did, and what stopped."""

    def __init__(self, service: Service, connection: Connection, now_us: int) -> None:
        self._service = service
        self._connection = connection
        self._now_us = now_us
        trees.see_elsewhere(connection)
        self._reader = NodeReader(connection)
        self.done = 0
        self.stopped: list[str] = []

    def lease(self, lease_id: str) -> Lease:
        return self._service.ledger.market.state_of(lease_stream(lease_id))

    def look(self, lease_id: str, turn: Callable[[], None]) -> None:
        """Look at one lease; what is wrong with it keeps no other from its turn."""
        try:
            turn()
        except AWAY:
            raise  # it is no lease's fault, and the next one would wait as long
        except Exception:
            logger.exception("looking at %s stops", lease_id)
            self.stopped.append(lease_id)

    def warn(self, lease_id: str) -> None:
        if warning_due(self.lease(lease_id), self._now_us) is not None:
            self.take(WarnFundsEnd(lease_id=lease_id, at_us=self._now_us))

    def take(self, command: Any) -> None:
        """Record one turn. A refusal says that the lease has moved on, or that it is not time."""
        try:
            outcome = self._service.ledger.handle(command, key=None, now_us=self._now_us)
            self.done += len(outcome.changes)
        except LOG_AWAY:
            raise  # it is no lease's fault, and the next one would wait as long
        except Refused as no:
            logger.info("%s is not taken: %s", type(command).__name__, no)
        except Exception:
            logger.exception("the turn of %s stops", command.lease_id)
            self.stopped.append(command.lease_id)

    def look_for_silence(self) -> None:
        """Node by node, so that its last reports are read once for all of its leases."""
        node_id, after = "", -1
        while True:
            found, after = lease_turns.read_watched(self._connection, node_id, after, LEASES_MAX)
            for one in found:
                self.look(one.lease_id, partial(self._watch, one))
            if len(found) < LEASES_MAX:
                return
            node_id = found[-1].node_id

    def _watch(self, one: lease_turns.Watched) -> None:
        lease = self.lease(one.lease_id)
        if lease.reserved is None or lease.status not in ("active", "degraded"):
            return
        fresh_us = self._now_us - DEGRADED_AFTER_US
        if lease.status == "active" and runs_since_us(lease) > fresh_us:
            return
        lane = lane_of(one.node_id)
        recent = self._reader.rows(
            one.node_id, one.lease_id, self._reader.received_before(lane, fresh_us)
        )
        healthy_us = reached(dict.fromkeys(lease.reserved.device_ids, 0), recent)
        if lease.status == "degraded":
            if healthy_us > fresh_us:
                self.take(
                    RecoverLease(lease_id=one.lease_id, healthy_us=healthy_us, at_us=self._now_us)
                )
        elif healthy_us <= fresh_us:
            self._degrade(one, lease, lane)

    def _degrade(self, one: lease_turns.Watched, lease: Lease, lane: int) -> None:
        """Silent since the last healthy row that there is; all unread ones are looked at."""
        beside = self._reader.beside()
        rows = beside.rows(one.node_id, one.lease_id, first_unread(lease, beside))
        assert lease.reserved is not None
        known = dict.fromkeys(lease.reserved.device_ids, runs_since_us(lease))
        for mark in lease.marks:
            known[mark.device_id] = max(known[mark.device_id], mark.wall_end_us)
        since_us = reached(known, rows)
        if since_us <= self._now_us - DEGRADED_AFTER_US:
            self.take(
                DegradeLease(
                    lease_id=one.lease_id,
                    since_us=since_us,
                    lane=lane,
                    usage_position=self._reader.head(lane),
                    at_us=self._now_us,
                )
            )

    def look_for_proof(self, lease_id: str) -> None:
        """Reports that came after a lease was found silent, and say that it was not."""
        lease = self.lease(lease_id)
        if lease.reserved is None or lease.closed is None or lease.degraded is None:
            return
        lane = lane_of(lease.reserved.node_id)
        beside = self._reader.beside()
        rows = beside.rows(lease.reserved.node_id, lease_id, lease.degraded.usage_position)
        needed_us = lease.closed.closed_at_us - DEGRADED_AFTER_US
        proof = covered(lease.reserved.device_ids, rows, lease.degraded.since_us)
        if min(proof) >= needed_us:
            self.take(
                ReviseFault(
                    lease_id=lease_id,
                    lane=lane,
                    usage_position=self._reader.head(lane),
                    covered_us=proof,
                    at_us=self._now_us,
                )
            )

    def archive(self) -> None:
        """Leases that nobody can dispute any more, whose last epoch is sealed."""
        until_us = self._now_us - DISPUTED_US_MAX
        over = lease_turns.read_settled(self._connection, until_us, LEASES_MAX)
        if not over:
            return
        epochs = [
            (state.opened.end_us, epoch)
            for epoch, state in known_epochs(self._service.ledger)
            if state.opened is not None and state.sealed is not None
        ]
        for lease_id in over:
            settled_us = self.lease(lease_id).settled_at_us
            epoch = next((number for end_us, number in epochs if end_us > settled_us), None)
            if epoch is not None:
                self.take(ArchiveLease(lease_id=lease_id, epoch=epoch, at_us=self._now_us))


def reached(known: Mapping[str, int], rows: Iterable[UsageRow]) -> int:
    """The moment up to which every device has signed that it was available, after what was known
    of each.
    """
    ends = dict(known)
    for row in rows:
        if row.available_us and row.device_id in ends:
            ends[row.device_id] = max(ends[row.device_id], row.wall_end_us)
    return min(ends.values())


def covered(device_ids: Sequence[str], rows: Iterable[UsageRow], since_us: int) -> tuple[int, ...]:
    """How far each device's signed time goes on from a moment without a silence that degrades."""
    ends = dict.fromkeys(device_ids, since_us)
    for row in sorted(rows, key=lambda one: one.wall_start_us):
        known = ends.get(row.device_id)
        if known is None or not row.available_us:
            continue
        if row.wall_start_us < known + DEGRADED_AFTER_US:
            ends[row.device_id] = max(known, row.wall_end_us)
    return tuple(ends.values())
