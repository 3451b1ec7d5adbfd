"""Leases that draw on the escrow of their job: how they join, end together and give back.

    sum over members of what may still be charged by the shared end <= held       after every fact
    every lease that runs knows the shared end: it is told when it moves

Facts, state and the end itself are in `domain/lease/shared_escrow.py`; what a reversed payment
takes is in `domain/corrections/reversal.py`. Source: marketplace 2; decision 0031.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.funding import require_no_debt, sources_of
from domain.funds.reasons import FundsReason
from domain.jobs.job import (
    JobEscrowOpened,
    JobSubmitted,
    SubmitJob,
    existing_job,
    job_of,
    job_stream,
)
from domain.jobs.reasons import JobsReason
from domain.lease.budgets import LeaseParty, count_budgets, uncount_budgets
from domain.lease.close_codes import FUNDS_ENDED, PAYMENT_REVERSED
from domain.lease.funds import Held, collect, take, total
from domain.lease.lease import MIN_RUNWAY_US, PARTS_MAX, Lease, RequestLease, lease_stream
from domain.lease.shared_escrow import (
    MEMBERS_MAX,
    Escrow,
    EscrowDrawn,
    EscrowFunded,
    EscrowMemberTold,
    EscrowReturned,
    end_of,
    escrow_of,
    evolve,
    stream_of,
)
from domain.lease.turns import LeaseFundsMoved
from domain.money import Amount, Asset, credit
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World
from domain.trust.reasons import TrustReason


@dataclass(frozen=True, slots=True, kw_only=True)
class FundEscrow:
    """Put credits into the escrow of a job: of any account, whoever rents. The first ones make it,
    and they are the job owner's.
    """

    job_id: str
    account_id: str
    amount: Amount
    at_us: int
    key_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnEscrow:
    """Give back what is left, when no lease can draw on it any more: the job is over, or its owner
    asks for it.
    """

    job_id: str
    at_us: int
    by_owner: bool = False


def draws_on_escrow(command: RequestLease, spec: JobSubmitted | SubmitJob, world: World) -> bool:
    """Whether a lease that is asked for draws on its job's escrow: there is one, and nothing is
    said about money or time of its own. A job that is submitted in the same append has none yet.
    """
    if isinstance(spec, SubmitJob) or command.account_id != spec.account_id:
        return False
    if not job_of(world, command.job_id).has_escrow:
        return False
    own_terms = (command.term_us, command.funds, command.months)
    is_interruptible = spec.constraints is not None and bool(spec.constraints.interruptible)
    is_plain = own_terms == (None, None, None) and not is_interruptible
    return is_plain and command.pay_with in (None, "cash")


# Money in and out of it.


def decide_fund(command: FundEscrow, world: World) -> list[Change]:
    """Raises Refused: JOB_UNKNOWN, JOB_STATE, ACCOUNT_CLOSED, AMOUNT_NOT_POSITIVE,
    COUNT_OUT_OF_RANGE, UNPAID_DEBT, CREDIT_TOO_LOW, BUDGET_EXHAUSTED.
    """
    spec, job = existing_job(world, command.job_id), job_of(world, command.job_id)
    escrow = escrow_of(world, command.job_id)
    if not job.is_open:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=job.phase)
    if not job.has_escrow and command.account_id != spec.account_id:
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=command.job_id)
    if command.amount.units <= 0 or command.amount.asset is not Asset.CREDIT:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="amount")
    parts_max = PARTS_MAX if command.account_id == spec.account_id else PARTS_MAX // 2
    if len(escrow.held) >= parts_max:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, deposits=len(escrow.held), at_most=parts_max
        )
    open_account(world, command.account_id)
    require_no_debt(world, command.account_id)
    parts = _collected(command, spec, escrow, world)
    party = LeaseParty(command.job_id, spec.account_id, spec.project_id, command.key_id)
    counted, budgets = count_budgets(world, party, command.account_id, parts, command.at_us)
    fact = EscrowFunded(
        escrow_id=command.job_id,
        account_id=spec.account_id,
        depositor_account_id=command.account_id,
        parts=parts,
        put_in=credit(escrow.put_in + total(parts)),
        ends_us=None,
        at_us=command.at_us,
        counted=counted,
    )
    ends_us = end_of(evolve(escrow, fact), command.at_us)
    funded = Change(stream_of(command.job_id), replace(fact, ends_us=ends_us))
    opened = JobEscrowOpened(job_id=command.job_id, at_us=command.at_us)
    first = [] if job.has_escrow else [Change(job_stream(command.job_id), opened)]
    return [*first, funded, *moved_to(command.job_id, escrow, ends_us, command.at_us), *budgets]


def _collected(command: FundEscrow, spec: JobSubmitted, escrow: Escrow, world: World) -> Held:
    sources = sources_of(world, command.account_id, "cash", command.at_us)
    parts = collect(
        sources, command.amount.units, lease_account_id=spec.account_id, deposits=escrow.deposits
    )
    if total(parts) < command.amount.units:
        raise Refused(
            FundsReason.CREDIT_TOO_LOW, needed=command.amount.units, available=total(parts)
        )
    return parts


def decide_return(command: ReturnEscrow, world: World) -> list[Change]:
    """Nothing held is nothing done.

    Raises Refused: JOB_UNKNOWN, JOB_STATE while a lease draws on it or, unless its owner asks,
    the job is open.
    """
    existing_job(world, command.job_id)
    job, escrow = job_of(world, command.job_id), escrow_of(world, command.job_id)
    if not escrow.held:
        return []
    if escrow.members or (job.is_open and not command.by_owner):
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, leases=len(escrow.members))
    return returned(command.job_id, escrow, escrow.held, command.at_us, world)


def returned(escrow_id: str, escrow: Escrow, parts: Held, at_us: int, world: World) -> list[Change]:
    """These parts go back to whoever put them there, and to the budgets that counted them."""
    if not parts:
        return []
    fact = EscrowReturned(
        escrow_id=escrow_id, account_id=escrow.account_id, parts=parts, at_us=at_us
    )
    budgets = uncount_budgets(world, escrow_id, escrow.counted, parts, at_us, is_final=False)
    return [Change(stream_of(escrow_id), fact), *budgets]


# Its leases.


def reserved(lease: Lease, world: World) -> list[Change]:
    """One more lease waits for its node, if all of them together run an hour at least.

    `lease`: as it is once it is reserved. Raises Refused: COUNT_OUT_OF_RANGE, CREDIT_TOO_LOW.
    """
    escrow_id, terms = lease.escrow_id, lease.reserved
    assert escrow_id is not None
    assert terms is not None
    escrow = escrow_of(world, escrow_id)
    if len(escrow.members) >= MEMBERS_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, leases=len(escrow.members), at_most=MEMBERS_MAX
        )
    told = _told(lease, escrow_id, "reserved", terms.at_us)
    after = evolve(escrow, told)
    needed = sum(
        (one if one.opened_at_us is not None else replace(one, opened_at_us=terms.at_us)).due(
            terms.at_us + MIN_RUNWAY_US
        )
        for one in after.members.values()
    )
    if needed > total(escrow.held):
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=needed, available=total(escrow.held))
    return [Change(stream_of(escrow_id), replace(told, ends_us=escrow.ends_us))]


def opening(leases: Sequence[Lease], at_us: int, world: World) -> tuple[int | None, list[Change]]:
    """The shared end once these leases of one job run from now on, and who else is told of it.

    Raises Refused: LEASE_STATE when the funds of those that run have just ended.
    """
    if not leases:
        return None, []
    escrow_id = leases[0].escrow_id
    assert escrow_id is not None
    escrow = escrow_of(world, escrow_id)
    if escrow.running and escrow.ends_us is not None and escrow.ends_us <= at_us:
        raise Refused(FleetReason.LEASE_STATE, escrow=escrow_id, ended_at_us=escrow.ends_us)
    tellings = [_told(one, escrow_id, "running", at_us, opened_at_us=at_us) for one in leases]
    after = escrow
    for told in tellings:
        after = evolve(after, replace(told, ends_us=escrow.ends_us))
    ends_us = end_of(replace(after, ends_us=None), at_us)
    assert ends_us is not None
    stream = stream_of(escrow_id)
    changes = [Change(stream, replace(told, ends_us=ends_us)) for told in tellings]
    return ends_us, [*changes, *moved_to(escrow_id, escrow, ends_us, at_us)]


def closed(lease: Lease, closed_at_us: int, at_us: int, world: World) -> list[Change]:
    """It runs no more: what it can no longer use is the others'."""
    if lease.escrow_id is None or lease.opened is None:
        return []
    told = _told(
        lease,
        lease.escrow_id,
        "closed",
        at_us,
        opened_at_us=lease.opened.opened_at_us,
        until_us=closed_at_us,
    )
    return _redealt(lease, told, at_us, world)[1]


