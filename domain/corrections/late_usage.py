"""Late usage: signed reports that came after a lease was settled are paid only by an adjustment.

    charge(all that was counted) - charge(settled) == sum of the lease's late adjustments
    fee + provider + client + platform + burn == charge_new;   drawn + owed == charge_new

A settled lease never reopens. Reports that arrive later are recorded and cost nothing, until an
operator or governance decides that they count: then they are counted by the rules of every other
row, priced at the lease's locked price, and split as cumulative differences, so it makes no
difference how often or in which pieces that is done. The renter's balance pays in spend order, and
the rest is owed. The provider's part goes to its holdback and matures like any other posting. The
fee of a federated job's creator is not charged late. Source: design economics 4 and 17.
"""

from __future__ import annotations

from typing import Any

from domain.corrections.reasons import CorrectionsReason
from domain.fleet.reasons import FleetReason
from domain.funds.draw import draw
from domain.income.adjustment import (
    ADJUSTMENTS_MAX,
    BURN_DUE,
    REVENUE,
    BookLine,
    ChargedLine,
    LateUsage,
    book,
    corrections_of,
)
from domain.income.reasons import IncomeReason
from domain.lease.lease import Lease, SettleLease, UsageAccrued, lease_of
from domain.leasing.accrual import late_accrual
from domain.metering.counting import UsageRow, Watermark
from domain.money import Big
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLateUsage:
    """`rows`: the lease's rows of every report of the lane after what was read last, up to
    `usage_position`. `settled_position`: of the lease's `LeaseSettled`, which this corrects.
    """

    adjustment_id: str
    lease_id: str
    settled_position: int
    lane: int
    usage_position: int
    rows: tuple[UsageRow, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Counted:
    """How much of a lease's usage has been counted and charged, in time and late."""

    usage_position: int
    ppm_us: Big
    charge_units: Big
    marks: tuple[Watermark, ...]


def counted_of(world: World, lease: Lease, settled_position: int) -> Counted:
    """Where the next late count goes on from."""
    late = corrections_of(world, settled_position).late
    if late is None:
        return Counted(lease.usage_position, lease.ppm_us, lease.charge_units, lease.marks)
    return Counted(late.usage_position, late.ppm_us, late.charge.units, late.watermarks)


def decide_bill(command: BillLateUsage, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE, USAGE_POSITION_FELL, NO_LATE_USAGE,
    ADJUSTMENT_TOO_LARGE.
    """
    lease = lease_of(world, command.lease_id)
    if not lease.is_over or lease.status == "archived" or lease.opened is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    state = corrections_of(world, command.settled_position)
    if command.adjustment_id in state.booked:
        return []
    if len(state.booked) >= ADJUSTMENTS_MAX:
        raise Refused(IncomeReason.ADJUSTMENT_TOO_LARGE, adjustments=len(state.booked))
    known = counted_of(world, lease, command.settled_position)
    accrued = late_accrual(
        lease,
        SettleLease(
            lease_id=command.lease_id,
            lane=command.lane,
            usage_position=command.usage_position,
            rows=tuple(row for row in command.rows if row.position > known.usage_position),
            at_us=command.at_us,
        ),
        usage_position=known.usage_position,
        ppm_us=known.ppm_us,
        charge_units=known.charge_units,
        marks=known.marks,
    )
    if not accrued.charge_new.units:
        raise Refused(CorrectionsReason.NO_LATE_USAGE, lease_id=command.lease_id)
    return _adjustment(command, lease, accrued, world)


def _adjustment(
    command: BillLateUsage, lease: Lease, accrued: UsageAccrued, world: World
) -> list[Change]:
    assert lease.reserved is not None
    units, pay_with = accrued.charge_new.units, lease.reserved.pay_with
    paid = draw(world, accrued.account_id, units, command.at_us, pay_with)
    debits = [
        BookLine(f"party:{one.account_id}:{one.source}", one.amount.units) for one in paid.drawn
    ]
    burned = sum(one.amount.units for one in paid.drawn) if pay_with == "burn" else 0
    owed = BookLine(f"party:{accrued.account_id}:owed", paid.owed.units)
    adjusted = book(
        ChargedLine(
            position=command.settled_position,
            lease_id=command.lease_id,
            volume_id=None,
            account_id=accrued.account_id,
            provider_account_id=accrued.provider_account_id,
            posted_at_us=command.at_us,
            charge=units,
            gpu_us=accrued.gpu_us_new,
            payers=(),
            payees=(),
            proven=True,
        ),
        [*debits, owed, *credits_of(accrued, burned)],
        adjustment_id=command.adjustment_id,
        reason="late_usage",
        cause=f"late_usage:{command.by}",
        returned=0,
        recovered=0,
        by=command.by,
        at_us=command.at_us,
        late=LateUsage(
            lane=command.lane,
            usage_position=command.usage_position,
            ppm_us=accrued.ppm_us,
            gpu_us_new=accrued.gpu_us_new,
            charge=accrued.charge,
            charge_new=accrued.charge_new,
            watermarks=accrued.watermarks,
        ),
    )
    reference = f"late_usage/{command.lease_id}"
    return [adjusted, *paid.counted(world, reference, command.at_us)]


def credits_of(accrued: UsageAccrued, burned: int) -> list[BookLine]:
    """Where what is new of an accrual goes, as its own posting would book it; `burned` of it is
    paid with credits that were bought by burning, and retired.
    """
    new = accrued.parts_new
    owners = [(accrued.provider_account_id, new.provider)]
    if accrued.owners:
        owners = [(part.account_id, part.units_new) for part in accrued.owners]
    if new.client:
        assert accrued.client_account_id is not None, accrued
        owners.append((accrued.client_account_id, new.client))
    assert 0 <= burned <= new.burn, accrued
    credits = [
        ("network:revenue:usage", new.fee),
        *((f"party:{account_id}:holdback", units) for account_id, units in owners),
        (REVENUE, new.platform),
        ("world:burned", burned),
        (BURN_DUE, new.burn - burned),
    ]
    return [BookLine(account, -units) for account, units in credits]


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {BillLateUsage: decide_bill}
