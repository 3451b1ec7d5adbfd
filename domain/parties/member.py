"""Members: who may join an account, in which role, and who may put whom out.

    scopes(invitation)  subset of  effective(inviter)          owners(account) is never empty

A member joins by an invitation. It names a role, scopes within the inviter's own, and a code; the
one who redeems the code is shown the key, and the inviter never is. A present member is invited
again to get more scopes, and redeems with a key of their own, so that nobody gets a key in
another's name. An invitation ends with the key that made it: what a thief invited goes with them.

Only owners make owners, or act on one; and an owner is put out or lowered only with a key that may
do all that the owner's keys may, so that a stolen key with few scopes cannot take an account.

Read top to bottom: what can be asked, how we decide. The facts are those of the account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from domain.parties.account import (
    BY_OPERATOR,
    ROLES,
    AccountState,
    ApiKey,
    ApiKeyIssued,
    Invitation,
    InvitationRedeemed,
    InvitationWithdrawn,
    MemberAdded,
    MemberInvited,
    MemberRemoved,
    MemberRoleChanged,
    OpenAccount,
    account_stream,
    decide_open,
    open_account,
    require_scopes,
)
from domain.parties.api_key import (
    ADMINISTRATION,
    acting_key,
    administrating_key,
    is_within,
    issuing,
    require_rank,
    require_within,
    revoking,
)
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteMember:
    """`member_id`: a new id of the server's, or a present member who is to get another key."""

    account_id: str
    invitation_id: str
    code_sha256: str
    member_id: str
    role: str
    scopes: tuple[str, ...]
    key_expires_at_us: int | None  # None: as the inviter's key
    expires_at_us: int
    by_key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteOwner:
    """A new account whose owner gets the first key by a code: the operator never sees the key."""

    account_id: str
    kind: str  # any of ACCOUNT_KINDS but "operator"
    owner_member_id: str
    invitation_id: str
    code_sha256: str
    scopes: tuple[str, ...]
    expires_at_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawInvitation:
    account_id: str
    invitation_id: str
    by_key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedeemInvitation:
    """`by_key_id`: the key of a present member; a new one has none."""

    account_id: str
    code_sha256: str
    key_id: str
    key_sha256: str
    by_key_id: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRole:
    account_id: str
    member_id: str
    role: str
    by_key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember:
    account_id: str
    member_id: str
    by_key_id: str
    at_us: int


INVITATION_US_MAX = 7 * 86_400_000_000
"""The longest that a code waits for its invitee."""
INVITATIONS_MAX = 100
"""As many wait at a time in one account."""

# Decisions.


