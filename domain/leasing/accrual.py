"""What a lease has used and what that costs, hour by hour, and how it ends.

    charge_new == charge(all that was counted) - charge(counted before)      every accrual
    drawn + owed == charge_new + federated_new;   refund == held - drawn     to the unit
    owed == 0, unless money of the escrow was taken back (`domain/corrections/reversal.py`)

Everything is computed on cumulative totals and booked as a difference, so that no cutting into
hours changes a total. Facts, commands and state are those of `domain/lease/lease.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.cloud.quotas import give_back
from domain.duration import HOUR_US
from domain.fleet.device import device_of, device_stream, release
from domain.fleet.node import ended_with_its_job, existing_node
from domain.fleet.provider import provider_of
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import OwnerPart, handed_on_since, split_among
from domain.frozen import replace
from domain.gpu_time import charge_for, gpu_us
from domain.jobs.job import job_of
from domain.jobs.parts import ended
from domain.lease.budgets import uncount_budgets
from domain.lease.close_codes import may_give
from domain.lease.funds import FEDERATED, EscrowPart, Held, for_purpose, take, total, without
from domain.lease.lease import (
    LATE_UNITS_MAX,
    LATE_WINDOW_US,
    AccrueUsage,
    CloseLease,
    FederatedCharge,
    Lease,
    LeaseClosed,
    LeaseReserved,
    LeaseSettled,
    SettleLease,
    Unfunded,
    UsageAccrued,
    evolve,
    lease_of,
    lease_stream,
)
from domain.lease.reasons import LeaseReason
from domain.lease.reserved_term import TermEndedEarly, kept_of
from domain.leasing import escrow_sharing
from domain.leasing.closing import require_close_due
from domain.leasing.demands import room_asked
from domain.leasing.due import hour_end_us
from domain.leasing.escrow_sharing import drawing, drawn_of
from domain.leasing.work import failed_start
from domain.market.auction import deposits_at_cancelling
from domain.metering.counting import Passed, Pause, Reach, Watermark, Window, count, due
from domain.metering.reasons import MeteringReason
from domain.money import PPM, credit
from domain.pools.quota import release as release_quotas
from domain.prices.charge_split import Parts, peel
from domain.prices.provider_kinds import is_cloud
from domain.refusal import Refused
from domain.sites.reservation import release as release_name
from domain.storage import node_room
from domain.storage.volume import detach
from domain.stream import Change, World


def decide_accrue(command: AccrueUsage, world: World) -> list[Change]:
    """One finished hour. The hour counts from the opening, so postings fall where C-23 wants.

    Raises Refused: LEASE_UNKNOWN, LEASE_NOT_OPEN, ACCRUAL_NOT_DUE, USAGE_POSITION_FELL.
    """
    lease = lease_of(world, command.lease_id)
    if not lease.is_running and lease.status != "closing":
        raise Refused(LeaseReason.LEASE_NOT_OPEN, lease_id=command.lease_id, status=lease.status)
    assert lease.opened is not None
    until_us = hour_end_us(lease)
    if until_us > command.at_us:
        raise Refused(MeteringReason.ACCRUAL_NOT_DUE, due_us=until_us)
    if until_us >= lease.window_end_us:
        raise Refused(MeteringReason.ACCRUAL_NOT_DUE, settles_at_us=lease.window_end_us)
    accrued = _accrued(drawing(lease, world), command, until_us, rows_until_us=until_us)
    return [Change(lease_stream(command.lease_id), accrued), *_drawn(lease, accrued)]


def _drawn(lease: Lease, accrued: UsageAccrued) -> list[Change]:
    """What the escrow that it shares is told of an accrual."""
    return drawn_of(lease, accrued.drawn, accrued.charge.units, accrued.at_us)


def decide_close(command: CloseLease, world: World) -> list[Change]:
    """End the lease and free its devices. Closing twice gives no fact.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, LEASE_NOT_DUE, CLOSE_CODE_PARTY.
    """
    lease = lease_of(world, command.lease_id)
    if lease.closed is not None:
        return []
    if not may_give(command.party, command.code):
        raise Refused(LeaseReason.CLOSE_CODE_PARTY, party=command.party, code=command.code)
    require_close_due(lease, command)
    if lease.opened is None:
        return cancelled(lease, command, world)
    closed_at_us = max(
        lease.counted_until_us, min(command.closed_at_us, lease.window_end_us, command.at_us)
    )
    code = escrow_sharing.code_of(lease, command.code, world)
    return closing(lease, replace(command, code=code), closed_at_us, world)


def closing(
    lease: Lease, command: CloseLease, closed_at_us: int, world: World, *, taken: Held = ()
) -> list[Change]:
    """The end of a lease that runs: what is above the largest charge still possible goes back.

    `taken`: what left the escrow in this same decision.
    """
    asked, stream = lease.requested, lease_stream(command.lease_id)
    assert asked is not None
    surplus = _surplus(lease, closed_at_us) if lease.escrow_id is None else ()
    early = _ended_early(lease, command, closed_at_us, surplus, world)
    closed = LeaseClosed(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        closed_at_us=closed_at_us,
        party=command.party,
        code=command.code,
        refund=surplus if early is None else without(surplus, early.drawn),
        at_us=command.at_us,
        by=command.by,
        evidence=command.evidence,
    )
    assert lease.reserved is not None
    budgets = uncount_budgets(
        world,
        command.lease_id,
        lease.counted,
        (*taken, *closed.refund),
        command.at_us,
        is_final=False,
    )
    parts = ended(asked, command.code, command.at_us, world)
    parts = [*parts, *failed_start(lease, closed, world)]
    released = _released(lease, command.at_us, world)
    kept = [] if early is None else [Change(stream, early)]
    shared = escrow_sharing.closed(lease, closed_at_us, command.at_us, world)
    node_id = lease.reserved.node_id
    ended_node = ended_with_its_job(world, node_id, command.lease_id, command.at_us)
    changes = [*kept, Change(stream, closed), *released, *ended_node]
    return [*changes, *budgets, *parts, *shared]


def _ended_early(
    lease: Lease, command: CloseLease, closed_at_us: int, surplus: Held, world: World
) -> TermEndedEarly | None:
    """What the renter of a reserved term leaves behind by ending it; None: everything goes back.

    A provider who took the lease back keeps nothing, nor one whose node was handed on while the
    lease was paused, so that it cannot go on; one whose node has been silent for a moment keeps its
    part: after half an hour of silence the timer ends it, and everything goes back.
    """
    reserved, term_us = lease.reserved, lease.term_us
    assert reserved is not None
    prepaid = reserved.prepaid
    is_renters = command.party in ("renter", "client") and lease.status != "reclaiming"
    if prepaid is None or not is_renters:
        return None
    if lease.status == "paused" and handed_on_since(world, reserved.node_id, reserved.at_us):
        return None
    assert term_us is not None
    price = reserved.price_per_gpu_hour.units
    whole = charge_for(lease.gpu_ppm_total * term_us // PPM, price)
    unused = whole - charge_for(lease.gpu_ppm_total * lease.ran_us(closed_at_us) // PPM, price)
    kept = kept_of(max(0, unused), prepaid.refund_ppm)
    if not kept:
        return None
    parts = _parts(reserved, kept)
    assert parts.total == kept, (parts, kept)
    return TermEndedEarly(
        lease_id=command.lease_id,
        account_id=reserved.account_id,
        provider_account_id=reserved.provider_account_id,
        months=prepaid.months,
        refund_ppm=prepaid.refund_ppm,
        unused=credit(unused),
        refunded=credit(unused - kept),
        kept=credit(kept),
        parts=parts,
        drawn=take(for_purpose(surplus, None), kept),
        at_us=command.at_us,
        client_account_id=reserved.client_account_id,
        owners=_owners(reserved, parts.provider, 0),
        node_id=reserved.node_id,
    )


def decide_settle(command: SettleLease, world: World) -> list[Change]:
    """The last part of an hour, and the rest of the escrow back, in one append.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, ACCRUAL_NOT_DUE, USAGE_POSITION_FELL,
    USAGE_INCOMPLETE.
    """
    lease = lease_of(world, command.lease_id)
    if lease.is_over:
        return []
    if lease.status != "closing":
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    assert lease.opened is not None
    assert lease.closed is not None
    closed_at_us = lease.closed.closed_at_us
    if closed_at_us > hour_end_us(lease):
        raise Refused(MeteringReason.ACCRUAL_NOT_DUE, hour_index=lease.hours_accrued)
    stream, changes = lease_stream(command.lease_id), []
    accrued = _accrued(drawing(lease, world), command, closed_at_us, rows_until_us=None)
    after, shared = evolve(lease, accrued), _drawn(lease, accrued)
    is_complete = _is_complete(after, command.passed, closed_at_us)
    if not is_complete and command.at_us < closed_at_us + LATE_WINDOW_US:
        raise Refused(
            MeteringReason.USAGE_INCOMPLETE, lease_id=command.lease_id, until_us=closed_at_us
        )
    if accrued.gpu_us_new or accrued.refused or lease.accrued_until_us < closed_at_us:
        changes += [Change(stream, accrued), *shared]
    else:
        after, shared = lease, []
    settled = LeaseSettled(
        lease_id=command.lease_id,
        account_id=lease.closed.account_id,
        charge=credit(after.charge_units),
        gpu_us=after.gpu_us,
        refund=after.held,
        at_us=command.at_us,
        disputed=bool(lease.disputes),
    )
    budgets = uncount_budgets(
        world,
        command.lease_id,
        lease.counted,
        settled.refund,
        command.at_us,
        is_final=not _may_come_back(lease),
    )
    last = escrow_sharing.over(lease, command.at_us, world, drawn=shared)
    return [*changes, Change(stream, settled), *budgets, *last]


def accrued_so_far(lease: Lease, command: AccrueUsage) -> UsageAccrued:
    """What accruing every row of `command` at once would add, due or not. Nothing is decided.

    Charges are cumulative, so this is what the accruals still to come add for these rows, however
    the rows fall into hours.
    """
    until_us = max(lease.accrued_until_us, min(command.at_us, lease.window_end_us))
    if lease.escrow_id is not None:  # which of the shared deposits will pay is not known yet
        lease = replace(lease, held=_nobodys())
    return _accrued(lease, command, until_us, rows_until_us=None)


def window_of(lease: Lease) -> Window:
    """The time of an open lease that can be billed: a pause that is on ends it for now."""
    assert lease.reserved is not None
    assert lease.opened is not None
    pauses = lease.pauses
    if lease.paused_at_us is not None:
        pauses = (*pauses, Pause(lease.paused_at_us, lease.window_end_us))
    return Window(
        lease.opened.opened_at_us,
        lease.window_end_us,
        lease.reserved.device_ids,
        lease.reserved.share_ppm,
        pauses,
    )


SKEW_US = HOUR_US
"""How far the clocks of two servers may be apart: reports this much older than a lease are read."""


def reports_from_us(reserved: LeaseReserved) -> int:
    """When the first report that may name a lease was received. By whole hours, so that the leases
    of a lane ask the same question.
    """
    return (reserved.at_us - SKEW_US) // HOUR_US * HOUR_US


def _is_complete(lease: Lease, passed: Iterable[Passed], until_us: int) -> bool:
    """Whether nothing of the lease is still to come:

        for each device   max(end of its last counted row, moments passed) >= end of the lease

    A row may end a little before the lease did by the server's clock; where the device's own time
    goes on behind it, that is all there is. A pause that lasts until the end is no time to be
    reported.
    """
    assert lease.reserved is not None
    if lease.pauses and lease.pauses[-1].to_us >= until_us:
        until_us = min(until_us, lease.pauses[-1].from_us)
    elif lease.paused_at_us is not None:
        until_us = min(until_us, lease.paused_at_us)
    reached = {mark.device_id: mark.wall_end_us for mark in lease.marks}
    for one in passed:
        reached[one.device_id] = max(one.at_us, reached.get(one.device_id, 0))
    return all(reached.get(device, 0) >= until_us for device in lease.reserved.device_ids)


def _accrued(
    lease: Lease, command: AccrueUsage | SettleLease, until_us: int, rows_until_us: int | None
) -> UsageAccrued:
    """Count the rows, price the total, and book only what is new: cumulative rounding."""
    reserved, opened, asked = lease.reserved, lease.opened, lease.requested
    assert reserved is not None
    assert opened is not None
    assert asked is not None
    if command.usage_position < lease.usage_position:
        raise Refused(MeteringReason.USAGE_POSITION_FELL, reached=lease.usage_position)
    window = window_of(lease)
    reached = Reach(lease.usage_position, lease.accrued_until_us)
    fresh = due(command.rows, reached, rows_until_us)
    counted = count(fresh.rows, window, {mark.device_id: mark for mark in lease.marks})
    ppm_us = lease.ppm_us + counted.ppm_us
    price = opened.price_per_gpu_hour.units
    charge_units = charge_for(gpu_us(ppm_us), price)
    parts = _parts(reserved, charge_units)
    assert parts.total == charge_units, (parts, charge_units)
    new_units = charge_units - lease.charge_units
    assert new_units >= 0, (charge_units, lease.charge_units)
    federated = lease.federated_units(ppm_us)
    federated_new = federated - lease.federated_units(lease.ppm_us)
    assert federated_new >= 0, (federated, federated_new)
    fee = FederatedCharge(credit(federated), credit(federated_new))
    paid_units, owed = _unfunded(lease, new_units)
    return UsageAccrued(
        lease_id=command.lease_id,
        hour_index=lease.hours_accrued,
        until_us=until_us,
        node_id=reserved.node_id,
        account_id=asked.account_id,
        provider_account_id=reserved.provider_account_id,
        client_id=asked.client_id,
        project_id=asked.project_id,
        end_user_ref=asked.end_user_ref,
        lane=command.lane,
        usage_position=command.usage_position,
        resume_position=(
            command.usage_position if fresh.resume_position is None else fresh.resume_position
        ),
        ppm_us=ppm_us,
        gpu_us=ppm_us // PPM,
        gpu_us_new=ppm_us // PPM - lease.gpu_us,
        charge=credit(charge_units),
        charge_new=credit(new_units),
        parts=parts,
        parts_new=parts - lease.parts,
        drawn=(
            *take(for_purpose(lease.held, None), paid_units),
            *take(for_purpose(lease.held, FEDERATED), federated_new),
        ),
        watermarks=counted.watermarks,
        refused=counted.refused,
        at_us=command.at_us,
        client_account_id=reserved.client_account_id,
        owners=_owners(reserved, parts.provider, lease.parts.provider),
        federated=None if reserved.federated is None else fee,
        owed=owed,
        escrow_id=lease.escrow_id,
    )


def _unfunded(lease: Lease, units: int) -> tuple[int, Unfunded | None]:
    """What the escrow pays of a charge, and what its reversed payment leaves unpaid."""
    held = total(for_purpose(lease.held, None))
    if lease.short_of is None or units <= held:
        return units, None
    return held, Unfunded(lease.short_of, credit(units - held))


def late_accrual(
    lease: Lease,
    command: SettleLease,
    *,
    usage_position: int,
    ppm_us: int,
    charge_units: int,
    marks: tuple[Watermark, ...],
) -> UsageAccrued:
    """What reports that came after the settlement add to what was counted and charged by then.

    Not a fact of the lease, which stays settled: `domain/corrections/late_usage.py` books it as an
    adjustment and draws the credits; `drawn` names none that exist.
    """
    assert lease.reserved is not None
    counted = replace(
        lease,
        usage_position=usage_position,
        ppm_us=ppm_us,
        charge_units=charge_units,
        parts=_parts(lease.reserved, charge_units),
        marks=marks,
        held=_nobodys(),
    )
    return _accrued(counted, command, lease.window_end_us, rows_until_us=None)


def _nobodys() -> Held:
    """Credits that do not exist, and are enough for anything."""
    return (
        EscrowPart("late", credit(LATE_UNITS_MAX)),
        EscrowPart("late", credit(LATE_UNITS_MAX), purpose=FEDERATED),
    )


def _owners(reserved: LeaseReserved, provider: int, before: int) -> tuple[OwnerPart, ...]:
    """The provider's cumulative part among the owners, and what is new of it; empty: it has one."""
    if not reserved.owners:
        return ()
    now = split_among(provider, reserved.owners, reserved.provider_account_id)
    earlier = dict(split_among(before, reserved.owners, reserved.provider_account_id))
    parts = tuple(OwnerPart(who, units, units - earlier[who]) for who, units in now)
    assert sum(part.units for part in parts) == provider, (parts, provider)
    assert all(part.units_new >= 0 for part in parts), parts
    return parts


