"""Settlement: both pools to the unit, no gain by splitting, caps, adjustments, release."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.clients import ClientUse, clients_file
from domain.epochs.epoch_file import epoch_file
from domain.epochs.lanes import Memory, settle_lanes
from domain.epochs.reward_terms import REWARD_TERMS, UNISSUED, Rated, RewardTerms, bonus_ppm
from domain.epochs.settlement import (
    AVAILABILITY,
    BOUGHT_MULTIPLE_MAX_PPM,
    CAP,
    COMPUTE,
    ROUNDING,
    ZERO_WEIGHT,
    Attested,
    Cut,
    CutHead,
    NodeCut,
    Openings,
    Outcome,
    Settlement,
    Unallocated,
    Use,
    availability_weight,
    compute_weight,
    idle_cap,
    is_sound,
    outcome,
    pools_at,
    settle,
    share,
    weigh,
)
from domain.money import PPM, MoneyReason
from domain.refusal import Refused
from tests.domain.scenes.epochs import POLICY

HOUR_US = 3_600_000_000
TERMS = replace(REWARD_TERMS, release_tau=7, release_cap=164_400_000_000)
RULED = replace(POLICY, rewards=TERMS)
UNISSUED_LEFT = 10**17


def cut(*nodes: NodeCut, policy: object = RULED, **openings: object) -> Cut:
    told = Openings(**{"unissued": UNISSUED_LEFT, **openings})  # type: ignore[arg-type]
    return Cut(epoch=1, cut_position=9, policy=policy, openings=told, nodes=nodes)  # type: ignore[arg-type]


def paid(settlement: Settlement, node_id: str) -> tuple[int, int]:
    node = next(node for node in settlement.nodes if node.node_id == node_id)
    return node.compute, node.availability


uses = st.builds(
    Use,
    st.sampled_from(["cash", "burned", "grant.x", "earned"]),
    st.integers(0, 10**13),
    st.integers(0, 10**13),
)
times = st.builds(
    Attested,
    st.sampled_from(["datacenter", "development"]),
    st.integers(0, 4),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
)
inner = st.builds(
    lambda bought_ppm, *told: NodeCut(*told, told[3] * bought_ppm // PPM),  # type: ignore[call-arg]
    st.integers(0, PPM),
    st.just(""),
    st.sampled_from(["acct_a", "acct_b", "acct_c", "treasury"]),
    st.lists(uses, max_size=2).map(tuple),
    st.integers(0, 10**14),
    st.none() | st.integers(0, PPM),
    st.lists(times, max_size=2).map(tuple),
)
fleets = st.lists(inner, max_size=8).map(
    lambda found: tuple(node._replace(node_id=f"node_{n}") for n, node in enumerate(found))
)
caps = st.none() | st.integers(0, 10**13)
terms = st.builds(
    lambda multiple, hourly, flat, owner, cap_to, zero_to, tau, release_cap, low, least: replace(
        REWARD_TERMS,
        burned_per_gpu_hour=least,
        availability_tier_2_ppm=low,
        cap_multiple_ppm=multiple,
        availability_cap_per_gpu_hour=hourly,
        availability_cap_per_node=flat,
        owner_cap=owner,
        cap_goes_to=cap_to,
        zero_weight_goes_to=zero_to,
        release_tau=tau,
        release_cap=release_cap,
        class_ratings=(Rated("development", 400_000),),
    ),
    st.none() | st.integers(0, 3 * PPM),
    caps,
    caps,
    caps,
    st.sampled_from(["next_epoch", UNISSUED]),
    st.sampled_from(["next_epoch", UNISSUED]),
    st.none() | st.integers(1, 9),
    st.integers(0, 10**12),
    st.sampled_from([0, 1, 200_000, 500_000]),
    st.none() | st.integers(1, 10**9),
)
deltas = st.dictionaries(
    st.sampled_from(["acct_a", "acct_b", "acct_z"]), st.integers(-(10**13), 10**13), max_size=3
).map(lambda found: tuple(found.items()))


@given(
    fleets, terms, st.integers(0, 10**14), st.integers(0, 10**14), st.integers(0, 10**14), deltas
)
def test_shares_plus_what_is_unallocated_are_the_pools_to_the_unit(
    fleet: tuple[NodeCut, ...], told: object, carry: int, idle: int, burned: int, delta: object
) -> None:
    """I1, I2: and rewards only move between accounts by adjustments."""
    opening = {"compute_carry": carry, "availability_carry": idle, "recyclable": burned}
    s = settle(
        cut(*fleet, policy=replace(POLICY, rewards=told), adjustments=delta, **opening)  # type: ignore[arg-type]
    )
    for pool, before in ((COMPUTE, carry), (AVAILABILITY, idle)):
        given_ = sum(getattr(node, pool) for node in s.nodes)
        left = sum(part.units for part in s.unallocated if part.pool == pool)
        assert given_ + left == getattr(s, f"{pool}_pool") + before
    assert s.compute_pool + s.availability_pool + s.treasury_pool == s.emission + s.release
    assert s.minted + carry + idle == s.total + s.compute_carry + s.availability_carry
    assert s.release <= burned
    assert all(units > 0 for _, units in s.rewards)
    open_before, open_after = dict(delta), dict(s.adjustments)  # type: ignore[call-overload]
    for account_id, still in open_after.items():
        assert 0 < abs(still) <= abs(open_before[account_id])
        assert (still > 0) == (open_before[account_id] > 0)


@given(fleets, terms, st.randoms(use_true_random=False))
def test_the_order_of_nodes_changes_nothing(
    fleet: tuple[NodeCut, ...], told: object, random: object
) -> None:
    policy = replace(POLICY, rewards=told)  # type: ignore[arg-type]
    shuffled = sorted(fleet, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert settle(cut(*fleet, policy=policy)) == settle(cut(*shuffled, policy=policy))


def _part(total: int, tenths: int, half: int) -> int:
    first = total * tenths // 10
    return total - first if half else first


def _half(node: NodeCut, tenths: int, half: int) -> NodeCut:
    """Some of the work and, device by device, some of the machine."""
    return node._replace(
        node_id=f"x{half}",
        account_id="acct_x",
        uses=tuple(
            Use(use.source, _part(use.burned, tenths, half), _part(use.gpu_us, tenths, half))
            for use in node.uses
        ),
        burned_tokens=_part(node.burned_tokens, tenths, half),
        attested=node.attested[half::2],
        bought_tokens=_part(node.bought_tokens, tenths, half),
    )


@given(fleets, inner, terms, st.integers(1, 9))
def test_splitting_a_node_into_two_never_earns_more(
    fleet: tuple[NodeCut, ...], node: NodeCut, told: object, tenths: int
) -> None:
    """I12, with caps that are linear; a flat cap per node is what lint warns of."""
    policy = replace(POLICY, rewards=replace(told, availability_cap_per_node=None))  # type: ignore[type-var,arg-type]
    halves = [_half(node, tenths, half) for half in (0, 1)]
    whole = node._replace(node_id="x", account_id="acct_x")
    one = dict(settle(cut(*fleet, whole, policy=policy)).rewards).get("acct_x", 0)
    two = dict(settle(cut(*fleet, *halves, policy=policy)).rewards).get("acct_x", 0)
    assert two <= one


@given(fleets, inner, terms, st.integers(0, 10**12))
def test_more_work_never_earns_less(
    fleet: tuple[NodeCut, ...], node: NodeCut, told: object, more: int
) -> None:
    policy = replace(POLICY, rewards=told)  # type: ignore[arg-type]
    before = node._replace(node_id="x", account_id="acct_x", uses=(Use("cash", 1, 1),))
    after = before._replace(
        uses=(Use("cash", 1 + more, 1 + more),), burned_tokens=before.burned_tokens + more
    )
    earned = [
        dict(settle(cut(*fleet, one, policy=policy)).rewards).get("acct_x", 0)
        for one in (before, after)
    ]
    assert earned[0] <= earned[1]


@given(inner, st.integers(2, 5))
def test_equal_work_earns_equal(node: NodeCut, count: int) -> None:
    fleet = [node._replace(node_id=f"node_{n}") for n in range(count)]
    s = settle(cut(*fleet))
    assert len({(one.compute, one.availability) for one in s.nodes}) == 1


def test_compute_rewards_are_capped_by_what_was_burned_for_the_node() -> None:
    """Design, economics 14: 19 CREDIT at 1.87 burned 10.16042781 TOKEN, a multiple of 64.6."""
    tokens = {2_280: 219_251_336_898, 19: 1_016_042_781, 1: 53_475_936}
    fleet = [
        NodeCut(f"n{burned}", f"a{burned}", (Use("cash", burned * 10**6, 0),), units)
        for burned, units in tokens.items()
    ]
    s = settle(cut(*fleet))
    assert paid(s, "n19")[0] == 1_016_042_781
    above = next(part for part in s.unallocated if (part.pool, part.reason) == (COMPUTE, CAP))
    assert above.units == above.returned == s.compute_pool - 2 - sum(tokens.values())
    assert s.minted == s.emission - above.units
    uncapped = settle(cut(*fleet, policy=POLICY))
    assert [node.compute for node in uncapped.nodes] == [
        3_456_443_143,
        65_672_419_732,
        7_880_690_367_891,
    ]


def test_availability_is_paid_by_attested_time_up_to_a_cap() -> None:
    """Design, economics 14: 604,800/302,400/0 s, at most 1,000 TOKEN each."""
    flat = replace(TERMS, availability_cap_per_node=100_000_000_000)
    fleet = [
        NodeCut(f"n{index}", "acct", attested=(Attested("datacenter", 3, seconds * 10**6, 0),))
        for index, seconds in enumerate((604_800, 302_400, 0))
    ]
    s = settle(cut(*fleet, policy=replace(POLICY, rewards=flat)))
    assert [paid(s, f"n{index}")[1] for index in range(3)] == [10**11, 10**11, 0]
    left = sum(part.units for part in s.unallocated if part.pool == AVAILABILITY)
    assert left == 2_071_376_923_076


@given(fleets, terms, st.integers(0, 10**13))
def test_an_owner_gets_the_lesser_of_its_cap_and_what_its_nodes_earned(
    fleet: tuple[NodeCut, ...], told: RewardTerms, cap: int
) -> None:
    def by_owner(owner_cap: int | None) -> dict[str, int]:
        rewards = replace(told, owner_cap=owner_cap)
        found: dict[str, int] = {}
        for node in settle(cut(*fleet, policy=replace(POLICY, rewards=rewards))).nodes:
            earned = node.compute + node.availability
            found[node.account_id] = found.get(node.account_id, 0) + earned
        return found

    assert by_owner(cap) == {who: min(cap, units) for who, units in by_owner(None).items()}


def test_the_weight_of_work_is_floored() -> None:
    """One unit burned, at the bonus of the worked node: 1.112624."""
    node = NodeCut("n1", "acct", (Use("cash", 1, 1),), 0, 884_468)
    assert bonus_ppm(TERMS, 884_468) == 1_112_624
    assert compute_weight(node, TERMS, "burned_value") == 1
    tenth = node._replace(uses=(Use("cash", 9, 0),))
    assert compute_weight(tenth, TERMS, "burned_value") == 10, "10.01"


@pytest.mark.parametrize(
    "wrong",
    [
        {"uses": (Use("cash", -1, 0),)},
        {"uses": (Use("cash", 0, -1),)},
        {"attested": (Attested("datacenter", 3, -1, 0),)},
        {"attested": (Attested("datacenter", 3, 0, -1),)},
        {"bought_tokens": -1},
        {"burned_tokens": 1, "bought_tokens": 2},
    ],
)
def test_a_cut_with_less_than_nothing_is_refused_and_names_its_node(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        settle(cut(NodeCut("n1", "acct"), NodeCut("n2", "acct")._replace(**wrong)))
    assert refused.value.reason is MoneyReason.NEGATIVE_WEIGHT
    assert refused.value.facts == {"node_id": "n2"}
    settle(cut(NodeCut("n1", "acct", (Use("cash", 0, 0),), 1, None, (), 1)))


def test_above_the_cap_of_an_owner_time_goes_first_and_the_last_node_before_the_others() -> None:
    flat = replace(TERMS, availability_cap_per_node=1_000)
    there = (Attested("datacenter", 3, HOUR_US, HOUR_US),)
    fleet = [
        NodeCut("n1", "acct", (Use("cash", 1, 0),), 700, attested=there),
        NodeCut("n2", "acct", (Use("cash", 1, 0),), 500, attested=there),
        NodeCut("n3", "other", attested=there),
    ]

    def by_node(owner_cap: int | None) -> list[tuple[int, int]]:
        s = settle(cut(*fleet, policy=replace(POLICY, rewards=replace(flat, owner_cap=owner_cap))))
        return [paid(s, node.node_id) for node in fleet]

    assert by_node(None) == [(700, 1_000), (500, 1_000), (0, 1_000)]
    assert by_node(2_500) == [(700, 1_000), (500, 300), (0, 1_000)]
    assert by_node(1_800) == [(700, 600), (500, 0), (0, 1_000)]
    assert by_node(1_100) == [(700, 0), (400, 0), (0, 1_000)]
    assert by_node(600) == [(600, 0), (0, 0), (0, 600)]


def idle_nodes(tier: int, count: int, first: int = 0) -> list[NodeCut]:
    """Nodes with one device each that was there for an hour."""
    there = (Attested("datacenter", tier, HOUR_US, HOUR_US),)
    return [NodeCut(f"n{tier}{n}", "acct", attested=there) for n in range(first, first + count)]


def test_a_farm_of_devices_below_the_tier_earns_nothing() -> None:
    s = settle(cut(*idle_nodes(1, 50)))
    assert (s.availability_weight, s.availability_tier_2_weight) == (0, 0)
    assert Unallocated(AVAILABILITY, ZERO_WEIGHT, s.availability_pool, 0) in s.unallocated
    assert [who for who, _ in s.rewards] == ["treasury"]


def test_tier_2_shares_its_part_of_the_fresh_pool_and_nothing_of_the_carry() -> None:
    """Else what nobody proved would come to it an epoch later, until it had all."""
    s = settle(cut(*idle_nodes(2, 4), availability_carry=10**12))
    low = s.availability_pool * 200_000 // PPM
    assert [node.availability for node in s.nodes] == [low // 4] * 4
    assert s.availability_carry == s.availability_pool + 10**12 - low // 4 * 4
    reasons = {one.reason for one in s.unallocated if one.pool == AVAILABILITY}
    assert ZERO_WEIGHT in reasons


def test_however_many_devices_claim_tier_2_a_proven_one_keeps_the_rest_of_the_pool() -> None:
    alone = settle(cut(*idle_nodes(3, 1)))
    assert paid(alone, "n30")[1] == alone.availability_pool
    crowded = settle(cut(*idle_nodes(3, 1), *idle_nodes(2, 500)))
    assert paid(crowded, "n30")[1] >= crowded.availability_pool * 800_000 // PPM
    assert paid(crowded, "n30")[1] > paid(crowded, "n20")[1]


def test_what_nobody_proved_goes_back_no_more_than_what_is_fresh() -> None:
    """The cap cuts tier 2's part in the same epoch: both together never give back the carry."""
    capped = replace(TERMS, availability_cap_per_node=1, zero_weight_goes_to=UNISSUED)
    s = settle(
        cut(*idle_nodes(2, 1), policy=replace(POLICY, rewards=capped), availability_carry=10**15)
    )
    back = sum(one.returned for one in s.unallocated if one.pool == AVAILABILITY)
    assert back == s.availability_pool
    assert s.availability_carry == 10**15 - 1


