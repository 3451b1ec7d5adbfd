"""A lease holds its devices in the mode asked for and offered, and pays for what it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.duration import HOUR_US
from domain.fleet.device import DeviceRegistered, DeviceReserved, MigPart
from domain.hardware.constraints import Constraints
from domain.hardware.mig import asked_ppm
from domain.hardware.reasons import HardwareReason
from domain.hardware.sharing import SHARING_MODES
from domain.lease.lease import LeaseReserved, MigInstances
from domain.market.offer import OfferTerms, modes_of
from domain.market.reasons import MarketReason
from domain.money import PPM, credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes.market import DEVICES, OFFER, OWNER, job, request, reserve, scene
from tests.given import Scene

PRICE = 2_780_000


def sharing(
    mode: str, profile: str | None = None, share_ppm: int = PPM, gpus: int = 1, **changes: Any
) -> Scene:
    """The market with a lease that asks for this mode."""
    shares = (share_ppm, share_ppm) if profile is None else asked_ppm(profile)
    asked = job(
        gpus,
        shares[0],
        mem_ppm=shares[1],
        constraints=Constraints(mode=mode, mig_profile=profile),
        **changes,
    )
    return scene().after(asked).after(request(HOUR_US))


def reserved(where: Scene, gpus: int = 1) -> tuple[LeaseReserved, list[DeviceReserved]]:
    facts = [change.fact for change in where.when(reserve(gpus)).changes()]
    (lease,) = (fact for fact in facts if isinstance(fact, LeaseReserved))
    return lease, [fact for fact in facts if isinstance(fact, DeviceReserved)]


def with_terms(where: Scene, *modes: str, fractions: bool = True) -> Scene:
    """The offer says in which modes it is rented."""
    terms = OfferTerms(modes=modes or None)
    return replace(
        where,
        past=tuple(
            (stream, replace(fact, terms=terms, fractions=fractions))
            if stream == Stream("offer", OFFER)
            else (stream, fact)
            for stream, fact in where.past
        ),
    )


def test_a_lease_of_two_devices_has_an_instance_on_each_where_the_device_puts_it() -> None:
    cap = credit(9_000_000)
    here = sharing("mig", "3g.40gb", gpus=2, max_price_per_gpu_hour=cap).given(
        (
            Stream("device", DEVICES[1]),
            DeviceReserved(
                device_id=DEVICES[1],
                lease_id="lease_other",
                share_ppm=428_571,
                mem_ppm=500_000,
                at_us=0,
                mode="mig",
                mig=MigPart("3g.40gb", 4),
            ),
        )
    )
    lease, held = reserved(here, gpus=2)
    assert (lease.mode, lease.mig) == ("mig", MigInstances("3g.40gb", (4, 0)))
    assert (lease.share_ppm, lease.mem_ppm) == (428_571, 500_000)
    told = [(one.device_id, one.mig) for one in held]
    assert told == [(DEVICES[0], MigPart("3g.40gb", 4)), (DEVICES[1], MigPart("3g.40gb", 0))]


@pytest.mark.parametrize(
    ("mode", "share_ppm"),
    [("whole", PPM), ("mps", 370_000), ("time_slice", 250_000), ("memory", 370_000)],
)
def test_every_other_mode_costs_its_share_of_the_offer(mode: str, share_ppm: int) -> None:
    lease, (held,) = reserved(sharing(mode, share_ppm=share_ppm))
    assert (lease.mode, held.mode) == (mode, mode)
    assert lease.price_per_gpu_hour == credit(PRICE)
    assert lease.mig is None
    assert sum(part.amount.units for part in lease.escrow) == PRICE * share_ppm // PPM


@pytest.mark.parametrize(
    ("profile", "hour"),
    [
        ("1g.10gb", PRICE * 142_857 // PPM),  # compute is the larger part
        ("1g.20gb", PRICE // 4),  # a quarter of the memory
        ("3g.40gb", PRICE // 2),
        ("4g.40gb", PRICE * 571_428 // PPM),
        ("7g.80gb", PRICE),
    ],
)
def test_an_hour_of_an_instance_costs_its_larger_dimension_of_the_offer(
    profile: str, hour: int
) -> None:
    lease, _ = reserved(sharing("mig", profile, max_price_per_gpu_hour=credit(9_000_000)))
    held = sum(part.amount.units for part in lease.escrow)
    # The price is rounded up, the charge down: an hour costs its weight, and less than one more.
    assert hour <= held <= hour + 1


def test_one_of_ones_own_costs_the_usage_fee_in_every_mode() -> None:
    here = scene().having({f"party:{OWNER}:cash": 10_000_000})
    mine = job(
        1,
        428_571,
        mem_ppm=500_000,
        account_id=OWNER,
        constraints=Constraints(mode="mig", mig_profile="3g.40gb"),
    )
    lease, _ = reserved(here.after(mine).after(replace(request(HOUR_US), account_id=OWNER)))
    assert lease.own
    assert lease.price_per_gpu_hour == lease.fee_per_gpu_hour == credit(250_000)


def test_the_cap_is_compared_with_the_price_of_the_instance() -> None:
    here = sharing("mig", "3g.40gb", max_price_per_gpu_hour=credit(3_000_000))
    here.when(reserve()).then_refused(PricesReason.PRICE_ABOVE_CAP)


@pytest.mark.parametrize("mode", SHARING_MODES)
def test_an_offer_is_held_in_the_modes_that_it_has(mode: str) -> None:
    profile, share = ("3g.40gb", 428_571) if mode == "mig" else (None, 250_000)
    cap = credit(9_000_000)
    here = sharing(mode, profile, PPM if mode == "whole" else share, max_price_per_gpu_hour=cap)
    assert reserved(here)[0].mode == mode
    assert reserved(with_terms(here, mode))[0].mode == mode
    for other in set(SHARING_MODES) - {mode}:
        with_terms(here, other).when(reserve()).then_refused(MarketReason.OFFER_MISMATCH)
    whole_only = with_terms(here, fractions=False)
    if mode == "whole":
        assert reserved(whole_only)[0].mode == mode
    else:
        whole_only.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH)


def test_an_offer_without_a_word_on_modes_has_all_or_the_whole_alone() -> None:
    _, offer = next((s, f) for s, f in scene().past if s == Stream("offer", OFFER))
    assert modes_of(offer) == SHARING_MODES
    assert modes_of(replace(offer, fractions=False)) == ("whole",)
    assert modes_of(replace(offer, terms=OfferTerms(modes=("mps",)))) == ("mps",)


def test_a_device_that_cannot_do_it_is_refused_whatever_the_matcher_thought() -> None:
    here = sharing("mig", "3g.40gb")
    volta = replace(
        here,
        past=tuple(
            (stream, replace(fact, model="V100") if isinstance(fact, DeviceRegistered) else fact)
            for stream, fact in here.past
        ),
    )
    volta.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH)


def test_instances_of_one_lease_are_of_one_size() -> None:
    """`1g.10gb` is a quarter of an A100-40GB's memory and an eighth of an A100-80GB's."""
    here = sharing("mig", "1g.10gb", gpus=2)
    mixed = replace(
        here,
        past=tuple(
            (stream, replace(fact, memory_mib=40_960))
            if isinstance(fact, DeviceRegistered) and fact.device_id == DEVICES[1]
            else (stream, fact)
            for stream, fact in here.past
        ),
    )
    mixed.when(reserve(2)).then_refused(MarketReason.OFFER_MISMATCH)


@pytest.mark.parametrize(
    ("constraints", "shares", "reason"),
    [
        (Constraints(mode="mig"), (142_857, 125_000), HardwareReason.UNKNOWN_PROFILE),
        (Constraints(mode="mig", mig_profile="9g.1gb"), (1, 1), HardwareReason.UNKNOWN_PROFILE),
        (
            Constraints(mode="mig", mig_profile="3g.40gb"),
            (PPM, PPM),
            PartiesReason.SHARE_OUT_OF_RANGE,
        ),
        (Constraints(mode="mps"), (375_000, 1), PartiesReason.SHARE_OUT_OF_RANGE),
        (Constraints(mode="time_slice"), (370_000, 1), PartiesReason.SHARE_OUT_OF_RANGE),
        (Constraints(mode="whole"), (500_000, PPM), PartiesReason.SHARE_OUT_OF_RANGE),
        (None, (0, 1), PartiesReason.SHARE_OUT_OF_RANGE),
        (None, (1, PPM + 1), PartiesReason.SHARE_OUT_OF_RANGE),
    ],
)
def test_a_job_that_no_device_could_be_shared_for_is_refused_at_once(
    constraints: Constraints | None, shares: tuple[int, int], reason: Reason
) -> None:
    asked = job(1, shares[0], mem_ppm=shares[1], constraints=constraints)
    scene().when(asked).then_refused(reason)


def test_a_job_whose_models_have_no_mig_is_refused_and_one_that_may_have_another_is_not() -> None:
    mig = Constraints(mode="mig", mig_profile="3g.40gb")
    asked = job(1, 428_571, mem_ppm=500_000, constraints=mig, models=("Tesla V100-SXM2-16GB",))
    scene().when(asked).then_refused(HardwareReason.MODE_NOT_SUPPORTED)
    scene().after(replace(asked, models=("Tesla V100-SXM2-16GB", "NVIDIA H100 80GB HBM3")))
