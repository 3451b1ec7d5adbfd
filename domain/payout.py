"""Payouts: a Merkle root of lifetime totals, proposed, accepted after a timelock, and claimed.

    claimed(account) <= leaf(account) == lifetime total ever matured;   sum(leaves) == committed

A leaf never falls, so a claim is idempotent and order does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMintConfirmed:
    """A final `EpochMinted`. Stream `payout:{epoch}`."""

    epoch: int
    amount: Amount
    settlement_id: str  # SHA-256 of the epoch file, hex
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutRootBuilt:
    epoch: int
    seq: int  # accepted roots of the distributor, from 1; not the epoch number
    root: str  # hex, keccak
    manifest_sha256: str  # SHA-256 of the epoch file
    previous_root: str
    committed: Amount
    leaves: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootProposed:
    epoch: int
    seq: int
    root: str
    valid_at_us: int
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootVetoed:
    epoch: int
    seq: int
    root: str
    reason: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootAccepted:
    epoch: int
    seq: int
    root: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutConfirmed:
    """A final `Claimed`. Stream `claim:{distributor}/{address}/{cumulative}`."""

    distributor: str
    account_id: str
    address: str
    seq: int
    amount: Amount
    cumulative: Amount
    tx_hash: str
    log_index: int
    block_number: int
    at_us: int
