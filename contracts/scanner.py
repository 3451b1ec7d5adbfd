"""Reads the contracts' events, survives reorganisations, and lets out only what is final.

The cursor is (block number, block hash). Each step compares the next block's parent with it; on a
mismatch it walks back to the last block both histories share and marks what came after as
orphaned. A log line is known by (chain id, block hash, log index); the effect it stands for by
(contract, purchase id | seq + account + cumulative | epoch | seq + transaction).

    an effect leaves the scanner only when final, and once: known effects are not let out again

If something final disappears it stops with FinalityBroken and never repairs. It books nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from contracts.chain import Block, BlockTag, NodeFailed
from contracts.tally import Event

RANGE_MAX = 2_000
"""Blocks per question; halved when the node refuses."""


class FinalityBroken(Exception):
    """A block that was final is no longer in the chain: stop, and let a person look."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last block that was read."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One event as seen in one block. Arguments are JSON-ready: amounts as decimal strings."""

    chain_id: int
    block_number: int
    block_hash: str
    log_index: int
    transaction: str
    contract: str
    event: str
    arguments: Mapping[str, str]
    effect_key: str | None

    @property
    def key(self) -> str:
        """Names this log line on this branch of the chain."""
        return f"{self.chain_id}/{self.block_hash}/{self.log_index}"


class ScannerStore(Protocol):
    """Where the scanner remembers. `advance` and `rewind` are atomic and durable."""

    def cursor(self) -> Cursor | None:
        """None before the first step."""
        ...

    def block_hash(self, number: int) -> str | None:
        """The hash read at a block; known at least from the last final block on."""
        ...

    def final(self) -> int:
        """The highest block number ever known to be final; -1 before that."""
        ...

    def advance(self, blocks: Sequence[Cursor], seen: Sequence[Observation], *, final: int) -> None:
        """Remember blocks (ascending) and observations; the last block becomes the cursor.

        `final` is the highest of them that is final; it is kept if it is higher than before.
        """
        ...

    def rewind(self, to: Cursor) -> None:
        """Mark observations above `to` orphaned, forget those blocks, set the cursor."""
        ...

    def waiting(self, final: int) -> Sequence[Observation]:
        """Not orphaned, with an effect that is not done, block <= final; in chain order."""
        ...

    def done(self, effect_key: str, block_number: int) -> None:
        """The effect is in the ledger; its block is final, so `final` is at least that."""
        ...


class Source(Protocol):
    """The chain as the scanner needs it: `contracts.tally.Tally` with its `Chain`."""

    def events(self, first: int, last: int) -> list[Event]: ...


class Blocks(Protocol):
    """Block identities; `contracts.chain.Chain` has them."""

    chain_id: int

    def block(self, number: BlockTag = ...) -> Block | None: ...
    def head(self) -> Block: ...
    def finalized(self) -> int: ...


class Scanner:
    """Follows one deployment from its first block."""

    def __init__(self, store: ScannerStore, blocks: Blocks, source: Source, *, first: int) -> None:
        assert first >= 1, "block 0 holds no contract"
        self._store = store
        self._blocks = blocks
        self._source = source
        self._first = first

    def step(self) -> int:
        """Read the next range of blocks; the number of blocks read, 0 when at the head.

        Raises FinalityBroken, NodeFailed.
        """
        cursor = self._common_ancestor()
        head = self._blocks.head().number
        last = min(head, cursor.number + RANGE_MAX)
        if last <= cursor.number:
            return 0
        final = self._blocks.finalized()
        events, last = self._events(cursor.number + 1, last)
        headers = self._headers(cursor, last, final)
        if headers is None:
            return 0  # the chain moved while we read: nothing is kept, the next step starts over
        hashes = {header.number: header.hash for header in headers}
        if any(
            event.log.block_hash != hashes.get(event.log.block_number, event.log.block_hash)
            for event in events
        ):
            return 0
        seen = [observation(self._blocks.chain_id, event) for event in events]
        self._store.advance(headers, seen, final=min(final, last))
        return last - cursor.number

    def catch_up(self) -> None:
        """`step` until there is nothing new."""
        while self.step():
            pass

    def effects(self) -> list[Observation]:
        """Final effects that the ledger has not taken yet, each once, in chain order.

        Give each to the ledger under its effect key, then call `done`: a crash between the two
        brings it out again, and the ledger knows the key.
        """
        final = min(self._blocks.finalized(), self._cursor_number())
        by_key: dict[str, Observation] = {}
        for found in self._store.waiting(final):
            assert found.effect_key is not None, found
            by_key.setdefault(found.effect_key, found)
        return list(by_key.values())

    def done(self, effect: Observation) -> None:
        """The ledger has it."""
        assert effect.effect_key is not None, effect
        self._store.done(effect.effect_key, effect.block_number)

    def _cursor_number(self) -> int:
        cursor = self._store.cursor()
        return -1 if cursor is None else cursor.number

    def _common_ancestor(self) -> Cursor:
        cursor = self._store.cursor()
        if cursor is None:
            block = self._blocks.block(self._first - 1)
            assert block is not None, "the deployment is later than the chain"
            cursor = Cursor(block.number, block.hash)
            self._store.advance([cursor], [], final=min(self._blocks.finalized(), cursor.number))
            return cursor
        number, known = cursor.number, cursor.hash
        while not self._is_on_chain(number, known):
            number -= 1
            before = self._store.block_hash(number)
            if number < self._store.final() or before is None:
                raise FinalityBroken(f"block {number + 1} {known} is gone")
            known = before
        if number != cursor.number:
            cursor = Cursor(number, known)
            self._store.rewind(cursor)
        return cursor

    def _is_on_chain(self, number: int, known: str) -> bool:
        block = self._blocks.block(number)
        return block is not None and block.hash == known

    def _events(self, first: int, last: int) -> tuple[list[Event], int]:
        """Events of [first, last], or of a shorter range when the node finds that too long."""
        while True:
            try:
                return self._source.events(first, last), last
            except NodeFailed:
                if last == first:
                    raise
                last = first + (last - first) // 2

    def _headers(self, cursor: Cursor, last: int, final: int) -> list[Cursor] | None:
        """Hashes of every block that may still go, and of the last; None when the chain moved.

        Final blocks need no remembering one by one: the last final one bounds the way back.
        """
        start = max(cursor.number + 1, min(final, last))
        parent, found = (cursor.hash if start == cursor.number + 1 else None), []
        for number in range(start, last + 1):
            block = self._blocks.block(number)
            if block is None or (parent is not None and block.parent_hash != parent):
                return None
            parent = block.hash
            found.append(Cursor(number, block.hash))
        if not self._is_on_chain(cursor.number, cursor.hash):
            return None
        return found


def observation(chain_id: int, event: Event) -> Observation:
    """An event as it is remembered."""
    return Observation(
        chain_id=chain_id,
        block_number=event.log.block_number,
        block_hash=event.log.block_hash,
        log_index=event.log.index,
        transaction=event.log.transaction,
        contract=event.contract,
        event=event.name,
        arguments={name: _text(value) for name, value in event.arguments.items()},
        effect_key=effect_key(event),
    )


def effect_key(event: Event) -> str | None:
    """What an event does to the ledger, whichever block it ends up in; None when nothing."""
    told = event.arguments
    parts: tuple[Any, ...]
    match event.name:
        case "CreditsPurchased":
            parts = ("purchase", told["purchaseId"])
        case "EpochMinted":
            parts = ("mint", told["epoch"])
        case "Claimed":
            parts = ("claim", told["seq"], told["account"].lower(), told["cumulative"])
        case "RootAccepted":
            parts = ("accepted", told["seq"])
        case "RootProposed":
            parts = ("proposed", told["seq"], event.log.transaction)
        case "RootVetoed":  # one seq may be proposed and thrown out many times
            parts = ("vetoed", told["seq"], event.log.transaction)
        case _:
            return None
    return "/".join((event.log.address.lower(), *map(str, parts)))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value)