def decide_invite(command: InviteMember, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED,
    ADMINISTRATOR_NEEDED, ROLE_UNKNOWN, OWNER_NEEDED, MEMBER_EXISTS, SCOPE_UNKNOWN, NOT_PERMITTED,
    ROLE_LACKS_SCOPE, KEY_EXCEEDS_ISSUER, COUNT_OUT_OF_RANGE.
    """
    state = open_account(world, command.account_id)
    by = administrating_key(state, command.by_key_id, command.at_us)
    _require_role(command.role)
    require_rank(state, by, command.role)
    present = state.members.get(command.member_id)
    if present not in (None, command.role):
        raise Refused(PartiesReason.MEMBER_EXISTS, member_id=command.member_id, role=present)
    require_scopes(state.kind, command.role, command.scopes)
    key_ends_us = require_within(state, by, command.scopes, command.key_expires_at_us)
    _require_span(command.expires_at_us - command.at_us)
    live = [one for one in state.invitations.values() if one.expires_at_us > command.at_us]
    if len(live) >= INVITATIONS_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, invitations=len(live), at_most=INVITATIONS_MAX
        )
    invited = MemberInvited(
        account_id=command.account_id,
        invitation_id=command.invitation_id,
        code_sha256=command.code_sha256,
        member_id=command.member_id,
        role=command.role,
        scopes=command.scopes,
        key_expires_at_us=key_ends_us,
        expires_at_us=command.expires_at_us,
        by_key_id=by.key_id,
        by=by.member_id,
        at_us=command.at_us,
    )
    return [Change(account_stream(command.account_id), invited)]


def decide_invite_owner(command: InviteOwner, world: World) -> list[Change]:
    """The account is there from now on, and opens to the code alone.

    Raises Refused: NOT_PERMITTED, ACCOUNT_EXISTS, SCOPE_UNKNOWN, ROLE_LACKS_SCOPE,
    COUNT_OUT_OF_RANGE.
    """
    opening = decide_open(
        OpenAccount(
            account_id=command.account_id,
            kind=command.kind,
            opened_by=command.by,
            owner_member_id=command.owner_member_id,
            at_us=command.at_us,
        ),
        world,
    )
    require_scopes(command.kind, "owner", command.scopes)
    _require_span(command.expires_at_us - command.at_us)
    invited = MemberInvited(
        account_id=command.account_id,
        invitation_id=command.invitation_id,
        code_sha256=command.code_sha256,
        member_id=command.owner_member_id,
        role="owner",
        scopes=command.scopes,
        key_expires_at_us=None,
        expires_at_us=command.expires_at_us,
        by_key_id=BY_OPERATOR,
        by=command.by,
        at_us=command.at_us,
    )
    return [*opening, Change(account_stream(command.account_id), invited)]


def decide_withdraw(command: WithdrawInvitation, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED,
    ADMINISTRATOR_NEEDED, INVITATION_UNKNOWN.
    """
    state = open_account(world, command.account_id)
    by = administrating_key(state, command.by_key_id, command.at_us)
    if command.invitation_id not in state.invitations:
        raise Refused(PartiesReason.INVITATION_UNKNOWN, invitation_id=command.invitation_id)
    withdrawn = InvitationWithdrawn(
        account_id=command.account_id,
        invitation_id=command.invitation_id,
        by=by.member_id,
        at_us=command.at_us,
    )
    return [Change(account_stream(command.account_id), withdrawn)]


def decide_redeem(command: RedeemInvitation, world: World) -> list[Change]:
    """The invitee is a member from now on, with the key that only they are shown.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, INVITATION_UNKNOWN, INVITATION_ENDED,
    API_KEY_UNKNOWN, API_KEY_REVOKED, KEY_OF_ANOTHER, DUPLICATE_ID.
    """
    state = open_account(world, command.account_id)
    found = _invitation(state, command.code_sha256)
    if found.by_key_id == BY_OPERATOR:
        return _first_of_owner(state, found, command)
    inviter = _inviter(state, found, command.at_us)
    joining = list[Change]()
    if found.member_id in state.members:
        _require_own_key(state, found.member_id, command)
    else:
        added = MemberAdded(
            account_id=command.account_id,
            member_id=found.member_id,
            role=found.role,
            by=found.by,
            at_us=command.at_us,
        )
        joining = [Change(account_stream(command.account_id), added)]
    issued = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.key_id,
        key_sha256=command.key_sha256,
        member_id=found.member_id,
        scopes=found.scopes,
        expires_at_us=require_within(state, inviter, (), found.key_expires_at_us),
        by_key_id=found.by_key_id,
        succeeds=None,
        at_us=command.at_us,
    )
    assert is_within(state, inviter, issued), issued
    redeemed = InvitationRedeemed(
        account_id=command.account_id,
        invitation_id=found.invitation_id,
        key_id=command.key_id,
        at_us=command.at_us,
    )
    used = Change(account_stream(command.account_id), redeemed)
    return [used, *joining, *issuing(state, issued)]


def decide_change_role(command: ChangeRole, world: World) -> list[Change]:
    """The role that a member has already gives no fact.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED,
    ADMINISTRATOR_NEEDED, ROLE_UNKNOWN, MEMBER_UNKNOWN, OWNER_NEEDED, KEY_EXCEEDS_ISSUER,
    LAST_OWNER.
    """
    state = open_account(world, command.account_id)
    by = administrating_key(state, command.by_key_id, command.at_us)
    _require_role(command.role)
    present = _role(state, command.member_id)
    if present == command.role:
        return []
    require_rank(state, by, command.role)
    _require_over(state, by, command.member_id, command.at_us)
    changed = MemberRoleChanged(
        account_id=command.account_id,
        member_id=command.member_id,
        role=command.role,
        by=by.member_id,
        at_us=command.at_us,
    )
    return [Change(account_stream(command.account_id), changed)]


def decide_remove_member(command: RemoveMember, world: World) -> list[Change]:
    """A member leaves, and every key in their name ends at once. An account keeps an owner.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED,
    ADMINISTRATOR_NEEDED, MEMBER_UNKNOWN, OWNER_NEEDED, KEY_EXCEEDS_ISSUER, LAST_OWNER.
    """
    state = open_account(world, command.account_id)
    by = administrating_key(state, command.by_key_id, command.at_us)
    _role(state, command.member_id)
    _require_over(state, by, command.member_id, command.at_us)
    removed = MemberRemoved(
        account_id=command.account_id,
        member_id=command.member_id,
        by=by.member_id,
        at_us=command.at_us,
    )
    return [
        Change(account_stream(command.account_id), removed),
        *(
            revoking(command.account_id, key.key_id, command.at_us, by.member_id, command.at_us)
            for key in _live_keys(state, command.member_id, command.at_us)
        ),
    ]


