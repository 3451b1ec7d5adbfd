"""Members of an account: invited by an administrator, joined by redeeming the invitation.

The inviter is shown a code once and hands it over by another way; whoever redeems it is shown the
member's key, and the inviter never is. Roles decide what the keys of a member may do
(`domain.parties.account.SCOPES_OF_ROLE`).
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import Field

from api.door import errors, keys
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    EmptyRequest,
    MemberId,
    MemberInPath,
    Moment,
    Position,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.parties.accounts import ADMIN, READ, existing, own, visible
from api.parties.api_keys import ApiKeyAnswer, key_told
from api.parties.new_keys import Role, ScopeName, Scopes, id_of_key, new_code, new_key
from domain.duration import DAY_US
from domain.money import MoneyReason
from domain.parties.account import account_stream
from domain.parties.member import (
    ChangeRole,
    InviteMember,
    RedeemInvitation,
    RemoveMember,
    WithdrawInvitation,
)
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("members")

InvitationInPath = Annotated[str, Path(pattern=r"^invitation_[0-9a-f]{32}$")]
INVITED_US = DAY_US
"""How long an invitation waits when its inviter does not say."""


class AccountMemberAnswer(AnswerModel):
    member_id: MemberId
    role: Role
    added_at: Told_at | None = None
    removed_at: Told_at | None = None
    position: Position | None = None


class AccountMemberRemovedAnswer(AnswerModel):
    member_id: MemberId
    position: Position | None = None


class AccountMembersAnswer(AnswerModel):
    data: list[AccountMemberAnswer]
    position: Position


@resource.get(
    "/v1/accounts/{account_id}/members",
    READ,
    AccountMembersAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def list_members(account_id: AccountInPath, call: Caller) -> Response:
    """Lists present and former members of an account."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        existing(view.connection, account_id)
        rows = access.read_members(view.connection, account_id)
        return call.answer(view, {"data": [_member(row) for row in rows]})


def _member(row: access.Member) -> dict[str, Any]:
    role: Any = row.role
    told = AccountMemberAnswer(
        member_id=row.member_id,
        role=role,
        added_at=moment(row.at_us),
        removed_at=moment_or_none(row.removed_at_us),
    )
    return told.model_dump(exclude_none=True)


class MemberRoleRequest(RequestModel):
    role: Role

    model_config = with_examples({"role": "viewer"})


@resource.post(
    "/v1/accounts/{account_id}/members/{member_id}/role",
    ADMIN,
    AccountMemberAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.MEMBER_UNKNOWN,
        PartiesReason.LAST_OWNER,
        PartiesReason.OWNER_NEEDED,
        PartiesReason.KEY_EXCEEDS_ISSUER,
    ],
)
def change_member_role(
    account_id: AccountInPath, member_id: MemberInPath, body: MemberRoleRequest, call: Caller
) -> Response:
    """Changes the role of a member. The member's keys are narrowed to it at once."""

    def commands() -> ChangeRole:
        own(call.principal, account_id)
        return ChangeRole(
            account_id=account_id,
            member_id=member_id,
            role=body.role,
            by_key_id=call.principal.key_id,
            at_us=call.now_us,
        )

    told = AccountMemberAnswer(member_id=member_id, role=body.role)
    return call.record(commands, lambda _after: told)


