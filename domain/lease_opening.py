"""How a lease comes about and stays funded: asked for, matched, reserved, opened, topped up.

    held for usage >= charge(term), or of an open end charge(one hour)     when it is reserved
    funds end == the earlier end of the two holds, never before the term's       ever after

The match is made elsewhere (`domain/matching.py`) and checked again here, against the streams
themselves. Price, tariff and shares are locked with the reservation. Facts, commands and state are
those of `domain/lease.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from domain.account import account_of, open_account, require_open
from domain.auction import deposits_at_opening
from domain.compute_client import instance_of, require_running
from domain.constraints import Constraints
from domain.counterparty import refusal_between
from domain.device import DeviceReserved, DeviceState, device_of
from domain.escrow import TIME_MAX_US, funds_end_us
from domain.funding import sources_of
from domain.gpu_time import charge_for, fee_for
from domain.group import RENT, Holder, overflow_of, pool_groups_of, quotas_of
from domain.job import FederatedFeeCarried, JobSubmitted, SubmitJob, existing_job, job_of
from domain.job_parts import started
from domain.lease import (
    FEDERATED_HOLD_US,
    FUNDS_ENDED,
    MIN_RUNWAY_US,
    PARTS_MAX,
    RENTER_CLOSED,
    FederatedTerms,
    Lease,
    LeaseOpened,
    LeaseReady,
    LeaseRequested,
    LeaseReserved,
    LeaseRestarted,
    LeaseToppedUp,
    MatchDecided,
    ReadyLease,
    RequestLease,
    ReserveLease,
    TopUpLease,
    lease_of,
    party_of,
)
from domain.lease_budget import count_budgets, left_of
from domain.lease_constraints import require_demands
from domain.lease_funds import (
    FEDERATED,
    Held,
    collect,
    deposits_of,
    fee_funds_end_us,
    for_purpose,
    less,
    total,
)
from domain.lease_sharing import hold_devices, require_offered, shared
from domain.lease_turns import ExtendLease, LeaseExtended, LeaseQuoted, QuoteLease
from domain.maintenance import window_within
from domain.money import PPM, Amount, Asset, credit
from domain.node import NodeState, existing_node
from domain.offer import SETTLEMENTS, OfferPublished, existing_offer, offer_of
from domain.pool import PoolState, pool_of
from domain.pool_queue import queue_of
from domain.price_gate import interruptible_if_bid, priced, pricing_of
from domain.pricing import STANDING, module_of
from domain.provider import existing_provider
from domain.quota import hold
from domain.refusal import Reason, Refused
from domain.revenue_share import OwnerShare, shares_of
from domain.stream import Change, Stream, World
from domain.tariff import TariffPublished, sla_class, tariff_in_force, usage_fee

CREDENTIALS_CHARACTERS_MAX = 8_192
"""Of sealed credentials, in base64: a token, an address and a certificate."""
LABEL_CHARACTERS_MAX = 128
_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")


def decide_request(command: RequestLease, world: World) -> list[Change]:
    """A job's owner asks for devices. The job says how many, of what kind, at which cap."""
    stream = Stream("lease", command.lease_id)
    if world.state(stream).requested is not None:
        raise Refused(Reason.LEASE_EXISTS, lease_id=command.lease_id)
    spec = existing_job(world, command.job_id)
    job = job_of(world, command.job_id)
    if command.account_id not in (spec.account_id, *(spec.participants or ())):
        raise Refused(Reason.JOB_UNKNOWN, job_id=command.job_id)
    require_open(account_of(world, command.account_id), command.account_id)
    if not job.is_open:
        raise Refused(Reason.JOB_STATE, job_id=command.job_id, phase=job.phase)
    _require_instance(command, spec, world)
    if command.term_us is not None and command.term_us <= 0:
        raise Refused(Reason.AMOUNT_NOT_POSITIVE, field="term_us")
    if command.funds is not None and command.funds.units <= 0:
        raise Refused(Reason.AMOUNT_NOT_POSITIVE, field="funds")
    if command.settlement not in (None, *SETTLEMENTS):
        raise Refused(Reason.UNKNOWN_MODE, settlement=command.settlement)
    _require_remote_terms(command)
    return [
        *_restarted(command, world),
        *started(command, job),
        Change(
            stream,
            LeaseRequested(
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
                settlement=command.settlement,
                term_us=command.term_us,
                funds=command.funds,
                at_us=command.at_us,
                refill=True if command.refill else None,
                sla_class=spec.sla_class,
                key_id=command.key_id,
                restart_of=command.restart_of,
                gang_id=command.gang_id,
                start_timeout_us=command.start_timeout_us,
                constraints=interruptible_if_bid(
                    command, demands_of(spec, overflow=command.overflow)
                ),
                encryption_key=command.encryption_key,
                remoting_session_id=command.remoting_session_id,
                split_label=command.split_label,
                pricing=pricing_of(command, _pools_pricing(command, spec, world)),
                months=command.months,
                part=command.part,
                attempt=command.attempt,
                run_due_us=command.run_due_us,
                overflow=True if command.overflow else None,
            ),
        ),
    ]


