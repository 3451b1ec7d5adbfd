"""API keys: a key makes no key that may do more than it may itself, or may do it for longer.

    scopes(new)  subset of  effective(issuer)           ends(new) <= ends(issuer)

A key is issued with a live key of the same member, for that member alone. Another member gets one
by an invitation (`member`), whose code the invitee redeems: nobody is ever shown another's key.
Rotation is the holder's, too; revoking shows nothing to anybody, so administrators may do it for
others. The rule that the new key is within the old one is asserted where the fact is made.

Read top to bottom: what can be asked, how we decide. The facts are those of the account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from domain.money import MoneyReason
from domain.parties.account import (
    AccountState,
    ApiKey,
    ApiKeyIssued,
    ApiKeyRevoked,
    account_stream,
    existing_account,
    open_account,
    require_scopes,
)
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueApiKey:
    """`expires_at_us` None: as long as the key that issues it."""

    account_id: str
    key_id: str
    key_sha256: str
    scopes: tuple[str, ...]
    expires_at_us: int | None
    by_key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateApiKey:
    """`expires_at_us` of the new key, None: as the old one's; member and scopes stay the same."""

    account_id: str
    key_id: str
    new_key_id: str
    new_key_sha256: str
    expires_at_us: int | None
    by_key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeApiKey:
    """`by_account_id`: the account of the key that asks; the operator ends keys of others, too."""

    account_id: str
    key_id: str
    by_key_id: str
    by_account_id: str
    at_us: int


ADMINISTRATION = "account:admin"

KEY_OVERLAP_US = 24 * 3_600_000_000
"""How long a rotated key stays valid beside its successor."""

# Decisions.


def acting_key(state: AccountState, key_id: str, at_us: int) -> ApiKey:
    """The live key that a command is given with. Raises Refused: API_KEY_UNKNOWN, API_KEY_REVOKED.

    The door has looked before, but in a view; the stream knows what happened since.
    """
    key = key_of(state, key_id)
    if not key.is_live(at_us) or key.member_id not in state.members:
        raise Refused(PartiesReason.API_KEY_REVOKED, key_id=key_id)
    return key


def administrating_key(state: AccountState, key_id: str, at_us: int) -> ApiKey:
    """Raises Refused: API_KEY_UNKNOWN, API_KEY_REVOKED, ADMINISTRATOR_NEEDED."""
    key = acting_key(state, key_id, at_us)
    if ADMINISTRATION not in state.scopes_of(key):
        raise Refused(PartiesReason.ADMINISTRATOR_NEEDED, needs=ADMINISTRATION)
    return key


def key_of(state: AccountState, key_id: str) -> ApiKey:
    """Raises Refused: API_KEY_UNKNOWN."""
    if key_id not in state.keys:
        raise Refused(PartiesReason.API_KEY_UNKNOWN, key_id=key_id)
    return state.keys[key_id]


def require_within(
    state: AccountState, issuer: ApiKey, scopes: Iterable[str], expires_at_us: int | None
) -> int | None:
    """The end of a key that is issued with `issuer`: as asked for, or the issuer's own.

    Raises Refused: KEY_EXCEEDS_ISSUER.
    """
    held = state.scopes_of(issuer)
    for scope in scopes:
        if scope not in held:
            raise Refused(PartiesReason.KEY_EXCEEDS_ISSUER, scope=scope)
    latest_us = issuer.ends_us
    if expires_at_us is None or latest_us is None:
        return latest_us if expires_at_us is None else expires_at_us
    if expires_at_us > latest_us:
        raise Refused(
            PartiesReason.KEY_EXCEEDS_ISSUER, expires_at_us=expires_at_us, latest_us=latest_us
        )
    return expires_at_us


def is_within(state: AccountState, issuer: ApiKey, issued: ApiKeyIssued) -> bool:
    """The rule of this file, as it is asserted of every key that is issued."""
    in_time = issuer.ends_us is None or (
        issued.expires_at_us is not None and issued.expires_at_us <= issuer.ends_us
    )
    return in_time and set(issued.scopes) <= state.scopes_of(issuer)


def decide_issue_key(command: IssueApiKey, world: World) -> list[Change]:
    """Another key for the member whose key asks, who must be an administrator.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED,
    ADMINISTRATOR_NEEDED, SCOPE_UNKNOWN, NOT_PERMITTED, ROLE_LACKS_SCOPE, KEY_EXCEEDS_ISSUER,
    DUPLICATE_ID.
    """
    state = open_account(world, command.account_id)
    issuer = administrating_key(state, command.by_key_id, command.at_us)
    require_scopes(state.kind, state.members[issuer.member_id], command.scopes)
    issued = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.key_id,
        key_sha256=command.key_sha256,
        member_id=issuer.member_id,
        scopes=command.scopes,
        expires_at_us=require_within(state, issuer, command.scopes, command.expires_at_us),
        by_key_id=issuer.key_id,
        succeeds=None,
        at_us=command.at_us,
    )
    assert is_within(state, issuer, issued), issued
    return issuing(state, issued)