def over(lease: Lease, at_us: int, world: World, *, drawn: Sequence[Change] = ()) -> list[Change]:
    """It is settled, or never ran. After the last one the rest goes back, where funds have ended or
    the job has.
    """
    if lease.escrow_id is None or lease.reserved is None:
        return []
    told = _told(lease, lease.escrow_id, "over", at_us)
    after, changes = _redealt(lease, told, at_us, world, drawn=drawn)
    is_last = not after.members
    ended = lease.closed is not None and lease.closed.code in (FUNDS_ENDED, PAYMENT_REVERSED)
    assert lease.requested is not None
    if is_last and (ended or not job_of(world, lease.requested.job_id).is_open):
        changes += returned(lease.escrow_id, after, after.held, at_us, world)
    return changes


def code_of(lease: Lease, code: int, world: World) -> int:
    """The close code that is true: funds that a reversed payment ended did not run out."""
    if code != FUNDS_ENDED or lease.escrow_id is None:
        return code
    is_short = escrow_of(world, lease.escrow_id).members[_id(lease)].allotted is not None
    return PAYMENT_REVERSED if is_short else code


def drawing(lease: Lease, world: World) -> Lease:
    """The lease as if what it may draw were its own; itself where it does not share."""
    if lease.escrow_id is None:
        return lease
    escrow = escrow_of(world, lease.escrow_id)
    units = min(escrow.for_lease(_id(lease)), total(escrow.held))
    is_short = escrow.members[_id(lease)].allotted is not None
    return replace(
        lease, held=take(escrow.held, units), short_of=escrow.short_of if is_short else None
    )


