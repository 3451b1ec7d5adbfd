"""Attributes: what others say about a node or a provider, and who says it.

    a statement counts  <=>  its signature was checked, it is not revoked and has not expired

Location, certification, ownership of the hardware or a capability is worth as much as whoever signs
it: a third party with a signing key of its own account (`domain/lease/countersign.py`), never the
provider itself. The signature covers `message_for`; its own digest names the statement, so the same
statement twice is one. What a key signed before it was revoked stays signed, until its signer takes
the statement back. Source: design marketplace 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, assert_never

from domain.fleet.node import existing_node
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.lease.countersign import signer_stream
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeStated:
    """Stream `attribute:{statement_id}`."""

    statement_id: str
    subject_id: str  # a node's or a provider's
    name: str  # "location", "certification", "hardware_owner", or any other word
    value: str
    signer_account_id: str
    key_id: str
    signature: str  # hex, Ed25519 over `message_for`
    stated_at_us: int
    expires_at_us: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRevoked:
    """Its signer takes it back."""

    statement_id: str
    by: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAttribute:
    """The signature was checked before, with the public key recorded under `key_id`."""

    subject_id: str
    name: str
    value: str
    signer_account_id: str
    key_id: str
    signature: str
    stated_at_us: int
    expires_at_us: int | None
    by: str
    at_us: int

    @property
    def statement_id(self) -> str:
        return statement_id(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeAttribute:
    statement_id: str
    account_id: str  # who asks: the signer alone may
    by: str
    at_us: int


NAME = re.compile(r"[a-z][a-z0-9_.]{0,62}")
VALUE_LENGTH_MAX = 200

# What is remembered.


@dataclass(frozen=True, slots=True)
class AttributeState:
    stated: AttributeStated | None = None
    revoked_at_us: int | None = None


def evolve(state: AttributeState, fact: AttributeStated | AttributeRevoked) -> AttributeState:
    match fact:
        case AttributeStated():
            return AttributeState(fact)
        case AttributeRevoked():
            return replace(state, revoked_at_us=fact.at_us)
        case _:
            assert_never(fact)


def attribute_stream(statement_id: str) -> Stream[AttributeState]:
    return Stream("attribute", statement_id)


def attribute_of(world: World, statement: str) -> AttributeState:
    return world.state(attribute_stream(statement))


def message_for(
    subject_id: str, name: str, value: str, stated_at_us: int, expires_at_us: int | None
) -> bytes:
    """The bytes a signer signs: five lines and no more, so every reader builds the same ones."""
    assert "\n" not in value, value
    until = "never" if expires_at_us is None else str(expires_at_us)
    lines = (
        "tallystick/attribute/v1",
        f"subject {subject_id}",
        f"{name} {value}",
        f"stated_at_us {stated_at_us}",
        f"expires_at_us {until}",
    )
    return "\n".join(lines).encode()


def statement_id(told: StateAttribute | AttributeStated) -> str:
    """Named by what is said and with which key."""
    message = message_for(
        told.subject_id, told.name, told.value, told.stated_at_us, told.expires_at_us
    )
    digest = sha256(told.key_id.encode() + b"\n" + message).hexdigest()
    return f"stmt_{digest[:32]}"


# How we decide.


def decide_state(command: StateAttribute, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, PROVIDER_UNKNOWN, UNKNOWN_MODE, BAD_PERIOD, NOT_PERMITTED,
    SIGNING_KEY_UNKNOWN, ATTRIBUTE_REVOKED.
    """
    owner = _owner_of(command.subject_id, world)
    _require_words(command)
    present = attribute_of(world, command.statement_id)
    if present.revoked_at_us is not None:
        raise Refused(FleetReason.ATTRIBUTE_REVOKED, statement_id=command.statement_id)
    if present.stated is not None:
        return []
    expires_at_us = command.expires_at_us
    if command.stated_at_us > command.at_us:
        raise Refused(FleetReason.BAD_PERIOD, stated_at_us=command.stated_at_us)
    if expires_at_us is not None and expires_at_us <= command.at_us:
        raise Refused(FleetReason.BAD_PERIOD, expires_at_us=expires_at_us)
    open_account(world, command.signer_account_id)
    if command.signer_account_id == owner:
        raise Refused(PartiesReason.NOT_PERMITTED, rule="signed_by_a_third_party")
    signer = world.state(signer_stream(command.signer_account_id))
    if signer.key(command.key_id) is None:
        raise Refused(PartiesReason.SIGNING_KEY_UNKNOWN, key_id=command.key_id)
    return [Change(attribute_stream(command.statement_id), _stated(command))]


def decide_revoke(command: RevokeAttribute, world: World) -> list[Change]:
    """Raises Refused: ATTRIBUTE_UNKNOWN, also when somebody else signed it."""
    state = attribute_of(world, command.statement_id)
    if state.stated is None or state.stated.signer_account_id != command.account_id:
        raise Refused(FleetReason.ATTRIBUTE_UNKNOWN, statement_id=command.statement_id)
    if state.revoked_at_us is not None:
        return []
    revoked = AttributeRevoked(
        statement_id=command.statement_id, by=command.by, at_us=command.at_us
    )
    return [Change(attribute_stream(command.statement_id), revoked)]


def _stated(command: StateAttribute) -> AttributeStated:
    return AttributeStated(
        statement_id=command.statement_id,
        subject_id=command.subject_id,
        name=command.name,
        value=command.value,
        signer_account_id=command.signer_account_id,
        key_id=command.key_id,
        signature=command.signature,
        stated_at_us=command.stated_at_us,
        expires_at_us=command.expires_at_us,
        by=command.by,
        at_us=command.at_us,
    )


def _owner_of(subject_id: str, world: World) -> str:
    """The account behind a node or a provider."""
    if subject_id.startswith("prov_"):
        return existing_provider(world, subject_id).account_id
    joined = existing_node(world, subject_id).joined
    assert joined is not None
    return existing_provider(world, joined.provider_id).account_id


def _require_words(command: StateAttribute) -> None:
    value = command.value
    is_text = value.isprintable() and 1 <= len(value) <= VALUE_LENGTH_MAX
    if not NAME.fullmatch(command.name) or not is_text:
        raise Refused(PartiesReason.UNKNOWN_MODE, name=command.name[:63])


STREAMS: dict[str, tuple[Any, Any]] = {"attribute": (AttributeState(), evolve)}
DECIDERS: dict[type[Any], Any] = {StateAttribute: decide_state, RevokeAttribute: decide_revoke}