def _parts(reserved: LeaseReserved, charge_units: int) -> Parts:
    """Own jobs pay the usage fee only; burned credits are retired whole; else the tariff's peel."""
    if reserved.pay_with == "burn":
        return Parts(fee=0, provider=0, platform=0, burn=charge_units)
    if reserved.own:
        return Parts(fee=charge_units, provider=0, platform=0, burn=0)
    return peel(
        charge_units,
        price=reserved.price_per_gpu_hour.units,
        fee_rate=reserved.fee_per_gpu_hour.units,
        provider_share_ppm=reserved.provider_share_ppm,
        burn_share_ppm=reserved.burn_share_ppm,
        split=reserved.split,
        has_client=reserved.client_account_id is not None,
    )


def cancelled(lease: Lease, command: CloseLease, world: World) -> list[Change]:
    """A lease that never opened ends at charge 0, and everything goes back at once."""
    assert lease.requested is not None
    account_id = lease.requested.account_id
    closed = LeaseClosed(
        lease_id=command.lease_id,
        account_id=account_id,
        closed_at_us=command.at_us,
        party=command.party,
        code=command.code,
        refund=(),
        at_us=command.at_us,
        by=command.by,
        evidence=command.evidence,
    )
    settled = LeaseSettled(
        lease_id=command.lease_id,
        account_id=account_id,
        charge=credit(0),
        gpu_us=0,
        refund=lease.held,
        at_us=command.at_us,
        disputed=False,
    )
    stream = lease_stream(command.lease_id)
    released = _released(lease, command.at_us, world)
    budgets = uncount_budgets(
        world,
        command.lease_id,
        lease.counted,
        settled.refund,
        command.at_us,
        is_final=not _may_come_back(lease),
    )
    parts = ended(lease.requested, command.code, command.at_us, world)
    parts = [*parts, *failed_start(lease, closed, world)]
    deposits = deposits_at_cancelling(world, lease, command.code, command.at_us)
    changes = [Change(stream, closed), Change(stream, settled), *released, *budgets]
    shared = escrow_sharing.over(lease, command.at_us, world)
    return [*changes, *parts, *deposits, *shared]


