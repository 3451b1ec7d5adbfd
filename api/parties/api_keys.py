"""API keys: issued for oneself, rotated by the holder, revoked by the holder or administrators.

A key is shown in the answer that makes it, also when that answer is asked for again, and kept
nowhere. What a new key may do is within what the key may do with which it was asked for.
"""

from __future__ import annotations

from typing import Any

from fastapi import Response

from api.door import keys
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountInPath,
    AnswerModel,
    KeyId,
    KeyInPath,
    MemberId,
    Moment,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.parties.accounts import ADMIN, existing, own, visible
from api.parties.new_keys import ScopeName, Scopes, id_of_key, new_key
from domain.money import MoneyReason
from domain.parties.account import ApiKey, account_stream
from domain.parties.api_key import IssueApiKey, RevokeApiKey, RotateApiKey
from domain.parties.reasons import PartiesReason
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("api-keys")

HOLDER = with_scope(
    "account:admin",
    "provider",
    "renter",
    "client",
    "operator",
    "payout:approve",
    "meter",
    "oracle:write",
)
"""Whoever may change anything may replace the key they do it with, and end it."""


class ApiKeyAnswer(AnswerModel):
    """`key` is there only in the answer that makes it. `scopes` are those the key was issued with;
    `opens` are those that its member's role leaves of them now.
    """

    key_id: KeyId
    member_id: MemberId
    scopes: list[ScopeName]
    opens: list[ScopeName] | None = None
    succeeds: KeyId | None = None
    expires_at: Told_at | None = None
    revoked_at: Told_at | None = None
    key: str | None = None
    position: Position | None = None


class ApiKeyRequest(RequestModel):
    """A key of your own. Its scopes are among those of the key you call with, and it ends with that
    key at the latest: `expires_at` absent is that end.
    """

    scopes: Scopes
    expires_at: Moment | None = None

    model_config = with_examples({"scopes": ["billing:read"], "expires_at": "2030-01-01T00:00:00Z"})


class ApiKeyRotationRequest(RequestModel):
    """`expires_at` of the new key, not after the old one's; absent: as the old one's."""

    expires_at: Moment | None = None

    model_config = with_examples({})


class ApiKeysAnswer(AnswerModel):
    data: list[ApiKeyAnswer]
    position: Position


@resource.get(
    "/v1/accounts/{account_id}/api-keys",
    with_scope("account:admin", "audit:read", "operator"),
    ApiKeysAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def list_api_keys(account_id: AccountInPath, call: Caller) -> Response:
    """Lists the keys of an account, revoked ones too. The keys themselves are not stored."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        existing(view.connection, account_id)
        rows = access.read_api_keys(view.connection, account_id)
        return call.answer(view, {"data": [_key_row(row) for row in rows]})


def _key_row(row: access.ApiKey) -> dict[str, Any]:
    scopes: Any = row.scopes
    opens: Any = sorted(row.effective)
    told = ApiKeyAnswer(
        key_id=row.key_id,
        member_id=row.member_id,
        scopes=scopes,
        opens=opens,
        succeeds=row.succeeds,
        expires_at=moment_or_none(row.expires_at_us),
        revoked_at=moment_or_none(row.revoked_at_us),
    )
    return told.model_dump(exclude_none=True)


@resource.post(
    "/v1/accounts/{account_id}/api-keys",
    ADMIN,
    ApiKeyAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.API_KEY_REVOKED,
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ROLE_LACKS_SCOPE,
        PartiesReason.KEY_EXCEEDS_ISSUER,
        MoneyReason.DUPLICATE_ID,
    ],
)
def create_api_key(account_id: AccountInPath, body: ApiKeyRequest, call: Caller) -> Response:
    """Issues another API key for yourself, which is shown once."""
    key = new_key(call)

    def commands() -> IssueApiKey:
        own(call.principal, account_id)
        return issuing(call, account_id, key, tuple(body.scopes), body.expires_at)

    def told(after: After) -> AnswerModel:
        return key_told(after, account_id, id_of_key(key))

    return call.record(commands, told, reveal=lambda: {"key": key})


@resource.post(
    "/v1/accounts/{account_id}/api-keys/{key_id}/rotate",
    HOLDER,
    ApiKeyAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.API_KEY_UNKNOWN,
        PartiesReason.API_KEY_REVOKED,
        PartiesReason.KEY_OF_ANOTHER,
        PartiesReason.KEY_EXCEEDS_ISSUER,
        MoneyReason.DUPLICATE_ID,
    ],
)
def rotate_api_key(
    account_id: AccountInPath, key_id: KeyInPath, body: ApiKeyRotationRequest, call: Caller
) -> Response:
    """Issues a successor of a key of yours, shown once. The old key stays valid for 24 hours.

    Call with the key itself, or with one of yours that may do as much for as long. A budget of the
    old key goes on for its successor.
    """
    key = new_key(call)

    def commands() -> RotateApiKey:
        own(call.principal, account_id)
        return RotateApiKey(
            account_id=account_id,
            key_id=key_id,
            new_key_id=id_of_key(key),
            new_key_sha256=keys.digest(key),
            expires_at_us=body.expires_at,
            by_key_id=call.principal.key_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        return key_told(after, account_id, id_of_key(key))

    return call.record(commands, told, reveal=lambda: {"key": key})


@resource.delete(
    "/v1/accounts/{account_id}/api-keys/{key_id}",
    HOLDER,
    ApiKeyAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.API_KEY_UNKNOWN,
        PartiesReason.ADMINISTRATOR_NEEDED,
        PartiesReason.OWNER_NEEDED,
    ],
)
def delete_api_key(account_id: AccountInPath, key_id: KeyInPath, call: Caller) -> Response:
    """Revokes a key at once: your own, or as an administrator another's. Twice is once."""

    def commands() -> RevokeApiKey:
        own(call.principal, account_id)
        return RevokeApiKey(
            account_id=account_id,
            key_id=key_id,
            by_key_id=call.principal.key_id,
            by_account_id=account_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: key_told(after, account_id, key_id))


def issuing(
    call: Call, account_id: str, key: str, scopes: tuple[str, ...], expires_at_us: int | None
) -> IssueApiKey:
    """The command that issues this key to the caller."""
    return IssueApiKey(
        account_id=account_id,
        key_id=id_of_key(key),
        key_sha256=keys.digest(key),
        scopes=scopes,
        expires_at_us=expires_at_us,
        by_key_id=call.principal.key_id,
        at_us=call.now_us,
    )


def key_told(after: After, account_id: str, key_id: str) -> ApiKeyAnswer:
    """A key, as the account has it after what is recorded now."""
    state = after.state(account_stream(account_id))
    key: ApiKey = state.keys[key_id]
    scopes: Any = list(key.scopes)
    opens: Any = sorted(state.scopes_of(key))
    return ApiKeyAnswer(
        key_id=key_id,
        member_id=key.member_id,
        scopes=scopes,
        opens=opens,
        succeeds=key.succeeds,
        expires_at=moment_or_none(key.expires_at_us),
        revoked_at=moment_or_none(key.revoked_at_us),
    )
