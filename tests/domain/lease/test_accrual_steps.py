"""Every amount of an accrual is shown with its formula, whatever the tariff shares it among."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.revenue_share import OwnerShare
from domain.lease.accrual_steps import Step, steps
from domain.lease.lease import (
    Lease,
    LeaseOpened,
    LeaseRequested,
    LeaseReserved,
    UsageAccrued,
    evolve,
)
from domain.money import credit
from domain.prices.charge_split import NOTHING
from domain.prices.tariff import Split, SplitShare
from tests.domain.leasing.test_money import (
    ALICE,
    BOB,
    CLIENT,
    account,
    brought,
    federated,
    hour,
    owned,
    tariff,
    top_up,
)
from tests.domain.scenes.market import (
    DEVICES,
    close,
    job,
    lease_stream,
    opened,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.given import Scene


def explained(where: Scene) -> Iterator[tuple[UsageAccrued, dict[str, Step]]]:
    """Every accrual of the scene's lease with its steps by name."""
    lease = Lease()
    for stream, fact in where.past:
        if stream != lease_stream:
            continue
        if isinstance(fact, UsageAccrued):
            yield fact, {step.name: step for step in steps(lease, fact)}
        lease = evolve(lease, fact)


def ended(where: Scene) -> Scene:
    return where.after(close(HOUR_US)).after(settle(HOUR_US, (usage(0, HOUR_US),)))


def test_an_hour_at_two_seventy_eight_is_explained_to_the_unit() -> None:
    """C-23: 2.78, the fee of 0.25 off it, then half."""
    ((_, shown),) = explained(ended(opened()))
    assert {name: step.new for name, step in shown.items()} == {
        "ppm_us": HOUR_US * 10**6,
        "gpu_us": HOUR_US,
        "charge": 2_780_000,
        "fee": 250_000,
        "provider": 1_265_000,
        "burn": 0,
        "platform": 1_265_000,
    }
    assert shown["platform"].formula == "charge - fee - provider - burn"
    assert shown["fee"].given == {"fee_per_gpu_hour": 250_000, "price_per_gpu_hour": 2_780_000}


def test_the_share_of_a_client_is_a_step_of_its_own() -> None:
    ((_, shown),) = explained(brought())
    assert shown["client"].new == 253_000
    ((_, without),) = explained(brought("direct"))
    assert "client" not in without


def test_every_owner_of_a_node_finds_their_part() -> None:
    """K-1."""
    where = owned(OwnerShare(ALICE, 333_333), OwnerShare(BOB, 333_333))
    where = where.after(job()).after(request()).after(reserve()).after(ready)
    ((_, shown),) = explained(ended(where))
    assert shown[f"provider of {ALICE}"].new == 421_666
    owners = [step.new for name, step in shown.items() if name.startswith("provider of")]
    assert sum(owners) == shown["provider"].new == 1_265_000


def test_the_federated_fee_stands_beside_the_charge() -> None:
    """C-21: two hours of training on two devices."""
    where = federated().after(top_up(10_000_000, 0, "acct_owner"))
    where = where.after(hour(1, 2)).after(hour(2, 2))
    first, second = explained(where)
    assert first[1]["federated_fee"].new == 2_650_000
    assert (second[1]["federated_fee"].before, second[1]["federated_fee"].after) == (
        2_650_000,
        5_300_000,
    )


shares = st.permutations(["provider", "client", "burn", "platform"]).flatmap(
    lambda names: st.tuples(
        st.just(names), st.lists(st.integers(0, 333_333), min_size=3, max_size=3)
    )
)


