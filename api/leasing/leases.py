"""Leases: devices of one node for one renter at one locked price, from the match to the last unit.

Opening is one decision: the job if it is new, the request, the match and the reservation with its
escrow are recorded together or not at all. Billing starts when the node says that the work runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, model_validator

from api.door.amounts import Money, Units, credits_, credits_or_none, money
from api.door.auth import with_scope
from api.door.call import After, Call, Caller, States, View
from api.door.errors import Problem
from api.door.models import (
    TERM_SECONDS_MAX,
    AccountId,
    AccountQuery,
    AnswerModel,
    Count,
    DeviceId,
    Hex32,
    JobId,
    JobQuery,
    LeaseId,
    LeaseInPath,
    LeaseState,
    NodeId,
    NodeQuery,
    OfferId,
    OpenQuery,
    Position,
    Ppm,
    ProviderId,
    Ref,
    RequestModel,
    Told_at,
    TruthQuery,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.door.positions import ReadAsOf
from api.fleet.constraints import MigStart, Mode
from api.jobs import workspaces
from api.jobs.jobs import EXAMPLE, JobRequest, own_job
from api.market.lease_pricing import pricing_for, term_of
from api.market.matching import MATCH_AGAIN
from api.market.placing import BID_FOR, IN_ONE_APPEND, placed
from api.market.pricing import LeasePricingRequest
from api.market.unmatched import keep_unmatched
from api.metering.unbilled import LeaseEstimateAnswer, estimates
from api.process.lease_desk import Round
from domain.duration import SECOND_US
from domain.fleet.provider import provider_stream
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.hardware.sharing import mode_of
from domain.jobs.job import JobSubmitted, SubmitJob
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import CANCELLED_BEFORE_START, CLIENT_WITHDREW, RENTER_CLOSED
from domain.lease.lease import (
    CloseLease,
    Lease,
    LeaseReserved,
    RequestLease,
    ReserveLease,
    TopUpLease,
    lease_stream,
)
from domain.lease.reasons import LeaseReason
from domain.lease.turns import QuoteLease
from domain.market.auction import OpenAuction
from domain.market.reasons import MarketReason
from domain.market.standing_bid import SetStandingBid
from domain.parties.reasons import PartiesReason
from domain.pools.queue import QueueRequest
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from domain.rules import refused_by
from ledger.log import codec
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.metering import usage
from projections.metering.usage import USAGE

resource = Resource("leases")

WRITE = with_scope("renter", "client")
READ = with_scope("renter", "provider", "client", "operator", "audit:read")
PROVIDER_UNSPECIFIED, EMERGENCY_STOP = 10_002, 20_002

Label = Annotated[str, Field(min_length=1, max_length=128)]
State = LeaseState
CloseParty = Literal["renter", "client", "provider", "job", "operator"]


class LeaseRequest(RequestModel):
    """A job of yours, or a new one. `term_seconds`: a fixed term, paid for in full beforehand; else
    the lease runs until it is closed or `funds` end (default: one hour's price). `settlement`
    absent: any that the account has credits for. `refill`: an open-ended lease is topped up from
    the balance, an hour at a time, before its funds end. `project_id`: your project that takes part
    in a federated job of another account; absent: the job's. `encryption_key`: an X25519 key of
    yours, hex; the node seals to it what is needed to reach the work. `remoting_session_id` and
    `split_label` name a session of a layer that forwards calls to the devices, and the part of the
    program it forwards; `route_id` names the network route across clusters that its traffic takes;
    they cost nothing. `pricing` absent: at the offer's price, or as the job's
    pool prices.
    """

    job_id: JobId | None = None
    job: JobRequest | None = None
    term_seconds: Annotated[int, Field(ge=1, le=TERM_SECONDS_MAX)] | None = None
    funds: Money | None = None
    settlement: Literal["cash", "burn"] | None = None
    refill: bool = False
    project_id: Ref | None = None
    encryption_key: Hex32 | None = None
    remoting_session_id: Label | None = None
    split_label: Label | None = None
    route_id: Label | None = None
    pricing: LeasePricingRequest | None = None

    model_config = with_examples(
        {"job": EXAMPLE, "funds": {"asset": "CREDIT", "units": "5000000"}},
        {"job": EXAMPLE, "term_seconds": 1800},
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> LeaseRequest:
        if (self.job_id is None) == (self.job is None):
            raise ValueError("job_id or job, one of them")
        if self.term_seconds is not None and self.funds is not None:
            raise ValueError("a fixed term names no funds: it holds the largest possible charge")
        if self.term_seconds is not None and self.refill:
            raise ValueError("a fixed term is paid for beforehand: there is nothing to refill")
        if self.funds is not None and self.funds.asset != "CREDIT":
            raise ValueError("funds are CREDIT")
        return self


class LeaseOpenedAnswer(AnswerModel):
    """Reserved, and waiting for the node; or it `waits_for` a pool that keeps a queue, for bids or
    for devices, and has no node, devices and price yet. `held` is what the escrow holds. `mode`:
    how the lease shares each device; a MIG instance begins at the memory slice of `mig_starts`,
    one per device.
    """

    lease_id: LeaseId
    job_id: JobId
    state: State
    node_id: NodeId | None = None
    offer_id: OfferId | None = None
    device_ids: list[DeviceId] | None = None
    share_ppm: Ppm
    mem_ppm: Ppm
    mode: Mode | None = None
    mig_profile: str | None = None
    mig_starts: list[MigStart] | None = None
    gpu_class: str | None = None
    price_per_gpu_hour: Money | None = None
    usage_fee_per_gpu_hour: Money | None = None
    settlement: Literal["cash", "burn"] | None = None
    held: Money
    waits_for: str | None = None
    reserved_at: Told_at | None = None
    pricing: str | None = None
    position: Position | None = None


class LeaseAnswer(AnswerModel):
    """A lease as far as it has come. `charge` and `gpu_us` are what has been billed so far, each
    full hour and the rest at the end; `estimate`, while it runs, is what it comes to by the reports
    received, to the second.
    `project_id` and `end_user_ref` are not told to the provider. `remoting_session_id` and
    `split_label` name the session and the part of the program that a layer forwards to the devices,
    `route_id` the network route that its traffic takes.
    """

    lease_id: LeaseId
    job_id: JobId
    account_id: AccountId
    client_id: str
    project_id: str | None = None
    end_user_ref: str | None = None
    state: State
    gpu_count: Annotated[int, Field(ge=1, le=64)]
    share_ppm: Ppm
    mem_ppm: Ppm
    models: list[str]
    max_price_per_gpu_hour: Money
    term_seconds: Count | None = None
    funds: Money | None = None
    requested_at: Told_at
    node_id: NodeId | None = None
    provider_id: ProviderId | None = None
    provider_account_id: AccountId | None = None
    offer_id: OfferId | None = None
    device_ids: list[DeviceId] | None = None
    mode: Mode | None = None
    mig_profile: str | None = None
    mig_starts: list[MigStart] | None = None
    gpu_class: str | None = None
    price_per_gpu_hour: Money | None = None
    usage_fee_per_gpu_hour: Money | None = None
    settlement: Literal["cash", "burn"] | None = None
    own_node: bool | None = None
    tariff_version: Count | None = None
    escrow: Money | None = None
    reserved_at: Told_at | None = None
    endpoint: str | None = None
    opened_at: Told_at | None = None
    funds_end_at: Told_at | None = None
    term_end_at: Told_at | None = None
    closed_at: Told_at | None = None
    closed_by: CloseParty | None = None
    close_code: Count | None = None
    settled_at: Told_at | None = None
    archived_at: Told_at | None = None
    quoted_until: Told_at | None = None
    paused_at: Told_at | None = None
    degraded_since: Told_at | None = None
    reclaim_deadline: Told_at | None = None
    reclaim_window_seconds: Count | None = None
    interruptible: bool | None = None
    revised_close_code: Count | None = None
    sla_class: str | None = None
    client_account_id: AccountId | None = None
    federated_account_id: AccountId | None = None
    federated_fee_per_hour: Money | None = None
    restart_of: LeaseId | None = None
    escrow_id: JobId | None = None
    remoting_session_id: str | None = None
    split_label: str | None = None
    route_id: str | None = None
    part: Count | None = None
    attempt: Count | None = None
    run_due_at: Told_at | None = None
    overflow: bool | None = None
    restarted_as: LeaseId | None = None
    charge: Money
    gpu_us: Units
    hours_accrued: Count
    estimate: LeaseEstimateAnswer | None = None
    version: Count
    position: Position | None = None


class LeaseClosingRequest(RequestModel):
    """`code` absent: the renter's 1 (or 101 before the start), the provider's 10002, the
    operator's 20002. `evidence_sha256`: of what the party can show for it.
    """

    code: Annotated[int, Field(ge=0, le=39_999)] | None = None
    evidence_sha256: Hex32 | None = None

    model_config = with_examples({}, {"code": 0})


class LeaseClosedAnswer(AnswerModel):
    """A second call changes nothing and answers with the end of the first one."""

    lease_id: LeaseId
    state: State
    closed_at: Told_at
    closed_by: CloseParty
    close_code: Count
    charge: Money
    position: Position | None = None


class LeaseHourAnswer(AnswerModel):
    """One accrual: an hour of the lease, or its last part."""

    hour_index: Count
    hour: Told_at
    until: Told_at
    gpu_us: Units
    refused_us: Units
    charge: Money
    position: Position


class EscrowDrawAnswer(AnswerModel):
    """Which credits of the escrow paid."""

    source: str
    amount: Money
    account_id: AccountId | None = None
    purpose: Literal["federated"] | None = None


class OwnerShareAnswer(AnswerModel):
    """One owner's part of what the provider earned."""

    account_id: AccountId
    amount: Money


class LeaseChargeAnswer(AnswerModel):
    """What one accrual cost and where it went: fee + provider + client + platform + burn = charge.
    The federated fee is beside the charge, paid by the job's creator.
    """

    hour_index: Count
    until: Told_at
    gpu_us: Units
    charge: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money
    client: Money | None = None
    owners: list[OwnerShareAnswer] | None = None
    federated: Money | None = None
    drawn: list[EscrowDrawAnswer]
    cumulative_charge: Money
    position: Position


class LeaseFactAnswer(AnswerModel):
    type: str
    at: Told_at
    state: State
    version: Count
    position: Position


# --- opening and closing ---------------------------------------------------------------------


@resource.post(
    "/v1/leases",
    WRITE,
    LeaseOpenedAnswer,
    status=201,
    problems=[
        *refused_by(
            SubmitJob,
            RequestLease,
            OpenAuction,
            SetStandingBid,
            QueueRequest,
            QuoteLease,
            ReserveLease,
            never=(*IN_ONE_APPEND, *BID_FOR),
        ),
        MarketReason.NO_MATCH,
        MarketReason.MATCH_IMPOSSIBLE,
        *workspaces.PROBLEMS,
    ],
)
async def open_lease(body: LeaseRequest, call: Caller) -> Response:
    """Opens a lease on the cheapest node that fits, with the money held for it.

    With a `pricing` by bids, it asks for bids instead.
    """
    lease_id = call.id("lease")
    not_here = None
    if body.job is None or body.job.names_workspace:
        not_here = await run_in_threadpool(_workspace_refusal, body, call)

    def commands(here: Round) -> list[Any]:
        if not_here is not None:
            raise not_here
        return opening(body, call, lease_id, here)

    def told(after: States) -> AnswerModel:
        return opened_told(after.state(lease_stream(lease_id)))

    again_on = MATCH_AGAIN | {PoolsReason.QUEUE_MOVED, PartiesReason.QUOTA_EXHAUSTED}
    try:
        return await call.record_at_desk(commands, told, again_on=again_on)
    except Problem as problem:
        keep = partial(keep_unmatched, call, problem, lambda: asked_with(body, call, lease_id))
        await run_in_threadpool(keep)
        raise


def _workspace_refusal(body: LeaseRequest, call: Call) -> Refused | None:
    """Why the workspace that the job names cannot be used; asked beside the matcher's turn, for it
    asks the database. What else is wrong with the job is told in its turn.
    """
    with suppress(Refused):
        _, job = _job_of(body, call)
        try:
            workspaces.use(call, job)
        except Refused as refused:
            return refused
    return None


def opening(body: LeaseRequest, call: Call, lease_id: str, here: Round) -> list[Any]:
    """Job, request, match and reservation. Raises Refused: JOB_UNKNOWN, JOB_STATE, NO_MATCH."""
    job, spec = _job_of(body, call)
    pricing = pricing_for(call.service, body.pricing, spec.constraints)
    request, by = _request(body, call, lease_id, spec, pricing), call.principal.member_id
    return [*job, *placed(call.service, request, spec, here, pricing=pricing, waits=True, by=by)]


def asked_with(
    body: LeaseRequest, call: Call, lease_id: str
) -> tuple[RequestLease, SubmitJob | JobSubmitted]:
    """What a body asks for, and for which job. Raises Refused: JOB_UNKNOWN, JOB_STATE."""
    _, spec = _job_of(body, call)
    pricing = pricing_for(call.service, body.pricing, spec.constraints)
    return _request(body, call, lease_id, spec, pricing), spec


def _request(
    body: LeaseRequest,
    call: Call,
    lease_id: str,
    spec: SubmitJob | JobSubmitted,
    pricing: LeasePricingRequest | None,
) -> RequestLease:
    return RequestLease(
        lease_id=lease_id,
        job_id=spec.job_id,
        account_id=call.principal.account_id,
        term_us=term_of(pricing, body.term_seconds),
        funds=None if body.funds is None else body.funds.amount(),
        at_us=call.now_us,
        pay_with=body.settlement,
        project_id=body.project_id,
        refill=body.refill,
        key_id=call.principal.key_id,
        encryption_key=body.encryption_key,
        remoting_session_id=body.remoting_session_id,
        split_label=body.split_label,
        route_id=body.route_id,
        pricing=None if pricing is None else pricing.module,
        months=None if pricing is None else pricing.months,
    )


def _job_of(body: LeaseRequest, call: Call) -> tuple[list[SubmitJob], SubmitJob | JobSubmitted]:
    """The command that submits a new job, if it is one, and what the job asks for.

    Raises Refused: JOB_UNKNOWN, JOB_STATE.
    """
    if body.job is not None:
        submit = body.job.submit(call, call.id("job"))
        return [submit], submit
    assert body.job_id is not None
    job = own_job(call, body.job_id, as_participant=True)
    if not job.is_open:
        raise Refused(JobsReason.JOB_STATE, job_id=body.job_id, phase=job.phase)
    assert job.submitted is not None
    return [], job.submitted


def _sharing(reserved: LeaseReserved) -> dict[str, Any]:
    mig = reserved.mig
    return {
        "mode": mode_of(reserved.mode, reserved.share_ppm, reserved.mem_ppm),
        "mig_profile": None if mig is None else mig.profile,
        "mig_starts": None if mig is None else list(mig.starts),
    }


def opened_told(lease: Lease) -> LeaseOpenedAnswer:
    """A lease that is reserved or that waits, as its opening is answered."""
    reserved, asked = lease.reserved, lease.requested
    assert asked is not None
    state: Any = lease.status
    if reserved is None:
        return LeaseOpenedAnswer(
            lease_id=asked.lease_id,
            job_id=asked.job_id,
            state=state,
            waits_for=lease.queued_in,
            share_ppm=asked.share_ppm,
            mem_ppm=asked.mem_ppm,
            held=credits_(0),
            pricing=asked.pricing,
        )
    settlement: Any = reserved.pay_with
    return LeaseOpenedAnswer(
        lease_id=reserved.lease_id,
        job_id=reserved.job_id,
        state=state,
        node_id=reserved.node_id,
        offer_id=reserved.offer_id,
        device_ids=list(reserved.device_ids),
        share_ppm=reserved.share_ppm,
        mem_ppm=reserved.mem_ppm,
        **_sharing(reserved),
        gpu_class=reserved.gpu_class,
        price_per_gpu_hour=money(reserved.price_per_gpu_hour),
        usage_fee_per_gpu_hour=money(reserved.fee_per_gpu_hour),
        settlement=settlement,
        held=credits_(lease.held_units),
        reserved_at=moment(reserved.at_us),
        pricing=asked.pricing,
    )


@resource.post(
    "/v1/leases/{lease_id}/close",
    with_scope("renter", "client", "provider", "operator"),
    LeaseClosedAnswer,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        LeaseReason.CLOSE_CODE_PARTY,
        FleetReason.LEASE_STATE,
        LeaseReason.LEASE_NOT_DUE,
    ],
)
def close_lease(lease_id: LeaseInPath, body: LeaseClosingRequest, call: Caller) -> Response:
    """Closes a lease. Credits that its escrow cannot need any more come back at once."""

    def commands() -> CloseLease:
        lease = call.service.ledger.market.state_of(lease_stream(lease_id))
        party = caller_party(call, lease, lease_id)
        return CloseLease(
            lease_id=lease_id,
            closed_at_us=call.now_us,
            party=party,
            code=_code(party, lease) if body.code is None else body.code,
            at_us=call.now_us,
            by=call.principal.account_id,
            evidence=body.evidence_sha256,
        )

    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        closed = lease.closed
        assert closed is not None, lease_id
        status: Any = lease.status
        closed_by: Any = closed.party
        return LeaseClosedAnswer(
            lease_id=lease_id,
            state=status,
            closed_at=moment(closed.closed_at_us),
            closed_by=closed_by,
            close_code=closed.code,
            charge=credits_(lease.charge_units),
        )

    return call.record(commands, told)


