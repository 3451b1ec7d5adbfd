"""SLA credits: a lease that was promised availability and did not get it is credited by itself.

    asked        == floor(share_ppm of all devices x (closed - opened - paused) / 10^6)  GPU-us
    excused      == min(asked - metered, the same for the announced maintenance)         GPU-us
    promised     == asked - excused
    availability == floor(metered x 10^6 / promised)                                 ppm
    credit       == floor(charge x credit_ppm / 10^6)       by the worst tier it is below
    credited     == sum of the lease's adjustments for it <= credit;   no charge gives back twice

Announced maintenance counts only beyond its announced length: as much missing time as was
announced before it began is excused, an emergency never (`domain/fleet/maintenance.py`).

Assessed once, right after settlement, under the tariff that the lease keeps. The credit is spread
over the lease's charges, the newest first, each up to what has not been given back of it, and is
taken from those whom the charge paid, pro rata (`domain/income/adjustment.py`). What an open
dispute freezes waits for the ruling. A lease of the renter's own hardware has nobody to promise
anything. Source: row V-6, design marketplace 9; the tiers are the tariff's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.fleet.maintenance import announced_us
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.income.adjustment import (
    ADJUSTMENTS_MAX,
    ChargedLine,
    Taking,
    Unburned,
    corrections_of,
    refund,
)
from domain.lease.close_codes import fault_of
from domain.lease.lease import Lease, LeaseReserved, lease_of
from domain.money import PPM, Amount, Big, credit
from domain.prices.tariff import SlaTier, sla_class, tariff_version
from domain.refusal import Refused
from domain.stream import Change, Stream, World, derive_id

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaAssessed:
    """Stream `sla:{lease_id}`. `below_ppm` absent: the promise was kept."""

    lease_id: str
    account_id: str
    provider_account_id: str
    sla_class: str
    tariff_version: int
    metered_gpu_us: Big
    promised_gpu_us: Big
    availability_ppm: int
    below_ppm: int | None
    credit_ppm: int
    charge: Amount
    credit: Amount
    at_us: int
    excused_gpu_us: Big  # announced maintenance, already taken off `promised_gpu_us`


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaCredited:
    """Part of the credit, by the adjustments recorded with it; cumulative, and what is left."""

    lease_id: str
    credited_new: Amount
    credited: Amount
    is_last: bool  # all of it, or nothing is left of the lease's charges
    at_us: int


SlaFact = SlaAssessed | SlaCredited

# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditSla:
    """`lines`: charges of the lease, newest first, after those asked before; `is_last`: there are
    no older ones. Without lines it is assessed only.
    """

    lease_id: str
    lines: tuple[ChargedLine, ...]
    is_last: bool
    unburned: Unburned
    at_us: int


# What is remembered.


@dataclass(frozen=True, slots=True)
class Sla:
    assessed: SlaAssessed | None = None
    credited: Big = 0
    is_done: bool = False


def stream_of(lease_id: str) -> Stream[Sla]:
    return Stream("sla", lease_id)


def evolve(state: Sla, fact: SlaFact) -> Sla:
    match fact:
        case SlaAssessed():
            return replace(state, assessed=fact, is_done=not fact.credit.units)
        case SlaCredited():
            return replace(state, credited=fact.credited.units, is_done=fact.is_last)
        case _:
            assert_never(fact)


def sla_of(world: World, lease_id: str) -> Sla:
    return world.state(stream_of(lease_id))


# The formula.


def tier_of(tiers: tuple[SlaTier, ...], availability_ppm: int) -> SlaTier | None:
    """The worst tier the availability is below: tiers go from the mildest breach to the worst."""
    broken = [tier for tier in tiers if availability_ppm < tier.below_ppm]
    return broken[-1] if broken else None


def availability(metered_gpu_us: int, promised_gpu_us: int) -> int:
    """In ppm, floored; nothing promised is kept in full."""
    return PPM if not promised_gpu_us else metered_gpu_us * PPM // promised_gpu_us


# How we decide.


def decide_credit(command: CreditSla, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE, SLA_CLASS_UNKNOWN, CREDIT_TOO_LOW."""
    lease, state = lease_of(world, command.lease_id), sla_of(world, command.lease_id)
    stream, changes = stream_of(command.lease_id), []
    if state.is_done:
        return []
    if state.assessed is None:
        assessed = _assess(lease, command, world)
        changes.append(Change(stream, assessed))
        state = evolve(state, assessed)
    assert state.assessed is not None
    left = state.assessed.credit.units - state.credited
    if not command.lines or not left:
        return changes
    taking = Taking(world, command.at_us, command.unburned)
    adjustments: list[Change] = []
    paid, has_frozen = 0, False
    for line in command.lines:
        assert line.lease_id == command.lease_id, line
        units = min(left - paid, _room(line, world))
        if _is_frozen(line, world):
            has_frozen = True
        elif units > 0:
            adjustments.append(_adjusted(taking, line, units, command))
            paid += units
    is_last = paid == left or (command.is_last and not has_frozen)
    if not paid and not is_last:
        return changes
    credited = SlaCredited(
        lease_id=command.lease_id,
        credited_new=credit(paid),
        credited=credit(state.credited + paid),
        is_last=is_last,
        at_us=command.at_us,
    )
    return [*changes, *taking.changes, *adjustments, Change(stream, credited)]


