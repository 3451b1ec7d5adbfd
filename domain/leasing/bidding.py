"""Bidding: a provider's bid on a request, and the commands that carry an award out.

A bid is checked like a reservation of its devices, so what it offers could be had when it was
made; it holds the bidder's deposit and nothing else. The lease's stream tells it as a quote. What
is no longer there when the bid has won is dropped, and the next one wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.fleet.device import device_of, free_mem, free_share
from domain.fleet.node import node_of
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.hardware.constraints import Weights
from domain.hardware.reasons import HardwareReason
from domain.lease.choice import Candidate
from domain.lease.lease import QUOTES_MAX, Lease, LeaseRequested, lease_of
from domain.lease.looked import NOT_LOOKED, Looked
from domain.lease.reasons import LeaseReason
from domain.lease.turns import QuoteLease
from domain.leasing.life import decide_quote
from domain.leasing.taking import Place, quoting, reserving
from domain.leasing.terms import MATCH_REFUSES, quoted_terms
from domain.market.auction import (
    Auction,
    AuctionOpened,
    BidPlaced,
    auction_of,
    existing_auction,
    forfeited,
    hold_deposit,
    lapsed,
    require_bidder,
    standing_bid,
    stream_of,
)
from domain.market.dimensions import OfferedNode
from domain.market.matching import CANDIDATES_MAX, PICKED, Match, candidate_of
from domain.market.need import need_of
from domain.market.offer import existing_offer, offer_of, require_covers_fee, require_price
from domain.market.price_gate import trade_of
from domain.market.reasons import MarketReason
from domain.money import Amount, credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Change, World, derive_id

DECIDE_US = 600_000_000
"""How long after the closing a bid that names no expiry still stands: time to award it."""

UNAVAILABLE = frozenset(
    {
        HardwareReason.DEVICE_TAKEN,
        FleetReason.DEVICE_UNKNOWN,
        MarketReason.OFFER_WITHDRAWN,
        MarketReason.OFFER_MISMATCH,
        FleetReason.NODE_STATE,
        FleetReason.NODE_IN_MAINTENANCE,
        PricesReason.GPU_CLASS_UNPRICED,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.COUNTERPARTY_DENIED,
        PartiesReason.SHARE_OUT_OF_RANGE,
        HardwareReason.MODE_NOT_SUPPORTED,
    }
)
"""Why a winning bid cannot be reserved through no fault of the renter's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBid:
    """`expires_at_us` None: until `DECIDE_US` after the closing."""

    lease_id: str
    bid_id: str
    account_id: str
    provider_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    price_per_gpu_hour: Amount
    at_us: int
    expires_at_us: int | None = None
    looked: Looked = NOT_LOOKED


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBid:
    """The timer: what the bid offered cannot be reserved any more. Its deposit goes back, unless
    the bidder took the offer or the node away.
    """

    lease_id: str
    bid_id: str
    at_us: int