class LeaseTopUpRequest(RequestModel):
    """`federated`: into what pays the federated fee, which is the job creator's."""

    amount: Money
    federated: bool = False

    model_config = with_examples({"amount": {"asset": "CREDIT", "units": "1000000"}})


class LeaseToppedUpAnswer(AnswerModel):
    """`funds_end_at`: absent while the lease waits for its node, and for an account that may not
    read the lease.
    """

    lease_id: LeaseId
    deposited: Money
    funds_end_at: Told_at | None = None
    position: Position | None = None


@resource.post(
    "/v1/leases/{lease_id}/top-up",
    WRITE,
    LeaseToppedUpAnswer,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        PartiesReason.BUDGET_EXHAUSTED,
        PartiesReason.COUNT_OUT_OF_RANGE,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PartiesReason.ACCOUNT_CLOSED,
    ],
)
def fund_lease(lease_id: LeaseInPath, body: LeaseTopUpRequest, call: Caller) -> Response:
    """Puts credits into the escrow of a lease: your own, or of an account that you pay for."""

    def commands() -> TopUpLease:
        return TopUpLease(
            lease_id=lease_id,
            account_id=call.principal.account_id,
            amount=body.amount.amount(),
            at_us=call.now_us,
            federated=body.federated,
        )

    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        assert lease.requested is not None
        sees = call.principal.may_see(lease.requested.account_id)
        ends_us = lease.window_end_us if lease.opened is not None and sees else None
        return LeaseToppedUpAnswer(
            lease_id=lease_id, deposited=body.amount, funds_end_at=moment_or_none(ends_us)
        )

    return call.record(commands, told)


