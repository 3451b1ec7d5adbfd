"""A lease: one renter holding devices, or a share of them, of one node at one locked price.

    requested --MatchDecided + LeaseReserved--> reserved --LeaseReady + LeaseOpened--> active
    active --UsageAccrued*--> active --LeaseClosed--> closing --LeaseSettled--> settled
    requested, reserved --LeaseClosed + LeaseSettled--> settled, charge 0

    charged == floor(gpu_us x price_per_gpu_hour / 3_600_000_000)            after every accrual
    federated == floor(time x fee_per_hour / 3_600_000_000)                  time = gpu_us per share
    fee + provider + client + platform + burn == charge                      to the unit
    put in == charged + federated + refunded + held                          always

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from domain.account import account_of, open_account, require_open
from domain.accrual import Reach, RefusedTime, UsageRow, Watermark, Window, count, due
from domain.device import DeviceState, device_of, release, reserve
from domain.earnings import NOTHING, Parts, peel
from domain.escrow import funds_end_us
from domain.funding import sources_of
from domain.gpu_time import charge_for, fee_for
from domain.job import FederatedFeeCarried, existing_job, job_of
from domain.lease_budget import Counted, LeaseParty, count_budgets, left_of, uncount_budgets
from domain.lease_funds import (
    FEDERATED,
    Held,
    collect,
    deposits_of,
    fee_funds_end_us,
    for_purpose,
    less,
    take,
    total,
    without,
)
from domain.lease_funds import EscrowPart as EscrowPart
from domain.money import PPM, Amount, Asset, Big, credit
from domain.node import existing_node
from domain.offer import SETTLEMENTS, OfferPublished, existing_offer, offer_of
from domain.provider import existing_provider
from domain.refusal import Reason, Refused
from domain.revenue_share import OwnerPart, OwnerShare, shares_of, split_among
from domain.stream import Change, Stream, World
from domain.tariff import Split, TariffPublished, sla_class, tariff_in_force, usage_fee


@dataclass(frozen=True, slots=True)
class Candidate:
    """One node the matcher looked at: enough to recompute the choice."""

    node_id: str
    offer_id: str
    price_per_gpu_hour: Big
    stranded_ppm: int  # capacity that would be left unsellable on the chosen devices
    served_gpu_us: Big  # this epoch: ties go to who served least


@dataclass(frozen=True, slots=True)
class FederatedTerms:
    """The fee for a job that runs across projects: its creator pays it, by wall time (C-21)."""

    account_id: str  # the job's creator
    kind: str  # "inference" or "training"
    fee_per_hour: Amount  # 0 where another lease of the job carries the job's one fee


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequested:
    """Stream `lease:{lease_id}`."""

    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]
    max_price_per_gpu_hour: Amount
    settlement: str | None  # "cash" or "burn" only; absent: either
    term_us: int | None  # fixed term, or open end
    funds: Amount | None  # open end: what to hold; fixed term: the largest possible charge
    at_us: int
    refill: bool | None = None  # topped up from the balance before its funds end
    sla_class: str | None = None
    key_id: str | None = None  # of the API key that asked: its budget counts
    restart_of: str | None = None  # the lease of the same job whose funds ended


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchDecided:
    lease_id: str
    rule: str  # "lowest_cost/1"
    fleet_position: int  # position of the fleet projection that was asked
    candidates: tuple[Candidate, ...]  # the first 20, best first
    considered: int
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReserved:
    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    node_id: str
    provider_id: str
    provider_account_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    share_ppm: int
    mem_ppm: int
    gpu_class: str
    price_per_gpu_hour: Amount  # of the offer; for own jobs the usage fee
    settlement: str  # "cash" or "burn"
    own: bool  # the renter's own node: only the usage fee is charged
    tariff_version: int
    fee_per_gpu_hour: Amount
    provider_share_ppm: int
    burn_share_ppm: int
    escrow: tuple[EscrowPart, ...]  # for usage, and for the federated fee where there is one
    at_us: int
    split: Split | None = None  # of the tariff; None: by the two shares above
    client_account_id: str | None = None  # the compute client that has a share
    owners: tuple[OwnerShare, ...] | None = None  # who shares the provider's part
    federated: FederatedTerms | None = None
    sla_class: str | None = None
    counted: tuple[Counted, ...] | None = None  # budgets with a cap that it counts against


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReady:
    lease_id: str
    node_id: str
    endpoint: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOpened:
    """Billing starts: the price is locked and the funded end is known."""

    lease_id: str
    price_per_gpu_hour: Amount
    opened_at_us: int
    funds_end_us: int
    term_end_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseToppedUp:
    """More credits in the escrow, from any account that wants the lease to go on."""

    lease_id: str
    account_id: str  # the lease's
    depositor_account_id: str
    parts: tuple[EscrowPart, ...]
    put_in: Amount  # into the escrow so far, these parts included
    funds_end_us: int | None  # None: the lease has not opened yet
    at_us: int
    counted: tuple[Counted, ...] | None = None  # budgets with a cap that these parts count against


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAccrued:
    """One lease hour, or the last part of it. Cumulative values first, then what is new."""

    lease_id: str
    hour_index: int  # accounting hour [opened + k h, opened + (k + 1) h)
    until_us: int  # end of what this accrual covers
    node_id: str
    account_id: str
    provider_account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    lane: int
    usage_position: int  # every report of the lane up to here has been read
    resume_position: int  # reports after this one hold rows that end after `until_us`
    ppm_us: Big  # cumulative sum(share_ppm x us), unfloored
    gpu_us: Big  # cumulative floor(ppm_us / 10^6)
    gpu_us_new: Big
    charge: Amount  # cumulative
    charge_new: Amount
    parts: Parts  # cumulative
    parts_new: Parts
    drawn: tuple[EscrowPart, ...]  # new: which credits of the escrow paid, in order
    watermarks: tuple[Watermark, ...]
    refused: tuple[RefusedTime, ...]  # new: time that earned nothing
    at_us: int
    client_account_id: str | None = None
    owners: tuple[OwnerPart, ...] | None = None  # the provider's part, where several own it
    federated: Amount | None = None  # cumulative; paid by the job's creator, beside the charge
    federated_new: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseClosed:
    lease_id: str
    account_id: str
    closed_at_us: int
    party: str  # who asked: "renter", "provider", "job", "operator"
    code: int  # its range names the party at fault
    refund: tuple[EscrowPart, ...]  # above the largest still possible charge
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettled:
    lease_id: str
    account_id: str
    charge: Amount
    gpu_us: Big
    refund: tuple[EscrowPart, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRestarted:
    """Money is back after the funds of this lease ended, and another lease goes on with its job."""

    lease_id: str
    as_lease_id: str
    at_us: int


Fact: TypeAlias = (
    LeaseRequested
    | MatchDecided
    | LeaseReserved
    | LeaseReady
    | LeaseOpened
    | LeaseToppedUp
    | UsageAccrued
    | LeaseClosed
    | LeaseSettled
    | LeaseRestarted
)

# Commands: imperative, and they carry the clock, so deciding never has to look at one.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLease:
    """Ask for the devices a job needs: for a fixed term, or for as long as `funds` last.

    Of a federated job the accounts it names as participants may ask too, for a project of theirs.
    """

    lease_id: str
    job_id: str
    account_id: str
    term_us: int | None
    funds: Amount | None
    at_us: int
    settlement: str | None = None
    project_id: str | None = None  # None: the job's
    refill: bool = False
    key_id: str | None = None
    restart_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveLease:
    """Carry out a match: the matcher's inputs and choice, to be recorded and checked again."""

    lease_id: str
    rule: str
    fleet_position: int
    candidates: tuple[Candidate, ...]
    considered: int
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyLease:
    """The node says the workload runs: billing starts now."""

    lease_id: str
    node_id: str
    endpoint: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpLease:
    """Put more credits into the escrow of a lease: of any account, whoever rents.

    `federated`: into what pays the federated fee. `at_most`: take less where less is there, as the
    timer does that keeps a lease with `refill` going.
    """

    lease_id: str
    account_id: str
    amount: Amount
    at_us: int
    federated: bool = False
    at_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccrueUsage:
    """Fold the rows of one finished lease hour.

    `rows` are the lease's rows of every report after its `resume_position` up to `usage_position`.
    """

    lease_id: str
    lane: int
    usage_position: int
    rows: tuple[UsageRow, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseLease:
    """End a lease. A late call still closes at the funded second or at the end of the term."""

    lease_id: str
    closed_at_us: int
    party: str
    code: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleLease:
    """Fold the last rows of a closed lease, charge them and give back what is left."""

    lease_id: str
    lane: int
    usage_position: int
    rows: tuple[UsageRow, ...]
    at_us: int


# What is remembered.

HOUR_US = 3_600_000_000
MIN_RUNWAY_US = HOUR_US
"""An open-ended lease holds at least this much of its price before it starts."""
START_TIMEOUT_US = 600_000_000
"""How long a reserved lease waits for its node to be ready; then it is closed at charge 0."""
PARTS_MAX = 64
"""Parts an escrow holds at once; others may fill half of it, so nobody can lock its renter out."""
FEDERATED_HOLD_US = 24 * HOUR_US
"""The creator of a federated job holds its fee for so long ahead at most, and tops it up."""
LATE_UNITS_MAX = 2**62
"""More than any late charge: what a balance can hold bounds it long before."""
LATE_WINDOW_US = 24 * HOUR_US
"""How long a closed lease waits for reports that are still on their way."""

COMPLETED, RENTER_CLOSED, TERM_REACHED, FUNDS_ENDED, CANCELLED_BEFORE_START = 0, 1, 3, 100, 101
START_TIMEOUT = 10_003
PARTY_CODES = {
    "renter": (range(100), range(100, 10_000)),
    "provider": (range(10_000, 20_000),),
    "job": (range(100), range(100, 10_000), range(10_000, 20_000)),
    "operator": (range(20_000, 30_000),),
}
"""Which close codes each party may give. The code's range names the party at fault."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as far as its facts go. `status` is one of the words of the module's diagram."""

    status: str = "unknown"
    requested: LeaseRequested | None = None
    reserved: LeaseReserved | None = None
    opened: LeaseOpened | None = None
    closed: LeaseClosed | None = None
    hours_accrued: int = 0
    accrued_until_us: int = 0
    usage_position: int = 0
    resume_position: int = 0
    ppm_us: Big = 0
    charge_units: Big = 0
    parts: Parts = NOTHING
    held: tuple[EscrowPart, ...] = ()
    deposits: int = 0
    funds_end_us: int = 0
    marks: tuple[Watermark, ...] = ()
    counted: tuple[Counted, ...] = ()
    restarted_as: str | None = None

    @property
    def party(self) -> LeaseParty:
        """Whose budgets it counts against."""
        assert self.requested is not None
        return _party(self.requested)

    @property
    def gpu_us(self) -> int:
        """GPU-microseconds metered so far: one floor, on the cumulative sum."""
        return self.ppm_us // PPM

    @property
    def held_units(self) -> int:
        """What is left to pay for usage."""
        return total(for_purpose(self.held, None))

    @property
    def put_in_units(self) -> int:
        """Everything put into the escrow so far; right until something goes back at the close."""
        return self.charge_units + self.federated_units(self.ppm_us) + total(self.held)

    @property
    def gpu_ppm_total(self) -> int:
        """The share of all its devices together; one whole GPU is 1,000,000."""
        assert self.reserved is not None
        return len(self.reserved.device_ids) * self.reserved.share_ppm

    @property
    def is_live(self) -> bool:
        """Whether it holds devices."""
        return self.status in ("reserved", "active")

    def federated_units(self, ppm_us: int) -> int:
        """The federated fee for so much metered time, cumulative; 0 when there is none."""
        if self.reserved is None or self.reserved.federated is None:
            return 0
        fee = self.reserved.federated.fee_per_hour.units
        return fee_for(ppm_us // self.gpu_ppm_total, fee)

    @property
    def ready_until_us(self) -> int:
        """The moment before which the node has to be ready."""
        assert self.reserved is not None
        return self.reserved.at_us + START_TIMEOUT_US

    @property
    def counted_until_us(self) -> int:
        """No close lies before this, though an accrual may overtake it: what the escrow must hold
        is the rate times the time the lease was open.
        """
        assert self.opened is not None
        credited_us = max((mark.credited_us for mark in self.marks), default=0)
        return max(self.accrued_until_us, self.opened.opened_at_us + credited_us)

    @property
    def window_end_us(self) -> int:
        """Where billable time ends: closed, or as far as funds and term allow."""
        assert self.opened is not None
        if self.closed is not None:
            return self.closed.closed_at_us
        term_end_us = self.opened.term_end_us
        return self.funds_end_us if term_end_us is None else min(self.funds_end_us, term_end_us)


def evolve(lease: Lease, fact: Fact) -> Lease:
    """The lease after one more fact."""
    match fact:
        case LeaseRequested():
            return replace(lease, status="requested", requested=fact)
        case MatchDecided():
            return lease
        case LeaseReserved():
            return replace(
                lease,
                status="reserved",
                reserved=fact,
                held=fact.escrow,
                deposits=deposits_of(fact.escrow),
                counted=fact.counted or (),
            )
        case LeaseReady():
            return lease
        case LeaseOpened():
            return replace(
                lease,
                status="active",
                opened=fact,
                accrued_until_us=fact.opened_at_us,
                funds_end_us=fact.funds_end_us,
            )
        case LeaseToppedUp():
            return replace(
                lease,
                held=(*lease.held, *fact.parts),
                deposits=max(lease.deposits, deposits_of(fact.parts)),
                funds_end_us=fact.funds_end_us or lease.funds_end_us,
                counted=(*lease.counted, *(fact.counted or ())),
            )
        case UsageAccrued():
            return replace(
                lease,
                hours_accrued=fact.hour_index + 1,
                accrued_until_us=fact.until_us,
                usage_position=fact.usage_position,
                resume_position=fact.resume_position,
                ppm_us=fact.ppm_us,
                charge_units=fact.charge.units,
                parts=fact.parts,
                held=without(lease.held, fact.drawn),
                marks=fact.watermarks,
            )
        case LeaseClosed():
            held = without(lease.held, fact.refund)
            return replace(lease, status="closing", closed=fact, held=held)
        case LeaseSettled():
            return replace(lease, status="settled", held=())
        case LeaseRestarted():
            return replace(lease, restarted_as=fact.as_lease_id)
        case _:
            assert_never(fact)


def _party(asked: LeaseRequested) -> LeaseParty:
    return LeaseParty(asked.lease_id, asked.account_id, asked.project_id, asked.key_id)


def lease_of(world: World, lease_id: str) -> Lease:
    """The state of a lease. Raises Refused: LEASE_UNKNOWN."""
    state = world.state(Stream("lease", lease_id))
    assert isinstance(state, Lease)
    if state.requested is None:
        raise Refused(Reason.LEASE_UNKNOWN, lease_id=lease_id)
    return state


# How we decide.


def decide_request(command: RequestLease, world: World) -> list[Change]:
    """A job's owner asks for devices. The job says how many, of what kind, at which cap."""
    stream = Stream("lease", command.lease_id)
    if world.state(stream).requested is not None:
        raise Refused(Reason.LEASE_EXISTS, lease_id=command.lease_id)
    spec = existing_job(world, command.job_id)
    job = job_of(world, command.job_id)
    if command.account_id not in (spec.account_id, *(spec.participants or ())):
        raise Refused(Reason.JOB_UNKNOWN, job_id=command.job_id)
    require_open(account_of(world, command.account_id), command.account_id)
    if not job.is_open:
        raise Refused(Reason.JOB_STATE, job_id=command.job_id, phase=job.phase)
    if command.term_us is not None and command.term_us <= 0:
        raise Refused(Reason.AMOUNT_NOT_POSITIVE, field="term_us")
    if command.funds is not None and command.funds.units <= 0:
        raise Refused(Reason.AMOUNT_NOT_POSITIVE, field="funds")
    if command.settlement not in (None, *SETTLEMENTS):
        raise Refused(Reason.UNKNOWN_MODE, settlement=command.settlement)
    return [
        *_restarted(command, world),
        Change(
            stream,
            LeaseRequested(
                lease_id=command.lease_id,
                job_id=command.job_id,
                account_id=command.account_id,
                client_id=spec.client_id,
                project_id=command.project_id or spec.project_id,
                end_user_ref=spec.end_user_ref,
                gpu_count=spec.gpu_count,
                share_ppm=spec.share_ppm,
                mem_ppm=spec.mem_ppm,
                models=spec.models,
                max_price_per_gpu_hour=spec.max_price_per_gpu_hour,
                settlement=command.settlement,
                term_us=command.term_us,
                funds=command.funds,
                at_us=command.at_us,
                refill=True if command.refill else None,
                sla_class=spec.sla_class,
                key_id=command.key_id,
                restart_of=command.restart_of,
            ),
        ),
    ]


def _restarted(command: RequestLease, world: World) -> list[Change]:
    """What links a lease whose funds ended to the one that goes on; each goes on once.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE.
    """
    if command.restart_of is None:
        return []
    before = lease_of(world, command.restart_of)
    asked, closed = before.requested, before.closed
    assert asked is not None
    if (asked.job_id, asked.account_id) != (command.job_id, command.account_id):
        raise Refused(Reason.LEASE_UNKNOWN, lease_id=command.restart_of)
    if closed is None or closed.code != FUNDS_ENDED or before.restarted_as is not None:
        raise Refused(
            Reason.LEASE_STATE, lease_id=command.restart_of, status=before.status,
            close_code=None if closed is None else closed.code, restarted_as=before.restarted_as,
        )  # fmt: skip
    fact = LeaseRestarted(
        lease_id=command.restart_of, as_lease_id=command.lease_id, at_us=command.at_us
    )
    return [Change(Stream("lease", command.restart_of), fact)]


def decide_reserve(command: ReserveLease, world: World) -> list[Change]:
    """The match, checked against the streams themselves: a stale projection does no harm."""
    lease = lease_of(world, command.lease_id)
    asked = lease.requested
    assert asked is not None
    if lease.status != "requested":
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    published = existing_offer(world, command.offer_id)
    node = existing_node(world, command.node_id)
    if not offer_of(world, command.offer_id).is_open:
        raise Refused(Reason.OFFER_WITHDRAWN, offer_id=command.offer_id)
    if not node.is_matchable:
        raise Refused(Reason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if published.node_id != command.node_id:
        raise Refused(Reason.OFFER_MISMATCH, offer_id=command.offer_id)
    devices = [device_of(world, device_id) for device_id in command.device_ids]
    provider = existing_provider(world, published.provider_id)
    is_own = provider.account_id == asked.account_id
    _check_devices(command, asked, published, devices, is_own=is_own)
    terms = _terms(asked, published, devices[0], provider.account_id, command.at_us, world)
    cap_units = asked.max_price_per_gpu_hour.units
    if terms.price_per_gpu_hour.units > cap_units:
        raise Refused(Reason.PRICE_ABOVE_CAP, cap=cap_units, price=terms.price_per_gpu_hour.units)
    if terms.price_per_gpu_hour < terms.fee_per_gpu_hour:
        # Offered under an earlier tariff, or for devices of another class: no charge could pay it.
        raise Refused(Reason.OFFER_MISMATCH, usage_fee=terms.fee_per_gpu_hour.units)
    reserved = replace(terms, device_ids=command.device_ids)
    reserved = replace(reserved, escrow=_escrow(asked, reserved, world))
    reserved, budgets = _counted(asked, reserved, world)
    stream = Stream("lease", command.lease_id)
    decided = MatchDecided(
        lease_id=command.lease_id,
        rule=command.rule,
        fleet_position=command.fleet_position,
        candidates=command.candidates,
        considered=command.considered,
        node_id=command.node_id,
        offer_id=command.offer_id,
        device_ids=command.device_ids,
        at_us=command.at_us,
    )
    held = [
        Change(
            Stream("device", device_id),
            reserve(device, command.lease_id, asked.share_ppm, asked.mem_ppm, command.at_us),
        )
        for device_id, device in zip(command.device_ids, devices, strict=True)
    ]
    carried = _fee_carried(asked, reserved)
    return [Change(stream, decided), Change(stream, reserved), *held, *carried, *budgets]


def _counted(
    asked: LeaseRequested, reserved: LeaseReserved, world: World
) -> tuple[LeaseReserved, list[Change]]:
    """The escrow, counted against the budgets that have a cap. Raises Refused: BUDGET_EXHAUSTED."""
    party, escrow, at_us = _party(asked), reserved.escrow, reserved.at_us
    counted, changes = count_budgets(
        world, party, asked.account_id, for_purpose(escrow, None), at_us
    )
    if reserved.federated is not None:
        creator, fee = reserved.federated.account_id, for_purpose(escrow, FEDERATED)
        theirs, more = count_budgets(world, party, creator, fee, at_us)
        counted, changes = (*counted, *theirs), [*changes, *more]
    return replace(reserved, counted=counted or None), changes


def _check_devices(
    command: ReserveLease,
    asked: LeaseRequested,
    offer: OfferPublished,
    devices: Sequence[DeviceState],
    *,
    is_own: bool,
) -> None:
    """As many distinct devices as asked, all of the offer's node, of an allowed model."""
    if len(set(command.device_ids)) != asked.gpu_count or len(devices) != asked.gpu_count:
        raise Refused(Reason.OFFER_MISMATCH, gpu_count=asked.gpu_count)
    if asked.settlement not in (None, offer.settlement) and not is_own:
        raise Refused(Reason.OFFER_MISMATCH, settlement=offer.settlement)
    if asked.share_ppm < PPM and not offer.fractions:
        raise Refused(Reason.OFFER_MISMATCH, share_ppm=asked.share_ppm)
    if offer.available_until_us is not None:
        end_us = command.at_us + (asked.term_us or MIN_RUNWAY_US)
        if offer.available_until_us < end_us:
            raise Refused(Reason.OFFER_MISMATCH, available_until_us=offer.available_until_us)
    for device in devices:
        if device.node_id != command.node_id:
            raise Refused(Reason.OFFER_MISMATCH, node_id=command.node_id)
        assert device.registered is not None
        if asked.models and device.registered.model not in asked.models:
            raise Refused(Reason.OFFER_MISMATCH, model=device.registered.model)
        if device.gpu_class != devices[0].gpu_class:
            raise Refused(Reason.OFFER_MISMATCH, gpu_class=device.gpu_class)


def _terms(
    asked: LeaseRequested,
    offer: OfferPublished,
    device: DeviceState,
    provider_account_id: str,
    at_us: int,
    world: World,
) -> LeaseReserved:
    """The price and the tariff this lease will keep, whatever is published later."""
    tariff = tariff_in_force(world, at_us)
    if device.gpu_class is None:
        raise Refused(Reason.GPU_CLASS_UNPRICED, node_id=offer.node_id)
    fee = usage_fee(tariff, device.gpu_class)
    own = provider_account_id == asked.account_id
    return LeaseReserved(
        lease_id=asked.lease_id,
        job_id=asked.job_id,
        account_id=asked.account_id,
        client_id=asked.client_id,
        project_id=asked.project_id,
        end_user_ref=asked.end_user_ref,
        node_id=offer.node_id,
        provider_id=offer.provider_id,
        provider_account_id=provider_account_id,
        offer_id=offer.offer_id,
        device_ids=(),
        share_ppm=asked.share_ppm,
        mem_ppm=asked.mem_ppm,
        gpu_class=device.gpu_class,
        price_per_gpu_hour=fee if own else offer.price_per_gpu_hour,
        settlement="cash" if own else offer.settlement,
        own=own,
        tariff_version=tariff.version,
        fee_per_gpu_hour=fee,
        provider_share_ppm=tariff.provider_share_ppm,
        burn_share_ppm=tariff.burn_share_ppm,
        escrow=(),
        at_us=at_us,
        split=tariff.split,
        client_account_id=_client_with_a_share(asked, tariff, world),
        owners=_owners_with_a_share(offer.node_id, world),
        federated=_federated(asked, tariff, world),
        sla_class=None if asked.sla_class is None else sla_class(tariff, asked.sla_class).name,
    )


def _client_with_a_share(
    asked: LeaseRequested, tariff: TariffPublished, world: World
) -> str | None:
    """The compute client that brought the job, where the tariff has a share for clients (R-17)."""
    split = tariff.split
    if split is None or "client" not in {split.residual, *(one.bucket for one in split.shares)}:
        return None
    client = account_of(world, asked.client_id)
    return asked.client_id if client.kind == "client" and client.is_open else None


def _owners_with_a_share(node_id: str, world: World) -> tuple[OwnerShare, ...] | None:
    """The owners the revenue is split among (K-1). What was a closed account's is the provider's:
    nobody could ever spend what such an account earns.
    """
    shares = shares_of(world, node_id)
    return tuple(one for one in shares if account_of(world, one.account_id).is_open) or None


def _federated(
    asked: LeaseRequested, tariff: TariffPublished, world: World
) -> FederatedTerms | None:
    """The federated fee of a lease that is not its job's creator's: cross-project work (C-21)."""
    job, fees = existing_job(world, asked.job_id), tariff.federated
    if job.federated is None or fees is None or job.account_id == asked.account_id:
        return None
    fee = fees.training_per_hour if job.federated == "training" else fees.inference_per_hour
    if fees.unit == "job":
        carrier = job_of(world, asked.job_id).fee_carrier
        if carrier is not None and lease_of(world, carrier).is_live:
            fee = credit(0)
    return FederatedTerms(account_id=job.account_id, kind=job.federated, fee_per_hour=fee)


def _fee_carried(asked: LeaseRequested, reserved: LeaseReserved) -> list[Change]:
    """Which lease carries a job's fee is remembered with the job, so no second one does."""
    federated = reserved.federated
    if federated is None or not federated.fee_per_hour.units:
        return []
    fact = FederatedFeeCarried(job_id=asked.job_id, lease_id=asked.lease_id, at_us=reserved.at_us)
    return [Change(Stream("job", asked.job_id), fact)]


def _escrow(asked: LeaseRequested, terms: LeaseReserved, world: World) -> Held:
    """Hold the largest possible charge of a fixed term, else the funds given (an hour at least),
    and the federated fee for as long.
    """
    _require_no_debt(world, asked.account_id)
    rate = asked.gpu_count * asked.share_ppm
    price = terms.price_per_gpu_hour.units
    least = charge_for(rate * (asked.term_us or MIN_RUNWAY_US) // PPM, price)
    needed = least if asked.term_us is not None or asked.funds is None else asked.funds.units
    if needed < least:
        raise Refused(Reason.CREDIT_TOO_LOW, needed=least, available=needed)
    parts = _collected(world, asked.account_id, terms, needed, needed, lease=asked)
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
    _require_no_debt(world, federated.account_id)
    fee = federated.fee_per_hour.units
    least = fee_for(asked.term_us or MIN_RUNWAY_US, fee)
    wanted = least if asked.term_us is not None else fee_for(FEDERATED_HOLD_US, fee)
    return _collected(
        world, federated.account_id, terms, least, wanted, lease=asked, taken=taken,
        purpose=FEDERATED,
    )  # fmt: skip


def _collected(
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
    settlement = "cash" if purpose == FEDERATED else terms.settlement
    sources = less(sources_of(world, account_id, settlement, terms.at_us), taken, lease.account_id)
    deposits = max(deposits, deposits_of(taken))
    parts = collect(
        sources, wanted, lease_account_id=lease.account_id, deposits=deposits, purpose=purpose
    )
    if total(parts) < least:
        raise Refused(Reason.CREDIT_TOO_LOW, needed=least, available=total(parts))
    return parts


def _require_no_debt(world: World, account_id: str) -> None:
    """Raises Refused: UNPAID_DEBT."""
    owed = world.balance(f"party:{account_id}:owed")
    if owed > 0:
        raise Refused(Reason.UNPAID_DEBT, owed=owed)


def decide_ready(command: ReadyLease, world: World) -> list[Change]:
    """Billing starts when the node says the workload runs, at the price locked here.

    Too late is too late, whether or not the timer has closed the lease yet.
    """
    lease = lease_of(world, command.lease_id)
    reserved = lease.reserved
    if lease.status == "active" and reserved is not None and reserved.node_id == command.node_id:
        return []
    if lease.status != "reserved" or reserved is None or reserved.node_id != command.node_id:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if command.at_us >= lease.ready_until_us:
        raise Refused(Reason.LEASE_STATE, ready_until_us=lease.ready_until_us)
    asked = lease.requested
    assert asked is not None
    funded_to_us = _funded_to_us(lease, lease.held, command.at_us)
    term_end_us = None if asked.term_us is None else command.at_us + asked.term_us
    if term_end_us is not None:
        # A fixed term is funded in full; its end need not be a whole second after the opening.
        funded_to_us = max(funded_to_us, term_end_us)
    stream = Stream("lease", command.lease_id)
    ready = LeaseReady(
        lease_id=command.lease_id,
        node_id=command.node_id,
        endpoint=command.endpoint,
        at_us=command.at_us,
    )
    opened = LeaseOpened(
        lease_id=command.lease_id,
        price_per_gpu_hour=reserved.price_per_gpu_hour,
        opened_at_us=command.at_us,
        funds_end_us=funded_to_us,
        term_end_us=term_end_us,
        at_us=command.at_us,
    )
    return [Change(stream, ready), Change(stream, opened)]


def _funded_to_us(lease: Lease, held: Held, opened_at_us: int) -> int:
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
    if reserved.federated is not None:
        units = lease.federated_units(lease.ppm_us) + total(for_purpose(held, FEDERATED))
        fee = reserved.federated.fee_per_hour.units
        ends.append(fee_funds_end_us(opened_at_us, units, fee))
    return min(ends)


def decide_top_up(command: TopUpLease, world: World) -> list[Change]:
    """More credits, and a later end. What has ended stays ended, whether or not a timer said so.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, AMOUNT_NOT_POSITIVE, UNPAID_DEBT, CREDIT_TOO_LOW,
    BUDGET_EXHAUSTED.
    """
    lease = lease_of(world, command.lease_id)
    asked, reserved = lease.requested, lease.reserved
    if not lease.is_live or asked is None or reserved is None:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if lease.opened is not None and command.at_us >= lease.window_end_us:
        raise Refused(Reason.LEASE_STATE, ended_at_us=lease.window_end_us)
    if command.federated and reserved.federated is None:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, federated=False)
    if command.amount.units <= 0 or command.amount.asset is not Asset.CREDIT:
        raise Refused(Reason.AMOUNT_NOT_POSITIVE, field="amount")
    parts_max = PARTS_MAX if command.account_id == asked.account_id else PARTS_MAX // 2
    if len(lease.held) >= parts_max:
        raise Refused(Reason.COUNT_OUT_OF_RANGE, deposits=len(lease.held), at_most=parts_max)
    open_account(world, command.account_id)
    _require_no_debt(world, command.account_id)
    wanted = command.amount.units
    if command.at_most and command.account_id == asked.account_id:
        wanted = left_of(world, lease.party, wanted, command.at_us)
    parts = _collected(
        world, command.account_id, replace(reserved, at_us=command.at_us),
        1 if command.at_most else wanted, wanted,
        lease=asked, deposits=lease.deposits, purpose=FEDERATED if command.federated else None,
    )  # fmt: skip
    held = (*lease.held, *parts)
    opened = lease.opened
    ends_us = None if opened is None else _funded_to_us(lease, held, opened.opened_at_us)
    if opened is not None and opened.term_end_us is not None and ends_us is not None:
        ends_us = max(ends_us, opened.term_end_us)
    counted, budgets = count_budgets(world, lease.party, command.account_id, parts, command.at_us)
    topped = LeaseToppedUp(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        depositor_account_id=command.account_id,
        parts=parts,
        put_in=credit(lease.put_in_units + total(parts)),
        funds_end_us=ends_us,
        at_us=command.at_us,
        counted=counted or None,
    )
    return [Change(Stream("lease", command.lease_id), topped), *budgets]


def refill_due(lease: Lease, lease_id: str, now_us: int) -> TopUpLease | None:
    """The top-up that keeps a lease with `refill` going: an hour more, when less than half of one
    is funded.
    """
    asked, opened = lease.requested, lease.opened
    if asked is None or not asked.refill or opened is None or lease.closed is not None:
        return None
    price = opened.price_per_gpu_hour.units
    # The hold that it adds to: where the federated fee's hold ends first, more for usage moves no
    # end, and it would be asked again and again until the balance is empty.
    funds_us = funds_end_us(
        opened.opened_at_us, lease.charge_units + lease.held_units, price, lease.gpu_ppm_total
    )
    if not now_us < lease.window_end_us or funds_us >= now_us + MIN_RUNWAY_US // 2:
        return None
    hour = charge_for(lease.gpu_ppm_total * MIN_RUNWAY_US // PPM, price)
    return TopUpLease(
        lease_id=lease_id, account_id=asked.account_id, amount=credit(max(1, hour)),
        at_us=now_us, at_most=True,
    )  # fmt: skip


def decide_accrue(command: AccrueUsage, world: World) -> list[Change]:
    """One finished hour. The hour counts from the opening, so postings fall where C-23 wants."""
    lease = lease_of(world, command.lease_id)
    if lease.status not in ("active", "closing"):
        raise Refused(Reason.LEASE_NOT_OPEN, lease_id=command.lease_id, status=lease.status)
    assert lease.opened is not None
    until_us = lease.opened.opened_at_us + (lease.hours_accrued + 1) * HOUR_US
    if until_us > command.at_us:
        raise Refused(Reason.ACCRUAL_NOT_DUE, due_us=until_us)
    if until_us >= lease.window_end_us:
        raise Refused(Reason.ACCRUAL_NOT_DUE, settles_at_us=lease.window_end_us)
    accrued = _accrued(lease, command, until_us, rows_until_us=until_us)
    return [Change(Stream("lease", command.lease_id), accrued)]


def decide_close(command: CloseLease, world: World) -> list[Change]:
    """End the lease and free its devices. Closing twice gives no fact."""
    lease = lease_of(world, command.lease_id)
    if lease.status in ("closing", "settled"):
        return []
    if not any(command.code in codes for codes in PARTY_CODES.get(command.party, ())):
        raise Refused(Reason.CLOSE_CODE_PARTY, party=command.party, code=command.code)
    if command.code == START_TIMEOUT and command.party == "job":
        _require_start_missed(lease, command)
    asked, stream = lease.requested, Stream("lease", command.lease_id)
    assert asked is not None
    if lease.opened is None:
        return _cancel(lease, command, world)
    closed_at_us = max(
        lease.counted_until_us, min(command.closed_at_us, lease.window_end_us, command.at_us)
    )
    closed = LeaseClosed(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        closed_at_us=closed_at_us,
        party=command.party,
        code=command.code,
        refund=_surplus(lease, closed_at_us),
        at_us=command.at_us,
    )
    assert lease.reserved is not None
    budgets = uncount_budgets(
        world, command.lease_id, lease.counted, closed.refund, command.at_us, is_final=False
    )
    return [Change(stream, closed), *_released(lease.reserved, command.at_us, world), *budgets]


def _require_start_missed(lease: Lease, command: CloseLease) -> None:
    """Raises Refused: LEASE_STATE, for the timer's close of a lease that is not due for it."""
    if lease.status != "reserved" or command.at_us < lease.ready_until_us:
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)


def decide_settle(command: SettleLease, world: World) -> list[Change]:
    """The last part of an hour, and the rest of the escrow back, in one append."""
    lease = lease_of(world, command.lease_id)
    if lease.status == "settled":
        return []
    if lease.status != "closing":
        raise Refused(Reason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    assert lease.opened is not None
    assert lease.closed is not None
    closed_at_us = lease.closed.closed_at_us
    if closed_at_us > lease.opened.opened_at_us + (lease.hours_accrued + 1) * HOUR_US:
        raise Refused(Reason.ACCRUAL_NOT_DUE, hour_index=lease.hours_accrued)
    stream, changes = Stream("lease", command.lease_id), []
    accrued = _accrued(lease, command, closed_at_us, rows_until_us=None)
    after = evolve(lease, accrued)
    if not _is_complete(after, closed_at_us) and command.at_us < closed_at_us + LATE_WINDOW_US:
        raise Refused(Reason.USAGE_INCOMPLETE, lease_id=command.lease_id, until_us=closed_at_us)
    if accrued.gpu_us_new or accrued.refused or lease.accrued_until_us < closed_at_us:
        changes.append(Change(stream, accrued))
    else:
        after = lease
    settled = LeaseSettled(
        lease_id=command.lease_id,
        account_id=lease.closed.account_id,
        charge=credit(after.charge_units),
        gpu_us=after.gpu_us,
        refund=after.held,
        at_us=command.at_us,
    )
    budgets = uncount_budgets(
        world, command.lease_id, lease.counted, settled.refund, command.at_us, is_final=True
    )
    return [*changes, Change(stream, settled), *budgets]


def is_reported_until(lease: Lease, until_us: int) -> bool:
    """Whether every device of the lease has been counted up to a moment."""
    return _is_complete(lease, until_us)


def accrued_so_far(lease: Lease, command: AccrueUsage) -> UsageAccrued:
    """What accruing every row of `command` at once would add, due or not. Nothing is decided.

    Charges are cumulative, so this is what the accruals still to come add for these rows, however
    the rows fall into hours.
    """
    until_us = max(lease.accrued_until_us, min(command.at_us, lease.window_end_us))
    return _accrued(lease, command, until_us, rows_until_us=None)


def _is_complete(lease: Lease, until_us: int) -> bool:
    assert lease.reserved is not None
    reached = {mark.device_id: mark.wall_end_us for mark in lease.marks}
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
        raise Refused(Reason.USAGE_POSITION_FELL, reached=lease.usage_position)
    window = Window(
        opened.opened_at_us, lease.window_end_us, reserved.device_ids, reserved.share_ppm
    )
    reached = Reach(lease.usage_position, lease.accrued_until_us)
    fresh = due(command.rows, reached, rows_until_us)
    counted = count(fresh.rows, window, {mark.device_id: mark for mark in lease.marks})
    ppm_us = lease.ppm_us + counted.ppm_us
    price = opened.price_per_gpu_hour.units
    charge_units = charge_for(ppm_us // PPM, price)
    parts = _parts(reserved, charge_units)
    assert parts.total == charge_units, (parts, charge_units)
    new_units = charge_units - lease.charge_units
    assert new_units >= 0, (charge_units, lease.charge_units)
    federated = lease.federated_units(ppm_us)
    federated_new = federated - lease.federated_units(lease.ppm_us)
    assert federated_new >= 0, (federated, federated_new)
    has_fee = reserved.federated is not None
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
            *take(for_purpose(lease.held, None), new_units),
            *take(for_purpose(lease.held, FEDERATED), federated_new),
        ),
        watermarks=counted.watermarks,
        refused=counted.refused,
        at_us=command.at_us,
        client_account_id=reserved.client_account_id,
        owners=_owners(reserved, parts.provider, lease.parts.provider),
        federated=credit(federated) if has_fee else None,
        federated_new=credit(federated_new) if has_fee else None,
    )


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

    Not a fact of the lease, which stays settled: `domain/late_usage.py` books it as an adjustment
    and draws the credits; `drawn` names none that exist.
    """
    assert lease.reserved is not None
    nobodys = (
        EscrowPart("late", credit(LATE_UNITS_MAX)),
        EscrowPart("late", credit(LATE_UNITS_MAX), purpose=FEDERATED),
    )
    counted = replace(
        lease, usage_position=usage_position, ppm_us=ppm_us, charge_units=charge_units,
        parts=_parts(lease.reserved, charge_units), marks=marks, held=nobodys,
    )  # fmt: skip
    return _accrued(counted, command, lease.window_end_us, rows_until_us=None)


def _owners(reserved: LeaseReserved, provider: int, before: int) -> tuple[OwnerPart, ...] | None:
    """The provider's cumulative part among the owners, and what is new of it; None: it has one."""
    if reserved.owners is None:
        return None
    now = split_among(provider, reserved.owners, reserved.provider_account_id)
    earlier = dict(split_among(before, reserved.owners, reserved.provider_account_id))
    parts = tuple(OwnerPart(who, units, units - earlier[who]) for who, units in now)
    assert sum(part.units for part in parts) == provider, (parts, provider)
    assert all(part.units_new >= 0 for part in parts), parts
    return parts


def _parts(reserved: LeaseReserved, charge_units: int) -> Parts:
    """Own jobs pay the usage fee only; burned credits are retired whole; else the tariff's peel."""
    if reserved.settlement == "burn":
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


def _cancel(lease: Lease, command: CloseLease, world: World) -> list[Change]:
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
    )
    settled = LeaseSettled(
        lease_id=command.lease_id,
        account_id=account_id,
        charge=credit(0),
        gpu_us=0,
        refund=lease.held,
        at_us=command.at_us,
    )
    reserved, stream = lease.reserved, Stream("lease", command.lease_id)
    released = [] if reserved is None else _released(reserved, command.at_us, world)
    budgets = uncount_budgets(
        world, command.lease_id, lease.counted, settled.refund, command.at_us, is_final=True
    )
    return [Change(stream, closed), Change(stream, settled), *released, *budgets]


def _released(reserved: LeaseReserved, at_us: int, world: World) -> list[Change]:
    """Every device of the lease, given back on its own stream."""
    return [
        Change(
            Stream("device", device_id),
            release(device_of(world, device_id), reserved.lease_id, at_us),
        )
        for device_id in reserved.device_ids
    ]


def _surplus(lease: Lease, closed_at_us: int) -> tuple[EscrowPart, ...]:
    """The part of the escrow that no report still to come can use: given back at closing."""
    assert lease.reserved is not None
    assert lease.opened is not None
    open_us = closed_at_us - lease.opened.opened_at_us
    most_ppm_us = lease.gpu_ppm_total * open_us
    most = charge_for(most_ppm_us // PPM, lease.opened.price_per_gpu_hour.units)
    most_federated = lease.federated_units(most_ppm_us)
    due = {
        None: max(0, most - lease.charge_units),
        FEDERATED: max(0, most_federated - lease.federated_units(lease.ppm_us)),
    }
    kept: Held = ()
    for purpose, units in due.items():
        held = for_purpose(lease.held, purpose)
        assert units <= total(held), (purpose, units, held)
        kept = (*kept, *take(held, units))
    return without(lease.held, kept)


STREAMS: dict[str, tuple[Any, Any]] = {"lease": (Lease(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    RequestLease: decide_request,
    ReserveLease: decide_reserve,
    ReadyLease: decide_ready,
    TopUpLease: decide_top_up,
    AccrueUsage: decide_accrue,
    CloseLease: decide_close,
    SettleLease: decide_settle,
}
