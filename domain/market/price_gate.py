"""Whether a reservation has the price its pricing module gives: asked again, from the streams.

    auction:   the bid stands, the module chooses it, and the price is the one it is paid
    standing:  the price is the renter's standing bid, at least the floor of the provider's list
    term:      the price and the refund are those of the list for these months

A quote only proposes: whatever quoted, nothing is reserved at another price. The renter's own node
costs the usage fee under every module. Source: design marketplace 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.frozen import replace
from domain.hardware.constraints import Constraints
from domain.lease.lease import LeaseRequested, LeaseReserved, PrepaidTerm, RequestLease
from domain.lease.reserved_term import term_us
from domain.lease.turns import LeaseQuoted
from domain.market.auction import (
    Auction,
    AuctionAwarded,
    AuctionOpened,
    auction_of,
    back,
    standing_bid,
    stream_of,
)
from domain.market.offer_prices import prices_of
from domain.market.reasons import MarketReason
from domain.market.standing_bid import standing_bid_of
from domain.money import credit
from domain.prices.modules import (
    AUCTION,
    DEFAULT,
    STANDING,
    TERM,
    PriceOffer,
    PriceRequest,
    PricingPolicy,
    Trade,
    is_trade,
    label,
    module_for,
    module_of,
)
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True)
class Priced:
    """What the module adds to a reservation."""

    pricing: str | None = None
    prepaid: PrepaidTerm | None = None
    changes: tuple[Change, ...] = ()


def pricing_of(command: RequestLease, of_pool: str | None) -> str | None:
    """The module a request names, with its version; `of_pool`: what its pool prices with.

    Raises Refused: PRICING_UNKNOWN, PRICING_NOT_OFFERED, TERM_NOT_OFFERED where months and module,
    or months and term, do not go together.
    """
    module = module_for(command.pricing, of_pool)
    if command.pricing is None and command.months is None:
        if module.name != DEFAULT:
            raise Refused(PricesReason.PRICING_NOT_OFFERED, rule=f"the pool's is {module.name}")
        return None
    if (module.kind == TERM) != (command.months is not None):
        raise Refused(PricesReason.TERM_NOT_OFFERED, months=command.months, pricing=module.name)
    if command.months is not None and command.term_us != term_us(command.months):
        raise Refused(PricesReason.TERM_NOT_OFFERED, months=command.months, term_us=command.term_us)
    return label(module)


def interruptible_if_bid(
    command: RequestLease, constraints: Constraints | None
) -> Constraints | None:
    """The job's demands; whoever makes a standing bid agrees to be paused."""
    if command.pricing is None or module_of(command.pricing).kind != STANDING:
        return constraints
    return replace(constraints or Constraints(), interruptible=True)


def priced(
    world: World, asked: LeaseRequested, terms: LeaseReserved, quote: LeaseQuoted | None, at_us: int
) -> Priced:
    """What its module says of a reservation on these terms. Raises Refused: AUCTION_STATE,
    BID_UNKNOWN, BID_STATE, OFFER_MISMATCH, TERM_NOT_OFFERED.
    """
    if asked.pricing is None:
        return Priced()
    kind = module_of(asked.pricing).kind
    if kind == AUCTION:
        return Priced(asked.pricing, changes=_awarded(world, asked, quote, at_us))
    if kind == STANDING:
        _require_standing(world, terms)
    if kind == TERM:
        return _reserved(world, asked, terms)
    return Priced(asked.pricing)


def trade_of(auction: Auction, opened: AuctionOpened, pick: str | None, at_us: int) -> Trade | None:
    """What the auction's module makes of the bids that stand."""
    module = module_of(opened.pricing)
    request = PriceRequest(
        request_id=opened.lease_id, cap=opened.cap_per_gpu_hour.units, at_us=at_us
    )
    offers = [
        PriceOffer(
            offer_id=bid.bid_id,
            ask=bid.price_per_gpu_hour.units,
            arrived=bid.number,
            expires_at_us=bid.expires_at_us,
        )
        for bid in auction.bids.values()
    ]
    policy = PricingPolicy(pick=pick)
    trades = module.choose(module.quote(request, offers, policy), policy)
    for trade in trades:
        assert is_trade(trade.ask, trade.price, request.cap), trade
    return trades[0] if trades else None


def _awarded(
    world: World, asked: LeaseRequested, quote: LeaseQuoted | None, at_us: int
) -> tuple[Change, ...]:
    """The award, and the losing deposits back, in the append of the reservation."""
    auction = auction_of(world, asked.lease_id)
    opened = auction.opened
    if auction.status != "open" or opened is None or quote is None or quote.bid_id is None:
        raise Refused(MarketReason.AUCTION_STATE, lease_id=asked.lease_id, rule="only a bid wins")
    bid = standing_bid(auction, asked.lease_id, quote.bid_id)
    is_picked = opened.pick == "renter"
    if not is_picked and at_us < opened.closes_at_us:
        raise Refused(MarketReason.AUCTION_STATE, closes_at_us=opened.closes_at_us)
    trade = trade_of(auction, opened, bid.bid_id if is_picked else None, at_us)
    paid = quote.price_per_gpu_hour.units
    if trade is None or (trade.offer_id, trade.price) != (bid.bid_id, paid):
        raise Refused(MarketReason.BID_STATE, bid_id=bid.bid_id, price=paid)
    awarded = AuctionAwarded(
        lease_id=asked.lease_id,
        pricing=opened.pricing,
        bid_id=bid.bid_id,
        ask_per_gpu_hour=bid.price_per_gpu_hour,
        price_per_gpu_hour=credit(trade.price),
        returned=back(one for one in auction.bids.values() if one.bid_id != bid.bid_id),
        by="renter" if is_picked else "job",
        at_us=at_us,
    )
    return (Change(stream_of(asked.lease_id), awarded),)


def _require_standing(world: World, terms: LeaseReserved) -> None:
    if terms.own:
        return
    if not terms.interruptible:
        raise Refused(MarketReason.OFFER_MISMATCH, offer_id=terms.offer_id, interruptible=False)
    current = prices_of(world, terms.offer_id).current
    floor = None if current is None else current.interruptible_floor
    price = terms.price_per_gpu_hour.units
    if floor is None or floor.units > price:
        raise Refused(
            MarketReason.OFFER_MISMATCH, offer_id=terms.offer_id, rule="interruptible_floor"
        )
    bid = standing_bid_of(world, terms.lease_id).units
    if bid != price:
        raise Refused(MarketReason.OFFER_MISMATCH, bid=bid, price=price)


def _reserved(world: World, asked: LeaseRequested, terms: LeaseReserved) -> Priced:
    assert asked.months is not None
    line = prices_of(world, terms.offer_id).reserved(asked.months)
    if line is None:
        raise Refused(PricesReason.TERM_NOT_OFFERED, months=asked.months, offer_id=terms.offer_id)
    if not terms.own and terms.price_per_gpu_hour != line.price_per_gpu_hour:
        raise Refused(
            MarketReason.OFFER_MISMATCH, offer_id=terms.offer_id, rule="price of the months"
        )
    return Priced(asked.pricing, prepaid=PrepaidTerm(line.months, line.refund_ppm))
