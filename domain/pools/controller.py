"""What a pool shows on its controller contract: the hash of its metadata and two heads of the log.

    h_0 = SHA-256(name of the head + "/" + pool_id)       h_n = SHA-256(h_{n-1} + leaf_n)
    leaf_n: the leaf hash of the n-th fact that counts, in the order of the log

The allocation head counts `lease.reserved` of leases on nodes of the pool and their `lease.closed`.
The licence head counts `pool.component_registered` and `pool.component_removed` of the pool's
licences, `licence.revoked` of a licence while it is in the pool, and those facts of the first head
whose lease holds a seat. A cut continues from the one before, so each fact is counted once. Whoever
has the log computes the same heads; each leaf has a proof under the log's tree.
Source: design chain 2, row J-4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, assert_never

from domain.frozen import replace
from domain.pools.pool import pool_of
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True)
class MetadataEntry:
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMetadataSet:
    """Stream `pool_controller:{pool_id}`. `sha256`: `metadata_hash` of it."""

    pool_id: str
    version: int  # 1 and up
    metadata: tuple[MetadataEntry, ...]  # by name
    sha256: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHeadsCut:
    """The heads over all facts that count up to a position of the market log."""

    pool_id: str
    cut_position: int
    allocation_head: str
    licence_head: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolControllerChecked:
    """What the contract said at a final block. Recorded when it is another answer than before."""

    pool_id: str
    block: int
    differences: tuple[str, ...]  # empty: it says what the log says
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPoolMetadata:
    pool_id: str
    metadata: tuple[MetadataEntry, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPoolHeads:
    """`allocation`, `licence`: leaves of the facts that count after the last cut, in order."""

    pool_id: str
    cut_position: int
    allocation: tuple[bytes, ...]
    licence: tuple[bytes, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordControllerCheck:
    pool_id: str
    block: int
    differences: tuple[str, ...]
    at_us: int


ALLOCATION, LICENCES = "tallystick/pool-allocation/v1", "tallystick/pool-licence/v1"
ENTRIES_MAX = 32
ENTRY_NAME_MAX = 64
ENTRY_VALUE_MAX = 500
DIFFERENCES_MAX = 20

# What is remembered.


@dataclass(frozen=True, slots=True)
class Controller:
    metadata: PoolMetadataSet | None = None
    last: PoolHeadsCut | None = None  # earlier cuts are in the view
    checked: PoolControllerChecked | None = None


def evolve(
    state: Controller, fact: PoolMetadataSet | PoolHeadsCut | PoolControllerChecked
) -> Controller:
    match fact:
        case PoolMetadataSet():
            return replace(state, metadata=fact)
        case PoolHeadsCut():
            return replace(state, last=fact)
        case PoolControllerChecked():
            return replace(state, checked=fact)
        case _:
            assert_never(fact)


def pool_controller_stream(pool_id: str) -> Stream[Controller]:
    return Stream("pool_controller", pool_id)


# The formulas.


def fold(head: bytes, leaves: Iterable[bytes]) -> bytes:
    """h_n = SHA-256(h_{n-1} + leaf_n) over leaves of 32 bytes."""
    for leaf in leaves:
        assert len(leaf) == 32, leaf
        head = sha256(head + leaf).digest()
    return head


def genesis(name: str, pool_id: str) -> bytes:
    """h_0 of the head of this name."""
    return sha256(f"{name}/{pool_id}".encode()).digest()


def metadata_hash(pool_id: str, version: int, metadata: Iterable[MetadataEntry]) -> str:
    """SHA-256 over the canonical JSON of pool id, version and metadata, hex."""
    document = {
        "metadata": {one.name: one.value for one in metadata},
        "pool_id": pool_id,
        "version": version,
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


# How it is decided.


def decide_metadata(command: SetPoolMetadata, world: World) -> list[Change]:
    """Setting what is in force gives no fact. Raises Refused: POOL_UNKNOWN, METADATA_INVALID."""
    pool_of(world, command.pool_id)
    _check(command.metadata)
    stream = pool_controller_stream(command.pool_id)
    before = world.state(stream).metadata
    metadata = tuple(sorted(command.metadata, key=lambda one: one.name))
    if before is not None and before.metadata == metadata:
        return []
    version = 1 if before is None else before.version + 1
    fact = PoolMetadataSet(
        pool_id=command.pool_id,
        version=version,
        metadata=metadata,
        sha256=metadata_hash(command.pool_id, version, metadata),
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def decide_cut(command: CutPoolHeads, world: World) -> list[Change]:
    """A cut without a new fact gives none. Raises Refused: POOL_UNKNOWN, CUT_MOVED."""
    pool_of(world, command.pool_id)
    stream = pool_controller_stream(command.pool_id)
    last = world.state(stream).last
    if last is not None and command.cut_position <= last.cut_position:
        raise Refused(PoolsReason.CUT_MOVED, pool_id=command.pool_id)
    if last is not None and not command.allocation and not command.licence:
        return []
    heads = heads_before(command.pool_id, last)
    fact = PoolHeadsCut(
        pool_id=command.pool_id,
        cut_position=command.cut_position,
        allocation_head=fold(heads[0], command.allocation).hex(),
        licence_head=fold(heads[1], command.licence).hex(),
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def decide_check(command: RecordControllerCheck, world: World) -> list[Change]:
    """The same answer as before gives no fact. Raises Refused: POOL_UNKNOWN."""
    pool_of(world, command.pool_id)
    stream = pool_controller_stream(command.pool_id)
    before = world.state(stream).checked
    assert len(command.differences) <= DIFFERENCES_MAX, len(command.differences)
    if before is not None and before.differences == command.differences:
        return []
    fact = PoolControllerChecked(
        pool_id=command.pool_id,
        block=command.block,
        differences=command.differences,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def heads_before(pool_id: str, last: PoolHeadsCut | None) -> tuple[bytes, bytes]:
    """The heads that the next cut continues from: allocation, licence."""
    if last is None:
        return genesis(ALLOCATION, pool_id), genesis(LICENCES, pool_id)
    return bytes.fromhex(last.allocation_head), bytes.fromhex(last.licence_head)


def _check(metadata: tuple[MetadataEntry, ...]) -> None:
    names = [one.name for one in metadata]
    if len(names) > ENTRIES_MAX or len(set(names)) != len(names):
        raise Refused(PoolsReason.METADATA_INVALID, most=ENTRIES_MAX)
    for one in metadata:
        if not 1 <= len(one.name) <= ENTRY_NAME_MAX or len(one.value) > ENTRY_VALUE_MAX:
            raise Refused(PoolsReason.METADATA_INVALID, name=one.name[:ENTRY_NAME_MAX])


STREAMS: dict[str, tuple[Any, Any]] = {"pool_controller": (Controller(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    SetPoolMetadata: decide_metadata,
    CutPoolHeads: decide_cut,
    RecordControllerCheck: decide_check,
}
