"""Pricing modules: who is paid what, never outside both parties' own prices."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.prices import modules as pricing
from domain.prices.modules import (
    MODULES,
    ContinuousBid,
    Posted,
    PriceOffer,
    PriceRequest,
    PricingPolicy,
    Reserved,
    ReverseAuction,
    SecondPrice,
    Trade,
    is_trade,
    label,
    module_for,
    module_of,
    register,
)
from domain.prices.reasons import PricesReason
from domain.refusal import Refused

NOW_US = 1_795_176_000_000_000
prices = st.integers(1, 10**12)


def request(cap: int, *, months: int | None = None, on_demand: bool = True) -> PriceRequest:
    return PriceRequest(
        request_id="lease_1", cap=cap, at_us=NOW_US, months=months, on_demand=on_demand
    )


def offers(*asks: int) -> tuple[PriceOffer, ...]:
    return tuple(
        PriceOffer(offer_id=f"bid_{number}", ask=ask, arrived=number)
        for number, ask in enumerate(asks)
    )


def traded(
    module: pricing.Pricing, cap: int, *asks: int, pick: str | None = None
) -> tuple[Trade, ...]:
    policy = PricingPolicy(pick=pick)
    return module.choose(module.quote(request(cap), offers(*asks), policy), policy)


@st.composite
def markets(draw: st.DrawFn) -> tuple[PriceRequest, tuple[PriceOffer, ...], PricingPolicy]:
    """A request and offers of every sort: expired ones, held ones, for terms, at any price."""
    asks = draw(st.lists(prices, max_size=8))
    one = PriceRequest(
        request_id="lease_1",
        cap=draw(prices),
        at_us=NOW_US,
        months=draw(st.sampled_from((None, 1, 3))),
        on_demand=draw(st.booleans()),
    )
    found = tuple(
        PriceOffer(
            offer_id=f"bid_{number}",
            ask=ask,
            arrived=draw(st.integers(0, 3)),
            expires_at_us=draw(st.sampled_from((None, NOW_US, NOW_US + 1))),
            months=draw(st.sampled_from((None, 1, 3))),
            held_at=draw(st.sampled_from((None, ask, ask + 1))),
            is_held=draw(st.booleans()),
        )
        for number, ask in enumerate(asks)
    )
    pick = draw(st.sampled_from((None, "bid_0", "bid_none")))
    return one, found, PricingPolicy(pick=pick, slots=draw(st.integers(1, 2)))


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
@given(market=markets())
def test_no_module_trades_outside_both_parties_prices(
    module: pricing.Pricing, market: tuple[PriceRequest, tuple[PriceOffer, ...], PricingPolicy]
) -> None:
    """V-9: whoever trades gains by it, or loses nothing; an expired offer binds nobody."""
    asked, found, policy = market
    by_id = {offer.offer_id: offer for offer in found}
    for trade in module.choose(module.quote(asked, found, policy), policy):
        offer = by_id[trade.offer_id]
        assert offer.ask <= trade.price <= asked.cap
        assert offer.expires_at_us is None or asked.at_us < offer.expires_at_us
        assert not offer.is_held or module.kind == pricing.AUCTION


# --- V-9 --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Islander:
    """What one can make in a day: only coconuts, only leaves, or any mix in between."""

    coconuts: int
    leaves: int

    @property
    def coconut_in_leaves(self) -> Fraction:
        """The leaves that one goes without for a coconut."""
        return Fraction(self.leaves, self.coconuts)


ROBINSON, FRIDAY = Islander(2, 4), Islander(3, 12)


def test_a_coconut_costs_robinson_two_leaves_and_friday_four() -> None:
    assert (ROBINSON.coconut_in_leaves, FRIDAY.coconut_in_leaves) == (Fraction(2), Fraction(4))


@pytest.mark.parametrize(
    ("price", "both_gain"), [(1, False), (2, True), (3, True), (4, True), (5, False)]
)
def test_a_coconut_is_traded_between_two_and_four_leaves_and_at_no_other_price(
    price: int, both_gain: bool
) -> None:
    """V-9. Robinson sells coconuts: he asks at least 2. Friday buys them: he pays at most 4."""
    ask, cap = ROBINSON.coconut_in_leaves, FRIDAY.coconut_in_leaves
    assert is_trade(int(ask), price, int(cap)) == both_gain
    # Robinson makes 2 coconuts and sells one, where alone he keeps one and gathers 2 leaves.
    robinson_alone, robinson = (1, 2), (1, price)
    # Friday gathers 12 leaves and buys a coconut, where alone he makes one and gathers 8.
    friday_alone, friday = (1, 8), (1, 12 - price)
    assert (robinson >= robinson_alone and friday >= friday_alone) == both_gain


def test_at_three_leaves_robinson_has_one_and_three_and_friday_one_and_nine() -> None:
    """V-9: alone they have 1+2 and 1+8."""
    (trade,) = traded(Posted(), int(FRIDAY.coconut_in_leaves), 3)
    assert (trade.ask, trade.price, trade.cap) == (3, 3, 4)
    assert (ROBINSON.coconuts - 1, trade.price) == (1, 3)
    assert (1, FRIDAY.leaves - trade.price) == (1, 9)


def test_a_seller_who_asks_more_than_the_cap_sells_nothing() -> None:
    for module in (Posted(), ReverseAuction(), SecondPrice()):
        assert traded(module, 4, 5) == ()


# --- each module ------------------------------------------------------------------------------


def test_the_cheapest_bid_wins_at_what_it_bid_and_equal_bids_go_to_the_earlier() -> None:
    (won,) = traded(ReverseAuction(), 10, 9, 7, 8, 7)
    assert (won.offer_id, won.price) == ("bid_1", 7)


def test_the_renter_may_pick_a_dearer_bid_but_none_that_does_not_stand() -> None:
    (won,) = traded(ReverseAuction(), 10, 9, 7, pick="bid_0")
    assert (won.offer_id, won.price) == ("bid_0", 9)
    assert traded(ReverseAuction(), 10, 9, 7, pick="bid_9") == ()


def test_the_second_price_pays_the_second_lowest_ask_and_alone_the_cap() -> None:
    """J-7: procurement VCG for one lease."""
    (won,) = traded(SecondPrice(), 10, 9, 7, 8)
    assert (won.offer_id, won.price) == ("bid_1", 8)
    (alone,) = traded(SecondPrice(), 10, 7)
    assert alone.price == 10


def gain(module: pricing.Pricing, cap: int, cost: int, ask: int, others: list[int]) -> int:
    """What a provider with this cost gains by asking so much."""
    won = [trade for trade in traded(module, cap, ask, *others) if trade.offer_id == "bid_0"]
    return won[0].price - cost if won else 0


@given(cap=prices, cost=prices, ask=prices, others=st.lists(prices, max_size=5))
def test_truthful_asks_never_lose(cap: int, cost: int, ask: int, others: list[int]) -> None:
    """J-7, property of second price: no other ask gains more than one's cost, and one's cost never
    gains less than nothing.
    """
    truthful = gain(SecondPrice(), cap, cost, cost, others)
    assert truthful >= 0
    assert truthful >= gain(SecondPrice(), cap, cost, ask, others)


def test_what_one_bids_in_a_reverse_auction_may_lose_to_a_lie() -> None:
    """The property above can fail: where one is paid one's own bid, asking more gains more."""
    assert gain(ReverseAuction(), 10, 5, 5, [9]) < gain(ReverseAuction(), 10, 5, 8, [9])


