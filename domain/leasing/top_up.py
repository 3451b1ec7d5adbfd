"""More credits for a lease, and a later end: by hand, or by the timer that keeps it going.

    parts in the escrow < PARTS_MAX                before a deposit of its renter; of others, half

So nobody else can fill an escrow and lock its renter out of it.
"""

from __future__ import annotations

from typing import Any

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.funding import require_no_debt
from domain.funds.reasons import FundsReason
from domain.gpu_time import charge_for
from domain.lease.budgets import count_budgets, left_of
from domain.lease.escrow import funds_end_us
from domain.lease.funds import FEDERATED, total
from domain.lease.holding import collected, funded_to_us
from domain.lease.lease import (
    MIN_RUNWAY_US,
    PARTS_MAX,
    Lease,
    LeaseRequested,
    LeaseReserved,
    LeaseToppedUp,
    TopUpLease,
    lease_of,
    lease_stream,
)
from domain.leasing.escrow_sharing import FundEscrow, decide_fund
from domain.money import PPM, Asset, credit
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World


def decide_top_up(command: TopUpLease, world: World) -> list[Change]:
    """More credits, and a later end. What has ended stays ended, whether or not a timer said so.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, AMOUNT_NOT_POSITIVE, UNPAID_DEBT, CREDIT_TOO_LOW,
    COUNT_OUT_OF_RANGE, ACCOUNT_CLOSED, BUDGET_EXHAUSTED.
    """
    lease = lease_of(world, command.lease_id)
    asked, reserved = _require_takes_money(lease, command)
    if lease.escrow_id is not None:
        fund = FundEscrow(
            job_id=lease.escrow_id,
            account_id=command.account_id,
            amount=command.amount,
            at_us=command.at_us,
            key_id=asked.key_id,
        )
        return decide_fund(fund, world)
    open_account(world, command.account_id)
    require_no_debt(world, command.account_id)
    wanted = command.amount.units
    if command.at_most and command.account_id == asked.account_id:
        wanted = left_of(world, lease.party, wanted, command.at_us)
    parts = collected(
        world,
        command.account_id,
        replace(reserved, at_us=command.at_us),
        1 if command.at_most else wanted,
        wanted,
        lease=asked,
        deposits=lease.deposits,
        purpose=FEDERATED if command.federated else None,
    )
    held = (*lease.held, *parts)
    opened = lease.opened
    ends_us = None if opened is None else funded_to_us(lease, held, opened.opened_at_us)
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
        counted=counted,
    )
    return [Change(lease_stream(command.lease_id), topped), *budgets]


def _require_takes_money(lease: Lease, command: TopUpLease) -> tuple[LeaseRequested, LeaseReserved]:
    """What was asked for and reserved, of a lease that this deposit can still prolong.

    Raises Refused: LEASE_STATE, AMOUNT_NOT_POSITIVE, COUNT_OUT_OF_RANGE.
    """
    asked, reserved = lease.requested, lease.reserved
    takes_money = lease.is_live or lease.is_running
    if not takes_money or asked is None or reserved is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if lease.opened is not None and command.at_us >= lease.window_end_us:
        raise Refused(FleetReason.LEASE_STATE, ended_at_us=lease.window_end_us)
    if command.federated and reserved.federated is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, federated=False)
    if command.amount.units <= 0 or command.amount.asset is not Asset.CREDIT:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="amount")
    parts_max = PARTS_MAX if command.account_id == asked.account_id else PARTS_MAX // 2
    if len(lease.held) >= parts_max:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, deposits=len(lease.held), at_most=parts_max)
    return asked, reserved


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
        lease_id=lease_id,
        account_id=asked.account_id,
        amount=credit(max(1, hour)),
        at_us=now_us,
        at_most=True,
    )


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {TopUpLease: decide_top_up}
