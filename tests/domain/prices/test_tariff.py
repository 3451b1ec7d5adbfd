"""Tariffs: dated versions that never change, the newest one in force deciding."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from domain.market.offer import PRICE_UNITS_MAX
from domain.money import PPM, MoneyReason, credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import (
    CLOUDBENDER,
    FEE_UNITS_MAX,
    MARKETPLACE,
    NETWORK,
    NOTICE_US_MAX,
    PRESETS,
    PRICED,
    FederatedFees,
    FreeStart,
    MeterRate,
    PublishTariff,
    SlaClass,
    SlaTier,
    Split,
    SplitShare,
    TariffPublished,
    UsageFee,
    meter_rate,
    publish,
    sla_class,
    tariff_in_force,
    tariff_version,
    usage_fee,
)
from domain.refusal import Reason, Refused
from tests.given import Scene

FIRST = publish(CLOUDBENDER, version=1, effective_from_us=1_000, by="key_op", at_us=500)
SECOND = replace(FIRST, version=2, provider_share_ppm=600_000, effective_from_us=9_000, at_us=8_000)


def published(command: PublishTariff) -> TariffPublished:
    return TariffPublished(**{row.name: getattr(command, row.name) for row in fields(command)})


FRESH = Scene()
SCENE = FRESH.given((NETWORK, published(FIRST)))


def test_the_first_tariff_may_begin_at_any_time() -> None:
    FRESH.when(FIRST).then((NETWORK, published(FIRST)))
    past = replace(FIRST, effective_from_us=0)
    FRESH.when(past).then((NETWORK, published(past)))


def test_a_later_tariff_follows_by_number_and_by_date() -> None:
    SCENE.when(SECOND).then((NETWORK, published(SECOND)))


def test_the_same_tariff_again_changes_nothing() -> None:
    SCENE.when(replace(FIRST, by="key_other", at_us=777)).then_nothing()


def test_a_published_version_is_never_edited() -> None:
    SCENE.when(replace(FIRST, burn_share_ppm=1)).then_refused(
        PricesReason.TARIFF_VERSION, version=1, expected=2
    )


@pytest.mark.parametrize("version", [0, 3])
def test_versions_have_no_gaps(version: int) -> None:
    SCENE.when(replace(SECOND, version=version)).then_refused(
        PricesReason.TARIFF_VERSION, version=..., expected=2
    )


def test_a_tariff_never_reaches_back() -> None:
    SCENE.when(replace(SECOND, effective_from_us=7_999)).then_refused(
        PricesReason.TARIFF_VERSION, effective_from_us=7999
    )
    later = SCENE.given((NETWORK, published(SECOND)))
    third = replace(SECOND, version=3, at_us=8_500, effective_from_us=8_999)
    later.when(third).then_refused(PricesReason.TARIFF_VERSION, effective_from_us=8999)


@pytest.mark.parametrize("name", ["provider_share_ppm", "burn_share_ppm"])
@pytest.mark.parametrize("share_ppm", [-1, PPM + 1])
def test_shares_lie_between_nothing_and_all(name: str, share_ppm: int) -> None:
    changed: dict[str, Any] = {name: share_ppm}
    FRESH.when(replace(FIRST, **changed)).then_refused(
        PartiesReason.SHARE_OUT_OF_RANGE, share_ppm=...
    )


def test_a_class_has_one_fee() -> None:
    twice = (UsageFee("a", credit(1)), UsageFee("a", credit(2)))
    FRESH.when(replace(FIRST, usage_fees=twice)).then_refused(MoneyReason.DUPLICATE_ID)


@pytest.mark.parametrize("fee", [credit(-1), token(1), credit(FEE_UNITS_MAX + 1)])
def test_fees_are_credits_not_negative_and_no_more_than_a_price_can_be(fee: object) -> None:
    fees = (UsageFee("a", fee),)  # type: ignore[arg-type]
    FRESH.when(replace(FIRST, usage_fees=fees)).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)
    assert FEE_UNITS_MAX == PRICE_UNITS_MAX


def test_the_newest_tariff_in_force_decides() -> None:
    scene = SCENE.given((NETWORK, published(SECOND)))
    assert tariff_in_force(scene, 1_000).version == 1
    assert tariff_in_force(scene, 8_999).version == 1
    assert tariff_in_force(scene, 9_000).version == 2
    with pytest.raises(Refused) as caught:
        tariff_in_force(scene, 999)
    assert caught.value.reason is PricesReason.TARIFF_UNKNOWN


def test_a_class_without_a_row_has_no_price() -> None:
    assert usage_fee(CLOUDBENDER, "datacenter") == credit(250_000)
    for gpu_class in ("tensor", None):
        with pytest.raises(Refused) as caught:
            usage_fee(published(FIRST), gpu_class)
        assert caught.value.reason is PricesReason.GPU_CLASS_UNPRICED


DAY_US = 86_400_000_000


def test_the_next_version_is_published_a_notice_before_it_starts() -> None:
    """R-15: the version before says how long."""
    first = replace(FIRST, notice_us=28 * DAY_US)
    scene = FRESH.given((NETWORK, published(first)))
    start_us = SECOND.at_us + 28 * DAY_US
    scene.when(replace(SECOND, effective_from_us=start_us - 1)).then_refused(
        PricesReason.TARIFF_NOTICE
    )
    on_time = replace(SECOND, effective_from_us=start_us)
    scene.when(on_time).then((NETWORK, published(on_time)))


@pytest.mark.parametrize("notice_us", [-1, NOTICE_US_MAX + 1])
def test_a_notice_is_at_most_a_year(notice_us: int) -> None:
    FRESH.when(replace(FIRST, notice_us=notice_us)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_tariff_that_can_be_published(name: str) -> None:
    command = publish(PRESETS[name], version=1, effective_from_us=0, by="key_op", at_us=1)
    FRESH.when(command).then((NETWORK, published(command)))


def test_a_preset_prices_storage_nodes_devices_meters_and_sla_classes() -> None:
    """C-30, J-6, V-6: nothing of them is free until governance publishes a tariff of its own."""
    terms = PRESETS["marketplace"]
    assert {row.meter for row in terms.meters} == PRICED.keys()
    assert [row.name for row in terms.sla] == ["standard", "assured"]
    for preset in (terms, PRESETS["cloudbender"]):
        assert preset.storage_node_per_hour == credit(100_000)
        assert preset.device_fee_per_month == credit(15_000_000)


def _split(residual: str, **shares: int) -> Split:
    return Split(tuple(SplitShare(bucket, ppm) for bucket, ppm in shares.items()), residual)


@pytest.mark.parametrize(
    ("split", "provider_ppm", "reason", "told"),
    [
        (
            _split("burn", provider=600_000, platform=500_000),
            600_000,
            PartiesReason.SHARE_OUT_OF_RANGE,
            {"sum_ppm": 1_100_000},
        ),
        (_split("burn", provider=-1), -1, PartiesReason.SHARE_OUT_OF_RANGE, {"share_ppm": -1}),
        (_split("provider", provider=1), 1, MoneyReason.DUPLICATE_ID, {"rows": "split"}),
        (_split("charity", provider=1), 1, PartiesReason.UNKNOWN_MODE, {"residual": "charity"}),
        (_split("burn", renter=1), 0, PartiesReason.UNKNOWN_MODE, {"buckets": "renter"}),
        (
            _split("burn", provider=600_000),
            500_000,
            PartiesReason.SHARE_OUT_OF_RANGE,
            {"provider_share_ppm": 600_000},
        ),
        (
            _split("provider", platform=600_000),
            0,
            PartiesReason.SHARE_OUT_OF_RANGE,
            {"provider_share_ppm": 400_000},
        ),
    ],
)
def test_a_split_names_each_bucket_once_and_shares_no_more_than_all(
    split: Split, provider_ppm: int, reason: Reason, told: dict[str, object]
) -> None:
    asked = replace(FIRST, split=split, provider_share_ppm=provider_ppm)
    FRESH.when(asked).then_refused(reason, **told)


def test_a_split_may_leave_the_rest_to_any_bucket() -> None:
    split = _split("provider", client=100_000, platform=50_000)
    command = replace(FIRST, split=split, provider_share_ppm=850_000)
    FRESH.when(command).then((NETWORK, published(command)))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"device_fee_per_month": credit(-1)}, PricesReason.AMOUNT_OUT_OF_RANGE),
        ({"storage_node_per_hour": token(1)}, PricesReason.AMOUNT_OUT_OF_RANGE),
        (
            {"federated": FederatedFees(credit(1), credit(FEE_UNITS_MAX + 1), "job")},
            PricesReason.AMOUNT_OUT_OF_RANGE,
        ),
        ({"federated": FederatedFees(credit(1), credit(1), "team")}, PartiesReason.UNKNOWN_MODE),
        ({"meters": (MeterRate("cpu", credit(1), 0),)}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"meters": (MeterRate("gpu", credit(1), 1),)}, PartiesReason.UNKNOWN_MODE),
        ({"meters": (MeterRate("cpu", credit(1), 1),) * 2}, MoneyReason.DUPLICATE_ID),
        ({"sla": (SlaClass("gold", ()),)}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"sla": (SlaClass("gold", (SlaTier(990_000, 0),)),)}, PartiesReason.SHARE_OUT_OF_RANGE),
        (
            {"sla": (SlaClass("gold", (SlaTier(990_000, 100_000), SlaTier(995_000, 200_000))),)},
            PartiesReason.COUNT_OUT_OF_RANGE,
        ),
        (
            {"sla": (SlaClass("gold", (SlaTier(990_000, 200_000), SlaTier(950_000, 100_000))),)},
            PartiesReason.COUNT_OUT_OF_RANGE,
        ),
    ],
)
def test_a_row_that_means_nothing_is_refused(changed: dict[str, Any], reason: Reason) -> None:
    FRESH.when(replace(FIRST, **changed)).then_refused(reason)


def test_rows_are_found_by_their_names_in_the_version_that_a_lease_keeps() -> None:
    gold = SlaClass("gold", (SlaTier(990_000, 100_000), SlaTier(950_000, 300_000)))
    cpu = MeterRate("cpu", credit(36_000), 3_600)
    first = replace(FIRST, meters=(cpu,), sla=(gold,))
    scene = FRESH.given((NETWORK, published(first)), (NETWORK, published(SECOND)))
    kept = tariff_version(scene, 1)
    assert (meter_rate(kept, "cpu"), meter_rate(kept, "network")) == (cpu, None)
    assert sla_class(kept, "gold") == gold
    with pytest.raises(Refused, match="sla_class_unknown"):
        sla_class(tariff_version(scene, 2), "gold")
    with pytest.raises(Refused, match="tariff_unknown"):
        tariff_version(scene, 3)


def test_the_published_regimes_in_numbers() -> None:
    """What a market begins with, as its documents tell it: a changed digit is a changed price."""
    fees = {"development": 50_000, "professional": 100_000, "datacenter": 250_000}
    for name in ("cloudbender", "home", "marketplace"):
        told = PRESETS[name]
        own = {"unified": 20_000} if name == "home" else {}
        assert {fee.gpu_class: fee.per_gpu_hour.units for fee in told.usage_fees} == {**fees, **own}
        assert (told.provider_share_ppm, told.burn_share_ppm, told.split) == (500_000, 0, None)
        assert told.federated == FederatedFees(credit(1_850_000), credit(2_650_000), "worker")
        assert told.device_fee_per_month == credit(15_000_000)
        assert told.storage_node_per_hour == credit(100_000)
        assert told.notice_us == 0
    assert {one.meter: (one.price.units, one.per) for one in MARKETPLACE.meters} == {
        "cpu": (10_000, 3_600),
        "memory": (2_000, 3_600),
        "storage": (100_000, 2_592_000),
        "network": (10_000, 1_000_000_000),
        "volume": (100_000, 2_592_000),
    }
    assert MARKETPLACE.sla == (
        SlaClass("standard", (SlaTier(990_000, 100_000), SlaTier(950_000, 300_000))),
        SlaClass("assured", (SlaTier(999_000, 100_000), SlaTier(990_000, 300_000))),
    )
    burning = {"rnp_006": 0, "rnp_023_sce": 350_000, "rnp_023_sgs": 600_000}
    for name, provider_ppm in burning.items():
        told = PRESETS[name]
        assert {fee.per_gpu_hour.units for fee in told.usage_fees} == {0}
        assert (told.provider_share_ppm, told.burn_share_ppm) == (provider_ppm, 0)
        assert told.split is not None
        shares = {one.bucket: one.share_ppm for one in told.split.shares}
        others = {"provider": provider_ppm} if provider_ppm else {}
        assert shares == {"platform": 50_000, **others}
        assert told.split.residual == "burn"


def test_a_fee_is_at_most_what_a_price_can_be() -> None:
    for units, is_taken in ((10**12, True), (10**12 + 1, False), (0, True), (-1, False)):
        told = replace(FIRST, usage_fees=(UsageFee("datacenter", credit(units)),))
        if is_taken:
            FRESH.when(told).then((NETWORK, published(told)))
        else:
            FRESH.when(told).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)


def test_a_promise_may_give_everything_back_and_be_broken_below_everything() -> None:
    for ppm, is_taken in ((PPM, True), (PPM + 1, False), (1, True), (0, False)):
        for tier in (SlaTier(ppm, 1), SlaTier(1, ppm)):
            told = FRESH.when(replace(FIRST, sla=(SlaClass("gold", (tier,)),)))
            if is_taken:
                assert told.changes()
            else:
                told.then_refused(PartiesReason.SHARE_OUT_OF_RANGE, sla_class="gold")


def test_a_tariff_is_within_its_bounds_and_not_one_beyond() -> None:
    """The bounds of rows as the documents tell them."""
    rows = [UsageFee(f"c{number}", credit(1)) for number in range(33)]
    classes = [SlaClass(f"c{number}", (SlaTier(1, 1),)) for number in range(33)]
    tiers = [SlaTier(900_000 - number, number + 1) for number in range(33)]
    taken: list[dict[str, Any]] = [
        {"usage_fees": tuple(rows[:32])},
        {"usage_fees": ()},
        {"sla": tuple(classes[:32])},
        {"sla": (SlaClass("gold", tuple(tiers[:32])),)},
        {"meters": (MeterRate("cpu", credit(1), 1),)},
        {"meters": (MeterRate("cpu", credit(1), 10**18),)},
        {"notice_us": 0},
        {"notice_us": 366 * DAY_US},
        *({"free_start": FreeStart(us, 0)} for us in (0, 600_000_000)),
        *({"free_start": FreeStart(0, failed)} for failed in (0, 100)),
    ]
    for changed in taken:
        told = replace(FIRST, **changed)
        FRESH.when(told).then((NETWORK, published(told)))
    beyond: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"usage_fees": tuple(rows)}, {"rows": "usage_fees", "at_most": 32}),
        ({"sla": tuple(classes)}, {"rows": "sla", "at_most": 32}),
        ({"sla": (SlaClass("gold", tuple(tiers)),)}, {"sla_class": "gold", "tiers": 33}),
        ({"meters": (MeterRate("cpu", credit(1), -1),)}, {"per": -1, "most": 10**18}),
        ({"meters": (MeterRate("cpu", credit(1), 0),)}, {"per": 0, "most": 10**18}),
        ({"meters": (MeterRate("cpu", credit(1), 10**18 + 1),)}, {"most": 10**18}),
        ({"notice_us": -1}, {"field": "notice_us", "at_most": 366 * DAY_US}),
        ({"notice_us": 366 * DAY_US + 1}, {"field": "notice_us", "at_most": 366 * DAY_US}),
        ({"free_start": FreeStart(-1, 0)}, {"field": "free_start.at_most_us"}),
        ({"free_start": FreeStart(600_000_001, 0)}, {"field": "free_start.at_most_us"}),
        ({"free_start": FreeStart(0, -1)}, {"field": "free_start.failed_per_hour"}),
        ({"free_start": FreeStart(0, 101)}, {"field": "free_start.failed_per_hour"}),
    ]
    for changed, facts in beyond:
        told = replace(FIRST, **changed)
        FRESH.when(told).then_refused(PartiesReason.COUNT_OUT_OF_RANGE, **facts)


def test_a_tariff_of_a_new_market_gives_a_minute_until_two_starts_failed() -> None:
    assert MARKETPLACE.free_start == FreeStart(at_most_us=60_000_000, failed_per_hour=2)
    assert {PRESETS[name].free_start for name in PRESETS if name != "marketplace"} == {None}


def test_a_split_may_name_every_bucket_and_share_all_of_it_or_nothing() -> None:
    """Each bucket as the rest of all others; a share of 0 and shares of all are within."""
    buckets = ("provider", "client", "platform", "burn")
    for residual in buckets:
        shares = {bucket: 0 for bucket in buckets if bucket != residual}
        if residual != "platform":
            shares["platform"] = 50_000
        provider_ppm = 950_000 if residual == "provider" else 0
        told = replace(FIRST, split=_split(residual, **shares), provider_share_ppm=provider_ppm)
        FRESH.when(told).then((NETWORK, published(told)))
    whole = replace(
        FIRST, split=_split("burn", platform=400_000, client=600_000), provider_share_ppm=0
    )
    FRESH.when(whole).then((NETWORK, published(whole)))
    nothing = replace(FIRST, split=Split((), "platform"), provider_share_ppm=0)
    FRESH.when(nothing).then((NETWORK, published(nothing)))


@pytest.mark.parametrize(
    ("split", "sum_ppm"),
    [
        (_split("burn", platform=-1, client=600_000), 599_999),
        (_split("burn", platform=600_000, client=-1), 599_999),
        (_split("burn", platform=400_000, client=600_001), PPM + 1),
    ],
)
def test_no_share_of_a_split_is_less_than_nothing_and_no_sum_more_than_all(
    split: Split, sum_ppm: int
) -> None:
    told = replace(FIRST, split=split, provider_share_ppm=0)
    FRESH.when(told).then_refused(PartiesReason.SHARE_OUT_OF_RANGE, sum_ppm=sum_ppm)


def test_under_a_split_the_plain_share_of_the_burn_is_nothing() -> None:
    split = _split("burn", platform=50_000, provider=600_000)
    told = replace(FIRST, split=split, provider_share_ppm=600_000)
    FRESH.when(told).then((NETWORK, published(told)))
    FRESH.when(replace(told, burn_share_ppm=1)).then_refused(
        PartiesReason.SHARE_OUT_OF_RANGE, provider_share_ppm=600_000, burn_share_ppm=0
    )


def test_a_version_is_found_by_its_number_and_by_no_other() -> None:
    scene = SCENE.given((NETWORK, published(SECOND)))
    assert [tariff_version(scene, version).version for version in (1, 2)] == [1, 2]
    for version in (-1, 0, 3):
        with pytest.raises(Refused) as caught:
            tariff_version(scene, version)
        assert caught.value.reason is PricesReason.TARIFF_UNKNOWN
        assert caught.value.facts == {"version": version}


@pytest.mark.parametrize(
    ("row", "rows"),
    [
        ("a", lambda fee: {"usage_fees": (UsageFee("a", fee),)}),
        ("federated.inference", lambda fee: {"federated": FederatedFees(fee, credit(0), "job")}),
        ("federated.training", lambda fee: {"federated": FederatedFees(credit(0), fee, "job")}),
        ("device_fee_per_month", lambda fee: {"device_fee_per_month": fee}),
        ("storage_node_per_hour", lambda fee: {"storage_node_per_hour": fee}),
        ("cpu", lambda fee: {"meters": (MeterRate("cpu", fee, 1),)}),
    ],
)
def test_every_fee_is_of_credits_from_none_to_a_million(row: str, rows: Any) -> None:
    for fee in (credit(0), credit(10**12)):
        told = replace(FIRST, **rows(fee))
        FRESH.when(told).then((NETWORK, published(told)))
    for fee in (credit(-1), credit(10**12 + 1), token(1)):
        FRESH.when(replace(FIRST, **rows(fee))).then_refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, row=row
        )
