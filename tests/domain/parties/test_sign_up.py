"""An account that opened itself, and one that opens to a code: who may do what with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.duration import DAY_US
from domain.parties.account import (
    BY_OPERATOR,
    SIGN_UP,
    AccountOpened,
    AccountVerified,
    ApiKeyIssued,
    InvitationRedeemed,
    MemberAdded,
    MemberInvited,
    account_stream,
)
from domain.parties.member import INVITATION_US_MAX, InviteOwner, RedeemInvitation
from domain.parties.reasons import PartiesReason
from domain.parties.sign_up import VerifyAccount, verified_account
from domain.refusal import Refused
from tests.domain.scenes.supply import NOON_US
from tests.given import Scene

NEW = "acct_new"
STREAM = account_stream(NEW)
CODE = "c0" * 32
SCOPES = ("account", "account:admin", "renter")

invite = InviteOwner(
    account_id=NEW,
    kind="party",
    owner_member_id="mem_new",
    invitation_id="invitation_1",
    code_sha256=CODE,
    scopes=SCOPES,
    expires_at_us=NOON_US + DAY_US,
    by="mem_ops",
    at_us=NOON_US,
)
opened = AccountOpened(account_id=NEW, kind="party", opened_by="mem_ops", at_us=NOON_US)
owner = MemberAdded(account_id=NEW, member_id="mem_new", role="owner", by="mem_ops", at_us=NOON_US)
invited = MemberInvited(
    account_id=NEW,
    invitation_id="invitation_1",
    code_sha256=CODE,
    member_id="mem_new",
    role="owner",
    scopes=SCOPES,
    key_expires_at_us=None,
    expires_at_us=NOON_US + DAY_US,
    by_key_id=BY_OPERATOR,
    by="mem_ops",
    at_us=NOON_US,
)
redeem = RedeemInvitation(
    account_id=NEW,
    code_sha256=CODE,
    key_id="k_new",
    key_sha256="aa" * 32,
    by_key_id=None,
    at_us=NOON_US + 5,
)
first_key = ApiKeyIssued(
    account_id=NEW,
    key_id="k_new",
    key_sha256="aa" * 32,
    member_id="mem_new",
    scopes=SCOPES,
    expires_at_us=None,
    by_key_id=None,
    succeeds=None,
    at_us=NOON_US + 5,
)
redeemed = InvitationRedeemed(
    account_id=NEW, invitation_id="invitation_1", key_id="k_new", at_us=NOON_US + 5
)
waiting = Scene().given((STREAM, opened), (STREAM, owner), (STREAM, invited))
signed_up = Scene().given((STREAM, replace(opened, opened_by=SIGN_UP)), (STREAM, owner))
verify = VerifyAccount(account_id=NEW, by="mem_ops", at_us=NOON_US + 9)
verified = AccountVerified(account_id=NEW, by="mem_ops", at_us=NOON_US + 9)


def test_an_account_is_opened_with_a_code_and_no_key() -> None:
    Scene().when(invite).then((STREAM, opened), (STREAM, owner), (STREAM, invited))


def test_who_has_the_code_is_the_owner_and_gets_the_first_key() -> None:
    waiting.when(redeem).then((STREAM, redeemed), (STREAM, first_key))


def test_a_code_is_good_once_until_its_end_and_never_beside_another_key() -> None:
    used = waiting.given((STREAM, redeemed), (STREAM, first_key))
    again = replace(redeem, key_id="k_2", key_sha256="bb" * 32)
    used.when(again).then_refused(PartiesReason.INVITATION_UNKNOWN)
    late = replace(redeem, at_us=invite.expires_at_us)
    waiting.when(late).then_refused(PartiesReason.INVITATION_ENDED)
    with_a_key = waiting.given((STREAM, first_key))
    with_a_key.when(again).then_refused(PartiesReason.INVITATION_ENDED)
    other = replace(redeem, code_sha256="c1" * 32)
    waiting.when(other).then_refused(PartiesReason.INVITATION_UNKNOWN)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "operator"}, PartiesReason.NOT_PERMITTED),
        ({"scopes": ("operator",)}, PartiesReason.NOT_PERMITTED),
        ({"scopes": ("everything",)}, PartiesReason.SCOPE_UNKNOWN),
        ({"expires_at_us": NOON_US}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"expires_at_us": NOON_US + INVITATION_US_MAX + 1}, PartiesReason.COUNT_OUT_OF_RANGE),
    ],
)
def test_an_invitation_of_an_owner_holds_to_the_rules(
    changes: dict[str, Any], reason: PartiesReason
) -> None:
    Scene().when(replace(invite, **changes)).then_refused(reason)


def test_an_account_is_invited_once() -> None:
    waiting.when(invite).then_refused(PartiesReason.ACCOUNT_EXISTS)


def test_the_operator_verifies_an_account_that_signed_itself_up_once() -> None:
    signed_up.when(verify).then((STREAM, verified))
    signed_up.given((STREAM, verified)).when(verify).then_nothing()
    waiting.when(verify).then_nothing()
    Scene().when(verify).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_what_nobody_knows_is_not_a_verified_account() -> None:
    with pytest.raises(Refused) as refused:
        verified_account(signed_up, NEW)
    assert refused.value.reason is PartiesReason.ACCOUNT_UNVERIFIED
    assert not verified_account(signed_up.given((STREAM, verified)), NEW).is_unverified
    assert not verified_account(waiting, NEW).is_unverified
