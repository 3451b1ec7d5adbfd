"""Reserved terms: what is prepaid, and what an early end gives back, to the unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.revenue_share import NodeOwnershipTransferred, OwnerShare, revenue_stream
from domain.funds.reasons import FundsReason
from domain.gpu_time import charge_for
from domain.hardware.constraints import Constraints
from domain.lease.lease import (
    CloseLease,
    LeaseClosed,
    LeaseReserved,
    PrepaidTerm,
    ReserveLease,
    lease_of,
    lease_stream,
)
from domain.lease.reserved_term import (
    MONTH_US,
    MONTHS,
    ReservedPrice,
    TermEndedEarly,
    kept_of,
    term_us,
)
from domain.lease.turns import DegradeLease, ExtendLease, PauseLease, QuoteLease
from domain.market.offer import OfferPublished, OfferTerms
from domain.market.offer_prices import OfferPricesSet, SetOfferPrices
from domain.market.reasons import MarketReason
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from domain.stream import Change
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import (
    DEVICES,
    LEASE,
    NODE,
    NOON_US,
    OFFER,
    PROVIDER,
    RENTER,
    job,
    ready,
    request,
    scene,
)
from tests.examples import examples
from tests.given import refused

PRICE = 2_000_000


def listed(world: Booked, months: int, refund_ppm: int, price: int = PRICE) -> None:
    line = ReservedPrice(months, credit(price), refund_ppm)
    world.do(
        SetOfferPrices(
            offer_id=OFFER,
            provider_id=PROVIDER,
            interruptible_floor=None,
            reserved=(line,),
            by="m",
            at_us=NOON_US,
        )
    )


def taking(price: int) -> tuple[QuoteLease, ReserveLease]:
    place: dict[str, Any] = {
        "lease_id": LEASE,
        "node_id": NODE,
        "offer_id": OFFER,
        "device_ids": DEVICES[:1],
        "at_us": NOON_US,
    }
    quote = QuoteLease(
        quote_id="q",
        rule="reserved/1",
        price_per_gpu_hour=credit(price),
        expires_at_us=NOON_US + 60_000_000,
        **place,
    )
    return quote, ReserveLease(
        rule="reserved/1", fleet_position=1, candidates=(), considered=1, quote_id="q", **place
    )


def reserved(
    months: int = 1, refund_ppm: int = 500_000, *, interruptible: bool | None = None
) -> Booked:
    """A reserved term that runs since noon."""
    on = scene({f"party:{RENTER}:cash": 100_000_000_000})
    (offer,) = [told for told in on.past if isinstance(told[1], OfferPublished)][:1]
    terms = OfferTerms(interruptible=interruptible)
    past = [
        (stream, replace(fact, terms=terms)) if (stream, fact) == offer else (stream, fact)
        for stream, fact in on.past
    ]
    world = Booked.of(replace(on, past=tuple(past)))
    listed(world, months, refund_ppm)
    world.do(job(constraints=Constraints(interruptible=interruptible)))
    world.do(replace(request(term_us(months)), pricing="reserved", months=months))
    for command in taking(PRICE):
        world.do(command)
    world.do(ready)
    return world


def close(at_us: int, party: str = "renter", code: int = 1) -> CloseLease:
    return CloseLease(lease_id=LEASE, closed_at_us=at_us, party=party, code=code, at_us=at_us)


def only(world: Booked, kind: type) -> Any:
    (found,) = [change.fact for change in world.log if isinstance(change.fact, kind)]
    return found


def test_the_whole_term_is_held_at_the_price_of_its_months() -> None:
    world = reserved(3)
    fact = only(world, LeaseReserved)
    assert (fact.price_per_gpu_hour, fact.prepaid) == (credit(PRICE), PrepaidTerm(3, 500_000))
    assert lease_of(world, LEASE).held_units == 3 * 720 * PRICE


@pytest.mark.parametrize("before_us", [0, 1])
def test_a_term_that_was_used_to_its_end_leaves_nothing_behind(before_us: int) -> None:
    """A microsecond before the end, too: half a unit is unused, and floored."""
    world = reserved()
    put_in = lease_of(world, LEASE).held_units
    world.do(close(NOON_US + MONTH_US - before_us))
    assert not [one for one in world.log if isinstance(one.fact, TermEndedEarly)] or before_us
    back = sum(part.amount.units for part in only(world, LeaseClosed).refund)
    assert back == 0
    assert lease_of(world, LEASE).held_units == put_in - before_us


@examples(50)
@given(
    months=st.sampled_from(MONTHS),
    refund_ppm=st.integers(0, 1_000_000),
    after_us=st.integers(1, MONTH_US - 1),
)
def test_what_is_refunded_and_what_is_kept_are_what_is_unused_to_the_unit(
    months: int, refund_ppm: int, after_us: int
) -> None:
    """refunded + kept == unused;   put in == largest charge so far + kept + given back."""
    world = reserved(months, refund_ppm)
    put_in = lease_of(world, LEASE).held_units
    world.do(close(NOON_US + after_us))
    most = charge_for(after_us, PRICE)
    unused = put_in - most
    kept = kept_of(unused, refund_ppm)
    early = [change.fact for change in world.log if isinstance(change.fact, TermEndedEarly)]
    assert [(one.unused, one.kept) for one in early] == (
        [(credit(unused), credit(kept))] if kept else []
    )
    for one in early:
        assert one.refunded.units + one.kept.units == one.unused.units
        assert one.parts.total == kept
        assert sum(part.amount.units for part in one.drawn) == kept
    back = sum(part.amount.units for part in only(world, LeaseClosed).refund)
    assert put_in == most + kept + back
    assert lease_of(world, LEASE).held_units == most


def test_what_a_provider_asked_back_is_refunded_whole_also_where_the_renter_ends_it_then() -> None:
    world = reserved(1, 0)
    stream = lease_stream(LEASE)
    world._states[stream] = replace(lease_of(world, LEASE), status="reclaiming")
    world.do(close(NOON_US + HOUR_US))
    assert not [change for change in world.log if isinstance(change.fact, TermEndedEarly)]
    back = sum(part.amount.units for part in only(world, LeaseClosed).refund)
    assert back == 719 * PRICE


def test_what_is_kept_of_a_term_is_split_among_the_owners_of_its_node() -> None:
    world = reserved(1, 0)
    stream = lease_stream(LEASE)
    lease = lease_of(world, LEASE)
    assert lease.reserved is not None
    owned = replace(lease.reserved, owners=(OwnerShare("acct_a", 250_000),))
    world._states[stream] = replace(lease, reserved=owned)
    world.do(close(NOON_US + HOUR_US))
    early = only(world, TermEndedEarly)
    provider = early.parts.provider
    assert [(one.account_id, one.units, one.units_new) for one in early.owners] == [
        ("acct_a", provider // 4, provider // 4),
        ("acct_owner", provider - provider // 4, provider - provider // 4),
    ]


@pytest.mark.parametrize(("party", "code"), [("provider", 10_002), ("operator", 20_002)])
def test_whoever_else_ends_the_term_the_renter_has_all_of_the_rest_back(
    party: str, code: int
) -> None:
    world = reserved(1, 0)
    world.do(close(NOON_US + HOUR_US, party, code))
    assert not [change for change in world.log if isinstance(change.fact, TermEndedEarly)]
    back = sum(part.amount.units for part in only(world, LeaseClosed).refund)
    assert back == 719 * PRICE


def test_a_moment_of_silence_does_not_give_the_renter_the_part_that_is_not_refunded() -> None:
    """Only the half hour after which the server ends the lease does, and the provider's own end."""
    world = reserved(1, 500_000)
    silent_us = NOON_US + HOUR_US + 200_000_000
    world.do(
        DegradeLease(
            lease_id=LEASE, since_us=NOON_US + HOUR_US, lane=1, usage_position=1, at_us=silent_us
        )
    )
    world.do(close(silent_us))
    early = only(world, TermEndedEarly)
    assert early.refunded.units + early.kept.units == early.unused.units
    assert early.kept.units == kept_of(early.unused.units, 500_000) > 0


