"""How a lease is asked for: a job's owner, or who takes part in a federated job, wants devices.

    requested  =>  the job is open, its account is open, and a compute client asks by an instance

The job says how many devices, of what kind and at which cap; the request adds the time and the
money. A lease whose funds ended goes on as another one, at most once. Facts, commands and state are
those of `domain/lease/lease.py`.
"""

from __future__ import annotations

import re
from typing import Any

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.hardware.constraints import Constraints
from domain.jobs.job import JobState, JobSubmitted, SubmitJob, existing_job, job_of
from domain.jobs.parts import started
from domain.jobs.plan import datasets_of
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import FUNDS_ENDED, RENTER_CLOSED
from domain.lease.lease import LeaseRequested, LeaseRestarted, RequestLease, lease_of, lease_stream
from domain.lease.mounts import VolumeMount
from domain.lease.reasons import LeaseReason
from domain.leasing.escrow_sharing import draws_on_escrow
from domain.market.offer import SETTLEMENTS
from domain.market.price_gate import interruptible_if_bid, pricing_of
from domain.parties.account import account_of, require_open
from domain.parties.client import instance_of, require_running
from domain.parties.reasons import PartiesReason
from domain.pools.pool import pool_stream
from domain.prices.modules import STANDING, module_of
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Change, World
from domain.trust.reasons import TrustReason

LABEL_CHARACTERS_MAX = 128
_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")


def decide_request(command: RequestLease, world: World) -> list[Change]:
    """A job's owner, or who takes part in it, asks for devices.

    Raises Refused: LEASE_EXISTS, JOB_UNKNOWN, ACCOUNT_CLOSED, JOB_STATE, CLIENT_NOT_AUTHORISED,
    AMOUNT_NOT_POSITIVE, UNKNOWN_MODE, SIGNING_KEY_INVALID, AMOUNT_OUT_OF_RANGE, LEASE_UNKNOWN,
    LEASE_STATE, PRICING_UNKNOWN, PRICING_NOT_OFFERED, TERM_NOT_OFFERED.
    """
    stream = lease_stream(command.lease_id)
    if world.state(stream).requested is not None:
        raise Refused(LeaseReason.LEASE_EXISTS, lease_id=command.lease_id)
    spec = existing_job(world, command.job_id)
    job = job_of(world, command.job_id)
    _require_open_job(command, spec, job, world)
    _require_instance(command, spec, world)
    _require_time_and_money(command, spec)
    _require_remote_terms(command)
    return [
        *_restarted(command, world),
        *started(command, job),
        Change(stream, _asked_for(command, spec, world)),
    ]


def _require_open_job(
    command: RequestLease, spec: JobSubmitted, job: JobState, world: World
) -> None:
    """Who asks owns the job or takes part in it, and both account and job are open.

    Raises Refused: JOB_UNKNOWN, ACCOUNT_CLOSED, JOB_STATE.
    """
    if command.account_id not in (spec.account_id, *spec.participants):
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=command.job_id)
    require_open(account_of(world, command.account_id), command.account_id)
    if not job.is_open:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=job.phase)


def _require_time_and_money(command: RequestLease, spec: JobSubmitted) -> None:
    """Raises Refused: AMOUNT_NOT_POSITIVE, UNKNOWN_MODE."""
    if command.term_us is not None and command.term_us <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="term_us")
    if command.funds is not None and command.funds.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="funds")
    if command.pay_with not in (None, *SETTLEMENTS):
        raise Refused(PartiesReason.UNKNOWN_MODE, settlement=command.pay_with)
    if command.pay_with == "burn" and is_cash_only(spec):
        raise Refused(PartiesReason.UNKNOWN_MODE, settlement="burn", sla_class=spec.sla_class)


def is_cash_only(spec: JobSubmitted | SubmitJob) -> bool:
    """Whether burned credits cannot pay: a promise is refunded, and the refund would come on top of
    the reward for it (`domain/prices/profit_bound.py`).
    """
    return spec.sla_class is not None


def asked_of(command: RequestLease, spec: JobSubmitted | SubmitJob, world: World) -> LeaseRequested:
    """What a request comes to, but for its price: the job says what of, the command how long."""
    shares = draws_on_escrow(command, spec, world)
    return LeaseRequested(
        lease_id=command.lease_id,
        job_id=command.job_id,
        account_id=command.account_id,
        client_id=spec.client_id,
        project_id=command.project_id or spec.project_id,
        end_user_ref=spec.end_user_ref,
        gpu_count=spec.gpu_count,
        share_ppm=spec.share_ppm,
        mem_ppm=spec.mem_ppm,
        models=spec.models,
        max_price_per_gpu_hour=spec.max_price_per_gpu_hour,
        pricing=None,
        pay_with="cash" if shares or is_cash_only(spec) else command.pay_with,
        term_us=command.term_us,
        funds=command.funds,
        at_us=command.at_us,
        refill=command.refill and not shares,
        sla_class=spec.sla_class,
        key_id=command.key_id,
        restart_of=command.restart_of,
        gang_id=command.gang_id,
        start_timeout_us=command.start_timeout_us,
        constraints=interruptible_if_bid(command, demands_of(spec, overflow=command.overflow)),
        encryption_key=command.encryption_key,
        remoting_session_id=command.remoting_session_id,
        split_label=command.split_label,
        route_id=command.route_id,
        months=command.months,
        part=command.part,
        attempt=command.attempt,
        run_due_us=command.run_due_us,
        overflow=command.overflow,
        escrow_id=command.job_id if shares else None,
        # Who takes part in another's job has agreed to its price and to no resource beside it.
        meter_maxima=spec.meter_maxima if command.account_id == spec.account_id else (),
        volumes=_mounts(command, spec, world),
        datasets=datasets_of(spec.references) if command.account_id == spec.account_id else (),
    )


