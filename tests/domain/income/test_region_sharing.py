"""A region's days: gathered as they mature, shared out once, under terms known beforehand."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.account_closing import CloseAccount
from domain.brought import NO_CLIENT, ClientPart
from domain.duration import DAY_US, HOUR_US
from domain.fleet.node import NodeJoinRequested, NodeRetired, NodeRoleSet
from domain.fleet.provider import ProviderRegistered, RegionOpened
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import OwnerShare, RevenueSharesSet
from domain.income.maturity import (
    NETWORK,
    EarningsBrought,
    EarningsMatured,
    EarningsReduced,
    MatureEarnings,
)
from domain.income.maturity import MaturityWindowSet as Window
from domain.income.maturity import stream_of as earnings_stream
from domain.income.reasons import IncomeReason
from domain.income.region_pool import (
    NodeEarned,
    RegionalEarning,
    RegionDayShared,
    RegionEarningsGathered,
    RegionSharesPaid,
    SharePart,
    stream_of,
)
from domain.income.region_sharing import (
    CHUNK_NODES,
    NODES_MAX,
    NOTICE_DAYS,
    NodeTime,
    SetRegionTerms,
    ShareRegionDay,
    infra_due,
)
from domain.income.region_terms import InfraCost, RegionTermsSet
from domain.income.region_terms import stream_of as terms_stream
from domain.money import PPM, Amount, Asset, credit
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.regions.reachability import IngressBytesReported, reach_stream
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from tests.examples import examples
from tests.given import Scene

REGION, PROVIDER, OPERATOR, ANNA = "region_a", "prov_a", "acct_operator", "acct_anna"
NODES = ("node_a", "node_b", "node_c")
DAY = 20_780
"""The first day of the terms below."""
DAY_GPU_US = DAY_US
CREDITS = 1_000_000


def costs(control: int = 3 * CREDITS, ingress: int = 3 * CREDITS, **changes: int) -> InfraCost:
    told = {"base": 0, "most": 100 * CREDITS, "arrears_max": 10 * CREDITS, **changes}
    return InfraCost(
        base=credit(told["base"]),
        control=credit(control),
        ingress=credit(ingress),
        most=credit(told["most"]),
        arrears_max=credit(told["arrears_max"]),
        per_gib=credit(told.get("per_gib", 0)),
    )


def terms(version: int = 1, day: int = DAY, **changes: Any) -> RegionTermsSet:
    fact = RegionTermsSet(
        region_id=REGION,
        version=version,
        effective_from_day=day,
        is_shared=True,
        participation_ppm=200_000,
        availability_min_tier=3,
        infra=costs(),
        by="mem",
        at_us=(day - NOTICE_DAYS - 1) * DAY_US,
    )
    return replace(fact, **changes)


def place(*more: tuple[Stream[Any], Any]) -> Scene:
    """A region of three workers, three control nodes and one ingress node."""
    at: dict[str, Any] = {"at_us": 0}
    facts: list[tuple[Stream[Any], Any]] = [
        (Stream("account", who), AccountOpened(account_id=who, kind="party", opened_by="op", **at))
        for who in (OPERATOR, ANNA)
    ]
    facts.append(
        (
            Stream("provider", PROVIDER),
            ProviderRegistered(
                provider_id=PROVIDER,
                account_id=OPERATOR,
                kind="physical",
                payment_mode="credits",
                **at,
            ),
        )
    )
    facts.append(
        (
            Stream("region", REGION),
            RegionOpened(
                region_id=REGION,
                provider_id=PROVIDER,
                name="home",
                storage_mode="local",
                setting="edge",
                admission="operator",
                allow_public_jobs=True,
                hardware_rules=(),
                cloud_region=None,
                site=None,
                **at,
            ),
        )
    )
    for node_id in (*NODES, "ctl_1", "ctl_2", "ctl_3", "ing_1"):
        joined = NodeJoinRequested(
            node_id=node_id,
            provider_id=PROVIDER,
            region_id=REGION,
            client_id=None,
            owner_account_id=None,
            key_id="k",
            public_key="00",
            token_sha256="00",
            agent="t",
            **at,
        )
        facts.append((Stream("node", node_id), joined))
    for node_id, role in (
        ("ctl_1", "control"),
        ("ctl_2", "control"),
        ("ctl_3", "control"),
        ("ing_1", "ingress"),
    ):
        facts.append(role_of(node_id, role))
    return Scene().given(*facts, *more)


def role_of(node_id: str, role: str, at_us: int = 0) -> tuple[Stream[Any], Any]:
    fact = NodeRoleSet(node_id=node_id, role=role, address=None, by="op", at_us=at_us)
    return Stream("node", node_id), fact


def under(*versions: RegionTermsSet) -> list[tuple[Stream[Any], Any]]:
    return [(terms_stream(REGION), each) for each in versions]


def gathered(units: dict[str, int], account_id: str = OPERATOR, day: int = DAY) -> Any:
    nodes = tuple(NodeEarned(node_id, earned) for node_id, earned in units.items())
    fact = RegionEarningsGathered(
        region_id=REGION,
        day=day,
        account_id=account_id,
        through_position=9,
        nodes=nodes,
        amount=credit(sum(units.values())),
        at_us=day * DAY_US,
        clients=(ClientPart(NO_CLIENT, sum(units.values())),),
    )
    return stream_of(REGION, day), fact


def share(day: int = DAY, times: dict[str, int] | None = None, **changes: Any) -> ShareRegionDay:
    command = ShareRegionDay(
        region_id=REGION,
        day=day,
        times=tuple(NodeTime(node_id, us, 0) for node_id, us in (times or {}).items()),
        control=("ctl_1", "ctl_2", "ctl_3"),
        ingress=("ing_1",),
        at_us=(day + 1) * DAY_US,
    )
    return replace(command, **changes)


def shared(scene: Scene, command: ShareRegionDay) -> tuple[RegionDayShared, dict[str, Any]]:
    total, *more = [change.fact for change in scene.when(command).changes()]
    assert isinstance(total, RegionDayShared)
    chunks = [one for one in more if isinstance(one, RegionSharesPaid)]
    return total, {one.node_id: one for chunk in chunks for one in chunk.shares}


def ask(day: int, at_us: int = 0, **changes: Any) -> SetRegionTerms:
    fact = terms(day=day)
    command = SetRegionTerms(
        region_id=REGION,
        account_id=OPERATOR,
        version=1,
        effective_from_day=day,
        is_shared=fact.is_shared,
        participation_ppm=fact.participation_ppm,
        availability_min_tier=fact.availability_min_tier,
        infra=fact.infra,
        by="mem",
        at_us=at_us,
    )
    return replace(command, **changes)


# --- terms --------------------------------------------------------------------------------------


def test_terms_begin_a_whole_notice_after_they_are_set_and_never_twice() -> None:
    scene = place()
    scene.when(ask(NOTICE_DAYS)).then_refused(FleetReason.REGION_TERMS, earliest_day=8)
    scene.when(ask(NOTICE_DAYS + 1)).then((terms_stream(REGION), terms(day=NOTICE_DAYS + 1)))
    after = scene.after(ask(NOTICE_DAYS + 1))
    after.when(ask(NOTICE_DAYS + 1, at_us=HOUR_US)).then_nothing()
    after.when(ask(NOTICE_DAYS + 1, participation_ppm=1)).then_refused(
        FleetReason.REGION_TERMS, version=1, expected=2
    )
    after.when(ask(NOTICE_DAYS + 1, version=2)).then_refused(
        FleetReason.REGION_TERMS, earliest_day=9
    )
    assert after.when(ask(NOTICE_DAYS + 2, version=2, is_shared=False)).changes()


def test_the_notice_outlasts_the_longest_dispute_window() -> None:
    window = Window(version=1, window_us=30 * DAY_US + 1, effective_from_us=1, by="op", at_us=1)
    scene = place((NETWORK, window))
    scene.when(ask(31)).then_refused(FleetReason.REGION_TERMS, earliest_day=32)
    assert scene.when(ask(32)).changes()


def test_only_the_provider_sets_terms_and_within_bounds() -> None:
    scene, day = place(), NOTICE_DAYS + 1
    scene.when(ask(day, account_id=ANNA)).then_refused(FleetReason.REGION_UNKNOWN)
    scene.when(ask(day, region_id="region_b")).then_refused(FleetReason.REGION_UNKNOWN)
    scene.when(ask(day, participation_ppm=PPM + 1)).then_refused(PartiesReason.SHARE_OUT_OF_RANGE)
    scene.when(ask(day, availability_min_tier=5)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    too_dear = costs(control=10**12 + 1)
    scene.when(ask(day, infra=too_dear)).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)
    other = replace(costs(), base=Amount(Asset.TOKEN, 1))
    scene.when(ask(day, infra=other)).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)


def test_terms_are_within_their_bounds_and_not_one_beyond() -> None:
    """Costs are credits, none to a million of them a day each; tiers are 0 to 4."""
    scene, day = place(), NOTICE_DAYS + 1
    names = [one.name for one in fields(InfraCost)]
    for name in names:
        for units in (0, 10**12):
            infra = replace(costs(), **{name: credit(units)})
            assert scene.when(ask(day, infra=infra)).changes(), (name, units)
        for amount in (credit(-1), credit(10**12 + 1), Amount(Asset.TOKEN, 1)):
            infra = replace(costs(), **{name: amount})
            scene.when(ask(day, infra=infra)).then_refused(
                PricesReason.AMOUNT_OUT_OF_RANGE, units=amount.units, most=10**12
            )
    for ppm in (0, PPM):
        assert scene.when(ask(day, participation_ppm=ppm)).changes()
    for ppm in (-1, PPM + 1):
        scene.when(ask(day, participation_ppm=ppm)).then_refused(PartiesReason.SHARE_OUT_OF_RANGE)
    for tier in (0, 4):
        assert scene.when(ask(day, availability_min_tier=tier)).changes()
    for tier in (-1, 5):
        scene.when(ask(day, availability_min_tier=tier)).then_refused(
            PartiesReason.COUNT_OUT_OF_RANGE
        )


def test_each_version_of_the_terms_told_again_changes_nothing() -> None:
    """Compared with what that version said, not with another one."""
    scene = place()
    asked = [
        ask(NOTICE_DAYS + number, version=number, participation_ppm=number) for number in (1, 2, 3)
    ]
    for one in asked:
        scene = scene.after(one)
    for one in asked:
        scene.when(replace(one, by="other", at_us=1)).then_nothing()
    for version in (0, -1, 5):
        scene.when(replace(asked[2], version=version)).then_refused(
            FleetReason.REGION_TERMS, version=version, expected=4
        )


# --- gathering ----------------------------------------------------------------------------------


def mature(
    earned: list[RegionalEarning], gross: int, at_us: int = DAY * DAY_US, **changes: Any
) -> MatureEarnings:
    command = MatureEarnings(
        account_id=OPERATOR,
        after_position=0,
        through_position=9,
        through_us=at_us - 3 * DAY_US,
        gross=gross,
        at_us=at_us,
        regional=tuple(earned),
    )
    return replace(command, **changes)


def earning(units: int, day: int = DAY, node_id: str = "node_a") -> RegionalEarning:
    return RegionalEarning(REGION, node_id, day, units)


def test_what_matures_under_terms_is_gathered_in_the_same_append_and_the_rest_is_payable() -> None:
    scene = place(*under(terms()))
    command = mature([earning(70), earning(5, node_id="node_b")], 100)
    matured = EarningsMatured(
        account_id=OPERATOR,
        after_position=0,
        through_position=9,
        gross=credit(100),
        reduced=credit(0),
        amount=credit(100),
        at_us=command.at_us,
        clients=(ClientPart(NO_CLIENT, 100),),
        before=0,
    )
    where, fact = gathered({"node_a": 70, "node_b": 5})
    scene.when(command).then((earnings_stream(OPERATOR), matured), (where, fact))
    (entry,) = entries_for(fact)
    payable = (f"party:{OPERATOR}:payable", 75)
    assert entry.lines == (payable, (f"region:{REGION}:revenue", -75))


def test_a_region_without_terms_gathers_nothing_and_owners_keep_what_they_earned() -> None:
    assert len(place().when(mature([earning(70)], 70)).changes()) == 1


def test_what_was_earned_before_the_terms_or_after_their_end_is_its_owners_alone() -> None:
    ended = terms(2, DAY + 3, is_shared=False)
    scene = place(*under(terms(), ended))
    earned = [earning(1, DAY - 1), earning(2, DAY), earning(4, DAY + 2), earning(8, DAY + 3)]
    _, fact = scene.when(mature(earned, 15, (DAY + 6) * DAY_US)).changes()
    assert fact.fact.amount == credit(2 + 4)


def test_nothing_is_shared_under_terms_that_were_announced_after_it_was_earned() -> None:
    """What matures late, when newer terms are in force, stays its owner's."""
    newer = terms(2, DAY + 10, at_us=(DAY + 2) * DAY_US, participation_ppm=PPM)
    scene = place(*under(terms(), newer))
    earned = [earning(1, DAY + 1), earning(2, DAY + 2), earning(4, DAY + 9)]
    _, late = scene.when(mature(earned, 7, (DAY + 12) * DAY_US)).changes()
    assert late.fact.amount == credit(2 + 4)
    _, in_time = scene.when(mature(earned[:2], 3, (DAY + 9) * DAY_US)).changes()
    assert in_time.fact.amount == credit(1 + 2)