def _require_remote_terms(command: RequestLease) -> None:
    """Raises Refused: SIGNING_KEY_INVALID, AMOUNT_OUT_OF_RANGE."""
    key = command.encryption_key
    if key is not None and _PUBLIC_KEY.fullmatch(key) is None:
        raise Refused(Reason.SIGNING_KEY_INVALID, field="encryption_key")
    for field in ("remoting_session_id", "split_label"):
        text = getattr(command, field)
        if text is not None and not 1 <= len(text) <= LABEL_CHARACTERS_MAX:
            raise Refused(Reason.AMOUNT_OUT_OF_RANGE, field=field, at_most=LABEL_CHARACTERS_MAX)


def _pools_pricing(command: RequestLease, spec: JobSubmitted, world: World) -> str | None:
    """How the pool prices that the job names; None: it names none, or one that is not there."""
    demands = demands_of(spec, overflow=command.overflow)
    if demands is None or demands.pool_id is None:
        return None
    pool = world.state(Stream("pool", demands.pool_id))
    assert isinstance(pool, PoolState)
    return None if pool.created is None else pool.policy.pricing


def demands_of(spec: JobSubmitted | SubmitJob, *, overflow: bool = False) -> Constraints | None:
    """What a lease of the job demands of its node: above a quota it is not bound to the pool."""
    demands = spec.constraints
    if demands is None or not overflow or demands.pool_id is None:
        return demands
    return replace(demands, pool_id=None)


def _require_instance(command: RequestLease, spec: JobSubmitted, world: World) -> None:
    """A compute client asks by an authorised instance; a timer needs that instance to be one still.

    Raises Refused: CLIENT_NOT_AUTHORISED.
    """
    if command.by_timer or command.restart_of is not None:
        require_running(world, spec.account_id, spec.instance_id)
    else:
        instance_of(world, command.account_id, command.key_id)


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
        raise Refused(Reason.LEASE_UNKNOWN, lease_id=command.restart_of)
    is_rebid = command.pricing is not None and module_of(command.pricing).kind == STANDING
    goes_on = (FUNDS_ENDED, RENTER_CLOSED) if is_rebid else (FUNDS_ENDED,)
    if closed is None or closed.code not in goes_on or before.restarted_as is not None:
        raise Refused(
            Reason.LEASE_STATE, lease_id=command.restart_of, status=before.status,
            close_code=None if closed is None else closed.code, restarted_as=before.restarted_as,
        )  # fmt: skip
    fact = LeaseRestarted(
        lease_id=command.restart_of, as_lease_id=command.lease_id, at_us=command.at_us
    )
    return [Change(Stream("lease", command.restart_of), fact)]


def decide_reserve(command: ReserveLease, world: World) -> list[Change]:
    """The match, checked against the streams themselves: a stale projection does no harm."""
    lease = lease_of(world, command.lease_id)
    asked = lease.requested
    assert asked is not None
    quote = _accepted(lease, command)
    price = None if quote is None else quote.price_per_gpu_hour
    terms, held = matched_terms(asked, command, price, world)
    node = existing_node(world, command.node_id)
    _require_turn(asked, node, world)
    reserved = replace(terms, pool_id=node.pool_id, quote_id=command.quote_id)
    if quote is not None:
        reserved = replace(reserved, reclaim_window_us=quote.reclaim_window_us)
    price_rule = priced(world, asked, reserved, quote, command.at_us)
    reserved = replace(reserved, months=price_rule.months, refund_ppm=price_rule.refund_ppm)
    reserved = replace(reserved, escrow=_escrow(asked, reserved, world))
    reserved, budgets = _counted(asked, reserved, world)
    reserved, quotas = _within_quotas(asked, reserved, world)
    stream = Stream("lease", command.lease_id)
    decided = MatchDecided(
        lease_id=command.lease_id,
        rule=command.rule,
        fleet_position=command.fleet_position,
        candidates=command.candidates,
        considered=command.considered,
        node_id=command.node_id,
        offer_id=command.offer_id,
        device_ids=command.device_ids,
        at_us=command.at_us,
        pricing=price_rule.pricing,
        weights=command.weights,
        narrowed=command.narrowed,
    )
    holding = [Change(Stream("device", one.device_id), one) for one in held]
    carried = _fee_carried(asked, reserved)
    changes = [Change(stream, decided), Change(stream, reserved), *holding]
    return [*changes, *carried, *budgets, *quotas, *price_rule.changes]


