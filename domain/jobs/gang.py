"""A gang: leases of one job that start together or not at all.

    requested --GangReserved--> reserved --last LeaseReady + every LeaseOpened--> open
    requested, reserved --GangClosed--> closed, every member settled at charge 0

    members with devices == 0 or >= min_members          after every append
    a member is billed  =>  every member was ready       they open at one instant, in one append

All members are reserved in one append or none, and a waiting gang holds nothing: nobody holds while
waiting, so nobody can wait in a circle. Of the members wished for, those beyond `min_members` may
join later and are billed from their own start. How members get ready and close together is in
`domain/leasing/gangs.py`. Source: design marketplace 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.duration import DAY_US, MINUTE_US
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.jobs.job import existing_job, job_of
from domain.jobs.reasons import JobsReason
from domain.lease.lease import lease_of
from domain.money import Amount
from domain.parties.account import account_of, require_open
from domain.parties.reasons import PartiesReason
from domain.pools.pool import GANG_TIMEOUT_US
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World
from domain.trust.reasons import TrustReason


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequested:
    """Stream `gang:{gang_id}`. Each member is one lease of the job: of one node, at its price."""

    gang_id: str
    job_id: str
    account_id: str
    project_id: str
    pool_id: str | None
    members: int  # wished for
    min_members: int  # fewer than these do not start
    gpus_per_member: int
    term_us: int | None
    funds: Amount | None  # of each member
    pay_with: str | None
    key_id: str | None
    timeout_us: int  # from the reservation until the last member has to be ready
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangReserved:
    """Every member has its devices: the reservations are in the same append."""

    gang_id: str
    lease_ids: tuple[str, ...]
    ready_until_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangMemberReady:
    gang_id: str
    lease_id: str
    ready: int  # members so far, this one included
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangOpened:
    """The last member is ready. Billing of all starts here, in the same append."""

    gang_id: str
    opened_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangGrown:
    """More members than it needed: reserved later, each billed from its own start."""

    gang_id: str
    lease_ids: tuple[str, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangClosed:
    """It never opened. Its members, if it had any, are closed in the same append."""

    gang_id: str
    party: str
    code: int
    missing: tuple[str, ...]  # members that were not ready
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGang:
    """Ask for several leases of a job that start together."""

    gang_id: str
    job_id: str
    account_id: str
    pool_id: str | None
    members: int
    min_members: int
    term_us: int | None
    funds: Amount | None
    at_us: int
    pay_with: str | None = None
    key_id: str | None = None
    timeout_us: int = GANG_TIMEOUT_US


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveGang:
    """Close the reservation: the last command of the append that has reserved every member."""

    gang_id: str
    lease_ids: tuple[str, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowGang:
    """As `ReserveGang`, for members that join later."""

    gang_id: str
    lease_ids: tuple[str, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseGang:
    """End a gang that has not opened: by the renter, or by the timer when its time is over."""

    gang_id: str
    party: str
    code: int
    at_us: int


MEMBERS_MAX = 128
"""Members of one gang: their reservation is one append, which holds at most 1,000 facts."""
GANG_FACTS_MAX = 960
MEMBER_FACTS = 6
"""Facts of one member beside its devices: asked, matched, reserved, drawn, counted, told; each of
its devices is one more. The rest of an append is the gang's own and its budgets'."""
GANG_WAIT_US = 7 * DAY_US
"""A gang that has not had its turn by then ends: it could have all of its pool after the patience
of it, and what others hold ends, too.
"""

# State.


@dataclass(frozen=True, slots=True)
class GangState:
    status: str = ""  # "", "requested", "reserved", "open", "closed"
    requested: GangRequested | None = None
    lease_ids: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    ready_until_us: int = 0
    opened_at_us: int | None = None
    closed: GangClosed | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Members that are not ready, in order."""
        return tuple(one for one in self.lease_ids if one not in self.ready)


GangFact = GangRequested | GangReserved | GangMemberReady | GangOpened | GangGrown | GangClosed


def evolve(state: GangState, fact: GangFact) -> GangState:
    match fact:
        case GangRequested():
            return GangState("requested", fact)
        case GangReserved():
            return replace(
                state,
                status="reserved",
                lease_ids=fact.lease_ids,
                ready_until_us=fact.ready_until_us,
            )
        case GangMemberReady():
            return replace(state, ready=(*state.ready, fact.lease_id))
        case GangOpened():
            return replace(state, status="open", opened_at_us=fact.opened_at_us)
        case GangGrown():
            return replace(state, lease_ids=(*state.lease_ids, *fact.lease_ids))
        case GangClosed():
            return replace(state, status="closed", closed=fact)
        case _:
            assert_never(fact)


def gang_stream(gang_id: str) -> Stream[GangState]:
    return Stream("gang", gang_id)


