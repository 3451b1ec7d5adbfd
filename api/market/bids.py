"""Bidding: open requests and their auctions, providers' bids, and renters' standing bids.

A provider bids with an offer of its own; the deposit is held from its account until somebody has
won, or it withdraws. A sealed auction's bids are nobody's but the bidder's until it is over.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Money, credits_, credits_or_none, money
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    DeviceId,
    EmptyRequest,
    LeaseId,
    LeaseInPath,
    LeaseState,
    Moment,
    NodeId,
    OfferId,
    Position,
    Ppm,
    ProviderId,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.providers import own_provider
from api.market.bidding_devices import bids_offered, free_devices, looked_for_bid
from api.market.making_room import kept_place
from domain.funds.reasons import FundsReason
from domain.jobs.reasons import JobsReason
from domain.lease.lease import Lease, ReserveLease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.lease.turns import QuoteLease
from domain.leasing.bidding import PlaceBid, award
from domain.leasing.rebid import rebidding
from domain.market.auction import Auction, BidPlaced, WithdrawBid, stream_of
from domain.market.offer import offer_stream
from domain.market.reasons import MarketReason
from domain.market.standing_bid import stream_of as standing_stream_of
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.rules import refused_by
from projections.market import bids
from projections.market.bids import BIDS
from projections.pools.pools import POOLS

resource = Resource("bids")

RENTER = with_scope("renter", "client")
PROVIDER = with_scope("provider")
READ = with_scope("renter", "provider", "client", "operator", "audit:read")
BidInPath = Annotated[str, Path(pattern=r"^bid_[0-9A-Za-z]{1,64}$")]
BidId = Annotated[str, Field(pattern=r"^bid_[0-9A-Za-z]{1,64}$")]
BidState = Literal["standing", "withdrawn", "expired", "unavailable", "won", "lost"]
DepositState = Literal["held", "returned", "forfeited"]
SEALED = "second_price/"


class AuctionAnswer(AnswerModel):
    """A request that takes bids until `closes_at`, or what came of it. `sla_class`: what the lease
    promises its renter; an offer that promises less cannot win.
    """

    lease_id: LeaseId
    state: Literal["open", "awarded", "ended"]
    pricing: str
    gpu_count: Annotated[int, Field(ge=1, le=64)]
    share_ppm: Ppm
    mem_ppm: Ppm
    models: list[str]
    max_price_per_gpu_hour: Money
    term_seconds: Count | None = None
    sla_class: str | None = None
    deposit: Money
    bids_max: Count
    bids: Count
    pick: Literal["cheapest", "renter"]
    closes_at: Told_at
    winner_bid_id: BidId | None = None
    price_per_gpu_hour: Money | None = None
    opened_at: Told_at
    position: Position | None = None


class BidRequest(RequestModel):
    """With which offer of yours, at which price. `device_ids` absent: free ones of its node.
    `expires_at` absent: it stands until the auction is over; else no later than the closing, from
    which on a bid binds.
    """

    offer_id: OfferId
    price_per_gpu_hour: Money
    device_ids: Annotated[list[DeviceId], Field(min_length=1, max_length=64)] | None = None
    expires_at: Moment | None = None

    model_config = with_examples(
        {
            "offer_id": "offer_" + "1" * 32,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "1900000"},
        }
    )


class BidAnswer(AnswerModel):
    """`deposit_state`: held while the bid stands or has won and not started; then returned, or
    forfeited to the network.
    """

    bid_id: BidId
    lease_id: LeaseId
    place: Count
    account_id: AccountId
    provider_id: ProviderId
    offer_id: OfferId
    node_id: NodeId
    device_ids: list[DeviceId]
    price_per_gpu_hour: Money
    deposit: Money
    deposit_state: DepositState
    state: BidState
    expires_at: Told_at
    placed_at: Told_at
    ended_at: Told_at | None = None
    position: Position | None = None


class BidWithdrawnAnswer(AnswerModel):
    bid_id: BidId
    lease_id: LeaseId
    returned: Money
    position: Position | None = None


class BidAcceptedAnswer(AnswerModel):
    """Reserved at the bid, and waiting for the node. `held` is what the escrow holds."""

    lease_id: LeaseId
    bid_id: BidId
    state: LeaseState
    node_id: NodeId
    price_per_gpu_hour: Money
    held: Money
    position: Position | None = None


class StandingBidAnswer(AnswerModel):
    """`state`: waiting for devices, holding them, paused because it was outbid or its renter asked,
    or over. `lowest_winning`: the bid to beat on devices of its class.
    """

    lease_id: LeaseId
    bid: Money
    state: Literal["waiting", "holding", "paused", "over"]
    reason: Literal["outbid", "renter"] | None = None
    node_id: NodeId | None = None
    since: Told_at
    lowest_winning: Money | None = None
    position: Position | None = None


class StandingBidRequest(RequestModel):
    """Raise or lower the bid. A lease that has run keeps its price: another one goes on with its
    job at the new bid.
    """

    bid: Money

    model_config = with_examples({"bid": {"asset": "CREDIT", "units": "1500000"}})


class StandingBidSetAnswer(AnswerModel):
    """`lease_id`: the lease that has the bid now; another than before where one had run."""

    lease_id: LeaseId
    bid: Money
    restart_of: LeaseId | None = None
    position: Position | None = None


# --- auctions and their bids -----------------------------------------------------------------


@resource.get("/v1/auctions", READ, page_of(AuctionAnswer), problems=["cursor_invalid"])
def list_auctions(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists requests that take bids now, in the order in which they came."""
    place = call.place(cursor, [0], order)
    with call.read(BIDS) as view:
        rows = bids.read_open_requests(
            view.connection, call.now_us, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _auction)


