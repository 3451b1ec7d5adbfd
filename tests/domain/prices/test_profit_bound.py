"""The profit bound: no tariff and policy together return more than 95 % of what is spent."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.epochs.epoch import EpochOpened
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import NO_TERMS, REWARD_TERMS, Rated
from domain.money import PPM
from domain.prices import profit_bound
from domain.prices.charge_split import peel
from domain.prices.profit_bound import Breach, Parts, back_ppm, breach_of, is_sound, multiple_of
from domain.prices.reasons import PricesReason
from domain.prices.tariff import (
    BUCKETS,
    CLOUDBENDER,
    PRESETS,
    PublishTariff,
    SlaClass,
    SlaTier,
    Split,
    SplitShare,
    TariffPublished,
    publish,
    tariffs_from,
)
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.epochs import POLICY
from tests.given import Scene

GOLD = SlaClass("gold", (SlaTier(990_000, 100_000),))
WHOLE = PPM * PPM
FRESH = Scene()


def tariff(provider: int, burn: int, client: int = 0, **more: Any) -> PublishTariff:
    """So many ppm each, and the rest to the platform."""
    shares = [("provider", provider), ("client", client), ("burn", burn)]
    split = Split(tuple(SplitShare(*one) for one in shares if one[1]), "platform")
    terms = replace(CLOUDBENDER, provider_share_ppm=provider, split=split, **more)
    return publish(terms, version=1, effective_from_us=0, by="op", at_us=1)


def policy(version: int, epoch: int, multiple: int | None) -> tuple[Stream[Any], PolicyPublished]:
    rewards = replace(REWARD_TERMS, cap_multiple_ppm=multiple)
    fact = replace(POLICY, version=version, effective_from_epoch=epoch, rewards=rewards)
    return Stream("policy", "network"), fact


def opened(epoch: int) -> tuple[Stream[Any], EpochOpened]:
    fact = EpochOpened(epoch=epoch, start_us=0, end_us=1, policy_version=1, at_us=0)
    return Stream("epoch", str(epoch)), fact


def refused(command: PublishTariff, scene: Scene) -> dict[str, Any]:
    with pytest.raises(Refused) as caught:
        scene.after(command)
    assert caught.value.reason is PricesReason.PROFIT_BOUND
    return dict(caught.value.facts)


@pytest.mark.parametrize("name", PRESETS)
def test_every_published_regime_keeps_the_bound_under_the_default_policy(name: str) -> None:
    command = publish(PRESETS[name], version=1, effective_from_us=0, by="op", at_us=1)
    assert breach_of(command, multiple_of(REWARD_TERMS)) is None


def test_e_h8_the_tariff_that_gives_a_washer_everything_back_is_refused() -> None:
    """E-H8: provider 500,000, the rest burned, no usage fee: it was published."""
    split = Split((SplitShare("provider", 500_000),), "burn")
    terms = replace(CLOUDBENDER, split=split)
    command = publish(terms, version=1, effective_from_us=0, by="op", at_us=1)
    for scene in (FRESH, FRESH.given(policy(1, 1, PPM), opened(1))):
        facts = refused(command, scene)
        assert (facts["field"], facts["rule"]) == ("split", "parts and reward")
        assert (facts["back_ppm"], facts["at_most_ppm"]) == (1_000_000, 950_000)


def test_the_clients_part_counts_and_an_absent_clients_part_goes_to_the_residual() -> None:
    assert breach_of(tariff(350_000, 550_000), PPM) is None
    found = breach_of(tariff(350_000, 550_000, client=50_001), PPM)
    assert found == Breach("split", "parts and reward", 950_001)
    taken = Split((SplitShare("client", 100_000), SplitShare("burn", 400_000)), "provider")
    assert breach_of(replace(tariff(500_000, 0), split=taken), 875_000) is None
    assert breach_of(replace(tariff(500_000, 0), split=taken), 875_003) is not None
    owned = Split((SplitShare("burn", 800_000),), "client")
    assert breach_of(replace(tariff(0, 0), split=owned), 900_000) is None
    assert breach_of(replace(tariff(0, 0), split=owned), 950_000) is not None


def test_without_a_split_the_burn_is_a_share_of_what_the_provider_leaves() -> None:
    plain = publish(
        replace(CLOUDBENDER, provider_share_ppm=500_000, burn_share_ppm=900_000),
        version=1,
        effective_from_us=0,
        by="op",
        at_us=1,
    )
    assert breach_of(plain, PPM) is None
    found = breach_of(replace(plain, burn_share_ppm=900_001), PPM)
    assert found == Breach("provider_share_ppm", "parts and reward", 950_001)


def test_a_tariff_is_judged_with_the_policy_in_force_and_those_that_wait() -> None:
    dear = tariff(350_000, 600_000)
    past = (policy(1, 1, PPM), opened(1), policy(2, 2, 500_000), opened(2))
    FRESH.given(*past).after(tariff(600_000, 390_000))
    FRESH.given(*past[:2]).after(dear)
    refused(tariff(600_000, 390_000), FRESH.given(*past, policy(3, 9, PPM)))
    assert refused(dear, FRESH.given(*past, policy(3, 9, None)))["rule"] == "rewards have no cap"
    steep = refused(dear, FRESH.given(policy(1, 1, PPM + 1), opened(1)))
    assert (steep["field"], steep["rule"]) == ("cap_multiple_ppm", "more TOKEN than were burned")


def test_a_refund_of_what_was_rewarded_counts_with_the_reward_that_stays() -> None:
    """E-C2: 10 % back below 99 % under a split of 35 and 60; 35 and 49.5 lose 5 % of the rest."""
    facts = refused(tariff(350_000, 600_000, sla=(GOLD,)), FRESH)
    assert (facts["field"], facts["rule"]) == ("sla.0", "refund and reward")
    assert facts["back_ppm"] == 350_000 + -(-600_000 * 10 // 9)
    assert breach_of(tariff(350_000, 540_000, sla=(GOLD,)), PPM) is None
    assert breach_of(tariff(350_000, 540_001, sla=(GOLD,)), PPM) is not None
    whole = SlaClass("assured", (SlaTier(990_000, 100_000), SlaTier(900_000, PPM)))
    assert breach_of(tariff(500_000, 0, sla=(GOLD, whole)), PPM) is None
    found = breach_of(tariff(500_000, 1, sla=(GOLD, whole)), PPM)
    assert found == Breach("sla.1", "refund and reward", None)


def test_a_policy_without_terms_has_no_cap_and_one_without_weights_pays_nothing() -> None:
    assert multiple_of(None) is multiple_of(NO_TERMS) is None
    silent = replace(REWARD_TERMS, source_weights=(Rated("cash", 0),), cap_multiple_ppm=None)
    assert multiple_of(silent) == 0


def test_tariffs_in_force_and_to_come_are_those_a_policy_is_judged_with() -> None:
    first = replace(tariff(350_000, 540_000), effective_from_us=50)
    scene = FRESH.after(first)
    for version, start_us in ((2, 100), (3, 200)):
        scene = scene.after(replace(first, version=version, effective_from_us=start_us))
    assert [one.version for one in tariffs_from(scene, 49)] == [1, 2, 3], "none has begun"
    assert [one.version for one in tariffs_from(scene, 99)] == [1, 2, 3]
    assert [one.version for one in tariffs_from(scene, 100)] == [2, 3]
    assert [one.version for one in tariffs_from(scene, 10**9)] == [3]
    assert tariffs_from(FRESH, 5) == ()


ppm = st.integers(0, PPM)


@st.composite
def tariffs(draw: st.DrawFn) -> TariffPublished:
    """Any split, or none."""
    made = publish(CLOUDBENDER, version=1, effective_from_us=0, by="op", at_us=1)
    fact = TariffPublished(**{row.name: getattr(made, row.name) for row in fields(made)})
    if draw(st.booleans()):
        return replace(fact, provider_share_ppm=draw(ppm), burn_share_ppm=draw(ppm))
    order = draw(st.permutations(BUCKETS))
    shares, left = [], PPM
    for bucket in order[: draw(st.integers(0, 3))]:
        share = draw(st.integers(0, left))
        shares.append(SplitShare(bucket, share))
        left -= share
    return replace(fact, split=Split(tuple(shares), order[3]))


@given(tariffs(), st.booleans())
def test_the_parts_that_are_judged_are_those_that_a_charge_is_split_into(
    fact: TariffPublished, has_client: bool
) -> None:
    charged = peel(
        WHOLE,
        price=1,
        fee_rate=0,
        provider_share_ppm=fact.provider_share_ppm,
        burn_share_ppm=fact.burn_share_ppm,
        split=fact.split,
        has_client=has_client,
    )
    judged = profit_bound.parts_of(fact, has_client=has_client)
    assert judged == (charged.provider + (charged.client or 0), charged.burn)


@given(ppm, ppm, ppm, ppm)
def test_what_is_sound_loses_five_percent_of_what_is_spent_and_no_more_is_asked(
    paid: int, burned: int, multiple: int, refund: int
) -> None:
    assume(paid + burned <= PPM)
    parts = Parts(paid * PPM, burned * PPM)
    told = back_ppm(parts, multiple, refund)
    if told is None:
        assert is_sound(parts, multiple, refund) == (burned * multiple == 0)
    else:
        assert is_sound(parts, multiple, refund) == (told <= 950_000)
    if refund and is_sound(parts, multiple, refund) and refund < PPM:
        assert is_sound(parts, multiple, refund - 1)
