"""Members join by redeeming what an administrator may offer, and an account keeps its owners."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.duration import DAY_US
from domain.parties import member
from domain.parties.account import (
    ROLES,
    SCOPES,
    SCOPES_OF_ROLE,
    AccountState,
    ApiKey,
    ApiKeyIssued,
    ApiKeyRevoked,
    InvitationRedeemed,
    InvitationWithdrawn,
    MemberAdded,
    MemberInvited,
    MemberRemoved,
    MemberRoleChanged,
    account_of,
)
from domain.parties.api_key import KEY_OVERLAP_US, IssueApiKey, RevokeApiKey, RotateApiKey
from domain.parties.member import (
    INVITATION_US_MAX,
    INVITATIONS_MAX,
    ChangeRole,
    InviteMember,
    RedeemInvitation,
    RemoveMember,
    WithdrawInvitation,
)
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from tests.domain.parties.scenes import OPS, OPS_STREAM, key_of, staffed
from tests.domain.parties.scenes import member as added
from tests.domain.scenes.supply import NOON_US
from tests.examples import examples
from tests.given import Scene

LATER_US = NOON_US + 5
SCOPES_ASKED = ("billing:read", "renter")

invite = InviteMember(
    account_id=OPS,
    invitation_id="invitation_1",
    code_sha256="c0" * 32,
    member_id="mem_new",
    role="member",
    scopes=SCOPES_ASKED,
    key_expires_at_us=None,
    expires_at_us=NOON_US + DAY_US,
    by_key_id="key_admin",
    at_us=NOON_US,
)
invited = MemberInvited(
    account_id=OPS,
    invitation_id="invitation_1",
    code_sha256="c0" * 32,
    member_id="mem_new",
    role="member",
    scopes=SCOPES_ASKED,
    key_expires_at_us=None,
    expires_at_us=NOON_US + DAY_US,
    by_key_id="key_admin",
    by="mem_admin",
    at_us=NOON_US,
)
withdraw = WithdrawInvitation(
    account_id=OPS, invitation_id="invitation_1", by_key_id="key_owner", at_us=LATER_US
)
redeem = RedeemInvitation(
    account_id=OPS,
    code_sha256="c0" * 32,
    key_id="key_new",
    key_sha256="77" * 32,
    by_key_id=None,
    at_us=LATER_US,
)
joined_with = ApiKeyIssued(
    account_id=OPS,
    key_id="key_new",
    key_sha256="77" * 32,
    member_id="mem_new",
    scopes=SCOPES_ASKED,
    expires_at_us=None,
    by_key_id="key_admin",
    succeeds=None,
    at_us=LATER_US,
)
remove = RemoveMember(account_id=OPS, member_id="mem_member", by_key_id="key_admin", at_us=LATER_US)
lower = ChangeRole(
    account_id=OPS, member_id="mem_admin", role="viewer", by_key_id="key_owner", at_us=LATER_US
)
offered = staffed.after(invite)
second_owner = staffed.given(
    (OPS_STREAM, added("owner", "mem_second")),
    (OPS_STREAM, replace(key_of("owner", "key_second"), member_id="mem_second")),
)


def test_an_administrator_invites_within_their_own_rights() -> None:
    staffed.when(invite).then((OPS_STREAM, invited))


@pytest.mark.parametrize("role", ["billing", "member", "viewer"])
def test_administrators_alone_invite(role: str) -> None:
    asked = replace(invite, by_key_id=f"key_{role}")
    staffed.when(asked).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)


def test_an_invitation_gives_no_scope_that_the_inviter_lacks() -> None:
    """The attack: a key with only account:admin makes a second person with more."""
    weak = key_of("owner", "key_weak", scopes=("account:admin",))
    scene = staffed.given((OPS_STREAM, weak))
    for scope in ("oracle:write", "operator"):
        asked = replace(invite, by_key_id="key_weak", scopes=(scope,))
        scene.when(asked).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER, scope=scope)
    asked = replace(invite, role="billing", scopes=("payout:approve",))
    staffed.when(asked).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER, scope="payout:approve")


@pytest.mark.parametrize("scope", ["operator", "account:admin", "renter"])
def test_a_viewer_is_invited_to_read_and_nothing_else(scope: str) -> None:
    """The attack: a member with the role viewer holds a key that operates."""
    asked = replace(invite, role="viewer", scopes=(scope,), by_key_id="key_owner")
    staffed.when(asked).then_refused(PartiesReason.ROLE_LACKS_SCOPE)


def test_only_owners_invite_owners() -> None:
    asked = replace(invite, role="owner")
    staffed.when(asked).then_refused(PartiesReason.OWNER_NEEDED)
    assert staffed.when(replace(asked, by_key_id="key_owner")).changes()


def test_the_key_of_an_invitation_ends_with_the_inviters_at_the_latest() -> None:
    short = key_of("admin", "key_short", expires_at_us=NOON_US + 100)
    scene = staffed.given((OPS_STREAM, short))
    asked = replace(invite, by_key_id="key_short")
    (made,) = scene.when(asked).changes()
    assert made.fact.key_expires_at_us == NOON_US + 100
    beyond = replace(asked, key_expires_at_us=NOON_US + 101)
    scene.when(beyond).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER)


@pytest.mark.parametrize("after_us", [0, -1, INVITATION_US_MAX + 1])
def test_an_invitation_waits_for_a_time_that_is_bounded(after_us: int) -> None:
    asked = replace(invite, expires_at_us=NOON_US + after_us)
    staffed.when(asked).then_refused(PartiesReason.COUNT_OUT_OF_RANGE, invitation_us=after_us)


def test_a_bounded_number_of_invitations_waits_at_a_time() -> None:
    waiting = staffed.given(
        *(
            (OPS_STREAM, replace(invited, invitation_id=f"invitation_{number}"))
            for number in range(INVITATIONS_MAX)
        )
    )
    asked = replace(invite, invitation_id="invitation_one_more")
    waiting.when(asked).then_refused(PartiesReason.COUNT_OUT_OF_RANGE, invitations=INVITATIONS_MAX)
    later_us = NOON_US + DAY_US
    much_later = replace(asked, at_us=later_us, expires_at_us=later_us + DAY_US)
    assert len(account_of(waiting.after(much_later), OPS).invitations) == 1, "others are over"


def test_the_invitee_becomes_a_member_with_the_key_that_was_offered() -> None:
    offered.when(redeem).then(
        (
            OPS_STREAM,
            InvitationRedeemed(
                account_id=OPS, invitation_id="invitation_1", key_id="key_new", at_us=LATER_US
            ),
        ),
        (
            OPS_STREAM,
            MemberAdded(
                account_id=OPS, member_id="mem_new", role="member", by="mem_admin", at_us=LATER_US
            ),
        ),
        (OPS_STREAM, joined_with),
    )


def test_an_invitation_is_redeemed_once_and_with_its_code() -> None:
    again = replace(redeem, key_id="key_again")
    offered.after(redeem).when(again).then_refused(PartiesReason.INVITATION_UNKNOWN)
    wrong = replace(redeem, code_sha256="c1" * 32)
    offered.when(wrong).then_refused(PartiesReason.INVITATION_UNKNOWN)


def test_an_invitation_that_is_over_gives_nothing() -> None:
    late = replace(redeem, at_us=NOON_US + DAY_US)
    offered.when(late).then_refused(PartiesReason.INVITATION_ENDED)
    withdrawn = offered.after(withdraw)
    withdrawn.when(redeem).then_refused(PartiesReason.INVITATION_UNKNOWN)


def test_an_invitation_ends_with_the_key_that_made_it() -> None:
    """What a thief invited with a stolen key goes with the key."""
    revoke = RevokeApiKey(
        account_id=OPS, key_id="key_admin", by_key_id="key_owner", by_account_id=OPS, at_us=LATER_US
    )
    offered.after(revoke).when(redeem).then_refused(PartiesReason.INVITATION_ENDED)
    offered.after(lower).when(redeem).then_refused(PartiesReason.INVITATION_ENDED)
    gone = offered.after(replace(remove, member_id="mem_admin", by_key_id="key_owner"))
    gone.when(redeem).then_refused(PartiesReason.INVITATION_ENDED)


def test_an_invitation_is_withdrawn_by_an_administrator() -> None:
    offered.when(withdraw).then(
        (
            OPS_STREAM,
            InvitationWithdrawn(
                account_id=OPS, invitation_id="invitation_1", by="mem_owner", at_us=LATER_US
            ),
        )
    )
    members = replace(withdraw, by_key_id="key_member")
    offered.when(members).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)
    staffed.when(withdraw).then_refused(PartiesReason.INVITATION_UNKNOWN)


def test_nobody_gets_a_key_in_the_name_of_a_colleague() -> None:
    """The attack: an administrator issues a key in the name of a present member and keeps it."""
    asked = replace(invite, member_id="mem_member")
    scene = staffed.after(asked)
    scene.when(redeem).then_refused(PartiesReason.KEY_OF_ANOTHER)
    own = replace(redeem, by_key_id="key_admin")
    scene.when(own).then_refused(PartiesReason.KEY_OF_ANOTHER)
    theirs = replace(redeem, by_key_id="key_member")
    (_, made) = scene.when(theirs).changes()
    assert made.fact == replace(joined_with, member_id="mem_member")


def test_an_invitation_of_a_member_who_was_removed_brings_nobody_back() -> None:
    scene = staffed.after(replace(invite, member_id="mem_member")).after(remove)
    own = replace(redeem, by_key_id="key_member")
    scene.when(own).then_refused(PartiesReason.INVITATION_UNKNOWN)


def test_a_present_member_keeps_their_role_when_invited_again() -> None:
    asked = replace(invite, member_id="mem_viewer")
    staffed.when(asked).then_refused(PartiesReason.MEMBER_EXISTS)


def test_a_role_must_be_known() -> None:
    staffed.when(replace(invite, role="king")).then_refused(PartiesReason.ROLE_UNKNOWN)
    staffed.when(replace(lower, role="king")).then_refused(PartiesReason.ROLE_UNKNOWN)


def test_a_changed_role_narrows_existing_keys_at_once() -> None:
    staffed.when(lower).then(
        (
            OPS_STREAM,
            MemberRoleChanged(
                account_id=OPS, member_id="mem_admin", role="viewer", by="mem_owner", at_us=LATER_US
            ),
        )
    )
    state = account_of(staffed.after(lower), OPS)
    assert state.scopes_of(state.keys["key_admin"]) == SCOPES_OF_ROLE["viewer"]
    staffed.after(lower).when(lower).then_nothing()
    back = replace(lower, role="admin")
    state = account_of(staffed.after(lower).after(back), OPS)
    assert state.scopes_of(state.keys["key_admin"]) == SCOPES_OF_ROLE["admin"]


def test_an_admin_neither_removes_nor_lowers_nor_makes_an_owner() -> None:
    by: dict[str, Any] = {"by_key_id": "key_admin"}
    removing = replace(remove, member_id="mem_owner", **by)
    second_owner.when(removing).then_refused(PartiesReason.OWNER_NEEDED)
    lowering = replace(lower, member_id="mem_owner", **by)
    second_owner.when(lowering).then_refused(PartiesReason.OWNER_NEEDED)
    rising = replace(lower, role="owner", **by)
    second_owner.when(rising).then_refused(PartiesReason.OWNER_NEEDED)


def test_an_account_keeps_an_owner() -> None:
    removing = replace(remove, member_id="mem_owner", by_key_id="key_owner")
    staffed.when(removing).then_refused(PartiesReason.LAST_OWNER)
    lowering = replace(lower, member_id="mem_owner")
    staffed.when(lowering).then_refused(PartiesReason.LAST_OWNER)
    assert second_owner.when(removing).changes()
    assert second_owner.when(lowering).changes()


def test_a_weak_key_of_an_owner_puts_no_owner_out() -> None:
    """The attack: a key with only account:admin adds an owner and removes the real one."""
    weak = key_of("owner", "key_weak", scopes=("account:admin", "account"))
    scene = second_owner.given((OPS_STREAM, weak))
    for whom in ("mem_owner", "mem_second"):
        removing = replace(remove, member_id=whom, by_key_id="key_weak")
        scene.when(removing).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER, member_id=whom)
        lowering = replace(lower, member_id=whom, by_key_id="key_weak")
        scene.when(lowering).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER, member_id=whom)


def test_removing_a_member_ends_their_keys_and_no_others() -> None:
    ended = ApiKeyRevoked(
        account_id=OPS,
        key_id="key_member",
        effective_at_us=LATER_US,
        by="mem_admin",
        at_us=LATER_US,
    )
    staffed.when(remove).then(
        (
            OPS_STREAM,
            MemberRemoved(account_id=OPS, member_id="mem_member", by="mem_admin", at_us=LATER_US),
        ),
        (OPS_STREAM, ended),
    )
    gone = staffed.after(remove)
    gone.when(remove).then_refused(PartiesReason.MEMBER_UNKNOWN)
    state = account_of(gone, OPS)
    assert state.scopes_of(state.keys["key_member"]) == set()


def test_an_unknown_account_is_refused_by_every_command() -> None:
    for command in (invite, withdraw, redeem, lower, remove):
        Scene().when(command).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_every_command_has_a_decision() -> None:
    assert len(member.DECIDERS) == 6


# --- whatever is asked, by whichever key -------------------------------------------------------

WEAK = ("account", "account:admin", "billing:read", "renter")
members = st.sampled_from([*(f"mem_{role}" for role in ROLES), "mem_new", "mem_other"])
keys = st.sampled_from([*(f"key_{role}" for role in ROLES), "key_weak", "key_1", "key_2", "key_3"])
new_keys = st.sampled_from(["key_1", "key_2", "key_3", "key_4"])
scopes = st.lists(st.sampled_from(SCOPES), max_size=3, unique=True).map(tuple)
ends = st.one_of(st.none(), st.integers(NOON_US + 1, NOON_US + 3 * DAY_US))
times = st.integers(NOON_US, NOON_US + DAY_US)
codes = st.sampled_from(["c0" * 32, "c1" * 32])
at_ops: dict[str, Any] = {"account_id": st.just(OPS), "at_us": times}
commands = st.one_of(
    st.builds(
        IssueApiKey,
        key_id=new_keys,
        key_sha256=st.just("11" * 32),
        scopes=scopes,
        expires_at_us=ends,
        by_key_id=keys,
        **at_ops,
    ),
    st.builds(
        RotateApiKey,
        key_id=keys,
        new_key_id=new_keys,
        new_key_sha256=st.just("22" * 32),
        expires_at_us=ends,
        by_key_id=keys,
        **at_ops,
    ),
    st.builds(RevokeApiKey, key_id=keys, by_key_id=keys, by_account_id=st.just(OPS), **at_ops),
    st.builds(
        InviteMember,
        invitation_id=codes,
        code_sha256=codes,
        member_id=members,
        role=st.sampled_from(ROLES),
        scopes=scopes,
        key_expires_at_us=ends,
        expires_at_us=st.just(NOON_US + 2 * DAY_US),
        by_key_id=keys,
        **at_ops,
    ),
    st.builds(
        RedeemInvitation,
        code_sha256=codes,
        key_id=new_keys,
        key_sha256=st.just("11" * 32),
        by_key_id=st.one_of(st.none(), keys),
        **at_ops,
    ),
    st.builds(ChangeRole, member_id=members, role=st.sampled_from(ROLES), by_key_id=keys, **at_ops),
    st.builds(RemoveMember, member_id=members, by_key_id=keys, **at_ops),
)


def _outlives(key: ApiKey, other: ApiKey) -> bool:
    if other.expires_at_us is None:
        return False
    return key.expires_at_us is None or key.expires_at_us > other.expires_at_us


@examples(200)
@given(st.lists(commands, max_size=25))
def test_no_key_may_do_more_or_lasts_longer_than_the_key_it_came_from(asked: list[Any]) -> None:
    """scopes(new) subset of effective(issuer), ends(new) <= ends(issuer), owners never empty."""
    weak = key_of("owner", "key_weak", scopes=WEAK, expires_at_us=NOON_US + DAY_US)
    scene = staffed.given((OPS_STREAM, weak))
    from_weak = {"key_weak"}
    for command in sorted(asked, key=lambda one: one.at_us):
        try:
            changes = rules.decide(command, scene)
        except Refused:
            continue
        before: AccountState = account_of(scene, OPS)
        scene = scene.given(*((change.stream, change.fact) for change in changes))
        state = account_of(scene, OPS)
        assert state.owners
        for fact in (change.fact for change in changes):
            if not isinstance(fact, ApiKeyIssued):
                continue
            assert fact.by_key_id is not None
            issuer, made = before.keys[fact.by_key_id], state.keys[fact.key_id]
            if fact.succeeds is None:
                assert set(made.scopes) <= before.scopes_of(issuer)
            assert set(made.scopes) <= set(issuer.scopes)
            assert not _outlives(made, issuer)
            assert issuer.member_id == made.member_id or isinstance(command, RedeemInvitation)
            if fact.by_key_id in from_weak:
                from_weak.add(fact.key_id)
        for key in state.keys.values():
            assert key.member_id in state.members or not key.is_live(NOON_US + KEY_OVERLAP_US * 3)
    for key_id in from_weak:
        assert set(account_of(scene, OPS).keys[key_id].scopes) <= set(WEAK)
