"""Tariffs: dated versions that never change, the newest one in force deciding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.money import PPM, credit, token
from domain.offer import PRICE_UNITS_MAX
from domain.refusal import Reason, Refused
from domain.tariff import (
    CLOUDBENDER,
    FEE_UNITS_MAX,
    NETWORK,
    PublishTariff,
    TariffPublished,
    UsageFee,
    publish,
    tariff_in_force,
    usage_fee,
)
from tests.given import Scene

FIRST = publish(CLOUDBENDER, version=1, effective_from_us=1_000, by="key_op", at_us=500)
SECOND = replace(FIRST, version=2, provider_share_ppm=600_000, effective_from_us=9_000, at_us=8_000)


def published(command: PublishTariff) -> TariffPublished:
    return TariffPublished(
        version=command.version,
        usage_fees=command.usage_fees,
        provider_share_ppm=command.provider_share_ppm,
        burn_share_ppm=command.burn_share_ppm,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )


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
    SCENE.when(replace(FIRST, burn_share_ppm=1)).then_refused(Reason.TARIFF_VERSION)


@pytest.mark.parametrize("version", [0, 3])
def test_versions_have_no_gaps(version: int) -> None:
    SCENE.when(replace(SECOND, version=version)).then_refused(Reason.TARIFF_VERSION)


def test_a_tariff_never_reaches_back() -> None:
    SCENE.when(replace(SECOND, effective_from_us=7_999)).then_refused(Reason.TARIFF_VERSION)
    later = SCENE.given((NETWORK, published(SECOND)))
    third = replace(SECOND, version=3, at_us=8_500, effective_from_us=8_999)
    later.when(third).then_refused(Reason.TARIFF_VERSION)


@pytest.mark.parametrize("name", ["provider_share_ppm", "burn_share_ppm"])
@pytest.mark.parametrize("share_ppm", [-1, PPM + 1])
def test_shares_lie_between_nothing_and_all(name: str, share_ppm: int) -> None:
    changed: dict[str, Any] = {name: share_ppm}
    FRESH.when(replace(FIRST, **changed)).then_refused(Reason.SHARE_OUT_OF_RANGE)


def test_a_class_has_one_fee() -> None:
    twice = (UsageFee("a", credit(1)), UsageFee("a", credit(2)))
    FRESH.when(replace(FIRST, usage_fees=twice)).then_refused(Reason.DUPLICATE_ID)


@pytest.mark.parametrize("fee", [credit(-1), token(1), credit(FEE_UNITS_MAX + 1)])
def test_fees_are_credits_not_negative_and_no_more_than_a_price_can_be(fee: object) -> None:
    fees = (UsageFee("a", fee),)  # type: ignore[arg-type]
    FRESH.when(replace(FIRST, usage_fees=fees)).then_refused(Reason.AMOUNT_OUT_OF_RANGE)
    assert FEE_UNITS_MAX == PRICE_UNITS_MAX


def test_the_newest_tariff_in_force_decides() -> None:
    scene = SCENE.given((NETWORK, published(SECOND)))
    assert tariff_in_force(scene, 1_000).version == 1
    assert tariff_in_force(scene, 8_999).version == 1
    assert tariff_in_force(scene, 9_000).version == 2
    with pytest.raises(Refused) as caught:
        tariff_in_force(scene, 999)
    assert caught.value.reason is Reason.TARIFF_UNKNOWN


def test_a_class_without_a_row_has_no_price() -> None:
    assert usage_fee(CLOUDBENDER, "datacenter") == credit(250_000)
    for gpu_class in ("tensor", None):
        with pytest.raises(Refused) as caught:
            usage_fee(published(FIRST), gpu_class)
        assert caught.value.reason is Reason.GPU_CLASS_UNPRICED
