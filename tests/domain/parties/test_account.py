"""Who may act: opening, members, keys and wallets, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.money import MoneyReason
from domain.parties import account
from domain.parties.account import (
    ACCOUNT_KINDS,
    KEY_OVERLAP_US,
    OPERATOR_STREAM,
    ROLES,
    SCOPES,
    SCOPES_OF,
    WALLET_DELAY_US,
    AccountOpened,
    AddMember,
    ApiKeyIssued,
    ApiKeyRevoked,
    BootstrapOperator,
    IssueApiKey,
    LinkWallet,
    MemberAdded,
    MemberRemoved,
    OpenAccount,
    OperatorBootstrapped,
    RemoveMember,
    RevokeApiKey,
    RotateApiKey,
    WalletClaimed,
    WalletLinked,
    account_of,
    operator_of,
    wallet_of,
)
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.supply import ALICE, ALICE_STREAM, NOON_US, opened, owned, with_account
from tests.given import Scene

BOB = "acct_bob"
BOB_STREAM = Stream("account", BOB)
ADDRESS = "0x" + "ab" * 20
OTHER_ADDRESS = "0x" + "cd" * 20

open_alice = OpenAccount(
    account_id=ALICE, kind="party", opened_by="key_ops", owner_member_id="mem_alice", at_us=NOON_US
)
bootstrap = BootstrapOperator(
    account_id="acct_ops", member_id="mem_ops", key_id="k1", key_sha256="00" * 32, at_us=NOON_US
)
add_bob = AddMember(
    account_id=ALICE, member_id="mem_bob", role="billing", by="mem_alice", at_us=NOON_US
)
bob_added = MemberAdded(
    account_id=ALICE, member_id="mem_bob", role="billing", by="mem_alice", at_us=NOON_US
)
issue = IssueApiKey(
    account_id=ALICE,
    key_id="key00001",
    key_sha256="11" * 32,
    member_id="mem_alice",
    scopes=("renter", "billing:read"),
    expires_at_us=None,
    at_us=NOON_US,
)
issued = ApiKeyIssued(
    account_id=ALICE,
    key_id="key00001",
    key_sha256="11" * 32,
    member_id="mem_alice",
    scopes=("renter", "billing:read"),
    expires_at_us=None,
    at_us=NOON_US,
)
revoke = RevokeApiKey(account_id=ALICE, key_id="key00001", by="mem_alice", at_us=NOON_US + 5)
revoked = ApiKeyRevoked(
    account_id=ALICE,
    key_id="key00001",
    effective_at_us=NOON_US + 5,
    by="mem_alice",
    at_us=NOON_US + 5,
)
rotate = RotateApiKey(
    account_id=ALICE,
    key_id="key00001",
    new_key_id="key00002",
    new_key_sha256="22" * 32,
    expires_at_us=None,
    by="mem_alice",
    at_us=NOON_US + 5,
)
link = LinkWallet(
    account_id=ALICE, address=ADDRESS, message="sign in", signature="0x01", at_us=NOON_US
)
claimed = WalletClaimed(address=ADDRESS, account_id=ALICE, at_us=NOON_US)
linked = WalletLinked(
    account_id=ALICE,
    address=ADDRESS,
    message="sign in",
    signature="0x01",
    effective_at_us=NOON_US,
    at_us=NOON_US,
)

with_key = with_account.given((ALICE_STREAM, issued))
with_wallet = with_account.given((Stream("wallet", ADDRESS), claimed), (ALICE_STREAM, linked))


def test_an_account_opens_with_its_first_owner() -> None:
    Scene().when(open_alice).then((ALICE_STREAM, opened), (ALICE_STREAM, owned))


def test_an_account_opens_once() -> None:
    with_account.when(open_alice).then_refused(PartiesReason.ACCOUNT_EXISTS)


@pytest.mark.parametrize("kind", ["operator", "", "admin"])
def test_nobody_opens_an_operator_account_or_one_of_an_unknown_kind(kind: str) -> None:
    Scene().when(replace(open_alice, kind=kind)).then_refused(PartiesReason.NOT_PERMITTED)


def test_the_operator_gets_an_owner_and_a_key_with_every_scope() -> None:
    ops = Stream("account", "acct_ops")
    Scene().when(bootstrap).then(
        (OPERATOR_STREAM, OperatorBootstrapped(account_id="acct_ops", at_us=NOON_US)),
        (
            ops,
            AccountOpened(
                account_id="acct_ops", kind="operator", opened_by="mem_ops", at_us=NOON_US
            ),
        ),
        (
            ops,
            MemberAdded(
                account_id="acct_ops",
                member_id="mem_ops",
                role="owner",
                by="mem_ops",
                at_us=NOON_US,
            ),
        ),
        (
            ops,
            ApiKeyIssued(
                account_id="acct_ops",
                key_id="k1",
                key_sha256="00" * 32,
                member_id="mem_ops",
                scopes=SCOPES,
                expires_at_us=None,
                at_us=NOON_US,
            ),
        ),
    )


def test_there_is_one_operator() -> None:
    ruled = Scene().after(bootstrap)
    assert operator_of(ruled).account_id == "acct_ops"
    ruled.when(replace(bootstrap, account_id="acct_2")).then_refused(PartiesReason.OPERATOR_EXISTS)


def test_the_operator_account_is_new() -> None:
    with_account.when(replace(bootstrap, account_id=ALICE)).then_refused(
        PartiesReason.ACCOUNT_EXISTS
    )


def test_a_member_is_added_with_a_role() -> None:
    with_account.when(add_bob).then((ALICE_STREAM, bob_added))


def test_the_same_member_twice_is_once() -> None:
    with_account.given((ALICE_STREAM, bob_added)).when(add_bob).then_nothing()


def test_a_member_has_one_role() -> None:
    with_account.given((ALICE_STREAM, bob_added)).when(replace(add_bob, role="admin")).then_refused(
        PartiesReason.MEMBER_EXISTS
    )


def test_a_role_must_be_known() -> None:
    with_account.when(replace(add_bob, role="king")).then_refused(PartiesReason.ROLE_UNKNOWN)


def test_a_removed_member_is_gone_and_may_come_back() -> None:
    remove = RemoveMember(account_id=ALICE, member_id="mem_bob", by="mem_alice", at_us=NOON_US + 1)
    removed = MemberRemoved(
        account_id=ALICE, member_id="mem_bob", by="mem_alice", at_us=NOON_US + 1
    )
    scene = with_account.given((ALICE_STREAM, bob_added))
    scene.when(remove).then((ALICE_STREAM, removed))
    gone = scene.after(remove)
    gone.when(remove).then_refused(PartiesReason.MEMBER_UNKNOWN)
    gone.when(add_bob).then((ALICE_STREAM, bob_added))


def test_removing_a_member_ends_their_keys_and_no_others() -> None:
    bobs = replace(issued, key_id="key_bob1", member_id="mem_bob")
    ended = replace(bobs, key_id="key_bob0")
    scene = with_key.given(
        (ALICE_STREAM, bob_added),
        (ALICE_STREAM, bobs),
        (ALICE_STREAM, ended),
        (ALICE_STREAM, replace(revoked, key_id="key_bob0", effective_at_us=NOON_US)),
    )
    remove = RemoveMember(account_id=ALICE, member_id="mem_bob", by="mem_alice", at_us=NOON_US + 5)
    scene.when(remove).then(
        (
            ALICE_STREAM,
            MemberRemoved(account_id=ALICE, member_id="mem_bob", by="mem_alice", at_us=NOON_US + 5),
        ),
        (ALICE_STREAM, replace(revoked, key_id="key_bob1")),
    )


def test_an_account_keeps_an_owner() -> None:
    remove = RemoveMember(account_id=ALICE, member_id="mem_alice", by="mem_alice", at_us=NOON_US)
    with_account.when(remove).then_refused(PartiesReason.LAST_OWNER)
    second = replace(bob_added, role="owner")
    with_account.given((ALICE_STREAM, second)).when(remove).then(
        (
            ALICE_STREAM,
            MemberRemoved(account_id=ALICE, member_id="mem_alice", by="mem_alice", at_us=NOON_US),
        )
    )


def test_a_key_is_issued_to_a_member() -> None:
    with_account.when(issue).then((ALICE_STREAM, issued))
    with_account.when(replace(issue, member_id="mem_eve")).then_refused(
        PartiesReason.MEMBER_UNKNOWN
    )


def test_the_same_key_twice_is_once() -> None:
    with_key.when(replace(issue, at_us=NOON_US + 9)).then_nothing()


def test_two_keys_never_share_an_id() -> None:
    with_key.when(replace(issue, key_sha256="33" * 32)).then_refused(MoneyReason.DUPLICATE_ID)
    with_key.when(replace(rotate, new_key_id="key00001")).then_refused(MoneyReason.DUPLICATE_ID)


def test_a_scope_must_be_known() -> None:
    with_account.when(replace(issue, scopes=("root",))).then_refused(PartiesReason.SCOPE_UNKNOWN)


@pytest.mark.parametrize("scope", ["operator", "governance", "payout:approve", "client"])
def test_a_party_never_holds_the_operators_scopes(scope: str) -> None:
    with_account.when(replace(issue, scopes=("renter", scope))).then_refused(
        PartiesReason.NOT_PERMITTED
    )


def test_every_kind_of_account_knows_its_scopes() -> None:
    assert set(SCOPES_OF) == set(ACCOUNT_KINDS)
    assert all(allowed <= set(SCOPES) for allowed in SCOPES_OF.values())
    assert [kind for kind in SCOPES_OF if "operator" in SCOPES_OF[kind]] == ["operator"]


def test_a_revoked_key_ends_at_once() -> None:
    with_key.when(revoke).then((ALICE_STREAM, revoked))
    key = account_of(with_key.after(revoke), ALICE).keys["key00001"]
    assert key.is_live(NOON_US + 4)
    assert not key.is_live(NOON_US + 5)


def test_revoking_twice_is_once() -> None:
    with_key.given((ALICE_STREAM, revoked)).when(revoke).then_nothing()


def test_an_unknown_key_is_neither_revoked_nor_rotated() -> None:
    with_account.when(revoke).then_refused(PartiesReason.API_KEY_UNKNOWN)
    with_account.when(rotate).then_refused(PartiesReason.API_KEY_UNKNOWN)


def test_a_rotated_key_stays_valid_for_a_day_beside_its_successor() -> None:
    ends_us = NOON_US + 5 + KEY_OVERLAP_US
    with_key.when(rotate).then(
        (ALICE_STREAM, replace(issued, key_id="key00002", key_sha256="22" * 32, at_us=NOON_US + 5)),
        (ALICE_STREAM, replace(revoked, effective_at_us=ends_us)),
    )
    keys = account_of(with_key.after(rotate), ALICE).keys
    assert all(key.is_live(ends_us - 1) for key in keys.values())
    assert [name for name, key in keys.items() if key.is_live(ends_us)] == ["key00002"]


def test_the_overlap_of_a_rotation_can_be_cut_short() -> None:
    later = replace(revoke, at_us=NOON_US + 6)
    with_key.after(rotate).when(later).then(
        (ALICE_STREAM, replace(revoked, effective_at_us=NOON_US + 6, at_us=NOON_US + 6))
    )


def test_a_key_is_rotated_once_and_not_after_its_end() -> None:
    again = replace(rotate, new_key_id="key00003")
    with_key.after(rotate).when(again).then_refused(PartiesReason.API_KEY_REVOKED)
    expiring = with_account.given((ALICE_STREAM, replace(issued, expires_at_us=NOON_US + 5)))
    expiring.when(rotate).then_refused(PartiesReason.API_KEY_REVOKED)


def test_the_first_wallet_is_paid_at_once() -> None:
    with_account.when(replace(link, address=ADDRESS.upper().replace("0X", "0x"))).then(
        (Stream("wallet", ADDRESS), claimed), (ALICE_STREAM, linked)
    )


def test_linking_the_present_wallet_again_changes_nothing() -> None:
    with_wallet.when(replace(link, at_us=NOON_US + 9, signature="0x02")).then_nothing()


def test_a_changed_wallet_is_paid_after_the_delay() -> None:
    change = replace(link, address=OTHER_ADDRESS)
    state = account_of(with_wallet.after(change), ALICE)
    assert state.wallet_at(NOON_US - 1) is None
    assert state.wallet_at(NOON_US + WALLET_DELAY_US - 1) == ADDRESS
    assert state.wallet_at(NOON_US + WALLET_DELAY_US) == OTHER_ADDRESS


def test_an_account_may_go_back_to_an_address_it_has_claimed() -> None:
    back = with_wallet.after(replace(link, address=OTHER_ADDRESS)).when(link)
    back.then((ALICE_STREAM, replace(linked, effective_at_us=NOON_US + WALLET_DELAY_US)))


def test_an_address_belongs_to_one_account() -> None:
    bob = with_wallet.given((BOB_STREAM, replace(opened, account_id=BOB)))
    bob.when(replace(link, account_id=BOB)).then_refused(PartiesReason.WALLET_TAKEN)
    assert wallet_of(bob, ADDRESS).account_id == ALICE


@pytest.mark.parametrize("address", ["", "0x12", ADDRESS[2:], "0x" + "zz" * 20, ADDRESS + "\n"])
def test_an_address_is_twenty_bytes_in_hex(address: str) -> None:
    with_account.when(replace(link, address=address)).then_refused(PartiesReason.BAD_ADDRESS)


def test_an_unknown_account_is_refused_by_every_command() -> None:
    remove = RemoveMember(account_id=ALICE, member_id="mem_alice", by="x", at_us=NOON_US)
    for command in (add_bob, remove, issue, revoke, rotate, link):
        Scene().when(command).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_every_command_of_an_account_has_a_decision() -> None:
    assert len(account.DECIDERS) == 8


members = st.sampled_from(["mem_alice", "mem_bob", "mem_carl"])
keys = st.sampled_from(["key00001", "key00002", "key00003"])
commands = st.one_of(
    st.builds(
        AddMember,
        account_id=st.just(ALICE),
        member_id=members,
        role=st.sampled_from(ROLES),
        by=st.just("x"),
        at_us=st.just(NOON_US),
    ),
    st.builds(
        RemoveMember,
        account_id=st.just(ALICE),
        member_id=members,
        by=st.just("x"),
        at_us=st.just(NOON_US),
    ),
    st.builds(
        IssueApiKey,
        account_id=st.just(ALICE),
        key_id=keys,
        key_sha256=st.just("11" * 32),
        member_id=members,
        scopes=st.lists(st.sampled_from(SCOPES), max_size=3).map(tuple),
        expires_at_us=st.none(),
        at_us=st.just(NOON_US),
    ),
    st.builds(
        RotateApiKey,
        account_id=st.just(ALICE),
        key_id=keys,
        new_key_id=keys,
        new_key_sha256=st.just("22" * 32),
        expires_at_us=st.none(),
        by=st.just("x"),
        at_us=st.just(NOON_US),
    ),
    st.builds(
        RevokeApiKey,
        account_id=st.just(ALICE),
        key_id=keys,
        by=st.just("x"),
        at_us=st.just(NOON_US),
    ),
)


@given(st.lists(commands, max_size=25))
def test_an_account_always_has_an_owner_and_no_key_outlives_its_member_or_its_kind(
    asked: list[Any],
) -> None:
    state = account_of(with_account, ALICE)
    scene = with_account
    for command in asked:
        try:
            changes = rules.decide(command, scene)
        except Refused:
            continue
        scene = scene.given(*((change.stream, change.fact) for change in changes))
        state = account_of(scene, ALICE)
        assert state.owners
        for key in state.keys.values():
            assert set(key.scopes) <= SCOPES_OF["party"]
            assert key.member_id in state.members or not key.is_live(NOON_US + KEY_OVERLAP_US)