@examples(40)
@given(st.integers(DAY - 3, DAY + 20), st.integers(0, 12), st.integers(0, 2))
def test_whatever_is_gathered_was_earned_when_its_terms_were_known(
    earned_day: int, later: int, changes: int
) -> None:
    versions = [
        terms(n + 1, DAY + 9 * n, is_shared=n != 1, at_us=(DAY + 9 * n - 8) * DAY_US)
        for n in range(changes + 1)
    ]
    shared_day = max(earned_day, DAY) + later
    scene = place(*under(*versions))
    made = scene.when(mature([earning(7, earned_day)], 7, shared_day * DAY_US)).changes()
    in_force = [one for one in versions if one.effective_from_day <= shared_day]
    then = [one for one in versions if one.effective_from_day <= earned_day]
    knew = in_force and in_force[-1].at_us <= earned_day * DAY_US
    assert (len(made) == 2) == bool(knew and then and then[-1].is_shared)


def test_what_a_dispute_took_out_is_not_gathered_and_unknown_reductions_are_looked_at_again() -> (
    None
):
    taken = EarningsReduced(account_id=OPERATOR, position=5, units=30, cause="dispute:d", at_us=0)
    scene = place(*under(terms()), (earnings_stream(OPERATOR), taken))
    scene.when(mature([earning(70)], 100)).then_refused(
        IncomeReason.EARNINGS_STATE, reduced=30, known=0
    )
    made = scene.when(mature([earning(70)], 100, reduced=30)).changes()
    assert [change.fact.amount.units for change in made] == [70, 70]
    with pytest.raises(AssertionError):
        scene.when(mature([earning(71)], 100, reduced=30)).changes()


