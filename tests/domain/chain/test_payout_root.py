"""Payouts: minted as sealed, one root after the other, each claim once."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from domain.chain.payout_root import (
    NO_ROOT,
    BuildPayoutRoot,
    ConfirmEpochMint,
    ConfirmPayout,
    EpochMintConfirmed,
    PayoutConfirmed,
    PayoutRootBuilt,
    RecordRootAccepted,
    RecordRootProposed,
    RecordRootVetoed,
    RootAccepted,
    RootProposed,
    RootVetoed,
    claim_stream,
    last_root,
    payout_of,
    stream_of,
)
from domain.chain.reasons import ChainReason
from domain.epochs.epoch import CreditRewards, rewards_of, sealed_fact
from domain.epochs.epoch import stream_of as epoch_stream
from domain.epochs.epoch_file import file_sha256
from domain.epochs.reasons import EpochsReason
from domain.funds.reasons import FundsReason
from domain.money import credit, token
from tests.domain.scenes.epochs import CLOSING, END_US, closing, opened, settled
from tests.given import Scene

SETTLED = settled()
SEALED_FACT = sealed_fact(SETTLED, END_US + 9, file_sha256(SETTLED))
SEALED = CLOSING.given((epoch_stream(1), SEALED_FACT))
CREDITED = SEALED.after(
    CreditRewards(epoch=1, chunk=1, rewards=rewards_of(SETTLED), at_us=END_US + 10)
)
PAYOUT = stream_of(1)
ROOT = "0x" + "11" * 32


def as_fact(kind: type[Any], command: Any) -> Any:
    """The fact with the content of its command; what only one of them has is left out, or empty."""
    known = {field.name for field in fields(kind)}
    told = {field.name: getattr(command, field.name) for field in fields(command)}
    none = {"set_aside": 0} if kind is PayoutConfirmed else {}
    return kind(**{name: value for name, value in told.items() if name in known}, **none)


MINT = ConfirmEpochMint(
    epoch=1,
    amount=SEALED_FACT.emission,
    settlement_id=SEALED_FACT.file_sha256,
    tx_hash="0x01",
    block_number=5,
    at_us=1,
)
BUILD = BuildPayoutRoot(
    epoch=1,
    seq=1,
    root=ROOT,
    manifest_sha256=SEALED_FACT.file_sha256,
    previous_root=NO_ROOT,
    committed=SEALED_FACT.rewards,
    leaves=4,
    at_us=2,
)
PROPOSE = RecordRootProposed(epoch=1, seq=1, root=ROOT, valid_at_us=99, tx_hash="0x02", at_us=3)
VETO = RecordRootVetoed(epoch=1, seq=1, root=ROOT, reason="odd", tx_hash="0x03", at_us=4)
ACCEPT = RecordRootAccepted(epoch=1, seq=1, root=ROOT, tx_hash="0x04", at_us=5)

MINTED = CREDITED.after(MINT)
BUILT = MINTED.after(BUILD)
PROPOSED = BUILT.after(PROPOSE)
VETOED = PROPOSED.after(VETO)
ACCEPTED = PROPOSED.after(ACCEPT)


def test_the_straight_way_records_each_step() -> None:
    CREDITED.when(MINT).then((PAYOUT, as_fact(EpochMintConfirmed, MINT)))
    MINTED.when(BUILD).then((PAYOUT, as_fact(PayoutRootBuilt, BUILD)))
    BUILT.when(PROPOSE).then((PAYOUT, as_fact(RootProposed, PROPOSE)))
    PROPOSED.when(ACCEPT).then((PAYOUT, as_fact(RootAccepted, ACCEPT)))
    assert payout_of(ACCEPTED, 1).status == "accepted"


@pytest.mark.parametrize("command", [MINT, BUILD, PROPOSE, ACCEPT])
def test_what_is_seen_twice_is_recorded_once(command: Any) -> None:
    ACCEPTED.when(replace(command, at_us=1_000)).then_nothing()


def test_the_mint_is_the_one_that_was_sealed() -> None:
    for other in (
        replace(MINT, amount=MINT.amount + token(1)),
        replace(MINT, amount=credit(MINT.amount.units)),
        replace(MINT, settlement_id="0" * 64),
    ):
        CREDITED.when(other).then_refused(EpochsReason.REWARDS_MISMATCH)
    CLOSING.when(MINT).then_refused(EpochsReason.EPOCH_STATE)
    MINTED.when(replace(MINT, tx_hash="0xff")).then_refused(ChainReason.PAYOUT_EXISTS)


def test_what_the_seal_returned_is_not_minted() -> None:
    returned = replace(SEALED_FACT, release=token(5), returned=token(7), returned_release=token(5))
    scene = CLOSING.given((epoch_stream(1), returned))
    scene.when(MINT).then_refused(EpochsReason.REWARDS_MISMATCH)
    minted = replace(MINT, amount=token(SEALED_FACT.emission.units - 2))
    scene.when(minted).then((PAYOUT, as_fact(EpochMintConfirmed, minted)))


def test_the_mint_does_not_wait_for_the_last_chunk() -> None:
    SEALED.when(MINT).then((PAYOUT, as_fact(EpochMintConfirmed, MINT)))


def test_the_root_waits_for_the_last_chunk_and_for_the_mint() -> None:
    SEALED.after(MINT).when(BUILD).then_refused(EpochsReason.EPOCH_STATE)
    CREDITED.when(BUILD).then_refused(ChainReason.PAYOUT_STATE)


def test_a_root_names_its_epoch_file_and_its_predecessor() -> None:
    other_file = replace(BUILD, manifest_sha256="0" * 64)
    MINTED.when(other_file).then_refused(EpochsReason.REWARDS_MISMATCH)
    MINTED.when(replace(BUILD, seq=2)).then_refused(
        ChainReason.PAYOUT_STATE, epoch=1, seq=2, expected=1
    )
    MINTED.when(replace(BUILD, previous_root=ROOT)).then_refused(
        ChainReason.PAYOUT_STATE, epoch=1, seq=1, expected=1
    )
    MINTED.when(replace(BUILD, leaves=0)).then_refused(EpochsReason.REWARDS_MISMATCH)
    MINTED.when(replace(BUILD, committed=credit(5))).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_a_second_root_of_an_epoch_needs_a_veto() -> None:
    other = replace(BUILD, root="0x" + "22" * 32)
    BUILT.when(other).then_refused(ChainReason.PAYOUT_STATE)
    PROPOSED.when(other).then_refused(ChainReason.PAYOUT_STATE)
    ACCEPTED.when(other).then_refused(ChainReason.PAYOUT_STATE)
    VETOED.when(other).then((PAYOUT, as_fact(PayoutRootBuilt, other)))


def test_a_vetoed_root_may_be_proposed_again_under_its_number() -> None:
    VETOED.when(VETO).then_nothing()
    VETOED.when(PROPOSE).then_nothing()
    again = replace(PROPOSE, tx_hash="0x05")
    VETOED.when(again).then((PAYOUT, as_fact(RootProposed, again)))
    second_veto = replace(VETO, tx_hash="0x06")
    VETOED.after(again).when(second_veto).then((PAYOUT, as_fact(RootVetoed, second_veto)))


def test_steps_do_not_come_out_of_order() -> None:
    for scene, command in (
        (CREDITED, PROPOSE),
        (MINTED, ACCEPT),
        (BUILT, ACCEPT),
        (BUILT, VETO),
        (VETOED, ACCEPT),
        (ACCEPTED, VETO),
        (ACCEPTED, replace(PROPOSE, tx_hash="0x07")),
    ):
        scene.when(command).then_refused(ChainReason.PAYOUT_STATE)


def test_a_root_that_is_not_ours_is_refused() -> None:
    BUILT.when(replace(PROPOSE, root="0x" + "33" * 32)).then_refused(ChainReason.PAYOUT_STATE)
    BUILT.when(replace(PROPOSE, seq=2)).then_refused(ChainReason.PAYOUT_STATE)


# The next root.

THIRD = settled(3, carry=SETTLED.compute_carry)
THIRD_FACT = sealed_fact(THIRD, END_US + 20, file_sha256(THIRD))
LATER = ACCEPTED.given(
    (epoch_stream(3), opened(3)), (epoch_stream(3), closing(3)), (epoch_stream(3), THIRD_FACT)
)
LATER = LATER.after(
    CreditRewards(epoch=3, chunk=1, rewards=rewards_of(THIRD), at_us=END_US + 21)
).after(replace(MINT, epoch=3, amount=THIRD_FACT.emission, settlement_id=THIRD_FACT.file_sha256))
NEXT = replace(
    BUILD,
    epoch=3,
    seq=2,
    root="0x" + "44" * 32,
    manifest_sha256=THIRD_FACT.file_sha256,
    previous_root=ROOT,
    committed=BUILD.committed + THIRD_FACT.rewards,
)


def test_numbers_count_roots_and_skip_epochs_without_one() -> None:
    LATER.when(NEXT).then((stream_of(3), as_fact(PayoutRootBuilt, NEXT)))


def test_no_total_falls_from_root_to_root() -> None:
    less = replace(NEXT, committed=BUILD.committed - token(1))
    LATER.when(less).then_refused(EpochsReason.REWARDS_MISMATCH)
    LATER.when(replace(NEXT, leaves=3)).then_refused(EpochsReason.REWARDS_MISMATCH)
    LATER.when(replace(NEXT, seq=3)).then_refused(
        ChainReason.PAYOUT_STATE, epoch=3, seq=3, expected=2
    )


def test_the_root_before_an_epoch_is_that_of_the_newest_one_before_it() -> None:
    after = LATER.after(NEXT)
    first, third = payout_of(after, 1), payout_of(after, 3)
    for epoch, root in ((1, None), (2, first), (3, first), (4, third), (9, third)):
        assert last_root(after, epoch) == root, epoch


def test_the_next_root_waits_for_the_last_one() -> None:
    pending = tuple(item for item in LATER.past if not isinstance(item[1], RootAccepted))
    replace(LATER, past=pending).when(NEXT).then_refused(
        ChainReason.PAYOUT_STATE, epoch=3, rule="the root before is pending"
    )


# Claims.

CLAIM = ConfirmPayout(
    distributor="0xdd",
    account_id="acct_a",
    address="0xaa",
    seq=1,
    amount=token(60),
    cumulative=token(100),
    tx_hash="0x09",
    log_index=0,
    block_number=9,
    at_us=9,
)
CLAIMS = claim_stream("0xdd", "0xaa", 100)
OWED = Scene().having({"party:acct_a:matured": 60})


def test_a_claim_is_recorded_once() -> None:
    confirmed = as_fact(PayoutConfirmed, CLAIM)
    OWED.when(CLAIM).then((CLAIMS, confirmed))
    paid = Scene().given((CLAIMS, confirmed))
    paid.when(replace(CLAIM, at_us=99)).then_nothing()
    paid.when(replace(CLAIM, tx_hash="0x0a")).then_refused(ChainReason.PAYOUT_EXISTS)


def test_nobody_is_paid_more_than_matured() -> None:
    OWED.when(replace(CLAIM, amount=token(61))).then_refused(EpochsReason.REWARDS_MISMATCH)
    OWED.when(replace(CLAIM, cumulative=token(59))).then_refused(EpochsReason.REWARDS_MISMATCH)


TREASURY_CLAIM = replace(CLAIM, account_id="treasury", granted=40)


def test_what_grants_set_aside_of_a_leaf_is_claimed_and_stays_set_aside() -> None:
    held = Scene().having({"party:treasury:matured": 20})
    confirmed = replace(as_fact(PayoutConfirmed, TREASURY_CLAIM), set_aside=40)
    held.when(TREASURY_CLAIM).then((CLAIMS, confirmed))
    held.given((CLAIMS, confirmed)).when(replace(TREASURY_CLAIM, granted=0)).then_nothing()
    held.when(replace(TREASURY_CLAIM, granted=39)).then_refused(EpochsReason.REWARDS_MISMATCH)
    back = Scene().having({"party:treasury:matured": 60})
    back.when(replace(TREASURY_CLAIM, granted=-1)).then_refused(EpochsReason.REWARDS_MISMATCH)


def test_nobody_but_the_treasury_claims_for_grants() -> None:
    OWED.when(replace(CLAIM, amount=token(61), granted=1)).then_refused(
        EpochsReason.REWARDS_MISMATCH
    )


def test_a_claim_is_a_positive_amount_of_token() -> None:
    for amount in (token(0), token(-1), credit(5)):
        OWED.when(replace(CLAIM, amount=amount)).then_refused(FundsReason.AMOUNT_NOT_POSITIVE)
        OWED.when(replace(CLAIM, cumulative=amount)).then_refused(FundsReason.AMOUNT_NOT_POSITIVE)
    for units, cumulative in ((1, 1), (1, 100), (60, 60)):
        assert OWED.when(
            replace(CLAIM, amount=token(units), cumulative=token(cumulative))
        ).changes()


def test_the_first_root_has_the_number_one_no_root_before_it_and_a_leaf_at_least() -> None:
    none = token(0)
    for taken in (replace(BUILD, leaves=1), replace(BUILD, committed=none)):
        MINTED.when(taken).then((PAYOUT, as_fact(PayoutRootBuilt, taken)))
    for wrong in (replace(BUILD, seq=0), replace(BUILD, seq=2), replace(BUILD, previous_root=ROOT)):
        MINTED.when(wrong).then_refused(
            ChainReason.PAYOUT_STATE, epoch=1, seq=wrong.seq, expected=1
        )
    for less in (
        replace(BUILD, leaves=0),
        replace(BUILD, committed=token(-1)),
        replace(BUILD, committed=credit(BUILD.committed.units)),
    ):
        MINTED.when(less).then_refused(
            EpochsReason.REWARDS_MISMATCH, epoch=1, rule="a root never shrinks"
        )


def test_the_next_root_has_as_many_leaves_and_as_much_committed_at_least() -> None:
    same = replace(NEXT, committed=BUILD.committed, leaves=BUILD.leaves)
    LATER.when(same).then((stream_of(3), as_fact(PayoutRootBuilt, same)))
    LATER.when(replace(same, previous_root=NO_ROOT)).then_refused(
        ChainReason.PAYOUT_STATE, epoch=3, seq=2, expected=2
    )