@example((["provider", "burn", "platform", "client"], [1, 2, 3]), "direct", HOUR_US)
@example((["provider", "burn", "platform", "client"], [1, 2, 3]), "direct", 3 * HOUR_US // 2)
@example((["platform", "client", "burn", "provider"], [1, 2, 3]), CLIENT, 3 * HOUR_US // 2)
@example((["provider", "client", "burn", "platform"], [10**6, 0, 0]), CLIENT, 3 * HOUR_US // 2)
@given(shares, st.sampled_from([CLIENT, "direct"]), st.integers(1, 2 * HOUR_US - 1))
def test_the_steps_are_the_parts_for_every_split(
    drawn: tuple[list[str], list[int]], client_id: str, us: int
) -> None:
    """`steps` asserts that each of its values is the fact's."""
    names, ppm = drawn
    split = Split(
        shares=tuple(SplitShare(*one) for one in zip(names[:3], ppm, strict=True)),
        residual=names[3],
    )
    where = scene().given(account(CLIENT, "client"), tariff(split=split))
    where = where.after(job(client_id=client_id)).after(request(funds=9_000_000))
    where, done_us = where.after(reserve()).after(ready), 0
    if us > HOUR_US:
        done_us, first = HOUR_US, hour(1)
        where = where.after(first)
    where = where.after(close(us)).after(settle(us, (usage(done_us, us, position=2),)))
    parts = ("fee", "provider", "client", "burn", "platform")
    for fact, shown in explained(where):
        assert sum(shown[name].new for name in parts if name in shown) == fact.charge_new.units


def test_the_federated_fee_of_a_part_of_a_microsecond_is_floored() -> None:
    """One of two devices stops a microsecond early: half of one is nothing."""
    where = federated().after(top_up(10_000_000, 0, "acct_owner"))
    rows = (usage(0, HOUR_US, DEVICES[0]), usage(0, HOUR_US - 1, DEVICES[1]))
    ((fact, shown),) = explained(where.after(replace(hour(1, 2), rows=rows)))
    assert fact.ppm_us == (2 * HOUR_US - 1) * 10**6
    assert shown["federated_fee"].new == 2_649_999


def test_a_free_hour_is_explained_too() -> None:
    ((fact, _),) = explained(ended(opened()))
    lease, free = Lease(), credit(0)
    for stream, past in ended(opened()).past:
        if stream == lease_stream and isinstance(past, LeaseRequested):
            lease = evolve(lease, past)
        if isinstance(past, LeaseReserved):
            lease = evolve(lease, replace(past, price_per_gpu_hour=free, fee_per_gpu_hour=free))
        if isinstance(past, LeaseOpened):
            lease = evolve(lease, replace(past, price_per_gpu_hour=free))
    nothing = replace(fact, charge=credit(0), charge_new=credit(0), parts=NOTHING, drawn=())
    shown = {step.name: step.new for step in steps(lease, replace(nothing, parts_new=NOTHING))}
    assert shown.pop("ppm_us") == HOUR_US * 10**6
    assert shown.pop("gpu_us") == HOUR_US
    assert set(shown.values()) == {0}


def test_a_fact_that_does_not_follow_is_not_explained() -> None:
    ((fact, _),) = explained(ended(opened()))
    where = ended(opened())
    lease = Lease()
    for stream, past in where.past:
        if stream == lease_stream and not isinstance(past, UsageAccrued):
            lease = evolve(lease, past)
            if lease.status == "closing":
                break
    forged = replace(fact, charge=credit(fact.charge.units + 1))
    with pytest.raises(AssertionError):
        steps(lease, forged)


def test_a_part_of_a_gpu_microsecond_is_floored_on_the_whole_sum() -> None:
    """A third of a device: 333,333 millionths of an hour, and of an hour less a microsecond."""
    where = opened(share_ppm=333_333)
    where = where.after(close(HOUR_US - 1)).after(settle(HOUR_US - 1, (usage(0, HOUR_US - 1),)))
    ((fact, shown),) = explained(where)
    assert shown["ppm_us"].after == (HOUR_US - 1) * 333_333
    assert shown["gpu_us"].after == fact.gpu_us == 1_199_998_799
    assert shown["charge"].given == {"price_per_gpu_hour": 2_780_000}


def test_what_is_left_is_told_by_what_others_have_of_it() -> None:
    """The platform has a share and, as no client is there, the rest: its own is not taken off."""
    shares = (("provider", 500_000), ("platform", 100_000), ("burn", 100_000))
    split = Split(shares=tuple(SplitShare(*one) for one in shares), residual="client")
    where = scene().given(account(CLIENT, "client"), tariff(split=split))
    where = where.after(job(client_id="direct")).after(request()).after(reserve()).after(ready)
    ((_, shown),) = explained(ended(where))
    assert shown["platform"].formula == "charge - fee - provider - burn"
    assert {name: step.new for name, step in shown.items() if name not in ("ppm_us", "gpu_us")} == {
        "charge": 2_780_000,
        "fee": 250_000,
        "provider": 1_265_000,
        "platform by its share": 253_000,
        "burn": 253_000,
        "platform": 1_012_000,
    }