def caller_party(call: Call, lease: Lease, lease_id: str) -> str:
    """As whom the caller may close it. Raises Refused: LEASE_UNKNOWN for everybody else."""
    principal = call.principal
    unknown = Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    if lease.requested is None:
        raise unknown
    if principal.owns(lease.requested.account_id) and principal.scopes & {"renter", "client"}:
        return "renter"
    if principal.owns(lease.requested.client_id) and "client" in principal.scopes:
        return "client"
    if principal.is_operator:
        return "operator"
    if lease.reserved is not None and "provider" in principal.scopes:
        provider = call.service.ledger.market.state_of(provider_stream(lease.reserved.provider_id))
        if principal.owns(provider.account_id):
            return "provider"
    raise unknown


def _code(party: str, lease: Lease) -> int:
    if party == "client":
        return CLIENT_WITHDREW
    if party == "renter":
        return RENTER_CLOSED if lease.opened is not None else CANCELLED_BEFORE_START
    return PROVIDER_UNSPECIFIED if party == "provider" else EMERGENCY_STOP


# --- reading ---------------------------------------------------------------------------------


@resource.get(
    "/v1/leases", READ, page_of(LeaseAnswer), problems=["cursor_invalid", "as_of_unsupported"]
)
def list_leases(
    call: Caller,
    order: InOrder,
    as_of: ReadAsOf,
    state: State | None = None,
    is_open: OpenQuery = None,
    renter_id: AccountQuery = None,
    job_id: JobQuery = None,
    node_id: NodeQuery = None,
    estimate: TruthQuery = True,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists leases in order of request, as renter or as provider; all for operators and
    auditors. `open`: only those that nothing has closed; false: only closed ones. `estimate`:
    false leaves out what running leases have used and is not billed yet, which is quicker.
    """
    place = call.place(cursor, [0], order)
    with call.read(LEASES, as_of=as_of) as view:
        rows = leases.read_leases(
            view.connection,
            account_id=call.principal.only,
            job_id=job_id,
            node_id=node_id,
            state=state,
            is_open=is_open,
            renter_id=renter_id,
            as_of_position=view.as_of,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        so_far = _estimates(call, view, rows[:limit]) if estimate else {}
        return call.page(
            view, place, rows, limit, lambda row: [row.position], partial(_lease, call, so_far)
        )


@resource.get(
    "/v1/leases/{lease_id}",
    READ,
    LeaseAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, "as_of_unsupported"],
)
def read_lease(lease_id: LeaseInPath, call: Caller, as_of: ReadAsOf) -> Response:
    """Returns a lease, now or as of a position or a time."""
    with call.read(LEASES, as_of=as_of) as view:
        found = visible_lease(call, view.connection, lease_id, view.as_of)
        return call.answer(view, _lease(call, _estimates(call, view, [found]), found))


@resource.get(
    "/v1/leases/{lease_id}/usage",
    READ,
    page_of(LeaseHourAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_lease_usage(
    lease_id: LeaseInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists GPU time of a lease, hour by hour, and time that earned nothing."""
    place = call.place(cursor, [0], order)
    with call.read(LEASES, USAGE) as view:
        visible_lease(call, view.connection, lease_id)
        rows = usage.read_accruals(
            view.connection, lease_id=lease_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _hour)


@resource.get(
    "/v1/leases/{lease_id}/charges",
    READ,
    page_of(LeaseChargeAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_lease_charges(
    lease_id: LeaseInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the cost of a lease, accrual by accrual, and the receiver of each unit."""
    place = call.place(cursor, [0], order)
    with call.read(LEASES, USAGE) as view:
        visible_lease(call, view.connection, lease_id)
        rows = usage.read_accruals(
            view.connection, lease_id=lease_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        charges = _facts_at(view.connection, [row.position for row in rows])
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: _charge(call, row.position, charges[row.position]),
        )


@resource.get(
    "/v1/leases/{lease_id}/history",
    READ,
    page_of(LeaseFactAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_lease_history(
    lease_id: LeaseInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists every fact of a lease, and the state after it."""
    place = call.place(cursor, [0], order)
    with call.read(LEASES) as view:
        visible_lease(call, view.connection, lease_id)
        rows = leases.read_lease_history(
            view.connection, lease_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _fact)


def visible_lease(
    call: Call, connection: Any, lease_id: str, as_of_position: int | None = None
) -> leases.LeaseRow:
    found = leases.read_lease(
        connection, lease_id, account_id=call.principal.only, as_of_position=as_of_position
    )
    if found is None:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return found


_FACTS = """
    SELECT notification_id, state FROM public.market_events WHERE notification_id = ANY(%s)
"""


def _facts_at(connection: Any, positions: list[int]) -> dict[int, Any]:
    """The accruals at these positions."""
    rows = connection.execute(_FACTS, (positions,)).fetchall()
    return {at: codec.decode("lease.usage_accrued.v1", bytes(state)) for at, state in rows}


def _charge(call: Call, position: int, fact: Any) -> LeaseChargeAnswer:
    """Who else paid is for the renter, and who shares the provider's part for the provider; anybody
    else among them sees their own.
    """
    parts, may_see = fact.parts_new, call.principal.may_see
    sees_payers, sees_owners = may_see(fact.account_id), may_see(fact.provider_account_id)
    return LeaseChargeAnswer(
        hour_index=fact.hour_index,
        until=moment(fact.until_us),
        gpu_us=str(fact.gpu_us_new),
        charge=money(fact.charge_new),
        fee=credits_(parts.fee),
        provider=credits_(parts.provider),
        platform=credits_(parts.platform),
        burn=credits_(parts.burn),
        client=credits_or_none(parts.client),
        owners=None
        if not fact.owners
        else [
            OwnerShareAnswer(account_id=one.account_id, amount=credits_(one.units_new))
            for one in fact.owners
            if sees_owners or may_see(one.account_id)
        ],
        federated=None if fact.federated is None else money(fact.federated.new),
        drawn=[
            EscrowDrawAnswer(
                source=one.source,
                amount=money(one.amount),
                purpose=one.purpose,
                account_id=one.account_id if sees_payers or may_see(one.account_id or "") else None,
            )
            for one in fact.drawn
        ],
        cumulative_charge=money(fact.charge),
        position=position,
    )


def _hour(row: usage.Accrual) -> LeaseHourAnswer:
    return LeaseHourAnswer(
        hour_index=row.hour_index,
        hour=moment(row.from_us),
        until=moment(row.until_us),
        gpu_us=str(row.gpu_us),
        refused_us=str(row.refused_us),
        charge=credits_(row.charge),
        position=row.position,
    )


def _fact(row: leases.LeaseFact) -> LeaseFactAnswer:
    state: Any = row.state
    return LeaseFactAnswer(
        type=row.topic,
        at=moment(row.at_us),
        state=state,
        version=row.version,
        position=row.position,
    )


def _moment_in(row: leases.LeaseRow, state: str) -> str | None:
    """The moment that goes with a state, while the lease is in it."""
    return moment_or_none(row.moment_us) if row.state == state else None


def _estimates(
    call: Call, view: View, rows: Sequence[leases.LeaseRow]
) -> dict[str, LeaseEstimateAnswer]:
    """Of the past there are none: what had been received then is not kept apart."""
    if view.as_of is not None:
        return {}
    live = [row.lease_id for row in rows if row.opened_at_us and not row.settled_at_us]
    return estimates(call.service.ledger, view.connection, live, call.now_us)


def _lease(
    call: Call, so_far: Mapping[str, LeaseEstimateAnswer], row: leases.LeaseRow
) -> LeaseAnswer:
    told: Any = row
    sees_purpose = call.principal.may_see(row.account_id) or call.principal.owns(row.client_id)
    return LeaseAnswer(
        lease_id=row.lease_id,
        job_id=row.job_id,
        account_id=row.account_id,
        client_id=row.client_id,
        project_id=row.project_id if sees_purpose else None,
        end_user_ref=row.end_user_ref if sees_purpose else None,
        state=told.state,
        gpu_count=row.gpu_count,
        share_ppm=row.share_ppm,
        mem_ppm=row.mem_ppm,
        models=row.models,
        max_price_per_gpu_hour=credits_(row.price_max_units),
        term_seconds=None if row.term_us is None else row.term_us // SECOND_US,
        funds=credits_or_none(row.funds_units),
        node_id=row.node_id,
        provider_id=row.provider_id,
        provider_account_id=row.provider_account_id,
        offer_id=row.offer_id,
        device_ids=row.device_ids,
        mode=told.mode,
        mig_profile=row.mig_profile,
        mig_starts=row.mig_starts,
        gpu_class=row.gpu_class,
        price_per_gpu_hour=credits_or_none(row.price_units),
        usage_fee_per_gpu_hour=credits_or_none(row.fee_units),
        settlement=told.pay_with,
        own_node=row.own,
        tariff_version=row.tariff_version,
        escrow=credits_or_none(row.escrow_units) if sees_purpose else None,
        endpoint=row.endpoint,
        closed_by=told.close_party,
        close_code=row.close_code,
        reclaim_window_seconds=(
            None if row.reclaim_window_us is None else row.reclaim_window_us // SECOND_US
        ),
        interruptible=row.interruptible or None,
        revised_close_code=row.revised_code,
        sla_class=row.sla_class,
        client_account_id=row.client_account_id,
        federated_account_id=row.federated_account_id,
        federated_fee_per_hour=credits_or_none(row.federated_fee_units),
        part=row.job_part,
        attempt=row.attempt,
        overflow=row.overflow or None,
        restart_of=row.restart_of,
        restarted_as=row.restarted_as,
        escrow_id=row.escrow_id,
        charge=credits_(row.charge_units),
        gpu_us=str(row.gpu_us),
        hours_accrued=row.hours,
        estimate=so_far.get(row.lease_id),
        version=row.version,
        **_forwarded(row),
        **_moments(row),
    )


def _forwarded(row: leases.LeaseRow) -> dict[str, Any]:
    """What a layer forwards to the devices, and which way its traffic takes."""
    return {
        "remoting_session_id": row.remoting_session_id,
        "split_label": row.split_label,
        "route_id": row.route_id,
    }


def _moments(row: leases.LeaseRow) -> dict[str, Any]:
    """When it came into each of its states, and when it leaves the present one."""
    return {
        "requested_at": moment(row.at_us),
        "reserved_at": moment_or_none(row.reserved_at_us),
        "opened_at": moment_or_none(row.opened_at_us),
        "funds_end_at": moment_or_none(row.funds_end_us),
        "term_end_at": moment_or_none(row.term_end_us),
        "closed_at": moment_or_none(row.closed_at_us),
        "settled_at": moment_or_none(row.settled_at_us),
        "archived_at": moment_or_none(row.archived_at_us),
        "quoted_until": _moment_in(row, "quoted"),
        "paused_at": _moment_in(row, "paused"),
        "degraded_since": _moment_in(row, "degraded"),
        "reclaim_deadline": _moment_in(row, "reclaiming"),
        "run_due_at": moment_or_none(row.run_due_us),
    }