def decide_place(command: PlaceBid, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, AUCTION_STATE, PROVIDER_UNKNOWN, OFFER_UNKNOWN, NOT_PERMITTED,
    ACCOUNT_CLOSED, BID_EXISTS, BIDS_FULL, AUCTION_TERMS, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    PRICE_BELOW_USAGE_FEE, DEVICE_TAKEN, CREDIT_TOO_LOW and like a reservation of these devices.
    """
    auction, opened = existing_auction(world, command.lease_id)
    if not auction.is_open(command.at_us):
        raise Refused(MarketReason.AUCTION_STATE, lease_id=command.lease_id, status=auction.status)
    _require_own_offer(command, world)
    require_bidder(world, command.account_id, opened.account_id)
    if any(bid.account_id == command.account_id for bid in auction.bids.values()):
        raise Refused(MarketReason.BID_EXISTS, lease_id=command.lease_id, rule="one at a time")
    if len(auction.bids) >= opened.bids_max:
        raise Refused(MarketReason.BIDS_FULL, lease_id=command.lease_id, bids_max=opened.bids_max)
    bid = _bid(command, auction, opened, world)
    lease = lease_of(world, command.lease_id)
    quoted = _quoted(lease, bid, command.looked, opened, world)
    return [Change(stream_of(command.lease_id), bid), *quoted]


def _require_own_offer(command: PlaceBid, world: World) -> None:
    """Raises Refused: PROVIDER_UNKNOWN, OFFER_UNKNOWN, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    PRICE_BELOW_USAGE_FEE.
    """
    provider = existing_provider(world, command.provider_id)
    if provider.account_id != command.account_id:
        raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=command.provider_id)
    offer = existing_offer(world, command.offer_id)
    if offer.provider_id != command.provider_id:
        raise Refused(MarketReason.OFFER_UNKNOWN, offer_id=command.offer_id)
    require_price(command.price_per_gpu_hour)
    require_covers_fee(world, offer.node_id, command.price_per_gpu_hour, command.at_us)


def _bid(command: PlaceBid, auction: Auction, opened: AuctionOpened, world: World) -> BidPlaced:
    last_us = opened.closes_at_us + DECIDE_US
    expires_us = last_us if command.expires_at_us is None else command.expires_at_us
    if not command.at_us < expires_us <= last_us:
        raise Refused(MarketReason.AUCTION_TERMS, field="expires_at", at_most_us=last_us)
    if opened.closes_at_us < expires_us < last_us:
        raise Refused(MarketReason.AUCTION_TERMS, rule="binds", closes_at_us=opened.closes_at_us)
    return BidPlaced(
        lease_id=command.lease_id,
        bid_id=command.bid_id,
        number=auction.placed + 1,
        account_id=command.account_id,
        provider_id=command.provider_id,
        offer_id=command.offer_id,
        node_id=existing_offer(world, command.offer_id).node_id,
        device_ids=command.device_ids,
        price_per_gpu_hour=command.price_per_gpu_hour,
        deposit=hold_deposit(world, command.account_id, opened.deposit.units),
        expires_at_us=expires_us,
        at_us=command.at_us,
    )


def _quoted(
    lease: Lease, bid: BidPlaced, looked: Looked, opened: AuctionOpened, world: World
) -> list[Change]:
    """The bid as a quote of the lease, as long as there is room for the one that is accepted."""
    asked = lease.requested
    assert asked is not None
    for device_id in bid.device_ids:
        device = device_of(world, device_id)
        if free_share(device) < asked.share_ppm or free_mem(device) < asked.mem_ppm:
            raise Refused(HardwareReason.DEVICE_TAKEN, device_id=device_id)
    command = QuoteLease(
        lease_id=bid.lease_id,
        quote_id=bid.bid_id,
        rule=opened.pricing,
        node_id=bid.node_id,
        offer_id=bid.offer_id,
        device_ids=bid.device_ids,
        price_per_gpu_hour=bid.price_per_gpu_hour,
        expires_at_us=bid.expires_at_us,
        at_us=bid.at_us,
        bid_id=bid.bid_id,
        looked=looked,
    )
    if len(lease.quotes) >= QUOTES_MAX - 1:
        quoted_terms(lease, command, world)
        return []
    open_until_us = opened.closes_at_us + DECIDE_US  # the request waits for the auction's end
    return [
        replace(change, fact=replace(change.fact, open_until_us=open_until_us))
        for change in decide_quote(command, world)
    ]


def decide_drop(command: DropBid, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, BID_UNKNOWN."""
    auction, _ = existing_auction(world, command.lease_id)
    bid = standing_bid(auction, command.lease_id, command.bid_id)
    if _was_taken_away(bid, world):
        return [forfeited(bid, "unavailable", "job", command.at_us)]
    return [lapsed(bid, "unavailable", command.at_us)]


def _was_taken_away(bid: BidPlaced, world: World) -> bool:
    """Whether the offer was withdrawn or its node serves no more: the bidder's side does so."""
    offer, node = offer_of(world, bid.offer_id), node_of(world, bid.node_id)
    return bool(offer.is_withdrawn or node.phase != "active")


# An award, as commands: a quote at the price that is paid, and its acceptance.


@dataclass(frozen=True, slots=True)
class Offered:
    """What the fleet's view tells of a bid's node at `position`, and what of it enters the
    decision.
    """

    node: OfferedNode
    looked: Looked
    position: int


NOTHING_OFFERED: Mapping[str, Offered] = {}


def award(
    world: World,
    lease_id: str,
    pick: str | None,
    at_us: int,
    offered: Mapping[str, Offered] = NOTHING_OFFERED,
) -> tuple[str, tuple[Any, ...]] | None:
    """The bid that wins now, and the commands that reserve it; None: nothing stands that could.

    `pick`: the renter's choice. `offered`: by bid. What may be awarded, and when, the reservation
    decides.
    """
    auction = auction_of(world, lease_id)
    opened = auction.opened
    trade = None if opened is None else trade_of(auction, opened, pick, at_us)
    if opened is None or trade is None:
        return None
    bid = auction.bids[trade.offer_id]
    seen = offered.get(bid.bid_id)
    place = Place(
        match=_among(world, auction, bid, offered, at_us),
        rule=PICKED if opened.pick == "renter" else opened.pricing,
        looked=NOT_LOOKED if seen is None else seen.looked,
        position=0 if seen is None else seen.position,
        weights=_weights_of(world, lease_id, at_us),
    )
    quote_id = derive_id("quote", lease_id, f"{bid.bid_id}/{trade.price}")
    quote = quoting(
        lease_id,
        quote_id,
        place,
        at_us,
        pricing=opened.pricing,
        price=credit(trade.price),
        expires_at_us=at_us + DECIDE_US,
        bid_id=bid.bid_id,
    )
    return bid.bid_id, (quote, reserving(lease_id, place, at_us, quote_id=quote_id))


def _weights_of(world: World, lease_id: str, at_us: int) -> Weights | None:
    asked = lease_of(world, lease_id).requested
    return None if asked is None else need_of(world, asked, at_us, NOT_LOOKED).constraints.weights


def _among(
    world: World, auction: Auction, won: BidPlaced, offered: Mapping[str, Offered], at_us: int
) -> Match:
    """The winner among the bids that stood, the lowest first and the first to come before others
    at the same price; the winner is always on the list.
    """
    ranked = sorted(auction.bids.values(), key=lambda one: (one.price_per_gpu_hour, one.number))
    listed = ranked[:CANDIDATES_MAX]
    if won not in listed:
        listed = [*listed[:-1], won]
    asked = lease_of(world, won.lease_id).requested
    assert asked is not None
    candidates = tuple(_candidate(world, asked, one, offered, at_us) for one in listed)
    return Match(won.node_id, won.offer_id, won.device_ids, candidates, len(ranked))


def _candidate(
    world: World, asked: LeaseRequested, bid: BidPlaced, offered: Mapping[str, Offered], at_us: int
) -> Candidate:
    """A bid with the score of its node at the price that is bid, where the node was looked at."""
    price, seen = bid.price_per_gpu_hour.units, offered.get(bid.bid_id)
    if seen is None:
        return Candidate(bid.node_id, bid.offer_id, price, 0, 0)
    need = need_of(world, asked, at_us, seen.looked)
    return candidate_of(need, replace(seen.node, price=price), (0, bid.device_ids))


STREAMS: dict[str, tuple[Any, Any]] = {}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    PlaceBid: (
        LeaseReason.LEASE_UNKNOWN,
        MarketReason.AUCTION_STATE,
        FleetReason.PROVIDER_UNKNOWN,
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ACCOUNT_CLOSED,
        MarketReason.BID_EXISTS,
        MarketReason.BIDS_FULL,
        MarketReason.AUCTION_TERMS,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PricesReason.PRICE_BELOW_USAGE_FEE,
        FundsReason.CREDIT_TOO_LOW,
        *MATCH_REFUSES,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {PlaceBid: decide_place, DropBid: decide_drop}
