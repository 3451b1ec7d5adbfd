"""How a request for a lease is priced: by what it asks for, and by its pool first."""

from __future__ import annotations

from api.market.pricing import LeasePricingRequest
from api.process.service import Service
from domain.duration import SECOND_US
from domain.hardware.constraints import Constraints
from domain.lease.reserved_term import term_us
from domain.pools.pool import pool_stream
from domain.prices.modules import DEFAULT, STANDING, TERM, module_for
from domain.prices.reasons import PricesReason
from domain.refusal import Refused


def pricing_for(
    service: Service, asked: LeasePricingRequest | None, constraints: Constraints | None
) -> LeasePricingRequest | None:
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
            PricesReason.PRICING_NOT_OFFERED,
            pool_id=pool_id,
            pricing=module.name,
            rule="name your bid" if module.kind == STANDING else "name your months",
        )
    return LeasePricingRequest(module=module.name)


def term_of(pricing: LeasePricingRequest | None, term_seconds: int | None) -> int | None:
    """The fixed term of a lease, in microseconds. Raises Refused: TERM_NOT_OFFERED."""
    if pricing is None or pricing.months is None:
        return None if term_seconds is None else term_seconds * SECOND_US
    if term_seconds is not None:
        raise Refused(
            PricesReason.TERM_NOT_OFFERED, rule="months are the term", months=pricing.months
        )
    return term_us(pricing.months)
