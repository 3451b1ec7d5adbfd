"""The split of a charge: peeled, so it sums to the unit and no part ever falls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gpu_time import GPU_HOUR_US
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import NOTHING, Earned, Parts, earned_after, member, peel, postings
from domain.prices.reasons import PricesReason
from domain.prices.tariff import PRESETS, Split, SplitShare
from domain.refusal import Reason, Refused

FEES = {"development": 50_000, "professional": 100_000, "datacenter": 250_000}
charges = st.integers(0, 10**18)
ppm = st.integers(0, PPM)


@st.composite
def rates(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """price, fee <= price, provider share, burn share"""
    price = draw(st.integers(1, 10**9))
    return price, draw(st.integers(0, price)), draw(ppm), draw(ppm)


@given(charges, rates())
def test_the_parts_add_up_to_exactly_the_charge(
    charge: int, rates: tuple[int, int, int, int]
) -> None:
    parts = peel(charge, *rates)
    assert parts.fee + parts.provider + parts.platform + parts.burn == charge == parts.total
    assert min(parts.fee, parts.provider, parts.platform, parts.burn) >= 0


@given(charges, st.integers(0, 10**4), rates())
def test_no_part_falls_when_the_charge_grows(
    charge: int, more: int, rates: tuple[int, int, int, int]
) -> None:
    new = peel(charge + more, *rates) - peel(charge, *rates)
    assert min(new.fee, new.provider, new.platform, new.burn) >= 0
    assert new.total == more


@given(st.lists(st.integers(0, 10**7), max_size=30), rates())
def test_any_batching_of_accruals_pays_the_same(
    news: list[int], rates: tuple[int, int, int, int]
) -> None:
    paid, charge, before = NOTHING, 0, NOTHING
    for new in news:
        charge += new
        now = peel(charge, *rates)
        step = now - before
        paid = Parts(
            fee=paid.fee + step.fee,
            provider=paid.provider + step.provider,
            platform=paid.platform + step.platform,
            burn=paid.burn + step.burn,
        )
        before = now
    assert paid == peel(sum(news), *rates)


def test_side_by_side_floors_would_fall_and_peeling_does_not() -> None:
    """0.5 a tick at a fee of 0.4: floored against time apart, the rest runs 0, 1, 0, 1."""
    rests = [tick * 5 // 10 - tick * 4 // 10 for tick in range(1, 9)]
    assert rests != sorted(rests)
    peeled = [peel(tick * 5 // 10, 5, 4, 0, 0).platform for tick in range(1, 9)]
    assert peeled == sorted(peeled)


def test_four_a100_for_two_and_a_half_hours() -> None:
    assert peel(27_800_000, 2_780_000, 250_000, 500_000, 0) == Parts(
        fee=2_500_000, provider=12_650_000, platform=12_650_000, burn=0
    )


def test_one_second_at_a_time_pays_the_provider_what_one_hour_pays() -> None:
    paid, before = 0, NOTHING
    for second in range(1, 3_601):
        now = peel(2_780_000 * second // 3_600, 2_780_000, 250_000, 500_000, 0)
        paid += (now - before).provider
        before = now
    assert paid == 1_265_000


def test_a_burning_tariff_burns_from_what_the_provider_leaves() -> None:
    """RNP-023: provider 35 %, platform 5 %, the rest burns: 12/13 of what the provider leaves."""
    parts = peel(1_000_000, 1_000_000, 0, 350_000, 923_077)
    assert parts == Parts(fee=0, provider=350_000, platform=50_000, burn=600_000)


def test_a_free_lease_has_nothing_to_split() -> None:
    assert peel(0, 0, 0, 500_000, 0) == NOTHING


def terms(**changed: object) -> dict[str, object]:
    return {
        "price_per_gpu_hour": 2_780_000,
        "usage_fees": FEES,
        "gpu_class": "datacenter",
        "gpus": 1,
        "workers": 1,
        "own": False,
        "federated": "none",
        "federated_unit": "worker",
        "provider_share_ppm": 500_000,
        **changed,
    }


@given(
    st.integers(0, 5 * GPU_HOUR_US),
    st.booleans(),
    st.sampled_from(["none", "inference", "training"]),
    st.integers(1, 16),
    st.integers(1, 8),
    ppm,
)
def test_postings_add_up_to_the_whole_and_none_is_negative(
    duration_us: int, own: bool, federated: str, gpus: int, workers: int, share: int
) -> None:
    lease = member(
        **terms(  # type: ignore[arg-type]
            own=own, federated=federated, gpus=gpus, workers=workers, provider_share_ppm=share
        )
    )
    made = postings(lease, duration_us)
    whole = earned_after(lease, duration_us)
    assert whole.customer_total + whole.federated_fee == whole.provider + whole.platform
    for name in ("customer_total", "usage_fee", "federated_fee", "provider", "platform"):
        news = [getattr(posting.new, name) for posting in made]
        assert sum(news) == getattr(whole, name)
        assert all(new >= 0 for new in news)
    assert len(made) == -(-duration_us // GPU_HOUR_US)


def test_the_federated_fee_counts_workers_or_jobs_but_never_gpus() -> None:
    hour = GPU_HOUR_US
    both = {"federated": "training", "gpus": 8, "workers": 4}
    per_worker = member(**terms(**both, federated_unit="worker"))  # type: ignore[arg-type]
    per_job = member(**terms(**both, federated_unit="job"))  # type: ignore[arg-type]
    assert earned_after(per_worker, hour).federated_fee == 4 * 2_650_000
    assert earned_after(per_job, hour).federated_fee == 2_650_000


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gpu_class": "tensor", "gpus": 0}, PricesReason.UNKNOWN_GPU_CLASS),
        ({"gpus": 0, "provider_share_ppm": -1}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"workers": 0}, PartiesReason.COUNT_OUT_OF_RANGE),
        (
            {"provider_share_ppm": PPM + 1, "price_per_gpu_hour": 1},
            PartiesReason.SHARE_OUT_OF_RANGE,
        ),
        ({"price_per_gpu_hour": 249_999}, PricesReason.PRICE_BELOW_USAGE_FEE),
    ],
)
def test_the_first_rule_that_is_broken_refuses(changed: dict[str, object], reason: Reason) -> None:
    with pytest.raises(Refused) as caught:
        member(**terms(**changed))  # type: ignore[arg-type]
    assert caught.value.reason is reason


def test_ones_own_hardware_costs_the_fee_whatever_its_price() -> None:
    lease = member(**terms(own=True, price_per_gpu_hour=1))  # type: ignore[arg-type]
    earned = earned_after(lease, GPU_HOUR_US)
    assert (earned.customer_total, earned.usage_fee, earned.provider) == (250_000, 250_000, 0)


BUCKETS = ("provider", "client", "platform", "burn")


@st.composite
def splits(draw: st.DrawFn) -> Split:
    buckets = draw(st.permutations(BUCKETS))
    shares, left = [], PPM
    for bucket in buckets[:-1]:
        share_ppm = draw(st.integers(0, left))
        shares.append(SplitShare(bucket, share_ppm))
        left -= share_ppm
    return Split(tuple(shares), buckets[-1])


@given(
    split=splits(),
    has_client=st.booleans(),
    price=st.integers(1, 10**8),
    fee_ppm=ppm,
    charges=st.lists(st.integers(0, 10**9), min_size=1, max_size=10),
)
def test_every_part_of_every_split_only_grows_and_they_sum_to_the_charge(
    split: Split, has_client: bool, price: int, fee_ppm: int, charges: list[int]
) -> None:
    before = NOTHING
    for charge in sorted(charges):
        parts = peel(charge, price, price * fee_ppm // PPM, 0, 0, split, has_client=has_client)
        assert parts.total == charge
        assert (parts.client is None) != has_client
        new = parts - before
        assert min(new.fee, new.provider, new.platform, new.burn, new.client or 0) >= 0
        before = parts


@pytest.mark.parametrize(
    ("preset", "provider", "platform", "burn"),
    [
        ("cloudbender", 500_000, 500_000, 0),
        ("rnp_006", 0, 50_000, 950_000),
        ("rnp_023_sce", 350_000, 50_000, 600_000),
        ("rnp_023_sgs", 600_000, 50_000, 350_000),
    ],
)
def test_published_regimes_share_a_charge_as_they_say(
    preset: str, provider: int, platform: int, burn: int
) -> None:
    terms = PRESETS[preset]
    parts = peel(PPM, PPM, 0, terms.provider_share_ppm, terms.burn_share_ppm, terms.split)
    assert (parts.provider, parts.platform, parts.burn) == (provider, platform, burn)


def test_after_the_last_share_nothing_is_left_to_share() -> None:
    """The shares come to the whole, and one more of nothing gets nothing."""
    whole = Split((SplitShare("provider", PPM), SplitShare("platform", 0)), "burn")
    assert peel(110, 110, 10, 0, 0, whole) == Parts(fee=10, provider=100, platform=0, burn=0)


def test_what_is_new_of_a_clients_part_is_the_difference_and_all_of_it_where_there_was_none() -> (
    None
):
    some = Parts(fee=9, provider=8, platform=7, burn=6, client=5)
    before = Parts(fee=1, provider=2, platform=3, burn=4, client=2)
    assert some - before == Parts(fee=8, provider=6, platform=4, burn=2, client=3)
    assert some - NOTHING == some
    none = replace(before, client=None)
    assert (some - none).client == 5
    assert (replace(some, client=None) - before).client is None
    assert (before.total, none.total, NOTHING.total) == (12, 10, 0)


def test_federated_work_costs_1_85_or_2_65_credits_an_hour_and_other_work_nothing() -> None:
    """Design economics 3, C-21."""
    for federated, per_hour in (("none", 0), ("inference", 1_850_000), ("training", 2_650_000)):
        lease = member(**terms(federated=federated))  # type: ignore[arg-type]
        assert earned_after(lease, GPU_HOUR_US).federated_fee == per_hour


def test_a_member_is_within_its_bounds_and_keeps_its_terms() -> None:
    for changed in (
        {"gpus": 1},
        {"workers": 1},
        {"provider_share_ppm": 0},
        {"provider_share_ppm": PPM},
        {"price_per_gpu_hour": 250_000},
    ):
        assert member(**terms(**changed))  # type: ignore[arg-type]
    for changed in ({"provider_share_ppm": -1}, {"gpus": 0}, {"workers": 0}):
        with pytest.raises(Refused):
            member(**terms(**changed))  # type: ignore[arg-type]


def test_what_is_due_of_each_hour_is_that_hours_own() -> None:
    """Two and a half hours of two GPUs for training, a share of one half."""
    lease = member(**terms(gpus=2, federated="training"))  # type: ignore[arg-type]
    hour = Earned(
        customer_total=5_560_000,
        usage_fee=500_000,
        federated_fee=2_650_000,
        provider=2_530_000,
        platform=5_680_000,
    )
    half = Earned(
        customer_total=2_780_000,
        usage_fee=250_000,
        federated_fee=1_325_000,
        provider=1_265_000,
        platform=2_840_000,
    )
    made = postings(lease, 5 * GPU_HOUR_US // 2)
    assert [posting.new for posting in made] == [hour, hour, half]
    assert [posting.elapsed_us for posting in made] == [
        GPU_HOUR_US,
        2 * GPU_HOUR_US,
        5 * GPU_HOUR_US // 2,
    ]
    assert postings(lease, 0) == []
    assert [one.elapsed_us for one in postings(lease, 1)] == [1]
