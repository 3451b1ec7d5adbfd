"""The credits a lease holds before its time is used, and until when they last.

    held for usage >= charge(term), or of an open end charge(one hour)     when it is reserved
    funds end == the earlier end of the two holds, never before the term's       ever after

Two holds: for usage, and for the federated fee where the job is somebody else's. The parts of an
escrow and their order are those of `domain/lease/funds.py`.
"""

from __future__ import annotations

from domain.frozen import replace
from domain.funds.funding import require_no_debt, sources_of
from domain.funds.reasons import FundsReason
from domain.gpu_time import charge_for, fee_for
from domain.lease.escrow import TIME_MAX_US, funds_end_us
from domain.lease.funds import (
    FEDERATED,
    Held,
    collect,
    deposits_of,
    fee_funds_end_us,
    for_purpose,
    less,
    total,
)
from domain.lease.lease import (
    FEDERATED_HOLD_US,
    MIN_RUNWAY_US,
    FederatedTerms,
    Lease,
    LeaseRequested,
    LeaseReserved,
)
from domain.money import PPM
from domain.refusal import Refused
from domain.stream import World


def hold_for_terms(asked: LeaseRequested, terms: LeaseReserved, world: World) -> Held:
    """Hold the largest possible charge of a fixed term, else the funds given (an hour at least),
    and the federated fee for as long.

    Raises Refused: UNPAID_DEBT, CREDIT_TOO_LOW.
    """
    require_no_debt(world, asked.account_id)
    rate = asked.gpu_count * terms.share_ppm
    price = terms.price_per_gpu_hour.units
    least = charge_for(rate * (asked.term_us or MIN_RUNWAY_US) // PPM, price)
    needed = least if asked.term_us is not None or asked.funds is None else asked.funds.units
    if needed < least:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=least, available=needed, what="funds")
    parts = collected(world, asked.account_id, terms, needed, needed, lease=asked)
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
    require_no_debt(world, federated.account_id)
    fee = federated.fee_per_hour.units
    least = fee_for(asked.term_us or MIN_RUNWAY_US, fee)
    wanted = least if asked.term_us is not None else fee_for(FEDERATED_HOLD_US, fee)
    return collected(
        world,
        federated.account_id,
        terms,
        least,
        wanted,
        lease=asked,
        taken=taken,
        purpose=FEDERATED,
    )


def hold_for_longer_term(
    lease: Lease,
    reserved: LeaseReserved,
    asked: LeaseRequested,
    term_us: int,
    at_us: int,
    world: World,
) -> Held:
    """What is missing of the largest possible charge, and of the federated fee.

    Raises Refused: UNPAID_DEBT, CREDIT_TOO_LOW.
    """
    terms = replace(reserved, at_us=at_us)
    whole = charge_for(lease.gpu_ppm_total * term_us // PPM, reserved.price_per_gpu_hour.units)
    missing = max(0, whole - lease.charge_units - lease.held_units)
    parts: Held = ()
    if missing:
        require_no_debt(world, asked.account_id)
        parts = collected(
            world, asked.account_id, terms, missing, missing, lease=asked, deposits=lease.deposits
        )
    if reserved.federated is None:
        return parts
    fee = fee_for(term_us, reserved.federated.fee_per_hour.units)
    put_in = lease.federated_units(lease.ppm_us) + total(for_purpose(lease.held, FEDERATED))
    if fee <= put_in:
        return parts
    require_no_debt(world, reserved.federated.account_id)
    return (
        *parts,
        *collected(
            world,
            reserved.federated.account_id,
            terms,
            fee - put_in,
            fee - put_in,
            lease=asked,
            deposits=lease.deposits,
            taken=parts,
            purpose=FEDERATED,
        ),
    )


def collected(
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
    pay_with = "cash" if purpose == FEDERATED else terms.pay_with
    sources = less(sources_of(world, account_id, pay_with, terms.at_us), taken, lease.account_id)
    deposits = max(deposits, deposits_of(taken))
    parts = collect(
        sources, wanted, lease_account_id=lease.account_id, deposits=deposits, purpose=purpose
    )
    if total(parts) < least:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=least, available=total(parts))
    return parts


def funded_to_us(lease: Lease, held: Held, opened_at_us: int) -> int:
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