def test_a_shared_day_gathers_no_more_and_many_nodes_take_several_facts() -> None:
    scene = place(*under(terms())).after(share())
    earned = [earning(1, node_id=f"node_{n:04}") for n in range(501)]
    _, first, second = scene.when(mature(earned, len(earned))).changes()
    assert (first.stream, second.stream) == (stream_of(REGION, DAY + 1),) * 2
    assert [len(each.fact.nodes) for each in (first, second)] == [500, 1]


# --- a day --------------------------------------------------------------------------------------


def through(node_id: str, day: int, count: int) -> tuple[Stream[Any], Any]:
    """What an ingress node reported of the hours before midnight of a day."""
    fact = IngressBytesReported(
        node_id=node_id,
        region_id=REGION,
        from_us=day * DAY_US,
        until_us=(day + 1) * DAY_US,
        bytes_in=count,
        bytes_out=0,
        key_id="k",
        signature="00",
        at_us=(day + 1) * DAY_US,
    )
    return reach_stream(node_id), fact


def test_bytes_through_ingress_nodes_are_part_of_what_the_day_costs() -> None:
    """A GiB and a half at two credits, below the same bound as all cost of control."""
    day = share().day
    priced = terms(infra=costs(per_gib=2 * CREDITS))
    told = through("ing_1", day, 3 * 2**29), through("ing_1", day + 1, 2**40)
    scene = place(*under(priced), *told, gathered({"node_a": 100 * CREDITS}))
    free = place(*under(terms()), *told, gathered({"node_a": 100 * CREDITS}))
    before, after = shared(free, share())[0], shared(scene, share())[0]
    assert (before.ingress_bytes, after.ingress_bytes) == (3 * 2**29, 3 * 2**29)
    assert after.infra_due.units - before.infra_due.units == 3 * CREDITS
    bound = terms(infra=costs(per_gib=2 * CREDITS, most=CREDITS))
    capped = place(*under(bound), *told, gathered({"node_a": 100 * CREDITS}))
    assert shared(capped, share())[0].infra_due == credit(CREDITS)


