"""Kinds of providers: an open registry, in which physical machines are the cheapest (row C-2)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.money import credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.provider_kinds import (
    GCP,
    KINDS_MAX,
    NETWORK,
    PHYSICAL,
    SEED,
    ProviderKindRegistered,
    RegisterProviderKind,
    cost_of_kind,
    is_cloud,
    provider_kind_in_force,
    provider_kinds_of,
)
from domain.prices.reasons import PricesReason
from domain.prices.tariff import NETWORK as TARIFFS
from domain.refusal import Refused
from tests.domain.scenes.supply import NOON_US, tariff
from tests.given import Scene

ACME = RegisterProviderKind(
    kind="acme",
    is_cloud=True,
    cost_per_gpu_hour=credit(400_000),
    effective_from_us=NOON_US,
    by="mem_ops",
    at_us=NOON_US,
)


def test_two_kinds_are_known_from_the_start_and_more_are_registered() -> None:
    assert [(row.kind, row.is_cloud) for row in SEED] == [(PHYSICAL, False), (GCP, True)]
    fact = ProviderKindRegistered(
        kind="acme",
        is_cloud=True,
        cost_per_gpu_hour=credit(400_000),
        effective_from_us=NOON_US,
        by="mem_ops",
        at_us=NOON_US,
    )
    Scene().when(ACME).then((NETWORK, fact))
    scene = Scene().after(ACME)
    scene.when(replace(ACME, by="mem_2", at_us=NOON_US + 9)).then_nothing()
    assert provider_kind_in_force(scene, "acme", NOON_US - 1) is None
    assert provider_kind_in_force(scene, "acme", NOON_US) == fact
    assert is_cloud(scene, "acme", NOON_US)
    assert not is_cloud(scene, PHYSICAL, NOON_US)


def test_a_row_waits_for_the_notice_and_never_turns_machines_into_a_cloud() -> None:
    told = Scene().given((TARIFFS, replace(tariff, notice_us=5)))
    told.when(ACME).then_refused(PricesReason.TARIFF_NOTICE, earliest_us=NOON_US + 5)
    told.after(replace(ACME, effective_from_us=NOON_US + 5))
    Scene().when(replace(ACME, kind=GCP, is_cloud=False)).then_refused(PartiesReason.UNKNOWN_MODE)
    Scene().when(replace(ACME, kind="A b")).then_refused(PartiesReason.UNKNOWN_MODE)
    Scene().when(replace(ACME, cost_per_gpu_hour=token(1))).then_refused(
        PricesReason.AMOUNT_OUT_OF_RANGE
    )
    row = (NETWORK, SEED[1])
    full = Scene().given(*[row] * (KINDS_MAX - len(SEED)))
    full.when(ACME).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_a_kind_that_would_be_cheaper_than_physical_is_refused() -> None:
    Scene().when(replace(ACME, cost_per_gpu_hour=credit(0))).then_refused(
        PricesReason.PROVIDER_KIND_COST, above=0
    )
    dear = replace(ACME, kind=PHYSICAL, is_cloud=False, cost_per_gpu_hour=credit(350_000))
    Scene().when(dear).then_refused(PricesReason.PROVIDER_KIND_COST, below=350_000)
    Scene().after(replace(dear, cost_per_gpu_hour=credit(349_999)))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([PHYSICAL, GCP, "acme"]), st.integers(0, 1_000_000), st.integers(0, 5)
        ),
        max_size=8,
    )
)
def test_whatever_is_registered_physical_has_the_lowest_cost_at_every_moment(
    rows: list[tuple[str, int, int]],
) -> None:
    """C-2: physical has the lowest GPU-hour cost."""
    scene = Scene()
    for kind, units, later_us in rows:
        command = replace(
            ACME,
            kind=kind,
            is_cloud=kind != PHYSICAL,
            cost_per_gpu_hour=credit(units),
            effective_from_us=NOON_US + later_us,
        )
        try:
            scene = scene.after(command)
        except Refused:
            continue
    for at_us in range(NOON_US, NOON_US + 7):
        cheapest = cost_of_kind(scene, PHYSICAL, at_us).units
        others = {row.kind for row in provider_kinds_of(scene)} - {PHYSICAL}
        known = [kind for kind in others if provider_kind_in_force(scene, kind, at_us)]
        assert all(cheapest < cost_of_kind(scene, kind, at_us).units for kind in known)
