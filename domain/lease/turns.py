"""What can happen to a lease between its request and its archive, apart from opening and accrual.

Quoted, paused and resumed, degraded and recovered, reclaimed, extended, warned, disputed, archived:
facts and commands only. They are facts of the lease's stream and remembered in
`domain/lease/lease.py`; how they are decided is in `domain/leasing/life.py`. None of them charges
anything.
"""

from __future__ import annotations

from domain.lease.budgets import Counted
from domain.lease.choice import Choice
from domain.lease.funds import EscrowPart
from domain.lease.looked import NOT_LOOKED, Looked
from domain.money import Amount
from domain.record import dataclass

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseQuoted:
    """A price for certain devices that the renter may take until `expires_at_us`. Holds nothing."""

    lease_id: str
    quote_id: str
    rule: str  # the pricing module and its version, such as "posted/1"
    provider_id: str
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    price_per_gpu_hour: Amount
    reclaim_window_us: int | None
    expires_at_us: int
    open_until_us: int  # the latest expiry of all quotes of the lease
    at_us: int
    bid_id: str | None  # the bid it came from, in an auction
    choice: Choice | None  # where the market chose it; None: a bid, or it is taken at once


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePaused:
    """The devices are somebody else's for now, and compute stops charging at `paused_at_us`."""

    lease_id: str
    reason: str  # "outbid" or "renter"
    by: str
    paused_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseResumed:
    """The devices are held again. The end of the funds moved by the length of the pause."""

    lease_id: str
    by: str
    resumed_at_us: int
    funds_end_us: int
    at_us: int
    mig_starts: tuple[int, ...]  # of its instances now, which may be others


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseDegraded:
    """No healthy signed report says anything of the time after `since_us`."""

    lease_id: str
    since_us: int
    lane: int
    usage_position: int  # reports of the lane were read up to here
    at_us: int
    kept_until_us: int | None  # announced maintenance that keeps leases: no limit before


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecovered:
    """Healthy signed reports are back. The gap counts against the availability."""

    lease_id: str
    healthy_us: int  # every device has reported up to here
    gap_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimStarted:
    """The provider wants the devices back, and may close from `deadline_us` on."""

    lease_id: str
    code: int  # a provider's code: why
    deadline_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimCancelled:
    lease_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseExtended:
    """A later end of a fixed term, paid for in full beforehand, at the locked price."""

    lease_id: str
    account_id: str
    term_us: int  # the whole term from the opening, as it is now
    parts: tuple[EscrowPart, ...]
    put_in: Amount  # into the escrow so far, these parts included
    term_end_us: int | None  # None: the lease has not opened yet
    funds_end_us: int | None
    at_us: int
    counted: tuple[Counted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFundsTaken:
    """Money of a payment that was reversed leaves the escrow for what its depositor owes for it.

    What is left may be less than what the lease has used by then: of that the rest is owed.
    """

    lease_id: str
    account_id: str  # whose payment it was, and who owes what the escrow no longer pays
    payment_id: str
    parts: tuple[EscrowPart, ...]
    funds_end_us: int | None  # as it is now; None: it stays, for the lease ends or waits
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFundsMoved:
    """The end of the escrow that it shares with others is another one now."""

    lease_id: str
    escrow_id: str
    funds_end_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FundsEndWarned:
    """The funds of an open-ended lease end soon, if nobody tops it up."""

    lease_id: str
    account_id: str
    funds_end_us: int
    ahead_us: int  # which warning: 24 h, 1 h or 10 min before
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRevised:
    """Late signed usage covers the silence that closed the lease: the node worked after all."""

    lease_id: str
    provider_account_id: str
    from_code: int
    code: int
    since_us: int
    closed_at_us: int
    lane: int
    usage_position: int  # reports of the lane up to here prove it
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseDisputed:
    """Lines of the lease are disputed. It becomes `disputed` once it is settled."""

    lease_id: str
    dispute_id: str
    status: str | None  # the state it leads to; None: it stays
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseResolved:
    """A dispute about lines of the lease is over. It becomes `resolved` with the last of them."""

    lease_id: str
    dispute_id: str
    outcome: str
    status: str | None  # the state it leads to; None: it stays
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseArchived:
    """Nothing can happen to it any more: every window is over and its last epoch is sealed."""

    lease_id: str
    account_id: str
    epoch: int  # the last one it could earn in
    at_us: int


Turn = (
    LeaseQuoted
    | LeasePaused
    | LeaseResumed
    | LeaseDegraded
    | LeaseRecovered
    | ReclaimStarted
    | ReclaimCancelled
    | LeaseExtended
    | LeaseFundsTaken
    | LeaseFundsMoved
    | FundsEndWarned
    | FaultRevised
    | LeaseDisputed
    | LeaseResolved
    | LeaseArchived
)

# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteLease:
    """Promise a price for these devices until `expires_at_us`; `ReserveLease` accepts it by id."""

    lease_id: str
    quote_id: str
    rule: str
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    price_per_gpu_hour: Amount | None  # None: the offer's, or the usage fee on one's own node
    expires_at_us: int
    at_us: int
    bid_id: str | None = None
    looked: Looked = NOT_LOOKED
    choice: Choice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLease:
    """Stop the compute of an interruptible lease, and let others have its devices."""

    lease_id: str
    reason: str  # "outbid", by the matcher; "renter"
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeLease:
    """Hold the same devices again and go on, at the lease's own price."""

    lease_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradeLease:
    """The timer: nothing healthy was reported after `since_us`, up to this position."""

    lease_id: str
    since_us: int
    lane: int
    usage_position: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverLease:
    """The timer: every device has reported up to `healthy_us`."""

    lease_id: str
    healthy_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReclaim:
    lease_id: str
    code: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReclaim:
    lease_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLease:
    """`more_us` more of a fixed term. The whole of it is held at once."""

    lease_id: str
    account_id: str
    more_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnFundsEnd:
    lease_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseFault:
    """The timer: signed reports cover [since, closed) of a lease that was closed as unreachable.

    `covered_us`: for each device of the lease, how far reports after the silence began reach
    without a gap as long as one that degrades a lease.
    """

    lease_id: str
    lane: int
    usage_position: int
    covered_us: tuple[int, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLease:
    """`epoch`: the last one the lease could earn in, which has to be sealed."""

    lease_id: str
    epoch: int
    at_us: int