def _may_come_back(lease: Lease) -> bool:
    """Whether something is held for resources beside the GPU: it comes back after the lease."""
    return lease.reserved is not None and bool(lease.reserved.meter_maxima)


def released_devices(lease: Lease, at_us: int, world: World) -> list[Change]:
    """Every device the lease holds, given back on its own stream; a paused lease holds none."""
    reserved = lease.reserved
    if reserved is None or not lease.is_live:
        return []
    return [
        Change(
            device_stream(device_id), release(device_of(world, device_id), reserved.lease_id, at_us)
        )
        for device_id in reserved.device_ids
    ]


def released_room(
    lease: Lease, at_us: int, world: World, *, keeps_storage: bool = False
) -> list[Change]:
    """The disk and the network that the lease holds, given back; a paused lease keeps its disk."""
    reserved, asked = lease.reserved, lease.requested
    assert asked is not None
    if reserved is None or not room_asked(asked):
        return []
    return node_room.give_back(
        world, reserved.node_id, reserved.lease_id, at_us, keeps_storage=keeps_storage
    )


def _released(lease: Lease, at_us: int, world: World) -> list[Change]:
    """Its devices, and what it held of quotas: paused or not, it counts in them until it ends."""
    if lease.reserved is None:
        return []
    reserved = lease.reserved
    assert lease.requested is not None
    devices = [*released_devices(lease, at_us, world), *released_room(lease, at_us, world)]
    devices += detach(world, lease.requested.volumes, reserved.lease_id, at_us)
    quotas = release_quotas(world, reserved.quotas, reserved.lease_id, at_us)
    cloud = _cloud_quota_returned(reserved, at_us, world)
    return [*devices, *quotas, *cloud, *_reservation_released(reserved, at_us, world)]


