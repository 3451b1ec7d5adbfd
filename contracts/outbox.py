"""Transactions that happen exactly once, whatever is killed: sign, make durable, only then send.

    one intent == one nonce == at most one effect on chain

An intent is named by its purpose ("mint/7"), so a job that runs again finds its own. Its nonce is
chosen under a lock: max(what the chain has counted, own highest + 1). The signed bytes are stored
before anybody else sees them; after a crash the same bytes are sent again, which is harmless. A
bump or a cancellation is another attempt at the same nonce, so the chain itself picks one.

    INTENDED -> SIGNED -> BROADCAST -> MINED -> FINAL | CANCELLED | FAILED
                  ^                      |
                  +------- reorged ------+

Storage is a port: PostgreSQL in the service, one fsynced file per intent for scripts (`FileStore`).
This file decides no payments and books nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from contracts.chain import Block, BlockTag, Call, Fees, Receipt, Sent
from contracts.durable_file import write_durably
from contracts.signers import Signer, check_signed

BUMP_PER_MILLE = 125
CANCEL_GAS = 21_000


class State(StrEnum):
    """How far an intent has come."""

    INTENDED = "intended"
    SIGNED = "signed"
    BROADCAST = "broadcast"
    MINED = "mined"
    FINAL = "final"
    CANCELLED = "cancelled"
    FAILED = "failed"


ENDED = frozenset({State.FINAL, State.CANCELLED, State.FAILED})


class IntentDiffers(Exception):
    """The same purpose was asked for before with another call or another sender."""


class FeeCapReached(Exception):
    """The network asks for more than the configured cap; nothing was signed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Signed bytes at the intent's nonce. Fees in wei per gas, `block` the head when signed."""

    hash: str
    raw: bytes
    max_fee: int
    tip: int
    block: int
    is_cancel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One transaction to be made, with everything that was tried for it. `gas` 0: not signed yet.

    `mined` is the receipt of the attempt that is in a block, `note` says why an intent failed.
    """

    id: str
    sender: str
    chain_id: int
    to: str
    data: bytes
    state: State = State.INTENDED
    nonce: int | None = None
    gas: int = 0
    attempts: tuple[Attempt, ...] = ()
    mined: Receipt | None = None
    note: str = ""

    @property
    def call(self) -> Call:
        return Call(self.to, self.data)

    @property
    def data_sha256(self) -> str:
        """What the ledger records of the calldata."""
        return hashlib.sha256(self.data).hexdigest()


class Store(Protocol):
    """Where intents live. `save` is durable when it returns and replaces the intent as a whole.

    It sees every state on the way, in order, so a store can turn each into a recorded fact.
    """

    def lock(self, sender: str, chain_id: int) -> AbstractContextManager[None]:
        """One at a time per key, over all processes; held over calls to the node and saves."""
        ...

    def load(self, intent_id: str) -> Intent | None:
        """The intent as last saved."""
        ...

    def save(self, intent: Intent) -> None:
        """Refuses (raises) a second intent with the same sender, chain and nonce."""
        ...

    def nonce_max(self, sender: str, chain_id: int) -> int | None:
        """The highest nonce of any intent of this key; None before the first."""
        ...

    def unfinished(self) -> Sequence[str]:
        """Ids of the intents that have not ended, oldest nonce first."""
        ...


class Node(Protocol):
    """What the outbox asks of a chain; `contracts.chain.Chain` is one."""

    chain_id: int

    def block(self, number: BlockTag = ...) -> Block | None: ...
    def head(self) -> Block: ...
    def finalized(self) -> int: ...
    def transaction_count(self, address: str, number: BlockTag = ...) -> int: ...
    def fees(self) -> Fees: ...
    def estimate_gas(self, sender: str, call: Call) -> int: ...
    def send(self, raw: bytes) -> Sent: ...
    def receipt(self, transaction: str) -> Receipt | None: ...
    def transaction(self, call: Call, *, nonce: int, gas: int, fees: Fees) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to pay more, and how much at most (wei per gas)."""

    max_fee_cap: int = 500 * 10**9
    bump_after_blocks: int = 10


