"""Auctions that close, bids that expire, and standing bids that are placed, paused and resumed.

Every round is harmless to repeat: an auction is awarded once, a bid's deposit goes back once, and
devices go to whoever bids most, which the same round leaves as it is. The highest bid is served
first, so a round ends; whoever was displaced in it waits for the next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from api.market.bidding_devices import bids_offered
from api.market.making_room import resuming, rooms
from api.market.matching import wish_again
from api.market.placing import floors_below, outbidding, standing_place, taking
from api.metering.accrual import NO_MONEY
from api.process.lease_desk import Round
from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.fleet.reasons import FleetReason
from domain.hardware.reasons import HardwareReason
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import CANCELLED_BEFORE_START, NO_MATCH
from domain.lease.lease import CloseLease, lease_stream
from domain.leasing.bidding import UNAVAILABLE, DropBid, award
from domain.market.auction import Auction, LapseBids
from domain.market.auction import stream_of as auction_stream
from domain.market.reasons import MarketReason
from domain.parties.reasons import PartiesReason
from domain.pools.reasons import PoolsReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections import tables
from projections.market import bids
from projections.market.bids import Standing
from projections.runner import Connection

logger = logging.getLogger(__name__)

DUE_MAX = 500
WAITING_MAX = 500
"""Standing bids read together; a round goes through all of them."""
TRIES_MAX = 100
"""Bids of one auction that may turn out to be unavailable in one round."""

NOT_NOW = frozenset(
    {
        *NO_MONEY,
        HardwareReason.DEVICE_TAKEN,
        FleetReason.DEVICE_UNKNOWN,
        FleetReason.LEASE_STATE,
        MarketReason.OFFER_MISMATCH,
        MarketReason.OFFER_WITHDRAWN,
        FleetReason.NODE_STATE,
        PartiesReason.SHARE_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.PRICE_ABOVE_CAP,
        FleetReason.NODE_IN_MAINTENANCE,
        PartiesReason.COUNTERPARTY_DENIED,
        PartiesReason.QUOTA_EXHAUSTED,
        PoolsReason.BASE_FULL,
        PartiesReason.CLIENT_NOT_AUTHORISED,
        PricesReason.GPU_CLASS_UNPRICED,
        PricesReason.TARIFF_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        JobsReason.JOB_STATE,
        HardwareReason.MODE_NOT_SUPPORTED,
        PoolsReason.QUEUE_MOVED,
    }
)
"""A standing bid that is refused so waits on."""

_RENTERS = NO_MONEY | {
    PartiesReason.QUOTA_EXHAUSTED,
    PoolsReason.BASE_FULL,
    PartiesReason.CLIENT_NOT_AUTHORISED,
    JobsReason.JOB_STATE,
}
"""Why no bid at all can be reserved: the request ends, and every bidder has its deposit back."""


class BidsStopped(Exception):
    """Some auctions or bids stop; the others went on."""


def run_bids(service: Service, connection: Connection, now_us: int) -> int:
    """What is due of auctions, then the standing bids, the highest first."""
    tables.step_all(connection, only=("fleet", "bids"))
    leases = OneByOne(logger, "bidding for %s stops")
    for lease_id in bids.read_due(connection, now_us, DUE_MAX):
        leases.take(lease_id, close_due, service, lease_id, now_us)
    tables.step_all(connection, only=("fleet", "bids"))
    for one in _waiting(connection):
        leases.take(one.lease_id, serve, service, connection, one, now_us)
    return leases.end(BidsStopped)


def _waiting(connection: Connection) -> Iterator[Standing]:
    """All of them: high bids that nobody can serve, or pay, keep none of the others waiting."""
    last: Standing | None = None
    while found := bids.read_waiting(connection, WAITING_MAX, last):
        yield from found
        last = found[-1]


# --- auctions --------------------------------------------------------------------------------


def close_due(service: Service, lease_id: str, now_us: int) -> int:
    """Expired bids' deposits back; a closed auction is awarded, or its request ends."""
    ledger = service.ledger
    auction = _auction(service, lease_id)
    opened = auction.opened
    if opened is None or auction.status != "open":
        return 0
    lapse = LapseBids(lease_id=lease_id, at_us=now_us)
    done = len(ledger.handle(lapse, key=None, now_us=now_us).changes)
    if now_us < opened.closes_at_us:
        return done
    if opened.pick == "renter":
        # The renter may still accept until the bids expire; then the request ends.
        if _auction(service, lease_id).bids:
            return done
        return done + _end(service, lease_id, NO_MATCH, now_us)
    return done + _award(service, lease_id, now_us)


def _award(service: Service, lease_id: str, now_us: int) -> int:
    """The best bid that can still be kept wins."""
    ledger, done = service.ledger, 0
    for _ in range(TRIES_MAX):
        offered = bids_offered(service, lease_id, now_us)
        found = award(ledger.world(), lease_id, None, now_us, offered)
        if found is None:
            return done + _end(service, lease_id, NO_MATCH, now_us)
        bid_id, commands = found
        try:
            return done + len(ledger.handle(list(commands), key=None, now_us=now_us).changes)
        except Refused as refused:
            if refused.reason in _RENTERS:
                return done + _end(service, lease_id, CANCELLED_BEFORE_START, now_us)
            if refused.reason not in UNAVAILABLE:
                raise
            drop = DropBid(lease_id=lease_id, bid_id=bid_id, at_us=now_us)
            done += len(ledger.handle(drop, key=None, now_us=now_us).changes)
    return done


def _end(service: Service, lease_id: str, code: int, now_us: int) -> int:
    close = CloseLease(lease_id=lease_id, closed_at_us=now_us, party="job", code=code, at_us=now_us)
    return len(service.ledger.handle(close, key=None, now_us=now_us).changes)


def _auction(service: Service, lease_id: str) -> Auction:
    return service.ledger.market.state_of(auction_stream(lease_id))


# --- standing bids ---------------------------------------------------------------------------


def serve(service: Service, connection: Connection, one: Standing, now_us: int) -> int:
    """Place a waiting bid, or go on with a paused lease, where its bid is high enough."""
    lease = service.ledger.market.state_of(lease_stream(one.lease_id))
    if lease.status == "paused":
        tables.step_all(connection, only=("bids",))
        holding = bids.read_holding(connection, node_id=one.node_id)
        return _first_of(service, resuming(one, holding, now_us), now_us)
    asked = lease.requested
    if lease.status not in ("requested", "quoted") or asked is None or asked.pricing is None:
        return 0
    tables.step_all(connection, only=("fleet", "bids"))
    wish, bid = wish_again(service, asked), one.price_units
    here = Round.of_one(service.ledger.world(), now_us)
    free = standing_place(service, connection, wish, bid, here)
    if free is not None:
        done = _first_of(service, [taking(one.lease_id, asked.pricing, free, now_us)], now_us)
        if done:
            return done
    found = rooms(
        service,
        connection,
        wish,
        here,
        bid=bid,
        pricing=asked.pricing,
        floors=floors_below(connection, bid),
    )
    ways = (outbidding(one.lease_id, asked.pricing, room, bid, now_us) for room in found)
    return _first_of(service, ways, now_us)


def _first_of(service: Service, ways: Iterable[list[Any]], now_us: int) -> int:
    """Record the first way that is possible now; 0 when none is."""
    for commands in ways:
        try:
            return len(service.ledger.handle(commands, key=None, now_us=now_us).changes)
        except Refused as refused:
            if refused.reason not in NOT_NOW:
                raise
    return 0
