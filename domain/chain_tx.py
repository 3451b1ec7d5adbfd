"""The life of one transaction of ours: decided, signed, sent, mined, final. Stream `chain-tx:{id}`.

The id derives from the purpose ("mint/7"), so a repeated job finds its own stream. The signed
bytes are durable before anybody else sees them, and one intent never gets a second nonce.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Big


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