def test_the_worked_day_reaches_every_account_to_the_unit() -> None:
    """Design economics 9 with Anna as owner of node_b: 59.84, 7.04, 21.12 and 12."""
    owned = RevenueSharesSet(
        node_id="node_b", shares=(OwnerShare(ANNA, 750_000),), by="op", at_us=0
    )
    scene = place(
        *under(terms()),
        (Stream("revenue", "node_b"), owned),
        gathered({"node_a": 75 * CREDITS, "node_c": 25 * CREDITS}),
    )
    times = {"node_a": DAY_GPU_US, "node_b": DAY_GPU_US, "node_c": DAY_GPU_US // 2}
    total, shares = shared(scene, share(times=times))
    assert (total.control_nodes, total.ingress_nodes) == (3, 1)
    assert total.infra == total.infra_due == credit(12_000_000)
    got = [shares[node_id].participation + shares[node_id].usage for node_id in NODES]
    assert got == [59_840_000, 7_040_000, 21_120_000]
    assert shares["node_b"].parts == (SharePart(ANNA, 5_280_000), SharePart(OPERATOR, 1_760_000))
    assert (shares["node_a"].revenue, shares["node_b"].revenue) == (75 * CREDITS, 0)
    assert total.carry == total.arrears == credit(0)
    assert booked(scene, share(times=times)) == {
        f"region:{REGION}:revenue": 100_000_000,
        f"party:{OPERATOR}:payable": -(12_000_000 + 59_840_000 + 1_760_000 + 21_120_000),
        f"party:{ANNA}:payable": -5_280_000,
    }


def booked(scene: Scene, command: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for change in scene.when(command).changes():
        for entry in entries_for(change.fact):
            for account, units in entry.lines:
                assert kind_of(account).asset is Asset.CREDIT
                sums[account] = sums.get(account, 0) + units
    return {account: units for account, units in sums.items() if units}


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, DAY_GPU_US)), max_size=3),
    st.integers(0, PPM),
    st.integers(0, 10 * CREDITS),
)
def test_two_days_share_out_exactly_what_was_gathered_and_carry_the_rest(
    nodes: list[tuple[int, int]], ppm: int, control: int
) -> None:
    units = {NODES[place]: earned for place, (earned, _) in enumerate(nodes)}
    times = {NODES[place]: time for place, (_, time) in enumerate(nodes)}
    told = terms(participation_ppm=ppm, infra=costs(control=control))
    first = place(*under(told), gathered(units))
    second = first.after(share(times=times)).given(gathered(units, ANNA, DAY + 1))
    before, _ = shared(first, share(times=times))
    total, _ = shared(second, share(DAY + 1, times))
    assert (total.carry_before, total.arrears_before) == (before.carry, before.arrears)
    for day in (before, total):
        out = (day.infra, day.participation, day.usage, day.carry)
        assert sum(one.units for one in out) == (day.gathered + day.carry_before).units
    both = Counter(booked(first, share(times=times)))
    both.update(booked(second, share(DAY + 1, times)))
    assert both[f"region:{REGION}:revenue"] == (before.gathered + total.gathered).units
    assert both[f"region:{REGION}:carry"] == -total.carry.units