def _first_of_owner(
    state: AccountState, found: Invitation, command: RedeemInvitation
) -> list[Change]:
    """The first key of an account, for its owner: only while the account has never had a key.

    Raises Refused: INVITATION_ENDED, DUPLICATE_ID.
    """
    if found.expires_at_us <= command.at_us or state.keys:
        raise Refused(PartiesReason.INVITATION_ENDED, invitation_id=found.invitation_id)
    issued = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.key_id,
        key_sha256=command.key_sha256,
        member_id=found.member_id,
        scopes=found.scopes,
        expires_at_us=None,
        by_key_id=None,
        succeeds=None,
        at_us=command.at_us,
    )
    redeemed = InvitationRedeemed(
        account_id=command.account_id,
        invitation_id=found.invitation_id,
        key_id=command.key_id,
        at_us=command.at_us,
    )
    used = Change(account_stream(command.account_id), redeemed)
    return [used, *issuing(state, issued)]


def _require_span(span_us: int) -> None:
    """How long a code waits. Raises Refused: COUNT_OUT_OF_RANGE."""
    if not 0 < span_us <= INVITATION_US_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, invitation_us=span_us, at_most=INVITATION_US_MAX
        )


def _require_role(role: str) -> None:
    if role not in ROLES:
        raise Refused(PartiesReason.ROLE_UNKNOWN, role=role, allowed=ROLES)


def _role(state: AccountState, member_id: str) -> str:
    if member_id not in state.members:
        raise Refused(PartiesReason.MEMBER_UNKNOWN, member_id=member_id)
    return state.members[member_id]


def _live_keys(state: AccountState, member_id: str, at_us: int) -> list[ApiKey]:
    """In the order of their ids."""
    return [
        key
        for _, key in sorted(state.keys.items())
        if key.member_id == member_id and key.is_live(at_us)
    ]


def _require_over(state: AccountState, by: ApiKey, member_id: str, at_us: int) -> None:
    """Whether this key may put a member out or lower them.

    Raises Refused: OWNER_NEEDED, LAST_OWNER, KEY_EXCEEDS_ISSUER.
    """
    if state.members[member_id] != "owner":
        return
    require_rank(state, by, "owner")
    if state.owners == [member_id]:
        raise Refused(PartiesReason.LAST_OWNER, member_id=member_id)
    held = state.scopes_of(by)
    for key in _live_keys(state, member_id, at_us):
        for scope in sorted(state.scopes_of(key) - held):
            raise Refused(PartiesReason.KEY_EXCEEDS_ISSUER, scope=scope, member_id=member_id)


def _invitation(state: AccountState, code_sha256: str) -> Invitation:
    found = [one for one in state.invitations.values() if one.code_sha256 == code_sha256]
    if not found:
        raise Refused(PartiesReason.INVITATION_UNKNOWN)
    return found[0]


def _inviter(state: AccountState, found: Invitation, at_us: int) -> ApiKey:
    """The key behind an invitation, if it could still make it. Raises Refused: INVITATION_ENDED."""
    ended = Refused(PartiesReason.INVITATION_ENDED, invitation_id=found.invitation_id)
    if found.expires_at_us <= at_us:
        raise ended
    try:
        key = acting_key(state, found.by_key_id, at_us)
        require_rank(state, key, found.role)
    except Refused:
        raise ended from None
    if not {ADMINISTRATION, *found.scopes} <= state.scopes_of(key):
        raise ended
    return key


def _require_own_key(state: AccountState, member_id: str, command: RedeemInvitation) -> None:
    """A present member proves with a key that they are who was invited."""
    if command.by_key_id is not None:
        key = acting_key(state, command.by_key_id, command.at_us)
        if key.member_id == member_id:
            return
    raise Refused(PartiesReason.KEY_OF_ANOTHER, member_id=member_id)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    InviteMember: decide_invite,
    InviteOwner: decide_invite_owner,
    WithdrawInvitation: decide_withdraw,
    RedeemInvitation: decide_redeem,
    ChangeRole: decide_change_role,
    RemoveMember: decide_remove_member,
}