class Outbox:
    """Carries intents to their end. Every method may be repeated after a crash at any step."""

    def __init__(
        self, store: Store, node: Node, signers: Sequence[Signer], limits: Limits | None = None
    ) -> None:
        self._store = store
        self._node = node
        self._signers: Mapping[str, Signer] = {s.address.lower(): s for s in signers}
        self._limits = limits or Limits()

    def submit(self, intent_id: str, sender: str, call: Call) -> Intent:
        """Make the call happen once: record it, sign it, make that durable, send it.

        Raises ContractRefused when the call would revert and FeeCapReached; no nonce is used then,
        and the intent waits as INTENDED. Raises IntentDiffers for an id that means another call.
        """
        with self._store.lock(sender, self._node.chain_id):
            intent = self._store.load(intent_id)
            if intent is None:
                chain_id = self._node.chain_id
                intent = self._save(
                    Intent(
                        id=intent_id, sender=sender, chain_id=chain_id, to=call.to, data=call.data
                    )
                )
        same = (intent.sender.lower(), intent.to.lower(), intent.data)
        if same != (sender.lower(), call.to.lower(), call.data):
            raise IntentDiffers(intent_id)
        return self.advance(intent_id)

    def advance(self, intent_id: str) -> Intent:
        """Take an intent as far as it goes now; call it again when the chain has moved on.

        Raises like `submit`.
        """
        with self._locked(intent_id) as intent:
            if intent.state in ENDED:
                return intent
            if intent.state is State.INTENDED:
                intent = self._sign_first(intent)
            if intent.state is State.SIGNED:
                intent = self._send(intent)
            intent = self._watch(intent)
            if intent.state is State.BROADCAST and self._is_late(intent):
                intent = self._bump(intent, is_cancel=intent.attempts[-1].is_cancel)
            return intent

    def advance_all(self) -> list[Intent]:
        """`advance` for everything that has not ended."""
        return [self.advance(intent_id) for intent_id in self._store.unfinished()]

    def cancel(self, intent_id: str) -> Intent:
        """Try to use the nonce up with a transfer of nothing to oneself; the chain decides.

        Raises FeeCapReached.
        """
        with self._locked(intent_id) as intent:
            if intent.state is State.INTENDED:
                return self._save(replace(intent, state=State.CANCELLED))
            if intent.state in ENDED or intent.state is State.MINED:
                return intent
            return self._bump(intent, is_cancel=True)

    def bump(self, intent_id: str) -> Intent:
        """Pay more now: the same nonce, both fees up by an eighth. Raises FeeCapReached."""
        with self._locked(intent_id) as intent:
            assert intent.state in {State.SIGNED, State.BROADCAST}, intent.state
            return self._bump(intent, is_cancel=intent.attempts[-1].is_cancel)

    @contextmanager
    def _locked(self, intent_id: str) -> Iterator[Intent]:
        sender = self._load(intent_id).sender
        with self._store.lock(sender, self._node.chain_id):
            yield self._load(intent_id)  # another process may have been faster

    def _sign_first(self, intent: Intent) -> Intent:
        gas = self._node.estimate_gas(intent.sender, intent.call)
        fees = self._node.fees()
        if fees.max_fee > self._limits.max_fee_cap:
            raise FeeCapReached(f"{fees.max_fee} wei, cap {self._limits.max_fee_cap}")
        own = self._store.nonce_max(intent.sender, intent.chain_id)
        counted = self._node.transaction_count(intent.sender, "latest")
        nonce = max(counted, -1 if own is None else own + 1)
        intent = replace(intent, nonce=nonce, gas=gas)
        attempt = self._attempt(intent, fees, is_cancel=False)
        return self._save(replace(intent, state=State.SIGNED, attempts=(attempt,)))

    def _attempt(self, intent: Intent, fees: Fees, *, is_cancel: bool) -> Attempt:
        assert intent.nonce is not None, intent.id
        call = Call(intent.sender, b"") if is_cancel else intent.call
        gas = CANCEL_GAS if is_cancel else intent.gas
        wanted = self._node.transaction(call, nonce=intent.nonce, gas=gas, fees=fees)
        raw = self._signers[intent.sender.lower()].sign_transaction(wanted)
        signed = check_signed(raw, wanted, intent.sender)
        return Attempt(
            hash=signed.hash,
            raw=signed.raw,
            max_fee=fees.max_fee,
            tip=fees.tip,
            block=self._node.head().number,
            is_cancel=is_cancel,
        )

    def _send(self, intent: Intent) -> Intent:
        answer = self._node.send(intent.attempts[-1].raw)
        if answer is Sent.NOT_YET:
            return intent
        # A nonce that is too low was used by one of our attempts or by a stranger: watch tells.
        return self._save(replace(intent, state=State.BROADCAST))

    def _watch(self, intent: Intent) -> Intent:
        nonce = intent.nonce
        assert nonce is not None, intent.id
        # The final count is read before the receipts: a nonce used up at a final block whose
        # receipt is still missing afterwards was used by somebody else.
        final = self._node.finalized()
        used = self._node.transaction_count(intent.sender, final) if final >= 0 else 0
        receipt = self._canonical_receipt(intent)
        if intent.mined is not None and intent.mined != receipt:
            intent = self._save(replace(intent, state=State.SIGNED, mined=None))
            intent = self._send(intent)  # reorganised away: the same bytes once more
        if receipt is not None:
            if intent.mined is None:
                intent = self._save(replace(intent, state=State.MINED, mined=receipt))
            return self._finish(intent, receipt) if receipt.block_number <= final else intent
        if used > nonce:
            note = "a foreign transaction used the nonce: somebody else has the key"
            return self._save(replace(intent, state=State.FAILED, note=note))
        if intent.state is State.BROADCAST:
            self._node.send(intent.attempts[-1].raw)  # the node may have forgotten it
        return intent

    def _canonical_receipt(self, intent: Intent) -> Receipt | None:
        for attempt in intent.attempts:
            receipt = self._node.receipt(attempt.hash)
            if receipt is None:
                continue
            block = self._node.block(receipt.block_number)
            if block is not None and block.hash == receipt.block_hash:
                return receipt
        return None

    def _finish(self, intent: Intent, receipt: Receipt) -> Intent:
        if not receipt.ok:
            return self._save(replace(intent, state=State.FAILED, note="reverted"))
        (attempt,) = (attempt for attempt in intent.attempts if attempt.hash == receipt.hash)
        state = State.CANCELLED if attempt.is_cancel else State.FINAL
        return self._save(replace(intent, state=state))

    def _is_late(self, intent: Intent) -> bool:
        waited = self._node.head().number - intent.attempts[-1].block
        return waited >= self._limits.bump_after_blocks and self._fits_cap(_bumped(intent))

    def _fits_cap(self, fees: Fees) -> bool:
        return fees.max_fee <= self._limits.max_fee_cap

    def _bump(self, intent: Intent, *, is_cancel: bool) -> Intent:
        fees = _bumped(intent)
        if not self._fits_cap(fees):
            raise FeeCapReached(f"{fees.max_fee} wei, cap {self._limits.max_fee_cap}")
        attempt = self._attempt(intent, fees, is_cancel=is_cancel)
        attempts = (*intent.attempts, attempt)
        return self._send(self._save(replace(intent, state=State.SIGNED, attempts=attempts)))

    def _load(self, intent_id: str) -> Intent:
        intent = self._store.load(intent_id)
        assert intent is not None, f"no intent {intent_id}"
        return intent

    def _save(self, intent: Intent) -> Intent:
        self._store.save(intent)
        return intent


