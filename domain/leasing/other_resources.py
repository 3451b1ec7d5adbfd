"""CPU, memory, storage and network of a lease, from signed rows to charges.

    measured = sum of floor(row's amount x time inside the window / time of the row)
    quantity = floor(measured / SCALE_OF[meter]);   charge = floor(quantity x price / per)
                    all cumulative, so nothing is lost or billed twice
    time of the rows that count <= server time elapsed in the window x 1.0005 + 2 s     at every row
    drawn == charge_new;   fee + provider + platform + burn == charge               to the unit
    charge + held + returned == held at the reservation <= the renter's maximum     always

Rows come from the lease's node and nobody else, in the reports that tell its GPU time
(`domain/metering/resources.py`). One stream per meter of a lease. The renter agrees to a maximum
for each resource, or none: then it is told and never charged, and makes no fact. The maximum is
held when the lease is reserved, counts against the same budgets as its escrow, and is all that can
ever be charged; what is left comes back a day after the lease. Price and shares are those of the
tariff version that the lease keeps. A row counts inside the window of its lease. Each row is judged
by itself and in the order of its lane, so batching and delay change no total.

What an auditor needs is in the fact: the node's reports in its lane after `after_position` up to
`through_position` were read, `mark` says how far time has been counted, and `refused` names every
row that did not count in full. The reports are under the pins of the log, so `audit verify` decides
each charge of an export again (`ledger/bundle/recount.py`). Rows R-7, J-6; design economics 3 and
4, metering 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.fleet.revenue_share import OwnerShare
from domain.frozen import replace
from domain.lease.accrual_steps import Step
from domain.lease.budgets import uncount_budgets
from domain.lease.funds import Held, take, total, without
from domain.lease.holding import collected
from domain.lease.lease import LATE_WINDOW_US, Lease, LeaseRequested, LeaseReserved, lease_of
from domain.leasing.accrual import window_of
from domain.metering.counting import is_ahead, most_us
from domain.metering.reasons import MeteringReason
from domain.metering.report import lane_of
from domain.metering.resources import PER_SECOND_MAX, SCALE_OF, MeteredRow
from domain.money import Amount, Big, credit
from domain.parties.account import account_of
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import NOTHING, Parts, peel
from domain.prices.tariff import METERS, MeterRate, meter_rate, tariff_version
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """What of a report's rows did not count: which rule took how much, in the row's own units."""

    position: int  # of the report in its lane
    rule: str
    quantity: Big


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the work's time has been counted, by both clocks."""

    boot: str
    mono_end_us: int
    wall_end_us: int


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
    client_account_id: str | None  # the compute client of the lease; no part of this is its
    owners: tuple[OwnerShare, ...]  # who shares the node's GPU time; this is the provider's alone
    lane: int
    after_position: int  # the node's reports after this position of its lane
    through_position: int  # up to this one have been judged
    rows: int  # new: so many of this lease were in them
    mark: Mark | None  # None: no row could be placed
    time_us: Big  # cumulative: time of the rows that count, inside the window
    told_us: Big  # cumulative: the same, and of rows that only what the renter agreed to refused
    measured: Big  # cumulative: microseconds of processor, byte-seconds, bytes
    quantity: Big  # cumulative: measured, floored to whole units
    quantity_new: Big
    rate: MeterRate  # of the tariff
    tariff_version: int
    charge: Amount  # cumulative
    charge_new: Amount
    parts: Parts  # cumulative
    parts_new: Parts
    drawn: Held  # new: what paid for it, of what is held
    refused: tuple[RefusedRow, ...]
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
    """What was not charged goes back to where it came from; nothing more is charged. And how much
    of the time in which the node had work of the lease its rows tell: evidence of the node.
    """

    lease_id: str
    meter: str
    account_id: str
    parts: Held  # none where all was charged
    from_us: int  # the node had work of the lease from then
    until_us: int  # to then; the same moment: it never took any up
    ran_us: int  # of that, what was not paused
    told_us: int  # of that, what rows of this meter tell
    at_us: int


