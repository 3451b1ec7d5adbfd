"""Who may act: opening, roles and wallets, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import DAY_US
from domain.parties import account
from domain.parties.account import (
    ACCOUNT_KINDS,
    OPERATOR_STREAM,
    ROLES,
    SCOPES,
    SCOPES_OF,
    SCOPES_OF_ROLE,
    WALLET_DELAY_US,
    AccountOpened,
    ApiKeyIssued,
    BootstrapOperator,
    FirstKey,
    LinkWallet,
    MemberAdded,
    OpenAccount,
    OperatorBootstrapped,
    WalletClaimed,
    WalletLinked,
    account_of,
    effective_scopes,
    operator_of,
    wallet_of,
)
from domain.parties.reasons import PartiesReason
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
first_key = FirstKey(key_id="key00001", key_sha256="11" * 32, scopes=("renter", "billing:read"))
issued = ApiKeyIssued(
    account_id=ALICE,
    key_id="key00001",
    key_sha256="11" * 32,
    member_id="mem_alice",
    scopes=("renter", "billing:read"),
    expires_at_us=None,
    by_key_id=None,
    succeeds=None,
    at_us=NOON_US,
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
    effective_at_us=NOON_US + WALLET_DELAY_US,
    at_us=NOON_US,
)

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
        (
            OPERATOR_STREAM,
            OperatorBootstrapped(account_id="acct_ops", environment="production", at_us=NOON_US),
        ),
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
                by_key_id=None,
                succeeds=None,
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


def test_an_account_opens_with_a_first_key_of_its_owner() -> None:
    Scene().when(replace(open_alice, first_key=first_key)).then(
        (ALICE_STREAM, opened), (ALICE_STREAM, owned), (ALICE_STREAM, issued)
    )


@pytest.mark.parametrize("scope", ["operator", "payout:approve", "client"])
def test_a_party_never_holds_the_operators_scopes(scope: str) -> None:
    first = replace(first_key, scopes=("renter", scope))
    Scene().when(replace(open_alice, first_key=first)).then_refused(PartiesReason.NOT_PERMITTED)


def test_a_scope_of_a_first_key_must_be_known() -> None:
    first = replace(first_key, scopes=("root",))
    Scene().when(replace(open_alice, first_key=first)).then_refused(PartiesReason.SCOPE_UNKNOWN)


def test_every_kind_of_account_knows_its_scopes() -> None:
    assert set(SCOPES_OF) == set(ACCOUNT_KINDS)
    assert all(allowed <= set(SCOPES) for allowed in SCOPES_OF.values())
    assert [kind for kind in SCOPES_OF if "operator" in SCOPES_OF[kind]] == ["operator"]


def test_every_role_has_its_scopes_and_an_owner_has_all() -> None:
    """The table of roles: who is below may do less, and only owners and billing pay out."""
    assert set(SCOPES_OF_ROLE) == set(ROLES)
    table = SCOPES_OF_ROLE
    assert table["owner"] == frozenset(SCOPES)
    assert table["viewer"] < table["member"] < table["admin"] < table["owner"]
    administrators = [role for role in ROLES if "account:admin" in table[role]]
    assert administrators == ["owner", "admin"]
    assert [role for role in ROLES if "payout:approve" in table[role]] == ["owner", "billing"]
    assert [role for role in ROLES if "operator" in table[role]] == ["owner", "admin", "member"]
    assert all(scope == "account" or scope.endswith(":read") for scope in table["viewer"])


scope_sets = st.frozensets(st.sampled_from(SCOPES))


@given(st.sampled_from(ACCOUNT_KINDS), st.sampled_from(ROLES), scope_sets)
def test_a_role_only_narrows_and_never_widens_a_key(
    kind: str, role: str, scopes: frozenset[str]
) -> None:
    effective = effective_scopes(kind, role, scopes)
    assert effective == scopes & SCOPES_OF[kind] & SCOPES_OF_ROLE[role]
    assert effective <= effective_scopes(kind, "owner", scopes) <= scopes


def test_the_first_wallet_waits_as_later_ones_do() -> None:
    """The attack: a stolen key links a wallet where there was none, and is paid at once."""
    with_account.when(replace(link, address=ADDRESS.upper().replace("0X", "0x"))).then(
        (Stream("wallet", ADDRESS), claimed), (ALICE_STREAM, linked)
    )


def test_linking_the_present_wallet_again_changes_nothing() -> None:
    with_wallet.when(replace(link, at_us=NOON_US + 9, signature="0x02")).then_nothing()


def test_a_changed_wallet_is_paid_after_the_delay() -> None:
    change = replace(link, address=OTHER_ADDRESS, at_us=NOON_US + DAY_US)
    state = account_of(with_wallet.after(change), ALICE)
    assert state.wallet_at(NOON_US + WALLET_DELAY_US - 1) is None
    assert state.wallet_at(NOON_US + WALLET_DELAY_US) == ADDRESS
    assert state.wallet_at(NOON_US + DAY_US + WALLET_DELAY_US - 1) == ADDRESS
    assert state.wallet_at(NOON_US + DAY_US + WALLET_DELAY_US) == OTHER_ADDRESS


def test_an_account_may_go_back_to_an_address_it_has_claimed() -> None:
    back = with_wallet.after(replace(link, address=OTHER_ADDRESS)).when(link)
    back.then((ALICE_STREAM, linked))


def test_an_address_belongs_to_one_account() -> None:
    bob = with_wallet.given((BOB_STREAM, replace(opened, account_id=BOB)))
    bob.when(replace(link, account_id=BOB)).then_refused(PartiesReason.WALLET_TAKEN)
    assert wallet_of(bob, ADDRESS).account_id == ALICE


@pytest.mark.parametrize("address", ["", "0x12", ADDRESS[2:], "0x" + "zz" * 20, ADDRESS + "\n"])
def test_an_address_is_twenty_bytes_in_hex(address: str) -> None:
    with_account.when(replace(link, address=address)).then_refused(PartiesReason.BAD_ADDRESS)


def test_a_wallet_needs_an_account() -> None:
    Scene().when(link).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_every_command_of_an_account_has_a_decision() -> None:
    assert len(account.DECIDERS) == 3