class FileStore:
    """One fsynced JSON file per intent in a folder: for the payout scripts, one machine."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    @contextmanager
    def lock(self, sender: str, chain_id: int) -> Iterator[None]:
        name = f".{sender.lower()}-{chain_id}.lock"
        with (self._folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def load(self, intent_id: str) -> Intent | None:
        path = self._path(intent_id)
        return _decode(path.read_bytes()) if path.exists() else None

    def save(self, intent: Intent) -> None:
        if intent.nonce is not None:
            for other in self._all():
                key = (other.sender.lower(), other.chain_id, other.nonce)
                same_nonce = key == (intent.sender.lower(), intent.chain_id, intent.nonce)
                assert not same_nonce or other.id == intent.id, f"nonce of {other.id}"
        write_durably(self._path(intent.id), _encode(intent))

    def nonce_max(self, sender: str, chain_id: int) -> int | None:
        nonces = [
            intent.nonce
            for intent in self._all()
            if (intent.sender.lower(), intent.chain_id) == (sender.lower(), chain_id)
            and intent.nonce is not None
        ]
        return max(nonces, default=None)

    def unfinished(self) -> Sequence[str]:
        waiting = [intent for intent in self._all() if intent.state not in ENDED]
        return [i.id for i in sorted(waiting, key=lambda i: (i.nonce is None, i.nonce, i.id))]

    def _all(self) -> list[Intent]:
        return [_decode(path.read_bytes()) for path in sorted(self._folder.glob("*.json"))]

    def _path(self, intent_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(intent_id.encode()).hexdigest()[:32]}.json"


def _bumped(intent: Intent) -> Fees:
    """Both fees up by an eighth, rounded up: nodes refuse a replacement that pays less."""
    return Fees(
        _up(max(attempt.max_fee for attempt in intent.attempts)),
        _up(max(attempt.tip for attempt in intent.attempts)),
    )


def _up(fee: int) -> int:
    return fee - (-fee * BUMP_PER_MILLE // 1000)


def _encode(intent: Intent) -> bytes:
    document = asdict(intent) | {"data": intent.data.hex(), "chain_id": str(intent.chain_id)}
    document["attempts"] = [asdict(a) | {"raw": a.raw.hex()} for a in intent.attempts]
    return json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"


def _decode(data: bytes) -> Intent:
    document = json.loads(data)
    attempts = (
        Attempt(**(entry | {"raw": bytes.fromhex(entry["raw"])}))
        for entry in document.pop("attempts")
    )
    document["state"] = State(document["state"])
    document["mined"] = document["mined"] and Receipt(**document["mined"])
    document["chain_id"] = int(document["chain_id"])
    document["data"] = bytes.fromhex(document["data"])
    return Intent(**document, attempts=tuple(attempts))