Fact: TypeAlias = ResourceHeld | ResourceAccrued | ResourceReturned

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccrueResource:
    """Judge the next signed rows of one meter of a lease.

    `rows` are those of the node's reports after `ResourceUsage.through_position`, in the order of
    the lane, whole reports, at most ROWS_MAX.
    """

    lease_id: str
    meter: str
    rows: tuple[MeteredRow, ...]
    at_us: int


STORAGE = "storage"
ROWS_MAX = 400
"""Rows of one fact, so that all of them can be refused by name in it."""
CHARGE_UNITS_MAX = 10**15
"""No meter of one lease charges more: a thousand million credits."""
QUANTITY_MAX = 10**18
"""Nor counts it more: an exabyte, or thirty million core-years."""
PATIENCE_US = 60_000_000
"""A row is judged this long after its time has ended: a close that is on its way is in by then, so
it does not matter which of the two was sent first.
"""

TOLD_ALL_THE_SAME = frozenset({None, "above_maximum", "account_closed"})
"""Rules that take nothing from what the node has told: the renter pays for no more of it."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """One meter of one lease."""

    through_position: int = 0
    mark: Mark | None = None
    time_us: Big = 0
    told_us: Big = 0
    measured: Big = 0
    quantity: Big = 0
    charge_units: Big = 0
    parts: Parts = NOTHING
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
                mark=fact.mark,
                time_us=fact.time_us,
                told_us=fact.told_us,
                measured=fact.measured,
                quantity=fact.quantity,
                charge_units=fact.charge.units,
                parts=fact.parts,
            )
        case _:
            assert_never(fact)


def stream_of(lease_id: str, meter: str) -> Stream[ResourceUsage]:
    return Stream("resource", f"{lease_id}/{meter}")


def usage_of(world: World, lease_id: str, meter: str) -> ResourceUsage:
    return world.state(stream_of(lease_id, meter))


# How we decide.


def decide_accrue(command: AccrueResource, world: World) -> list[Change]:
    """Judge what is due, price the total, and book only what is new. No fact when nothing is due,
    or nothing is held for it: the renter agreed to no maximum, or it costs nothing.

    Raises Refused: LEASE_UNKNOWN, UNKNOWN_MODE (a meter there is not), USAGE_POSITION_FELL (rows
    that were judged before).
    """
    if command.meter not in METERS:
        raise Refused(PartiesReason.UNKNOWN_MODE, meter=command.meter)
    lease = lease_of(world, command.lease_id)
    state = usage_of(world, command.lease_id, command.meter)
    positions = [row.position for row in command.rows]
    assert positions == sorted(positions), positions
    if positions and positions[0] <= state.through_position:
        raise Refused(MeteringReason.USAGE_POSITION_FELL, reached=state.through_position)
    if lease.reserved is None or (lease.opened is None and not lease.is_over):
        return []  # whether it ever runs is not known yet
    if not state.is_agreed:
        return []
    due = due_rows(command.rows, command.at_us)
    if due:
        return _accrued(command, world, due)
    return [] if command.rows else _returned(command, world)


def due_rows(rows: Sequence[MeteredRow], at_us: int) -> tuple[MeteredRow, ...]:
    """The rows of the first reports whose time is over: what comes after one that is not waits with
    it. A row ahead of its receipt is not worth waiting for.
    """
    assert len(rows) <= ROWS_MAX, len(rows)
    for row in rows:
        if row.to_us + PATIENCE_US > at_us and not is_ahead(row.to_us, row.received_us):
            return tuple(one for one in rows if one.position < row.position)
    return tuple(rows)


def _accrued(command: AccrueResource, world: World, due: tuple[MeteredRow, ...]) -> list[Change]:
    lease = lease_of(world, command.lease_id)
    state = usage_of(world, command.lease_id, command.meter)
    reserved = lease.reserved
    assert reserved is not None
    tariff = tariff_version(world, reserved.tariff_version)
    rate = meter_rate(tariff, command.meter)
    assert rate is not None, "nothing is held for what has no price"
    is_closed = account_of(world, reserved.account_id).is_closed
    bill = Bill(lease, state, command.meter, rate, is_closed=is_closed)
    for row in due:
        bill.judge(row)
    charge = bill.charge(bill.measured)
    new = charge - state.charge_units
    parts = _parts(reserved, charge)
    assert parts.total == charge, (parts, charge)
    assert new >= 0, (charge, state)
    quantity = bill.measured // SCALE_OF[command.meter]
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
        client_account_id=reserved.client_account_id,
        owners=reserved.owners,
        lane=lane_of(reserved.node_id),
        after_position=state.through_position,
        through_position=due[-1].position,
        rows=len(due),
        mark=bill.mark,
        time_us=bill.time_us,
        told_us=bill.told_us,
        measured=bill.measured,
        quantity=quantity,
        quantity_new=quantity - state.quantity,
        rate=rate,
        tariff_version=reserved.tariff_version,
        charge=credit(charge),
        charge_new=credit(new),
        parts=parts,
        parts_new=parts - state.parts,
        drawn=take(state.held, new),
        refused=bill.refused,
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
    over_us = _over_us(lease)
    if state.is_returned or over_us is None or command.at_us < over_us:
        return []
    assert lease.reserved is not None
    from_us, until_us = work_span(lease)
    ran_us = until_us - from_us
    if ran_us:
        ran_us -= window_of(lease).paused_us(from_us, until_us)
    fact = ResourceReturned(
        lease_id=command.lease_id,
        meter=command.meter,
        account_id=lease.reserved.account_id,
        parts=state.held,
        from_us=from_us,
        until_us=until_us,
        ran_us=ran_us,
        told_us=min(state.told_us, ran_us),
        at_us=command.at_us,
    )
    assert 0 <= fact.told_us <= fact.ran_us <= until_us - from_us, fact
    if not state.held:
        return [Change(stream_of(command.lease_id, command.meter), fact)]
    others = [one.meter for one in lease.reserved.meter_maxima if one.meter != command.meter]
    is_last = not any(usage_of(world, command.lease_id, one).held for one in others)
    budgets = uncount_budgets(
        world, command.lease_id, lease.counted, fact.parts, command.at_us, is_final=is_last
    )
    return [Change(stream_of(command.lease_id, command.meter), fact), *budgets]


def work_span(lease: Lease) -> tuple[int, int]:
    """[from, until) in which the node had work of the lease to measure: since the lease opened, to
    its end or that of its work. Empty where no executor took the work up.
    """
    started, ended = lease.work.started, lease.work.ended
    if lease.opened is None or started is None:
        assert lease.closed is not None
        return lease.closed.at_us, lease.closed.at_us
    window = window_of(lease)
    from_us = window.opened_us
    until_us = window.end_us if ended is None else min(window.end_us, ended.at_us)
    return from_us, max(from_us, until_us)


def _over_us(lease: Lease) -> int | None:
    """When what is left of a hold goes back; None: not known yet."""
    if not lease.is_over or lease.closed is None:
        return None
    if lease.opened is None:
        return lease.closed.at_us
    return lease.closed.closed_at_us + LATE_WINDOW_US


class Bill:
    """The running total of one accrual: a row after the other, in the order of the lane."""

    def __init__(
        self,
        lease: Lease,
        state: ResourceUsage,
        meter: str,
        rate: MeterRate,
        *,
        is_closed: bool = False,
    ) -> None:
        """`is_closed`: the renter's account is, and nothing more is counted."""
        self._meter, self._rate, self._is_closed = meter, rate, is_closed
        self._window = None if lease.opened is None else window_of(lease)
        if self._window is not None and meter == STORAGE:
            # What is on a disk stays there while the lease is paused; nothing else is used then.
            self._window = replace(self._window, pauses=())
        self._state = state
        self._charge_max = state.charge_units + total(state.held)
        self.mark, self.time_us, self.measured = state.mark, state.time_us, state.measured
        self.told_us = state.told_us
        self._refused: dict[tuple[int, str], int] = {}

    @property
    def refused(self) -> tuple[RefusedRow, ...]:
        """By report and rule."""
        return tuple(RefusedRow(*key, lost) for key, lost in self._refused.items())

    def charge(self, measured: int) -> int:
        """Micro-credits of a cumulative measurement."""
        return measured // SCALE_OF[self._meter] * self._rate.price.units // self._rate.per

    def judge(self, row: MeteredRow) -> int:
        """Count a row as far as it counts, and name what does not. Returns what counts."""
        rule = self._refusal(row)
        inside_us = 0 if rule is not None else self._inside_us(row)
        counted = row.quantity * inside_us // (row.to_us - row.from_us) if inside_us else 0
        if rule is None:
            rule = self._limit(row, inside_us, self.measured + counted)
            counted = 0 if rule is not None else counted
        if rule in TOLD_ALL_THE_SAME:
            self.told_us += self._inside_us(row)
        if rule not in ("overlap", "ahead_of_receipt"):
            self.mark = Mark(row.boot, row.mono_end_us, row.to_us)
        if rule is None:
            self.measured += counted
            self.time_us += inside_us
        if counted < row.quantity:
            key = row.position, rule or "outside_window"
            self._refused[key] = self._refused.get(key, 0) + row.quantity - counted
        return counted

    def _refusal(self, row: MeteredRow) -> str | None:
        """The rule that refuses the whole row, whatever its quantity."""
        if self._window is None:
            return "lease_never_ran"
        if self._state.is_returned:
            return "too_late"
        if is_ahead(row.to_us, row.received_us):
            return "ahead_of_receipt"
        if self.mark is not None and _overlaps(row, self.mark):
            return "overlap"
        length_us = min(row.to_us - row.from_us, row.mono_end_us - row.mono_start_us)
        if length_us <= 0:
            return "no_time"
        if row.quantity * 1_000_000 > PER_SECOND_MAX[self._meter] * length_us:
            return "out_of_range"
        return "account_closed" if self._is_closed else None

    def _limit(self, row: MeteredRow, inside_us: int, measured: int) -> str | None:
        """The rule that refuses a row by what the meter has come to."""
        assert self._window is not None
        end_us = min(row.received_us, self._window.end_us)
        if self.time_us + inside_us > most_us(max(0, end_us - self._window.opened_us)):
            return "faster_than_time"
        if measured > QUANTITY_MAX * SCALE_OF[self._meter]:
            return "out_of_range"
        charge = self.charge(measured)
        if charge > CHARGE_UNITS_MAX:
            return "out_of_range"
        return "above_maximum" if charge > self._charge_max else None

    def _inside_us(self, row: MeteredRow) -> int:
        assert self._window is not None
        inside_us = min(row.to_us, self._window.end_us) - max(row.from_us, self._window.opened_us)
        return max(0, inside_us - self._window.paused_us(row.from_us, row.to_us))


def _overlaps(row: MeteredRow, mark: Mark) -> bool:
    """By monotonic time within a boot; by corrected wall time across boots, as clocks move."""
    if row.boot == mark.boot:
        return row.mono_start_us < mark.mono_end_us
    return row.from_us < mark.wall_end_us


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


def resource_steps(fact: ResourceAccrued) -> list[Step]:
    """How a charge came about, one formula after the other: measured to whole units to credits."""
    scale, quantity = SCALE_OF[fact.meter], (fact.quantity - fact.quantity_new, fact.quantity)
    charge = (fact.charge.units - fact.charge_new.units, fact.charge.units)
    given = {"price": fact.rate.price.units, "per": fact.rate.per}
    assert fact.quantity == fact.measured // scale, fact
    assert fact.charge.units == fact.quantity * fact.rate.price.units // fact.rate.per, fact
    return [
        Step("quantity", f"floor(measured / {scale})", {"measured": fact.measured}, *quantity),
        Step("charge", "floor(quantity x price / per)", given, *charge),
    ]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"resource": (ResourceUsage(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {AccrueResource: decide_accrue}