def test_a_day_is_shared_once_after_it_is_over_and_in_order() -> None:
    scene = place(*under(terms()))
    place().when(share()).then_refused(
        FleetReason.REGION_DAY, day=20_780, rule="no terms on that day"
    )
    scene.when(share(DAY - 1)).then_refused(
        FleetReason.REGION_DAY, day=20_779, rule="no terms on that day"
    )
    scene.when(share(at_us=(DAY + 1) * DAY_US - 1)).then_refused(
        FleetReason.REGION_DAY, day=20_780, rule="the day is not over"
    )
    scene.when(share(DAY + 1)).then_refused(
        FleetReason.REGION_DAY, day=20_781, rule="the day before is not shared"
    )
    after = scene.after(share())
    after.when(share()).then_nothing()
    assert after.when(share(DAY + 1)).changes()


def test_a_day_without_revenue_leaves_the_cost_in_arrears_up_to_their_cap() -> None:
    scene = place(*under(terms()))
    total, shares = shared(scene, share(times={"node_a": 5}))
    assert (total.infra, total.arrears, total.forgone) == (
        credit(0),
        credit(10**7),
        credit(2 * 10**6),
    )
    assert shares["node_a"].parts == ()
    later = scene.after(share()).given(gathered({"node_a": 60 * CREDITS}, day=DAY + 1))
    paid, _ = shared(later, share(DAY + 1))
    assert (paid.infra, paid.arrears) == (credit(22 * CREDITS), credit(0))
    assert paid.usage == credit(38 * CREDITS)