def drawn_of(lease: Lease, parts: Held, charged: int, at_us: int) -> list[Change]:
    """What an accrual of the lease took."""
    if lease.escrow_id is None:
        return []
    fact = EscrowDrawn(
        escrow_id=lease.escrow_id,
        lease_id=_id(lease),
        parts=parts,
        charged=credit(charged),
        at_us=at_us,
    )
    return [Change(stream_of(lease.escrow_id), fact)]


def _redealt(
    lease: Lease, told: EscrowMemberTold, at_us: int, world: World, *, drawn: Sequence[Change] = ()
) -> tuple[Escrow, list[Change]]:
    escrow_id = lease.escrow_id
    assert escrow_id is not None
    escrow = escrow_of(world, escrow_id)
    for change in drawn:
        escrow = evolve(escrow, change.fact)
    after = evolve(escrow, replace(told, ends_us=escrow.ends_us))
    ends_us = end_of(after, at_us)
    told = replace(told, ends_us=ends_us)
    moved = moved_to(escrow_id, escrow, ends_us, at_us, but=_id(lease))
    return evolve(escrow, told), [Change(stream_of(escrow_id), told), *moved]


def moved_to(
    escrow_id: str, escrow: Escrow, ends_us: int | None, at_us: int, *, but: str = ""
) -> list[Change]:
    """Every other lease that runs is told the new end."""
    if ends_us is None or ends_us == escrow.ends_us:
        return []
    return [
        Change(
            lease_stream(lease_id),
            LeaseFundsMoved(
                lease_id=lease_id, escrow_id=escrow_id, funds_end_us=ends_us, at_us=at_us
            ),
        )
        for lease_id in escrow.running
        if lease_id != but
    ]


def _told(
    lease: Lease,
    escrow_id: str,
    phase: str,
    at_us: int,
    *,
    opened_at_us: int | None = None,
    until_us: int | None = None,
) -> EscrowMemberTold:
    assert lease.reserved is not None
    return EscrowMemberTold(
        escrow_id=escrow_id,
        lease_id=_id(lease),
        phase=phase,
        gpu_ppm=lease.gpu_ppm_total,
        price_per_gpu_hour=lease.reserved.price_per_gpu_hour,
        opened_at_us=opened_at_us,
        until_us=until_us,
        ends_us=None,
        at_us=at_us,
    )


def _id(lease: Lease) -> str:
    assert lease.requested is not None
    return lease.requested.lease_id


STREAMS: dict[str, tuple[Any, Any]] = {"escrow": (Escrow(), evolve)}
DECIDERS: dict[type[Any], Any] = {FundEscrow: decide_fund, ReturnEscrow: decide_return}
