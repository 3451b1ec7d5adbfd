"""How a stranger gets an account: by an invitation of the operator, or by signing up.

    sign-ups of a day <= sign_ups_per_day, and those that come at once with the last one
    sign-ups of an address, in a process <= SIGN_UPS_AT_ONCE, and one more every SIGN_UP_SECONDS

Invitation: the operator hands over a code, and whoever redeems it (`members`) alone sees the key.
Sign-up: only where the operator's settings say `open`. Such an account begins without credit, can
read and pay in (`api/door/unverified.py`), and is closed when it is never used.
"""

from __future__ import annotations

import hashlib
from threading import Lock
from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from api.door import errors
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.errors import Problem
from api.door.limits import Buckets, bucket_of
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    EmptyRequest,
    MemberId,
    Moment,
    Position,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.parties.accounts import AccountKind, AccountOpenedAnswer, opening
from api.parties.members import INVITED_US
from api.parties.new_keys import ScopeName, Scopes, new_code
from domain.duration import DAY_US
from domain.money import MoneyReason
from domain.parties.account import SCOPES_OF, SIGN_UP
from domain.parties.member import InviteOwner
from domain.parties.reasons import PartiesReason
from domain.parties.sign_up import VerifyAccount
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("accounts")

OPEN = "open"
SIGN_UP_SECONDS = 8_640
SIGN_UPS_AT_ONCE = 5
"""Of one address in one process: five at once, and another one every 2.4 hours."""
_turn = Lock()
"""Calls run in threads, and a bucket is for one at a time."""


# --- by invitation -----------------------------------------------------------------------------


class AccountInvitationRequest(RequestModel):
    """`scopes` of the first key; absent: everything the kind of account may do. `expires_at`
    absent: in 24 hours; at most in seven days.
    """

    kind: AccountKind = "party"
    scopes: Scopes | None = None
    expires_at: Moment | None = None

    model_config = with_examples({"kind": "party"})


class AccountInvitationAnswer(AnswerModel):
    """`code` is there only in the answer that makes it. Hand it over: the person that
    redeems it owns the account and alone sees the key.
    """

    account_id: AccountId
    kind: AccountKind
    member_id: MemberId
    invitation_id: Short
    scopes: list[ScopeName]
    expires_at: Told_at
    code: str | None = None
    position: Position | None = None


@resource.post(
    "/v1/account-invitations",
    with_scope("operator"),
    AccountInvitationAnswer,
    status=201,
    problems=[
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ACCOUNT_EXISTS,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def invite_account(body: AccountInvitationRequest, call: Caller) -> Response:
    """Opens an account whose owner gets the first key by a code, which is shown once."""
    account_id, member_id = call.id("acct"), call.id("member")
    invitation_id, code = call.id("invitation"), new_code(call)
    scopes: Any = tuple(body.scopes or sorted(SCOPES_OF[body.kind]))
    expires_at_us = body.expires_at or call.now_us + INVITED_US

    def commands() -> InviteOwner:
        return InviteOwner(
            account_id=account_id,
            kind=body.kind,
            owner_member_id=member_id,
            invitation_id=invitation_id,
            code_sha256=hashlib.sha256(code.encode()).hexdigest(),
            scopes=scopes,
            expires_at_us=expires_at_us,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(_after: After) -> AnswerModel:
        return AccountInvitationAnswer(
            account_id=account_id,
            kind=body.kind,
            member_id=member_id,
            invitation_id=invitation_id,
            scopes=list(scopes),
            expires_at=moment(expires_at_us),
        )

    return call.record(commands, told, reveal=lambda: {"code": code})


# --- by signing up -----------------------------------------------------------------------------


class SignUpRequest(RequestModel):
    """`nonce`: 22 characters or more that you drew at random, and kept. With them, and the same
    Idempotency-Key, a lost answer can be asked for again.
    """

    nonce: Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{22,64}$")]

    model_config = with_examples({"nonce": "0" * 43})


@resource.post(
    "/v1/sign-up",
    everybody(),
    AccountOpenedAnswer,
    status=201,
    problems=["sign_up_closed", "sign_up_full", MoneyReason.DUPLICATE_ID],
)
def sign_up(body: SignUpRequest, call: Caller) -> Response:
    """Opens an account of your own and shows its first API key, once, if this market lets you.

    Until money arrives on it, or the operator verifies it, it can read and pay in.
    """
    if call.service.settings.sign_up != OPEN:
        raise errors.problem("sign_up_closed")
    # What was drawn scopes the request: a neighbour with the same key is not shown the answer.
    call.account = f"sign-up:{hashlib.sha256(body.nonce.encode()).hexdigest()}"
    if not call.is_answered():
        _require_room(call)
    return opening(call, "party", SIGN_UP)


def _require_room(call: Call) -> None:
    """Nothing is kept of a request that is refused here. Raises Problem: 429."""
    client, state = call.request.client, call.request.app.state
    address = bucket_of(client.host) if client is not None else ""
    with _turn:
        if not hasattr(state, "sign_ups"):
            state.sign_ups = Buckets.every(SIGN_UP_SECONDS, SIGN_UPS_AT_ONCE)
        spent = state.sign_ups.spend(address)
    if not spent.allowed:
        raise Problem(429, "rate_limited", "this address opened several", headers=spent.headers())
    with call.read(ACCESS) as view:
        done = access.count_sign_ups(view.connection, call.now_us - DAY_US)
    if done >= call.service.settings.sign_ups_per_day:
        raise errors.problem("sign_up_full", Retry_After="3600")


class AccountVerifiedAnswer(AnswerModel):
    """A second call changes nothing."""

    account_id: AccountId
    position: Position | None = None


@resource.post(
    "/v1/accounts/{account_id}/verify",
    with_scope("operator"),
    AccountVerifiedAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, PartiesReason.ACCOUNT_CLOSED],
)
def verify_account(account_id: AccountInPath, body: EmptyRequest, call: Caller) -> Response:
    """Verifies an account that signed itself up: you know its owner, and it may do everything."""
    del body
    command = VerifyAccount(account_id=account_id, by=call.principal.member_id, at_us=call.now_us)
    told = AccountVerifiedAnswer(account_id=account_id)
    return call.record(lambda: command, lambda _after: told)
