"""The credential of a node's executor: the program that runs the work of leases.

Apart from the node's own key on purpose: whoever runs other people's programs must not be able to
sign usage, nor to change what the node says it has. A node has one such key at a time; issuing
another one ends the former at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.fleet.node import existing_node
from domain.fleet.reasons import FleetReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorKeyIssued:
    """Stream `executor:{node_id}`."""

    node_id: str
    key_sha256: str  # hex, of the key as it is sent
    by: str  # a member, or the node itself
    at_us: int
    sealing_key: str | None  # X25519, hex: renters seal to it what no one else may read
    sealing_signature: str | None  # hex, by the node's own key over `keys.sealing`
    sealing_signed_by: str | None  # that key, hex, Ed25519


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorKeyRevoked:
    node_id: str
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueExecutorKey:
    node_id: str
    key_sha256: str
    by: str
    at_us: int
    sealing_key: str | None = None
    sealing_signature: str | None = None  # the shell has verified it


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeExecutorKey:
    node_id: str
    by: str
    at_us: int


# What is remembered.


@dataclass(frozen=True, slots=True)
class ExecutorState:
    """`key_sha256` None: no executor may act for the node."""

    key_sha256: str | None = None
    sealing_key: str | None = None
    sealing_signature: str | None = None
    sealing_signed_by: str | None = None


def evolve(state: ExecutorState, fact: ExecutorKeyIssued | ExecutorKeyRevoked) -> ExecutorState:
    del state
    match fact:
        case ExecutorKeyIssued():
            return ExecutorState(
                fact.key_sha256, fact.sealing_key, fact.sealing_signature, fact.sealing_signed_by
            )
        case ExecutorKeyRevoked():
            return ExecutorState()
        case _:
            assert_never(fact)


def executor_stream(node_id: str) -> Stream[ExecutorState]:
    return Stream("executor", node_id)


def decide_issue(command: IssueExecutorKey, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE."""
    node = existing_node(world, command.node_id)
    if node.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    issued = ExecutorKeyIssued(
        node_id=command.node_id,
        key_sha256=command.key_sha256,
        by=command.by,
        at_us=command.at_us,
        sealing_key=command.sealing_key,
        sealing_signature=command.sealing_signature,
        sealing_signed_by=None if command.sealing_key is None else node.public_key,
    )
    return [Change(executor_stream(command.node_id), issued)]


def decide_revoke(command: RevokeExecutorKey, world: World) -> list[Change]:
    """Where there is no key there is nothing to do. Raises Refused: NODE_UNKNOWN."""
    existing_node(world, command.node_id)
    stream = executor_stream(command.node_id)
    state = world.state(stream)
    if state.key_sha256 is None:
        return []
    revoked = ExecutorKeyRevoked(node_id=command.node_id, by=command.by, at_us=command.at_us)
    return [Change(stream, revoked)]


STREAMS: dict[str, tuple[Any, Any]] = {"executor": (ExecutorState(), evolve)}
DECIDERS: dict[type[Any], Any] = {IssueExecutorKey: decide_issue, RevokeExecutorKey: decide_revoke}
