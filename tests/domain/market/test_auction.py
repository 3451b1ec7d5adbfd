"""Reverse auctions: bids, their deposits, who wins at which price, and where each unit goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.jobs.job import existing_job
from domain.lease.close_codes import NO_MATCH
from domain.lease.lease import START_TIMEOUT_US, CloseLease, LeaseReserved, MatchDecided, lease_of
from domain.lease.reasons import LeaseReason
from domain.lease.turns import LeaseQuoted
from domain.leasing.bidding import DECIDE_US, DropBid, award
from domain.leasing.work import AcknowledgeCommand
from domain.market.auction import (
    AuctionAwarded,
    AuctionEnded,
    BidForfeited,
    BidLapsed,
    BidPlaced,
    LapseBids,
    OpenAuction,
    WinnerDepositForfeited,
    WinnerDepositReturned,
    WithdrawBid,
    auction_of,
)
from domain.market.offer import WithdrawOffer
from domain.market.reasons import MarketReason
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.rules import decide
from tests.domain.scenes.bidders import (
    CLOSES_US,
    LETTERS,
    OWNERS,
    asked,
    awarded,
    bid,
    market,
    started,
)
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import JOB, LEASE, NODE, NOON_US, OFFER, RENTER, job, request
from tests.examples import examples

HALF = 500_000


def refused(world: Booked, command: Any) -> Reason:
    with pytest.raises(Refused) as caught:
        world.do(command)
    return caught.value.reason


def facts(world: Booked, kind: type) -> list[Any]:
    return [change.fact for change in world.log if isinstance(change.fact, kind)]


def held(world: Booked) -> dict[str, int]:
    """Deposits that are aside, by letter of the bidder."""
    return {
        letter: units
        for letter, owner in OWNERS.items()
        if (units := sum(world.balance(f"party:{owner}:bid.{s}") for s in ("earned", "cash")))
    }


def close(party: str, code: int, at_us: int) -> CloseLease:
    return CloseLease(lease_id=LEASE, closed_at_us=at_us, party=party, code=code, at_us=at_us)


def test_the_cheapest_of_three_bids_wins_at_its_bid_and_the_losers_have_their_deposits_back() -> (
    None
):
    world = asked(market())
    for letter, price in (("a", 2_500_000), ("b", 2_100_000), ("c", 2_300_000)):
        world.do(bid(letter, price))
    assert held(world) == {"a": HALF, "b": HALF, "c": HALF}
    assert lease_of(world, LEASE).status == "quoted"
    assert awarded(world) == "bid_b"
    (reserved,) = facts(world, LeaseReserved)
    assert reserved.price_per_gpu_hour == credit(2_100_000)
    (decided,) = facts(world, MatchDecided)
    assert (decided.pricing, decided.rule, decided.considered) == (
        "reverse_auction/1",
        "reverse_auction/1",
        3,
    )
    assert held(world) == {"b": HALF}, "losing deposits back in the append of the reservation"
    started(world, "b")
    assert held(world) == {}
    assert facts(world, WinnerDepositReturned)[0].returned.account_id == OWNERS["b"]
    for letter in LETTERS:
        assert world.balance(f"party:{OWNERS[letter]}:earned") == 1_000_000
        assert world.balance(f"party:{OWNERS[letter]}:cash") == 1_000_000


def test_the_reservation_and_the_losers_deposits_are_one_decision() -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    world.do(bid("b", 2_100_000))
    found = award(world, LEASE, None, CLOSES_US)
    assert found is not None
    quote, reserve = found[1]
    world.do(quote)
    kinds = {type(change.fact) for change in world.do(reserve)}
    assert {LeaseReserved, AuctionAwarded} <= kinds


def test_a_winner_that_does_not_start_forfeits_its_deposit_and_the_renter_earns_nothing() -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    awarded(world)
    cash, earned = (world.balance(f"party:{RENTER}:{source}") for source in ("cash", "earned"))
    hold = lease_of(world, LEASE).held_units
    world.do(close("job", 10_003, CLOSES_US + START_TIMEOUT_US))
    assert held(world) == {}
    (fact,) = facts(world, WinnerDepositForfeited)
    assert fact.code == 10_003
    assert world.balance(f"party:{OWNERS['a']}:earned") == 1_000_000 - HALF
    assert world.balance(f"party:{RENTER}:cash") == cash + hold
    assert world.balance(f"party:{RENTER}:earned") == earned
    assert world.balance("network:revenue:take") == HALF


@pytest.mark.parametrize(("party", "code"), [("job", 10_003), ("provider", 10_006)])
def test_a_winner_whose_node_took_up_work_that_did_not_begin_has_its_deposit_back(
    party: str, code: int
) -> None:
    """The work may be what cannot run: nobody pays for that, and nobody earns by it."""
    world = asked(market())
    world.do(bid("a", 2_500_000))
    awarded(world)
    node_id = lease_of(world, LEASE).reserved.node_id  # type: ignore[union-attr]
    work = existing_job(world, JOB).workload_sha256
    world.do(
        AcknowledgeCommand(
            lease_id=LEASE,
            node_id=node_id,
            command="start",
            workload_sha256=work,
            executor="0" * 16,
            runner="process",
            at_us=CLOSES_US + 1,
        )
    )
    world.do(close(party, code, CLOSES_US + START_TIMEOUT_US))
    assert held(world) == {}
    assert not facts(world, WinnerDepositForfeited)
    assert world.balance(f"party:{OWNERS['a']}:earned") == 1_000_000


@pytest.mark.parametrize(("party", "code"), [("renter", 101), ("operator", 20_002)])
def test_a_winner_that_could_not_start_through_others_has_its_deposit_back(
    party: str, code: int
) -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    awarded(world)
    world.do(close(party, code, CLOSES_US + 1))
    assert held(world) == {}
    assert not facts(world, WinnerDepositForfeited)
    assert world.balance(f"party:{OWNERS['a']}:earned") == 1_000_000


@pytest.mark.parametrize(("party", "code"), [("renter", 101), ("job", NO_MATCH)])
def test_a_request_that_ends_gives_every_deposit_back_in_the_same_append(
    party: str, code: int
) -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    world.do(bid("b", 2_400_000))
    changes = world.do(close(party, code, CLOSES_US))
    assert AuctionEnded in {type(change.fact) for change in changes}
    assert held(world) == {}
    assert lease_of(world, LEASE).status == "settled"
    assert refused(world, bid("c", 2_000_000)) is MarketReason.AUCTION_STATE


def test_the_renter_may_choose_a_dearer_bid_before_the_closing() -> None:
    world = asked(market(), pick="renter")
    world.do(bid("a", 2_500_000))
    world.do(bid("b", 2_100_000))
    assert awarded(world, NOON_US + 1, pick="bid_a") == "bid_a"
    assert facts(world, LeaseReserved)[0].price_per_gpu_hour == credit(2_500_000)
    assert facts(world, AuctionAwarded)[0].by == "renter"


def test_where_the_cheapest_wins_nobody_takes_a_bid_early() -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    found = award(world, LEASE, None, NOON_US + 1)
    assert found is not None
    world.do(found[1][0])
    assert refused(world, found[1][1]) is MarketReason.AUCTION_STATE


def test_a_quote_at_another_price_than_the_modules_reserves_nothing() -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    world.do(bid("b", 2_100_000))
    found = award(world, LEASE, None, CLOSES_US)
    assert found is not None
    quote, reserve = found[1]
    world.do(replace(quote, quote_id="quote_other", price_per_gpu_hour=credit(2_000_000)))
    assert refused(world, replace(reserve, quote_id="quote_other")) is MarketReason.BID_STATE
    dearer = replace(
        quote,
        quote_id="quote_a",
        bid_id="bid_a",
        offer_id=OFFER,
        node_id=NODE,
        device_ids=("GPU-0",),
        price_per_gpu_hour=credit(2_500_000),
    )
    world.do(dearer)
    taking = replace(
        reserve, quote_id="quote_a", offer_id=OFFER, node_id=NODE, device_ids=("GPU-0",)
    )
    assert refused(world, taking) is MarketReason.BID_STATE


def test_the_second_price_is_paid_and_what_the_winner_asked_is_told_beside_it() -> None:
    """J-7, the plug-in example, from bids to the lease."""
    world = asked(market(), "second_price")
    for letter, price in (("a", 2_500_000), ("b", 2_100_000), ("c", 2_300_000)):
        world.do(bid(letter, price))
    assert awarded(world) == "bid_b"
    (fact,) = facts(world, AuctionAwarded)
    assert (fact.ask_per_gpu_hour, fact.price_per_gpu_hour) == (
        credit(2_100_000),
        credit(2_300_000),
    )
    (reserved,) = facts(world, LeaseReserved)
    assert reserved.price_per_gpu_hour == credit(2_300_000)
    assert facts(world, MatchDecided)[0].pricing == "second_price/1"


def test_twenty_bids_means_twenty() -> None:
    """Akash's rule lets 21 pass: here the bound is asked before the bid is counted."""
    letters = "abcdefghijklmnopqrstu"
    world = asked(market(letters))
    for letter in letters[:20]:
        world.do(bid(letter, 2_500_000))
    assert refused(world, bid("u", 2_000_000)) is MarketReason.BIDS_FULL
    world.do(
        WithdrawBid(lease_id=LEASE, bid_id="bid_a", account_id=OWNERS["a"], by="m", at_us=NOON_US)
    )
    world.do(bid("u", 2_000_000))
    assert awarded(world) == "bid_u"


