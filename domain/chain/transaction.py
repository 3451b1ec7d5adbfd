"""The life of one transaction of ours: decided, signed, sent, mined, final. Stream `chain-tx:{id}`.

    intended --Signed--> signed --Broadcast--> broadcast --Mined--> mined --Finalized--> final
    mined --Reorged--> signed        signed, broadcast, mined with status 0 --Failed--> failed

    one intent, one nonce: a bump signs again with the same nonce and at least 12.5 % more fee

The id derives from the purpose ("mint/7"), so a repeated job finds its own stream. The signed
bytes are durable before anybody else sees them (the outbox keeps them, facts keep their hash).
What was seen twice is recorded once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, assert_never

from domain.chain.reasons import ChainReason
from domain.frozen import replace
from domain.money import Big
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxIntended:
    intent_id: str
    purpose: str
    sender: str
    to: str
    calldata_sha256: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxSigned:
    intent_id: str
    nonce: int
    tx_hash: str
    raw_sha256: str
    max_fee: Big  # wei
    tip: Big  # wei
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxBroadcast:
    intent_id: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxMined:
    intent_id: str
    tx_hash: str
    block_number: int
    block_hash: str
    status: int
    gas_used: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxReorged:
    intent_id: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxFinalized:
    intent_id: str
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTxFailed:
    intent_id: str
    tx_hash: str
    reason: str
    at_us: int


ChainTxFact = (
    ChainTxIntended
    | ChainTxSigned
    | ChainTxBroadcast
    | ChainTxMined
    | ChainTxReorged
    | ChainTxFinalized
    | ChainTxFailed
)

# Commands: one per fact, with the fact's own content.


@dataclass(frozen=True, slots=True, kw_only=True)
class IntendChainTx:
    intent_id: str
    purpose: str
    sender: str
    to: str
    calldata_sha256: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChainTxSigned:
    intent_id: str
    nonce: int
    tx_hash: str
    raw_sha256: str
    max_fee: int  # wei
    tip: int  # wei
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChainTxBroadcast:
    intent_id: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChainTxMined:
    intent_id: str
    tx_hash: str
    block_number: int
    block_hash: str
    status: int
    gas_used: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChainTxReorged:
    intent_id: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChainTxFinalized:
    intent_id: str
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChainTxFailed:
    intent_id: str
    tx_hash: str
    reason: str
    at_us: int


# What we remember.


@dataclass(frozen=True, slots=True)
class ChainTx:
    """One transaction so far; `attempts` are its signed forms, the latest last."""

    status: str = "none"
    intended: ChainTxIntended | None = None
    attempts: tuple[ChainTxSigned, ...] = ()
    broadcast: tuple[str, ...] = ()
    mined: ChainTxMined | None = None
    reorged: ChainTxReorged | None = None
    finalized: ChainTxFinalized | None = None
    failed: ChainTxFailed | None = None

    @property
    def hashes(self) -> tuple[str, ...]:
        return tuple(attempt.tx_hash for attempt in self.attempts)


def stream_of(intent_id: str) -> Stream[ChainTx]:
    return Stream("chain-tx", intent_id)


def evolve_chain_tx(tx: ChainTx, fact: ChainTxFact) -> ChainTx:
    match fact:
        case ChainTxIntended():
            return replace(tx, status="intended", intended=fact)
        case ChainTxSigned():
            return replace(tx, status="signed", attempts=(*tx.attempts, fact))
        case ChainTxBroadcast():
            return replace(tx, status="broadcast", broadcast=(*tx.broadcast, fact.tx_hash))
        case ChainTxMined():
            return replace(tx, status="mined", mined=fact)
        case ChainTxReorged():
            # Sending the same bytes again is a broadcast of its own.
            return replace(tx, status="signed", broadcast=(), mined=None, reorged=fact)
        case ChainTxFinalized():
            return replace(tx, status="final", finalized=fact)
        case ChainTxFailed():
            return replace(tx, status="failed", failed=fact)
        case _:
            assert_never(fact)


def chain_tx_of(world: World, intent_id: str) -> ChainTx:
    return world.state(stream_of(intent_id))


def bumped(wei: int) -> int:
    """The least fee of a replacement: 12.5 % more, rounded up."""
    return -(-wei * 9 // 8)


# How we decide. All raise Refused: CHAIN_TX_STATE.


def decide_intend(command: IntendChainTx, world: World) -> list[Change]:
    tx = chain_tx_of(world, command.intent_id)
    fact = ChainTxIntended(**_content(command))
    if tx.intended is not None:
        if _same(tx.intended, fact):
            return []
        raise _refused(tx, command, "the purpose is taken by another transaction")
    return [Change(stream_of(command.intent_id), fact)]


def decide_signed(command: RecordChainTxSigned, world: World) -> list[Change]:
    tx = chain_tx_of(world, command.intent_id)
    fact = ChainTxSigned(**_content(command))
    if any(_same(attempt, fact) for attempt in tx.attempts):
        return []
    if tx.status not in ("intended", "signed", "broadcast"):
        raise _refused(tx, command, "nothing to sign")
    if tx.attempts:
        before = tx.attempts[-1]
        if fact.nonce != before.nonce:
            raise _refused(tx, command, "one intent, one nonce")
        if fact.max_fee < bumped(before.max_fee) or fact.tip < bumped(before.tip):
            raise _refused(tx, command, "a replacement pays 12.5 % more, fee and tip")
    return [Change(stream_of(command.intent_id), fact)]


def decide_broadcast(command: RecordChainTxBroadcast, world: World) -> list[Change]:
    tx = chain_tx_of(world, command.intent_id)
    _check_ours(tx, command)
    if command.tx_hash in tx.broadcast or tx.status in ("mined", "final", "failed"):
        return []
    return [Change(stream_of(command.intent_id), ChainTxBroadcast(**_content(command)))]


def decide_mined(command: RecordChainTxMined, world: World) -> list[Change]:
    tx = chain_tx_of(world, command.intent_id)
    _check_ours(tx, command)
    fact = ChainTxMined(**_content(command))
    if tx.mined is not None and _same(tx.mined, fact):
        return []
    if tx.status not in ("signed", "broadcast"):
        raise _refused(tx, command, "mined elsewhere; a reorganisation comes first")
    return [Change(stream_of(command.intent_id), fact)]


def decide_reorged(command: RecordChainTxReorged, world: World) -> list[Change]:
    tx = chain_tx_of(world, command.intent_id)
    if tx.mined is None and tx.reorged is not None and tx.reorged.tx_hash == command.tx_hash:
        return []
    if tx.status != "mined" or tx.mined is None or tx.mined.tx_hash != command.tx_hash:
        raise _refused(tx, command, "not mined")
    return [Change(stream_of(command.intent_id), ChainTxReorged(**_content(command)))]


def decide_finalized(command: RecordChainTxFinalized, world: World) -> list[Change]:
    tx = chain_tx_of(world, command.intent_id)
    fact = ChainTxFinalized(**_content(command))
    if tx.finalized is not None and _same(tx.finalized, fact):
        return []
    if tx.status != "mined" or tx.mined is None:
        raise _refused(tx, command, "not mined")
    seen = (tx.mined.tx_hash, tx.mined.block_number, tx.mined.status)
    if seen != (command.tx_hash, command.block_number, 1):
        raise _refused(tx, command, "another receipt was seen, or it failed")
    return [Change(stream_of(command.intent_id), fact)]


def decide_failed(command: RecordChainTxFailed, world: World) -> list[Change]:
    """Final with status 0, or the nonce was used by a transaction that is not ours."""
    tx = chain_tx_of(world, command.intent_id)
    fact = ChainTxFailed(**_content(command))
    if tx.failed is not None and _same(tx.failed, fact):
        return []
    _check_ours(tx, command)
    succeeded = tx.mined is not None and tx.mined.status != 0
    if tx.status not in ("signed", "broadcast", "mined") or succeeded:
        raise _refused(tx, command, "it may still succeed, or has")
    return [Change(stream_of(command.intent_id), fact)]


def _check_ours(
    tx: ChainTx, command: RecordChainTxBroadcast | RecordChainTxMined | RecordChainTxFailed
) -> None:
    if command.tx_hash not in tx.hashes:
        raise _refused(tx, command, "not a form that was signed")


def _refused(tx: ChainTx, command: Any, rule: str) -> Refused:
    facts = {"intent_id": command.intent_id, "status": tx.status, "rule": rule}
    return Refused(ChainReason.CHAIN_TX_STATE, **facts)


def _content(command: Any) -> dict[str, Any]:
    return {field.name: getattr(command, field.name) for field in fields(command)}


def _same(known: Any, fact: Any) -> bool:
    """Equal but for the moment it was recorded."""
    return bool(replace(known, at_us=fact.at_us) == fact)


STREAMS: dict[str, tuple[Any, Any]] = {"chain-tx": (ChainTx(), evolve_chain_tx)}
DECIDERS: dict[type[Any], Any] = {
    IntendChainTx: decide_intend,
    RecordChainTxSigned: decide_signed,
    RecordChainTxBroadcast: decide_broadcast,
    RecordChainTxMined: decide_mined,
    RecordChainTxReorged: decide_reorged,
    RecordChainTxFinalized: decide_finalized,
    RecordChainTxFailed: decide_failed,
}
