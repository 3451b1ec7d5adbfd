"""How a node takes up the work of a lease, says how it ended, and lets it go.

    acknowledged workload_sha256 == the job's        for every acknowledgement that is recorded
    one executor acknowledges the start of a lease   so its work runs once

Facts and state are those of `domain/lease/work_commands.py`. A node that was told something else
than the job's hash refuses by itself, and is refused here when it does not: `workload_mismatch`.
It then gives the lease back with close code 10006, spec_mismatch; what it lost is closed with
10000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.fleet.reasons import FleetReason
from domain.jobs.job import existing_job
from domain.jobs.reasons import JobsReason
from domain.lease.free_start import Start, StartFailed, free_us, starts_stream
from domain.lease.lease import Lease, LeaseClosed, lease_of, lease_stream
from domain.lease.reasons import LeaseReason
from domain.lease.work_commands import (
    COMMANDS,
    EXIT_CODE_MAX,
    EXITED,
    OUTCOMES,
    RUNNERS,
    START,
    LeaseCommandAcknowledged,
    LeaseWorkEnded,
)
from domain.parties.reasons import PartiesReason
from domain.prices.tariff import tariff_version
from domain.refusal import Refused
from domain.stream import Change, World

ENDPOINTS = ("endpoint", "notebook")
"""Kinds of jobs whose program runs before its start has succeeded: until it answers."""

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeCommand:
    """A node's executor has read a command and will do it (start) or has done it (stop)."""

    lease_id: str
    node_id: str
    command: str
    workload_sha256: str
    executor: str
    runner: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWork:
    """The work of a lease ended by itself, or the node finds that it no longer has it."""

    lease_id: str
    node_id: str
    executor: str
    outcome: str
    exit_code: int | None
    at_us: int


# How we decide.


def leased_to(world: World, lease_id: str, node_id: str) -> Lease:
    """The lease, if this node has it. Raises Refused: LEASE_UNKNOWN."""
    lease = lease_of(world, lease_id)
    if lease.reserved is None or lease.reserved.node_id != node_id:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return lease


def decide_acknowledge(command: AcknowledgeCommand, world: World) -> list[Change]:
    """Twice by the same executor is once.

    Raises Refused: LEASE_UNKNOWN, UNKNOWN_MODE, WORKLOAD_MISMATCH, LEASE_STATE.
    """
    lease = leased_to(world, command.lease_id, command.node_id)
    if command.command not in COMMANDS or command.runner not in RUNNERS:
        raise Refused(
            PartiesReason.UNKNOWN_MODE,
            command=command.command,
            runner=command.runner,
            allowed=(*COMMANDS, *RUNNERS),
        )
    assert lease.reserved is not None
    job = existing_job(world, lease.reserved.job_id)
    if command.workload_sha256 != job.workload_sha256:
        raise Refused(
            JobsReason.WORKLOAD_MISMATCH,
            rule="the work is the job's: image, command, environment",
            asked=job.workload_sha256,
            acknowledged=command.workload_sha256,
        )
    is_known = _known_start(lease, command) if command.command == START else _known_stop(lease)
    if is_known:
        return []
    fact = LeaseCommandAcknowledged(
        lease_id=command.lease_id,
        node_id=command.node_id,
        command=command.command,
        workload_sha256=command.workload_sha256,
        executor=command.executor,
        runner=command.runner,
        at_us=command.at_us,
        free_us=_free_us(lease, command.at_us, world) if command.command == START else None,
    )
    return [Change(lease_stream(command.lease_id), fact)]


def _free_us(lease: Lease, at_us: int, world: World) -> int | None:
    """How much of the start is free, by the tariff of the lease and the renter's failed starts."""
    reserved = lease.reserved
    assert reserved is not None
    rule = tariff_version(world, reserved.tariff_version).free_start
    return free_us(rule, world.state(starts_stream(reserved.account_id)), at_us)


def failed_start(lease: Lease, closed: LeaseClosed, world: World) -> list[Change]:
    """What is remembered of a start that failed; `lease` as it stood when it was closed."""
    reserved, taken_up, opened, ended = (
        lease.reserved,
        lease.work.started,
        lease.opened,
        lease.work.ended,
    )
    if reserved is None or taken_up is None:
        return []
    job = existing_job(world, reserved.job_id)
    is_exit_0 = ended is not None and ended.outcome == EXITED and ended.exit_code == 0
    start = Start(
        taken_up_us=taken_up.at_us,
        free_us=taken_up.free_us,
        ready_us=None if opened is None else opened.opened_at_us,
        closed_us=closed.closed_at_us,
        paid_us=0 if opened is None else lease.ran_us(closed.closed_at_us),
        code=closed.code,
        is_short_work=job.kind not in ENDPOINTS and is_exit_0,
    )
    if not start.has_failed:
        return []
    fact = StartFailed(
        account_id=reserved.account_id,
        lease_id=reserved.lease_id,
        node_id=reserved.node_id,
        free_us=start.was_free_us,
        paid_us=start.paid_us,
        at_us=closed.at_us,
    )
    return [Change(starts_stream(reserved.account_id), fact)]


def _known_start(lease: Lease, command: AcknowledgeCommand) -> bool:
    """Whether this executor has it already. Raises Refused: LEASE_STATE."""
    started = lease.work.started
    if started is not None:
        if started.executor == command.executor:
            return True
        raise Refused(FleetReason.LEASE_STATE, rule="another executor has the work")
    if not lease.is_live or lease.opened is not None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if command.at_us >= lease.ready_until_us:
        raise Refused(FleetReason.LEASE_STATE, ready_until_us=lease.ready_until_us)
    return False


def _known_stop(lease: Lease) -> bool:
    """Whether the stop was acknowledged before. Raises Refused: LEASE_STATE."""
    if lease.work.started is None or lease.closed is None:
        raise Refused(
            FleetReason.LEASE_STATE, status=lease.status, rule="only closed work is stopped"
        )
    return lease.work.stopped is not None


def decide_end(command: EndWork, world: World) -> list[Change]:
    """Twice is once, and what was stopped has ended.

    Raises Refused: LEASE_UNKNOWN, UNKNOWN_MODE, COUNT_OUT_OF_RANGE, LEASE_STATE.
    """
    lease = leased_to(world, command.lease_id, command.node_id)
    if command.outcome not in OUTCOMES:
        raise Refused(PartiesReason.UNKNOWN_MODE, outcome=command.outcome, allowed=OUTCOMES)
    if command.exit_code is not None and not 0 <= command.exit_code <= EXIT_CODE_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, exit_code=command.exit_code)
    started = lease.work.started
    if started is None or started.executor != command.executor:
        raise Refused(FleetReason.LEASE_STATE, rule="another executor started it")
    if lease.work.ended is not None or lease.work.stopped is not None:
        return []
    fact = LeaseWorkEnded(
        lease_id=command.lease_id,
        node_id=command.node_id,
        executor=command.executor,
        outcome=command.outcome,
        exit_code=command.exit_code,
        at_us=command.at_us,
    )
    return [Change(lease_stream(command.lease_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {AcknowledgeCommand: decide_acknowledge, EndWork: decide_end}
