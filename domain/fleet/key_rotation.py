"""How a node changes its key, and how its owner takes a key back.

    keys of a node never come back      a key is rotated to once, at a later report than the last

Signatures are checked at the door, which knows Ed25519; here only what they are about is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.fleet.keys import (
    NodeBootsAlternated,
    NodeKeyRevoked,
    NodeKeyRotated,
    NodeOldKeyRevoked,
    key_id_of,
)
from domain.fleet.node import NodeState, existing_node, node_stream
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateNodeKey:
    """`last_seq`: the last report the log holds of the node."""

    node_id: str
    public_key: str
    previous_key_id: str
    from_seq: int
    last_seq: int
    previous_signature: str
    signature: str
    at_us: int
    token_sha256: str | None = None
    sealed_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeNodeKey:
    node_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAlternatingBoots:
    node_id: str
    lane: int
    first_boot: str
    second_boot: str
    first_seq: int
    second_seq: int
    at_us: int


def decide_rotate(command: RotateNodeKey, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, NODE_KEY_MISMATCH, NODE_KEY_USED."""
    state = existing_node(world, command.node_id)
    rotated = _rotated(command)
    known = state.rotated
    if known is not None and _is_same(rotated, known):
        return []
    if state.phase in ("joining", "retired") or state.is_quarantined:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=_told(state))
    if command.previous_key_id != state.key_id:
        raise Refused(FleetReason.NODE_KEY_MISMATCH, key_id=command.previous_key_id)
    if rotated.key_id in state.key_ids:
        raise Refused(FleetReason.NODE_KEY_USED, key_id=rotated.key_id)
    if command.from_seq <= max(command.last_seq, known.from_seq if known else 0):
        raise Refused(
            FleetReason.NODE_KEY_USED, from_seq=command.from_seq, last_seq=command.last_seq
        )
    return [Change(node_stream(command.node_id), rotated)]


def decide_revoke(command: RevokeNodeKey, world: World) -> list[Change]:
    """The present key takes the node with it; one that was replaced goes alone.

    Raises Refused: NODE_UNKNOWN, NODE_KEY_MISMATCH for a key the node never had.
    """
    state = existing_node(world, command.node_id)
    if command.key_id not in state.key_ids:
        raise Refused(FleetReason.NODE_KEY_MISMATCH, key_id=command.key_id)
    if state.is_revoked or command.key_id in state.old_revoked:
        return []
    if command.key_id != state.key_id:
        gone = NodeOldKeyRevoked(
            node_id=command.node_id, key_id=command.key_id, by=command.by, at_us=command.at_us
        )
        return [Change(node_stream(command.node_id), gone)]
    revoked = NodeKeyRevoked(
        node_id=command.node_id, key_id=command.key_id, by=command.by, at_us=command.at_us
    )
    return [Change(node_stream(command.node_id), revoked)]


def decide_alternating(command: RecordAlternatingBoots, world: World) -> list[Change]:
    """Once is enough: the node is in quarantine from then on. Raises Refused: NODE_UNKNOWN."""
    state = existing_node(world, command.node_id)
    if state.is_quarantined or state.phase == "retired":
        return []
    alternated = NodeBootsAlternated(
        node_id=command.node_id,
        lane=command.lane,
        first_boot=command.first_boot,
        second_boot=command.second_boot,
        first_seq=command.first_seq,
        second_seq=command.second_seq,
        at_us=command.at_us,
    )
    return [Change(node_stream(command.node_id), alternated)]


def _is_same(rotated: NodeKeyRotated, known: NodeKeyRotated) -> bool:
    """One statement of both keys, whenever it came; the token is the server's to say."""
    said = replace(rotated, token_sha256=known.token_sha256, sealed_token=known.sealed_token)
    return replace(said, at_us=known.at_us) == known


def _rotated(command: RotateNodeKey) -> NodeKeyRotated:
    return NodeKeyRotated(
        node_id=command.node_id,
        key_id=key_id_of(command.public_key),
        public_key=command.public_key,
        previous_key_id=command.previous_key_id,
        from_seq=command.from_seq,
        previous_signature=command.previous_signature,
        signature=command.signature,
        at_us=command.at_us,
        token_sha256=command.token_sha256,
        sealed_token=command.sealed_token,
    )


def _told(state: NodeState) -> str:
    return "quarantined" if state.is_quarantined else state.phase


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    RotateNodeKey: decide_rotate,
    RevokeNodeKey: decide_revoke,
    RecordAlternatingBoots: decide_alternating,
}
