"""Quotas: never above, whatever is asked in whatever order; groups above groups; clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.lease.lease import LeaseReserved
from domain.leasing.reservation import decide_reserve
from domain.parties.reasons import PartiesReason
from domain.pools.group import (
    AddGroupMember,
    CreateGroup,
    Holder,
    RemoveGroupMember,
    SetProjectOverflow,
    must_overflow,
    quotas_of,
    with_parents,
)
from domain.pools.quota import SetQuota, client_quota, hold, quota_of, release, stream_of
from domain.refusal import Refused
from domain.stream import Change
from tests.domain.scenes.market import NOON_US, RENTER, job, request, reserve, scene
from tests.examples import examples
from tests.given import Scene

BY: dict[str, Any] = {"by": "mem", "at_us": NOON_US}
OUTER, INNER = "group_outer", "group_inner"


def grouped(outer: int | None = 3_000_000, inner: int | None = 2_000_000) -> Scene:
    """Project p in a group of two GPUs, which is part of one of three."""
    return (
        scene()
        .after(
            CreateGroup(
                group_id=OUTER,
                account_id=RENTER,
                pool_id=None,
                parent_id=None,
                gpu_ppm_max=outer,
                **BY,
            )
        )
        .after(
            CreateGroup(
                group_id=INNER,
                account_id=RENTER,
                pool_id=None,
                parent_id=OUTER,
                gpu_ppm_max=inner,
                **BY,
            )
        )
        .after(AddGroupMember(group_id=INNER, account_id=RENTER, kind="project", target="p", **BY))
    )


def told(where: Scene, changes: list[Change]) -> Scene:
    return where.given(*((one.stream, one.fact) for one in changes))


HOLDER = Holder(account_id=RENTER, client_id="direct", project_id="p")


def test_a_lease_counts_in_its_group_and_in_all_above_it() -> None:
    where = grouped()
    assert with_parents(where, INNER) == (INNER, OUTER)
    assert quotas_of(where, HOLDER)[:2] == (INNER, OUTER)
    asked = where.after(job(2)).after(request())
    changes = decide_reserve(reserve(2), asked)
    reserved = next(one.fact for one in changes if isinstance(one.fact, LeaseReserved))
    assert reserved.quotas == (INNER, OUTER)
    after = told(asked, changes)
    assert [quota_of(after, one).used_ppm for one in (INNER, OUTER)] == [2_000_000, 2_000_000]


def test_a_lease_that_would_pass_a_quota_of_any_group_above_is_refused() -> None:
    asked = grouped(outer=1_000_000, inner=4_000_000).after(job(2)).after(request())
    with pytest.raises(Refused) as caught:
        decide_reserve(reserve(2), asked)
    assert caught.value.reason is PartiesReason.QUOTA_EXHAUSTED
    assert caught.value.facts["quota_id"] == OUTER


def test_who_is_in_another_group_already_is_not_taken_into_a_second_one() -> None:
    where = grouped()
    add = AddGroupMember(group_id=OUTER, account_id=RENTER, kind="project", target="p", **BY)
    where.when(add).then_refused(PartiesReason.GROUP_EXISTS)
    left = where.after(
        RemoveGroupMember(group_id=INNER, account_id=RENTER, kind="project", target="p", **BY)
    )
    assert quotas_of(left.after(add), HOLDER)[:1] == (OUTER,)


def test_groups_are_no_deeper_than_allowed() -> None:
    where, parent = scene(), None
    for depth in range(9):
        command = CreateGroup(
            group_id=f"group_{depth}",
            account_id=RENTER,
            pool_id=None,
            parent_id=parent,
            gpu_ppm_max=None,
            **BY,
        )
        if depth == 8:
            where.when(command).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
            return
        where, parent = where.after(command), f"group_{depth}"


def test_above_the_quota_a_project_is_refused_or_rents_elsewhere_as_it_says() -> None:
    """C-39."""
    where = grouped(inner=1_000_000)
    assert not must_overflow(where, HOLDER, 1_000_000)
    with pytest.raises(Refused) as caught:
        must_overflow(where, HOLDER, 2_000_000)
    assert caught.value.reason is PartiesReason.QUOTA_EXHAUSTED
    rents = where.after(
        SetProjectOverflow(account_id=RENTER, project_id="p", overflow="rent", **BY)
    )
    assert must_overflow(rents, HOLDER, 2_000_000)
    rented = rents.after(job(2)).after(replace(request(), overflow=True))
    changes = decide_reserve(reserve(2), rented)
    reserved = next(one.fact for one in changes if isinstance(one.fact, LeaseReserved))
    assert reserved.quotas == (), "it is not counted"
    refused = where.after(job(2)).after(replace(request(), overflow=True))
    refused.when(reserve(2)).then_refused(
        PartiesReason.QUOTA_EXHAUSTED, rule="the project's overflow policy refuses"
    )


def test_a_client_has_a_quota_of_its_own_everywhere_and_in_a_pool() -> None:
    holder = Holder(account_id=RENTER, client_id="acct_c", project_id="", pool_id="pool_1")
    found = quotas_of(scene(), holder)
    assert found == (client_quota("acct_c"), client_quota("acct_c", "pool_1"))
    where = scene().after(SetQuota(quota_id=client_quota("acct_c"), gpu_ppm_max=500_000, **BY))
    with pytest.raises(Refused) as caught:
        hold(where, found, "lease_1", 500_001, NOON_US)
    assert caught.value.reason is PartiesReason.QUOTA_EXHAUSTED
    counted = hold(where, found, "lease_1", 500_000, NOON_US)
    assert [one.fact.quota_id for one in counted] == [client_quota("acct_c")], "what was set"


def test_setting_a_quota_below_what_is_held_closes_nothing_and_refuses_the_next() -> None:
    where = scene().after(SetQuota(quota_id="q", gpu_ppm_max=3, **BY))
    where = told(where, hold(where, ["q"], "lease_1", 3, NOON_US))
    where = where.after(SetQuota(quota_id="q", gpu_ppm_max=1, **BY))
    assert quota_of(where, "q").used_ppm == 3
    with pytest.raises(Refused):
        hold(where, ["q"], "lease_2", 1, NOON_US)
    where = told(where, release(where, ["q"], "lease_1", NOON_US))
    assert quota_of(where, "q").used_ppm == 0
    assert release(where, ["q"], "lease_1", NOON_US) == [], "given back once"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "release", "limit"]), st.integers(0, 4), st.integers(1, 1_500_000)
    ),
    max_size=25,
)


@examples(150)
@given(STEPS)
def test_what_is_held_is_the_sum_of_the_holds_and_never_above_the_quota_it_met(
    steps: list[tuple[str, int, int]],
) -> None:
    where = scene().after(SetQuota(quota_id="q", gpu_ppm_max=2_000_000, **BY))
    held: dict[str, int] = {}
    limit = 2_000_000
    for what, number, ppm in steps:
        lease_id = f"lease_{number}"
        if what == "limit":
            limit = ppm
            where = where.after(SetQuota(quota_id="q", gpu_ppm_max=ppm, **BY))
        elif what == "release":
            where = told(where, release(where, ["q"], lease_id, NOON_US))
            held.pop(lease_id, None)
        elif lease_id not in held:
            if sum(held.values()) + ppm <= limit:
                where = told(where, hold(where, ["q", "q"], lease_id, ppm, NOON_US))
                held[lease_id] = ppm
            else:
                with pytest.raises(Refused, match="quota_exhausted"):
                    hold(where, ["q"], lease_id, ppm, NOON_US)
        quota = quota_of(where, "q")
        assert quota.used_ppm == sum(held.values()) == sum(quota.holds.values())


@examples(60)
@given(st.lists(st.integers(1, 1_200_000), min_size=2, max_size=8), st.randoms())
def test_decisions_that_saw_the_same_quota_cannot_both_be_recorded(
    asked: list[int], random: Any
) -> None:
    """As the log does it: an append whose stream has grown since is decided again."""
    where = scene().after(SetQuota(quota_id="q", gpu_ppm_max=1_500_000, **BY))
    waiting = [(f"lease_{n}", ppm) for n, ppm in enumerate(asked)]
    decided: list[tuple[str, int, int, list[Change]]] = []
    version, used = 0, 0
    while waiting or decided:
        if waiting and (not decided or random.random() < 0.6):
            lease_id, ppm = waiting.pop(0)
            try:
                changes = hold(where, ["q"], lease_id, ppm, NOON_US)
                decided.append((lease_id, ppm, version, changes))
            except Refused:
                assert used + ppm > 1_500_000
            continue
        lease_id, ppm, seen, changes = decided.pop(random.randrange(len(decided)))
        if seen != version:
            waiting.append((lease_id, ppm))  # the stream moved: decide again
            continue
        where, version, used = told(where, changes), version + 1, used + ppm
        assert quota_of(where, "q").used_ppm == used <= 1_500_000
    assert rules.initial("quota").used_ppm == 0
    assert stream_of("q").kind == "quota"
