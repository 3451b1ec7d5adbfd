"""Corrections of rewards: what has matured is never taken, what is asked for is taken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.authority.reasons import AuthorityReason
from domain.authority.vote import VoteCast
from domain.chain.leaves import LeafBook
from domain.epochs.epoch import (
    Adjustment,
    CreditRewards,
    MatureRewards,
    RewardsMatured,
    epoch_of,
    openings,
    rewards_of,
    sealed_fact,
    stream_of,
)
from domain.epochs.epoch_file import file_sha256
from domain.epochs.forfeit import ForfeitRewards
from domain.epochs.policy import NETWORK
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import (
    Reward,
    RewardAdjusted,
    RewardChanges,
    RewardsForfeited,
    RewardSlashed,
)
from domain.epochs.reward_correction import (
    ADJUSTED_MAX,
    ADJUSTMENT,
    SLASH,
    AcceptRewardCorrection,
    ProposeRewardCorrection,
    RewardCorrectionAccepted,
    correction_stream,
)
from domain.epochs.reward_terms import REWARD_TERMS
from domain.money import token
from domain.parties.account import AccountOpened, WalletLinked
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes.epochs import CLOSING, END_US, POLICY, READY, WEEK_US, settled
from tests.examples import examples
from tests.given import Scene
from tests.scenes.governors import ANNA, BORIS, THREE, Governor, enrolled

HELD = replace(POLICY, holdback_epochs=4, rewards=replace(REWARD_TERMS, cap_multiple_ppm=None))
SETTLED = settled(policy=HELD)
SEALED_HASH = file_sha256(SETTLED)
REWARDS = rewards_of(SETTLED)
OF = {reward.account_id: reward.amount.units for reward in REWARDS}
NOW_US = END_US + 20
CREDIT = CreditRewards(epoch=1, chunk=1, rewards=REWARDS, at_us=END_US + 10)
MATURE = MatureRewards(epoch=1, chunk=1, rewards=REWARDS, at_us=END_US + 4 * WEEK_US)


def opened(account_id: str) -> tuple[Stream[Any], AccountOpened]:
    fact = AccountOpened(account_id=account_id, kind="party", opened_by="op", at_us=1)
    return Stream("account", account_id), fact


SEALED = Scene(((NETWORK, HELD), *CLOSING.past[1:]), READY.balances).given(
    *map(opened, ("acct_a", "acct_b", "acct_late")),
    (stream_of(1), sealed_fact(SETTLED, END_US + 9, SEALED_HASH)),
)
CREDITED = SEALED.after(CREDIT).given(*enrolled(*THREE))
TAKE = ProposeRewardCorrection(
    correction_id="c1",
    kind=SLASH,
    epoch=1,
    account_id="acct_b",
    delta=-1_000,
    reason="spoofed",
    evidence_position=77,
    by="mem_a",
    at_us=NOW_US,
)
GIVE = replace(TAKE, correction_id="c2", kind=ADJUSTMENT, delta=500, reason="late")


def yes(asked: ProposeRewardCorrection, who: Governor = BORIS) -> AcceptRewardCorrection:
    """A signed yes to this; what else was proposed it is not good for."""
    subject = CREDITED.after(asked).state(correction_stream(asked.correction_id)).ballot()[0]
    return AcceptRewardCorrection(
        correction_id=asked.correction_id,
        open_epoch=2,
        chunk=1,
        rewards=REWARDS,
        vote=who.vote(subject),
        key_id="key_b",
        by="mem_b",
        at_us=NOW_US,
    )


def proposed(asked: ProposeRewardCorrection, scene: Scene | None = None) -> Scene:
    """Proposed, and with one vote of the two that are needed."""
    scene = (CREDITED if scene is None else scene).after(asked)
    return scene.after(yes(asked, ANNA))


YES = yes(TAKE)


def accepted(
    asked: ProposeRewardCorrection, slashed: int, adjusted: int
) -> tuple[Stream[Any], RewardCorrectionAccepted]:
    fact = RewardCorrectionAccepted(
        correction_id=asked.correction_id,
        slashed=slashed,
        adjusted=adjusted,
        adjusted_epoch=2 if adjusted else None,
        proposed_by="mem_a",
        by="mem_b",
        at_us=NOW_US,
    )
    return correction_stream(asked.correction_id), fact


def slashed(asked: ProposeRewardCorrection, units: int) -> tuple[Stream[Any], RewardSlashed]:
    fact = RewardSlashed(
        epoch=1,
        correction_id=asked.correction_id,
        account_id=asked.account_id,
        amount=token(units),
        reason=asked.reason,
        evidence_position=77,
        proposed_by="mem_a",
        by="mem_b",
        at_us=NOW_US,
    )
    return stream_of(1), fact


def adjusted(asked: ProposeRewardCorrection, delta: int) -> tuple[Stream[Any], RewardAdjusted]:
    fact = RewardAdjusted(
        epoch=2,
        original_epoch=1,
        correction_id=asked.correction_id,
        account_id=asked.account_id,
        delta=delta,
        reason=asked.reason,
        proposed_by="mem_a",
        by="mem_b",
        at_us=NOW_US,
    )
    return stream_of(2), fact


def does(scene: Scene, command: Any, *expected: Any) -> None:
    """The vote that carries, and what comes of it."""
    vote, *rest = scene.when(command).changes()
    assert isinstance(vote.fact, VoteCast)
    assert vote.fact.carries
    assert [(one.stream, one.fact) for one in rest] == list(expected)


# Slashing.


def test_a_slash_needs_a_second_person_and_takes_what_it_asked_for_once() -> None:
    asked = proposed(TAKE)
    assert asked.past[-1][1].count == 1, "one vote takes nothing"
    asked.when(yes(TAKE, ANNA)).then_refused(AuthorityReason.VOTED_ALREADY)
    other = replace(TAKE, delta=-(10**15))
    asked.when(yes(other)).then_refused(AuthorityReason.VOTE_MISMATCH, field="content_sha256")
    does(asked, YES, accepted(TAKE, 1_000, 0), slashed(TAKE, 1_000))
    done = asked.after(YES)
    done.when(YES).then_nothing()
    done.when(TAKE).then_nothing()
    done.when(replace(TAKE, delta=-2)).then_refused(EpochsReason.REWARD_CORRECTION_STATE)


def test_a_slash_takes_at_most_what_has_not_matured() -> None:
    everything = replace(TAKE, delta=-(10**18))
    asked = proposed(everything)
    does(
        asked,
        yes(everything),
        accepted(everything, OF["acct_b"], 0),
        slashed(everything, OF["acct_b"]),
    )
    again = replace(everything, correction_id="c9")
    more = asked.after(yes(everything)).after(again)
    more.when(yes(again)).then_refused(EpochsReason.NOTHING_UNMATURED)


def test_what_has_matured_is_never_slashed() -> None:
    asked = proposed(TAKE).after(MATURE)
    asked.when(YES).then_refused(EpochsReason.NOTHING_UNMATURED)


def test_what_was_slashed_does_not_mature() -> None:
    left = tuple(
        replace(one, amount=token(one.amount.units - 1_000)) if one.account_id == "acct_b" else one
        for one in REWARDS
    )
    fact = RewardsMatured(epoch=1, chunk=1, rewards=left, at_us=MATURE.at_us)
    proposed(TAKE).after(YES).when(MATURE).then((stream_of(1), fact))
    everything = replace(TAKE, delta=-(10**18))
    gone = proposed(everything).after(yes(everything)).when(MATURE).changes()[0].fact
    assert "acct_b" not in {one.account_id for one in gone.rewards}


def test_the_reward_it_is_about_is_the_credited_one() -> None:
    asked = proposed(TAKE)
    asked.when(replace(YES, rewards=REWARDS[:1])).then_refused(EpochsReason.REWARDS_MISMATCH)
    asked.when(replace(YES, chunk=0, rewards=())).then_refused(EpochsReason.NOTHING_UNMATURED)


@pytest.mark.parametrize(
    ("changed", "reason", "told"),
    [
        ({"account_id": "acct_c"}, PartiesReason.ACCOUNT_UNKNOWN, {"account_id": "acct_c"}),
        ({"account_id": "treasury"}, PartiesReason.ACCOUNT_UNKNOWN, {"account_id": "treasury"}),
        ({"epoch": 9}, EpochsReason.EPOCH_UNKNOWN, {"epoch": 9}),
        ({"epoch": 2}, EpochsReason.EPOCH_STATE, {"epoch": 2, "status": "open"}),
        ({"kind": "fine"}, PartiesReason.UNKNOWN_MODE, {"kind": "fine"}),
        ({"delta": 1}, PricesReason.AMOUNT_OUT_OF_RANGE, {"field": "delta", "delta": 1}),
        (
            {"delta": 0, "kind": ADJUSTMENT},
            PricesReason.AMOUNT_OUT_OF_RANGE,
            {"field": "delta", "delta": 0},
        ),
        ({"reason": ""}, PricesReason.AMOUNT_OUT_OF_RANGE, {"field": "reason"}),
    ],
)
def test_what_cannot_be_corrected_is_refused(
    changed: dict[str, object], reason: Reason, told: dict[str, object]
) -> None:
    CREDITED.when(replace(TAKE, **changed)).then_refused(reason, **told)  # type: ignore[arg-type]


def test_a_correction_that_nobody_proposed_is_unknown() -> None:
    CREDITED.when(YES).then_refused(EpochsReason.REWARD_CORRECTION_UNKNOWN)


# Adjusting.


def test_what_is_given_settles_with_the_open_epoch() -> None:
    asked = proposed(GIVE)
    does(asked, yes(GIVE), accepted(GIVE, 0, 500), adjusted(GIVE, 500))
    asked.when(replace(yes(GIVE), open_epoch=1)).then_refused(EpochsReason.EPOCH_STATE)
    asked.when(replace(yes(GIVE), open_epoch=3)).then_refused(EpochsReason.EPOCH_UNKNOWN)


def test_what_is_taken_comes_from_the_unmatured_reward_first() -> None:
    owed = OF["acct_b"] + 70
    take = replace(GIVE, delta=-owed)
    does(
        proposed(take),
        yes(take),
        accepted(take, OF["acct_b"], -70),
        slashed(take, OF["acct_b"]),
        adjusted(take, -70),
    )
    does(
        proposed(take, CREDITED.after(MATURE)),
        yes(take),
        accepted(take, 0, -owed),
        adjusted(take, -owed),
    )


def test_who_had_no_reward_in_the_epoch_may_be_given_one() -> None:
    late = replace(GIVE, account_id="acct_late")
    unrewarded = replace(yes(late), chunk=0, rewards=())
    does(proposed(late), unrewarded, accepted(late, 0, 500), adjusted(late, 500))


def test_adjustments_of_so_many_accounts_wait_for_a_seal() -> None:
    many = [
        adjusted(replace(GIVE, account_id=f"acct_{number}"), 1) for number in range(ADJUSTED_MAX)
    ]
    full = proposed(GIVE).given(*many)
    full.when(yes(GIVE)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    does(proposed(GIVE).given(*many[1:]), yes(GIVE), accepted(GIVE, 0, 500), adjusted(GIVE, 500))


def test_an_epoch_opens_with_what_is_open_of_the_one_before_and_its_own_adjustments() -> None:
    before = replace(
        sealed_fact(SETTLED, END_US, SEALED_HASH),
        adjustments_open=(Adjustment("a", -5), Adjustment("b", 2)),
    )
    changes = RewardChanges(adjusted={"a": 5, "b": 1, "c": -3}, forfeited=40, forfeits=1)
    opening = openings(before, 9, 0, changes)
    assert opening.adjustments == (("b", 3), ("c", -3))
    assert opening.compute_carry == SETTLED.compute_carry + 40


# Forfeits.

MATURED = CREDITED.after(MATURE).having({"party:acct_a:matured": OF["acct_a"]})
FORFEIT = ForfeitRewards(
    epoch=2,
    through_epoch=1,
    after=0,
    rewards=(Reward("acct_a", token(OF["acct_a"])),),
    at_us=MATURE.at_us + 4 * WEEK_US,
)


def test_what_matured_long_ago_without_a_wallet_goes_back_to_the_pool() -> None:
    fact = RewardsForfeited(epoch=2, through_epoch=1, rewards=FORFEIT.rewards, at_us=FORFEIT.at_us)
    MATURED.when(FORFEIT).then((stream_of(2), fact))
    done = MATURED.after(FORFEIT)
    assert epoch_of(done, 2).changes.forfeited == OF["acct_a"]
    done.when(FORFEIT).then_refused(EpochsReason.EPOCH_STATE)


def test_nobody_forfeits_before_the_policys_time_nor_with_a_wallet_nor_more_than_matured() -> None:
    early = replace(FORFEIT, at_us=FORFEIT.at_us - 1)
    MATURED.when(early).then_refused(EpochsReason.FORFEIT_NOT_DUE)
    CREDITED.when(FORFEIT).then_refused(EpochsReason.FORFEIT_NOT_DUE)
    linked = WalletLinked(
        account_id="acct_a",
        address="0x" + "a" * 40,
        message="m",
        signature="s",
        effective_at_us=2**62,
        at_us=1,
    )
    with_wallet = MATURED.given((Stream("account", "acct_a"), linked))
    with_wallet.when(FORFEIT).then_refused(EpochsReason.FORFEIT_NOT_DUE)
    much = replace(FORFEIT, rewards=(Reward("acct_a", token(OF["acct_a"] + 1)),))
    MATURED.when(much).then_refused(EpochsReason.REWARDS_MISMATCH)
    own = replace(FORFEIT, rewards=(Reward("treasury", token(1)),))
    MATURED.having({"party:treasury:matured": 1}).when(own).then_refused(
        EpochsReason.FORFEIT_NOT_DUE
    )
    MATURED.when(replace(FORFEIT, rewards=())).then_refused(EpochsReason.REWARDS_MISMATCH)
    MATURED.when(replace(FORFEIT, epoch=1)).then_refused(EpochsReason.EPOCH_STATE)
    never = replace(HELD, rewards=None)
    Scene(((NETWORK, never), *MATURED.past[1:]), MATURED.balances).when(FORFEIT).then_refused(
        EpochsReason.FORFEIT_NOT_DUE
    )


# Leaves.

WHO = ("acct_a", "acct_b", "treasury")
steps = st.lists(
    st.tuples(
        st.sampled_from(("mature", "slash", "forfeit", "link", "root")),
        st.sampled_from(WHO),
        st.integers(1, 1_000),
    ),
    max_size=40,
)


@examples(60)
@given(steps)
def test_no_leaf_falls_over_any_order_of_maturing_slashing_forfeiting_linking_and_roots(
    story: list[tuple[str, str, int]],
) -> None:
    """The rules of the decisions, as far as leaves go: a slash takes what has not matured and
    matures to the treasury; only who never had a wallet forfeits.
    """
    book, unmatured = LeafBook(), dict.fromkeys(WHO, 5_000)
    ever, paid_in = 0, sum(unmatured.values())
    for at_us, (step, who, units) in enumerate(story):
        has_wallet = bool(book.wallets.get(who))
        taken = min(units, unmatured[who])
        if step == "mature":
            unmatured[who] -= taken
            book.mature(who, taken)
        elif step == "slash" and who != "treasury":
            unmatured[who] -= taken
            book.mature("treasury", taken)
        elif step == "forfeit" and not has_wallet and who != "treasury":
            lost = min(units, book.matured.get(who, 0))
            book.forfeit(who, lost)
            ever += lost
        elif step == "link":
            book.link(who, f"0x{who}{units % 3}", at_us + units % 2)
        before = dict(book.totals)
        book.take(at_us)
        assert all(book.totals[address] >= total for address, total in before.items())
    assert sum(book.matured.values()) + sum(unmatured.values()) + ever == paid_in
    assert sum(book.totals.values()) <= sum(book.matured.values())