def decide_rotate_key(command: RotateApiKey, world: World) -> list[Change]:
    """A successor with the same member and scopes; the old key lives on for `KEY_OVERLAP_US`.

    It is asked for with the key itself, or with another of the same member that may do as much
    for as long. The successor ends no later than the old key would have.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED,
    KEY_OF_ANOTHER, KEY_EXCEEDS_ISSUER, DUPLICATE_ID.
    """
    state = open_account(world, command.account_id)
    old = key_of(state, command.key_id)
    by = acting_key(state, command.by_key_id, command.at_us)
    if old.member_id != by.member_id:
        raise Refused(PartiesReason.KEY_OF_ANOTHER, key_id=command.key_id)
    if old.revoked_at_us is not None or not old.is_live(command.at_us):
        raise Refused(PartiesReason.API_KEY_REVOKED, key_id=command.key_id)
    if by.key_id != old.key_id:
        ends_us = require_within(state, by, old.scopes, old.expires_at_us)
        if ends_us != old.expires_at_us:
            raise Refused(PartiesReason.KEY_EXCEEDS_ISSUER, latest_us=ends_us)
    if command.new_key_id in state.keys:
        raise Refused(MoneyReason.DUPLICATE_ID, key_id=command.new_key_id)
    successor = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.new_key_id,
        key_sha256=command.new_key_sha256,
        member_id=old.member_id,
        scopes=old.scopes,
        expires_at_us=require_within(state, old, (), command.expires_at_us),
        by_key_id=by.key_id,
        succeeds=old.key_id,
        at_us=command.at_us,
    )
    ends_us = command.at_us + KEY_OVERLAP_US
    return [
        Change(account_stream(command.account_id), successor),
        revoking(command.account_id, command.key_id, ends_us, by.member_id, command.at_us),
    ]


def decide_revoke_key(command: RevokeApiKey, world: World) -> list[Change]:
    """The key ends now, even inside the overlap of a rotation. Twice is once.

    The holder may, and an administrator; only an owner may end the key of an owner. The operator
    may end the key of any other account: that shows nothing and gives nothing.

    Raises Refused: ACCOUNT_UNKNOWN, API_KEY_UNKNOWN, API_KEY_REVOKED, ADMINISTRATOR_NEEDED,
    OWNER_NEEDED.
    """
    state = existing_account(world, command.account_id)
    key = key_of(state, command.key_id)
    if key.revoked_at_us is not None and key.revoked_at_us <= command.at_us:
        return []
    whose = existing_account(world, command.by_account_id)
    by = acting_key(whose, command.by_key_id, command.at_us)
    if command.by_account_id != command.account_id:
        if "operator" not in whose.scopes_of(by):
            raise Refused(PartiesReason.ADMINISTRATOR_NEEDED, needs="operator")
    elif by.member_id != key.member_id:
        administrating_key(state, command.by_key_id, command.at_us)
        require_rank(state, by, state.members.get(key.member_id))
    return [
        revoking(command.account_id, command.key_id, command.at_us, by.member_id, command.at_us)
    ]


def require_rank(state: AccountState, by: ApiKey, role: str | None) -> None:
    """Only owners act on owners, or make one. Raises Refused: OWNER_NEEDED."""
    if role == "owner" and state.members[by.member_id] != "owner":
        raise Refused(PartiesReason.OWNER_NEEDED, role=state.members[by.member_id])


def issuing(state: AccountState, issued: ApiKeyIssued) -> list[Change]:
    """The key as a fact. The same key twice is once. Raises Refused: DUPLICATE_ID."""
    present = state.keys.get(issued.key_id)
    if present is None:
        return [Change(account_stream(issued.account_id), issued)]
    if (present.key_sha256, present.scopes) == (issued.key_sha256, issued.scopes):
        return []
    raise Refused(MoneyReason.DUPLICATE_ID, key_id=issued.key_id)


def revoking(account_id: str, key_id: str, ends_us: int, by: str, at_us: int) -> Change:
    """The end of a key, from `ends_us` on."""
    revoked = ApiKeyRevoked(
        account_id=account_id, key_id=key_id, effective_at_us=ends_us, by=by, at_us=at_us
    )
    return Change(account_stream(account_id), revoked)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    IssueApiKey: decide_issue_key,
    RotateApiKey: decide_rotate_key,
    RevokeApiKey: decide_revoke_key,
}