def _require_no_maintenance(node_id: str, from_us: int, until_us: int, world: World) -> None:
    """A fixed term never reaches into a maintenance that was announced, and no lease starts in one.

    Raises Refused: NODE_IN_MAINTENANCE.
    """
    window = window_within(world, node_id, from_us, until_us)
    if window is not None:
        raise Refused(
            Reason.NODE_IN_MAINTENANCE, node_id=node_id,
            maintenance_id=window.told.maintenance_id, from_us=window.told.from_us,
        )  # fmt: skip


def _check_parties(
    asked: LeaseRequested, provider_account_id: str, world: World, *, is_own: bool
) -> None:
    """Raises Refused: COUNTERPARTY_DENIED by the lists of either side, and of the client; for a
    lease whose quotas are full QUOTA_EXHAUSTED, when it would run on what the renter owns.
    """
    if asked.overflow and is_own:
        raise Refused(Reason.QUOTA_EXHAUSTED, rule="what is above the quota is rented elsewhere")
    if is_own:
        return
    refused = refusal_between(world, (asked.account_id, asked.client_id), provider_account_id)
    if refused is not None:
        raise refused


def holder_of(asked: LeaseRequested, pool_id: str | None) -> Holder:
    """Whose quotas a lease counts in, on a node of this pool or of none."""
    return Holder(
        account_id=asked.account_id, client_id=asked.client_id, project_id=asked.project_id,
        key_id=asked.key_id, pool_id=pool_id,
    )  # fmt: skip


def _within_quotas(
    asked: LeaseRequested, reserved: LeaseReserved, world: World
) -> tuple[LeaseReserved, list[Change]]:
    """The lease, counted in its groups' and its client's quotas, or rented beside them.

    Raises Refused: QUOTA_EXHAUSTED.
    """
    holder = holder_of(asked, reserved.pool_id)
    if asked.overflow:
        if overflow_of(world, asked.account_id, asked.project_id) != RENT:
            raise Refused(Reason.QUOTA_EXHAUSTED, rule="the project's overflow policy refuses")
        if pool_groups_of(world, holder):
            raise Refused(Reason.QUOTA_EXHAUSTED, rule="rented outside the pools with a quota")
        return reserved, []
    gpu_ppm = len(reserved.device_ids) * reserved.share_ppm
    quota_ids = quotas_of(world, holder)
    changes = hold(world, quota_ids, asked.lease_id, gpu_ppm, reserved.at_us)
    counted = tuple(change.fact.quota_id for change in changes)
    return replace(reserved, quotas=counted or None), changes


def _require_turn(asked: LeaseRequested, node: NodeState, world: World) -> None:
    """A pool that keeps a queue serves who names it, and nobody before those who wait.

    Raises Refused: OFFER_MISMATCH, QUEUE_MOVED.
    """
    wanted = None if asked.constraints is None else asked.constraints.pool_id
    if wanted is not None and node.pool_id != wanted:
        raise Refused(Reason.OFFER_MISMATCH, pool_id=wanted)
    if node.pool_id is None or not pool_of(world, node.pool_id).queues_requests:
        return
    if wanted != node.pool_id:
        raise Refused(Reason.OFFER_MISMATCH, pool_id=node.pool_id)
    queue = queue_of(world, node.pool_id)
    is_next = queue.turn is not None and queue.turn in (asked.lease_id, asked.gang_id)
    if queue.waiting and not is_next:
        raise Refused(Reason.QUEUE_MOVED, pool_id=node.pool_id, waiting=len(queue.waiting))


def _accepted(lease: Lease, command: ReserveLease) -> LeaseQuoted | None:
    """The quote that is taken; None: at the offer's price, straight from the request.

    Raises Refused: LEASE_STATE, OFFER_MISMATCH.
    """
    wrong = Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if command.quote_id is None:
        if lease.status != "requested":
            raise wrong
        return None
    quote = next((one for one in lease.quotes if one.quote_id == command.quote_id), None)
    if lease.status != "quoted" or quote is None:
        raise wrong
    if command.at_us >= quote.expires_at_us:
        raise Refused(Reason.LEASE_STATE, quote_id=quote.quote_id, expired_us=quote.expires_at_us)
    if (command.offer_id, command.device_ids) != (quote.offer_id, quote.device_ids):
        raise Refused(Reason.OFFER_MISMATCH, quote_id=quote.quote_id)
    return quote