@pytest.mark.parametrize("is_handed_on", [True, False])
def test_an_owner_who_hands_the_node_on_keeps_nothing_of_a_paused_term(is_handed_on: bool) -> None:
    """The attack: sell half a year, and hand the node on to a second account while it is paused. It
    cannot be resumed, and the renter who ends it left the unused months behind.
    """
    world = reserved(6, 0, interruptible=True)
    at_us = NOON_US + HOUR_US
    world.do(PauseLease(lease_id=LEASE, reason="renter", by=RENTER, at_us=at_us))
    if is_handed_on:
        handed_on = NodeOwnershipTransferred(
            node_id=NODE,
            from_account_id="acct_owner",
            to_account_id="acct_second",
            share_ppm=1_000_000,
            shares=(OwnerShare("acct_second", 1_000_000),),
            by="m",
            at_us=at_us,
        )
        world._record(Change(revenue_stream(NODE), handed_on))
    world.do(close(at_us))
    early = [change.fact for change in world.log if isinstance(change.fact, TermEndedEarly)]
    unused = (6 * 720 - 1) * PRICE
    assert [one.kept.units for one in early] == ([] if is_handed_on else [unused])
    back = sum(part.amount.units for part in only(world, LeaseClosed).refund)
    assert back == (unused if is_handed_on else 0)


