"""A longer fixed term, at the price that is locked.

    put in >= charge(the whole term), and the federated fee of it          after the extension

What the longer term may cost above what was put in is held at once, and nothing is promised beyond
what the offer and the announced maintenance allow. A reserved term is longer by months of the
provider's list, and only while the list has them at the price and the refund that are locked.
"""

from __future__ import annotations

from domain.lease.budgets import count_budgets
from domain.lease.funds import total
from domain.lease.holding import funded_to_us, hold_for_longer_term
from domain.lease.lease import Lease, LeaseReserved
from domain.lease.reserved_term import MONTH_US
from domain.lease.turns import ExtendLease, LeaseExtended
from domain.leasing.terms import require_no_maintenance
from domain.market.offer import existing_offer, offer_of
from domain.market.offer_prices import prices_of
from domain.market.reasons import MarketReason
from domain.money import credit
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, World


def extended(
    lease: Lease, command: ExtendLease, world: World
) -> tuple[LeaseExtended, list[Change]]:
    """A longer term: what the whole of it may cost above what was put in is held now.

    Raises Refused: TERM_NOT_OFFERED, OFFER_WITHDRAWN, OFFER_MISMATCH, NODE_IN_MAINTENANCE,
    UNPAID_DEBT, CREDIT_TOO_LOW, BUDGET_EXHAUSTED.
    """
    asked, reserved, opened = lease.requested, lease.reserved, lease.opened
    assert asked is not None
    assert reserved is not None
    assert lease.term_us is not None
    _require_listed(reserved, command.more_us, world)
    term_us = lease.term_us + command.more_us
    begins_us = command.at_us if opened is None else opened.opened_at_us
    _require_offered(reserved.offer_id, begins_us + term_us, world)
    require_no_maintenance(reserved.node_id, begins_us + lease.term_us, begins_us + term_us, world)
    parts = hold_for_longer_term(lease, reserved, asked, term_us, command.at_us, world)
    counted, budgets = count_budgets(world, lease.party, asked.account_id, parts, command.at_us)
    term_end_us = None if opened is None else opened.opened_at_us + term_us
    ends_us = None
    if opened is not None and term_end_us is not None:
        ends_us = max(funded_to_us(lease, (*lease.held, *parts), begins_us), term_end_us)
    fact = LeaseExtended(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        term_us=term_us,
        parts=parts,
        put_in=credit(lease.put_in_units + total(parts)),
        term_end_us=term_end_us,
        funds_end_us=ends_us,
        at_us=command.at_us,
        counted=counted,
    )
    return fact, budgets


def _require_listed(reserved: LeaseReserved, more_us: int, world: World) -> None:
    """Raises Refused: TERM_NOT_OFFERED, for more of a reserved term than whole months of the list,
    or at another price or refund.
    """
    prepaid = reserved.prepaid
    if prepaid is None:
        return
    months = more_us // MONTH_US
    line = prices_of(world, reserved.offer_id).reserved(months)
    if more_us % MONTH_US or line is None:
        raise Refused(PricesReason.TERM_NOT_OFFERED, months=months, offer_id=reserved.offer_id)
    is_same = reserved.own or line.price_per_gpu_hour == reserved.price_per_gpu_hour
    if not is_same or line.refund_ppm != prepaid.refund_ppm:
        raise Refused(
            PricesReason.TERM_NOT_OFFERED,
            months=months,
            rule="the list has changed: reserve anew",
            price=line.price_per_gpu_hour.units,
            locked=reserved.price_per_gpu_hour.units,
        )


def _require_offered(offer_id: str, until_us: int, world: World) -> None:
    """Raises Refused: OFFER_WITHDRAWN, OFFER_MISMATCH."""
    if not offer_of(world, offer_id).is_open:
        raise Refused(MarketReason.OFFER_WITHDRAWN, offer_id=offer_id)
    available_until_us = existing_offer(world, offer_id).available_until_us
    if available_until_us is not None and available_until_us < until_us:
        raise Refused(MarketReason.OFFER_MISMATCH, available_until_us=available_until_us)