def matched_terms(
    asked: LeaseRequested, match: ReserveLease | QuoteLease, price: Amount | None, world: World
) -> tuple[LeaseReserved, list[DeviceReserved]]:
    """The terms of a match and what each device gets, checked against the streams themselves.
    `price`: what was quoted; None: the offer's, or the usage fee on the renter's own node.

    Raises Refused: OFFER_UNKNOWN, NODE_UNKNOWN, OFFER_WITHDRAWN, NODE_STATE, NODE_IN_MAINTENANCE,
    OFFER_MISMATCH, GPU_CLASS_UNPRICED, TARIFF_UNKNOWN, PRICE_ABOVE_CAP.
    """
    published = existing_offer(world, match.offer_id)
    node = existing_node(world, match.node_id)
    if not offer_of(world, match.offer_id).is_open:
        raise Refused(Reason.OFFER_WITHDRAWN, offer_id=match.offer_id)
    if not node.is_matchable:
        raise Refused(Reason.NODE_STATE, node_id=match.node_id, phase=node.phase)
    _require_no_maintenance(match.node_id, match.at_us, match.at_us + (asked.term_us or 1), world)
    if published.node_id != match.node_id:
        raise Refused(Reason.OFFER_MISMATCH, offer_id=match.offer_id)
    devices = [device_of(world, device_id) for device_id in match.device_ids]
    provider = existing_provider(world, published.provider_id)
    is_own = provider.account_id == asked.account_id
    _check_parties(asked, provider.account_id, world, is_own=is_own)
    _check_devices(match, asked, published, devices, is_own=is_own)
    require_demands(asked, published, node, devices[0], world)
    held = hold_devices(asked.lease_id, asked, devices, match.at_us)
    terms = _terms(asked, published, devices[0], provider.account_id, match.at_us, world)
    terms = shared(terms, held)
    if price is not None and not is_own:
        terms = replace(terms, price_per_gpu_hour=price)
    cap_units = asked.max_price_per_gpu_hour.units
    if terms.price_per_gpu_hour.units > cap_units:
        raise Refused(Reason.PRICE_ABOVE_CAP, cap=cap_units, price=terms.price_per_gpu_hour.units)
    if terms.price_per_gpu_hour < terms.fee_per_gpu_hour:
        # Offered under an earlier tariff, or for devices of another class: no charge could pay it.
        raise Refused(Reason.OFFER_MISMATCH, usage_fee=terms.fee_per_gpu_hour.units)
    return terms, held


def quoted_terms(lease: Lease, command: QuoteLease, world: World) -> LeaseReserved:
    """What a quote of these devices promises. Raises Refused like `matched_terms`."""
    assert lease.requested is not None
    return matched_terms(lease.requested, command, command.price_per_gpu_hour, world)[0]


def _counted(
    asked: LeaseRequested, reserved: LeaseReserved, world: World
) -> tuple[LeaseReserved, list[Change]]:
    """The escrow, counted against the budgets that have a cap. Raises Refused: BUDGET_EXHAUSTED."""
    party, escrow, at_us = party_of(asked), reserved.escrow, reserved.at_us
    counted, changes = count_budgets(
        world, party, asked.account_id, for_purpose(escrow, None), at_us
    )
    if reserved.federated is not None:
        creator, fee = reserved.federated.account_id, for_purpose(escrow, FEDERATED)
        theirs, more = count_budgets(world, party, creator, fee, at_us)
        counted, changes = (*counted, *theirs), [*changes, *more]
    return replace(reserved, counted=counted or None), changes


def _check_devices(
    command: ReserveLease | QuoteLease,
    asked: LeaseRequested,
    offer: OfferPublished,
    devices: Sequence[DeviceState],
    *,
    is_own: bool,
) -> None:
    """As many distinct devices as asked, all of the offer's node, of an allowed model."""
    if len(set(command.device_ids)) != asked.gpu_count or len(devices) != asked.gpu_count:
        raise Refused(Reason.OFFER_MISMATCH, gpu_count=asked.gpu_count)
    if asked.settlement not in (None, offer.settlement) and not is_own:
        raise Refused(Reason.OFFER_MISMATCH, settlement=offer.settlement)
    require_offered(asked, offer)
    if offer.available_until_us is not None:
        end_us = command.at_us + (asked.term_us or MIN_RUNWAY_US)
        if offer.available_until_us < end_us:
            raise Refused(Reason.OFFER_MISMATCH, available_until_us=offer.available_until_us)
    for device in devices:
        if device.node_id != command.node_id:
            raise Refused(Reason.OFFER_MISMATCH, node_id=command.node_id)
        assert device.registered is not None
        if asked.models and device.registered.model not in asked.models:
            raise Refused(Reason.OFFER_MISMATCH, model=device.registered.model)
        if device.gpu_class != devices[0].gpu_class:
            raise Refused(Reason.OFFER_MISMATCH, gpu_class=device.gpu_class)