def test_only_nodes_that_have_the_role_in_this_region_at_the_end_of_the_day_cost() -> None:
    elsewhere = NodeJoinRequested(
        node_id="ctl_9",
        provider_id=PROVIDER,
        region_id="region_b",
        client_id=None,
        owner_account_id=None,
        key_id="k",
        public_key="00",
        token_sha256="00",
        agent="t",
        at_us=0,
    )
    gone = NodeRetired(node_id="ctl_1", by="op", at_us=1)
    scene = place(
        *under(terms()),
        (Stream("node", "ctl_9"), elsewhere),
        role_of("ctl_9", "control"),
        (Stream("node", "ctl_1"), gone),
        role_of("ctl_2", "worker", 5),
        role_of("node_a", "ingress", (DAY + 1) * DAY_US),
    )
    named = ("ctl_1", "ctl_2", "ctl_3", "ctl_3", "ctl_9", "node_none")
    total, _ = shared(scene, share(control=named, ingress=("ing_1", "node_a")))
    assert (total.control_nodes, total.ingress_nodes) == (1, 1)
    most = place(*under(terms(infra=costs(most=5 * CREDITS, base=CREDITS))))
    assert shared(most, share())[0].infra_due == credit(5 * CREDITS)
    too_many = tuple(f"n{n}" for n in range(1_001))
    scene.when(share(control=too_many)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE, at_most=1000)


