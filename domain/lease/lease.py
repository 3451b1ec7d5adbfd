"""A lease: one renter holding devices, or a share of them, of one node at one locked price.

    requested --MatchDecided + LeaseReserved--> reserved --LeaseReady + LeaseOpened--> active
    active --UsageAccrued*--> active --LeaseClosed--> closing --LeaseSettled--> settled
    requested, reserved --LeaseClosed + LeaseSettled--> settled, charge 0
    and between these quoted, gang_waiting, paused, degraded, reclaiming; then disputed, resolved,
    archived: every transition there is stands in `domain/lease/states.py`

    charged == floor(gpu_us x price_per_gpu_hour / 3_600_000_000)            after every accrual
    federated == floor(time x fee_per_hour / 3_600_000_000)                  time = gpu_us per share
    fee + provider + client + platform + burn == charge                      to the unit
    put in == charged + federated + refunded + held                          always

Here is what can happen, what can be asked and what we remember; of its turns in between, facts and
commands are in `domain/lease/turns.py`. How we decide, in the order of a lease's life:

    lease_request      a job's owner asks              lease_top_up      more credits
    lease_terms        what a match promises           lease_extension   a longer term
    lease_reservation  the match is taken              lease_life        its turns in between
    lease_opening      billing starts                  lease_accrual     what it uses, how it ends

and its credits in `lease_escrow` (how much must be held, until when it lasts), `lease_funds` (whose
they are, in which order they go) and `lease_budget` (which caps they count against).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.duration import HOUR_US
from domain.fleet.revenue_share import OwnerPart, OwnerShare
from domain.frozen import replace
from domain.gpu_time import fee_for, gpu_us
from domain.hardware.constraints import Constraints, Weights
from domain.lease.budgets import Counted, LeaseParty
from domain.lease.choice import Candidate, Narrowed
from domain.lease.escrow import TIME_MAX_US
from domain.lease.funds import EscrowPart, deposits_of, for_purpose, total, without
from domain.lease.looked import NOT_LOOKED, Looked
from domain.lease.mounts import VolumeMount
from domain.lease.reasons import LeaseReason
from domain.lease.reserved_term import TermEndedEarly
from domain.lease.turns import (
    FaultRevised,
    FundsEndWarned,
    LeaseArchived,
    LeaseDegraded,
    LeaseDisputed,
    LeaseExtended,
    LeaseFundsMoved,
    LeaseFundsTaken,
    LeasePaused,
    LeaseQuoted,
    LeaseRecovered,
    LeaseResolved,
    LeaseResumed,
    ReclaimCancelled,
    ReclaimStarted,
    Turn,
)
from domain.lease.work_commands import (
    NO_WORK,
    LeaseCommandAcknowledged,
    LeaseWorkEnded,
    Work,
    evolve_work,
)
from domain.metering.counting import Passed, Pause, RefusedTime, UsageRow, Watermark
from domain.money import Amount, Big
from domain.prices.charge_split import NOTHING, Parts
from domain.prices.tariff import MeterMax, Split
from domain.refusal import Refused
from domain.stream import Stream, World


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
    pay_with: str | None  # "cash" or "burn" only; absent: either
    term_us: int | None  # fixed term, or open end
    funds: Amount | None  # open end: what to hold; fixed term: the largest possible charge
    at_us: int
    refill: bool  # topped up from the balance before its funds end
    sla_class: str | None
    key_id: str | None  # of the API key that asked: its budget counts
    restart_of: str | None  # the lease of the same job whose funds ended
    constraints: Constraints | None  # the job's
    encryption_key: str | None  # hex, X25519: what the node's credentials are sealed to
    remoting_session_id: str | None  # of the layer that forwards calls to the device; no fee
    split_label: str | None  # which part of the program is forwarded; no fee
    route_id: str | None  # the network route across clusters that its traffic takes (J-10); no fee
    pricing: str | None  # the module that prices it; None: "posted/1"
    months: int | None  # of a reserved term
    part: int | None  # which chunk or member of the job
    attempt: int | None  # of the part: 1, and one more for each lease it gets
    run_due_us: int | None  # of a scheduled job: the due time it runs for
    overflow: bool  # its quotas were full: rented elsewhere, and not counted
    gang_id: str | None  # a member of this gang: with it or not at all
    start_timeout_us: int | None  # the gang's; None: START_TIMEOUT_US
    escrow_id: str | None  # the job's escrow, which it draws on with others
    meter_maxima: tuple[MeterMax, ...]  # beside GPU time nothing is charged above them
    volumes: tuple[VolumeMount, ...]  # the job's: attached with its reservation
    datasets: tuple[str, ...]  # names that the job refers to; some of them have a place


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseQueued:
    """It cannot be placed now and waits for a pool. `domain/pools/queue.py` says who is next."""

    lease_id: str
    pool_id: str
    place: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchDecided:
    lease_id: str
    rule: str  # with its version, "lowest_cost/2"
    fleet_position: int  # position of the fleet projection that was asked
    candidates: tuple[Candidate, ...]  # the first 20, best first
    considered: int
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    at_us: int
    pricing: str | None  # the module and its version; None: "posted/1"
    weights: Weights | None
    narrowed: tuple[Narrowed, ...]  # by each demand, in the order of asking


@dataclass(frozen=True, slots=True)
class PrepaidTerm:
    """A reserved term: it is paid beforehand."""

    months: int
    refund_ppm: int  # of what is unused, where the term is ended early


@dataclass(frozen=True, slots=True)
class MigInstances:
    """One instance of a profile on each device, and where each begins, as `device_ids` has them."""

    profile: str
    starts: tuple[int, ...]


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
    pay_with: str  # "cash" or "burn"
    own: bool  # the renter's own node: only the usage fee is charged
    tariff_version: int
    fee_per_gpu_hour: Amount
    provider_share_ppm: int
    burn_share_ppm: int
    escrow: tuple[EscrowPart, ...]  # for usage, and for the federated fee where there is one
    at_us: int
    split: Split | None  # of the tariff; None: by the two shares above
    client_account_id: str | None  # the compute client that has a share
    owners: tuple[OwnerShare, ...]  # who shares the provider's part; empty: its own account alone
    federated: FederatedTerms | None
    sla_class: str | None
    counted: tuple[Counted, ...]  # budgets with a cap that it counts against
    prepaid: PrepaidTerm | None  # a reserved term
    quotas: tuple[str, ...]  # of groups and clients that it counts in
    gang_id: str | None
    pool_id: str | None  # of the node, when it was reserved
    mode: str  # SHARING_MODES: how it shares each of its devices
    mig: MigInstances | None
    reclaim_window_us: int | None  # quoted: how long the provider waits to take it back
    interruptible: bool  # may be paused
    quote_id: str | None  # the quote that was accepted
    by: str | None  # the member whose call it was; None: a timer, by the request's rule
    meter_maxima: tuple[MeterMax, ...]  # as asked: what is held for each resource


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReady:
    lease_id: str
    node_id: str
    endpoint: str | None
    at_us: int
    credentials: str | None  # base64, sealed to the renter's key: only the renter reads it


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
    counted: tuple[Counted, ...]  # budgets with a cap that these parts count against


@dataclass(frozen=True, slots=True)
class Unfunded:
    """Part of a charge that nobody's escrow pays, because its money was taken back: a debt."""

    account_id: str  # whose
    amount: Amount