def _terms(
    asked: LeaseRequested,
    offer: OfferPublished,
    device: DeviceState,
    provider_account_id: str,
    at_us: int,
    world: World,
) -> LeaseReserved:
    """The price and the tariff this lease will keep, whatever is published later."""
    tariff = tariff_in_force(world, at_us)
    if device.gpu_class is None:
        raise Refused(Reason.GPU_CLASS_UNPRICED, node_id=offer.node_id)
    fee = usage_fee(tariff, device.gpu_class)
    own = provider_account_id == asked.account_id
    return LeaseReserved(
        lease_id=asked.lease_id,
        job_id=asked.job_id,
        account_id=asked.account_id,
        client_id=asked.client_id,
        project_id=asked.project_id,
        end_user_ref=asked.end_user_ref,
        node_id=offer.node_id,
        provider_id=offer.provider_id,
        provider_account_id=provider_account_id,
        offer_id=offer.offer_id,
        device_ids=(),
        share_ppm=asked.share_ppm,
        mem_ppm=asked.mem_ppm,
        gpu_class=device.gpu_class,
        price_per_gpu_hour=fee if own else offer.price_per_gpu_hour,
        settlement="cash" if own else offer.settlement,
        own=own,
        tariff_version=tariff.version,
        fee_per_gpu_hour=fee,
        provider_share_ppm=tariff.provider_share_ppm,
        burn_share_ppm=tariff.burn_share_ppm,
        escrow=(),
        at_us=at_us,
        split=tariff.split,
        client_account_id=_client_with_a_share(asked, tariff, world),
        owners=_owners_with_a_share(offer.node_id, world),
        federated=_federated(asked, tariff, world),
        sla_class=None if asked.sla_class is None else sla_class(tariff, asked.sla_class).name,
        reclaim_window_us=None if offer.terms is None else offer.terms.reclaim_window_us,
        interruptible=True if _is_interruptible(asked, offer) else None,
        gang_id=asked.gang_id,
    )


def _is_interruptible(asked: LeaseRequested, offer: OfferPublished) -> bool:
    """Whether the lease may be paused: the renter asked for it, and the offer takes such leases."""
    wants = asked.constraints is not None and bool(asked.constraints.interruptible)
    return wants and offer.terms is not None and bool(offer.terms.interruptible)


def _client_with_a_share(
    asked: LeaseRequested, tariff: TariffPublished, world: World
) -> str | None:
    """The compute client that brought the job, where the tariff has a share for clients (R-17)."""
    split = tariff.split
    if split is None or "client" not in {split.residual, *(one.bucket for one in split.shares)}:
        return None
    client = account_of(world, asked.client_id)
    return asked.client_id if client.kind == "client" and client.is_open else None


def _owners_with_a_share(node_id: str, world: World) -> tuple[OwnerShare, ...] | None:
    """The owners the revenue is split among (K-1). What was a closed account's is the provider's:
    nobody could ever spend what such an account earns.
    """
    shares = shares_of(world, node_id)
    return tuple(one for one in shares if account_of(world, one.account_id).is_open) or None


def _federated(
    asked: LeaseRequested, tariff: TariffPublished, world: World
) -> FederatedTerms | None:
    """The federated fee of a lease that is not its job's creator's: cross-project work (C-21)."""
    job, fees = existing_job(world, asked.job_id), tariff.federated
    if job.federated is None or fees is None or job.account_id == asked.account_id:
        return None
    fee = fees.training_per_hour if job.federated == "training" else fees.inference_per_hour
    if fees.unit == "job":
        carrier = job_of(world, asked.job_id).fee_carrier
        if carrier is not None and lease_of(world, carrier).is_live:
            fee = credit(0)
    return FederatedTerms(account_id=job.account_id, kind=job.federated, fee_per_hour=fee)


