"""Transactions and blocks as rows: durable, told to the market log in order, once."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import psycopg
import pytest

from api.chain.stores import OutboxStore, ScannerStore
from contracts.chain import Receipt
from contracts.deployment import Deployment, Roles
from contracts.outbox import Attempt, Intent, State
from contracts.scanner import Cursor, Observation
from domain.chain.transaction import stream_of
from ledger import advisory
from ledger.beside import chain_store
from ledger.log.handle import Ledger
from tests.contracts.stage import account, terms

CHAIN_ID = 131277322940537
SENDER = account(0x5E)


@pytest.fixture
def ledger(database: str) -> Generator[Ledger, None, None]:
    with Ledger(database, blinding_key=b"tests/chain_stores", connections_max=2) as made:
        yield made


@pytest.fixture
def store(ledger: Ledger, connection: psycopg.Connection[object]) -> OutboxStore:
    return OutboxStore(ledger, connection, lambda: 1_000)


def attempt(number: int, fee: int = 800, *, is_cancel: bool = False) -> Attempt:
    return Attempt(
        hash=f"0x{number:064x}",
        raw=bytes([number]) * 200,
        max_fee=fee,
        tip=fee,
        block=number,
        is_cancel=is_cancel,
    )


def receipt(number: int, block: int, *, ok: bool = True) -> Receipt:
    return Receipt(f"0x{number:064x}", ok, block, f"0x{block:064x}", 21_000, None)


INTENDED = Intent(id="mint/1", sender=SENDER, chain_id=CHAIN_ID, to=account(1), data=b"\x01\x02")
SIGNED = replace(INTENDED, state=State.SIGNED, nonce=0, gas=50_000, attempts=(attempt(1),))
BROADCAST = replace(SIGNED, state=State.BROADCAST)
MINED = replace(BROADCAST, state=State.MINED, mined=receipt(1, 7))
FINAL = replace(MINED, state=State.FINAL)


def words(ledger: Ledger, intent_id: str = "mint/1") -> list[str]:
    facts = ledger.market.read_stream(stream_of(intent_id))
    return [recorded.name.split(".")[1] for recorded in facts]


def test_an_intent_comes_back_as_it_was_saved(store: OutboxStore) -> None:
    bumped = replace(BROADCAST, attempts=(attempt(1), attempt(2, 2**200)))
    for intent in (INTENDED, SIGNED, BROADCAST, bumped, replace(MINED, attempts=bumped.attempts)):
        store.save(intent)
        assert store.load("mint/1") == intent
    assert store.load("mint/2") is None


def test_each_state_is_one_fact(store: OutboxStore, ledger: Ledger) -> None:
    for intent in (INTENDED, SIGNED, BROADCAST, MINED, FINAL, FINAL):
        store.save(intent)
    assert words(ledger) == ["intended", "signed", "broadcast", "mined", "finalized"]


def test_a_reorganisation_is_told_and_the_same_bytes_are_sent_again(
    store: OutboxStore, ledger: Ledger
) -> None:
    for intent in (INTENDED, SIGNED, BROADCAST, MINED, SIGNED, BROADCAST):
        store.save(intent)
    store.save(replace(BROADCAST, state=State.MINED, mined=receipt(1, 8)))
    assert words(ledger) == [
        "intended",
        "signed",
        "broadcast",
        "mined",
        "reorged",
        "broadcast",
        "mined",
    ]


def test_a_bump_is_another_signature_and_the_one_that_was_mined_is_final(
    store: OutboxStore, ledger: Ledger
) -> None:
    both = (attempt(1), attempt(2, 900))
    for intent in (
        INTENDED,
        SIGNED,
        BROADCAST,
        replace(SIGNED, attempts=both),
        replace(BROADCAST, attempts=both),
        replace(MINED, attempts=both),
        replace(FINAL, attempts=both),
    ):
        store.save(intent)
    assert words(ledger) == [
        "intended",
        "signed",
        "broadcast",
        "signed",
        "broadcast",
        "mined",
        "finalized",
    ]
    final = ledger.market.load(stream_of("mint/1")).state.finalized
    assert final.tx_hash == both[0].hash


def test_a_revert_is_mined_and_failed(store: OutboxStore, ledger: Ledger) -> None:
    reverted = replace(MINED, mined=receipt(1, 7, ok=False))
    for intent in (INTENDED, SIGNED, BROADCAST, reverted):
        store.save(intent)
    store.save(replace(reverted, state=State.FAILED, note="reverted"))
    assert words(ledger) == ["intended", "signed", "broadcast", "mined", "failed"]


def test_a_stolen_nonce_is_a_failure_that_says_so(store: OutboxStore, ledger: Ledger) -> None:
    for intent in (INTENDED, SIGNED, BROADCAST):
        store.save(intent)
    store.save(replace(BROADCAST, state=State.FAILED, note="a foreign transaction"))
    assert words(ledger)[-1] == "failed"
    assert ledger.market.load(stream_of("mint/1")).state.failed.reason == "a foreign transaction"


def test_a_cancellation_that_took_effect_is_final_under_its_own_hash(
    store: OutboxStore, ledger: Ledger
) -> None:
    both = (attempt(1), attempt(2, 900, is_cancel=True))
    cancelled = replace(BROADCAST, attempts=both, state=State.MINED, mined=receipt(2, 7))
    for intent in (INTENDED, SIGNED, BROADCAST, cancelled):
        store.save(intent)
    store.save(replace(cancelled, state=State.CANCELLED))
    assert ledger.market.load(stream_of("mint/1")).state.finalized.tx_hash == both[1].hash
    assert store.unfinished() == []


def test_what_was_never_signed_ends_without_another_word(
    store: OutboxStore, ledger: Ledger
) -> None:
    store.save(INTENDED)
    store.save(replace(INTENDED, state=State.CANCELLED))
    assert words(ledger) == ["intended"]


def test_a_state_that_was_kept_but_not_told_is_told_later(
    store: OutboxStore, ledger: Ledger, connection: psycopg.Connection[object]
) -> None:
    for intent in (INTENDED, SIGNED, BROADCAST, MINED):
        store.save(intent)
    # Kept, then killed: the block is gone again and the log does not know.
    row = chain_store.intent(connection, "mint/1")
    assert row is not None
    chain_store.keep_intent(connection, replace(row, state="signed", mined=None))
    assert chain_store.untold(connection) == ["mint/1"]
    store.tell_all()
    assert chain_store.untold(connection) == []
    assert words(ledger)[-2:] == ["mined", "reorged"]
    store.tell_all()
    assert words(ledger)[-1] == "reorged"


def test_the_next_state_does_not_hide_one_that_was_not_told(
    store: OutboxStore, ledger: Ledger, connection: psycopg.Connection[object]
) -> None:
    for intent in (INTENDED, SIGNED, BROADCAST, MINED):
        store.save(intent)
    row = chain_store.intent(connection, "mint/1")
    assert row is not None
    chain_store.keep_intent(connection, replace(row, state="signed", mined=None))
    store.save(replace(MINED, mined=receipt(1, 9)))
    assert words(ledger)[-4:] == ["mined", "reorged", "broadcast", "mined"]


def test_no_two_intents_share_a_nonce(store: OutboxStore) -> None:
    store.save(INTENDED)
    store.save(SIGNED)
    other = replace(SIGNED, id="mint/2", attempts=(attempt(9),))
    with pytest.raises(psycopg.errors.UniqueViolation):
        store.save(other)
    assert store.load("mint/2") is None
    assert store.nonce_max(SENDER.upper().replace("X", "x"), CHAIN_ID) == 0
    assert store.nonce_max(SENDER, 1) is None


def test_unfinished_comes_in_order_of_nonce_and_without_one_last(store: OutboxStore) -> None:
    store.save(replace(INTENDED, id="a"))
    for number, intent_id in ((3, "b"), (1, "c"), (2, "d")):
        store.save(replace(SIGNED, id=intent_id, nonce=number, attempts=(attempt(number),)))
    assert store.unfinished() == ["c", "d", "b", "a"]


def test_one_process_at_a_time_holds_a_key(
    store: OutboxStore, ledger: Ledger, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisory, "SECONDS_MAX", 0.1)
    with psycopg.connect(database, autocommit=True) as second:
        other = OutboxStore(ledger, second, lambda: 0)
        with store.lock(SENDER, CHAIN_ID):
            with other.lock(account(2), CHAIN_ID), other.lock(SENDER, 1):
                pass
            with pytest.raises(advisory.LockHeld), other.lock(SENDER, CHAIN_ID):
                pass
        with other.lock(SENDER, CHAIN_ID):
            pass


# --- the scanner's store ---------------------------------------------------------------------


def deployment(distributor: int = 2) -> Deployment:
    roles = Roles(
        **dict.fromkeys(
            ("admin", "guardian", "emitter", "proposer", "oracle_admin", "oracle"), account(9)
        )
    )
    return Deployment(
        chain_id=CHAIN_ID,
        block=5,
        token=account(1),
        distributor=account(distributor),
        emission=account(3),
        burner=account(4),
        input_sha256="00",
        terms=terms(),
        roles=roles,
    )


def seen(block: int, index: int, effect: str | None, branch: str = "a") -> Observation:
    return Observation(
        chain_id=CHAIN_ID,
        block_number=block,
        block_hash=f"{branch}{block}",
        log_index=index,
        transaction="0x01",
        contract="CreditBurner",
        event="CreditsPurchased",
        arguments={"credits": str(2**255)},
        effect_key=effect,
    )


@pytest.fixture
def scanned(connection: psycopg.Connection[object]) -> ScannerStore:
    return ScannerStore(connection, deployment())


def blocks(first: int, last: int, branch: str = "a") -> list[Cursor]:
    return [Cursor(number, f"{branch}{number}") for number in range(first, last + 1)]


def test_a_new_scanner_knows_nothing(scanned: ScannerStore) -> None:
    assert (scanned.cursor(), scanned.final(), scanned.block_hash(1)) == (None, -1, None)


def test_effects_wait_in_chain_order_until_they_are_done(scanned: ScannerStore) -> None:
    scanned.advance(
        blocks(4, 8), [seen(8, 0, "z"), seen(6, 3, "y"), seen(6, 1, "x"), seen(5, 0, None)], final=7
    )
    assert [one.effect_key for one in scanned.waiting(7)] == ["x", "y"]
    assert scanned.waiting(8)[2] == seen(8, 0, "z")
    scanned.done("x", 6)
    scanned.done("x", 6)
    assert [one.effect_key for one in scanned.waiting(8)] == ["y", "z"]
    assert (scanned.cursor(), scanned.final()) == (Cursor(8, "a8"), 7)
    scanned.done("z", 8)
    assert scanned.final() == 8


def test_what_happened_on_a_branch_that_was_left_does_not_wait(scanned: ScannerStore) -> None:
    scanned.advance(blocks(4, 8), [seen(8, 0, "z"), seen(6, 1, "x")], final=5)
    scanned.rewind(Cursor(6, "a6"))
    assert [one.effect_key for one in scanned.waiting(99)] == ["x"]
    assert (scanned.cursor(), scanned.block_hash(7)) == (Cursor(6, "a6"), None)
    scanned.advance(blocks(7, 9, "b"), [seen(9, 0, "z", "b")], final=6)
    assert [one.block_number for one in scanned.waiting(99)] == [6, 9]
    scanned.rewind(Cursor(6, "a6"))
    scanned.advance(blocks(7, 8), [seen(8, 0, "z")], final=6)
    assert [one.block_number for one in scanned.waiting(99)] == [6, 8]


def test_the_final_block_and_what_follows_are_remembered_by_hash(scanned: ScannerStore) -> None:
    scanned.advance(blocks(4, 8), [], final=6)
    assert [scanned.block_hash(number) for number in range(5, 9)] == [None, "a6", "a7", "a8"]


def test_two_deployments_are_followed_side_by_side(
    scanned: ScannerStore, connection: psycopg.Connection[object]
) -> None:
    other = ScannerStore(connection, deployment(7))
    scanned.advance(blocks(4, 8), [seen(8, 0, "z")], final=8)
    other.advance(blocks(4, 5), [], final=5)
    assert other.waiting(99) == []
    assert chain_store.settled_us(connection) == 0
    scanned.settle(8, 9_000_000)
    other.settle(5, 5_000_000)
    other.settle(4, 1)
    assert chain_store.settled_us(connection) == 5_000_000