@resource.post(
    "/v1/accounts/{account_id}/members/{member_id}/remove",
    ADMIN,
    AccountMemberRemovedAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.MEMBER_UNKNOWN,
        PartiesReason.LAST_OWNER,
        PartiesReason.OWNER_NEEDED,
        PartiesReason.KEY_EXCEEDS_ISSUER,
    ],
)
def remove_member(
    account_id: AccountInPath, member_id: MemberInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Removes a member. Every key in the member's name ends at once."""
    del body

    def commands() -> RemoveMember:
        own(call.principal, account_id)
        return RemoveMember(
            account_id=account_id,
            member_id=member_id,
            by_key_id=call.principal.key_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda _after: AccountMemberRemovedAnswer(member_id=member_id))


# --- invitations -------------------------------------------------------------------------------


class InvitationRequest(RequestModel):
    """The invitee's first key has these `scopes`, which the role may hold and the key you call with
    has; it ends at `key_expires_at`, or with your key. `member_id`: a present
    member, for another key, redeemed with one of their own. `expires_at` absent: in 24 hours.
    """

    role: Role
    scopes: Scopes
    member_id: MemberId | None = None
    key_expires_at: Moment | None = None
    expires_at: Moment | None = None

    model_config = with_examples({"role": "billing", "scopes": ["billing:read", "payout:read"]})


class InvitationAnswer(AnswerModel):
    """`code` is there only in the answer that makes it. With it the invitee becomes a member."""

    invitation_id: Short
    member_id: MemberId
    role: Role
    scopes: list[ScopeName]
    key_expires_at: Told_at | None = None
    expires_at: Told_at
    code: str | None = None
    position: Position | None = None


class InvitationsAnswer(AnswerModel):
    data: list[InvitationAnswer]
    position: Position


class InvitationWithdrawnAnswer(AnswerModel):
    invitation_id: Short
    position: Position | None = None


class InvitationRedeemRequest(RequestModel):
    code: Annotated[str, Field(pattern=r"^ts_invite_[0-9A-Za-z]{43}$")]

    model_config = with_examples({"code": "ts_invite_" + "0" * 43})


class InvitationRedeemedAnswer(ApiKeyAnswer):
    """`account_id`: the account whose member you are now."""

    account_id: AccountId


@resource.post(
    "/v1/accounts/{account_id}/invitations",
    ADMIN,
    InvitationAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.API_KEY_REVOKED,
        PartiesReason.MEMBER_UNKNOWN,
        PartiesReason.MEMBER_EXISTS,
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ROLE_LACKS_SCOPE,
        PartiesReason.OWNER_NEEDED,
        PartiesReason.KEY_EXCEEDS_ISSUER,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def invite_member(account_id: AccountInPath, body: InvitationRequest, call: Caller) -> Response:
    """Invites a member. The answer shows a code, once: hand it to the invitee to redeem."""
    code, invitation_id = new_code(call), call.id("invitation")
    scopes = tuple(body.scopes)

    def commands() -> InviteMember:
        own(call.principal, account_id)
        member_id = body.member_id or call.id("member")
        account = call.service.ledger.world().state(account_stream(account_id))
        if body.member_id is not None and member_id not in account.members:
            raise Refused(PartiesReason.MEMBER_UNKNOWN, member_id=member_id)
        return InviteMember(
            account_id=account_id,
            invitation_id=invitation_id,
            code_sha256=_digest(code),
            member_id=member_id,
            role=body.role,
            scopes=scopes,
            key_expires_at_us=body.key_expires_at,
            expires_at_us=body.expires_at or call.now_us + INVITED_US,
            by_key_id=call.principal.key_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        made = after.state(account_stream(account_id)).invitations[invitation_id]
        granted: Any = list(made.scopes)
        return InvitationAnswer(
            invitation_id=invitation_id,
            member_id=made.member_id,
            role=body.role,
            scopes=granted,
            key_expires_at=moment_or_none(made.key_expires_at_us),
            expires_at=moment(made.expires_at_us),
        )

    return call.record(commands, told, reveal=lambda: {"code": code})


@resource.get(
    "/v1/accounts/{account_id}/invitations",
    with_scope("account:admin", "audit:read", "operator"),
    InvitationsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def list_invitations(account_id: AccountInPath, call: Caller) -> Response:
    """Lists invitations that wait to be redeemed. Their codes are not stored."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        existing(view.connection, account_id)
        rows = access.read_invitations(view.connection, account_id, call.now_us)
        return call.answer(view, {"data": [_invitation(row) for row in rows]})


def _invitation(row: access.Invitation) -> dict[str, Any]:
    role: Any = row.role
    scopes: Any = row.scopes
    told = InvitationAnswer(
        invitation_id=row.invitation_id,
        member_id=row.member_id,
        role=role,
        scopes=scopes,
        key_expires_at=moment_or_none(row.key_expires_at_us),
        expires_at=moment(row.expires_at_us),
    )
    return told.model_dump(exclude_none=True)


@resource.post(
    "/v1/accounts/{account_id}/invitations/{invitation_id}/withdraw",
    ADMIN,
    InvitationWithdrawnAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.INVITATION_UNKNOWN,
    ],
)
def withdraw_invitation(
    account_id: AccountInPath, invitation_id: InvitationInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Withdraws an invitation that was not redeemed yet."""
    del body

    def commands() -> WithdrawInvitation:
        own(call.principal, account_id)
        return WithdrawInvitation(
            account_id=account_id,
            invitation_id=invitation_id,
            by_key_id=call.principal.key_id,
            at_us=call.now_us,
        )

    told = InvitationWithdrawnAnswer(invitation_id=invitation_id)
    return call.record(commands, lambda _after: told)


@resource.post(
    "/v1/invitations/redeem",
    everybody(),
    InvitationRedeemedAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.INVITATION_UNKNOWN,
        PartiesReason.INVITATION_ENDED,
        PartiesReason.KEY_OF_ANOTHER,
        MoneyReason.DUPLICATE_ID,
    ],
)
def redeem_invitation(body: InvitationRedeemRequest, call: Caller) -> Response:
    """Redeems an invitation: you are a member with a key, which is shown once, to you alone.

    The code is the credential. A present member calls with one of their own keys as well.
    """
    code_sha256 = _digest(body.code)
    with call.read(ACCESS) as view:
        account_id = access.read_account_of_invitation(view.connection, code_sha256)
    if account_id is None:  # a stranger: nothing is kept of the request
        raise errors.of_refusal(Refused(PartiesReason.INVITATION_UNKNOWN))
    call.account = f"invitation:{code_sha256}"
    key = new_key(call)

    def commands() -> RedeemInvitation:
        return RedeemInvitation(
            account_id=account_id,
            code_sha256=code_sha256,
            key_id=id_of_key(key),
            key_sha256=keys.digest(key),
            by_key_id=call.principal.key_id if call.principal.owns(account_id) else None,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        made = key_told(after, account_id, id_of_key(key))
        return InvitationRedeemedAnswer(account_id=account_id, **made.model_dump())

    return call.record(commands, told, reveal=lambda: {"key": key})


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