def _reservation_released(reserved: LeaseReserved, at_us: int, world: World) -> list[Change]:
    """The name and port that the lease held for its job."""
    job = job_of(world, reserved.job_id).submitted
    attached = None if job is None else job.attached
    if attached is None or attached.reservation_id is None:
        return []
    return release_name(world, attached.reservation_id, reserved.lease_id, at_us)


def _cloud_quota_returned(reserved: LeaseReserved, at_us: int, world: World) -> list[Change]:
    """What the lease held of the quota of a cloud region; on other machines nothing."""
    provider = provider_of(world, reserved.provider_id)
    if not is_cloud(world, provider.kind, at_us):
        return []
    joined = existing_node(world, reserved.node_id).joined
    assert joined is not None
    return give_back(world, joined.region_id, reserved.lease_id, at_us)


def _surplus(lease: Lease, closed_at_us: int) -> tuple[EscrowPart, ...]:
    """The part of the escrow that no report still to come can use: given back at closing."""
    assert lease.reserved is not None
    assert lease.opened is not None
    most_ppm_us = lease.gpu_ppm_total * lease.ran_us(closed_at_us)
    most = charge_for(most_ppm_us // PPM, lease.opened.price_per_gpu_hour.units)
    most_federated = lease.federated_units(most_ppm_us)
    due = {
        None: max(0, most - lease.charge_units),
        FEDERATED: max(0, most_federated - lease.federated_units(lease.ppm_us)),
    }
    kept: Held = ()
    for purpose, units in due.items():
        held = for_purpose(lease.held, purpose)
        assert units <= total(held) or lease.short_of is not None, (purpose, units, held)
        units = min(units, total(held))
        kept = (*kept, *take(held, units))
    return without(lease.held, kept)


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {AccrueUsage: decide_accrue, SettleLease: decide_settle}
