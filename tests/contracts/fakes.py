"""A small model of a node with a mempool, and stores in memory: they pass the same promises.

The embedded chain has no mempool, so gaps, replacements and reorganisations are played here. The
node keeps real signed bytes and decodes them, and applies each nonce of a sender once, in order.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from contracts.abi import ContractRefused
from contracts.chain import Block, BlockTag, Call, Fees, Receipt, Sent
from contracts.outbox import ENDED, Intent
from contracts.payout_tree import keccak256
from contracts.scanner import Cursor, Observation

CHAIN_ID = 1337


class Killed(BaseException):
    """The process dies here."""


@dataclass(frozen=True)
class Sending:
    """Signed bytes with what they say."""

    hash: str
    raw: bytes
    sender: str
    nonce: int
    to: str
    data: bytes
    max_fee: int
    tip: int

    @classmethod
    def of(cls, raw: bytes) -> Sending:
        found = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        return cls(
            hash="0x" + keccak256(raw).hex(),
            raw=raw,
            sender=Account.recover_transaction(HexBytes(raw)).lower(),
            nonce=found["nonce"],
            to="0x" + bytes(found["to"]).hex(),
            data=bytes(found["data"]),
            max_fee=found["maxFeePerGas"],
            tip=found["maxPriorityFeePerGas"],
        )


@dataclass
class FakeNode:
    """Blocks hold sendings; `finality` blocks behind the head are final."""

    finality: int = 2
    base_fee: int = 10**9
    chain_id: int = CHAIN_ID
    blocks: list[tuple[Block, tuple[Sending, ...]]] = field(default_factory=list)
    pool: dict[tuple[str, int], Sending] = field(default_factory=dict)
    reverting: set[bytes] = field(default_factory=set)
    refusing: set[bytes] = field(default_factory=set)
    forks: int = 0

    def __post_init__(self) -> None:
        self._append(())

    # What the outbox asks.

    def block(self, number: BlockTag = "latest") -> Block | None:
        if number == "latest":
            return self.head()
        if number == "finalized":
            number = self.finalized()
        assert isinstance(number, int)
        return self.blocks[number][0] if 0 <= number < len(self.blocks) else None

    def head(self) -> Block:
        return self.blocks[-1][0]

    def finalized(self) -> int:
        return max(-1, self.head().number - self.finality)

    def transaction_count(self, address: str, number: BlockTag = "latest") -> int:
        last = self.head().number if number == "latest" else number
        assert isinstance(last, int)
        mined = [s for _, sendings in self.blocks[: last + 1] for s in sendings]
        return sum(sending.sender == address.lower() for sending in mined)

    def fees(self) -> Fees:
        return Fees(2 * self.base_fee + 10**9, 10**9)

    def estimate_gas(self, sender: str, call: Call) -> int:
        assert sender
        if call.data in self.refusing:
            raise ContractRefused("NothingToClaim", {}, b"")
        return 60_000

    def transaction(self, call: Call, *, nonce: int, gas: int, fees: Fees) -> dict[str, Any]:
        return {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": nonce,
            "to": call.to,
            "value": 0,
            "data": call.data,
            "gas": gas,
            "maxFeePerGas": fees.max_fee,
            "maxPriorityFeePerGas": fees.tip,
        }

    def send(self, raw: bytes) -> Sent:
        sending = Sending.of(raw)
        if sending.nonce < self.transaction_count(sending.sender):
            return Sent.NONCE_TOO_LOW
        there = self.pool.get((sending.sender, sending.nonce))
        if there == sending:
            return Sent.KNOWN
        if there is not None and (
            sending.max_fee * 10 < there.max_fee * 11 or sending.tip * 10 < there.tip * 11
        ):
            return Sent.NOT_YET
        self.pool[sending.sender, sending.nonce] = sending
        return Sent.ACCEPTED

    def receipt(self, transaction: str) -> Receipt | None:
        for block, sendings in self.blocks:
            for sending in sendings:
                if sending.hash == transaction:
                    ok = sending.data not in self.reverting
                    return Receipt(transaction, ok, block.number, block.hash, 50_000, None)
        return None

    # What happens to it.

    def mine(self, count: int = 1) -> None:
        """Mine blocks; the first takes what the pool can pay for, in order of nonce."""
        for _ in range(count):
            self._append(self._take())

    def reorg(self, depth: int, *, forget: bool = False) -> None:
        """The last blocks never happened; their transactions wait again unless forgotten."""
        gone = self.blocks[len(self.blocks) - depth :]
        del self.blocks[len(self.blocks) - depth :]
        self.forks += 1
        if not forget:
            for _, sendings in gone:
                for sending in sendings:
                    self.pool.setdefault((sending.sender, sending.nonce), sending)
        for _ in gone:
            self._append(())

    def effects(self, data: bytes) -> int:
        """How often a call took effect on the present chain."""
        mined = [s for _, sendings in self.blocks for s in sendings]
        return sum(s.data == data and s.data not in self.reverting for s in mined)

    def _take(self) -> tuple[Sending, ...]:
        taken: list[Sending] = []
        for sender, nonce in sorted(self.pool):
            sending = self.pool[sender, nonce]
            known = self.transaction_count(sender) + sum(s.sender == sender for s in taken)
            if nonce == known and sending.max_fee >= self.base_fee:
                taken.append(sending)
        for sending in taken:
            del self.pool[sending.sender, sending.nonce]
        return tuple(taken)

    def _append(self, sendings: tuple[Sending, ...]) -> None:
        number = len(self.blocks)
        parent = self.blocks[-1][0].hash if self.blocks else "0x" + "00" * 32
        content = (number, parent, self.forks, [sending.hash for sending in sendings])
        name = "0x" + hashlib.sha256(repr(content).encode()).hexdigest()
        self.blocks.append((Block(number, name, parent, number, self.base_fee), sendings))


class MemoryStore:
    """Intents in a dictionary; keeps every saved state for tests that look at the order."""

    def __init__(self) -> None:
        self.intents: dict[str, Intent] = {}
        self.history: list[Intent] = []
        self._lock = threading.Lock()

    @contextmanager
    def lock(self, sender: str, chain_id: int) -> Iterator[None]:
        assert sender
        assert chain_id
        with self._lock:
            yield

    def load(self, intent_id: str) -> Intent | None:
        return self.intents.get(intent_id)

    def save(self, intent: Intent) -> None:
        for other in self.intents.values():
            taken = (other.sender, other.chain_id, other.nonce)
            same = other.nonce is not None and taken == (
                intent.sender,
                intent.chain_id,
                intent.nonce,
            )
            assert not same or other.id == intent.id, f"nonce of {other.id}"
        self.intents[intent.id] = intent
        self.history.append(intent)

    def nonce_max(self, sender: str, chain_id: int) -> int | None:
        nonces = [
            intent.nonce
            for intent in self.intents.values()
            if (intent.sender, intent.chain_id) == (sender, chain_id) and intent.nonce is not None
        ]
        return max(nonces, default=None)

    def unfinished(self) -> Sequence[str]:
        waiting = [intent for intent in self.intents.values() if intent.state not in ENDED]
        return [i.id for i in sorted(waiting, key=lambda i: (i.nonce is None, i.nonce, i.id))]


class MemoryScans:
    """The scanner's memory in a process."""

    def __init__(self) -> None:
        self._cursor: Cursor | None = None
        self._hashes: dict[int, str] = {}
        self._seen: dict[str, Observation] = {}
        self._done: set[str] = set()
        self._final = -1
        self.orphans: list[Observation] = []

    def cursor(self) -> Cursor | None:
        return self._cursor

    def block_hash(self, number: int) -> str | None:
        return self._hashes.get(number)

    def final(self) -> int:
        return self._final

    def advance(self, blocks: Sequence[Cursor], seen: Sequence[Observation], *, final: int) -> None:
        self._final = max(self._final, final)
        self._hashes |= {block.number: block.hash for block in blocks}
        self._seen |= {found.key: found for found in seen}
        self._cursor = blocks[-1]

    def rewind(self, to: Cursor) -> None:
        self._hashes = {n: h for n, h in self._hashes.items() if n <= to.number}
        self.orphans += [s for s in self._seen.values() if s.block_number > to.number]
        self._seen = {k: s for k, s in self._seen.items() if s.block_number <= to.number}
        self._cursor = to

    def waiting(self, final: int) -> Sequence[Observation]:
        return [
            found
            for found in self._seen.values()
            if found.effect_key is not None
            and found.effect_key not in self._done
            and found.block_number <= final
        ]

    def done(self, effect_key: str, block_number: int) -> None:
        self._done.add(effect_key)
        self._final = max(self._final, block_number)


class Mortal:
    """Wraps a store or a node: kills the process before or after the n-th call over all of them."""

    def __init__(self, inner: Any, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found) or name == "lock":
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self._fate.before()
            answer = found(*arguments, **options)
            self._fate.after()
            return answer

        return call


class Fate:
    """When the next death comes: a number of half steps from now; never when None."""

    def __init__(self, half_steps: int | None = None) -> None:
        self.half_steps = half_steps
        self.passed = 0

    def before(self) -> None:
        self._tick()

    def after(self) -> None:
        self._tick()

    def _tick(self) -> None:
        self.passed += 1
        if self.half_steps is None:
            return
        if self.half_steps == 0:
            self.half_steps = None
            raise Killed
        self.half_steps -= 1