def test_an_owner_who_hands_the_node_on_while_the_term_runs_keeps_the_part() -> None:
    """It goes on then, whoever owns the node: only a pause could not be resumed."""
    world = reserved(1, 0)
    handed_on = NodeOwnershipTransferred(
        node_id=NODE,
        from_account_id="acct_owner",
        to_account_id="acct_second",
        share_ppm=1_000_000,
        shares=(OwnerShare("acct_second", 1_000_000),),
        by="m",
        at_us=NOON_US + HOUR_US,
    )
    world._record(Change(revenue_stream(NODE), handed_on))
    world.do(close(NOON_US + HOUR_US))
    assert only(world, TermEndedEarly).kept.units == 719 * PRICE


def extend(months: int, more_us: int = 0) -> ExtendLease:
    return ExtendLease(
        lease_id=LEASE,
        account_id=RENTER,
        more_us=months * MONTH_US + more_us,
        at_us=NOON_US + HOUR_US,
    )


def test_a_reserved_term_is_extended_by_months_of_the_list_while_the_list_has_them_so() -> None:
    world = reserved(1, 500_000)
    for command in (extend(0, HOUR_US), extend(1, 1), extend(2), extend(3)):
        assert refused(world, command) is PricesReason.TERM_NOT_OFFERED
    world.do(extend(1))
    assert lease_of(world, LEASE).held_units == 2 * 720 * PRICE
    listed(world, 1, 500_000, PRICE + 1)
    assert refused(world, extend(1)) is PricesReason.TERM_NOT_OFFERED
    listed(world, 1, 400_000)
    assert refused(world, extend(1)) is PricesReason.TERM_NOT_OFFERED


def test_no_other_price_than_the_lists_reserves_the_months() -> None:
    world = Booked.of(scene({f"party:{RENTER}:cash": 100_000_000_000}))
    listed(world, 1, 0)
    world.do(job())
    world.do(replace(request(term_us(1)), pricing="reserved", months=1))
    quote, reserve = taking(PRICE - 1)
    world.do(quote)
    assert refused(world, reserve) is MarketReason.OFFER_MISMATCH
    listed(world, 3, 0)
    assert refused(world, reserve) is PricesReason.TERM_NOT_OFFERED


@pytest.mark.parametrize(
    "changes",
    [
        {"months": 2},
        {"months": 1, "term_us": 1},
        {"months": 1, "pricing": "posted"},
        {"pricing": "reserved"},
    ],
)
def test_months_module_and_term_go_together(changes: dict[str, Any]) -> None:
    world = Booked.of(scene())
    world.do(job())
    asked = replace(request(term_us(1)), pricing="reserved", months=None)
    assert refused(world, replace(asked, **changes)) is PricesReason.TERM_NOT_OFFERED


BAD: list[tuple[ReservedPrice, Reason]] = [
    (ReservedPrice(2, credit(PRICE), 0), PricesReason.TERM_NOT_OFFERED),
    (ReservedPrice(1, credit(PRICE), 1_000_001), PartiesReason.SHARE_OUT_OF_RANGE),
    (ReservedPrice(1, credit(0), 0), FundsReason.AMOUNT_NOT_POSITIVE),
    (ReservedPrice(1, credit(10**13), 0), PricesReason.AMOUNT_OUT_OF_RANGE),
    (ReservedPrice(1, credit(249_999), 0), PricesReason.PRICE_BELOW_USAGE_FEE),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_an_absurd_line_of_a_price_list_is_refused(line: ReservedPrice, reason: Reason) -> None:
    world = Booked.of(scene())
    command = SetOfferPrices(
        offer_id=OFFER,
        provider_id=PROVIDER,
        interruptible_floor=None,
        reserved=(line,),
        by="m",
        at_us=NOON_US,
    )
    assert refused(world, command) is reason
    assert refused(world, replace(command, provider_id="prov_z")) is MarketReason.OFFER_UNKNOWN


def test_a_later_list_touches_no_term_that_is_reserved() -> None:
    world = reserved(1, 1_000_000)
    listed(world, 1, 0, PRICE + 1)
    assert only(world, LeaseReserved).prepaid.refund_ppm == 1_000_000
    world.do(close(NOON_US + HOUR_US))
    assert not [change for change in world.log if isinstance(change.fact, TermEndedEarly)]
    assert [change.fact for change in world.log if isinstance(change.fact, OfferPricesSet)]
