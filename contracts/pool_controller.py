"""The controller contract of one pool: deployed per pool, filled from the log, held against it.

    components on chain == components in the log        by id, kind and whether they have left
    (seq, heads) on chain == heads that the log cut at position seq
    metadata hash on chain == SHA-256 of the pool's metadata

The log decides, the contract anchors: it holds no funds, and a difference is told about the pool
and stops nothing else. Every call made from here changes only what is missing, so running it again
after a crash sends nothing twice. Source: design chain 2, row J-4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contracts.abi import POOL_CONTROLLER, ContractRefused, artifact
from contracts.chain import BlockTag, Call, Chain
from contracts.deployment import Difference
from contracts.payout_tree import keccak256
from contracts.signers import Signer
from domain.pools.component import COMPONENTS_MAX, reference_of

KIND_BYTES = 32
NO_HASH = bytes(32)


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a pool: its id in the ledger, its kind, whether it has left."""

    component_id: str
    kind: str
    is_retired: bool

    @property
    def reference(self) -> bytes:
        """Its id on chain, 32 bytes."""
        return reference_of(self.component_id)

    @property
    def kind_bytes(self) -> bytes:
        """The kind as ASCII text, padded with zeros to 32 bytes."""
        return self.kind.encode("ascii").ljust(KIND_BYTES, b"\0")


@dataclass(frozen=True, slots=True)
class Heads:
    """What the log cut at market-log position `seq`; 0 and zeros before the first cut."""

    seq: int
    allocation: bytes
    licence: bytes


NO_HEADS = Heads(0, NO_HASH, NO_HASH)


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A pool as the ledger has it: `metadata_hashes` of all versions, the one in force last; `cuts`
    are the heads it has cut, by position.
    """

    components: tuple[Component, ...]
    metadata_hashes: tuple[bytes, ...]
    cuts: Mapping[int, Heads]

    @property
    def metadata_hash(self) -> bytes:
        return self.metadata_hashes[-1] if self.metadata_hashes else NO_HASH

    @property
    def last(self) -> Heads:
        return self.cuts[max(self.cuts)] if self.cuts else NO_HEADS


@dataclass(frozen=True, slots=True)
class OnChain:
    """What a controller says: components by reference, with kind and whether retired."""

    heads: Heads
    metadata_hash: bytes
    components: Mapping[bytes, tuple[bytes, bool]]


def deploy(chain: Chain, deployer: Signer, *, registrar: str, anchorer: str) -> str:
    """Deploy a controller and return its address. The deployer administers its roles.

    Raises like `Chain.execute`. Run twice, it deploys two: only one is named by a pool.
    """
    data = artifact(POOL_CONTROLLER).deploy_data(deployer.address, registrar, anchorer)
    receipt = chain.execute(deployer, deploy=data)
    assert receipt.contract is not None, "a deployment has an address"
    return receipt.contract


def is_ours(chain: Chain, address: str, number: BlockTag = "latest") -> bool:
    """Whether the code at an address is the committed controller."""
    return artifact(POOL_CONTROLLER).runtime_matches(chain.code(address, number))


def read(chain: Chain, address: str, number: BlockTag = "latest") -> OnChain:
    """The controller's whole state at a block. Raises ContractRefused where it is none of ours."""

    def ask(function: str, *arguments: Any) -> tuple[Any, ...]:
        call = _call(address, function, *arguments)
        return artifact(POOL_CONTROLLER).results(function, chain.call(call, number=number))

    count = min(int(ask("componentCount")[0]), COMPONENTS_MAX + 1)
    found = [ask("componentAt", index) for index in range(count)]
    heads = Heads(int(ask("seq")[0]), *(bytes(ask(f"{one}Head")[0]) for one in _HEADS))
    return OnChain(
        heads,
        bytes(ask("metadataHash")[0]),
        {bytes(reference): (bytes(kind), bool(retired)) for reference, kind, retired in found},
    )


def missing(record: PoolRecord, there: OnChain, address: str) -> Iterator[tuple[str, Call]]:
    """The calls that bring a controller up to the ledger, each with what it does in words."""
    for one in record.components:
        kind, is_retired = there.components.get(one.reference, (None, False))
        if kind is None:
            call = _call(address, "registerComponent", one.reference, one.kind_bytes)
            yield f"register {one.kind} {one.component_id}", call
        if one.is_retired and not is_retired:
            call = _call(address, "retireComponent", one.reference)
            yield f"retire {one.kind} {one.component_id}", call
    if record.metadata_hash != there.metadata_hash:
        call = _call(address, "setMetadataHash", record.metadata_hash)
        yield "set the hash of the metadata", call
    last = record.last
    if last.seq > there.heads.seq:
        call = _call(address, "anchorHeads", last.seq, last.allocation, last.licence)
        yield f"anchor the heads at position {last.seq}", call


def differences(chain: Chain, address: str, record: PoolRecord, number: int) -> list[Difference]:
    """Where a controller contradicts the ledger at block `number`.

    What is not yet there is no contradiction: the pool's owner publishes when he likes.
    """
    if not is_ours(chain, address, number):
        code = chain.code(address, number)
        got = keccak256(code).hex() if code else "no code"
        return [Difference("controller code", "the committed artifact", got)]
    try:
        there = read(chain, address, number)
    except ContractRefused as error:
        return [Difference("controller", "readable", error)]
    return [*_component_differences(record, there), *_head_differences(record, there)]


def _component_differences(record: PoolRecord, there: OnChain) -> Iterator[Difference]:
    known = {one.reference: one for one in record.components}
    for reference, (kind, is_retired) in there.components.items():
        own = known.get(reference)
        if own is None:
            yield Difference(f"component 0x{reference.hex()}", "not registered", "on chain")
        elif own.kind_bytes != kind:
            yield Difference(f"kind of {own.component_id}", own.kind, _text(kind))
        elif is_retired and not own.is_retired:
            yield Difference(f"component {own.component_id}", "in the pool", "retired")
    if there.metadata_hash not in {NO_HASH, *record.metadata_hashes}:
        expected, got = record.metadata_hash.hex(), there.metadata_hash.hex()
        yield Difference("metadata hash", expected, got)


def _head_differences(record: PoolRecord, there: OnChain) -> Iterator[Difference]:
    heads = there.heads
    if heads.seq == 0:
        return
    own = record.cuts.get(heads.seq)
    if own is None:
        yield Difference("position of the heads", "one that the log cut", heads.seq)
        return
    for name in _HEADS:
        expected, got = getattr(own, name), getattr(heads, name)
        if expected != got:
            yield Difference(f"{name} head at {heads.seq}", expected.hex(), got.hex())


_HEADS = ("allocation", "licence")


def _call(address: str, function: str, *arguments: Any) -> Call:
    return Call(address, artifact(POOL_CONTROLLER).call_data(function, *arguments))


def _text(kind: bytes) -> str:
    return kind.rstrip(b"\0").decode("ascii", "backslashreplace")
