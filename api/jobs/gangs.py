"""Gangs: several leases of one job that start together or not at all."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field, model_validator

from api.door.amounts import Money
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.errors import Problem
from api.door.models import (
    TERM_SECONDS_MAX,
    AccountId,
    AnswerModel,
    Count,
    EmptyRequest,
    JobId,
    LeaseId,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.jobs import workspaces
from api.jobs.jobs import EXAMPLE, JobRequest, own_job
from api.market.matching import MATCH_AGAIN, pool_of_spec
from api.market.placing import BID_FOR, IN_ONE_APPEND, has_waiting, keeps_queue, wait
from api.market.unmatched import keep_unmatched
from api.pools.gang_orders import member_of, reservation
from api.pools.pools import PoolId
from api.process.lease_desk import streams_read
from domain.duration import SECOND_US
from domain.jobs.gang import MEMBERS_MAX, CloseGang, RequestGang, ReserveGang, gang_stream
from domain.jobs.job import JobSubmitted, SubmitJob
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import CANCELLED_BEFORE_START
from domain.lease.lease import RequestLease, ReserveLease
from domain.market.reasons import MarketReason
from domain.money import PPM
from domain.pools.pool import GANG_TIMEOUT_US, pool_stream
from domain.pools.queue import QueueRequest, queue_of
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from domain.rules import refused_by
from projections.fleet.fleet import FLEET
from projections.pools import pools
from projections.pools.pools import POOLS

resource = Resource("gangs")

WRITE = with_scope("renter", "client")
READ = with_scope("renter", "client", "operator", "audit:read")

GangId = Annotated[str, Field(pattern=r"^gang_[0-9A-Za-z]{1,64}$")]
GangInPath = Annotated[str, Path(pattern=r"^gang_[0-9A-Za-z]{1,64}$")]
Members = Annotated[int, Field(ge=1, le=MEMBERS_MAX)]
GangStatus = Literal["requested", "reserved", "open", "closed"]


class GangRequest(RequestModel):
    """`members` leases of a job of yours, or of a new one; each is one node's devices as the job
    says. `min_members`: fewer do not start; the others may join later (default: all). `funds`: of
    each member. `timeout_seconds`: from the reservation until the last one has to be ready, by
    default the pool's, or ten minutes. A job that names a pool with a queue may wait for its turn.
    """

    job_id: JobId | None = None
    job: JobRequest | None = None
    members: Members
    min_members: Members | None = None
    term_seconds: Annotated[int, Field(ge=1, le=TERM_SECONDS_MAX)] | None = None
    funds: Money | None = None
    settlement: Literal["cash", "burn"] | None = None
    timeout_seconds: Annotated[int, Field(ge=60, le=86_400)] | None = None

    model_config = with_examples(
        {"job": EXAMPLE, "members": 2},
        {"job": EXAMPLE, "members": 2, "min_members": 1, "term_seconds": 3600},
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> GangRequest:
        if (self.job_id is None) == (self.job is None):
            raise ValueError("job_id or job, one of them")
        if self.term_seconds is not None and self.funds is not None:
            raise ValueError("a fixed term names no funds: it holds the largest possible charge")
        if self.min_members is not None and self.min_members > self.members:
            raise ValueError("min_members is at most members")
        if self.funds is not None and self.funds.asset != "CREDIT":
            raise ValueError("funds are CREDIT")
        return self


class GangAnswer(AnswerModel):
    """`lease_ids`: none while it waits, for a waiting gang holds nothing. `place`: how many wait
    before it in the pool's queue, itself included. `ready`: members so far.
    """

    gang_id: GangId
    job_id: JobId
    account_id: AccountId
    pool_id: PoolId | None = None
    state: GangStatus
    members: Count
    min_members: Count
    gpus_per_member: Count
    lease_ids: list[LeaseId]
    ready: Count
    place: Count | None = None
    ready_until: Told_at | None = None
    opened_at: Told_at | None = None
    closed_at: Told_at | None = None
    closed_by: str | None = None
    close_code: Count | None = None
    requested_at: Told_at
    position: Position | None = None


@resource.post(
    "/v1/gangs",
    WRITE,
    GangAnswer,
    status=201,
    problems=[
        *refused_by(
            SubmitJob,
            RequestGang,
            RequestLease,
            ReserveLease,
            ReserveGang,
            QueueRequest,
            never=(*IN_ONE_APPEND, *BID_FOR, JobsReason.GANG_UNKNOWN),
        ),
        JobsReason.GANG_TOO_LARGE,
        MarketReason.NO_MATCH,
        MarketReason.MATCH_IMPOSSIBLE,
        *workspaces.PROBLEMS,
    ],
)
def open_gang(body: GangRequest, call: Caller) -> Response:
    """Reserves every member of a gang in one append, or none."""
    gang_id = call.id("gang")

    def commands() -> list[Any]:
        workspaces.use(call, _job_of(body, call)[1])
        return _opening(body, call, gang_id)

    def told(after: After) -> AnswerModel:
        return _opened(after, gang_id)

    again_on = MATCH_AGAIN | {PoolsReason.QUEUE_MOVED}
    try:
        return call.record(commands, told, again_on=again_on, reads=streams_read)
    except Problem as problem:
        keep_unmatched(call, problem, lambda: _first_of(body, call, gang_id), body.members)
        raise


def _first_of(
    body: GangRequest, call: Call, gang_id: str
) -> tuple[RequestLease, SubmitJob | JobSubmitted]:
    """The request of the first member, and its job. Raises Refused: JOB_UNKNOWN."""
    _, spec = _job_of(body, call)
    return member_of(_asked(body, call, gang_id, spec), call.now_us, 0), spec


def _job_of(body: GangRequest, call: Call) -> tuple[list[SubmitJob], SubmitJob | JobSubmitted]:
    """The command that submits a new job, if it is one, and what the job asks for.

    Raises Refused: JOB_UNKNOWN.
    """
    if body.job is not None:
        submit = body.job.submit(call, call.id("job"))
        return [submit], submit
    assert body.job_id is not None
    submitted = own_job(call, body.job_id).submitted
    assert submitted is not None
    return [], submitted


def _opening(body: GangRequest, call: Call, gang_id: str) -> list[Any]:
    """Job, request, and the reservation of all; or a place in the queue of the job's pool.

    Raises Refused: JOB_UNKNOWN, GANG_TOO_LARGE, POOL_UNKNOWN, NO_MATCH, MATCH_IMPOSSIBLE.
    """
    job, spec = _job_of(body, call)
    pool_id = pool_of_spec(spec)
    may_wait = keeps_queue(call.service, pool_id)
    asked = _asked(body, call, gang_id, spec)
    commands: list[Any] = [*job, asked]
    _require_room(call, spec, asked)
    if may_wait and pool_id is not None and has_waiting(call.service, pool_id):
        return [*commands, _wait(spec, asked)]
    try:
        return [*commands, *reservation(call.service, asked, call.now_us, spec, is_answered=True)]
    except Refused as refused:
        if refused.reason is not MarketReason.NO_MATCH or not may_wait:
            raise
        return [*commands, _wait(spec, asked)]


def _asked(
    body: GangRequest, call: Call, gang_id: str, spec: SubmitJob | JobSubmitted
) -> RequestGang:
    pool_id = pool_of_spec(spec)
    timeout_us = GANG_TIMEOUT_US
    if body.timeout_seconds is not None:
        timeout_us = body.timeout_seconds * SECOND_US
    elif pool_id is not None:
        pool = call.service.ledger.market.state_of(pool_stream(pool_id))
        timeout_us = pool.policy.gang_timeout_us
    return RequestGang(
        gang_id=gang_id,
        job_id=spec.job_id,
        account_id=call.principal.account_id,
        pool_id=pool_id,
        members=body.members,
        min_members=body.min_members or body.members,
        term_us=None if body.term_seconds is None else body.term_seconds * SECOND_US,
        funds=None if body.funds is None else body.funds.amount(),
        at_us=call.now_us,
        pay_with=body.settlement,
        key_id=call.principal.key_id,
        timeout_us=timeout_us,
    )


def _wait(spec: SubmitJob | JobSubmitted, asked: RequestGang) -> Any:
    return wait(spec, asked.gang_id, asked.account_id, asked.at_us, members=asked.min_members)


def _require_room(call: Call, spec: SubmitJob | JobSubmitted, asked: RequestGang) -> None:
    """Raises Refused: GANG_TOO_LARGE, when not even an empty fleet could take it."""
    slots = PPM // max(spec.share_ppm, spec.mem_ppm)
    with call.service.connection() as connection:
        call.service.follow(connection, [POOLS, FLEET])
        most = pools.most_members(
            connection, models=spec.models, gpus=spec.gpu_count, slots=slots, pool_id=asked.pool_id
        )
    if most < asked.min_members:
        raise Refused(
            JobsReason.GANG_TOO_LARGE,
            min_members=asked.min_members,
            at_most=most,
            gpus_per_member=spec.gpu_count,
            models=", ".join(spec.models) or "any",
        )


@resource.post(
    "/v1/gangs/{gang_id}/cancel",
    WRITE,
    GangAnswer,
    problems=[JobsReason.GANG_UNKNOWN, JobsReason.GANG_STATE],
)
def cancel_gang(gang_id: GangInPath, body: EmptyRequest, call: Caller) -> Response:
    """Cancels a gang before it has opened, at no charge. Close an open gang lease by lease."""
    del body

    def commands() -> CloseGang:
        gang = call.service.ledger.market.state_of(gang_stream(gang_id))
        if gang.requested is None or not call.principal.owns(gang.requested.account_id):
            raise Refused(JobsReason.GANG_UNKNOWN, gang_id=gang_id)
        return CloseGang(
            gang_id=gang_id, party="renter", code=CANCELLED_BEFORE_START, at_us=call.now_us
        )

    return call.record(commands, lambda after: _opened(after, gang_id))


@resource.get("/v1/gangs", READ, page_of(GangAnswer), problems=["cursor_invalid"])
def list_gangs(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists gangs in order of request: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(POOLS) as view:
        rows = pools.read_gangs(
            view.connection,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(
            view, place, rows, limit, lambda row: [row.position], lambda row: _gang(call, row)
        )


@resource.get("/v1/gangs/{gang_id}", READ, GangAnswer, problems=[JobsReason.GANG_UNKNOWN])
def read_gang(gang_id: GangInPath, call: Caller) -> Response:
    """Returns a gang: its members and how many are ready, or its place in the queue."""
    with call.read(POOLS) as view:
        found = pools.read_gang(view.connection, gang_id, account_id=call.principal.only)
        if found is None:
            raise Refused(JobsReason.GANG_UNKNOWN, gang_id=gang_id)
        return call.answer(view, _gang(call, found))


def _opened(after: After, gang_id: str) -> GangAnswer:
    gang = after.state(gang_stream(gang_id))
    asked = gang.requested
    assert asked is not None
    place = None
    if gang.status == "requested" and asked.pool_id is not None:
        place = queue_of(after, asked.pool_id).place_of(gang_id)  # type: ignore[arg-type]
    status: Any = gang.status
    return GangAnswer(
        gang_id=gang_id,
        job_id=asked.job_id,
        account_id=asked.account_id,
        pool_id=asked.pool_id,
        state=status,
        members=asked.members,
        min_members=asked.min_members,
        gpus_per_member=asked.gpus_per_member,
        lease_ids=list(gang.lease_ids),
        ready=len(gang.ready),
        place=place,
        ready_until=moment(gang.ready_until_us) if gang.lease_ids else None,
        opened_at=moment_or_none(gang.opened_at_us),
        closed_at=None if gang.closed is None else moment(gang.closed.at_us),
        closed_by=None if gang.closed is None else gang.closed.party,
        close_code=None if gang.closed is None else gang.closed.code,
        requested_at=moment(asked.at_us),
    )


def _gang(call: Call, row: pools.GangRow) -> GangAnswer:
    place = None
    if row.state == "requested" and row.pool_id is not None:
        place = queue_of(call.service.ledger.world(), row.pool_id).place_of(row.gang_id)
    status: Any = row.state
    return GangAnswer(
        gang_id=row.gang_id,
        job_id=row.job_id,
        account_id=row.account_id,
        pool_id=row.pool_id,
        state=status,
        members=row.members,
        min_members=row.min_members,
        gpus_per_member=row.gpus_per_member,
        lease_ids=row.lease_ids,
        ready=row.ready_count,
        place=place,
        ready_until=moment_or_none(row.ready_until_us),
        opened_at=moment_or_none(row.opened_at_us),
        closed_at=moment_or_none(row.closed_at_us),
        closed_by=row.close_party,
        close_code=row.close_code,
        requested_at=moment(row.at_us),
    )
