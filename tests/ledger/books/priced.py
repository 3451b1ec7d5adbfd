"""Money facts of auctions, reserved terms and volumes, with any amounts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from domain.fleet.revenue_share import OwnerPart, OwnerShare, split_among
from domain.funds.draw import Drawn
from domain.lease import reserved_term
from domain.lease.funds import EscrowPart
from domain.market import auction
from domain.money import PPM, credit
from domain.prices.charge_split import Parts, peel
from domain.storage import volume

AT_US = 1_795_161_600_000_000
RENTER, OWNER, LEASE, BID = "acct_renter", "acct_owner", "lease_1", "bid_1"
VOLUME = "volume_1"
SOURCES = st.sampled_from(("grant", "earned", "cash", "card", "burned"))

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


@st.composite
def reserves(draw: st.DrawFn) -> tuple[EscrowPart, ...]:
    """Of the account itself and of who pays for it, each source once, by any deposit."""
    accounts = st.sampled_from((None, "acct_payer"))
    parts = draw(st.dictionaries(st.tuples(accounts, SOURCES, st.integers(1, 3)), positive))
    return tuple(
        EscrowPart(source, credit(held), number, who)
        for (who, source, number), held in parts.items()
    )


@st.composite
def volume_charges(draw: st.DrawFn) -> volume.VolumeCharged:
    """What the balance gives, and the reserve for the rest."""
    accounts = st.sampled_from((RENTER, "acct_payer"))
    balance = draw(st.dictionaries(st.tuples(accounts, SOURCES), positive, max_size=5))
    reserve = draw(reserves())
    units = sum(balance.values()) + sum(part.amount.units for part in reserve)
    new = credit(units)
    provider = draw(st.integers(0, units))
    burn = draw(st.integers(0, units - provider))
    parts = Parts(fee=0, provider=provider, platform=units - provider - burn, burn=burn)
    return volume.VolumeCharged(
        volume_id=VOLUME,
        account_id=RENTER,
        provider_account_id="acct_owner",
        project_id=None,
        size_gib=1,
        until_us=AT_US,
        elapsed_us=1,
        elapsed_us_new=1,
        rate=None,
        tariff_version=1,
        charge=new,
        charge_new=new,
        parts=parts,
        parts_new=parts,
        drawn=tuple(Drawn(who, source, credit(held)) for (who, source), held in balance.items()),
        reserve_drawn=reserve,
        at_us=AT_US,
    )


def provisioned(reserve: tuple[EscrowPart, ...]) -> volume.VolumeProvisioned:
    return volume.VolumeProvisioned(
        volume_id=VOLUME,
        name="v",
        account_id=RENTER,
        project_id=None,
        region_id="region_1",
        provider_account_id="acct_owner",
        size_gib=1,
        rate=None,
        tariff_version=1,
        grace_us=1,
        reserve=reserve,
        by="mem",
        at_us=AT_US,
    )


def grace_ended(refilled: tuple[EscrowPart, ...]) -> volume.VolumeGraceEnded:
    return volume.VolumeGraceEnded(
        volume_id=VOLUME, account_id=RENTER, refilled=refilled, at_us=AT_US
    )


def volume_deleted(refund: tuple[EscrowPart, ...]) -> volume.VolumeDeleted:
    return volume.VolumeDeleted(
        volume_id=VOLUME,
        account_id=RENTER,
        region_id="region_1",
        cause="owner",
        refund=refund,
        by="mem",
        deleted_at_us=AT_US,
        at_us=AT_US,
    )


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
    volume.VolumeProvisioned: reserves().map(provisioned),
    volume.VolumeCharged: volume_charges(),
    volume.VolumeGraceEnded: reserves().map(grace_ended),
    volume.VolumeDeleted: reserves().map(volume_deleted),
}
