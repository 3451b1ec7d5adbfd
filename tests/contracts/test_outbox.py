"""One intent is one nonce and one effect, whatever dies between any two steps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.abi import ContractRefused
from contracts.chain import Call, Sent
from contracts.outbox import (
    FeeCapReached,
    FileStore,
    Intent,
    IntentDiffers,
    Limits,
    Outbox,
    State,
    Store,
)
from contracts.signers import LocalKeySigner
from tests.contracts.fakes import CHAIN_ID, FakeNode, Fate, Killed, MemoryStore, Mortal
from tests.contracts.stage import CAP, FILE_HASH, Stage, account
from tests.examples import examples

SIGNER = LocalKeySigner(b"\x5a" * 32, CHAIN_ID)
SENDER = SIGNER.address
TO = "0x" + "11" * 20


def call(number: int = 1) -> Call:
    return Call(TO, number.to_bytes(4, "big"))


def outbox(store: Any, node: Any, **limits: int) -> Outbox:
    return Outbox(store, node, [SIGNER], Limits(**limits))


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "outbox")


# The store's promises, for every implementation.


def test_a_store_gives_back_what_was_saved_last(store: Store) -> None:
    box = outbox(store, FakeNode())
    assert store.load("mint/1") is None
    saved = box.submit("mint/1", SENDER, call())
    assert store.load("mint/1") == saved
    assert store.unfinished() == ["mint/1"]
    assert store.nonce_max(SENDER, CHAIN_ID) == 0
    assert store.nonce_max(SENDER, CHAIN_ID + 1) is None
    assert store.nonce_max(TO, CHAIN_ID) is None


def test_a_store_refuses_a_nonce_twice(store: Store) -> None:
    def intent(intent_id: str) -> Intent:
        return Intent(id=intent_id, sender=SENDER, chain_id=CHAIN_ID, to=TO, data=b"", nonce=4)

    store.save(intent("mint/1"))
    with pytest.raises(AssertionError, match="nonce of mint/1"):
        store.save(intent("mint/2"))


def test_what_has_ended_is_not_unfinished(store: Store) -> None:
    node = FakeNode()
    box = outbox(store, node)
    for number in (3, 1, 2):
        box.submit(f"mint/{number}", SENDER, call(number))
    node.mine(4)
    box.advance("mint/1")
    assert store.unfinished() == ["mint/3", "mint/2"]


def test_files_outlive_the_process(tmp_path: Path) -> None:
    node = FakeNode()
    first = outbox(FileStore(tmp_path), node).submit("mint/1", SENDER, call())
    node.mine(4)
    second = outbox(FileStore(tmp_path), node).advance("mint/1")
    assert (first.state, second.state) == (State.BROADCAST, State.FINAL)
    assert second.attempts == first.attempts


# The straight way.


def test_every_state_is_saved_on_the_way_to_final() -> None:
    node, store = FakeNode(), MemoryStore()
    box = outbox(store, node)
    box.submit("mint/1", SENDER, call())
    node.mine()
    assert box.advance("mint/1").state is State.MINED
    node.mine(2)
    done = box.advance("mint/1")
    assert [saved.state for saved in store.history] == [
        State.INTENDED,
        State.SIGNED,
        State.BROADCAST,
        State.MINED,
        State.FINAL,
    ]
    assert done.mined is not None
    assert done.mined.hash == done.attempts[0].hash
    assert node.effects(call().data) == 1


def test_the_bytes_are_durable_before_anybody_sees_them() -> None:
    store = MemoryStore()

    class Watched(FakeNode):
        def send(self, raw: bytes) -> Sent:
            assert any(a.raw == raw for i in store.intents.values() for a in i.attempts)
            return super().send(raw)

    outbox(store, Watched()).submit("mint/1", SENDER, call())


def test_the_same_purpose_finds_its_own_transaction() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    first = box.submit("mint/1", SENDER, call())
    assert box.submit("mint/1", SENDER, call()) == first
    with pytest.raises(IntentDiffers):
        box.submit("mint/1", SENDER, call(2))


def test_nonces_follow_one_another_without_gaps() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    nonces = [box.submit(f"claim/{n}", SENDER, call(n)).nonce for n in range(4)]
    assert nonces == [0, 1, 2, 3]
    node.mine(4)
    assert {intent.state for intent in box.advance_all()} == {State.FINAL}


def test_processes_that_share_a_key_share_no_nonce(store: Store) -> None:
    node = FakeNode()

    def submit(number: int) -> int | None:
        return outbox(store, node).submit(f"claim/{number}", SENDER, call(number)).nonce

    with ThreadPoolExecutor(8) as threads:
        assert sorted(n or 0 for n in threads.map(submit, range(32))) == list(range(32))


def test_a_call_that_would_revert_uses_no_nonce() -> None:
    node, store = FakeNode(refusing={call().data}), MemoryStore()
    box = outbox(store, node)
    with pytest.raises(ContractRefused):
        box.submit("claim/1", SENDER, call())
    assert store.intents["claim/1"].state is State.INTENDED
    assert box.submit("claim/2", SENDER, call(2)).nonce == 0
    node.refusing.clear()
    assert box.submit("claim/1", SENDER, call()).nonce == 1


def test_a_revert_in_a_final_block_is_a_failure() -> None:
    node = FakeNode(reverting={call().data})
    box = outbox(MemoryStore(), node)
    box.submit("claim/1", SENDER, call())
    node.mine()
    assert box.advance("claim/1").state is State.MINED
    node.mine(3)
    done = box.advance("claim/1")
    assert (done.state, done.note) == (State.FAILED, "reverted")


# Fees, bumps, cancellations.


def test_a_late_transaction_pays_an_eighth_more_at_the_same_nonce() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node, bump_after_blocks=3)
    first = box.submit("mint/1", SENDER, call()).attempts[0]
    node.base_fee = first.max_fee + 1  # too dear to be mined
    node.mine(3)
    bumped = box.advance("mint/1")
    assert [a.max_fee for a in bumped.attempts] == [first.max_fee, -(-first.max_fee * 9 // 8)]
    assert [a.tip for a in bumped.attempts] == [first.tip, -(-first.tip * 9 // 8)]
    node.mine()
    node.mine(2)
    done = box.advance("mint/1")
    assert done.mined is not None
    assert (done.state, done.mined.hash) == (State.FINAL, done.attempts[1].hash)
    assert node.transaction_count(SENDER) == 1


def test_the_receipt_of_an_older_attempt_counts() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    first = box.submit("mint/1", SENDER, call())
    node.mine()  # mined before the bump reaches the node
    box.bump("mint/1")
    node.mine(3)
    done = box.advance("mint/1")
    assert done.mined is not None
    assert (done.state, done.mined.hash) == (State.FINAL, first.attempts[0].hash)


def test_nothing_is_signed_above_the_cap() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node, max_fee_cap=node.fees().max_fee, bump_after_blocks=1)
    box.submit("mint/1", SENDER, call())
    node.pool.clear()
    node.base_fee = 10**12
    node.mine(5)
    assert len(box.advance("mint/1").attempts) == 1
    with pytest.raises(FeeCapReached):
        box.bump("mint/1")
    with pytest.raises(FeeCapReached):
        box.submit("mint/2", SENDER, call(2))


def test_a_cancelled_transaction_has_no_effect() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    box.submit("mint/1", SENDER, call())
    box.cancel("mint/1")
    node.mine(4)
    assert box.advance("mint/1").state is State.CANCELLED
    assert node.effects(call().data) == 0
    assert box.submit("mint/2", SENDER, call(2)).nonce == 1


def test_a_cancellation_that_comes_too_late_changes_nothing() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    box.submit("mint/1", SENDER, call())
    node.mine()
    box.cancel("mint/1")
    node.mine(3)
    assert box.advance("mint/1").state is State.FINAL
    assert node.effects(call().data) == 1


def test_what_was_never_signed_is_cancelled_without_a_nonce() -> None:
    node = FakeNode(refusing={call().data})
    box = outbox(MemoryStore(), node)
    with pytest.raises(ContractRefused):
        box.submit("mint/1", SENDER, call())
    assert box.cancel("mint/1").state is State.CANCELLED
    assert box.submit("mint/2", SENDER, call(2)).nonce == 0


# The chain misbehaves.


def test_after_a_reorganisation_the_same_bytes_are_mined_again() -> None:
    node, store = FakeNode(finality=3), MemoryStore()
    box = outbox(store, node)
    signed = box.submit("mint/1", SENDER, call()).attempts
    node.mine()
    assert box.advance("mint/1").state is State.MINED
    node.reorg(1, forget=True)
    assert box.advance("mint/1").state is State.BROADCAST
    node.mine(4)
    done = box.advance("mint/1")
    assert (done.state, done.attempts) == (State.FINAL, signed)
    assert node.effects(call().data) == 1
    assert State.SIGNED in [saved.state for saved in store.history[3:]]


def test_a_node_that_forgot_is_told_again() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    box.submit("mint/1", SENDER, call())
    node.pool.clear()
    box.advance("mint/1")
    node.mine(4)
    assert box.advance("mint/1").state is State.FINAL


def test_a_stranger_with_our_key_is_noticed() -> None:
    node = FakeNode()
    box = outbox(MemoryStore(), node)
    box.submit("mint/1", SENDER, call())
    fees = node.fees()
    foreign = node.transaction(call(99), nonce=0, gas=60_000, fees=fees)
    node.pool.clear()
    assert node.send(SIGNER.sign_transaction(foreign)) is Sent.ACCEPTED
    node.mine()
    assert box.advance("mint/1").state is State.BROADCAST  # not final: it may still change
    node.mine(3)
    done = box.advance("mint/1")
    assert done.state is State.FAILED
    assert "foreign" in done.note


# Death between any two steps.


def scenario(store: Any, node: Any, reality: FakeNode) -> list[Callable[[], object]]:
    """Two intents, mined one after the other, the first bumped on the way."""
    return [
        lambda: outbox(store, node).submit("mint/1", SENDER, call(1)),
        lambda: outbox(store, node).bump("mint/1"),
        lambda: outbox(store, node).submit("mint/2", SENDER, call(2)),
        lambda: reality.mine(),
        lambda: outbox(store, node).advance_all(),
        lambda: reality.mine(3),
        lambda: outbox(store, node).advance_all(),
    ]


def steps_of_the_scenario() -> int:
    reality, fate = FakeNode(), Fate()
    for action in scenario(Mortal(MemoryStore(), fate), Mortal(reality, fate), reality):
        action()
    return fate.passed


@pytest.mark.parametrize("half_step", range(steps_of_the_scenario()))
def test_death_at_any_step_leaves_one_nonce_and_one_effect(half_step: int) -> None:
    reality, memory, fate = FakeNode(), MemoryStore(), Fate(half_step)
    for action in scenario(Mortal(memory, fate), Mortal(reality, fate), reality):
        try:
            action()
        except Killed:
            continue  # the next action is the restarted process
        except AssertionError:
            assert memory.load("mint/1") is None or memory.intents["mint/1"].state in {
                State.INTENDED,  # died before it was signed: there is nothing to bump
                State.MINED,
            }
    settle(memory, reality)
    assert_once(memory, reality, 2)


@examples(150)
@given(st.data())
def test_any_history_of_deaths_bumps_and_reorganisations_takes_effect_once(data: Any) -> None:
    reality, memory, fate = FakeNode(finality=4), MemoryStore(), Fate()
    store, node = Mortal(memory, fate), Mortal(reality, fate)
    for _ in range(data.draw(st.integers(1, 14))):
        fate.half_steps = data.draw(st.none() | st.integers(0, 30))
        number = data.draw(st.integers(1, 3))
        box, name = outbox(store, node, bump_after_blocks=2), f"mint/{number}"
        known = memory.load(name)
        actions: list[Callable[[], object]] = [
            partial(box.submit, name, SENDER, call(number)),
            box.advance_all,
            reality.mine,
            partial(reality.reorg, min(3, len(reality.blocks) - 1)),
            partial(reality.reorg, min(3, len(reality.blocks) - 1), forget=True),
            reality.pool.clear,
        ]
        if known is not None and known.state in {State.SIGNED, State.BROADCAST}:
            actions.append(partial(box.bump, name))
        try:
            data.draw(st.sampled_from(actions))()
        except Killed:
            continue
    settle(memory, reality)
    assert_once(memory, reality, len(memory.intents))


def settle(memory: MemoryStore, reality: FakeNode) -> None:
    """A process that lives, on a chain that goes on."""
    box = outbox(memory, reality)
    for number in (1, 2):
        box.submit(f"mint/{number}", SENDER, call(number))
    for _ in range(12):
        reality.mine()
        box.advance_all()


def assert_once(memory: MemoryStore, reality: FakeNode, count: int) -> None:
    assert {intent.state for intent in memory.intents.values()} == {State.FINAL}
    assert sorted(i.nonce or 0 for i in memory.intents.values()) == list(range(count))
    assert reality.transaction_count(SENDER) == count
    for intent in memory.intents.values():
        assert reality.effects(intent.data) == 1
        assert len({attempt.raw for attempt in intent.attempts}) == len(intent.attempts)
        assert {saved.nonce for saved in memory.history if saved.id == intent.id} <= {
            None,
            intent.nonce,
        }


# The real machine.


def test_on_the_embedded_chain_a_payout_goes_through_the_outbox(
    stage: Stage, tmp_path: Path
) -> None:
    signers = [stage.people[who] for who in ("emitter", "proposer", "relay")]

    def restarted() -> Outbox:
        return Outbox(FileStore(tmp_path), stage.chain, signers)

    stage.close_epoch(1)
    mint = stage.tally.mint_epoch(1, CAP, FILE_HASH)
    assert restarted().submit("mint/1", stage.address("emitter"), mint).state is State.FINAL
    tree = stage.tree({account(1): 100})
    propose = stage.tally.propose_root(1, tree.root, FILE_HASH, 100)
    for _ in range(2):
        done = restarted().submit("propose/1", stage.address("proposer"), propose)
        assert done.state is State.FINAL
    with pytest.raises(ContractRefused, match="TimelockRunning"):
        restarted().submit("accept/1", stage.address("relay"), stage.tally.accept_root())
    stage.wait(stage.at.terms.timelock_s)
    (accepted,) = restarted().advance_all()
    assert accepted.state is State.FINAL
    assert stage.tally.root() == "0x" + tree.root.hex()