@resource.get("/v1/auctions/{lease_id}", READ, AuctionAnswer, problems=[LeaseReason.LEASE_UNKNOWN])
def read_auction(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns the auction of a request. Every bidder can read what the request asks for."""
    with call.read(BIDS) as view:
        found = bids.read_request(view.connection, lease_id)
        if found is None:
            raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        return call.answer(view, _auction(found))


@resource.post(
    "/v1/auctions/{lease_id}/bids", PROVIDER, BidAnswer, status=201, problems=refused_by(PlaceBid)
)
def submit_bid(lease_id: LeaseInPath, body: BidRequest, call: Caller) -> Response:
    """Places a bid on a request with one of your offers. The deposit is held until a bid wins."""
    bid_id = call.id("bid")

    def commands() -> PlaceBid:
        offer = _own_offer(call, body.offer_id)
        devices = body.device_ids
        if devices is None:
            devices = free_devices(call.service, lease_id, offer.node_id)
        looked = looked_for_bid(
            call.service, lease_id, body.offer_id, offer.node_id, devices, call.now_us
        )
        return PlaceBid(
            lease_id=lease_id,
            bid_id=bid_id,
            account_id=call.principal.account_id,
            provider_id=offer.provider_id,
            offer_id=body.offer_id,
            device_ids=tuple(devices),
            price_per_gpu_hour=body.price_per_gpu_hour.amount(),
            at_us=call.now_us,
            expires_at_us=body.expires_at,
            looked=looked,
        )

    def told(after: After) -> AnswerModel:
        auction = after.state(stream_of(lease_id))
        return _placed(auction.bids[bid_id])

    return call.record(commands, told)


@resource.get(
    "/v1/auctions/{lease_id}/bids",
    READ,
    page_of(BidAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_auction_bids(
    lease_id: LeaseInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the bids of a request: all for its renter and for operators, your own for a bidder.
    In a sealed auction no bidder sees another bid before the auction is over.
    """
    place = call.place(cursor, [0], order)
    with call.read(BIDS) as view:
        found = bids.read_request(view.connection, lease_id)
        if found is None:
            raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        is_sealed = found.state == "open" and found.pricing.startswith(SEALED)
        sees_all = call.principal.may_see(found.account_id) and not is_sealed
        rows = bids.read_bids(
            view.connection,
            lease_id=lease_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
            account_id=None if sees_all else call.principal.account_id,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _bid)


@resource.get("/v1/bids", PROVIDER, page_of(BidAnswer), problems=["cursor_invalid"])
def list_bids(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists your bids and the state of their deposits, in order."""
    place = call.place(cursor, [0], order)
    with call.read(BIDS) as view:
        rows = bids.read_bids(
            view.connection,
            account_id=call.principal.account_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _bid)


@resource.post(
    "/v1/auctions/{lease_id}/bids/{bid_id}/withdraw",
    PROVIDER,
    BidWithdrawnAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, MarketReason.BID_UNKNOWN],
)
def withdraw_bid(
    lease_id: LeaseInPath, bid_id: BidInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Withdraws a bid that has not won. Before the closing its deposit comes back; a bid binds
    from then on, and a bidder that withdraws it forfeits the deposit to the network.
    """
    del body
    returned: list[int] = []

    def commands() -> WithdrawBid:
        auction = _state(call, lease_id)
        bid = auction.bids.get(bid_id)
        back = () if bid is None or not auction.is_open(call.now_us) else bid.deposit
        returned[:] = [sum(part.amount.units for part in back)]
        return WithdrawBid(
            lease_id=lease_id,
            bid_id=bid_id,
            account_id=call.principal.account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(_after: After) -> AnswerModel:
        return BidWithdrawnAnswer(bid_id=bid_id, lease_id=lease_id, returned=credits_(returned[0]))

    return call.record(commands, told)


@resource.post(
    "/v1/auctions/{lease_id}/bids/{bid_id}/accept",
    RENTER,
    BidAcceptedAnswer,
    problems=refused_by(QuoteLease, ReserveLease),
)
def accept_bid(
    lease_id: LeaseInPath, bid_id: BidInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Accepts a bid of a request whose `pick` is "renter". The lease is reserved at its price."""
    del body

    def commands() -> list[Any]:
        auction = _state(call, lease_id)
        opened = auction.opened
        if opened is None or not call.principal.owns(opened.account_id):
            raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        if bid_id not in auction.bids:
            raise Refused(MarketReason.BID_UNKNOWN, lease_id=lease_id, bid_id=bid_id)
        offered = bids_offered(call.service, lease_id, call.now_us)
        found = award(call.service.ledger.world(), lease_id, bid_id, call.now_us, offered)
        if found is None or found[0] != bid_id:
            raise Refused(
                MarketReason.BID_STATE, bid_id=bid_id, rule="it has expired, or cannot win"
            )
        return list(found[1])

    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        reserved = lease.reserved
        assert reserved is not None
        state: Any = lease.status
        return BidAcceptedAnswer(
            lease_id=lease_id,
            bid_id=bid_id,
            state=state,
            node_id=reserved.node_id,
            price_per_gpu_hour=money(reserved.price_per_gpu_hour),
            held=credits_(lease.held_units),
        )

    return call.record(commands, told)


# --- standing bids ---------------------------------------------------------------------------


@resource.post(
    "/v1/leases/{lease_id}/bid",
    RENTER,
    StandingBidSetAnswer,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        PricesReason.PRICING_NOT_OFFERED,
        MarketReason.BID_STATE,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PricesReason.PRICE_ABOVE_CAP,
        JobsReason.JOB_STATE,
        PartiesReason.ACCOUNT_CLOSED,
    ],
)
def set_standing_bid(lease_id: LeaseInPath, body: StandingBidRequest, call: Caller) -> Response:
    """Raises or lowers the standing bid of an interruptible lease."""
    next_id = call.id("lease")
    at: list[str] = [lease_id]

    def commands() -> list[Any]:
        lease = _own_lease(call, lease_id)
        bid = body.bid.amount()
        kept = kept_place(call.service, lease, bid.units, call.now_us)
        found = rebidding(lease, bid, next_id, call.now_us, kept)
        at[:] = [found.lease_id]
        return list(found.commands)

    def told(_after: After) -> AnswerModel:
        before = None if at[0] == lease_id else lease_id
        return StandingBidSetAnswer(lease_id=at[0], bid=body.bid, restart_of=before)

    return call.record(commands, told)


@resource.get(
    "/v1/leases/{lease_id}/bid", READ, StandingBidAnswer, problems=[LeaseReason.LEASE_UNKNOWN]
)
def read_standing_bid(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns the standing bid of an interruptible lease, and the bid to beat."""
    with call.read(BIDS, POOLS) as view:
        found = bids.read_standing(view.connection, lease_id)
        if found is None or not call.principal.may_see(found.account_id):
            raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        winning = {
            row.gpu_class: row.lowest_units for row in bids.read_market_prices(view.connection)
        }
        lowest = winning.get(found.gpu_class or "")
        state: Any = found.state
        reason: Any = found.reason
        return call.answer(
            view,
            StandingBidAnswer(
                lease_id=lease_id,
                bid=credits_(found.price_units),
                state=state,
                reason=reason,
                node_id=found.node_id,
                since=moment(found.since_us),
                lowest_winning=credits_or_none(lowest),
            ),
        )


# --- small things ----------------------------------------------------------------------------


def _own_lease(call: Call, lease_id: str) -> Lease:
    lease = call.service.ledger.market.state_of(lease_stream(lease_id))
    standing = call.service.ledger.market.state_of(standing_stream_of(lease_id))
    asked = lease.requested
    if asked is None or standing.current is None or not call.principal.owns(asked.account_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return lease


def _own_offer(call: Call, offer_id: str) -> Any:
    """Raises Refused: OFFER_UNKNOWN, also for another account's."""
    state = call.service.ledger.market.state_of(offer_stream(offer_id))
    if state.published is None:
        raise Refused(MarketReason.OFFER_UNKNOWN, offer_id=offer_id)
    try:
        own_provider(call, state.published.provider_id)
    except Refused:
        raise Refused(MarketReason.OFFER_UNKNOWN, offer_id=offer_id) from None
    return state.published


def _state(call: Call, lease_id: str) -> Auction:
    return call.service.ledger.market.state_of(stream_of(lease_id))


def _auction(row: bids.OpenRequest) -> AuctionAnswer:
    told: Any = row
    return AuctionAnswer(
        lease_id=row.lease_id,
        state=told.state,
        pricing=row.pricing,
        gpu_count=row.gpu_count,
        share_ppm=row.share_ppm,
        mem_ppm=row.mem_ppm,
        models=row.models,
        max_price_per_gpu_hour=credits_(row.cap_units),
        term_seconds=None if row.term_us is None else row.term_us // 1_000_000,
        sla_class=row.sla_class,
        deposit=credits_(row.deposit_units),
        bids_max=row.bids_max,
        bids=row.standing,
        pick=told.pick,
        closes_at=moment(row.closes_at_us),
        winner_bid_id=row.winner_bid_id,
        price_per_gpu_hour=credits_or_none(row.price_units),
        opened_at=moment(row.at_us),
    )


def _bid(row: bids.Bid) -> BidAnswer:
    told: Any = row
    return BidAnswer(
        bid_id=row.bid_id,
        lease_id=row.lease_id,
        place=row.number,
        account_id=row.account_id,
        provider_id=row.provider_id,
        offer_id=row.offer_id,
        node_id=row.node_id,
        device_ids=row.device_ids,
        price_per_gpu_hour=credits_(row.price_units),
        deposit=credits_(row.deposit_units),
        deposit_state=told.deposit,
        state=told.state,
        expires_at=moment(row.expires_at_us),
        placed_at=moment(row.at_us),
        ended_at=moment_or_none(row.ended_at_us),
    )


def _placed(bid: BidPlaced) -> BidAnswer:
    return BidAnswer(
        bid_id=bid.bid_id,
        lease_id=bid.lease_id,
        place=bid.number,
        account_id=bid.account_id,
        provider_id=bid.provider_id,
        offer_id=bid.offer_id,
        node_id=bid.node_id,
        device_ids=list(bid.device_ids),
        price_per_gpu_hour=money(bid.price_per_gpu_hour),
        deposit=credits_(sum(part.amount.units for part in bid.deposit)),
        deposit_state="held",
        state="standing",
        expires_at=moment(bid.expires_at_us),
        placed_at=moment(bid.at_us),
    )