def _fee_carried(asked: LeaseRequested, reserved: LeaseReserved) -> list[Change]:
    """Which lease carries a job's fee is remembered with the job, so no second one does."""
    federated = reserved.federated
    if federated is None or not federated.fee_per_hour.units:
        return []
    fact = FederatedFeeCarried(job_id=asked.job_id, lease_id=asked.lease_id, at_us=reserved.at_us)
    return [Change(Stream("job", asked.job_id), fact)]


def _escrow(asked: LeaseRequested, terms: LeaseReserved, world: World) -> Held:
    """Hold the largest possible charge of a fixed term, else the funds given (an hour at least),
    and the federated fee for as long.
    """
    _require_no_debt(world, asked.account_id)
    rate = asked.gpu_count * terms.share_ppm
    price = terms.price_per_gpu_hour.units
    least = charge_for(rate * (asked.term_us or MIN_RUNWAY_US) // PPM, price)
    needed = least if asked.term_us is not None or asked.funds is None else asked.funds.units
    if needed < least:
        raise Refused(Reason.CREDIT_TOO_LOW, needed=least, available=needed)
    parts = _collected(world, asked.account_id, terms, needed, needed, lease=asked)
    if terms.federated is None or not terms.federated.fee_per_hour.units:
        return parts
    return (*parts, *_federated_escrow(asked, terms, terms.federated, parts, world))


def _federated_escrow(
    asked: LeaseRequested,
    terms: LeaseReserved,
    federated: FederatedTerms,
    taken: Held,
    world: World,
) -> Held:
    """The fee for the whole term; of an open end for an hour at least, a day at most."""
    _require_no_debt(world, federated.account_id)
    fee = federated.fee_per_hour.units
    least = fee_for(asked.term_us or MIN_RUNWAY_US, fee)
    wanted = least if asked.term_us is not None else fee_for(FEDERATED_HOLD_US, fee)
    return _collected(
        world, federated.account_id, terms, least, wanted, lease=asked, taken=taken,
        purpose=FEDERATED,
    )  # fmt: skip


def _collected(
    world: World,
    account_id: str,
    terms: LeaseReserved,
    least: int,
    wanted: int,
    *,
    lease: LeaseRequested,
    deposits: int = 0,
    taken: Held = (),
    purpose: str | None = None,
) -> Held:
    """`wanted` credits of an account, or as many as there are, after the `deposits` there were and
    what was `taken` by this same decision.

    Raises Refused: CREDIT_TOO_LOW, when that is less than `least`.
    """
    settlement = "cash" if purpose == FEDERATED else terms.settlement
    sources = less(sources_of(world, account_id, settlement, terms.at_us), taken, lease.account_id)
    deposits = max(deposits, deposits_of(taken))
    parts = collect(
        sources, wanted, lease_account_id=lease.account_id, deposits=deposits, purpose=purpose
    )
    if total(parts) < least:
        raise Refused(Reason.CREDIT_TOO_LOW, needed=least, available=total(parts))
    return parts


def _require_no_debt(world: World, account_id: str) -> None:
    """Raises Refused: UNPAID_DEBT."""
    owed = world.balance(f"party:{account_id}:owed")
    if owed > 0:
        raise Refused(Reason.UNPAID_DEBT, owed=owed)


def decide_ready(command: ReadyLease, world: World) -> list[Change]:
    """Billing starts when the node says the workload runs, at the price locked here.

    Too late is too late, whether or not the timer has closed the lease yet.
    """
    lease = lease_of(world, command.lease_id)
    reserved = lease.reserved
    is_the_node = reserved is not None and reserved.node_id == command.node_id
    if is_the_node and (lease.is_running or lease.status == "gang_waiting"):
        return []
    if lease.status != "reserved" or reserved is None or reserved.node_id != command.node_id:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if command.at_us >= lease.ready_until_us:
        raise Refused(Reason.LEASE_STATE, ready_until_us=lease.ready_until_us)
    asked = lease.requested
    assert asked is not None
    _require_sealed(command, asked)
    stream = Stream("lease", command.lease_id)
    ready = LeaseReady(
        lease_id=command.lease_id,
        node_id=command.node_id,
        endpoint=command.endpoint,
        at_us=command.at_us,
        credentials=command.credentials,
    )
    deposits = deposits_at_opening(world, command.lease_id, command.at_us)
    return [Change(stream, ready), Change(stream, opened(lease, command.at_us)), *deposits]


def opened(lease: Lease, at_us: int) -> LeaseOpened:
    """The fact that starts billing at a moment: the price is locked and the funded end known."""
    asked, reserved = lease.requested, lease.reserved
    assert asked is not None
    assert reserved is not None
    funded_to_us = _funded_to_us(lease, lease.held, at_us)
    term_end_us = None if lease.term_us is None else at_us + lease.term_us
    if term_end_us is not None:
        # A fixed term is funded in full; its end need not be a whole second after the opening.
        funded_to_us = max(funded_to_us, term_end_us)
    return LeaseOpened(
        lease_id=asked.lease_id,
        price_per_gpu_hour=reserved.price_per_gpu_hour,
        opened_at_us=at_us,
        funds_end_us=funded_to_us,
        term_end_us=term_end_us,
        at_us=at_us,
    )


def _require_sealed(command: ReadyLease, asked: LeaseRequested) -> None:
    """Credentials are for the key the renter named; without one nobody could read them.

    Raises Refused: ENCRYPTION_KEY_UNKNOWN, AMOUNT_OUT_OF_RANGE.
    """
    if command.credentials is None:
        return
    if asked.encryption_key is None:
        raise Refused(Reason.ENCRYPTION_KEY_UNKNOWN, lease_id=command.lease_id)
    if len(command.credentials) > CREDENTIALS_CHARACTERS_MAX:
        raise Refused(
            Reason.AMOUNT_OUT_OF_RANGE, field="credentials", at_most=CREDENTIALS_CHARACTERS_MAX
        )


def _funded_to_us(lease: Lease, held: Held, opened_at_us: int) -> int:
    """When the first of the two holds ends. Time not reported yet counts as if it were billed."""
    reserved = lease.reserved
    assert reserved is not None
    ends = [
        funds_end_us(
            opened_at_us,
            lease.charge_units + total(for_purpose(held, None)),
            reserved.price_per_gpu_hour.units,
            lease.gpu_ppm_total,
        )
    ]
    paused_us = sum(one.to_us - one.from_us for one in lease.pauses)
    if reserved.federated is not None:
        units = lease.federated_units(lease.ppm_us) + total(for_purpose(held, FEDERATED))
        fee = reserved.federated.fee_per_hour.units
        ends.append(fee_funds_end_us(opened_at_us, units, fee))
    return min(min(ends) + paused_us, TIME_MAX_US)


def decide_top_up(command: TopUpLease, world: World) -> list[Change]:
    """More credits, and a later end. What has ended stays ended, whether or not a timer said so.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, AMOUNT_NOT_POSITIVE, UNPAID_DEBT, CREDIT_TOO_LOW,
    BUDGET_EXHAUSTED.
    """
    lease = lease_of(world, command.lease_id)
    asked, reserved = lease.requested, lease.reserved
    takes_money = lease.is_live or lease.is_running
    if not takes_money or asked is None or reserved is None:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if lease.opened is not None and command.at_us >= lease.window_end_us:
        raise Refused(Reason.LEASE_STATE, ended_at_us=lease.window_end_us)
    if command.federated and reserved.federated is None:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, federated=False)
    if command.amount.units <= 0 or command.amount.asset is not Asset.CREDIT:
        raise Refused(Reason.AMOUNT_NOT_POSITIVE, field="amount")
    parts_max = PARTS_MAX if command.account_id == asked.account_id else PARTS_MAX // 2
    if len(lease.held) >= parts_max:
        raise Refused(Reason.COUNT_OUT_OF_RANGE, deposits=len(lease.held), at_most=parts_max)
    open_account(world, command.account_id)
    _require_no_debt(world, command.account_id)
    wanted = command.amount.units
    if command.at_most and command.account_id == asked.account_id:
        wanted = left_of(world, lease.party, wanted, command.at_us)
    parts = _collected(
        world, command.account_id, replace(reserved, at_us=command.at_us),
        1 if command.at_most else wanted, wanted,
        lease=asked, deposits=lease.deposits, purpose=FEDERATED if command.federated else None,
    )  # fmt: skip
    held = (*lease.held, *parts)
    opened = lease.opened
    ends_us = None if opened is None else _funded_to_us(lease, held, opened.opened_at_us)
    if lease.term_end_us is not None and ends_us is not None:
        ends_us = max(ends_us, lease.term_end_us)
    counted, budgets = count_budgets(world, lease.party, command.account_id, parts, command.at_us)
    topped = LeaseToppedUp(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        depositor_account_id=command.account_id,
        parts=parts,
        put_in=credit(lease.put_in_units + total(parts)),
        funds_end_us=ends_us,
        at_us=command.at_us,
        counted=counted or None,
    )
    return [Change(Stream("lease", command.lease_id), topped), *budgets]