@dataclass(frozen=True, slots=True)
class FederatedCharge:
    """The federated fee of a lease, all of it so far and what is new."""

    total: Amount
    new: Amount


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
    client_account_id: str | None
    owners: tuple[OwnerPart, ...]  # the provider's part, where several own it
    federated: FederatedCharge | None  # paid by the job's creator, beside the charge
    owed: Unfunded | None  # new: of the charge, what the escrow was short of
    escrow_id: str | None  # the one that paid; None: the lease's own


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseClosed:
    lease_id: str
    account_id: str
    closed_at_us: int
    party: str  # who asked: "renter", "client", "provider", "job", "operator"
    code: int  # its range names the party at fault
    refund: tuple[EscrowPart, ...]  # above the largest still possible charge
    at_us: int
    by: str | None  # the account or key of that party; None: a timer
    evidence: str | None  # SHA-256 of what the party can show, in hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettled:
    lease_id: str
    account_id: str
    charge: Amount
    gpu_us: Big
    refund: tuple[EscrowPart, ...]
    at_us: int
    disputed: bool  # a dispute of one of its lines is still open


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRestarted:
    """Money is back after the funds of this lease ended, and another lease goes on with its job."""

    lease_id: str
    as_lease_id: str
    at_us: int


Fact: TypeAlias = (
    LeaseRequested
    | LeaseQueued
    | MatchDecided
    | LeaseReserved
    | LeaseReady
    | LeaseOpened
    | LeaseToppedUp
    | UsageAccrued
    | LeaseClosed
    | LeaseSettled
    | LeaseRestarted
    | LeaseCommandAcknowledged
    | LeaseWorkEnded
    | TermEndedEarly
    | Turn
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
    pay_with: str | None = None
    project_id: str | None = None  # None: the job's
    refill: bool = False
    key_id: str | None = None
    restart_of: str | None = None
    encryption_key: str | None = None
    remoting_session_id: str | None = None
    split_label: str | None = None
    route_id: str | None = None
    pricing: str | None = None
    months: int | None = None
    part: int | None = None
    attempt: int | None = None
    run_due_us: int | None = None
    overflow: bool = False
    by_timer: bool = False  # the server asks, for the job's plan
    gang_id: str | None = None
    start_timeout_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveLease:
    """Carry out a match: the matcher's inputs and choice, to be recorded and checked again.

    `quote_id`: accept this quote; price and devices are the quote's.
    """

    lease_id: str
    rule: str
    fleet_position: int
    candidates: tuple[Candidate, ...]
    considered: int
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    at_us: int
    quote_id: str | None = None
    weights: Weights | None = None
    narrowed: tuple[Narrowed, ...] | None = None
    by: str | None = None  # the member who asks; None: a timer
    looked: Looked = NOT_LOOKED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyLease:
    """The node says the workload runs: billing starts now."""

    lease_id: str
    node_id: str
    endpoint: str | None
    at_us: int
    credentials: str | None = None


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
    by: str | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleLease:
    """Fold the last rows of a closed lease, charge them and give back what is left.

    `passed`: how far the same reports tell of its devices beyond its own rows.
    """

    lease_id: str
    lane: int
    usage_position: int
    rows: tuple[UsageRow, ...]
    at_us: int
    passed: tuple[Passed, ...] = ()


# What is remembered.

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

REQUEST_TIMEOUT_US = 24 * HOUR_US
"""How long a request without a quote waits; then it is closed as expired."""
DEGRADED_AFTER_US = 180_000_000
"""Without a healthy signed report for so long, a lease is degraded."""
DEGRADED_LIMIT_US = 1_800_000_000
"""A lease that stays degraded for so long is closed as unreachable."""
QUOTES_MAX = 64
"""Quotes a lease may have at once."""
PAUSES_MAX = 1_000
"""Pauses of one lease: each is remembered for as long as late reports may name its time."""

# What states have in common. All of them, and how they follow on each other, are in
# `domain/lease/states.py`.
HOLDING = ("reserved", "gang_waiting", "active", "degraded", "reclaiming")
RUNNING = ("active", "paused", "degraded", "reclaiming")
OVER = ("settled", "disputed", "resolved", "archived")


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
    work: Work = NO_WORK
    queued_in: str | None = None  # the pool it waited for
    quotes: tuple[LeaseQuoted, ...] = ()
    pauses: tuple[Pause, ...] = ()  # those that are over
    paused_at_us: int | None = None
    degraded: LeaseDegraded | None = None
    reclaim: ReclaimStarted | None = None
    extended_us: int | None = None  # the whole fixed term, once it was extended
    term_end_us: int | None = None
    warned: FundsEndWarned | None = None
    disputes: tuple[str, ...] = ()  # open ones
    revised: FaultRevised | None = None
    settled_at_us: int = 0
    short_of: str | None = None  # whose reversed payment its escrow may be short of

    @property
    def party(self) -> LeaseParty:
        """Whose budgets it counts against."""
        assert self.requested is not None
        return party_of(self.requested)

    @property
    def escrow_id(self) -> str | None:
        """The escrow it shares with other leases of its job; None: it has its own."""
        return None if self.requested is None else self.requested.escrow_id

    @property
    def gpu_us(self) -> int:
        """GPU-microseconds metered so far: one floor, on the cumulative sum."""
        return gpu_us(self.ppm_us)

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
        return self.status in HOLDING

    @property
    def is_running(self) -> bool:
        """Whether it has opened and is not closed: hours of it are accrued, paused or not."""
        return self.status in RUNNING

    @property
    def uses_funds(self) -> bool:
        """Whether time that passes now may be charged."""
        return self.is_running and self.paused_at_us is None

    @property
    def is_over(self) -> bool:
        """Whether it is settled, whatever is said about it afterwards."""
        return self.status in OVER

    @property
    def term_us(self) -> int | None:
        """The whole fixed term, or None of an open end."""
        assert self.requested is not None
        return self.requested.term_us if self.extended_us is None else self.extended_us

    @property
    def quoted_until_us(self) -> int:
        """When the last of its quotes expires, or the auction it asked for is over."""
        return max((quote.open_until_us for quote in self.quotes), default=0)

    def paused_us(self, until_us: int) -> int:
        """How long it was paused before a moment."""
        over = sum(
            max(0, min(one.to_us, until_us) - one.from_us)
            for one in self.pauses
            if one.from_us < until_us
        )
        now = 0 if self.paused_at_us is None else max(0, until_us - self.paused_at_us)
        return over + now

    def ran_us(self, until_us: int) -> int:
        """How long it was open and not paused before a moment: the most a device can earn."""
        assert self.opened is not None
        return until_us - self.opened.opened_at_us - self.paused_us(until_us)

    def moment_of(self, ran_us: int) -> int:
        """The first moment at which it has run for so long."""
        assert self.opened is not None
        moment_us = self.opened.opened_at_us + ran_us
        for one in self.pauses:
            if one.from_us >= moment_us:
                break
            moment_us += one.to_us - one.from_us
        return moment_us

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
        assert self.requested is not None
        timeout_us = self.requested.start_timeout_us
        return self.reserved.at_us + (START_TIMEOUT_US if timeout_us is None else timeout_us)

    @property
    def counted_until_us(self) -> int:
        """No close lies before this, though an accrual may overtake it: what the escrow must hold
        is the rate times the time the lease was open.
        """
        assert self.opened is not None
        credited_us = max((mark.credited_us for mark in self.marks), default=0)
        return max(self.accrued_until_us, self.moment_of(credited_us))

    @property
    def window_end_us(self) -> int:
        """Where billable time ends: closed, or as far as funds and term allow."""
        assert self.opened is not None
        if self.closed is not None:
            return self.closed.closed_at_us
        # While it is paused nothing is used up, and only a term can end it.
        funds_end_us = TIME_MAX_US if self.paused_at_us is not None else self.funds_end_us
        return funds_end_us if self.term_end_us is None else min(funds_end_us, self.term_end_us)


def evolve(lease: Lease, fact: Fact) -> Lease:
    """The lease after one more fact."""
    match fact:
        case LeaseRequested():
            return replace(lease, status="requested", requested=fact)
        case LeaseQueued():
            return replace(lease, queued_in=fact.pool_id)
        case MatchDecided():
            return lease
        case LeaseReserved():
            return _reserved(lease, fact)
        case LeaseReady():
            # Alone it is followed by its opening at once; in a gang it waits for the others.
            waits = lease.requested is not None and lease.requested.gang_id is not None
            return replace(lease, status="gang_waiting") if waits else lease
        case LeaseOpened():
            return _opened(lease, fact)
        case LeaseToppedUp():
            return _with_deposits(lease, fact)
        case UsageAccrued():
            return _accrued(lease, fact)
        case LeaseClosed():
            return _closed(lease, fact)
        case LeaseSettled():
            status = "disputed" if lease.disputes else "settled"
            return replace(lease, status=status, held=(), settled_at_us=fact.at_us)
        case LeaseRestarted():
            return replace(lease, restarted_as=fact.as_lease_id)
        case LeaseCommandAcknowledged() | LeaseWorkEnded():
            return replace(lease, work=evolve_work(lease.work, fact))
        case TermEndedEarly():
            return replace(lease, held=without(lease.held, fact.drawn))
        case _:
            return _turned(lease, fact)


def _reserved(lease: Lease, fact: LeaseReserved) -> Lease:
    return replace(
        lease,
        status="reserved",
        reserved=fact,
        held=fact.escrow,
        # Held for resources beside the GPU are deposits of the same budgets, each with its number.
        deposits=max(
            deposits_of(fact.escrow),
            *(number for one in fact.counted for number in one.deposits),
            0,
        ),
        counted=fact.counted,
        quotes=(),
    )


def _opened(lease: Lease, fact: LeaseOpened) -> Lease:
    return replace(
        lease,
        status="active",
        opened=fact,
        accrued_until_us=fact.opened_at_us,
        funds_end_us=fact.funds_end_us,
        term_end_us=fact.term_end_us,
    )


def _with_deposits(lease: Lease, fact: LeaseToppedUp | LeaseExtended) -> Lease:
    """New parts are behind those that are there; the budgets they count against are remembered."""
    return replace(
        lease,
        held=(*lease.held, *fact.parts),
        deposits=max(lease.deposits, deposits_of(fact.parts)),
        funds_end_us=fact.funds_end_us or lease.funds_end_us,
        counted=(*lease.counted, *fact.counted),
    )


def _accrued(lease: Lease, fact: UsageAccrued) -> Lease:
    return replace(
        lease,
        hours_accrued=fact.hour_index + 1,
        accrued_until_us=fact.until_us,
        usage_position=fact.usage_position,
        resume_position=fact.resume_position,
        ppm_us=fact.ppm_us,
        charge_units=fact.charge.units,
        parts=fact.parts,
        held=lease.held if fact.escrow_id is not None else without(lease.held, fact.drawn),
        marks=fact.watermarks,
    )


def _closed(lease: Lease, fact: LeaseClosed) -> Lease:
    """It ends any pause, and nothing that was quoted can be taken any more."""
    lease = _paused_until(lease, fact.closed_at_us)
    held = without(lease.held, fact.refund)
    return replace(lease, status="closing", closed=fact, held=held, quotes=())


def _turned(lease: Lease, fact: Turn) -> Lease:
    """The lease after one of its turns."""
    match fact:
        case LeaseQuoted():
            return replace(lease, status="quoted", quotes=(*lease.quotes, fact))
        case LeasePaused():
            return replace(lease, status="paused", paused_at_us=fact.paused_at_us)
        case LeaseResumed():
            lease = _paused_until(lease, fact.resumed_at_us)
            assert lease.reserved is not None
            reserved, mig = lease.reserved, lease.reserved.mig
            if mig is not None:
                reserved = replace(reserved, mig=replace(mig, starts=fact.mig_starts))
            return replace(
                lease, status="active", reserved=reserved, funds_end_us=fact.funds_end_us
            )
        case LeaseDegraded():
            return replace(lease, status="degraded", degraded=fact)
        case LeaseRecovered():
            return replace(lease, status="active", degraded=None)
        case ReclaimStarted():
            return replace(lease, status="reclaiming", reclaim=fact, degraded=None)
        case ReclaimCancelled():
            return replace(lease, status="active", reclaim=None)
        case LeaseExtended():
            lease = _with_deposits(lease, fact)
            return replace(lease, extended_us=fact.term_us, term_end_us=fact.term_end_us)
        case LeaseFundsTaken():
            return replace(
                lease,
                held=without(lease.held, fact.parts),
                funds_end_us=fact.funds_end_us or lease.funds_end_us,
                short_of=fact.account_id,
            )
        case LeaseFundsMoved():
            return replace(lease, funds_end_us=fact.funds_end_us)
        case FundsEndWarned():
            return replace(lease, warned=fact)
        case FaultRevised():
            return replace(lease, revised=fact)
        case LeaseDisputed():
            status = fact.status or lease.status
            return replace(lease, status=status, disputes=(*lease.disputes, fact.dispute_id))
        case LeaseResolved():
            left = tuple(one for one in lease.disputes if one != fact.dispute_id)
            return replace(lease, status=fact.status or lease.status, disputes=left)
        case LeaseArchived():
            return replace(lease, status="archived")
        case _:
            assert_never(fact)


def _paused_until(lease: Lease, at_us: int) -> Lease:
    """The pause that is on, if any, is over."""
    if lease.paused_at_us is None:
        return lease
    pauses = (*lease.pauses, Pause(lease.paused_at_us, max(at_us, lease.paused_at_us)))
    return replace(lease, pauses=pauses, paused_at_us=None)


def party_of(asked: LeaseRequested) -> LeaseParty:
    return LeaseParty(asked.lease_id, asked.account_id, asked.project_id, asked.key_id)


def lease_stream(lease_id: str) -> Stream[Lease]:
    return Stream("lease", lease_id)


def lease_of(world: World, lease_id: str) -> Lease:
    """The state of a lease. Raises Refused: LEASE_UNKNOWN."""
    state = world.state(lease_stream(lease_id))
    if state.requested is None:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return state


STREAMS: dict[str, tuple[Any, Any]] = {"lease": (Lease(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
