"""What the network records about trust: known driver libraries, devices on two nodes, attestations.

    a device that two nodes metered at once    <=>  a fact that names both, and where it was seen
    nonce of an attestation == SHA-256(server nonce || head of the node's usage chain)

So the maker's signature covers everything the node has reported so far. How a device is judged by
these is `domain/trust/tiers.py`. Source: design metering 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias, assert_never

from domain.fleet.device import device_of
from domain.fleet.node import existing_node
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.refusal import Refused
from domain.stream import Change, Stream, World
from domain.trust.reasons import TrustReason

LIBRARIES: Stream[Libraries] = Stream("trust-library", "known")
NONCE_LIFE_US = 600_000_000
"""Ten minutes."""
PAIRS_MAX = 64
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLibraryKnown:
    """Stream `trust-library:known`: the operator vouches for this file of a driver version."""

    driver: str
    sha256: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLibraryForgotten:
    driver: str
    sha256: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTwice:
    """Stream `device-trust:{device_id}`: two nodes metered one device at the same time."""

    device_id: str
    first_node_id: str
    first_lane: int
    first_position: int
    second_node_id: str
    second_lane: int
    second_position: int
    seen_us: int  # within the hour that begins here
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NonceIssued:
    """Stream `device-trust:{device_id}`. `acked_seq` and `head`: how far the chain was then."""

    device_id: str
    node_id: str
    server_nonce: str  # 32 bytes, hex
    acked_seq: int
    head: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAttested:
    """A plug-in looked at the evidence: what it said, and the digest of what it looked at."""

    device_id: str
    node_id: str
    plugin: str
    nonce: str  # what the device signed
    evidence_sha256: str
    passed: bool
    detail: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowDriverLibrary:
    driver: str
    sha256: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetDriverLibrary:
    driver: str
    sha256: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDeviceTwice:
    device_id: str
    first_node_id: str
    first_lane: int
    first_position: int
    second_node_id: str
    second_lane: int
    second_position: int
    seen_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueNonce:
    device_id: str
    node_id: str
    server_nonce: str
    acked_seq: int
    head: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAttestation:
    device_id: str
    node_id: str
    server_nonce: str
    plugin: str
    evidence_sha256: str
    passed: bool
    detail: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Libraries:
    known: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceTrust:
    pairs: tuple[tuple[str, str], ...] = ()
    nonce: NonceIssued | None = None  # the latest, until it is used


LibraryFact: TypeAlias = DriverLibraryKnown | DriverLibraryForgotten
TrustFact: TypeAlias = DeviceTwice | NonceIssued | DeviceAttested


def evolve_libraries(state: Libraries, fact: LibraryFact) -> Libraries:
    one = {(fact.driver, fact.sha256)}
    match fact:
        case DriverLibraryKnown():
            return Libraries(state.known | one)
        case DriverLibraryForgotten():
            return Libraries(state.known - one)
        case _:
            assert_never(fact)


def evolve(state: DeviceTrust, fact: TrustFact) -> DeviceTrust:
    match fact:
        case DeviceTwice():
            return replace(state, pairs=(*state.pairs, (fact.first_node_id, fact.second_node_id)))
        case NonceIssued():
            return replace(state, nonce=fact)
        case DeviceAttested():
            return replace(state, nonce=None)
        case _:
            assert_never(fact)


def attestation_nonce(server_nonce: str, head: str) -> bytes:
    """The 32 bytes that the device signs: both halves in hex."""
    return sha256(bytes.fromhex(server_nonce) + bytes.fromhex(head)).digest()


def libraries_of(world: World) -> Libraries:
    return world.state(LIBRARIES)


def trust_of(world: World, device_id: str) -> DeviceTrust:
    return world.state(stream_of(device_id))


def stream_of(device_id: str) -> Stream[DeviceTrust]:
    return Stream("device-trust", device_id)


def decide_know(command: KnowDriverLibrary, world: World) -> list[Change]:
    """Raises Refused: REFERENCE_INVALID."""
    if _DIGEST.fullmatch(command.sha256) is None:
        raise Refused(TrustReason.REFERENCE_INVALID, field="sha256", rule="64 hex digits")
    if (command.driver, command.sha256) in libraries_of(world).known:
        return []
    known = DriverLibraryKnown(
        driver=command.driver, sha256=command.sha256, by=command.by, at_us=command.at_us
    )
    return [Change(LIBRARIES, known)]


def decide_forget(command: ForgetDriverLibrary, world: World) -> list[Change]:
    if (command.driver, command.sha256) not in libraries_of(world).known:
        return []
    forgotten = DriverLibraryForgotten(
        driver=command.driver, sha256=command.sha256, by=command.by, at_us=command.at_us
    )
    return [Change(LIBRARIES, forgotten)]


def decide_twice(command: RecordDeviceTwice, world: World) -> list[Change]:
    """Once for each pair of nodes: the first time is enough, the view tells every hour."""
    pairs = trust_of(world, command.device_id).pairs
    if (command.first_node_id, command.second_node_id) in pairs or len(pairs) >= PAIRS_MAX:
        return []
    twice = DeviceTwice(
        device_id=command.device_id,
        first_node_id=command.first_node_id,
        first_lane=command.first_lane,
        first_position=command.first_position,
        second_node_id=command.second_node_id,
        second_lane=command.second_lane,
        second_position=command.second_position,
        seen_us=command.seen_us,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.device_id), twice)]


def decide_nonce(command: IssueNonce, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, DEVICE_UNKNOWN."""
    _require_device(command.device_id, command.node_id, world)
    issued = NonceIssued(
        device_id=command.device_id,
        node_id=command.node_id,
        server_nonce=command.server_nonce,
        acked_seq=command.acked_seq,
        head=command.head,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.device_id), issued)]


def open_nonce(
    world: World, device_id: str, node_id: str, server_nonce: str, at_us: int
) -> NonceIssued:
    """The nonce that an attestation answers. Each is answered once, within ten minutes.

    Raises Refused: REFERENCE_INVALID.
    """
    nonce = trust_of(world, device_id).nonce
    if nonce is None or (nonce.node_id, nonce.server_nonce) != (node_id, server_nonce):
        raise Refused(
            TrustReason.REFERENCE_INVALID, field="server_nonce", rule="asked for, and new"
        )
    if at_us >= nonce.at_us + NONCE_LIFE_US:
        raise Refused(TrustReason.REFERENCE_INVALID, field="server_nonce", rule="ten minutes old")
    return nonce


def decide_attestation(command: RecordAttestation, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, DEVICE_UNKNOWN, REFERENCE_INVALID."""
    _require_device(command.device_id, command.node_id, world)
    nonce = open_nonce(
        world, command.device_id, command.node_id, command.server_nonce, command.at_us
    )
    attested = DeviceAttested(
        device_id=command.device_id,
        node_id=command.node_id,
        plugin=command.plugin,
        nonce=attestation_nonce(nonce.server_nonce, nonce.head).hex(),
        evidence_sha256=command.evidence_sha256,
        passed=command.passed,
        detail=command.detail,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.device_id), attested)]


def _require_device(device_id: str, node_id: str, world: World) -> None:
    existing_node(world, node_id)
    device = device_of(world, device_id)
    if not device.is_live or device.node_id != node_id:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=device_id)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "trust-library": (Libraries(), evolve_libraries),
    "device-trust": (DeviceTrust(), evolve),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    KnowDriverLibrary: decide_know,
    ForgetDriverLibrary: decide_forget,
    RecordDeviceTwice: decide_twice,
    IssueNonce: decide_nonce,
    RecordAttestation: decide_attestation,
}