def test_after_the_end_of_terms_nothing_more_is_due_and_what_was_gathered_is_shared() -> None:
    ended = terms(2, DAY + 1, is_shared=False)
    scene = place(*under(terms(), ended)).after(share())
    late = scene.given(gathered({"node_a": 25 * CREDITS}, day=DAY + 1))
    total, shares = shared(late, share(DAY + 1))
    assert (total.infra_due, total.infra) == (credit(0), credit(10 * CREDITS))
    assert shares["node_a"].usage == 15 * CREDITS


def test_what_a_closed_account_would_get_waits_and_is_not_lost() -> None:
    closed = AccountClosed(account_id=ANNA, by="op", at_us=1)
    scene = place(
        *under(terms(infra=costs(0, 0))),
        (Stream("account", ANNA), closed),
        gathered({"node_a": 10}, ANNA),
    )
    _, shares = shared(scene, share())
    assert shares["node_a"].parts == (SharePart(ANNA, 10, "network:suspense"),)
    assert booked(scene, share())["network:suspense"] == -10


def test_an_account_does_not_close_while_a_region_of_its_holds_earnings() -> None:
    scene = place().having({f"region:{REGION}:revenue": 5})
    close = CloseAccount(
        account_id=OPERATOR, lease_ids=(), node_ids=(), region_ids=(REGION,), by="op", at_us=5
    )
    scene.when(close).then_refused(PartiesReason.ACCOUNT_NOT_EMPTY, book="region:region_a:revenue")


def test_a_large_region_is_told_in_chunks_of_one_append_in_the_order_of_its_nodes() -> None:
    names = [f"node_{n:05}" for n in range(2 * CHUNK_NODES + 1)]
    scene = place(*under(terms(infra=costs(0, 0))), gathered(dict.fromkeys(names, 3)))
    total, *chunks, brought = [change.fact for change in scene.when(share()).changes()]
    assert isinstance(total, RegionDayShared)
    assert isinstance(brought, EarningsBrought)
    assert (total.nodes, total.chunks) == (len(names), 3)
    assert all(isinstance(chunk, RegionSharesPaid) for chunk in chunks)
    assert [chunk.chunk for chunk in chunks] == [0, 1, 2]
    assert [one.node_id for chunk in chunks for one in chunk.shares] == names


def test_an_operator_that_owns_a_part_of_a_node_in_its_region_gets_both_parts() -> None:
    """Its own part of the node, and what no owner has of it: added up, in one line."""
    owned = RevenueSharesSet(
        node_id="node_b",
        shares=(OwnerShare(ANNA, 250_000), OwnerShare(OPERATOR, 500_000)),
        by="op",
        at_us=0,
    )
    scene = place(
        *under(terms(infra=costs(0, 0), participation_ppm=PPM)),
        (Stream("revenue", "node_b"), owned),
        gathered({"node_a": 8 * CREDITS}),
    )
    _, shares = shared(scene, share(times={"node_b": DAY_GPU_US}))
    got = shares["node_b"]
    assert got.participation == 8 * CREDITS
    assert got.parts == (SharePart(ANNA, 2 * CREDITS), SharePart(OPERATOR, 6 * CREDITS))


def test_participation_is_its_owners_in_the_last_moment_of_the_day() -> None:
    """Set within the day it counts for all of it; set when the next one begins it does not."""
    ends_us = (DAY + 1) * DAY_US
    for at_us, annas in ((ends_us - 1, 2 * CREDITS), (ends_us, 0), (0, 2 * CREDITS)):
        owned = RevenueSharesSet(
            node_id="node_b", shares=(OwnerShare(ANNA, 250_000),), by="op", at_us=at_us
        )
        scene = place(
            *under(terms(infra=costs(0, 0), participation_ppm=PPM)),
            (Stream("revenue", "node_b"), owned),
            gathered({"node_a": 8 * CREDITS}),
        )
        _, shares = shared(scene, share(times={"node_b": DAY_GPU_US}))
        got = {part.account_id: part.units for part in shares["node_b"].parts}
        assert got == {OPERATOR: 8 * CREDITS - annas, **({ANNA: annas} if annas else {})}