def slots(*held: int | None) -> tuple[PriceOffer, ...]:
    """Devices with a floor of 2: free, or held at a bid; the later ones were taken later."""
    return tuple(
        PriceOffer(offer_id=f"slot_{number}", ask=2, arrived=number, held_at=bid)
        for number, bid in enumerate(held)
    )


def placed(bid: int, *held: int | None, on_demand: bool = False, wanted: int = 1) -> list[str]:
    module, policy = ContinuousBid(), PricingPolicy(slots=wanted)
    quotes = module.quote(request(bid, on_demand=on_demand), slots(*held), policy)
    return [trade.offer_id for trade in module.choose(quotes, policy)]


def test_the_highest_bids_hold_the_devices_and_equal_bids_keep_the_holder() -> None:
    assert placed(5, 5) == []
    assert placed(6, 5) == ["slot_0"]
    assert placed(6, 5, 4, 6) == ["slot_1"]
    assert placed(6, 5, 4, 6, wanted=2) == ["slot_1", "slot_0"]
    assert placed(6, 5, 4, 6, wanted=3) == []


def test_a_free_device_is_taken_before_anybody_is_displaced_and_only_at_the_floor() -> None:
    assert placed(9, 3, None) == ["slot_1"]
    assert placed(1, None) == []


def test_of_equal_bids_the_one_that_came_last_makes_room() -> None:
    assert placed(9, 3, 3) == ["slot_1"]


