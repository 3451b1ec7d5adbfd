"""A node's signing key over its life: taken over by another one, or taken back.

    every report of a node with seq >= from_seq is signed by the newest key whose from_seq that is
    a rotation counts only with two signatures: the old key's and the new key's, over one statement

A rotation needs no second look at a fingerprint, because the key that was confirmed vouches for the
next. A lost key vouches for nothing: it is taken back, and the machine joins as a new node. Here
are the facts and the signed statements; `domain/fleet/key_rotation.py` decides. See design
metering 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

JOIN_TYPE = "org.tallystick.node.join.v1"
INGRESS_BYTES_TYPE = "org.tallystick.node.ingress-bytes.v1"
ROTATION_TYPE = "org.tallystick.node.key-rotated.v1"
INTRODUCTION_TYPE = "org.tallystick.node.key-introduced.v1"
ROTATE_REQUEST_TYPE = "org.tallystick.node.rotate-request.v1"
SEALING_TYPE = "org.tallystick.node.executor-sealing.v1"
"""DSSE payload types: a signature made for one purpose is worth nothing for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKeyRotated:
    """Stream `node:{node_id}`. Reports from `from_seq` on are signed by the new key."""

    node_id: str
    key_id: str
    public_key: str  # hex, Ed25519
    previous_key_id: str
    from_seq: int
    previous_signature: str  # hex, by the previous key over `rotation`
    signature: str  # hex, by the new key over the same
    at_us: int
    token_sha256: str | None  # of the bearer token that goes with the new key
    sealed_token: str | None  # the token in hex, for whoever holds the new key and nobody else


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKeyRevoked:
    """Stream `node:{node_id}`. Nothing that any key of the node signs is taken from now on."""

    node_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOldKeyRevoked:
    """Stream `node:{node_id}`. A key that another one has replaced: of what it signed, only what is
    stored already stands. The node goes on under its present key.
    """

    node_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBootsAlternated:
    """Stream `node:{node_id}`. Two boots of one key each went on after the other had reported: one
    machine cannot do that, two with one disk do. Quarantine, as for an equivocation.
    """

    node_id: str
    lane: int
    first_boot: str
    second_boot: str
    first_seq: int  # the latest report in which the first boot went on
    second_seq: int  # and, after it, the second one
    at_us: int


def envelope(payload_type: str, payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding of the exact bytes."""
    name = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def key_id_of(public_key: str) -> str:
    """The short name of a key (hex): the first 16 hex digits of its SHA-256."""
    return sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def rotation(node_id: str, from_seq: int, previous_key: str, public_key: str) -> bytes:
    """What both keys sign for the server: from report `from_seq` on the new key speaks."""
    lines = (node_id, str(from_seq), previous_key, public_key)
    return envelope(ROTATION_TYPE, "\n".join(lines).encode())


def introduction(node_id: str, previous_key: str, public_key: str) -> bytes:
    """What the new key signs inside the report that introduces it; the report itself is signed by
    the previous key, and what it says holds from the report after it.
    """
    lines = (node_id, previous_key, public_key)
    return envelope(INTRODUCTION_TYPE, "\n".join(lines).encode())


def sealing(node_id: str, sealing_key: str) -> bytes:
    """What the node signs with its own key: to this key (X25519, hex) renters seal what only the
    executor of this node may read.
    """
    return envelope(SEALING_TYPE, f"{node_id}\n{sealing_key}".encode())