def test_a_thousand_nodes_may_have_had_a_role() -> None:
    scene = place(*under(terms()))
    names = tuple(f"n{number}" for number in range(1_000))
    for taken in (share(control=names), share(ingress=names)):
        assert scene.when(taken).changes()
    for more in (share(control=(*names, "x")), share(ingress=(*names, "x"))):
        scene.when(more).then_refused(PartiesReason.COUNT_OUT_OF_RANGE, at_most=1_000)


def test_what_a_day_costs_is_the_sum_of_its_rows_and_at_most_its_most() -> None:
    """Base, control and ingress nodes, and the bytes floored over the whole day."""
    infra = costs(control=30, ingress=500, base=7, per_gib=10, most=2_000)
    of = terms(infra=infra)
    gib = 2**30
    for control, ingress, count, due in (
        (0, 0, 0, 7),
        (2, 0, 0, 67),
        (0, 3, 0, 1_507),
        (2, 3, gib // 10, 1_567),  # 0.99 of a unit
        (2, 3, gib // 10 + 1, 1_568),
        (2, 3, gib, 1_577),
        (2, 3, 43 * gib, 1_997),
        (2, 3, 44 * gib, 2_000),
    ):
        assert infra_due(of, control, ingress, count) == due
    assert infra_due(replace(of, is_shared=False), 2, 3, gib) == 0


def test_what_a_region_pays_names_the_clients_whose_work_it_gathered() -> None:
    """R-1: also through a region's pool each account is told by client, to the unit."""
    where, fact = gathered({"node_a": 60 * CREDITS}, ANNA)
    by_two = replace(
        fact, clients=(ClientPart("acct_c", 45 * CREDITS), ClientPart("direct", 15 * CREDITS))
    )
    scene = place(*under(terms(infra=costs(0, 5 * CREDITS))), (where, by_two))
    facts = [change.fact for change in scene.when(share(times={"node_b": 1})).changes()]
    told = {one.account_id: one for one in facts if isinstance(one, EarningsBrought)}
    assert told.keys() == {ANNA, OPERATOR}
    for one in told.values():
        assert (one.book, one.source) == ("payable", f"region-day:{REGION}/{DAY}")
        whole = one.amount.units
        assert one.clients == (
            ClientPart("acct_c", whole * 3 // 4),
            ClientPart("direct", whole // 4),
        )
    assert sum(one.amount.units for one in told.values()) == 60 * CREDITS


def test_what_is_gathered_names_the_clients_of_what_matured() -> None:
    command = mature([earning(50)], 100, clients=(("acct_c", 80), ("direct", 20)))
    _, fact = place(*under(terms())).when(command).changes()
    assert fact.fact.clients == (ClientPart("acct_c", 40), ClientPart("direct", 10))


def test_a_node_that_earned_and_was_never_seen_has_no_time() -> None:
    scene = place(*under(terms(infra=costs(0, 0))), gathered({"node_a": 10}))
    _, shares = shared(scene, share())
    assert (shares["node_a"].available_us, shares["node_a"].below_tier_us) == (0, 0)
    assert (shares["node_a"].node_id, shares["node_a"].usage) == ("node_a", 10)


def test_the_sharing_of_regions_in_numbers() -> None:
    """Design economics 9: a week of notice; 250 facts of 200 nodes in one append."""
    assert (NOTICE_DAYS, CHUNK_NODES, NODES_MAX) == (7, 200, 50_000)