def gang_of(world: World, gang_id: str) -> GangState:
    """Raises Refused: GANG_UNKNOWN."""
    state = world.state(gang_stream(gang_id))
    if state.requested is None:
        raise Refused(JobsReason.GANG_UNKNOWN, gang_id=gang_id)
    return state


# Decisions.


def decide_request(command: RequestGang, world: World) -> list[Change]:
    """A job's owner asks for several leases at once. It holds nothing until all are reserved.

    Raises Refused: GANG_EXISTS, JOB_UNKNOWN, ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, JOB_STATE,
    COUNT_OUT_OF_RANGE, AMOUNT_OUT_OF_RANGE.
    """
    stream = gang_stream(command.gang_id)
    if world.state(stream).requested is not None:
        raise Refused(JobsReason.GANG_EXISTS, gang_id=command.gang_id)
    spec, job = existing_job(world, command.job_id), job_of(world, command.job_id)
    if command.account_id != spec.account_id:
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=command.job_id)
    require_open(account_of(world, command.account_id), command.account_id)
    if not job.is_open:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=job.phase)
    if not 1 <= command.min_members <= command.members <= MEMBERS_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            members=command.members,
            min_members=command.min_members,
            at_most=MEMBERS_MAX,
        )
    fitting = GANG_FACTS_MAX // (MEMBER_FACTS + spec.gpu_count)
    if command.members > fitting:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            members=command.members,
            gpus_per_member=spec.gpu_count,
            at_most=fitting,
        )
    if not MINUTE_US <= command.timeout_us <= DAY_US:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="timeout_us", at_most=DAY_US)
    fact = GangRequested(
        gang_id=command.gang_id,
        job_id=command.job_id,
        account_id=command.account_id,
        project_id=spec.project_id,
        pool_id=command.pool_id,
        members=command.members,
        min_members=command.min_members,
        gpus_per_member=spec.gpu_count,
        term_us=command.term_us,
        funds=command.funds,
        pay_with=command.pay_with,
        key_id=command.key_id,
        timeout_us=command.timeout_us,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def decide_reserve(command: ReserveGang, world: World) -> list[Change]:
    """All members hold their devices, at least as many as it needs: then it has started.

    Raises Refused: GANG_UNKNOWN, GANG_STATE, LEASE_STATE.
    """
    gang = gang_of(world, command.gang_id)
    asked = gang.requested
    assert asked is not None
    if gang.status != "requested":
        raise Refused(JobsReason.GANG_STATE, gang_id=command.gang_id, status=gang.status)
    if not asked.min_members <= len(set(command.lease_ids)) <= asked.members:
        raise Refused(
            JobsReason.GANG_STATE,
            gang_id=command.gang_id,
            min_members=asked.min_members,
            reserved=len(command.lease_ids),
        )
    _require_reserved(command, world)
    fact = GangReserved(
        gang_id=command.gang_id,
        lease_ids=command.lease_ids,
        ready_until_us=command.at_us + asked.timeout_us,
        at_us=command.at_us,
    )
    return [Change(gang_stream(command.gang_id), fact)]


def decide_grow(command: GrowGang, world: World) -> list[Change]:
    """More of the members it wished for. Raises Refused: GANG_UNKNOWN, GANG_STATE, LEASE_STATE."""
    gang = gang_of(world, command.gang_id)
    assert gang.requested is not None
    count = len({*gang.lease_ids, *command.lease_ids})
    if gang.status != "open" or count > gang.requested.members:
        raise Refused(JobsReason.GANG_STATE, gang_id=command.gang_id, status=gang.status)
    if count != len(gang.lease_ids) + len(command.lease_ids):
        raise Refused(JobsReason.GANG_STATE, gang_id=command.gang_id, members=count)
    _require_reserved(command, world)
    fact = GangGrown(gang_id=command.gang_id, lease_ids=command.lease_ids, at_us=command.at_us)
    return [Change(gang_stream(command.gang_id), fact)]


def _require_reserved(command: ReserveGang | GrowGang, world: World) -> None:
    """Raises Refused: LEASE_STATE, for a member that is not, or belongs to another gang."""
    for lease_id in command.lease_ids:
        lease = lease_of(world, lease_id)
        assert lease.requested is not None
        if lease.status != "reserved" or lease.requested.gang_id != command.gang_id:
            raise Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)


STREAMS: dict[str, tuple[Any, Any]] = {"gang": (GangState(), evolve)}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    RequestGang: (
        JobsReason.GANG_EXISTS,
        TrustReason.JOB_UNKNOWN,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        JobsReason.JOB_STATE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ),
    ReserveGang: (JobsReason.GANG_UNKNOWN, JobsReason.GANG_STATE, FleetReason.LEASE_STATE),
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {
    RequestGang: decide_request,
    ReserveGang: decide_reserve,
    GrowGang: decide_grow,
}
