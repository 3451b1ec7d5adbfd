"""The escrow of a job: credits that all of its leases draw on, so that they end together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.amounts import INTEGER_MAX, Money, credits_, money
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    EmptyRequest,
    JobId,
    JobInPath,
    LeaseId,
    Position,
    Ppm,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.jobs.jobs import READ, WRITE, own_job
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.jobs.job import JobState, job_stream
from domain.jobs.reasons import JobsReason
from domain.lease.funds import total
from domain.lease.shared_escrow import Escrow, Member, stream_of
from domain.leasing.escrow_sharing import FundEscrow, ReturnEscrow
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.trust.reasons import TrustReason
from projections.lease.leases import LEASES

resource = Resource("escrows")


class EscrowFundingRequest(RequestModel):
    amount: Money

    model_config = with_examples({"amount": {"asset": "CREDIT", "units": "5000000"}})


class EscrowDepositAnswer(AnswerModel):
    """What is left of one deposit from one source, in the order in which they are drained."""

    deposit: Annotated[int, Field(ge=1, le=INTEGER_MAX)]
    source: str
    account_id: AccountId
    held: Money


class EscrowLeaseAnswer(AnswerModel):
    """A lease that draws on it, or still may. `gpu_ppm`: its devices' shares together."""

    lease_id: LeaseId
    phase: Literal["reserved", "running", "closed"]
    gpu_ppm: Ppm
    price_per_gpu_hour: Money
    charged: Money
    opened_at: Told_at | None = None
    closed_at: Told_at | None = None


class JobEscrowAnswer(AnswerModel):
    """`funds_end_at`: the second at which every lease that runs on it ends; absent: none runs.

    Another account that paid into it is told what it holds of that account's deposits, and no more.
    """

    job_id: JobId
    account_id: AccountId
    put_in: Money | None = None
    held: Money
    funds_end_at: Told_at | None = None
    deposits: list[EscrowDepositAnswer]
    leases: list[EscrowLeaseAnswer]
    position: Position | None = None


@resource.post(
    "/v1/jobs/{job_id}/escrow",
    WRITE,
    JobEscrowAnswer,
    status=201,
    problems=[
        TrustReason.JOB_UNKNOWN,
        JobsReason.JOB_STATE,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        PartiesReason.BUDGET_EXHAUSTED,
        PartiesReason.COUNT_OUT_OF_RANGE,
        FundsReason.AMOUNT_NOT_POSITIVE,
    ],
)
def fund_escrow(job_id: JobInPath, body: EscrowFundingRequest, call: Caller) -> Response:
    """Puts credits into the escrow of a job.
    The job's leases without a term and funds of their own draw on it from then on, and end
    together. Other accounts may add to it once it exists.
    """

    def commands() -> FundEscrow:
        return FundEscrow(
            job_id=job_id,
            account_id=call.principal.account_id,
            amount=body.amount.amount(),
            at_us=call.now_us,
            key_id=call.principal.key_id,
        )

    return call.record(commands, lambda after: _told(call, job_id, after.state(stream_of(job_id))))


@resource.get("/v1/jobs/{job_id}/escrow", READ, JobEscrowAnswer, problems=[TrustReason.JOB_UNKNOWN])
def read_escrow(job_id: JobInPath, call: Caller) -> Response:
    """Returns the escrow of a job: its credits, their sources, its leases and when it ends.

    A job without an escrow holds nothing in it.
    """
    with call.read(LEASES) as view:
        market = call.service.ledger.market
        job, escrow = market.state_of(job_stream(job_id)), market.state_of(stream_of(job_id))
        if job.submitted is None or not _may_see(call, job, escrow):
            raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)
        return call.answer(view, _told(call, job_id, _of_job(call, job_id, escrow)))


@resource.post(
    "/v1/jobs/{job_id}/escrow/withdraw",
    WRITE,
    JobEscrowAnswer,
    problems=[TrustReason.JOB_UNKNOWN, JobsReason.JOB_STATE],
)
def withdraw_escrow(job_id: JobInPath, body: EmptyRequest, call: Caller) -> Response:
    """Returns the escrow of a job to its sources, once all of its leases are settled."""
    del body

    def commands() -> ReturnEscrow:
        own_job(call, job_id)
        return ReturnEscrow(job_id=job_id, at_us=call.now_us, by_owner=True)

    def told(after: After) -> AnswerModel:
        return _told(call, job_id, _of_job(call, job_id, after.state(stream_of(job_id))))

    return call.record(commands, told)


def _of_job(call: Call, job_id: str, escrow: Escrow) -> Escrow:
    """The escrow, also of a job that never had any: then it is its owner's, and empty."""
    job = call.service.ledger.market.state_of(job_stream(job_id))
    assert job.submitted is not None
    return escrow if escrow.account_id else replace(escrow, account_id=job.submitted.account_id)


def _may_see(call: Call, job: JobState, escrow: Escrow) -> bool:
    assert job.submitted is not None
    depositors = (part.account_id or escrow.account_id for part in escrow.held)
    return any(call.principal.may_see(one) for one in (job.submitted.account_id, *depositors))


def _told(call: Call, job_id: str, escrow: Escrow) -> JobEscrowAnswer:
    sees, mine = call.principal.may_see(escrow.account_id), call.principal.account_id
    shown = [part for part in escrow.held if sees or part.account_id == mine]
    if not sees:
        escrow = replace(escrow, held=tuple(shown), members={})
    return JobEscrowAnswer(
        job_id=job_id,
        account_id=escrow.account_id,
        put_in=credits_(escrow.put_in) if sees else None,
        held=credits_(total(escrow.held)),
        funds_end_at=moment_or_none(escrow.ends_us) if escrow.running else None,
        deposits=[
            EscrowDepositAnswer(
                deposit=part.number,
                source=part.source,
                held=money(part.amount),
                account_id=part.account_id or escrow.account_id,
            )
            for part in escrow.held
        ],
        leases=[_lease(lease_id, one) for lease_id, one in escrow.members.items()],
    )


def _lease(lease_id: str, member: Member) -> EscrowLeaseAnswer:
    phase: Any = "reserved"
    if member.opened_at_us is not None:
        phase = "running" if member.until_us is None else "closed"
    return EscrowLeaseAnswer(
        lease_id=lease_id,
        phase=phase,
        gpu_ppm=member.gpu_ppm,
        price_per_gpu_hour=credits_(member.price),
        charged=credits_(member.charged),
        opened_at=moment_or_none(member.opened_at_us),
        closed_at=moment_or_none(member.until_us),
    )
