"""Keys make keys that may do no more and last no longer, and for nobody but their holder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.money import MoneyReason
from domain.parties import api_key
from domain.parties.account import SCOPES_OF_ROLE, ApiKeyIssued, ApiKeyRevoked, account_of
from domain.parties.api_key import KEY_OVERLAP_US, IssueApiKey, RevokeApiKey, RotateApiKey
from domain.parties.reasons import PartiesReason
from domain.stream import Stream
from tests.domain.parties.scenes import OPS, OPS_STREAM, key_of, staffed
from tests.domain.scenes.supply import ALICE, NOON_US, with_account
from tests.given import Scene

LATER_US = NOON_US + 5

issue = IssueApiKey(
    account_id=OPS,
    key_id="key_new",
    key_sha256="33" * 32,
    scopes=("billing:read", "renter"),
    expires_at_us=None,
    by_key_id="key_admin",
    at_us=LATER_US,
)
issued = ApiKeyIssued(
    account_id=OPS,
    key_id="key_new",
    key_sha256="33" * 32,
    member_id="mem_admin",
    scopes=("billing:read", "renter"),
    expires_at_us=None,
    by_key_id="key_admin",
    succeeds=None,
    at_us=LATER_US,
)
rotate = RotateApiKey(
    account_id=OPS,
    key_id="key_member",
    new_key_id="key_next",
    new_key_sha256="44" * 32,
    expires_at_us=None,
    by_key_id="key_member",
    at_us=LATER_US,
)
revoke = RevokeApiKey(
    account_id=OPS, key_id="key_member", by_key_id="key_member", by_account_id=OPS, at_us=LATER_US
)
revoked = ApiKeyRevoked(
    account_id=OPS, key_id="key_member", effective_at_us=LATER_US, by="mem_member", at_us=LATER_US
)


def with_weak(role: str, *scopes: str, expires_at_us: int | None = None) -> Scene:
    """The staff, and a second, weak key of the member with this role."""
    weak = key_of(role, "key_weak", scopes=scopes, expires_at_us=expires_at_us)
    return staffed.given((OPS_STREAM, weak))


def test_an_administrator_issues_another_key_for_themselves() -> None:
    staffed.when(issue).then((OPS_STREAM, issued))


@pytest.mark.parametrize("scope", ["operator", "payout:approve", "oracle:write"])
def test_a_key_with_only_administration_gives_no_scope_that_it_lacks(scope: str) -> None:
    """The attack: a key with nothing but account:admin issues itself the rest."""
    weak = with_weak("owner", "account:admin")
    asked = replace(issue, scopes=(scope,), by_key_id="key_weak")
    weak.when(asked).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER)


def test_a_key_ends_with_the_key_that_issued_it_at_the_latest() -> None:
    """The attack: a stolen key that is good for a day issues one that is good for ever."""
    weak = with_weak("admin", "account:admin", expires_at_us=NOON_US + 100)
    asked = replace(issue, scopes=("account:admin",), by_key_id="key_weak")
    (made,) = weak.when(asked).changes()
    assert made.fact.expires_at_us == NOON_US + 100
    sooner = replace(asked, expires_at_us=NOON_US + 99)
    (made,) = weak.when(sooner).changes()
    assert made.fact.expires_at_us == NOON_US + 99
    beyond = replace(asked, expires_at_us=NOON_US + 101)
    weak.when(beyond).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER)


def test_a_rotated_key_issues_nothing_that_outlives_its_overlap() -> None:
    """The attack: a thief uses the 24 hours beside the successor for a key without an end."""
    rotated = staffed.after(replace(rotate, key_id="key_admin", by_key_id="key_admin"))
    (made,) = rotated.when(issue).changes()
    assert made.fact.expires_at_us == LATER_US + KEY_OVERLAP_US


@pytest.mark.parametrize("role", ["billing", "member", "viewer"])
def test_keys_are_issued_by_administrators(role: str) -> None:
    asked = replace(issue, scopes=("billing:read",), by_key_id=f"key_{role}")
    staffed.when(asked).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)


def test_a_member_whose_role_was_narrowed_issues_nothing_more() -> None:
    """Stored scopes count only as far as the member's present role allows them."""
    viewer = replace(key_of("viewer", "key_old"), scopes=("account:admin", "operator"))
    scene = staffed.given((OPS_STREAM, viewer))
    key = account_of(scene, OPS).keys["key_old"]
    assert account_of(scene, OPS).scopes_of(key) == set()
    asked = replace(issue, by_key_id="key_old")
    scene.when(asked).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)


