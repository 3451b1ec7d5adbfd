"""Compute clients: parties of their own that bring jobs, each by its authorised instances.

    a job of a client's account is submitted  =>  its key is one of an authorised instance

A client is an account of the kind `client` that the operator registered. Its instances (servers,
regions, pipelines of it) act with API keys that are bound to them; a key that is not, or no longer,
is refused, and no fact is left. Several clients sell the same nodes: a job, its leases and its
usage carry the client. Its share of the revenue is the tariff's, its quotas are in
`domain/pools/quota.py`.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.frozen import replace
from domain.money import PPM
from domain.parties.account import account_of, open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `compute_client:{client_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeClientRegistered:
    client_id: str  # its account, of the kind "client"
    min_reputation_ppm: int | None  # no node below it runs a job of this client
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFloorSet:
    client_id: str
    min_reputation_ppm: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKeyAdded:
    """An API key of the client's account acts for this instance."""

    client_id: str
    instance_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKeyRevoked:
    client_id: str
    instance_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSuspended:
    """No instance of it submits anything until it is resumed; what runs goes on."""

    client_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientResumed:
    client_id: str
    by: str
    at_us: int


Fact: TypeAlias = (
    ComputeClientRegistered
    | ClientFloorSet
    | ClientKeyAdded
    | ClientKeyRevoked
    | ClientSuspended
    | ClientResumed
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterComputeClient:
    client_id: str
    min_reputation_ppm: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetClientFloor:
    client_id: str
    min_reputation_ppm: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddClientKey:
    client_id: str
    instance_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeClientKey:
    client_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendClient:
    client_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeClient:
    client_id: str
    by: str
    at_us: int


CLIENT = "client"
"""The kind of a compute client's account."""
KEYS_MAX = 1_000
"""Live keys of all instances of one client."""
_INSTANCE = re.compile(r"[0-9A-Za-z_.-]{1,64}")

# State.


@dataclass(frozen=True, slots=True)
class ClientState:
    registered: bool = False
    suspended: bool = False
    min_reputation_ppm: int | None = None
    keys: dict[str, str] = field(default_factory=dict)  # key id -> instance id


def evolve(client: ClientState, fact: Fact) -> ClientState:
    match fact:
        case ComputeClientRegistered():
            return replace(client, registered=True, min_reputation_ppm=fact.min_reputation_ppm)
        case ClientFloorSet():
            return replace(client, min_reputation_ppm=fact.min_reputation_ppm)
        case ClientKeyAdded():
            return replace(client, keys={**client.keys, fact.key_id: fact.instance_id})
        case ClientKeyRevoked():
            left = {key: who for key, who in client.keys.items() if key != fact.key_id}
            return replace(client, keys=left)
        case ClientSuspended():
            return replace(client, suspended=True)
        case ClientResumed():
            return replace(client, suspended=False)
        case _:
            assert_never(fact)


# Decisions.


def client_stream(client_id: str) -> Stream[ClientState]:
    return Stream("compute_client", client_id)


def client_of(world: World, client_id: str) -> ClientState:
    return world.state(client_stream(client_id))


def existing_client(world: World, client_id: str) -> ClientState:
    """Raises Refused: CLIENT_UNKNOWN."""
    state = client_of(world, client_id)
    if not state.registered:
        raise Refused(PartiesReason.CLIENT_UNKNOWN, client_id=client_id)
    return state


def require_active(world: World, client_id: str) -> None:
    """Raises Refused: CLIENT_UNKNOWN, CLIENT_NOT_AUTHORISED for one that is suspended."""
    if existing_client(world, client_id).suspended:
        raise Refused(PartiesReason.CLIENT_NOT_AUTHORISED, client_id=client_id, rule="suspended")


def instance_of(world: World, account_id: str, key_id: str | None) -> str | None:
    """The instance a key acts for; None for an account that is no compute client.

    Raises Refused: CLIENT_NOT_AUTHORISED.
    """
    account = account_of(world, account_id)
    if account.kind != CLIENT:
        return None
    client = client_of(world, account_id)
    instance = client.keys.get(key_id or "")
    if not client.registered or client.suspended or instance is None:
        rule = (
            "not registered"
            if not client.registered
            else ("suspended" if client.suspended else "the key is bound to no instance")
        )
        raise Refused(PartiesReason.CLIENT_NOT_AUTHORISED, client_id=account_id, rule=rule)
    return instance


def require_running(world: World, client_id: str, instance_id: str | None) -> None:
    """What a timer does for a job of a client needs the client, and a key its instance still has.

    Raises Refused: CLIENT_NOT_AUTHORISED.
    """
    if instance_id is None:
        return
    client = client_of(world, client_id)
    if client.suspended or instance_id not in client.keys.values():
        raise Refused(
            PartiesReason.CLIENT_NOT_AUTHORISED,
            client_id=client_id,
            instance_id=instance_id,
            rule="suspended, or every key of the instance is revoked",
        )


def floor_of(world: World, client_id: str, asked_ppm: int | None) -> int | None:
    """The least reputation a node needs for a job: the client's floor or the job's, the higher."""
    floors = [
        one
        for one in (client_of(world, client_id).min_reputation_ppm, asked_ppm)
        if one is not None
    ]
    return max(floors, default=None)


def decide_register(command: RegisterComputeClient, world: World) -> list[Change]:
    """Twice is once. Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, NOT_PERMITTED,
    SHARE_OUT_OF_RANGE.
    """
    account = open_account(world, command.client_id)
    if account.kind != CLIENT:
        raise Refused(PartiesReason.NOT_PERMITTED, kind=account.kind)
    _require_floor(command.min_reputation_ppm)
    if client_of(world, command.client_id).registered:
        return []
    fact = ComputeClientRegistered(
        client_id=command.client_id,
        min_reputation_ppm=command.min_reputation_ppm,
        by=command.by,
        at_us=command.at_us,
    )
    return [_on(command.client_id, fact)]


def decide_floor(command: SetClientFloor, world: World) -> list[Change]:
    """Raises Refused: CLIENT_UNKNOWN, SHARE_OUT_OF_RANGE."""
    client = existing_client(world, command.client_id)
    _require_floor(command.min_reputation_ppm)
    if client.min_reputation_ppm == command.min_reputation_ppm:
        return []
    fact = ClientFloorSet(
        client_id=command.client_id,
        min_reputation_ppm=command.min_reputation_ppm,
        by=command.by,
        at_us=command.at_us,
    )
    return [_on(command.client_id, fact)]


def decide_add_key(command: AddClientKey, world: World) -> list[Change]:
    """Bind a live key of the client's account to an instance.

    Raises Refused: CLIENT_UNKNOWN, API_KEY_UNKNOWN, API_KEY_REVOKED, NOT_PERMITTED,
    COUNT_OUT_OF_RANGE.
    """
    client = existing_client(world, command.client_id)
    key = open_account(world, command.client_id).keys.get(command.key_id)
    if key is None:
        raise Refused(PartiesReason.API_KEY_UNKNOWN, key_id=command.key_id)
    if not key.is_live(command.at_us):
        raise Refused(PartiesReason.API_KEY_REVOKED, key_id=command.key_id)
    present = client.keys.get(command.key_id)
    if present == command.instance_id:
        return []
    if present is not None or _INSTANCE.fullmatch(command.instance_id) is None:
        raise Refused(
            PartiesReason.NOT_PERMITTED, rule="a key acts for one instance", instance_id=present
        )
    if len(client.keys) >= KEYS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, keys=len(client.keys), at_most=KEYS_MAX)
    fact = ClientKeyAdded(
        client_id=command.client_id,
        instance_id=command.instance_id,
        key_id=command.key_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [_on(command.client_id, fact)]


def decide_revoke_key(command: RevokeClientKey, world: World) -> list[Change]:
    """The key acts for no instance from now on. Raises Refused: CLIENT_UNKNOWN."""
    instance = existing_client(world, command.client_id).keys.get(command.key_id)
    if instance is None:
        return []
    fact = ClientKeyRevoked(
        client_id=command.client_id,
        instance_id=instance,
        key_id=command.key_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [_on(command.client_id, fact)]


def decide_suspend(command: SuspendClient, world: World) -> list[Change]:
    """Raises Refused: CLIENT_UNKNOWN."""
    if existing_client(world, command.client_id).suspended:
        return []
    fact = ClientSuspended(client_id=command.client_id, by=command.by, at_us=command.at_us)
    return [_on(command.client_id, fact)]


def decide_resume(command: ResumeClient, world: World) -> list[Change]:
    """Raises Refused: CLIENT_UNKNOWN."""
    if not existing_client(world, command.client_id).suspended:
        return []
    fact = ClientResumed(client_id=command.client_id, by=command.by, at_us=command.at_us)
    return [_on(command.client_id, fact)]


def _require_floor(ppm: int | None) -> None:
    if ppm is not None and not 0 <= ppm <= PPM:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, min_reputation_ppm=ppm)


def _on(client_id: str, fact: Fact) -> Change:
    return Change(client_stream(client_id), fact)


STREAMS: dict[str, tuple[Any, Any]] = {"compute_client": (ClientState(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    RegisterComputeClient: decide_register,
    SetClientFloor: decide_floor,
    AddClientKey: decide_add_key,
    RevokeClientKey: decide_revoke_key,
    SuspendClient: decide_suspend,
    ResumeClient: decide_resume,
}
