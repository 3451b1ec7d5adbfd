"""The outbox and the scanner of `contracts` on PostgreSQL, and every transaction's life as facts.

    a state is durable in its row  ->  the market log is told  ->  the row is marked told

A crash between these leaves a row that is not marked; it is told again before anything else
happens to it, and the domain drops what it already knows. The signed bytes stay in the row; facts
hold their hash. Which transactions are made, and why, is for `api/chain/timer.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from contracts.chain import Receipt
from contracts.deployment import Deployment
from contracts.outbox import Attempt, Intent, State
from contracts.scanner import Cursor, Observation
from domain.chain.transaction import (
    ChainTx,
    IntendChainTx,
    RecordChainTxBroadcast,
    RecordChainTxFailed,
    RecordChainTxFinalized,
    RecordChainTxMined,
    RecordChainTxReorged,
    RecordChainTxSigned,
    stream_of,
)
from ledger.beside import chain_store
from ledger.beside.chain_store import AttemptRow, Connection, IntentRow, ObservationRow
from ledger.log.handle import Ledger


class OutboxStore:
    """`contracts.outbox.Store` in PostgreSQL; each saved state becomes facts of `chain-tx:{id}`."""

    def __init__(self, ledger: Ledger, connection: Connection, clock: Callable[[], int]) -> None:
        """`clock` tells microseconds; `connection` holds the locks and must be of this alone."""
        self._ledger = ledger
        self._connection = connection
        self._clock = clock

    def lock(self, sender: str, chain_id: int) -> AbstractContextManager[None]:
        return chain_store.key_lock(self._connection, sender, chain_id)

    def load(self, intent_id: str) -> Intent | None:
        row = chain_store.intent(self._connection, intent_id)
        return None if row is None else _intent(row)

    def save(self, intent: Intent) -> None:
        before = chain_store.intent(self._connection, intent.id)
        if before is not None and not before.told:
            self._tell(_intent(before))
        chain_store.keep_intent(self._connection, _row(intent))
        self._tell(intent)

    def nonce_max(self, sender: str, chain_id: int) -> int | None:
        return chain_store.nonce_max(self._connection, sender, chain_id)

    def unfinished(self) -> Sequence[str]:
        return chain_store.unfinished(self._connection)

    def tell_all(self) -> None:
        """Tell the market log what a crash kept from it. Call it before anything else."""
        for intent_id in chain_store.untold(self._connection):
            intent = self.load(intent_id)
            assert intent is not None, intent_id
            self._tell(intent)

    def _tell(self, intent: Intent) -> None:
        now_us = self._clock()
        known = self._ledger.market.state_of(stream_of(intent.id))
        commands = list(commands_of(intent, known, now_us))
        if commands:
            self._ledger.handle(commands, key=None, now_us=now_us)
        chain_store.mark_told(self._connection, intent.id)


def commands_of(intent: Intent, known: ChainTx, at_us: int) -> Iterator[Any]:
    """What the market log lacks of an intent's life, in order.

    A cancellation that took effect is final like any transaction: its hash says which it was. One
    that was never signed leaves no trace but its intention.
    """
    if known.intended is None:
        yield IntendChainTx(
            intent_id=intent.id,
            purpose=intent.id,
            sender=intent.sender.lower(),
            to=intent.to.lower(),
            calldata_sha256=intent.data_sha256,
            at_us=at_us,
        )
    if not intent.attempts:
        return
    same: dict[str, Any] = {"intent_id": intent.id, "at_us": at_us}
    mined = intent.mined
    if known.mined is not None and (mined is None or not _is_same(known, mined)):
        yield RecordChainTxReorged(tx_hash=known.mined.tx_hash, **same)
    assert intent.nonce is not None, intent.id
    for attempt in intent.attempts:
        if attempt.hash not in known.hashes:
            yield RecordChainTxSigned(
                nonce=intent.nonce,
                tx_hash=attempt.hash,
                raw_sha256=sha256(attempt.raw).hexdigest(),
                max_fee=attempt.max_fee,
                tip=attempt.tip,
                **same,
            )
    last = intent.attempts[-1].hash
    if intent.state is not State.SIGNED:
        yield RecordChainTxBroadcast(tx_hash=last, **same)
    if mined is not None:
        yield RecordChainTxMined(
            tx_hash=mined.hash,
            block_number=mined.block_number,
            block_hash=mined.block_hash,
            status=int(mined.ok),
            gas_used=mined.gas_used,
            **same,
        )
    if intent.state is State.FAILED:
        failed = last if mined is None else mined.hash
        yield RecordChainTxFailed(tx_hash=failed, reason=intent.note, **same)
    elif mined is not None and intent.state in {State.FINAL, State.CANCELLED}:
        yield RecordChainTxFinalized(tx_hash=mined.hash, block_number=mined.block_number, **same)


def _is_same(known: ChainTx, receipt: Receipt) -> bool:
    assert known.mined is not None
    return (known.mined.tx_hash, known.mined.block_hash) == (receipt.hash, receipt.block_hash)


def _row(intent: Intent) -> IntentRow:
    return IntentRow(
        id=intent.id,
        sender=intent.sender.lower(),
        chain_id=intent.chain_id,
        recipient=intent.to,
        data=intent.data,
        state=intent.state.value,
        nonce=intent.nonce,
        gas=intent.gas,
        mined=None if intent.mined is None else asdict(intent.mined),
        note=intent.note,
        told=False,
        attempts=tuple(AttemptRow(**asdict(attempt)) for attempt in intent.attempts),
    )


def _intent(row: IntentRow) -> Intent:
    return Intent(
        id=row.id,
        sender=row.sender,
        chain_id=row.chain_id,
        to=row.recipient,
        data=row.data,
        state=State(row.state),
        nonce=row.nonce,
        gas=row.gas,
        attempts=tuple(Attempt(**asdict(attempt)) for attempt in row.attempts),
        mined=None if row.mined is None else Receipt(**row.mined),
        note=row.note,
    )


def deployment_key(deployment: Deployment) -> str:
    """Names what a scanner follows: one ledger may follow several deployments."""
    return f"{deployment.chain_id}/{deployment.distributor.lower()}"


class ScannerStore:
    """`contracts.scanner.ScannerStore` in PostgreSQL, for one deployment."""

    def __init__(self, connection: Connection, deployment: Deployment) -> None:
        self._connection = connection
        self._key = deployment_key(deployment)

    def cursor(self) -> Cursor | None:
        row = chain_store.cursor(self._connection, self._key)
        return None if row is None else Cursor(row.number, row.hash)

    def block_hash(self, number: int) -> str | None:
        return chain_store.block_hash(self._connection, self._key, number)

    def final(self) -> int:
        row = chain_store.cursor(self._connection, self._key)
        return -1 if row is None else row.final

    def advance(self, blocks: Sequence[Cursor], seen: Sequence[Observation], *, final: int) -> None:
        pairs = [(block.number, block.hash) for block in blocks]
        rows = [_observation_row(one) for one in seen]
        chain_store.advance(self._connection, self._key, pairs, rows, final)

    def rewind(self, to: Cursor) -> None:
        chain_store.rewind(self._connection, self._key, to.number, to.hash)

    def waiting(self, final: int) -> Sequence[Observation]:
        rows = chain_store.waiting(self._connection, self._key, final)
        return [Observation(**asdict(row)) for row in rows]

    def done(self, effect_key: str, block_number: int) -> None:
        chain_store.mark_done(self._connection, self._key, effect_key, block_number)

    def settle(self, number: int, block_us: int) -> None:
        """Every effect up to this final block is in the market log."""
        chain_store.settle(self._connection, self._key, number, block_us)


def _observation_row(seen: Observation) -> ObservationRow:
    return ObservationRow(**{**asdict(seen), "arguments": dict(seen.arguments)})
