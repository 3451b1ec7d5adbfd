"""What the room `market` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.market import auction, offer, offer_prices, standing_bid, unmatched

FILES = (auction, offer, offer_prices, standing_bid, unmatched)
FACTS: dict[str, type[Any]] = {
    "auction.opened.v1": auction.AuctionOpened,
    "auction.bid_placed.v1": auction.BidPlaced,
    "auction.bid_withdrawn.v1": auction.BidWithdrawn,
    "auction.bid_lapsed.v1": auction.BidLapsed,
    "auction.bid_forfeited.v1": auction.BidForfeited,
    "auction.awarded.v1": auction.AuctionAwarded,
    "auction.ended.v1": auction.AuctionEnded,
    "auction.deposit_returned.v1": auction.WinnerDepositReturned,
    "auction.deposit_forfeited.v1": auction.WinnerDepositForfeited,
    "offer.published.v1": offer.OfferPublished,
    "offer.withdrawn.v1": offer.OfferWithdrawn,
    "offer.prices_set.v1": offer_prices.OfferPricesSet,
    "standing_bid.set.v1": standing_bid.StandingBidSet,
    "request.unmatched.v1": unmatched.RequestUnmatched,
}