def test_a_role_bounds_what_its_keys_are_issued_with() -> None:
    asked = replace(issue, scopes=("payout:approve",))
    staffed.when(asked).then_refused(PartiesReason.ROLE_LACKS_SCOPE)


def test_a_scope_must_be_known_and_of_the_kind_of_account() -> None:
    staffed.when(replace(issue, scopes=("root",))).then_refused(PartiesReason.SCOPE_UNKNOWN)
    own = replace(key_of("owner"), account_id=ALICE, member_id="mem_alice")
    party = with_account.given((Stream("account", ALICE), own))
    asked = replace(issue, account_id=ALICE, by_key_id="key_owner", scopes=("operator",))
    party.when(asked).then_refused(PartiesReason.NOT_PERMITTED)


def test_an_ended_key_and_one_of_a_former_member_issue_nothing() -> None:
    gone = staffed.after(replace(revoke, key_id="key_admin", by_key_id="key_admin"))
    gone.when(issue).then_refused(PartiesReason.API_KEY_REVOKED)
    staffed.when(replace(issue, by_key_id="key_nobody")).then_refused(PartiesReason.API_KEY_UNKNOWN)


def test_the_same_key_twice_is_once() -> None:
    staffed.after(issue).when(issue).then_nothing()


def test_two_keys_never_share_an_id() -> None:
    again = replace(issue, key_sha256="55" * 32)
    staffed.after(issue).when(again).then_refused(MoneyReason.DUPLICATE_ID)
    staffed.when(replace(rotate, new_key_id="key_viewer")).then_refused(MoneyReason.DUPLICATE_ID)


def test_a_holder_rotates_a_key_and_both_are_good_for_a_day() -> None:
    ends_us = LATER_US + KEY_OVERLAP_US
    successor = replace(
        key_of("member"),
        key_id="key_next",
        key_sha256="44" * 32,
        by_key_id="key_member",
        succeeds="key_member",
        at_us=LATER_US,
    )
    staffed.when(rotate).then(
        (OPS_STREAM, successor), (OPS_STREAM, replace(revoked, effective_at_us=ends_us))
    )
    state = account_of(staffed.after(rotate), OPS)
    assert state.keys["key_member"].is_live(ends_us - 1)
    assert not state.keys["key_member"].is_live(ends_us)
    assert state.keys["key_next"].is_live(ends_us)
    assert state.root_of("key_next") == "key_member"


@pytest.mark.parametrize("by", ["owner", "admin"])
def test_nobody_rotates_the_key_of_another(by: str) -> None:
    """The attack: an administrator rotates a colleague's key and is shown the successor."""
    asked = replace(rotate, by_key_id=f"key_{by}")
    staffed.when(asked).then_refused(PartiesReason.KEY_OF_ANOTHER)


def test_a_weak_key_does_not_rotate_a_strong_one_of_the_same_member() -> None:
    """The attack: the owner's weak key rotates the owner's strong one and has its scopes."""
    strong = replace(rotate, key_id="key_owner", by_key_id="key_weak")
    weak = with_weak("owner", "account:admin")
    weak.when(strong).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER)
    short = with_weak("owner", *SCOPES_OF_ROLE["owner"], expires_at_us=NOON_US + 100)
    short.when(strong).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER)
    weaker = replace(rotate, key_id="key_weak", by_key_id="key_owner")
    (made, _) = weak.when(weaker).changes()
    assert (made.fact.scopes, made.fact.member_id) == (("account:admin",), "mem_owner")


