"""Epochs: opened in order, cut once, split to the unit, credited exactly as sealed."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import (
    CHUNK_MAX,
    MISSING_MAX,
    CloseEpoch,
    CreditRewards,
    EpochGateOverridden,
    MatureRewards,
    OpenEpoch,
    RewardsCredited,
    RewardsMatured,
    SealEpoch,
    chunk_of,
    chunks_of,
    epoch_of,
    rewards_of,
    sealed_fact,
    stream_of,
)
from domain.epochs.epoch_file import ROWS_AT_ONCE, epoch_file, file_sha256, read_cut
from domain.epochs.policy import NETWORK
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import Reward
from domain.epochs.settlement import (
    COMPUTE,
    ROUNDING,
    NodeCut,
    Settlement,
    Unallocated,
    Use,
    pools_of,
    settle,
)
from domain.metering.pin import PINS
from domain.metering.reasons import MeteringReason
from domain.money import MoneyReason, credit, token
from domain.prices.oracle import LIMITS
from domain.prices.price_feed import FEED, PriceSnapshotTaken
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from tests.domain.scenes.epochs import (
    CAP,
    CLOSING,
    CUT,
    END_US,
    OPEN,
    POLICY,
    READY,
    START_US,
    WEEK_US,
    WEIGHTS,
    closing,
    nodes_of,
    opened,
    pin,
    settled,
    settlement_of,
)
from tests.given import Scene

EMISSION = 11_356_884_615_384
GOLDEN_SHA256 = "83ecde60439bf12739e5e9deedf9b29278d50fb8fa9e3e020cedd09c019caf9c"
SETTLED = settled()
REWARDS = rewards_of(SETTLED)
SEALED = CLOSING.given((stream_of(1), sealed_fact(SETTLED, END_US + 9, file_sha256(SETTLED))))
CLOSE = CloseEpoch(epoch=1, pin=pin(7), by="job", at_us=END_US)
CREDIT = CreditRewards(epoch=1, chunk=1, rewards=REWARDS, at_us=END_US + 10)


def seal(settlement: Settlement, at_us: int = END_US + 9) -> SealEpoch:
    return SealEpoch(outcome=settlement, file_sha256=file_sha256(settlement), at_us=at_us)


# Opening and closing.


def test_the_first_epoch_is_opened_under_the_policy_in_force() -> None:
    READY.when(OpenEpoch(epoch=1, start_us=START_US, at_us=START_US)).then(
        (stream_of(1), opened(1))
    )


def test_an_epoch_needs_a_policy() -> None:
    Scene().when(OpenEpoch(epoch=1, start_us=0, at_us=0)).then_refused(EpochsReason.POLICY_VERSION)


def test_opening_twice_changes_nothing_and_never_moves_the_start() -> None:
    again = OpenEpoch(epoch=1, start_us=START_US, at_us=START_US + 5)
    OPEN.when(again).then_nothing()
    OPEN.when(replace(again, start_us=START_US + 1)).then_refused(EpochsReason.EPOCH_STATE)


def test_only_the_first_epoch_is_opened_by_hand() -> None:
    for epoch in (0, 2):
        command = OpenEpoch(epoch=epoch, start_us=END_US, at_us=END_US)
        OPEN.when(command).then_refused(EpochsReason.EPOCH_OUT_OF_ORDER)


def test_closing_records_the_cut_right_after_it_and_opens_the_next_epoch() -> None:
    OPEN.when(CLOSE).then(
        (stream_of(1), closing(1)), (PINS, pin(7)), (stream_of(2), opened(2, at_us=END_US))
    )


def test_a_late_close_leaves_no_gap_between_epochs() -> None:
    late = replace(CLOSE, at_us=END_US + WEEK_US, pin=pin(7, at_us=END_US + WEEK_US))
    changes = OPEN.when(late).changes()
    assert changes[2].fact.start_us == END_US


def test_an_epoch_is_not_closed_before_its_end() -> None:
    OPEN.when(replace(CLOSE, at_us=END_US - 1)).then_refused(EpochsReason.EPOCH_NOT_OVER)


def test_an_epoch_is_not_closed_while_the_gate_waits_for_something() -> None:
    waiting = replace(CLOSE, missing=("node_a",))
    OPEN.when(waiting).then_refused(MeteringReason.CUT_INCOMPLETE)


def test_an_operator_goes_round_the_gate_with_a_fact_that_says_why() -> None:
    waiting = tuple(f"node_{number}" for number in range(MISSING_MAX + 1))
    overridden = EpochGateOverridden(
        epoch=1,
        missing=waiting[:MISSING_MAX],
        missing_count=MISSING_MAX + 1,
        reason="burned down",
        by="job",
        at_us=END_US,
    )
    OPEN.when(replace(CLOSE, missing=waiting, override="burned down")).then(
        (stream_of(1), overridden),
        (stream_of(1), closing(1)),
        (PINS, pin(7)),
        (stream_of(2), opened(2, at_us=END_US)),
    )


def test_there_is_nothing_to_override_when_nothing_is_missing() -> None:
    OPEN.when(replace(CLOSE, override="in a hurry")).then(
        (stream_of(1), closing(1)), (PINS, pin(7)), (stream_of(2), opened(2, at_us=END_US))
    )


def test_the_cut_covers_every_earlier_pin() -> None:
    OPEN.given((PINS, pin(8))).when(CLOSE).then_refused(MeteringReason.USAGE_POSITION_FELL)


def test_an_unchanged_usage_log_is_pinned_again_for_the_cut() -> None:
    OPEN.given((PINS, pin(7, at_us=START_US))).when(CLOSE).then(
        (stream_of(1), closing(1)), (PINS, pin(7)), (stream_of(2), opened(2, at_us=END_US))
    )


def test_closing_twice_changes_nothing_and_another_cut_is_refused() -> None:
    CLOSING.when(CLOSE).then_nothing()
    CLOSING.when(replace(CLOSE, pin=pin(8))).then_refused(EpochsReason.EPOCH_STATE)


def test_an_epoch_nobody_opened_is_unknown() -> None:
    other = replace(SETTLED, cut=replace(SETTLED.cut, epoch=9))
    for command in (replace(CLOSE, epoch=9), seal(other)):
        OPEN.when(command).then_refused(EpochsReason.EPOCH_UNKNOWN)


# The split.

weights_of = st.dictionaries(
    st.text(alphabet="abcdtreasuy_", max_size=8), st.integers(0, 10**12), max_size=12
).map(lambda by_id: tuple(by_id.items()))
carries = st.integers(0, 10**15)
unissued_left = st.integers(0, CAP)


@given(weights_of, carries, unissued_left, st.integers(1, 60))
def test_pools_add_up_to_the_emission_and_rewards_to_the_pools(
    weights: tuple[tuple[str, int], ...], carry: int, unissued: int, epoch: int
) -> None:
    s = settled(epoch, weights, carry=carry, unissued=unissued)
    assert s.compute_pool + s.availability_pool + s.treasury_pool == s.emission <= unissued
    assert s.total + s.compute_carry == s.compute_pool + s.treasury_pool + carry
    assert s.availability_carry == s.availability_pool
    assert min([s.compute_pool, s.availability_pool, s.treasury_pool, s.compute_carry]) >= 0
    assert all(units > 0 for _, units in s.rewards)


@given(st.integers(0, CAP), st.integers(0, 1_000_000), st.data())
def test_the_treasury_takes_the_remainder_of_the_pools(
    emission: int, compute_ppm: int, data: st.DataObject
) -> None:
    availability_ppm = data.draw(st.integers(0, 1_000_000 - compute_ppm))
    treasury_ppm = 1_000_000 - compute_ppm - availability_ppm
    policy = replace(
        POLICY,
        compute_ppm=compute_ppm,
        availability_ppm=availability_ppm,
        treasury_ppm=treasury_ppm,
    )
    compute, availability, treasury = pools_of(emission, policy)
    assert compute + availability + treasury == emission
    assert 0 <= treasury - emission * treasury_ppm // 1_000_000 <= 2


@given(weights_of, carries, st.randoms(use_true_random=False))
def test_the_order_of_weights_changes_no_byte_of_the_epoch_file(
    weights: tuple[tuple[str, int], ...], carry: int, random: object
) -> None:
    shuffled = sorted(weights, key=lambda _: random.random())  # type: ignore[attr-defined]
    one = epoch_file(settled(1, weights, carry=carry))
    assert one == epoch_file(settled(1, shuffled, carry=carry))
    assert epoch_file(settle(read_cut(one))) == one


def test_the_worked_epoch() -> None:
    """Design, economics 8 and 14: pools 70/20/10 and burns of 2,280, 19 and 1 credits."""
    s = SETTLED
    assert s.emission == EMISSION
    assert (s.compute_pool, s.availability_pool, s.treasury_pool) == (
        7_949_819_230_768,
        2_271_376_923_076,
        1_135_688_461_540,
    )
    assert s.rewards == (
        ("acct_a", 7_880_690_367_891),
        ("acct_b", 65_672_419_732),
        ("acct_c", 3_456_443_143),
        ("treasury", 1_135_688_461_540),
    )
    assert s.compute_carry == 2


def test_an_epoch_without_work_carries_its_compute_pool_on() -> None:
    s = settled(1, (), carry=5)
    assert s.compute_carry == s.compute_pool + 5
    assert [who for who, _ in s.rewards] == ["treasury"]


def test_the_hard_cap_ends_emission() -> None:
    assert settled(unissued=7).emission == 7
    nothing = settled(unissued=0)
    assert (nothing.emission, nothing.rewards) == (0, ())


def test_a_treasury_that_also_worked_has_one_reward() -> None:
    s = settled(1, (("treasury", 1),))
    assert s.rewards == (("treasury", s.compute_pool + s.treasury_pool),)


def test_the_epoch_file_is_canonical_and_says_all_that_was_split() -> None:
    data = epoch_file(SETTLED)
    assert file_sha256(SETTLED) == sha256(data).hexdigest()
    document = json.loads(data)
    assert (
        json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        == data
    )
    assert document["rewards"][0] == ["acct_a", "7880690367891"]
    used = [["cash", "1000000", "0"]]
    assert document["nodes"][-1] == ["node_acct_c", "acct_c", used, "0", None, [], "0"]
    assert (document["cut_position"], document["carries"]["compute"]) == ("4711", "2")
    assert not any(isinstance(value, float) for value in document.values())


def test_the_epoch_file_never_changes_its_bytes() -> None:
    assert file_sha256(SETTLED) == GOLDEN_SHA256


def test_many_nodes_are_written_as_one_list_is() -> None:
    """Some at a time, and the bytes tell nothing of it."""
    for count in (0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1):
        nodes = [
            NodeCut(f"node_{n}", f"acct_\u00e9{n}", (Use("cash", n, 1),)) for n in range(count)
        ]
        data = epoch_file(settle(replace(SETTLED.cut, nodes=nodes)))
        plain = json.dumps(
            json.loads(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        assert data == plain.encode()
        assert len(read_cut(data).nodes) == count


# Sealing.


def test_a_seal_holds_the_totals_and_the_hash_of_the_file() -> None:
    fact = sealed_fact(SETTLED, END_US + 9, file_sha256(SETTLED))
    assert (fact.epoch, fact.cut_position) == (SETTLED.epoch, SETTLED.cut.cut_position)
    assert fact.epoch != fact.cut_position
    CLOSING.when(seal(SETTLED)).then((stream_of(1), fact))
    assert fact.availability_carry is not None
    carried = fact.compute_carry + fact.availability_carry
    assert fact.rewards + carried == token(fact.minted) == fact.emission
    assert (fact.recipients, fact.chunks) == (4, 1)


def test_a_seal_tells_a_snapshot_of_the_price_that_decides_nothing() -> None:
    taken = PriceSnapshotTaken(
        number=4,
        sources=(),
        window_us=1,
        max_age_us=1,
        max_deviation_bps=1,
        min_sources=1,
        health="healthy",
        by="job",
        at_us=END_US,
        median_micro_usd=2_000_000,
        deviation_bps=None,
        held_to=None,
        max_move_bps=None,
    )
    priced = CLOSING.given((FEED, taken))
    fact = replace(sealed_fact(SETTLED, END_US + 9, file_sha256(SETTLED)), price_snapshot=4)
    priced.when(replace(seal(SETTLED), price_snapshot=4)).then((stream_of(1), fact))
    for later in (replace(taken, number=5), replace(taken, number=5, health="deviation")):
        priced.given((FEED, later)).when(replace(seal(SETTLED), price_snapshot=4)).then(
            (stream_of(1), fact)
        )
    sick = CLOSING.given((FEED, replace(taken, health="deviation")))
    old = CLOSING.given((FEED, replace(taken, at_us=END_US + 9 - LIMITS.max_age_us - 1)))
    for scene in (CLOSING, sick, old):
        command = replace(seal(SETTLED), price_snapshot=4)
        scene.when(command).then_refused(PricesReason.PRICE_SNAPSHOT)


def test_an_open_epoch_is_not_sealed() -> None:
    OPEN.when(seal(SETTLED)).then_refused(EpochsReason.EPOCH_STATE)


def test_a_seal_that_does_not_match_its_cut_is_refused() -> None:
    cut, (first, *others) = SETTLED.cut, SETTLED.rewards
    more = (first[0], first[1] + 1)
    for outcome in (
        replace(SETTLED, cut=replace(cut, policy=replace(POLICY, compute_ppm=0))),
        replace(SETTLED, cut=replace(cut, openings=replace(cut.openings, compute_carry=1))),
        settled(1, carry=1),
        settled(unissued=EMISSION - 1),
        replace(SETTLED, emission=EMISSION + 1),
        replace(SETTLED, rewards=(more, *others)),
        replace(SETTLED, rewards=(*others, first)),
        replace(SETTLED, compute_carry=SETTLED.compute_carry + 1),
        replace(SETTLED, returned_emission=-1),
        replace(SETTLED, adjustments=((first[0], 1),)),
        replace(SETTLED, adjustments=((first[0], -1),)),
        replace(SETTLED, compute_weight=0),
        replace(SETTLED, unallocated=(Unallocated(COMPUTE, ROUNDING, 1, 0), *SETTLED.unallocated)),
        replace(
            SETTLED,
            compute_carry=SETTLED.compute_carry + 1,
            availability_carry=SETTLED.availability_carry - 1,
        ),
    ):
        command = replace(seal(SETTLED), outcome=outcome)
        CLOSING.when(command).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_sealing_twice_changes_nothing_and_another_seal_is_refused() -> None:
    SEALED.when(seal(SETTLED, at_us=END_US + 99)).then_nothing()
    other = settled(1, WEIGHTS[:1])
    SEALED.when(seal(other)).then_refused(EpochsReason.EPOCH_STATE)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [((("a", 1), ("a", 2)), MoneyReason.DUPLICATE_ID), ((("a", -1),), MoneyReason.NEGATIVE_WEIGHT)],
)
def test_weights_must_make_sense(weights: tuple[tuple[str, int], ...], reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        settlement_of(CLOSING, 1, CUT, nodes_of(weights))
    assert refused.value.reason is reason


def test_what_one_epoch_carries_the_next_one_shares() -> None:
    scene = SEALED.given((stream_of(2), replace(closing(2), epoch=2)))
    second = settlement_of(scene, 2, CUT + 50, nodes_of(WEIGHTS))
    assert second.cut.openings.compute_carry == SETTLED.compute_carry == 2
    assert scene.when(seal(second)).changes()[0].fact.compute_carry_before == token(2)


def test_epochs_are_sealed_in_order() -> None:
    unsealed = CLOSING.given((stream_of(2), replace(closing(2), epoch=2)))
    command = seal(replace(SETTLED, cut=replace(SETTLED.cut, epoch=2)))
    unsealed.when(command).then_refused(EpochsReason.EPOCH_OUT_OF_ORDER)


def test_the_policy_of_the_opening_splits_the_epoch() -> None:
    later = replace(POLICY, version=2, compute_ppm=0, treasury_ppm=800_000)
    scene = CLOSING.given((NETWORK, later))
    assert settlement_of(scene, 1, CUT, nodes_of(WEIGHTS)) == SETTLED


@given(st.lists(weights_of, min_size=1, max_size=4), st.integers(0, 4 * EMISSION))
def test_no_unit_is_lost_over_a_row_of_epochs(
    rounds: list[tuple[tuple[str, int], ...]], cap: int
) -> None:
    """I1 to I3: what was ever emitted is in rewards or in a carry."""
    carry, idle_carry, unissued, paid = 0, 0, cap, 0
    for epoch, weights in enumerate(rounds, start=1):
        s = settled(epoch, weights, carry=carry, idle_carry=idle_carry, unissued=unissued)
        carry, idle_carry, unissued = s.compute_carry, s.availability_carry, unissued - s.minted
        paid += s.total
    assert paid + carry + idle_carry + unissued == cap


# Crediting.


def test_rewards_are_credited_and_mature_at_once_without_a_holdback() -> None:
    content = {"epoch": 1, "chunk": 1, "rewards": REWARDS, "at_us": END_US + 10}
    SEALED.when(CREDIT).then(
        (stream_of(1), RewardsCredited(**content)),  # type: ignore[arg-type]
        (stream_of(1), RewardsMatured(**content)),  # type: ignore[arg-type]
    )
    assert epoch_of(SEALED.after(CREDIT), 1).status == "settled"


def test_nothing_is_credited_before_the_seal() -> None:
    CLOSING.when(CREDIT).then_refused(EpochsReason.EPOCH_STATE)


def test_a_chunk_sent_twice_counts_once() -> None:
    credited = SEALED.after(CREDIT)
    credited.when(replace(CREDIT, at_us=END_US + 77)).then_nothing()
    other = replace(CREDIT, rewards=REWARDS[:1])
    credited.when(other).then_refused(EpochsReason.CHUNK_OUT_OF_ORDER)


def many(count: int) -> Settlement:
    weights = tuple((f"acct_{index:05}", index + 1) for index in range(count))
    return settled(1, weights)


def test_a_chunk_is_found_by_its_number_and_all_of_them_are_the_rewards() -> None:
    for count, sizes in ((0, []), (1, [1]), (500, [500]), (501, [500, 1]), (1_000, [500, 500])):
        outcome = replace(SETTLED, rewards=tuple((f"a{n:05}", n + 1) for n in range(count)))
        chunks = chunks_of(rewards_of(outcome))
        assert [len(chunk) for chunk in chunks] == sizes
        for number, chunk in enumerate(chunks, start=1):
            assert chunk_of(outcome, number) == chunk
        assert chunk_of(outcome, len(chunks) + 1) == ()


def test_chunks_come_in_order_and_together_are_the_seal() -> None:
    settlement = many(1_200)
    chunks = chunks_of(rewards_of(settlement))
    assert [len(chunk) for chunk in chunks] == [CHUNK_MAX, CHUNK_MAX, 201]
    scene = CLOSING.after(seal(settlement))
    commands = [
        CreditRewards(epoch=1, chunk=number, rewards=chunk, at_us=END_US + number)
        for number, chunk in enumerate(chunks, start=1)
    ]
    scene.when(commands[1]).then_refused(EpochsReason.CHUNK_OUT_OF_ORDER)
    for number, command in enumerate(commands, start=1):
        scene = scene.after(command)
        assert epoch_of(scene, 1).status == ("settled" if number == 3 else "sealed")
    assert epoch_of(scene, 1).credited_units == settlement.total
    surplus = replace(commands[2], chunk=4)
    scene.when(surplus).then_refused(EpochsReason.CHUNK_OUT_OF_ORDER)


def shifted(rewards: tuple[Reward, ...], units: int) -> tuple[Reward, ...]:
    first = replace(rewards[0], amount=rewards[0].amount + token(units))
    return (first, *rewards[1:])


@pytest.mark.parametrize(
    "rewards",
    [
        REWARDS[:-1],
        REWARDS[::-1],
        shifted(REWARDS, 1),
        shifted(REWARDS, -1),
        (*REWARDS[:-1], replace(REWARDS[-1], amount=credit(1_135_688_461_540))),
        (*REWARDS[:2], REWARDS[1], REWARDS[3]),
        (),
    ],
)
def test_rewards_that_were_not_sealed_are_refused(rewards: tuple[Reward, ...]) -> None:
    SEALED.when(replace(CREDIT, rewards=rewards)).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_a_reward_of_one_unit_is_credited_and_one_of_none_is_not() -> None:
    rewards = (Reward("a", token(1)), Reward("b", token(2)))
    fact = replace(sealed_fact(SETTLED, END_US, "00"), rewards=token(3), recipients=2)
    scene = CLOSING.given((stream_of(1), fact))
    assert scene.when(replace(CREDIT, rewards=rewards)).changes()
    for units in (0, -1):
        none = (Reward("a", token(units)), Reward("b", token(3 - units)))
        scene.when(replace(CREDIT, rewards=none)).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_nobody_is_credited_in_two_chunks() -> None:
    settlement = many(600)
    first, second = chunks_of(rewards_of(settlement))
    scene = CLOSING.after(seal(settlement)).after(replace(CREDIT, rewards=first))
    again = (replace(second[0], account_id=first[-1].account_id), *second[1:])
    scene.when(replace(CREDIT, chunk=2, rewards=again)).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_an_early_chunk_cannot_use_up_what_later_ones_need() -> None:
    settlement = many(600)
    first, second = chunks_of(rewards_of(settlement))
    rest = sum(reward.amount.units for reward in second)
    greedy = shifted(first, rest - len(second) + 1)
    scene = CLOSING.after(seal(settlement))
    scene.when(replace(CREDIT, rewards=greedy)).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_an_epoch_that_pays_nobody_is_settled_by_its_seal() -> None:
    policy = replace(POLICY, segments=(EmissionSegment(2, 1, 5),))
    scene = Scene((*READY.past[1:], (NETWORK, policy), *CLOSING.past[1:]), READY.balances)
    nothing = settled(policy=policy)
    assert nothing.rewards == ()
    assert epoch_of(scene.after(seal(nothing)), 1).status == "settled"


# Maturing after a holdback.

HELD = replace(POLICY, holdback_epochs=4)
HELD_SCENE = Scene(((NETWORK, HELD), *CLOSING.past[1:]), READY.balances)
HELD_SCENE = HELD_SCENE.after(seal(settled(policy=HELD)))
DUE_US = END_US + 4 * WEEK_US
MATURE = MatureRewards(epoch=1, chunk=1, rewards=REWARDS, at_us=DUE_US)


def test_held_back_rewards_mature_later_and_once() -> None:
    credited = HELD_SCENE.after(CREDIT)
    assert epoch_of(credited, 1).status == "credited"
    credited.when(replace(MATURE, at_us=DUE_US - 1)).then_refused(EpochsReason.EPOCH_NOT_OVER)
    matured = RewardsMatured(epoch=1, chunk=1, rewards=REWARDS, at_us=DUE_US)
    credited.when(MATURE).then((stream_of(1), matured))
    settled = credited.after(MATURE)
    assert epoch_of(settled, 1).status == "settled"
    settled.when(MATURE).then_nothing()


def test_only_what_was_credited_matures() -> None:
    HELD_SCENE.when(MATURE).then_refused(EpochsReason.CHUNK_OUT_OF_ORDER)
    other = replace(MATURE, rewards=shifted(REWARDS, 1))
    HELD_SCENE.after(CREDIT).when(other).then_refused(EpochsReason.REWARDS_MISMATCH)
    CLOSING.when(MATURE).then_refused(EpochsReason.EPOCH_STATE)


def test_an_unknown_epoch_cannot_be_read() -> None:
    with pytest.raises(Refused) as caught:
        epoch_of(READY, 1)
    assert caught.value.reason is EpochsReason.EPOCH_UNKNOWN


def test_a_seal_tells_what_stays_open_of_adjustments_by_account() -> None:
    told = replace(SETTLED, adjustments=(("a", -5), ("b", 7)))
    fact = sealed_fact(told, END_US, "00")
    assert [(one.account_id, one.delta) for one in fact.adjustments_open] == [("a", -5), ("b", 7)]


def test_a_chunk_has_500_rewards_and_a_close_names_a_hundred_missing_at_most() -> None:
    assert (CHUNK_MAX, MISSING_MAX) == (500, 100)
