"""Opening a lease that is not simply let at the offer's price: what is recorded for each module.

An auction and a standing bid only ask, and wait; whole months and the modules of plug-ins are
placed at once. The request and what goes with it are one append.
"""

from __future__ import annotations

from typing import Any

from api import placing
from api.pricing import Pricing
from api.service import Service
from domain.auction import OpenAuction
from domain.constraints import NOTHING, Constraints
from domain.duration import SECOND_US
from domain.lease import MIN_RUNWAY_US, LeaseRequested, RequestLease
from domain.matching import Need
from domain.offer import SETTLEMENTS
from domain.pool import pool_stream
from domain.pricing import (
    AUCTION,
    DEFAULT,
    POSTED,
    STANDING,
    TERM,
    ContinuousBid,
    label,
    module_for,
)
from domain.refusal import Reason, Refused
from domain.reserved_term import term_us
from domain.standing_bid import SetStandingBid

STANDING_MODULE = ContinuousBid()


def pricing_for(
    service: Service, asked: Pricing | None, constraints: Constraints | None
) -> Pricing | None:
    """How a request is priced, by its pool first; None: at the offer's price, at once.

    Raises Refused: PRICING_UNKNOWN, PRICING_NOT_OFFERED.
    """
    pool_id = None if constraints is None else constraints.pool_id
    of_pool: str | None = None
    if pool_id is not None:
        pool = service.ledger.market.state_of(pool_stream(pool_id))
        of_pool = pool.policy.pricing if pool.created is not None else None
    module = module_for(None if asked is None else asked.module, of_pool)
    if module.name == DEFAULT:
        return None
    if asked is not None:
        return asked
    if module.kind in (STANDING, TERM):
        raise Refused(
            Reason.PRICING_NOT_OFFERED, pool_id=pool_id, pricing=module.name,
            rule="name your bid" if module.kind == STANDING else "name your months",
        )  # fmt: skip
    return Pricing(module=module.name)


def term_of(pricing: Pricing | None, term_seconds: int | None) -> int | None:
    """The fixed term of a lease, in microseconds. Raises Refused: TERM_NOT_OFFERED."""
    if pricing is None or pricing.months is None:
        return None if term_seconds is None else term_seconds * SECOND_US
    if term_seconds is not None:
        raise Refused(Reason.TERM_NOT_OFFERED, rule="months are the term", months=pricing.months)
    return term_us(pricing.months)


def following(service: Service, request: RequestLease, spec: Any, pricing: Pricing) -> list[Any]:
    """What is recorded right after a priced request. `spec`: of its job.

    Raises Refused: NO_MATCH where it has to be placed at once and cannot.
    """
    module = module_for(pricing.module, None)
    now_us, lease_id = request.at_us, request.lease_id
    if module.kind == AUCTION:
        return [
            OpenAuction(
                lease_id=lease_id, pricing=module.name, at_us=now_us, bids_max=pricing.bids_max,
                closes_at_us=now_us + pricing.closes_in_seconds * SECOND_US, pick=pricing.pick,
                deposit=None if pricing.deposit is None else pricing.deposit.amount(),
            )
        ]  # fmt: skip
    if module.kind == STANDING:
        assert pricing.bid is not None
        price = pricing.bid.amount()
        return [SetStandingBid(lease_id=lease_id, price_per_gpu_hour=price, at_us=now_us)]
    need = need_for(request, spec)
    if module.kind == TERM:
        assert pricing.months is not None
        assert request.term_us is not None
        placed = placing.term_place(service, need, pricing.months, request.term_us, now_us)
    else:
        assert module.kind == POSTED
        until_us = now_us + (request.term_us or MIN_RUNWAY_US)
        placed = placing.posted_place(service, need, module, now_us, until_us)
    if placed is None:
        raise Refused(
            Reason.NO_MATCH, gpu_count=need.gpu_count, pricing=label(module),
            price_max=need.price_max, months=pricing.months,
        )  # fmt: skip
    return placing.taking(lease_id, label(module), placed, now_us)


def outranking(
    service: Service,
    request: RequestLease | LeaseRequested,
    spec: Any,
    refused: Refused,
    now_us: int,
) -> list[Any]:
    """A lease on demand outranks every standing bid: where nothing is free, the lowest of them
    makes room. Raises the refusal again when there is none to pause.

    In a pool that keeps a queue this is asked when it is decided whose turn it is.
    """
    if refused.reason is not Reason.NO_MATCH:
        raise refused
    need = need_for(request, spec)
    room = placing.room_on_demand(service, need, now_us)
    if room is None:
        raise refused
    return placing.reserving(request.lease_id, room, None, label(STANDING_MODULE), now_us)


def need_for(request: RequestLease | LeaseRequested, spec: Any) -> Need:
    """What a request of this job asks of one node."""
    return Need(
        gpu_count=spec.gpu_count, share_ppm=spec.share_ppm, mem_ppm=spec.mem_ppm,
        models=spec.models, price_max=spec.max_price_per_gpu_hour.units,
        account_id=request.account_id,
        settlements=SETTLEMENTS if request.settlement is None else (request.settlement,),
        constraints=spec.constraints or NOTHING, is_fixed_term=request.term_us is not None,
    )  # fmt: skip