def extended(
    lease: Lease, command: ExtendLease, world: World
) -> tuple[LeaseExtended, list[Change]]:
    """A longer term: what the whole of it may cost above what was put in is held now.

    Raises Refused: OFFER_WITHDRAWN, OFFER_MISMATCH, NODE_IN_MAINTENANCE, UNPAID_DEBT,
    CREDIT_TOO_LOW, BUDGET_EXHAUSTED.
    """
    asked, reserved, opened = lease.requested, lease.reserved, lease.opened
    assert asked is not None
    assert reserved is not None
    assert lease.term_us is not None
    term_us = lease.term_us + command.more_us
    begins_us = command.at_us if opened is None else opened.opened_at_us
    _require_offered(reserved.offer_id, begins_us + term_us, world)
    _require_no_maintenance(reserved.node_id, begins_us + lease.term_us, begins_us + term_us, world)
    parts = _for_longer_term(lease, reserved, asked, term_us, command.at_us, world)
    counted, budgets = count_budgets(world, lease.party, asked.account_id, parts, command.at_us)
    term_end_us = None if opened is None else opened.opened_at_us + term_us
    ends_us = None
    if opened is not None and term_end_us is not None:
        ends_us = max(_funded_to_us(lease, (*lease.held, *parts), begins_us), term_end_us)
    fact = LeaseExtended(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        term_us=term_us,
        parts=parts,
        put_in=credit(lease.put_in_units + total(parts)),
        term_end_us=term_end_us,
        funds_end_us=ends_us,
        at_us=command.at_us,
        counted=counted or None,
    )
    return fact, budgets