def _assess(lease: Lease, command: CreditSla, world: World) -> SlaAssessed:
    reserved = lease.reserved
    if not lease.is_over or reserved is None or reserved.sla_class is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    asked = promised_gpu_us(lease, reserved)
    excused = min(max(0, asked - lease.gpu_us), _announced(lease, reserved, world))
    promised = asked - excused
    ppm = availability(lease.gpu_us, promised)
    tariff = tariff_version(world, reserved.tariff_version)
    tier = None if reserved.own else tier_of(sla_class(tariff, reserved.sla_class).tiers, ppm)
    credit_ppm = 0 if tier is None else tier.credit_ppm
    return SlaAssessed(
        lease_id=command.lease_id,
        account_id=reserved.account_id,
        provider_account_id=reserved.provider_account_id,
        sla_class=reserved.sla_class,
        tariff_version=reserved.tariff_version,
        metered_gpu_us=lease.gpu_us,
        promised_gpu_us=promised,
        availability_ppm=ppm,
        below_ppm=None if tier is None else tier.below_ppm,
        credit_ppm=credit_ppm,
        charge=credit(lease.charge_units),
        credit=credit(lease.charge_units * credit_ppm // PPM),
        at_us=command.at_us,
        excused_gpu_us=excused,
    )


def _announced(lease: Lease, reserved: LeaseReserved, world: World) -> int:
    """GPU time of the lease's devices in maintenance that was announced before it began."""
    if lease.opened is None or lease.closed is None:
        return 0
    opened_us, closed_us = lease.opened.opened_at_us, lease.closed.closed_at_us
    us = announced_us(world, reserved.node_id, opened_us, closed_us)
    return len(reserved.device_ids) * reserved.share_ppm * us // PPM


def promised_gpu_us(lease: Lease, reserved: LeaseReserved) -> int:
    """All devices from the opening to the close; a lease that never opened promised nothing. A
    fixed term that ends early by the provider's fault was promised to its end.
    """
    closed = lease.closed
    if lease.opened is None or closed is None:
        return 0
    ran_us = lease.ran_us(closed.closed_at_us)
    code = closed.code if lease.revised is None else lease.revised.code
    if lease.term_end_us is not None and fault_of(code) == "provider":
        ran_us += max(0, lease.term_end_us - closed.closed_at_us)
    return len(reserved.device_ids) * reserved.share_ppm * ran_us // PPM


def _room(line: ChargedLine, world: World) -> int:
    state = corrections_of(world, line.position)
    return 0 if len(state.booked) >= ADJUSTMENTS_MAX else line.charge - state.corrected


def _is_frozen(line: ChargedLine, world: World) -> bool:
    dispute_id = corrections_of(world, line.position).dispute_id
    if dispute_id is None:
        return False
    dispute: Stream[Any] = Stream("dispute", dispute_id)  # its file imports this one
    return bool(world.state(dispute).is_open)


def _adjusted(taking: Taking, line: ChargedLine, units: int, command: CreditSla) -> Change:
    return refund(
        taking,
        line,
        units,
        adjustment_id=derive_id("adj", f"sla-{command.lease_id}", str(line.position)),
        reason="sla",
        cause=f"sla:{command.lease_id}",
        by="job",
    )


STREAMS: dict[str, tuple[Any, Any]] = {"sla": (Sla(), evolve)}
DECIDERS: dict[type[Any], Any] = {CreditSla: decide_credit}
