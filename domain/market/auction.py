"""A reverse auction: providers bid for a lease that was asked for, each with a deposit.

    open --BidPlaced, BidWithdrawn, BidLapsed*, BidForfeited--> open
    open --AuctionAwarded--> awarded --WinnerDepositReturned | WinnerDepositForfeited--> over
    open --AuctionEnded--> over

    sum(deposits held by an auction) == sum over its standing bids, and its winner until the lease
                                        has opened                              always, to the unit
    price of a bid <= the request's cap;   standing bids <= bids_max
    a bid that stands at the closing stands until the auction is decided, or forfeits its deposit

A deposit is the bidder's own earned or paid credits, aside in `party:{id}:bid.{source}`: nobody's
income. Losers have theirs back in the transaction that reserves the lease, the winner when the
lease opens. A winner that does not start (its provider's close code) forfeits it to the network: a
renter must not earn by asking for work that cannot run. Where its node took the work up and was not
ready in time, or found that it does not fit, the work may be at fault: the deposit goes back.

A bid binds from the closing. Whoever takes it back then, by a word or by taking the offer or the
node away, loses the deposit: else a low bid is a free choice between two prices, made when no rival
can bid any more. A device that another lease took meanwhile is no fault: a bid reserves none. Bids
are made and awarded in `domain/leasing/bidding.py`, and an award is checked in
`domain/market/price_gate.py`. Source: design marketplace 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.funding import sources_of
from domain.funds.reasons import FundsReason
from domain.gpu_time import charge_for
from domain.lease.close_codes import SPEC_MISMATCH, START_TIMEOUT, fault_of
from domain.lease.lease import MIN_RUNWAY_US, Lease, LeaseRequested, lease_of
from domain.lease.reasons import LeaseReason
from domain.market.reasons import MarketReason
from domain.money import PPM, Amount, Asset, credit
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.prices.modules import AUCTION, label, module_of
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World

# Facts. Stream `auction:{lease_id}`.


@dataclass(frozen=True, slots=True)
class DepositPart:
    """Credits of one source of a bidder, held for one bid."""

    source: str  # "earned" or "cash"
    amount: Amount


@dataclass(frozen=True, slots=True)
class DepositBack:
    """What one bid's bidder has back."""

    bid_id: str
    account_id: str
    parts: tuple[DepositPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuctionOpened:
    lease_id: str
    account_id: str
    pricing: str  # "reverse_auction/1"
    cap_per_gpu_hour: Amount
    deposit: Amount  # of each bid
    bids_max: int
    pick: str  # PICKS
    closes_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BidPlaced:
    lease_id: str
    bid_id: str
    number: int  # of the auction's bids, in order of arrival
    account_id: str  # the bidder's: its provider's
    provider_id: str
    offer_id: str
    node_id: str
    device_ids: tuple[str, ...]
    price_per_gpu_hour: Amount
    deposit: tuple[DepositPart, ...]
    expires_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BidWithdrawn:
    lease_id: str
    bid_id: str
    account_id: str
    returned: tuple[DepositPart, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BidLapsed:
    """`cause`: "expired", or "unavailable" where what it offered could not be reserved."""

    lease_id: str
    bid_id: str
    account_id: str
    returned: tuple[DepositPart, ...]
    cause: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BidForfeited:
    """A bid that was bound and not kept; its deposit is the network's. `cause`: "withdrawn", or
    "unavailable" where its offer or its node was taken away.
    """

    lease_id: str
    bid_id: str
    account_id: str
    forfeited: tuple[DepositPart, ...]
    cause: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuctionAwarded:
    """Recorded with the reservation; the other bidders' deposits go back with it."""

    lease_id: str
    pricing: str
    bid_id: str
    ask_per_gpu_hour: Amount  # what the winner bid
    price_per_gpu_hour: Amount  # what it is paid
    returned: tuple[DepositBack, ...]
    by: str  # "renter" or "job"
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuctionEnded:
    """Nobody won: the request was closed."""

    lease_id: str
    returned: tuple[DepositBack, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnerDepositReturned:
    lease_id: str
    returned: DepositBack
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnerDepositForfeited:
    """The winner did not start: `code` is why the lease was closed."""

    lease_id: str
    forfeited: DepositBack  # whose it was
    code: int
    at_us: int


Fact: TypeAlias = (
    AuctionOpened
    | BidPlaced
    | BidWithdrawn
    | BidLapsed
    | BidForfeited
    | AuctionAwarded
    | AuctionEnded
    | WinnerDepositReturned
    | WinnerDepositForfeited
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAuction:
    """Let providers bid for a lease that was asked for in this same call."""

    lease_id: str
    pricing: str
    closes_at_us: int
    at_us: int
    deposit: Amount | None = None  # None: DEPOSIT
    bids_max: int | None = None  # None: BIDS_MAX
    pick: str = "cheapest"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawBid:
    lease_id: str
    bid_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LapseBids:
    """Give back the deposits of bids that have expired."""

    lease_id: str
    at_us: int


DEPOSIT = credit(500_000)
"""What each bid holds unless the request says otherwise: half a credit."""
DEPOSIT_UNITS_MAX = 100_000_000
BIDS_MAX = 20
BIDS_LIMIT = 100
"""How many bids a request may allow to stand at once; 20 means 20 unless it says otherwise."""
PICKS = ("cheapest", "renter")
CLOSES_AFTER_MIN_US = 1_000_000
CLOSES_AFTER_MAX_US = 23 * 3_600_000_000
"""A request without a quote is closed after a day (`domain/leasing/due.py`)."""
DEPOSIT_SOURCES = ("earned", "cash")
"""What a deposit is taken from, in this order: never grants or card money, which could not become
the renter's.
"""

# State.


@dataclass(frozen=True, slots=True)
class Auction:
    """`bids` are those that stand; `winner` keeps its deposit until the lease has opened."""

    opened: AuctionOpened | None = None
    status: str = ""  # "", "open", "awarded", "over"
    bids: dict[str, BidPlaced] = field(default_factory=dict)
    placed: int = 0
    winner: BidPlaced | None = None

    def is_open(self, at_us: int) -> bool:
        """Whether bids are taken at a moment."""
        return (
            self.status == "open" and self.opened is not None and at_us < self.opened.closes_at_us
        )

    @property
    def held_units(self) -> int:
        """All deposits it holds."""
        held = [*self.bids.values(), *([] if self.winner is None else [self.winner])]
        return sum(part.amount.units for bid in held for part in bid.deposit)


def evolve(auction: Auction, fact: Fact) -> Auction:
    """The auction after one more fact."""
    match fact:
        case AuctionOpened():
            return replace(auction, opened=fact, status="open")
        case BidPlaced():
            bids = {**auction.bids, fact.bid_id: fact}
            return replace(auction, bids=bids, placed=fact.number)
        case BidWithdrawn() | BidLapsed() | BidForfeited():
            left = {key: bid for key, bid in auction.bids.items() if key != fact.bid_id}
            return replace(auction, bids=left)
        case AuctionAwarded():
            return replace(auction, status="awarded", bids={}, winner=auction.bids[fact.bid_id])
        case AuctionEnded() | WinnerDepositReturned() | WinnerDepositForfeited():
            return replace(auction, status="over", bids={}, winner=None)
        case _:
            assert_never(fact)


def stream_of(lease_id: str) -> Stream[Auction]:
    return Stream("auction", lease_id)


def auction_of(world: World, lease_id: str) -> Auction:
    return world.state(stream_of(lease_id))


def existing_auction(world: World, lease_id: str) -> tuple[Auction, AuctionOpened]:
    """An auction and its terms. Raises Refused: LEASE_UNKNOWN where no bids were ever asked for."""
    auction = auction_of(world, lease_id)
    if auction.opened is None:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id, rule="no bids are asked for it")
    return auction, auction.opened


def standing_bid(auction: Auction, lease_id: str, bid_id: str) -> BidPlaced:
    """A bid that stands. Raises Refused: BID_UNKNOWN."""
    bid = auction.bids.get(bid_id)
    if bid is None:
        raise Refused(MarketReason.BID_UNKNOWN, lease_id=lease_id, bid_id=bid_id)
    return bid


# Deposits.


def deposit_book(account_id: str, source: str) -> str:
    """The book account of a bidder's deposits from one source."""
    return f"party:{account_id}:bid.{source}"


def hold_deposit(world: World, account_id: str, units: int) -> tuple[DepositPart, ...]:
    """A deposit, from what is the bidder's own for good. Raises Refused: CREDIT_TOO_LOW."""
    parts, left = [], units
    for source in DEPOSIT_SOURCES:
        here = min(left, max(0, world.balance(f"party:{account_id}:{source}")))
        if here:
            parts.append(DepositPart(source, credit(here)))
            left -= here
    if left:
        raise Refused(
            FundsReason.CREDIT_TOO_LOW, needed=units, available=units - left, what="deposit"
        )
    return tuple(parts)


def back(bids: Iterable[BidPlaced]) -> tuple[DepositBack, ...]:
    """The deposits of these bids, to be given back."""
    return tuple(DepositBack(bid.bid_id, bid.account_id, bid.deposit) for bid in bids)


# How we decide.


def decide_open(command: OpenAuction, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE, AUCTION_STATE, PRICING_UNKNOWN,
    PRICING_NOT_OFFERED, AUCTION_TERMS, CREDIT_TOO_LOW.
    """
    lease = lease_of(world, command.lease_id)
    asked = lease.requested
    assert asked is not None
    if lease.status != "requested":
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if auction_of(world, command.lease_id).opened is not None:
        raise Refused(MarketReason.AUCTION_STATE, lease_id=command.lease_id)
    module = module_of(command.pricing)
    if module.kind != AUCTION or asked.pricing != label(module):
        raise Refused(PricesReason.PRICING_NOT_OFFERED, pricing=command.pricing, kind=module.kind)
    deposit = DEPOSIT if command.deposit is None else command.deposit
    bids_max = BIDS_MAX if command.bids_max is None else command.bids_max
    _require_terms(command, deposit, bids_max, is_sealed=module.name == "second_price")
    _require_funds(asked, command.at_us, world)
    opened = AuctionOpened(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        pricing=label(module),
        cap_per_gpu_hour=asked.max_price_per_gpu_hour,
        deposit=deposit,
        bids_max=bids_max,
        pick=command.pick,
        closes_at_us=command.closes_at_us,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.lease_id), opened)]


def _require_terms(
    command: OpenAuction, deposit: Amount, bids_max: int, *, is_sealed: bool
) -> None:
    """Raises Refused: AUCTION_TERMS."""
    lasts_us = command.closes_at_us - command.at_us
    if not CLOSES_AFTER_MIN_US <= lasts_us <= CLOSES_AFTER_MAX_US:
        raise Refused(MarketReason.AUCTION_TERMS, field="closes_at", at_most_us=CLOSES_AFTER_MAX_US)
    if deposit.asset is not Asset.CREDIT or not 0 <= deposit.units <= DEPOSIT_UNITS_MAX:
        raise Refused(MarketReason.AUCTION_TERMS, field="deposit", at_most=DEPOSIT_UNITS_MAX)
    if not 1 <= bids_max <= BIDS_LIMIT:
        raise Refused(MarketReason.AUCTION_TERMS, field="bids_max", at_most=BIDS_LIMIT)
    if command.pick not in PICKS or (is_sealed and command.pick != "cheapest"):
        raise Refused(MarketReason.AUCTION_TERMS, field="pick", pick=command.pick)


def _require_funds(asked: LeaseRequested, at_us: int, world: World) -> None:
    """Nobody lets others bid for what an hour at the cap could not pay. Holds nothing.

    Raises Refused: CREDIT_TOO_LOW.
    """
    gpu_us = asked.gpu_count * asked.share_ppm * (asked.term_us or MIN_RUNWAY_US) // PPM
    needed = charge_for(gpu_us, asked.max_price_per_gpu_hour.units)
    ways = ("cash", "burn") if asked.pay_with is None else (asked.pay_with,)
    available = max(
        sum(source.units for source in sources_of(world, asked.account_id, way, at_us))
        for way in ways
    )
    if available < needed:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=needed, available=available)


def decide_withdraw(command: WithdrawBid, world: World) -> list[Change]:
    """Until a bid has won its bidder may take it back: with the deposit before the closing, without
    it afterwards.

    Raises Refused: LEASE_UNKNOWN, BID_UNKNOWN.
    """
    auction, opened = existing_auction(world, command.lease_id)
    bid = standing_bid(auction, command.lease_id, command.bid_id)
    if bid.account_id != command.account_id:
        raise Refused(MarketReason.BID_UNKNOWN, lease_id=command.lease_id, bid_id=command.bid_id)
    if command.at_us >= opened.closes_at_us:
        return [forfeited(bid, "withdrawn", command.by, command.at_us)]
    withdrawn = BidWithdrawn(
        lease_id=command.lease_id,
        bid_id=command.bid_id,
        account_id=bid.account_id,
        returned=bid.deposit,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.lease_id), withdrawn)]


def decide_lapse(command: LapseBids, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN."""
    auction, _ = existing_auction(world, command.lease_id)
    return [
        lapsed(bid, "expired", command.at_us)
        for bid in auction.bids.values()
        if bid.expires_at_us <= command.at_us
    ]


def lapsed(bid: BidPlaced, cause: str, at_us: int) -> Change:
    """A bid that is over without having won; its deposit goes back."""
    fact = BidLapsed(
        lease_id=bid.lease_id,
        bid_id=bid.bid_id,
        account_id=bid.account_id,
        returned=bid.deposit,
        cause=cause,
        at_us=at_us,
    )
    return Change(stream_of(bid.lease_id), fact)


def forfeited(bid: BidPlaced, cause: str, by: str, at_us: int) -> Change:
    """A bid that was bound and not kept; its deposit goes to the network."""
    fact = BidForfeited(
        lease_id=bid.lease_id,
        bid_id=bid.bid_id,
        account_id=bid.account_id,
        forfeited=bid.deposit,
        cause=cause,
        by=by,
        at_us=at_us,
    )
    return Change(stream_of(bid.lease_id), fact)


# What other decisions about the lease bring about here.


def deposits_at_opening(world: World, lease_id: str, at_us: int) -> list[Change]:
    """The winner has started: its deposit back, in the transaction that opens the lease."""
    winner = auction_of(world, lease_id).winner
    if winner is None:
        return []
    fact = WinnerDepositReturned(lease_id=lease_id, returned=back([winner])[0], at_us=at_us)
    return [Change(stream_of(lease_id), fact)]


def deposits_at_cancelling(world: World, lease: Lease, code: int, at_us: int) -> list[Change]:
    """A lease that ends before it opened: standing bids have their deposits back, and so has the
    winner, unless it is the provider's fault.
    """
    asked = lease.requested
    assert asked is not None
    auction, stream = auction_of(world, asked.lease_id), stream_of(asked.lease_id)
    if auction.status == "open":
        ended = AuctionEnded(
            lease_id=asked.lease_id, returned=back(auction.bids.values()), at_us=at_us
        )
        return [Change(stream, ended)]
    if auction.winner is None:
        return []
    if fault_of(code) != "provider" or _may_be_the_work(lease, code):
        return deposits_at_opening(world, asked.lease_id, at_us)
    forfeited = WinnerDepositForfeited(
        lease_id=asked.lease_id, forfeited=back([auction.winner])[0], code=code, at_us=at_us
    )
    return [Change(stream, forfeited)]


def _may_be_the_work(lease: Lease, code: int) -> bool:
    """Whether nothing but the bidder's word says that it is not the work's fault: the node took the
    work up, and it did not begin.
    """
    return lease.work.started is not None and code in (START_TIMEOUT, SPEC_MISMATCH)


def require_bidder(world: World, account_id: str, renter_account_id: str) -> None:
    """Raises Refused: ACCOUNT_CLOSED, NOT_PERMITTED for the renter's own bid."""
    open_account(world, account_id)
    if account_id == renter_account_id:
        raise Refused(PartiesReason.NOT_PERMITTED, rule="not one's own request")


STREAMS: dict[str, tuple[Any, Any]] = {"auction": (Auction(), evolve)}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    OpenAuction: (
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        MarketReason.AUCTION_STATE,
        PricesReason.PRICING_UNKNOWN,
        PricesReason.PRICING_NOT_OFFERED,
        MarketReason.AUCTION_TERMS,
        FundsReason.CREDIT_TOO_LOW,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {
    OpenAuction: decide_open,
    WithdrawBid: decide_withdraw,
    LapseBids: decide_lapse,
}
