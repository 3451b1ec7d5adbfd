"""Money facts of auctions and reserved terms, with any amounts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from domain.fleet.revenue_share import OwnerPart, OwnerShare, split_among
from domain.lease import reserved_term
from domain.lease.funds import EscrowPart
from domain.market import auction
from domain.money import PPM, credit
from domain.prices.charge_split import peel

AT_US = 1_795_161_600_000_000
RENTER, OWNER, LEASE, BID = "acct_renter", "acct_owner", "lease_1", "bid_1"

positive = st.integers(1, 10**20)
deposits = st.dictionaries(st.sampled_from(auction.DEPOSIT_SOURCES), positive, max_size=2).map(
    lambda parts: tuple(auction.DepositPart(name, credit(units)) for name, units in parts.items())
)
backs = st.builds(
    auction.DepositBack, st.just(BID), st.sampled_from((OWNER, "acct_rival")), deposits
)


@st.composite
def ended_early(draw: st.DrawFn) -> Any:
    """What is kept of a prepaid term: of one owner or shared by several."""
    kept, price = draw(positive), draw(st.integers(1, 10**9))
    parts = peel(kept, price, draw(st.integers(0, price)), draw(st.integers(0, PPM)), 0)
    shares = (OwnerShare("acct_a", 300_000), OwnerShare("acct_b", 500_000))
    owners = tuple(
        OwnerPart(who, part, part) for who, part in split_among(parts.provider, shares, OWNER)
    )
    return reserved_term.TermEndedEarly(
        lease_id=LEASE,
        account_id=RENTER,
        provider_account_id=OWNER,
        months=3,
        refund_ppm=500_000,
        unused=credit(2 * kept),
        refunded=credit(kept),
        kept=credit(kept),
        parts=parts,
        drawn=(EscrowPart("cash", credit(kept)),),
        at_us=AT_US,
        owners=owners if draw(st.booleans()) else (),
        client_account_id=None,
        node_id="node_1",
    )


def placed(deposit: tuple[auction.DepositPart, ...]) -> auction.BidPlaced:
    return auction.BidPlaced(
        lease_id=LEASE,
        bid_id=BID,
        number=1,
        account_id=OWNER,
        provider_id="prov_1",
        offer_id="offer_1",
        node_id="node_1",
        device_ids=("GPU-1",),
        price_per_gpu_hour=credit(1),
        deposit=deposit,
        expires_at_us=AT_US,
        at_us=AT_US,
    )


ONE: dict[str, Any] = {"lease_id": st.just(LEASE), "at_us": st.just(AT_US)}
BACK: dict[str, Any] = {
    **ONE,
    "bid_id": st.just(BID),
    "account_id": st.just(OWNER),
    "returned": deposits,
}

FACTS: dict[type[Any], st.SearchStrategy[Any]] = {
    auction.BidPlaced: deposits.map(placed),
    auction.BidWithdrawn: st.builds(auction.BidWithdrawn, **BACK, by=st.just("mem")),
    auction.BidForfeited: st.builds(
        auction.BidForfeited,
        **{"forfeited" if name == "returned" else name: each for name, each in BACK.items()},
        cause=st.just("withdrawn"),
        by=st.just("mem"),
    ),
    auction.BidLapsed: st.builds(auction.BidLapsed, **BACK, cause=st.just("expired")),
    auction.AuctionAwarded: st.builds(
        auction.AuctionAwarded,
        **ONE,
        pricing=st.just("reverse_auction/1"),
        bid_id=st.just(BID),
        ask_per_gpu_hour=st.just(credit(1)),
        price_per_gpu_hour=st.just(credit(2)),
        returned=st.lists(backs, max_size=20).map(tuple),
        by=st.just("job"),
    ),
    auction.AuctionEnded: st.builds(
        auction.AuctionEnded, **ONE, returned=st.lists(backs, max_size=20).map(tuple)
    ),
    auction.WinnerDepositReturned: st.builds(auction.WinnerDepositReturned, **ONE, returned=backs),
    auction.WinnerDepositForfeited: st.builds(
        auction.WinnerDepositForfeited, **ONE, forfeited=backs, code=st.just(10_003)
    ),
    reserved_term.TermEndedEarly: ended_early(),
}