def test_a_withdrawn_bid_has_its_deposit_back_and_wins_nothing() -> None:
    world = asked(market())
    world.do(bid("a", 2_100_000))
    world.do(bid("b", 2_400_000))
    theirs = WithdrawBid(
        lease_id=LEASE, bid_id="bid_a", account_id=OWNERS["b"], by="m", at_us=NOON_US
    )
    assert refused(world, theirs) is MarketReason.BID_UNKNOWN
    world.do(replace(theirs, account_id=OWNERS["a"]))
    assert held(world) == {"b": HALF}
    assert awarded(world) == "bid_b"


def test_a_bid_that_expires_before_the_closing_is_no_quote_and_its_deposit_goes_back() -> None:
    world = asked(market())
    world.do(bid("a", 2_000_000, expires_at_us=NOON_US + 60_000_000))
    world.do(bid("b", 2_400_000))
    assert award(world, LEASE, None, CLOSES_US)[0] == "bid_b"  # type: ignore[index]
    world.do(LapseBids(lease_id=LEASE, at_us=NOON_US + 60_000_000))
    (lapsed,) = facts(world, BidLapsed)
    assert (lapsed.bid_id, lapsed.cause) == ("bid_a", "expired")
    assert held(world) == {"b": HALF}


def test_what_a_bid_offered_and_is_gone_is_dropped_and_the_next_one_wins() -> None:
    world = asked(market())
    world.do(bid("a", 2_100_000))
    world.do(bid("b", 2_400_000))
    world.do(WithdrawOffer(offer_id=OFFER, by="m", at_us=NOON_US + 1))
    found = award(world, LEASE, None, CLOSES_US)
    assert found is not None
    assert refused(world, found[1][0]) is MarketReason.OFFER_WITHDRAWN
    world.do(DropBid(lease_id=LEASE, bid_id=found[0], at_us=CLOSES_US))
    (lost,) = facts(world, BidForfeited)
    assert (lost.bid_id, lost.cause) == ("bid_a", "unavailable")
    assert held(world) == {"b": HALF}
    assert awarded(world) == "bid_b"


