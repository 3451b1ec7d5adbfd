"""Our transactions: one nonce per intent, every step once, nothing final twice."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.chain.reasons import ChainReason
from domain.chain.transaction import (
    ChainTxBroadcast,
    ChainTxFailed,
    ChainTxFinalized,
    ChainTxIntended,
    ChainTxMined,
    ChainTxReorged,
    ChainTxSigned,
    IntendChainTx,
    RecordChainTxBroadcast,
    RecordChainTxFailed,
    RecordChainTxFinalized,
    RecordChainTxMined,
    RecordChainTxReorged,
    RecordChainTxSigned,
    bumped,
    chain_tx_of,
    stream_of,
)
from domain.refusal import Refused
from domain.rules import decide
from tests.given import Scene

TX = stream_of("mint/7")
INTEND = IntendChainTx(
    intent_id="mint/7", purpose="mint/7", sender="0xs", to="0xt", calldata_sha256="c", at_us=1
)
SIGN = RecordChainTxSigned(
    intent_id="mint/7", nonce=4, tx_hash="0x1", raw_sha256="r", max_fee=100, tip=10, at_us=2
)
BUMP = replace(SIGN, tx_hash="0x2", raw_sha256="r2", max_fee=113, tip=12)
SEND = RecordChainTxBroadcast(intent_id="mint/7", tx_hash="0x1", at_us=3)
MINE = RecordChainTxMined(
    intent_id="mint/7",
    tx_hash="0x1",
    block_number=9,
    block_hash="0xb",
    status=1,
    gas_used=21_000,
    at_us=4,
)
REORG = RecordChainTxReorged(intent_id="mint/7", tx_hash="0x1", at_us=5)
FINAL = RecordChainTxFinalized(intent_id="mint/7", tx_hash="0x1", block_number=9, at_us=6)
FAIL = RecordChainTxFailed(intent_id="mint/7", tx_hash="0x1", reason="reverted", at_us=6)

KINDS: dict[type[Any], type[Any]] = {
    IntendChainTx: ChainTxIntended,
    RecordChainTxSigned: ChainTxSigned,
    RecordChainTxBroadcast: ChainTxBroadcast,
    RecordChainTxMined: ChainTxMined,
    RecordChainTxReorged: ChainTxReorged,
    RecordChainTxFinalized: ChainTxFinalized,
    RecordChainTxFailed: ChainTxFailed,
}


def after(*commands: Any) -> Scene:
    scene = Scene()
    for command in commands:
        scene = scene.after(command)
    return scene


def recorded(command: Any) -> Any:
    content = {field.name: getattr(command, field.name) for field in fields(command)}
    return TX, KINDS[type(command)](**content)


def refuses(scene: Scene, *commands: Any) -> None:
    for command in commands:
        scene.when(command).then_refused(ChainReason.CHAIN_TX_STATE)


STRAIGHT = (INTEND, SIGN, SEND, MINE, FINAL)


@pytest.mark.parametrize("steps", range(len(STRAIGHT)))
def test_the_straight_way_records_each_step(steps: int) -> None:
    after(*STRAIGHT[:steps]).when(STRAIGHT[steps]).then(recorded(STRAIGHT[steps]))


@pytest.mark.parametrize("command", STRAIGHT)
def test_what_is_seen_twice_is_recorded_once(command: Any) -> None:
    after(*STRAIGHT).when(replace(command, at_us=99)).then_nothing()


def test_a_purpose_belongs_to_one_transaction() -> None:
    refuses(after(INTEND), replace(INTEND, to="0xother"), replace(INTEND, calldata_sha256="d"))


def test_nothing_is_signed_before_it_is_intended() -> None:
    refuses(after(), SIGN, SEND, MINE, REORG, FINAL, FAIL)


def test_one_intent_never_gets_a_second_nonce() -> None:
    for sent in ((INTEND, SIGN), (INTEND, SIGN, SEND), (INTEND, SIGN, SEND, MINE, REORG)):
        refuses(after(*sent), replace(BUMP, nonce=5))
        after(*sent).when(BUMP).then(recorded(BUMP))


def test_a_bump_raises_both_fees_by_an_eighth() -> None:
    refuses(after(INTEND, SIGN), replace(BUMP, max_fee=112), replace(BUMP, tip=11))


@given(st.integers(0, 10**30))
def test_a_bumped_fee_is_the_least_that_is_12_5_percent_more(wei: int) -> None:
    assert bumped(wei) * 1_000 >= wei * 1_125 > (bumped(wei) - 1) * 1_000 or wei == 0


def test_a_mined_transaction_is_not_signed_again() -> None:
    refuses(after(*STRAIGHT[:4]), BUMP)


def test_any_attempt_may_be_the_one_that_is_mined() -> None:
    scene = after(INTEND, SIGN, SEND, BUMP)
    scene.when(MINE).then(recorded(MINE))
    other = replace(MINE, tx_hash="0x2")
    scene.when(other).then(recorded(other))


def test_only_signed_bytes_are_sent_and_mined() -> None:
    scene = after(INTEND, SIGN)
    foreign = "0xff"
    refuses(scene, replace(SEND, tx_hash=foreign), replace(MINE, tx_hash=foreign))
    refuses(scene, replace(FAIL, tx_hash=foreign))


def test_a_reorganisation_takes_it_back_to_signed_and_the_same_bytes_go_out_again() -> None:
    scene = after(INTEND, SIGN, SEND, MINE)
    scene.when(REORG).then(recorded(REORG))
    back = scene.after(REORG)
    assert chain_tx_of(back, "mint/7").status == "signed"
    back.when(REORG).then_nothing()
    back.when(SEND).then(recorded(SEND))
    elsewhere = replace(MINE, block_hash="0xb2", block_number=10)
    back.when(elsewhere).then(recorded(elsewhere))
    refuses(back, FINAL)


def test_another_block_needs_a_reorganisation_first() -> None:
    refuses(after(*STRAIGHT[:4]), replace(MINE, block_hash="0xb2"))
    refuses(after(*STRAIGHT[:3]), REORG)


def test_only_a_successful_receipt_becomes_final() -> None:
    refuses(after(*STRAIGHT[:4]), replace(FINAL, block_number=8), replace(FINAL, tx_hash="0x2"))
    reverted = replace(MINE, status=0)
    scene = after(INTEND, SIGN, SEND, reverted)
    refuses(scene, FINAL)
    scene.when(FAIL).then(recorded(FAIL))


def test_a_foreign_use_of_the_nonce_fails_the_intent() -> None:
    scene = after(INTEND, SIGN, SEND)
    scene.when(FAIL).then(recorded(FAIL))
    scene.after(FAIL).when(FAIL).then_nothing()
    refuses(scene.after(FAIL), BUMP, MINE, FINAL)


def test_success_never_turns_into_failure() -> None:
    refuses(after(*STRAIGHT[:4]), FAIL)
    refuses(after(*STRAIGHT), FAIL, REORG)


@given(st.lists(st.sampled_from([*STRAIGHT, BUMP, REORG, FAIL, replace(MINE, status=0)])))
def test_whatever_happens_there_is_one_nonce_and_one_end(commands: list[Any]) -> None:
    scene = Scene()
    for command in commands:
        try:
            changes = decide(command, scene)
        except Refused:
            continue
        scene = scene.given(*((change.stream, change.fact) for change in changes))
    tx = chain_tx_of(scene, "mint/7")
    assert len({attempt.nonce for attempt in tx.attempts}) <= 1
    assert tx.finalized is None or tx.failed is None
    ends = [fact for _, fact in scene.past if isinstance(fact, ChainTxFinalized | ChainTxFailed)]
    assert len(ends) <= 1