def _mounts(
    command: RequestLease, spec: JobSubmitted | SubmitJob, world: World
) -> tuple[VolumeMount, ...]:
    """What the job mounts now. Who takes part in another's job has nothing of its volumes."""
    if command.account_id != spec.account_id:
        return ()
    if isinstance(spec, SubmitJob):
        return spec.volumes  # not there yet, so nothing was attached since
    job = job_of(world, command.job_id)
    return job.volumes if job.exists else spec.volumes


def _require_remote_terms(command: RequestLease) -> None:
    """Raises Refused: SIGNING_KEY_INVALID, AMOUNT_OUT_OF_RANGE."""
    key = command.encryption_key
    if key is not None and _PUBLIC_KEY.fullmatch(key) is None:
        raise Refused(PartiesReason.SIGNING_KEY_INVALID, field="encryption_key")
    for field in ("remoting_session_id", "split_label", "route_id"):
        text = getattr(command, field)
        if text is not None and not 1 <= len(text) <= LABEL_CHARACTERS_MAX:
            raise Refused(
                PricesReason.AMOUNT_OUT_OF_RANGE, field=field, at_most=LABEL_CHARACTERS_MAX
            )


def _require_instance(command: RequestLease, spec: JobSubmitted, world: World) -> None:
    """A compute client asks by an authorised instance; a timer needs that instance to be one still.

    Raises Refused: CLIENT_NOT_AUTHORISED.
    """
    if command.by_timer or command.restart_of is not None:
        require_running(world, spec.account_id, spec.instance_id)
    else:
        instance_of(world, command.account_id, command.key_id)


def _asked_for(command: RequestLease, spec: JobSubmitted, world: World) -> LeaseRequested:
    """Raises Refused: PRICING_UNKNOWN, PRICING_NOT_OFFERED, TERM_NOT_OFFERED."""
    pricing = pricing_of(command, _pools_pricing(command, spec, world))
    return replace(asked_of(command, spec, world), pricing=pricing)


def _pools_pricing(command: RequestLease, spec: JobSubmitted, world: World) -> str | None:
    """How the pool prices that the job names; None: it names none, or one that is not there."""
    demands = demands_of(spec, overflow=command.overflow)
    if demands is None or demands.pool_id is None:
        return None
    pool = world.state(pool_stream(demands.pool_id))
    return None if pool.created is None else pool.policy.pricing


def demands_of(spec: JobSubmitted | SubmitJob, *, overflow: bool = False) -> Constraints | None:
    """What a lease of the job demands of its node: above a quota it is not bound to the pool."""
    demands = spec.constraints
    if demands is None or not overflow or demands.pool_id is None:
        return demands
    return replace(demands, pool_id=None)


def asked_again(asked: LeaseRequested, lease_id: str, at_us: int) -> RequestLease:
    """The request of the lease that goes on where another one ended: for the same time and money,
    and what its node answers is sealed to the same key.
    """
    return RequestLease(
        lease_id=lease_id,
        job_id=asked.job_id,
        account_id=asked.account_id,
        term_us=asked.term_us,
        funds=asked.funds,
        at_us=at_us,
        pay_with=asked.pay_with,
        project_id=asked.project_id,
        refill=asked.refill,
        key_id=asked.key_id,
        restart_of=asked.lease_id,
        encryption_key=asked.encryption_key,
        remoting_session_id=asked.remoting_session_id,
        split_label=asked.split_label,
        route_id=asked.route_id,
        pricing=asked.pricing,
        overflow=asked.overflow,
    )


def _restarted(command: RequestLease, world: World) -> list[Change]:
    """What links a lease whose funds ended to the one that goes on; each goes on once.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE.
    """
    if command.restart_of is None:
        return []
    before = lease_of(world, command.restart_of)
    asked, closed = before.requested, before.closed
    assert asked is not None
    if (asked.job_id, asked.account_id) != (command.job_id, command.account_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=command.restart_of)
    is_rebid = command.pricing is not None and module_of(command.pricing).kind == STANDING
    goes_on = (FUNDS_ENDED, RENTER_CLOSED) if is_rebid else (FUNDS_ENDED,)
    if closed is None or closed.code not in goes_on or before.restarted_as is not None:
        raise Refused(
            FleetReason.LEASE_STATE,
            lease_id=command.restart_of,
            status=before.status,
            close_code=None if closed is None else closed.code,
            restarted_as=before.restarted_as,
        )
    fact = LeaseRestarted(
        lease_id=command.restart_of, as_lease_id=command.lease_id, at_us=command.at_us
    )
    return [Change(lease_stream(command.restart_of), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    RequestLease: (
        LeaseReason.LEASE_EXISTS,
        TrustReason.JOB_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        JobsReason.JOB_STATE,
        PartiesReason.CLIENT_NOT_AUTHORISED,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PartiesReason.UNKNOWN_MODE,
        PartiesReason.SIGNING_KEY_INVALID,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        PricesReason.PRICING_UNKNOWN,
        PricesReason.PRICING_NOT_OFFERED,
        PricesReason.TERM_NOT_OFFERED,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {RequestLease: decide_request}