def test_a_bid_whose_device_another_lease_took_has_its_deposit_back() -> None:
    """A bid reserves nothing, so that is nobody's fault."""
    world = asked(market())
    world.do(bid("a", 2_100_000))
    world.do(DropBid(lease_id=LEASE, bid_id="bid_a", at_us=CLOSES_US))
    assert facts(world, BidLapsed)[0].cause == "unavailable"
    assert facts(world, BidForfeited) == []


def test_whoever_bids_twice_and_takes_the_lower_one_back_after_the_closing_pays_for_it() -> None:
    """Economics M4: a ladder of 1.00 and 2.35 against an honest 2.40 was a free choice between the
    two, made when no rival could bid any more.
    """
    world = asked(market())
    world.do(bid("a", 1_000_000))
    world.do(bid("b", 2_350_000))
    taken = WithdrawBid(
        lease_id=LEASE, bid_id="bid_a", account_id=OWNERS["a"], by="m", at_us=CLOSES_US - 1
    )
    assert decide(taken, world)[0].fact.returned, "before it the deposit goes back"
    network = world.balance("network:revenue:take")
    world.do(replace(taken, at_us=CLOSES_US))
    (lost,) = facts(world, BidForfeited)
    assert (lost.bid_id, lost.cause) == ("bid_a", "withdrawn")
    assert held(world) == {"b": HALF}
    assert world.balance("network:revenue:take") == network + HALF