def _require_offered(offer_id: str, until_us: int, world: World) -> None:
    """Raises Refused: OFFER_WITHDRAWN, OFFER_MISMATCH."""
    if not offer_of(world, offer_id).is_open:
        raise Refused(Reason.OFFER_WITHDRAWN, offer_id=offer_id)
    available_until_us = existing_offer(world, offer_id).available_until_us
    if available_until_us is not None and available_until_us < until_us:
        raise Refused(Reason.OFFER_MISMATCH, available_until_us=available_until_us)


def _for_longer_term(
    lease: Lease,
    reserved: LeaseReserved,
    asked: LeaseRequested,
    term_us: int,
    at_us: int,
    world: World,
) -> Held:
    """What is missing of the largest possible charge, and of the federated fee."""
    terms = replace(reserved, at_us=at_us)
    whole = charge_for(lease.gpu_ppm_total * term_us // PPM, reserved.price_per_gpu_hour.units)
    missing = max(0, whole - lease.charge_units - lease.held_units)
    parts: Held = ()
    if missing:
        _require_no_debt(world, asked.account_id)
        parts = _collected(
            world, asked.account_id, terms, missing, missing, lease=asked, deposits=lease.deposits
        )
    if reserved.federated is None:
        return parts
    fee = fee_for(term_us, reserved.federated.fee_per_hour.units)
    put_in = lease.federated_units(lease.ppm_us) + total(for_purpose(lease.held, FEDERATED))
    if fee <= put_in:
        return parts
    _require_no_debt(world, reserved.federated.account_id)
    return (*parts, *_collected(
        world, reserved.federated.account_id, terms, fee - put_in, fee - put_in, lease=asked,
        deposits=lease.deposits, taken=parts, purpose=FEDERATED,
    ))  # fmt: skip


def refill_due(lease: Lease, lease_id: str, now_us: int) -> TopUpLease | None:
    """The top-up that keeps a lease with `refill` going: an hour more, when less than half of one
    is funded.
    """
    asked, opened = lease.requested, lease.opened
    if asked is None or not asked.refill or opened is None or lease.closed is not None:
        return None
    if lease.paused_at_us is not None:
        return None
    price = opened.price_per_gpu_hour.units
    # The hold that it adds to: where the federated fee's hold ends first, more for usage moves no
    # end, and it would be asked again and again until the balance is empty.
    funds_us = funds_end_us(
        opened.opened_at_us, lease.charge_units + lease.held_units, price, lease.gpu_ppm_total
    ) + lease.paused_us(now_us)
    if not now_us < lease.window_end_us or funds_us >= now_us + MIN_RUNWAY_US // 2:
        return None
    hour = charge_for(lease.gpu_ppm_total * MIN_RUNWAY_US // PPM, price)
    return TopUpLease(
        lease_id=lease_id, account_id=asked.account_id, amount=credit(max(1, hour)),
        at_us=now_us, at_most=True,
    )  # fmt: skip


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    RequestLease: decide_request,
    ReserveLease: decide_reserve,
    TopUpLease: decide_top_up,
}