def test_a_device_that_was_there_less_than_the_minimum_is_not_paid_for_it() -> None:
    half = Attested("datacenter", 3, HOUR_US, 2 * HOUR_US)
    up = NodeCut("up", "acct", attested=(half,))
    down = NodeCut("down", "acct", attested=(half._replace(promised_us=2 * HOUR_US + 1),))
    s = settle(cut(up, down))
    assert paid(s, "up")[1] > 0 == paid(s, "down")[1]


def test_the_bonus_is_linear_and_bounded() -> None:
    worked = (None, 0, 800_000, 884_468, 950_000, PPM)
    assert [bonus_ppm(TERMS, score) for score in worked] == [
        PPM,
        PPM,
        PPM,
        1_112_624,
        1_200_000,
        1_200_000,
    ]


def test_of_the_credits_that_a_washer_bought_at_least_five_percent_are_lost() -> None:
    """E-H5: leases in burned credits have no fee, so with a multiple of 1 washing was free."""
    bought = 100 * 10**8
    use = (Use("burned", 10**9, 10**9),)
    for multiple, least in ((PPM, 950_000), (2 * PPM, 950_000), (PPM // 2, PPM // 2)):
        policy = replace(POLICY, rewards=replace(TERMS, cap_multiple_ppm=multiple))
        washer = NodeCut("n", "a", use, bought, None, (), bought)
        assert paid(settle(cut(washer, policy=policy)), "n")[0] == bought * least // PPM
        half = washer._replace(bought_tokens=bought // 2)
        by_cash = bought // 2 * multiple // PPM
        expected = by_cash + bought // 2 * least // PPM
        assert paid(settle(cut(half, policy=policy)), "n")[0] == expected


def test_what_grants_and_swept_earnings_paid_has_no_weight() -> None:
    own = NodeCut("n", "a", (Use("grant.x", 10**9, 10**9), Use("earned", 10**9, 10**9)), 10**12)
    assert settle(cut(own)).compute_weight == 0


def test_burned_tokens_come_back_slowly_and_caps_give_them_back_first() -> None:
    """Design, economics 7: 7,000 TOKEN burned, tau 7: 1,000 are released."""
    s = settle(cut(recyclable=700_000_000_000))
    assert s.release == 100_000_000_000
    unissued = replace(TERMS, zero_weight_goes_to=UNISSUED)
    back = settle(cut(policy=replace(POLICY, rewards=unissued), recyclable=700_000_000_000))
    assert back.returned_release == back.release
    assert back.minted == back.treasury_pool


def test_debts_are_paid_back_to_the_treasury_before_the_treasury_pays_others() -> None:
    node = NodeCut("n", "a", (Use("cash", 10, 0),), 10**9)
    s = settle(cut(node, adjustments=(("a", -(10**10)), ("b", 5), ("z", -1))))
    assert dict(s.rewards) == {"b": 5, "treasury": s.treasury_pool + 10**9 - 5}
    assert s.adjustments == (("a", -9 * 10**9), ("z", -1))


def test_what_is_paid_back_reaches_who_is_given_a_single_unit_in_the_same_epoch() -> None:
    """Nothing is emitted, so the treasury has what the debt brings it and no more."""
    node = NodeCut("n", "b", (Use("cash", 10, 0),), 10**9)
    s = settle(cut(node, unissued=0, compute_carry=10, adjustments=(("a", 1), ("b", -5))))
    assert (s.treasury_pool, dict(s.rewards)) == (0, {"a": 1, "b": 5, "treasury": 4})
    assert s.adjustments == ()


def test_remainders_are_fewer_than_recipients_and_stay_in_their_pool() -> None:
    fleet = [NodeCut(f"n{n}", "a", (Use("cash", 1, 0),), 10**15) for n in range(7)]
    s = settle(cut(*fleet))
    assert s.unallocated[0] == Unallocated(COMPUTE, ROUNDING, s.compute_carry, 0)
    assert 0 < s.compute_carry < 7


@given(inner, terms, st.integers(1, 10**9))
def test_time_weighs_no_more_than_what_was_burned_for_it(
    node: NodeCut, told: RewardTerms, least: int
) -> None:
    """A lease at next to nothing weighs next to nothing, and one that is dear enough its time."""
    plain = replace(told, bonus_max_ppm=0, burned_per_gpu_hour=None)
    costly = replace(plain, burned_per_gpu_hour=least)
    weight, whole = (compute_weight(node, one, "gpu_time") for one in (costly, plain))
    assert weight * least <= sum(use.burned for use in node.uses) * HOUR_US
    assert weight <= whole
    dear = node._replace(uses=tuple(use._replace(burned=10**30) for use in node.uses))
    assert compute_weight(dear, costly, "gpu_time") == whole
    assert compute_weight(node, costly, "burned_value") == compute_weight(
        node, plain, "burned_value"
    )


# --- lane by lane ------------------------------------------------------------------------------


class Written:
    """A store as a folder on disk is one: what was put comes back as JSON gives it."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def put(self, name: str, found: Any) -> None:
        self._texts[name] = json.dumps(found)

    def get(self, name: str) -> Any:
        return json.loads(self._texts[name])


@given(
    fleets,
    terms,
    st.lists(st.integers(0, 4), min_size=8, max_size=8),
    st.integers(0, 10**14),
    deltas,
    st.booleans(),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_lanes_settle_as_the_whole_does_owner_caps_included(
    fleet: tuple[NodeCut, ...],
    told: object,
    lane_of: list[int],
    carry: int,
    delta: object,
    is_written: bool,
    accounts: int,
    random: Any,
) -> None:
    """Any number of lanes, any node in any of them, in any order; slices of so many accounts."""
    policy = replace(POLICY, rewards=told)  # type: ignore[arg-type]
    opening = {"compute_carry": carry, "availability_carry": carry // 3, "adjustments": delta}
    whole = settle(cut(*fleet, policy=policy, **opening))
    lanes: list[list[NodeCut]] = [[] for _ in range(5)]
    for node, lane in zip(fleet, lane_of, strict=False):
        lanes[lane].append(node)
    for lane_nodes in lanes:
        random.shuffle(lane_nodes)
    lanes = [nodes for nodes in lanes if nodes or random.random() < 0.5]
    random.shuffle(lanes)
    head = CutHead(epoch=1, cut_position=9, policy=policy, openings=whole.cut.openings)
    store = Written() if is_written else Memory()
    uses = [
        ClientUse(node.node_id, client, use.source, random.randint(-1, use.burned), use.gpu_us)
        for node in fleet
        for use in node.uses
        for client in random.sample(("acct_x", "acct_y", "acct_z"), random.randint(0, 3))
    ]

    def uses_of(lane: int) -> list[ClientUse]:
        held = {node.node_id for node in lanes[lane]}
        return [use for use in uses if use.node_id in held]

    found = settle_lanes(head, range(len(lanes)), lanes.__getitem__, uses_of=uses_of, store=store)
    assert b"".join(found.file()) == epoch_file(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("domain.epochs.lanes.ACCOUNTS_MAX", accounts)
        assert b"".join(found.clients_file("00")) == clients_file(whole, "00", uses)
    assert found.outcome.rewards == whole.rewards
    for name in (one.name for one in fields(Outcome) if one.name != "cut"):
        assert getattr(found.outcome, name) == getattr(whole, name), name


def test_an_owner_is_capped_over_all_lanes_and_loses_what_its_last_nodes_got_for_being_there() -> (
    None
):
    nodes = [
        NodeCut(f"n{n}", "acct_a", (Use("cash", 10, 0),), 10**12, None, attested)
        for n, attested in enumerate([(), (Attested("datacenter", 3, 10**12, 1),)])
    ]
    told = replace(REWARD_TERMS, cap_multiple_ppm=None, owner_cap=7)
    policy = replace(POLICY, rewards=told)
    head = CutHead(epoch=1, cut_position=9, policy=policy, openings=Openings(unissued=10**17))
    found = settle_lanes(head, (1, 0), lambda lane: [nodes[lane]])
    assert dict(found.outcome.rewards)["acct_a"] == 7
    assert b"".join(found.file()) == epoch_file(settle(cut(*nodes, policy=policy)))


def test_a_node_in_two_lanes_is_refused() -> None:
    told = replace(REWARD_TERMS, cap_multiple_ppm=None, owner_cap=7)
    nodes = [
        NodeCut("n", "acct", (Use("cash", 10, 0),), 10**12, None, attested)
        for attested in [(), (Attested("datacenter", 3, 10**12, 1),)]
    ]
    for policy in (RULED, replace(POLICY, rewards=told)):
        head = CutHead(epoch=1, cut_position=9, policy=policy, openings=Openings(unissued=10**17))
        for order in ((0, 1), (1, 0)):
            with pytest.raises(Refused, match="duplicate_id"):
                settle_lanes(head, order, lambda lane: [nodes[lane]])


def test_time_weighs_by_the_rating_of_each_devices_class_added_up_and_floored_once() -> None:
    rated = replace(REWARD_TERMS, class_ratings=(Rated("development", 400_000),))
    times = (
        Attested("datacenter", 3, 10, 0),
        Attested("development", 3, 4, 0),  # 1.6
        Attested("development", 4, 1, 0),  # 0.4
        Attested("datacenter", 2, 1_000, 0),
    )
    node = NodeCut("n", "a", attested=times)
    assert availability_weight(node, rated, 3) == 12
    assert availability_weight(NodeCut("n", "a"), rated, 3) == 0
    nearly = replace(REWARD_TERMS, class_ratings=(Rated("development", 999_999),))
    one = NodeCut("n", "a", attested=(Attested("development", 3, 1, 0),))
    assert availability_weight(one, nearly, 3) == 0


def test_of_a_node_nothing_is_known_that_is_not_said() -> None:
    node = NodeCut("n", "a")
    assert (node.uses, node.attested, node.score_ppm) == ((), (), None)
    assert (node.burned_tokens, node.bought_tokens) == (0, 0)
    told = Openings(unissued=5)
    assert (told.recyclable, told.compute_carry, told.availability_carry) == (0, 0, 0)
    assert told.adjustments == ()


def test_the_cap_of_being_there_is_the_lower_of_that_by_time_and_the_flat_one() -> None:
    """By attested GPU-hours, floored: a unit for each whole one, however much of the next."""
    for us, hourly, flat, most in (
        (HOUR_US, None, None, None),
        (HOUR_US, None, 7, 7),
        (HOUR_US - 1, 1, None, 0),
        (HOUR_US, 1, None, 1),
        (2 * HOUR_US - 1, 1, 7, 1),
        (9 * HOUR_US, 1, 7, 7),
        (HOUR_US, 0, 7, 0),
    ):
        terms = replace(
            REWARD_TERMS, availability_cap_per_gpu_hour=hourly, availability_cap_per_node=flat
        )
        node = NodeCut("n", "a", attested=(Attested("datacenter", 3, us, 0),))
        assert idle_cap(node, terms) == most, (us, hourly, flat)


# --- an outcome that is not one of its cut -------------------------------------------------------

GIVING = (("a", -5), ("b", 7), ("y", -3), ("z", -4))


def adjusted() -> Settlement:
    """A node of a earns; a gives 5 back, b is given 7, and y and z owe on."""
    node = NodeCut("n", "a", (Use("cash", 10, 0),), 10**9)
    return settle(
        cut(node, adjustments=GIVING, compute_carry=100, availability_carry=50, recyclable=700)
    )


def with_rewards(s: Settlement, **moved: int) -> tuple[tuple[str, int], ...]:
    """The rewards, with so many units more or fewer for some."""
    after = {who: units + moved.pop(who, 0) for who, units in s.rewards} | moved
    return tuple(sorted((who, units) for who, units in after.items() if units))


def test_what_stays_open_of_adjustments_was_due_and_was_not_paid() -> None:
    s = adjusted()
    assert s.adjustments == (("y", -3), ("z", -4))
    assert is_sound(s)
    broken: list[dict[str, Any]] = [
        {"adjustments": (("z", -4), ("y", -3))},  # in another order
        {"adjustments": (("y", -3), ("y", -3), ("z", -4))},  # told twice
        {"adjustments": (("x", -1), ("y", -3), ("z", -4))},  # never due
        {"adjustments": (("a", 0), ("y", -3), ("z", -4))},  # nothing is open of it
        # More stays open of a than was due, as if 1 had been given to it.
        {
            "adjustments": (("a", -6), ("y", -3), ("z", -4)),
            "rewards": with_rewards(s, a=6, treasury=-6),
        },
        # It stays open with the other sign, as if 6 had been taken.
        {
            "adjustments": (("a", 1), ("y", -3), ("z", -4)),
            "rewards": with_rewards(s, a=-1, treasury=1),
        },
        # More stays open of b than it was to be given, as if 1 had been taken of it.
        {
            "adjustments": (("b", 8), ("y", -3), ("z", -4)),
            "rewards": with_rewards(s, b=-6, treasury=6),
        },
        {
            "adjustments": (("b", -1), ("y", -3), ("z", -4)),
            "rewards": with_rewards(s, b=1, treasury=-1),
        },
        {"rewards": with_rewards(s, a=1, b=-1)},  # b has not what it was given
        {"rewards": with_rewards(s, a=1, treasury=-1)},  # the treasury has not what a gave
    ]
    for changed in broken:
        assert not is_sound(replace(s, **changed)), changed


def test_all_or_a_part_of_an_adjustment_may_stay_open() -> None:
    """Whatever was not moved: nothing of it, one unit, all but one, all."""
    s = adjusted()
    for left in (-5, -4, -1):
        still = {
            "adjustments": (("a", left), ("y", -3), ("z", -4)),
            "rewards": with_rewards(s, a=-left, treasury=left),
        }
        assert is_sound(replace(s, **still)), left  # type: ignore[arg-type]
    for left in (7, 6, 1):
        still = {
            "adjustments": (("b", left), ("y", -3), ("z", -4)),
            "rewards": with_rewards(s, b=-left, treasury=left),
        }
        assert is_sound(replace(s, **still)), left  # type: ignore[arg-type]


def test_nobodys_part_of_a_pool_is_told_and_goes_where_it_may() -> None:
    """No part is negative, no more of one goes back than there is, and the carry is the rest."""
    s = adjusted()
    (idle,) = [one for one in s.unallocated if one.pool == AVAILABILITY]
    others = tuple(one for one in s.unallocated if one.pool != AVAILABILITY)
    assert (idle.units, idle.returned) == (s.availability_pool + 50, 0)
    back = replace(
        s,
        unallocated=(*others, idle._replace(returned=10)),
        availability_carry=s.availability_carry - 10,
        returned_emission=s.returned_emission + 10,
    )
    assert is_sound(back)
    of_both = back.returned_emission + back.returned_release
    assert (s.release, s.emission > of_both > s.release) == (100, True)

    def returning(release: int, more: int = 0) -> dict[str, int]:
        return {"returned_emission": of_both - release + more, "returned_release": release}

    for release in (0, 1, 100):
        assert is_sound(replace(back, **returning(release)))  # type: ignore[arg-type]
    broken: list[dict[str, Any]] = [
        returning(0, 1),
        returning(0, -1),
        returning(-1),
        returning(101),
        returning(of_both + 1),
        {"unallocated": (*others, idle._replace(units=-1, returned=-1))},
        {"availability_carry": back.availability_carry + 1},
        {"compute_carry": back.compute_carry - 1},
        {"compute_carry": back.compute_carry + 1},
        {"rewards": with_rewards(s, a=1)},
        {"rewards": with_rewards(s, a=-1)},
        {"rewards": (*back.rewards[1:], back.rewards[0])},
        {"rewards": (("Z", 0), *back.rewards)},
        {"rewards": (("a", 1), *with_rewards(back, a=-1))},  # one account twice
        {"availability_pool": back.availability_pool + 1},
        {"compute_pool": back.compute_pool - 1, "availability_pool": back.availability_pool + 1},
        {"treasury_pool": back.treasury_pool + 1},
        {"emission": back.emission + 1},
        {"release": back.release + 1},
    ]
    for changed in broken:
        assert not is_sound(replace(back, **changed)), changed


def test_without_a_weight_all_of_a_pool_is_nobodys_and_with_one_no_more_than_all() -> None:
    s = adjusted()
    whole = s.availability_pool + 50
    assert (s.availability_weight, s.availability_tier_2_weight) == (0, 0)
    others = tuple(one for one in s.unallocated if one.pool != AVAILABILITY)
    for units, weights, is_taken in (
        (whole, (0, 0), True),
        (whole - 1, (0, 0), False),
        (whole - 1, (1, 0), True),
        (whole - 1, (0, 1), True),
        (whole, (1, 0), True),
        (whole + 1, (1, 0), False),
        (whole + 1, (0, 0), False),
    ):
        told = replace(
            s,
            unallocated=(*others, Unallocated(AVAILABILITY, ZERO_WEIGHT, units, 0)),
            availability_carry=units,
            availability_weight=weights[0],
            availability_tier_2_weight=weights[1],
            rewards=with_rewards(s, a=whole - units),
        )
        assert is_sound(told) == is_taken, (units, weights)


def test_of_bought_credits_95_of_100_come_back_at_most() -> None:
    """Design economics 13."""
    assert BOUGHT_MULTIPLE_MAX_PPM == 950_000


@pytest.mark.parametrize(
    "field", ["compute_shares", "availability_shares", "compute", "availability"]
)
def test_lanes_that_add_up_to_another_pool_come_to_no_outcome(field: str) -> None:
    """A sum that is one unit off is noticed before anything is sealed."""
    node = NodeCut("n", "a", (Use("cash", 10, 0),), 10**9, None, (Attested("x", 4, 10**9, 0),))
    asked = cut(node)
    weighed = weigh((node,), asked.policy)
    pools, whole = pools_at(asked), weighed.sums()
    sums = share(weighed, pools, whole).sums()
    assert is_sound(outcome(asked, pools, whole, sums))
    off = replace(sums, **{field: getattr(sums, field) + 1})
    with pytest.raises(AssertionError):
        outcome(asked, pools, whole, off)
