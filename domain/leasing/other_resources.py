"""Resources beside the GPU: CPU, memory, storage and network of a lease, from events to charges.

    quantity = sum of floor(event quantity x time inside the window / time of the event)
    charge   = floor(quantity x price / per)          cumulative, so nothing is lost or billed twice
    drawn == charge_new;   fee + provider + platform + burn == charge               to the unit
    charge + held + returned == held at the reservation <= the renter's maximum     always

One stream per meter of a lease. The renter agrees to a maximum for each resource, or none: then
nothing is charged for it. The maximum is held when the lease is reserved, counts against the same
budgets as its escrow, and is all that can ever be charged; what is left comes back a day after the
lease, of storage a day after it was released. Price and shares are those of the tariff version that
the lease keeps. An event counts inside the window of its lease; storage goes on after the lease was
closed, until it is released: what is stopped but stored is billed. Each event is judged by itself
and in the order of the meter log, so batching, order, duplication and delay of events change no
total.

What an auditor needs is in the fact: the events of this meter up to `through_position` have been
judged, `events_chain` commits to their bytes in order, `log_chain` to the whole meter log at that
moment, and `refused` names every event that did not count in full. Rows R-7, J-6, C-30's storage;
design economics 3 and 4, api 10. Who sends what is not known here (`ledger/log/meter_log.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeAlias, assert_never

from domain.fleet.reasons import FleetReason
from domain.lease.budgets import uncount_budgets
from domain.lease.funds import Held, take, total, without
from domain.lease.holding import collected
from domain.lease.lease import LATE_WINDOW_US, Lease, LeaseRequested, LeaseReserved, lease_of
from domain.lease.reasons import LeaseReason
from domain.leasing.accrual import window_of
from domain.metering.reasons import MeteringReason
from domain.money import Amount, Big, credit
from domain.parties.account import account_of
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import NOTHING, Parts, peel
from domain.prices.tariff import METERS, MeterRate, meter_rate, tariff_version
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class MeteredEvent:
    """One event of the meter log, as stored."""

    position: int
    leaf: str  # hex
    account_id: str  # who sent it
    source: str
    quantity: Big
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """An event that did not count in full: which rule took how much of it."""

    position: int
    rule: str  # RULES
    quantity: Big


@dataclass(frozen=True, slots=True)
class MeterSource:
    """A source of events and the one account whose events of it count."""

    source: str
    account_id: str


# Facts. Stream `resource:{lease_id}/{meter}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAccrued:
    """Events of one meter of one lease, judged and charged. Cumulative values first."""

    lease_id: str
    meter: str
    unit: str
    node_id: str
    account_id: str  # who pays: the renter
    provider_account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    after_position: int  # events of this meter after this position of the meter log
    through_position: int  # up to this one have been judged
    events: int  # so many
    events_chain: str  # after each event: SHA-256(chain before || leaf), hex
    log_position: int  # head of the meter log when it was read
    log_chain: str
    sources: tuple[MeterSource, ...]  # new: whose events of a source count
    quantity: Big  # cumulative, in units
    quantity_new: Big
    rate: MeterRate | None  # absent: it costs nothing, as the tariff has no such row, or it is own
    tariff_version: int
    charge: Amount  # cumulative
    charge_new: Amount
    parts: Parts  # cumulative
    parts_new: Parts
    drawn: Held  # new: what paid for it, of what is held
    refused: tuple[RefusedEvent, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceHeld:
    """What the renter agreed to pay for a resource of the lease at most, in the append that
    reserves it. The lease says which budgets it counts against.
    """

    lease_id: str
    meter: str
    account_id: str
    parts: Held
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceReturned:
    """What was not charged goes back to where it came from; nothing more is charged."""

    lease_id: str
    meter: str
    account_id: str
    parts: Held
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageReleased:
    """The renter gave up what a closed lease had stored; stored time ends here."""

    lease_id: str
    account_id: str
    by: str
    at_us: int


Fact: TypeAlias = ResourceHeld | ResourceAccrued | ResourceReturned | StorageReleased

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccrueResource:
    """Judge the next events of one meter of a lease.

    `events` are the first of the log after `ResourceUsage.through_position`, in order, at most
    EVENTS_MAX; the head of the log was read before them.
    """

    lease_id: str
    meter: str
    events: tuple[MeteredEvent, ...]
    log_position: int
    log_chain: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStorage:
    lease_id: str
    account_id: str
    by: str
    at_us: int


STORAGE = "storage"
EVENTS_MAX = 400
"""Events of one fact, so that all of them can be refused by name in it."""
SOURCES_MAX = 32
"""Sources that meter the same resource of one lease."""
CHARGE_UNITS_MAX = 10**15
"""No meter of one lease charges more: a thousand million credits."""
QUANTITY_MAX = 10**18
"""Nor counts it more: an exabyte, or thirty million core-years."""
PATIENCE_US = 60_000_000
"""An event is judged this long after its window has ended: a close that is on its way is in by
then, so it does not matter which of the two was sent first.
"""

# What is remembered.


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """One meter of one lease."""

    through_position: int = 0
    events_chain: str = ""
    sources: tuple[MeterSource, ...] = ()
    quantity: Big = 0
    charge_units: Big = 0
    parts: Parts = NOTHING
    released_us: int | None = None
    held: Held = ()
    is_agreed: bool = False
    is_returned: bool = False


def evolve(state: ResourceUsage, fact: Fact) -> ResourceUsage:
    """The meter after one more fact."""
    match fact:
        case ResourceHeld():
            return replace(state, held=fact.parts, is_agreed=True)
        case ResourceReturned():
            return replace(state, held=(), is_returned=True)
        case ResourceAccrued():
            return replace(
                state,
                held=without(state.held, fact.drawn),
                through_position=fact.through_position,
                events_chain=fact.events_chain,
                sources=(*state.sources, *fact.sources),
                quantity=fact.quantity,
                charge_units=fact.charge.units,
                parts=fact.parts,
            )
        case StorageReleased():
            return replace(state, released_us=fact.at_us)
        case _:
            assert_never(fact)


def stream_of(lease_id: str, meter: str) -> Stream[ResourceUsage]:
    return Stream("resource", f"{lease_id}/{meter}")


def usage_of(world: World, lease_id: str, meter: str) -> ResourceUsage:
    return world.state(stream_of(lease_id, meter))


def chain_of(before: str, lease_id: str, meter: str, leaf: str) -> str:
    """The chain over the events of one meter after one more of them."""
    start = before or sha256(f"meter/{lease_id}/{meter}".encode()).hexdigest()
    return sha256(bytes.fromhex(start) + bytes.fromhex(leaf)).hexdigest()


# How we decide.


def decide_accrue(command: AccrueResource, world: World) -> list[Change]:
    """Judge what is due, price the total, and book only what is new. No fact when nothing is due.

    Raises Refused: LEASE_UNKNOWN, UNKNOWN_MODE (a meter there is not), USAGE_POSITION_FELL (events
    that were judged before).
    """
    if command.meter not in METERS:
        raise Refused(PartiesReason.UNKNOWN_MODE, meter=command.meter)
    lease = lease_of(world, command.lease_id)
    state = usage_of(world, command.lease_id, command.meter)
    positions = [event.position for event in command.events]
    assert positions == sorted(set(positions)), positions
    if positions and positions[0] <= state.through_position:
        raise Refused(MeteringReason.USAGE_POSITION_FELL, reached=state.through_position)
    if lease.reserved is None or (lease.opened is None and not lease.is_over):
        return []  # whether it ever runs is not known yet
    due = _due(command)
    if due:
        return _accrued(command, world, due)
    return [] if command.events else _returned(command, world)


def _due(command: AccrueResource) -> tuple[MeteredEvent, ...]:
    """The first events whose time is over: what comes after one that is not waits with it."""
    assert len(command.events) <= EVENTS_MAX, len(command.events)
    for index, event in enumerate(command.events):
        if event.to_us + PATIENCE_US > command.at_us:
            return command.events[:index]
    return command.events


def _accrued(command: AccrueResource, world: World, due: tuple[MeteredEvent, ...]) -> list[Change]:
    lease = lease_of(world, command.lease_id)
    state = usage_of(world, command.lease_id, command.meter)
    reserved = lease.reserved
    assert reserved is not None
    tariff = tariff_version(world, reserved.tariff_version)
    rate = None if reserved.own else meter_rate(tariff, command.meter)
    bill = _Bill(world, lease, reserved, state, command, rate)
    chained = state.events_chain
    for event in due:
        bill.judge(event)
        chained = chain_of(chained, command.lease_id, command.meter, event.leaf)
    charge = bill.charge(bill.quantity)
    new = charge - state.charge_units
    parts = _parts(reserved, charge)
    assert parts.total == charge, (parts, charge)
    assert new >= 0, (charge, state)
    accrued = ResourceAccrued(
        lease_id=command.lease_id,
        meter=command.meter,
        unit=METERS[command.meter],
        node_id=reserved.node_id,
        account_id=reserved.account_id,
        provider_account_id=reserved.provider_account_id,
        client_id=reserved.client_id,
        project_id=reserved.project_id,
        end_user_ref=reserved.end_user_ref,
        after_position=state.through_position,
        through_position=due[-1].position,
        events=len(due),
        events_chain=chained,
        log_position=command.log_position,
        log_chain=command.log_chain,
        sources=bill.sources[len(state.sources) :],
        quantity=bill.quantity,
        quantity_new=bill.quantity - state.quantity,
        rate=rate,
        tariff_version=reserved.tariff_version,
        charge=credit(charge),
        charge_new=credit(new),
        parts=parts,
        parts_new=parts - state.parts,
        drawn=take(state.held, new),
        refused=tuple(bill.refused),
        at_us=command.at_us,
    )
    return [Change(stream_of(command.lease_id, command.meter), accrued)]


def hold_resources(
    asked: LeaseRequested, terms: LeaseReserved, world: World
) -> tuple[ResourceHeld, ...]:
    """What each maximum of the lease holds, beside its escrow. Nothing for what costs nothing: a
    resource of one's own node, or one that the tariff of the lease has no price for.

    Raises Refused: CREDIT_TOO_LOW.
    """
    tariff = tariff_version(world, terms.tariff_version)
    held: list[ResourceHeld] = []
    taken = terms.escrow
    for most in asked.meter_maxima:
        if terms.own or meter_rate(tariff, most.meter) is None:
            continue
        units = most.amount.units
        parts = collected(world, asked.account_id, terms, units, units, lease=asked, taken=taken)
        taken = (*taken, *parts)
        held.append(
            ResourceHeld(
                lease_id=asked.lease_id,
                meter=most.meter,
                account_id=asked.account_id,
                parts=parts,
                at_us=terms.at_us,
            )
        )
    return tuple(held)


def _returned(command: AccrueResource, world: World) -> list[Change]:
    """What is left of a hold, when no event can count against it any more and none waits."""
    lease = lease_of(world, command.lease_id)
    state = usage_of(world, command.lease_id, command.meter)
    over_us = _over_us(lease, state, command.meter)
    if not state.held or over_us is None or command.at_us < over_us:
        return []
    assert lease.reserved is not None
    fact = ResourceReturned(
        lease_id=command.lease_id,
        meter=command.meter,
        account_id=lease.reserved.account_id,
        parts=state.held,
        at_us=command.at_us,
    )
    others = [one.meter for one in lease.reserved.meter_maxima if one.meter != command.meter]
    is_last = not any(usage_of(world, command.lease_id, one).held for one in others)
    budgets = uncount_budgets(
        world, command.lease_id, lease.counted, fact.parts, command.at_us, is_final=is_last
    )
    return [Change(stream_of(command.lease_id, command.meter), fact), *budgets]


def _over_us(lease: Lease, state: ResourceUsage, meter: str) -> int | None:
    """When what is left of a hold goes back; None: not known yet. Storage that was metered is in
    use until it is released.
    """
    if not lease.is_over or lease.closed is None:
        return None
    if lease.opened is None:
        return lease.closed.at_us
    end_us = lease.closed.closed_at_us
    if meter == STORAGE and state.quantity:
        if state.released_us is None:
            return None
        end_us = max(end_us, state.released_us)
    return end_us + LATE_WINDOW_US


class _Bill:
    """The running total of one accrual."""

    def __init__(
        self,
        world: World,
        lease: Lease,
        reserved: LeaseReserved,
        state: ResourceUsage,
        command: AccrueResource,
        rate: MeterRate | None,
    ) -> None:
        self._world = world
        self._reserved = reserved
        self._rate = rate
        self._window = None if lease.opened is None else _window(lease, state, command.meter)
        # What is on a disk stays there while the lease is paused; nothing else is used then.
        is_compute = lease.opened is not None and command.meter != STORAGE
        self._running = window_of(lease) if is_compute else None
        self._state = state
        self._charge_max = state.charge_units + total(state.held)
        self.sources = state.sources
        self.quantity = state.quantity
        self.refused: list[RefusedEvent] = []

    def charge(self, quantity: int) -> int:
        """Micro-credits of a cumulative quantity."""
        return 0 if self._rate is None else quantity * self._rate.price.units // self._rate.per

    def judge(self, event: MeteredEvent) -> None:
        """Count an event as far as it counts, and name what does not."""
        rule = self._refusal(event)
        inside = 0 if rule is not None else self._inside(event)
        after = self.quantity + inside
        if after > QUANTITY_MAX or self.charge(after) > CHARGE_UNITS_MAX:
            inside, rule = 0, "out_of_range"
        elif self.charge(after) > self._charge_max:
            inside, rule = 0, "above_maximum" if self._state.is_agreed else "not_agreed"
        self.quantity += inside
        if inside < event.quantity:
            lost = event.quantity - inside
            self.refused.append(RefusedEvent(event.position, rule or "outside_window", lost))

    def _refusal(self, event: MeteredEvent) -> str | None:
        """The rule that refuses the whole event, whatever its quantity."""
        reserved = self._reserved
        if account_of(self._world, reserved.account_id).is_closed:
            return "account_closed"
        if self._window is None:
            return "lease_never_ran"
        if self._state.is_returned:
            return "too_late"
        may = (reserved.provider_account_id, reserved.client_id)
        sender = account_of(self._world, event.account_id)
        if event.account_id not in may and sender.kind != "operator":
            return "not_permitted"
        return self._claim(event)

    def _claim(self, event: MeteredEvent) -> str | None:
        """A source belongs to the first account that metered with it: two that pass on the same
        collector's events are one meter.
        """
        for known in self.sources:
            if known.source == event.source:
                return None if known.account_id == event.account_id else "source_taken"
        if len(self.sources) >= SOURCES_MAX:
            return "too_many_sources"
        self.sources = (*self.sources, MeterSource(event.source, event.account_id))
        return None

    def _inside(self, event: MeteredEvent) -> int:
        assert self._window is not None
        from_us, to_us = self._window
        inside_us = min(event.to_us, to_us) - max(event.from_us, from_us)
        if self._running is not None:
            inside_us -= self._running.paused_us(event.from_us, event.to_us)
        return event.quantity * max(0, inside_us) // (event.to_us - event.from_us)


def _window(lease: Lease, state: ResourceUsage, meter: str) -> tuple[int, int]:
    """The time in which a meter of the lease is billed; only storage outlives the lease."""
    assert lease.opened is not None
    if meter != STORAGE:
        return lease.opened.opened_at_us, lease.window_end_us
    end_us = 2**63 if state.released_us is None else state.released_us
    return lease.opened.opened_at_us, end_us


def _parts(reserved: LeaseReserved, charge: int) -> Parts:
    """There is no usage fee on it: all of it is shared like what remains of a GPU's charge, but for
    the client that brought the job, which has its share of the GPU's. Burned credits are retired.
    """
    if reserved.pay_with == "burn":
        return Parts(fee=0, provider=0, platform=0, burn=charge)
    return peel(
        charge,
        price=1,
        fee_rate=0,
        provider_share_ppm=reserved.provider_share_ppm,
        burn_share_ppm=reserved.burn_share_ppm,
        split=reserved.split,
    )


def decide_release(command: ReleaseStorage, world: World) -> list[Change]:
    """Stored time ends, for a lease that ran and is closed: before, it is in use. Twice is once.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE.
    """
    lease = lease_of(world, command.lease_id)
    assert lease.requested is not None
    if lease.requested.account_id != command.account_id:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=command.lease_id)
    if lease.opened is None or lease.closed is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if usage_of(world, command.lease_id, STORAGE).released_us is not None:
        return []
    released = StorageReleased(
        lease_id=command.lease_id, account_id=command.account_id, by=command.by, at_us=command.at_us
    )
    return [Change(stream_of(command.lease_id, STORAGE), released)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"resource": (ResourceUsage(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    AccrueResource: decide_accrue,
    ReleaseStorage: decide_release,
}