def test_a_successor_ends_no_later_than_the_key_it_replaces() -> None:
    scene = with_weak("member", "renter", expires_at_us=NOON_US + 100)
    own = replace(rotate, key_id="key_weak", by_key_id="key_weak")
    (made, _) = scene.when(own).changes()
    assert made.fact.expires_at_us == NOON_US + 100
    beyond = replace(own, expires_at_us=NOON_US + 101)
    scene.when(beyond).then_refused(PartiesReason.KEY_EXCEEDS_ISSUER)


def test_a_key_is_rotated_once_and_not_after_its_end() -> None:
    again = replace(rotate, new_key_id="key_third")
    staffed.after(rotate).when(again).then_refused(PartiesReason.API_KEY_REVOKED)
    ended = with_weak("member", "renter", expires_at_us=LATER_US)
    own = replace(rotate, key_id="key_weak")
    ended.when(own).then_refused(PartiesReason.API_KEY_REVOKED)


def test_the_overlap_of_a_rotation_can_be_cut_short() -> None:
    later = replace(revoke, at_us=LATER_US + 1)
    staffed.after(rotate).when(later).then(
        (OPS_STREAM, replace(revoked, effective_at_us=LATER_US + 1, at_us=LATER_US + 1))
    )


def test_a_holder_revokes_a_key_at_once_and_twice_is_once() -> None:
    staffed.when(revoke).then((OPS_STREAM, revoked))
    key = account_of(staffed.after(revoke), OPS).keys["key_member"]
    assert key.is_live(LATER_US - 1)
    assert not key.is_live(LATER_US)
    staffed.after(revoke).when(revoke).then_nothing()


@pytest.mark.parametrize(("by", "whose"), [("owner", "admin"), ("admin", "billing")])
def test_an_administrator_revokes_the_keys_of_others(by: str, whose: str) -> None:
    asked = replace(revoke, key_id=f"key_{whose}", by_key_id=f"key_{by}")
    (made,) = staffed.when(asked).changes()
    assert (made.fact.key_id, made.fact.by) == (f"key_{whose}", f"mem_{by}")


def test_only_owners_revoke_the_keys_of_owners() -> None:
    asked = replace(revoke, key_id="key_owner", by_key_id="key_admin")
    staffed.when(asked).then_refused(PartiesReason.OWNER_NEEDED)


@pytest.mark.parametrize("by", ["billing", "member", "viewer"])
def test_who_administers_nothing_revokes_only_their_own_keys(by: str) -> None:
    asked = replace(revoke, key_id="key_admin", by_key_id=f"key_{by}")
    staffed.when(asked).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)


def test_the_operator_ends_keys_of_other_accounts_and_parties_do_not() -> None:
    alices = replace(key_of("owner"), account_id=ALICE, member_id="mem_alice")
    both = staffed.given(*with_account.past, (Stream("account", ALICE), alices))
    asked = replace(revoke, account_id=ALICE, key_id="key_owner")
    (made,) = both.when(asked).changes()
    assert (made.fact.account_id, made.fact.by) == (ALICE, "mem_member")
    viewers = replace(asked, by_key_id="key_viewer")
    both.when(viewers).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)
    back = replace(revoke, by_key_id="key_owner", by_account_id=ALICE)
    both.when(back).then_refused(PartiesReason.ADMINISTRATOR_NEEDED)


def test_an_unknown_key_or_account_is_refused_by_every_command() -> None:
    for command in (issue, rotate, revoke):
        Scene().when(command).then_refused(PartiesReason.ACCOUNT_UNKNOWN)
    for asked in (replace(rotate, key_id="nobody00"), replace(revoke, key_id="nobody00")):
        staffed.when(asked).then_refused(PartiesReason.API_KEY_UNKNOWN)


def test_every_command_has_a_decision() -> None:
    assert set(api_key.DECIDERS) == {IssueApiKey, RotateApiKey, RevokeApiKey}
