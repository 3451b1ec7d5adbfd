"""Auctions, standing bids and price lists as facts, for what follows the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from domain.funds import deposit
from domain.lease import lease, reserved_term
from domain.lease import turns as lease_turns
from domain.lease.choice import Narrowed
from domain.lease.funds import EscrowPart
from domain.market import auction, offer_prices, standing_bid, unmatched
from domain.money import PPM, credit
from domain.prices.charge_split import Parts
from domain.stream import Stream

Told = tuple[Stream[Any], Any]


def bidding(at: Callable[[int], int]) -> Iterator[Told]:
    """A deposit of each sort, held and returned; one auction of each end; a standing bid of each
    state.
    """
    yield (
        Stream("deposit", "dep_spot"),
        deposit.DepositConfirmed(
            deposit_id="dep_spot",
            account_id="acct_spot",
            source="cash",
            amount=credit(100),
            reference="r_spot",
            confirmed_by="op",
            at_us=at(0),
        ),
    )
    yield from _list(at(0))
    yield from _unmatched(at(0))
    yield from _auction("lease_won", at(1), forfeited=False)
    yield from _auction("lease_lost", at(2), forfeited=True)
    yield from _ended("lease_nobody", at(3))
    for number, last in enumerate(("requested", "reserved", "paused", "resumed", "closed")):
        yield from _standing(f"lease_spot_{number}", at(4), last)
    yield from _early_end("lease_term", at(600))


def _unmatched(at_us: int) -> Iterator[Told]:
    """Two needs of an account that found no node, one with something to ease."""
    eased = unmatched.Eased("models", "NVIDIA H100", "NVIDIA A100", 3, PPM)
    for code, one, times in (("no_match", eased, 4), ("match_impossible", None, 1)):
        fact = unmatched.RequestUnmatched(
            account_id="acct_spot",
            client_id="direct",
            project_id="",
            code=code,
            need_sha256=code[0] * 64,
            members=1,
            gpu_count=2,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=("NVIDIA H100",),
            max_price_per_gpu_hour=credit(3),
            constraints=None,
            pricing=None,
            fleet_position=7,
            nodes=3,
            narrowed=(Narrowed("models", "NVIDIA H100", "NVIDIA A100", 0, 3),),
            eased=one,
            times=times,
            at_us=at_us,
        )
        yield unmatched.stream_of("acct_spot"), fact


def _list(at_us: int) -> Iterator[Told]:
    for price, floor in ((1_800_000, 900_000), (1_700_000, None)):
        line = reserved_term.ReservedPrice(3, credit(price), 500_000)
        yield (
            Stream("offer_prices", "offer_0"),
            offer_prices.OfferPricesSet(
                offer_id="offer_0",
                provider_id="prov_0",
                by="mem_a",
                at_us=at_us,
                interruptible_floor=None if floor is None else credit(floor),
                reserved=(line,),
            ),
        )


def _request(lease_id: str, pricing: str, at_us: int, months: int | None = None) -> Told:
    return (
        Stream("lease", lease_id),
        lease.LeaseRequested(
            meter_maxima=(),
            volumes=(),
            datasets=(),
            lease_id=lease_id,
            job_id=f"job_{lease_id}",
            account_id="acct_spot",
            client_id="direct",
            project_id="p",
            end_user_ref="u",
            gpu_count=1,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=(),
            max_price_per_gpu_hour=credit(3_000_000),
            pay_with=None,
            term_us=None,
            funds=None,
            at_us=at_us,
            pricing=pricing,
            months=months,
            refill=False,
            sla_class=None,
            key_id=None,
            restart_of=None,
            constraints=None,
            encryption_key=None,
            remoting_session_id=None,
            split_label=None,
            route_id="vxlan-7",
            part=None,
            attempt=None,
            run_due_us=None,
            overflow=False,
            gang_id=None,
            start_timeout_us=None,
            escrow_id=None,
        ),
    )


def _opened(lease_id: str, at_us: int) -> Told:
    return (
        Stream("auction", lease_id),
        auction.AuctionOpened(
            lease_id=lease_id,
            account_id="acct_spot",
            pricing="reverse_auction/1",
            cap_per_gpu_hour=credit(3_000_000),
            deposit=credit(5),
            bids_max=20,
            pick="cheapest",
            closes_at_us=at_us + 60,
            at_us=at_us,
        ),
    )


def _bid(lease_id: str, number: int, who: str, at_us: int) -> auction.BidPlaced:
    return auction.BidPlaced(
        lease_id=lease_id,
        bid_id=f"bid_{number}_{lease_id}",
        number=number,
        account_id=who,
        provider_id="prov_0",
        offer_id="offer_0",
        node_id=f"node_{0:032x}",
        device_ids=("GPU-x",),
        price_per_gpu_hour=credit(2_000_000 + number),
        deposit=(auction.DepositPart("cash", credit(5)),),
        expires_at_us=at_us + 90,
        at_us=at_us,
    )


def _auction(lease_id: str, at_us: int, *, forfeited: bool) -> Iterator[Told]:
    stream = Stream("auction", lease_id)
    yield _request(lease_id, "reverse_auction/1", at_us)
    yield _opened(lease_id, at_us)
    bids = [_bid(lease_id, number, "acct_spot", at_us) for number in range(1, 6)]
    for bid in bids:
        yield stream, bid
    first, second, third, winner, bound = bids
    yield (
        stream,
        auction.BidWithdrawn(
            lease_id=lease_id,
            bid_id=first.bid_id,
            account_id=first.account_id,
            returned=first.deposit,
            by="mem_a",
            at_us=at_us + 1,
        ),
    )
    yield (
        stream,
        auction.BidLapsed(
            lease_id=lease_id,
            bid_id=second.bid_id,
            account_id=second.account_id,
            returned=second.deposit,
            cause="expired",
            at_us=at_us + 2,
        ),
    )
    yield (
        stream,
        auction.BidForfeited(
            lease_id=lease_id,
            bid_id=bound.bid_id,
            account_id=bound.account_id,
            forfeited=bound.deposit,
            cause="withdrawn",
            by="mem_a",
            at_us=at_us + 50,
        ),
    )
    yield (
        stream,
        auction.AuctionAwarded(
            lease_id=lease_id,
            pricing="reverse_auction/1",
            bid_id=winner.bid_id,
            ask_per_gpu_hour=winner.price_per_gpu_hour,
            price_per_gpu_hour=winner.price_per_gpu_hour,
            returned=auction.back([third]),
            by="job",
            at_us=at_us + 60,
        ),
    )
    held = auction.back([winner])[0]
    if forfeited:
        yield (
            stream,
            auction.WinnerDepositForfeited(
                lease_id=lease_id, forfeited=held, code=10_003, at_us=at_us + 70
            ),
        )
    else:
        returned = auction.WinnerDepositReturned(lease_id=lease_id, returned=held, at_us=at_us + 70)
        yield stream, returned


def _ended(lease_id: str, at_us: int) -> Iterator[Told]:
    yield _request(lease_id, "second_price/1", at_us)
    yield _opened(lease_id, at_us)
    bid = _bid(lease_id, 1, "acct_spot", at_us)
    yield Stream("auction", lease_id), bid
    ended = auction.AuctionEnded(lease_id=lease_id, returned=auction.back([bid]), at_us=at_us + 60)
    yield Stream("auction", lease_id), ended


def _standing(lease_id: str, at_us: int, last: str) -> Iterator[Told]:
    stream = Stream("lease", lease_id)
    yield _request(lease_id, "continuous_bid/1", at_us)
    for units in (1_000_000, 1_200_000):
        yield (
            Stream("standing_bid", lease_id),
            standing_bid.StandingBidSet(
                lease_id=lease_id,
                account_id="acct_spot",
                price_per_gpu_hour=credit(units),
                at_us=at_us,
            ),
        )
    turns = [
        _reserved(lease_id, at_us + 1),
        lease_turns.LeasePaused(
            lease_id=lease_id,
            reason="outbid",
            by="matcher",
            paused_at_us=at_us + 2,
            at_us=at_us + 2,
        ),
        lease_turns.LeaseResumed(
            lease_id=lease_id,
            by="matcher",
            resumed_at_us=at_us + 3,
            funds_end_us=at_us + 99,
            at_us=at_us + 3,
            mig_starts=(),
        ),
        lease.LeaseClosed(
            lease_id=lease_id,
            account_id="acct_spot",
            closed_at_us=at_us + 4,
            party="renter",
            code=1,
            refund=(),
            at_us=at_us + 4,
            by=None,
            evidence=None,
        ),
    ]
    for turn in turns[: ("requested", "reserved", "paused", "resumed", "closed").index(last)]:
        yield stream, turn


def _reserved(
    lease_id: str, at_us: int, escrow: tuple[EscrowPart, ...] = ()
) -> lease.LeaseReserved:
    return lease.LeaseReserved(
        meter_maxima=(),
        lease_id=lease_id,
        job_id=f"job_{lease_id}",
        account_id="acct_spot",
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        node_id=f"node_{0:032x}",
        provider_id="prov_0",
        provider_account_id="acct_provider",
        offer_id="offer_0",
        device_ids=("GPU-x",),
        share_ppm=PPM,
        mem_ppm=PPM,
        gpu_class="datacenter",
        price_per_gpu_hour=credit(1_200_000),
        pay_with="cash",
        own=False,
        tariff_version=1,
        fee_per_gpu_hour=credit(250_000),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        escrow=escrow,
        at_us=at_us,
        split=None,
        client_account_id=None,
        owners=(),
        federated=None,
        sla_class=None,
        counted=(),
        prepaid=None,
        quotas=(),
        gang_id=None,
        pool_id=None,
        mode="whole",
        mig=None,
        reclaim_window_us=None,
        interruptible=False,
        quote_id=None,
        by=None,
    )


def _early_end(lease_id: str, at_us: int) -> Iterator[Told]:
    stream, held = Stream("lease", lease_id), EscrowPart("cash", credit(10))
    yield _request(lease_id, "reserved/1", at_us, months=3)
    yield stream, _reserved(lease_id, at_us + 1, (held,))
    parts = Parts(fee=1, provider=2, platform=2, burn=0)
    yield (
        stream,
        reserved_term.TermEndedEarly(
            lease_id=lease_id,
            account_id="acct_spot",
            provider_account_id="acct_provider",
            months=3,
            refund_ppm=500_000,
            unused=credit(10),
            refunded=credit(5),
            kept=credit(5),
            parts=parts,
            node_id=f"node_{0:032x}",
            at_us=at_us + 2,
            drawn=(EscrowPart("cash", credit(5)),),
            client_account_id=None,
            owners=(),
        ),
    )
    yield (
        stream,
        lease.LeaseClosed(
            lease_id=lease_id,
            account_id="acct_spot",
            closed_at_us=at_us + 2,
            party="renter",
            code=1,
            refund=(EscrowPart("cash", credit(5)),),
            at_us=at_us + 2,
            by=None,
            evidence=None,
        ),
    )
    settled = lease.LeaseSettled(
        lease_id=lease_id,
        account_id="acct_spot",
        charge=credit(0),
        gpu_us=0,
        refund=(),
        at_us=at_us + 3,
        disputed=False,
    )
    yield stream, settled
