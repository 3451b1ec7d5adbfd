"""What a provider rents out, at which price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.device import DeviceRetired
from domain.fleet.node import NodeEquivocated
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.market.offer import (
    PRICE_UNITS_MAX,
    OfferPublished,
    OfferTerms,
    OfferWithdrawn,
    PublishOffer,
    WithdrawOffer,
    offer_of,
)
from domain.market.reasons import MarketReason
from domain.money import credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import NETWORK
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.supply import (
    GPU_0,
    GPU_1,
    NODE,
    NODE_STREAM,
    NOON_US,
    PROVIDER,
    device_registered,
    registered,
    tariff,
    with_active_node,
    with_admitted_node,
    with_confirmed_node,
    with_provider,
    with_tariff,
)
from tests.given import Scene

OFFER = "offer_1"
OFFER_STREAM = Stream("offer", OFFER)

publish = PublishOffer(
    offer_id=OFFER,
    provider_id=PROVIDER,
    node_id=NODE,
    price_per_gpu_hour=credit(2_780_000),
    pay_with="cash",
    fractions=True,
    available_until_us=None,
    at_us=NOON_US,
)
published = OfferPublished(
    offer_id=OFFER,
    provider_id=PROVIDER,
    node_id=NODE,
    price_per_gpu_hour=credit(2_780_000),
    pay_with="cash",
    fractions=True,
    available_until_us=None,
    at_us=NOON_US,
    terms=OfferTerms(),
)
withdraw = WithdrawOffer(offer_id=OFFER, by="mem_alice", at_us=NOON_US + 1)
withdrawn = OfferWithdrawn(offer_id=OFFER, by="mem_alice", at_us=NOON_US + 1)

with_offer = with_tariff.given((OFFER_STREAM, published))


def test_a_provider_offers_its_node() -> None:
    with_tariff.when(publish).then((OFFER_STREAM, published))
    assert offer_of(with_offer, OFFER).is_open


def test_a_node_in_maintenance_may_be_offered_for_later() -> None:
    with_admitted_node.given((NETWORK, tariff)).when(publish).then((OFFER_STREAM, published))


def test_publishing_twice_is_once_and_a_price_never_changes() -> None:
    with_offer.when(replace(publish, at_us=NOON_US + 9)).then_nothing()
    with_offer.when(replace(publish, price_per_gpu_hour=credit(3_000_000))).then_refused(
        MarketReason.OFFER_EXISTS
    )


def test_only_the_nodes_own_provider_offers_it() -> None:
    Scene().when(publish).then_refused(FleetReason.PROVIDER_UNKNOWN)
    with_provider.when(publish).then_refused(FleetReason.NODE_UNKNOWN)
    stranger = replace(registered, provider_id="prov_bob")
    with_tariff.given((Stream("provider", "prov_bob"), stranger)).when(
        replace(publish, provider_id="prov_bob")
    ).then_refused(FleetReason.NODE_UNKNOWN)


def test_only_an_admitted_node_is_offered() -> None:
    with_confirmed_node.given((NETWORK, tariff)).when(publish).then_refused(FleetReason.NODE_STATE)
    proof = NodeEquivocated(
        node_id=NODE, lane=0, node_seq=1, first_leaf="aa", second_leaf="bb", at_us=NOON_US
    )
    with_tariff.given((NODE_STREAM, proof)).when(publish).then_refused(FleetReason.NODE_STATE)


@pytest.mark.parametrize("gpu_class", [None, "quantum"])
def test_a_class_without_a_fee_is_not_priced(gpu_class: str | None) -> None:
    strange = (Stream("device", GPU_1), device_registered(GPU_1, gpu_class=gpu_class))
    with_tariff.given(strange).when(publish).then_refused(PricesReason.GPU_CLASS_UNPRICED)


def test_a_device_that_left_prices_nothing() -> None:
    gone = with_tariff.given(
        (Stream("device", GPU_1), device_registered(GPU_1, gpu_class=None)),
        (Stream("device", GPU_1), DeviceRetired(device_id=GPU_1, node_id=NODE, at_us=NOON_US)),
    )
    gone.when(publish).then((OFFER_STREAM, published))
    empty = gone.given(
        (Stream("device", GPU_0), DeviceRetired(device_id=GPU_0, node_id=NODE, at_us=NOON_US))
    )
    empty.when(publish).then_refused(PricesReason.GPU_CLASS_UNPRICED)


def test_nothing_is_offered_before_there_is_a_tariff() -> None:
    with_active_node.when(publish).then_refused(PricesReason.TARIFF_UNKNOWN)


def test_a_price_below_the_usage_fee_is_refused() -> None:
    with_tariff.when(replace(publish, price_per_gpu_hour=credit(249_999))).then_refused(
        PricesReason.PRICE_BELOW_USAGE_FEE
    )
    least = replace(publish, price_per_gpu_hour=credit(250_000))
    assert len(with_tariff.when(least).changes()) == 1


def test_a_price_is_in_credits_and_of_a_sane_size() -> None:
    for price, reason in (
        (credit(0), FundsReason.AMOUNT_NOT_POSITIVE),
        (token(2_780_000), PricesReason.AMOUNT_OUT_OF_RANGE),
        (credit(PRICE_UNITS_MAX + 1), PricesReason.AMOUNT_OUT_OF_RANGE),
    ):
        with_tariff.when(replace(publish, price_per_gpu_hour=price)).then_refused(reason)


def test_an_offer_settles_in_cash_or_by_burning() -> None:
    with_tariff.when(replace(publish, pay_with="barter")).then_refused(PartiesReason.UNKNOWN_MODE)
    assert with_tariff.when(replace(publish, pay_with="burn")).changes()


def test_an_offer_is_withdrawn_once() -> None:
    with_offer.when(withdraw).then((OFFER_STREAM, withdrawn))
    gone = with_offer.after(withdraw)
    gone.when(withdraw).then_nothing()
    assert not offer_of(gone, OFFER).is_open


def test_an_unknown_offer_is_not_withdrawn() -> None:
    with_tariff.when(withdraw).then_refused(MarketReason.OFFER_UNKNOWN)


@given(st.integers(-1, 3 * 10**5), st.sampled_from(["development", "professional", "datacenter"]))
def test_whatever_is_offered_covers_its_usage_fee(units: int, gpu_class: str) -> None:
    scene = with_tariff.given(
        *(
            (Stream("device", device_id), device_registered(device_id, gpu_class=gpu_class))
            for device_id in (GPU_0, GPU_1)
        )
    )
    fee = next(row.per_gpu_hour for row in tariff.usage_fees if row.gpu_class == gpu_class)
    try:
        changes = scene.when(replace(publish, price_per_gpu_hour=credit(units))).changes()
    except Refused:
        assert units < fee.units
    else:
        assert changes[0].fact.price_per_gpu_hour >= fee


def test_an_offer_of_a_cloud_covers_what_the_cloud_costs_and_one_of_ones_own_machine_the_fee() -> (
    None
):
    """C-2: physical has the lowest cost of a GPU-hour, and so the lowest possible price."""
    cloud = with_tariff.given((Stream("provider", PROVIDER), replace(registered, kind="gcp")))
    for scene, least in ((with_tariff, 250_000), (cloud, 600_000)):
        scene.after(replace(publish, price_per_gpu_hour=credit(least)))
        below = replace(publish, price_per_gpu_hour=credit(least - 1))
        scene.when(below).then_refused(PricesReason.PRICE_BELOW_USAGE_FEE)