BAD: list[tuple[dict[str, Any], Reason]] = [
    ({"price_per_gpu_hour": credit(3_000_001)}, PricesReason.PRICE_ABOVE_CAP),
    ({"price_per_gpu_hour": credit(0)}, FundsReason.AMOUNT_NOT_POSITIVE),
    ({"price_per_gpu_hour": credit(-1)}, FundsReason.AMOUNT_NOT_POSITIVE),
    ({"price_per_gpu_hour": credit(10**13)}, PricesReason.AMOUNT_OUT_OF_RANGE),
    ({"price_per_gpu_hour": credit(249_999)}, PricesReason.PRICE_BELOW_USAGE_FEE),
    ({"account_id": RENTER}, FleetReason.PROVIDER_UNKNOWN),
    ({"provider_id": "prov_b"}, FleetReason.PROVIDER_UNKNOWN),
    ({"offer_id": "offer_cash-b"}, MarketReason.OFFER_UNKNOWN),
    ({"device_ids": ("GPU-0", "GPU-1")}, MarketReason.OFFER_MISMATCH),
    ({"device_ids": ("GPU-0-b",)}, MarketReason.OFFER_MISMATCH),
    ({"expires_at_us": NOON_US}, MarketReason.AUCTION_TERMS),
    ({"expires_at_us": CLOSES_US + DECIDE_US + 1}, MarketReason.AUCTION_TERMS),
    ({"expires_at_us": CLOSES_US + 1}, MarketReason.AUCTION_TERMS),
    ({"expires_at_us": CLOSES_US + DECIDE_US - 1}, MarketReason.AUCTION_TERMS),
    ({"at_us": CLOSES_US}, MarketReason.AUCTION_STATE),
    ({"lease_id": "lease_none"}, LeaseReason.LEASE_UNKNOWN),
]


@pytest.mark.parametrize(("changes", "reason"), BAD)
def test_a_bid_that_could_not_be_kept_is_refused_by_its_rule(
    changes: dict[str, Any], reason: Reason
) -> None:
    world = asked(market())
    assert refused(world, bid("a", 2_500_000, **changes)) is reason
    assert held(world) == {}


def test_one_account_has_one_bid_at_a_time_and_none_on_its_own_request() -> None:
    world = asked(market())
    world.do(bid("a", 2_500_000))
    assert refused(world, bid("a", 2_400_000, bid_id="bid_again")) is MarketReason.BID_EXISTS
    own = Booked.of(market_scene_of_owner())
    own.do(replace(job(), account_id=OWNERS["a"]))
    own.do(replace(request(), account_id=OWNERS["a"], pricing="reverse_auction"))
    own.do(
        OpenAuction(
            lease_id=LEASE, pricing="reverse_auction", closes_at_us=CLOSES_US, at_us=NOON_US
        )
    )
    assert refused(own, bid("a", 2_500_000)) is PartiesReason.NOT_PERMITTED


def market_scene_of_owner() -> Any:
    from tests.domain.scenes.market import scene

    return scene({f"party:{OWNERS['a']}:cash": 100_000_000})


def test_a_deposit_is_the_bidders_own_money_never_granted_or_unconfirmed() -> None:
    world = market()
    for source in ("earned", "cash"):
        world.balances[f"party:{OWNERS['a']}:{source}"] = 0
    world.balances[f"party:{OWNERS['a']}:card"] = 10_000_000
    world.balances[f"party:{OWNERS['a']}:grant.spring"] = 10_000_000
    asked(world)
    assert refused(world, bid("a", 2_500_000)) is FundsReason.CREDIT_TOO_LOW
    world.balances[f"party:{OWNERS['a']}:earned"] = 300_000
    world.balances[f"party:{OWNERS['a']}:cash"] = 300_000
    world.do(bid("a", 2_500_000))
    parts = facts(world, BidPlaced)[0].deposit
    assert [(one.source, one.amount.units) for one in parts] == [
        ("earned", 300_000),
        ("cash", 200_000),
    ]


def test_a_deposit_of_nothing_may_be_asked() -> None:
    world = asked(market(), deposit=credit(0))
    world.do(bid("a", 2_500_000))
    assert facts(world, BidPlaced)[0].deposit == ()
    awarded(world)
    started(world, "a")
    assert facts(world, WinnerDepositReturned)


ABSURD: list[dict[str, Any]] = [
    {"closes_at_us": NOON_US},
    {"closes_at_us": NOON_US + 24 * HOUR_US},
    {"deposit": credit(-1)},
    {"deposit": credit(100_000_001)},
    {"bids_max": 0},
    {"bids_max": 101},
    {"pick": "dearest"},
]


