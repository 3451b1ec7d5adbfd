"""The renter's half of the stick: what the renter says was used, signed with the renter's own key.

    matched + unconfirmed + contested == metered                       for every lease, always

A countersignature says: up to this moment I have used so much, in all. Signatures never fall, in
time or in usage, so the last one stands for all before it. Usage metered up to that moment is
matched as far as it was signed for and contested beyond; what came later is unconfirmed. Nothing is
charged or withheld by it: disputes do that, and this is their evidence. Source: marketplace 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, assert_never

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.lease.lease import lease_of
from domain.lease.reasons import LeaseReason
from domain.metering.reasons import MeteringReason
from domain.money import Big
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeyAdded:
    """Stream `signer:{account_id}`."""

    account_id: str
    key_id: str  # first 16 hex digits of the SHA-256 of the public key
    public_key: str  # hex, Ed25519
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeyRevoked:
    account_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCountersigned:
    """Stream `countersign:{lease_id}`: `message_for` of these numbers, signed with the key."""

    lease_id: str
    account_id: str
    key_id: str
    gpu_us: Big  # in all, since the lease opened
    until_us: int
    signature: str  # hex
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSigningKey:
    account_id: str
    key_id: str
    public_key: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeSigningKey:
    account_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersignUsage:
    """The signature was checked before, with the public key that is recorded under `key_id`."""

    lease_id: str
    account_id: str
    key_id: str
    gpu_us: Big
    until_us: int
    signature: str
    at_us: int


KEYS_MAX = 100
_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")

# What is remembered.


@dataclass(frozen=True, slots=True)
class SignerState:
    keys: tuple[SigningKeyAdded, ...] = ()
    revoked: tuple[str, ...] = ()

    def key(self, key_id: str) -> SigningKeyAdded | None:
        """The key of this id, while it may sign."""
        found = (key for key in self.keys if key.key_id == key_id)
        return None if key_id in self.revoked else next(found, None)


@dataclass(frozen=True, slots=True)
class StickState:
    last: UsageCountersigned | None = None


def evolve_signer(state: SignerState, fact: SigningKeyAdded | SigningKeyRevoked) -> SignerState:
    match fact:
        case SigningKeyAdded():
            return replace(state, keys=(*state.keys, fact))
        case SigningKeyRevoked():
            return replace(state, revoked=(*state.revoked, fact.key_id))
        case _:
            assert_never(fact)


def evolve_stick(_state: StickState, fact: UsageCountersigned) -> StickState:
    return StickState(fact)


def signer_stream(account_id: str) -> Stream[SignerState]:
    return Stream("signer", account_id)


def signer_of(world: World, account_id: str) -> SignerState:
    return world.state(signer_stream(account_id))


# How we decide.


def message_for(lease_id: str, gpu_us: int, until_us: int) -> bytes:
    """What a renter signs: four lines of ASCII, the last one without an end of line."""
    lines = ("tallystick/countersign/v1", lease_id, f"gpu_us {gpu_us}", f"until_us {until_us}")
    return "\n".join(lines).encode("ascii")


@dataclass(frozen=True, slots=True)
class Compared:
    """GPU-microseconds of a lease by what its renter says of them."""

    matched: int
    unconfirmed: int
    contested: int


def compare(metered: int, metered_until: int, signed: int | None) -> Compared:
    """Hold both halves against each other, in GPU-microseconds of the whole lease.

    `metered_until`: what of it lies before the moment the renter signed for; `signed`: how much the
    renter signed for, None when nothing is signed.
    """
    assert 0 <= metered_until <= metered, (metered_until, metered)
    if signed is None:
        return Compared(0, metered, 0)
    matched = min(signed, metered_until)
    return Compared(matched, metered - metered_until, metered_until - matched)


def decide_add_key(command: AddSigningKey, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, SIGNING_KEY_INVALID, SIGNING_KEY_REVOKED,
    COUNT_OUT_OF_RANGE.
    """
    open_account(world, command.account_id)
    if _PUBLIC_KEY.fullmatch(command.public_key) is None:
        raise Refused(PartiesReason.SIGNING_KEY_INVALID, field="public_key")
    state = signer_of(world, command.account_id)
    if command.key_id in state.revoked:
        raise Refused(PartiesReason.SIGNING_KEY_REVOKED, key_id=command.key_id)
    if state.key(command.key_id) is not None:
        return []
    if len(state.keys) >= KEYS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, keys=len(state.keys), at_most=KEYS_MAX)
    added = SigningKeyAdded(
        account_id=command.account_id,
        key_id=command.key_id,
        public_key=command.public_key,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(signer_stream(command.account_id), added)]


def decide_revoke_key(command: RevokeSigningKey, world: World) -> list[Change]:
    """What it signed stays signed. Twice is once. Raises Refused: SIGNING_KEY_UNKNOWN."""
    state = signer_of(world, command.account_id)
    if command.key_id in state.revoked:
        return []
    if state.key(command.key_id) is None:
        raise Refused(PartiesReason.SIGNING_KEY_UNKNOWN, key_id=command.key_id)
    revoked = SigningKeyRevoked(
        account_id=command.account_id, key_id=command.key_id, by=command.by, at_us=command.at_us
    )
    return [Change(signer_stream(command.account_id), revoked)]


def stick_stream(lease_id: str) -> Stream[StickState]:
    return Stream("countersign", lease_id)


def decide_countersign(command: CountersignUsage, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE, SIGNING_KEY_UNKNOWN, COUNTERSIGN_TIME,
    COUNTERSIGN_FELL.
    """
    lease = lease_of(world, command.lease_id)
    assert lease.requested is not None
    if lease.requested.account_id != command.account_id:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=command.lease_id)
    if signer_of(world, command.account_id).key(command.key_id) is None:
        raise Refused(PartiesReason.SIGNING_KEY_UNKNOWN, key_id=command.key_id)
    if lease.opened is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if not lease.opened.opened_at_us <= command.until_us <= command.at_us or command.gpu_us < 0:
        raise Refused(MeteringReason.COUNTERSIGN_TIME, opened_at_us=lease.opened.opened_at_us)
    stream = stick_stream(command.lease_id)
    last = world.state(stream).last
    if last is not None:
        before = (last.until_us, last.gpu_us)
        if before == (command.until_us, command.gpu_us):
            return []
        if command.until_us < last.until_us or command.gpu_us < last.gpu_us:
            raise Refused(
                MeteringReason.COUNTERSIGN_FELL, until_us=last.until_us, gpu_us=last.gpu_us
            )
    signed = UsageCountersigned(
        lease_id=command.lease_id,
        account_id=command.account_id,
        key_id=command.key_id,
        gpu_us=command.gpu_us,
        until_us=command.until_us,
        signature=command.signature,
        at_us=command.at_us,
    )
    return [Change(stream, signed)]


STREAMS: dict[str, tuple[Any, Any]] = {
    "signer": (SignerState(), evolve_signer),
    "countersign": (StickState(), evolve_stick),
}
DECIDERS: dict[type[Any], Any] = {
    AddSigningKey: decide_add_key,
    RevokeSigningKey: decide_revoke_key,
    CountersignUsage: decide_countersign,
}