def test_on_demand_outranks_every_bid() -> None:
    assert placed(3, 10**12, on_demand=True) == ["slot_0"]


@given(bid=prices, held=st.lists(st.one_of(st.none(), prices), min_size=1, max_size=6))
def test_whoever_is_displaced_bid_less_and_bid_the_least_of_all(
    bid: int, held: list[int | None]
) -> None:
    for slot in placed(bid, *held):
        beaten = held[int(slot.removeprefix("slot_"))]
        if beaten is not None:
            assert beaten < bid
            assert None not in held
            assert beaten == min(other for other in held if other is not None)


def test_a_reserved_term_has_the_price_of_its_months() -> None:
    listed = (
        PriceOffer(offer_id="a", ask=5, months=1),
        PriceOffer(offer_id="b", ask=3, months=3),
        PriceOffer(offer_id="c", ask=1),
    )
    module, policy = Reserved(), PricingPolicy()
    for months, expected in ((1, ["a"]), (3, ["b"]), (6, []), (None, [])):
        quotes = module.quote(request(9, months=months), listed, policy)
        assert [trade.offer_id for trade in module.choose(quotes, policy)] == expected


def test_an_expired_offer_is_no_quote() -> None:
    late = PriceOffer(offer_id="a", ask=1, expires_at_us=NOW_US)
    for module in MODULES.values():
        assert module.quote(request(9), (late,), PricingPolicy()) == ()


# --- which module prices what -----------------------------------------------------------------


def test_a_module_is_named_with_its_version_in_every_fact() -> None:
    assert label(Posted()) == "posted/1"
    assert module_of("posted/1") is module_of(None) is MODULES["posted"]
    assert {label(one) for one in MODULES.values()} >= {
        "posted/1",
        "reverse_auction/1",
        "continuous_bid/1",
        "reserved/1",
        "second_price/1",
    }


@pytest.mark.parametrize("name", ["dutch", "posted/2", "", "posted/"])
def test_an_unknown_module_or_version_is_refused(name: str) -> None:
    if name in ("", "posted/"):
        assert module_of(name).name == "posted"
        return
    with pytest.raises(Refused) as refused:
        module_of(name)
    assert refused.value.reason is PricesReason.PRICING_UNKNOWN


def test_the_pool_says_how_it_prices_and_without_a_pool_the_renter_may() -> None:
    assert module_for(None, None).name == "posted"
    assert module_for("reverse_auction", None).name == "reverse_auction"
    assert module_for(None, "second_price").name == "second_price"
    assert module_for("second_price", "second_price").name == "second_price"
    with pytest.raises(Refused) as refused:
        module_for("posted", "second_price")
    assert refused.value.reason is PricesReason.PRICING_NOT_OFFERED


@dataclass(frozen=True)
class Dutch:
    """A plug-in's module."""

    name: str = "dutch"
    version: int = 1
    kind: str = pricing.POSTED
    quote = Posted.quote
    choose = Posted.choose


@contextmanager
def restored() -> Generator[None, None, None]:
    before = dict(MODULES)
    try:
        yield
    finally:
        MODULES.clear()
        MODULES.update(before)


def test_a_plug_in_registers_its_module_under_a_name_of_its_own() -> None:
    """J-7: pricing is a plug-in."""
    with restored():
        register(Dutch())
        register(Dutch())
        assert module_of("dutch/1").kind == "posted"
        for wrong in (
            Dutch(version=2),
            Dutch(name="posted"),
            Dutch(name="no name"),
            Dutch(name="d" * 65),
            Dutch(name="other", kind="barter"),
            Dutch(name="other", version=0),
        ):
            with pytest.raises(ValueError, match=r"dutch|posted|name|other|d{65}"):
                register(wrong)
    assert "dutch" not in MODULES