@pytest.mark.parametrize("terms", ABSURD)
def test_absurd_terms_of_an_auction_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        asked(market(), **terms)
    assert caught.value.reason is MarketReason.AUCTION_TERMS


def test_a_sealed_auction_leaves_the_renter_no_choice() -> None:
    with pytest.raises(Refused) as caught:
        asked(market(), "second_price", pick="renter")
    assert caught.value.reason is MarketReason.AUCTION_TERMS


def test_only_a_request_that_named_the_module_is_auctioned_and_once() -> None:
    world = market()
    world.do(job())
    world.do(request())
    opening = OpenAuction(
        lease_id=LEASE, pricing="reverse_auction", closes_at_us=CLOSES_US, at_us=NOON_US
    )
    assert refused(world, opening) is PricesReason.PRICING_NOT_OFFERED
    assert refused(asked(market()), opening) is MarketReason.AUCTION_STATE
    assert refused(world, replace(opening, pricing="dutch")) is PricesReason.PRICING_UNKNOWN


def test_more_quotes_than_a_lease_remembers_still_leave_room_for_the_award() -> None:
    world = asked(market())
    for _ in range(70):
        world.do(bid("a", 2_500_000))
        world.do(
            WithdrawBid(
                lease_id=LEASE, bid_id="bid_a", account_id=OWNERS["a"], by="m", at_us=NOON_US
            )
        )
        world.do(replace(bid("b", 2_500_000), bid_id=f"bid_{len(world.log)}"))
        last = facts(world, BidPlaced)[-1].bid_id
        world.do(
            WithdrawBid(lease_id=LEASE, bid_id=last, account_id=OWNERS["b"], by="m", at_us=NOON_US)
        )
    assert len(facts(world, LeaseQuoted)) == 63
    world.do(bid("c", 2_500_000))
    assert awarded(world) == "bid_c"


def test_a_device_that_the_request_does_not_allow_is_no_bid() -> None:
    world = market()
    world.do(job(models=("H100",)))
    world.do(replace(request(), pricing="reverse_auction"))
    world.do(
        OpenAuction(
            lease_id=LEASE, pricing="reverse_auction", closes_at_us=CLOSES_US, at_us=NOON_US
        )
    )
    assert refused(world, bid("a", 2_500_000)) is MarketReason.OFFER_MISMATCH


steps = st.lists(
    st.tuples(
        st.sampled_from(("bid", "withdraw", "lapse", "award", "ready", "close")),
        st.sampled_from(LETTERS),
        st.integers(0, 4),
    ),
    max_size=14,
)


@examples(60)
@given(steps=steps, pick=st.sampled_from(("cheapest", "renter")))
def test_whatever_happens_deposits_are_the_books_and_no_credit_is_lost(
    steps: list[tuple[str, str, int]], pick: str
) -> None:
    """held by the auction == its bidders' deposit accounts; all credits stay somebody's."""
    world = asked(market(), pick=pick)
    before = sum(world.balances.values())
    for step, (what, letter, number) in enumerate(steps):
        at_us = (NOON_US if number < 3 else CLOSES_US) + step
        try:
            _step(world, what, letter, at_us, number, pick)
        except Refused:
            continue
        finally:
            assert auction_of(world, LEASE).held_units == sum(held(world).values())
            assert sum(world.balances.values()) == before
    world.do(close("renter", 1 if lease_of(world, LEASE).opened else 101, CLOSES_US + 99))
    assert held(world) == {}


def _step(world: Booked, what: str, letter: str, at_us: int, number: int, pick: str) -> None:
    if what == "bid":
        world.do(bid(letter, 2_000_000 + number, at_us=at_us))
    elif what == "withdraw":
        world.do(
            WithdrawBid(
                lease_id=LEASE,
                bid_id=f"bid_{letter}",
                account_id=OWNERS[letter],
                by="m",
                at_us=at_us,
            )
        )
    elif what == "lapse":
        world.do(LapseBids(lease_id=LEASE, at_us=at_us))
    elif what == "award":
        awarded_or_refused(world, at_us, f"bid_{letter}" if pick == "renter" else None)
    elif what == "ready":
        started(world, letter, at_us)
    else:
        world.do(close("renter", 1 if lease_of(world, LEASE).opened else 101, at_us))


def awarded_or_refused(world: Booked, at_us: int, pick: str | None) -> None:
    found = award(world, LEASE, pick, at_us)
    for command in () if found is None else found[1]:
        world.do(command)
