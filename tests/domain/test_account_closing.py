"""Closing an account: only what is finished and empty is closed, and then nothing new begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.account_closing import PARTS, CloseAccount, books_of
from domain.duration import DAY_US
from domain.fleet.provider import RegisterProvider
from domain.funds.deposit import ConfirmCreditsPurchase, ConfirmDeposit, DepositConfirmed
from domain.income.cash_out import CancelCashOut, RequestCashOut
from domain.income.maturity import SetPaymentMode
from domain.money import credit, token
from domain.parties.account import (
    SCOPES,
    AccountClosed,
    AccountOpened,
    ApiKeyIssued,
    ApiKeyRevoked,
    LinkWallet,
    MemberAdded,
    account_of,
)
from domain.parties.api_key import IssueApiKey, RevokeApiKey, RotateApiKey
from domain.parties.member import ChangeRole, InviteMember, RedeemInvitation, RemoveMember
from domain.parties.reasons import PartiesReason
from domain.sites.edge_device import ChargeDeviceFee, EdgeDeviceAdded, RemoveEdgeDevice
from domain.sites.edge_device import stream_of as edge_devices
from domain.stream import Stream
from ledger.books.chart import kind_of
from tests.domain.scenes import market
from tests.given import Scene

WHO = market.RENTER
STREAM = Stream("account", WHO)
AT_US = market.NOON_US + market.HOUR_US
close = CloseAccount(account_id=WHO, lease_ids=(), node_ids=(), by="mem_a", at_us=AT_US)
closed = AccountClosed(account_id=WHO, by="mem_a", at_us=AT_US)
empty = market.scene({})
issued = ApiKeyIssued(
    account_id=WHO,
    key_id="key_1",
    key_sha256="11" * 32,
    member_id="mem_a",
    scopes=("renter",),
    expires_at_us=None,
    by_key_id=None,
    succeeds=None,
    at_us=market.NOON_US,
)
with_member = empty.given(
    (STREAM, MemberAdded(account_id=WHO, member_id="mem_a", role="owner", by="op", at_us=1)),
    (STREAM, issued),
)


def test_an_empty_account_is_closed_and_twice_is_once() -> None:
    empty.when(close).then((STREAM, closed))
    empty.after(close).when(replace(close, at_us=AT_US + 1)).then_nothing()


def test_an_account_nobody_opened_is_not_closed() -> None:
    Scene().when(close).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_the_operators_account_stays_open() -> None:
    """There is one, and it is opened once."""
    opened = AccountOpened(account_id=WHO, kind="operator", opened_by="mem_a", at_us=1)
    Scene().given((STREAM, opened)).when(close).then_refused(PartiesReason.NOT_PERMITTED)


@pytest.mark.parametrize("who", [market.RENTER, market.OWNER])
def test_an_account_is_not_closed_while_a_lease_of_it_is_not_settled(who: str) -> None:
    asked = replace(close, account_id=who, lease_ids=(market.LEASE,))
    running = market.opened().having({f"party:{market.RENTER}:cash": 0})
    running.when(asked).then_refused(
        PartiesReason.ACCOUNT_NOT_EMPTY, lease_id="lease_11111111", status="active"
    )
    ended = running.after(market.close(market.HOUR_US))
    ended.when(asked).then_refused(
        PartiesReason.ACCOUNT_NOT_EMPTY, lease_id="lease_11111111", status="closing"
    )
    rows = (market.usage(0, market.HOUR_US),)
    settled = ended.after(market.settle(market.HOUR_US, rows))
    settled.when(asked).then((Stream("account", who), replace(closed, account_id=who)))


def test_an_account_is_not_closed_while_a_node_of_it_is_there() -> None:
    asked = replace(close, account_id=market.OWNER, node_ids=(market.NODE,))
    empty.when(asked).then_refused(
        PartiesReason.ACCOUNT_NOT_EMPTY, node_id="node_aaaaaaaa", phase="active"
    )


def test_an_account_is_not_closed_while_an_edge_device_of_it_is_not_charged_to_its_end() -> None:
    added = EdgeDeviceAdded(
        device_id="edge_1",
        account_id=WHO,
        region_id="region_a",
        name="gate-1",
        minion_id="minion-1",
        model="jetson-orin-nano",
        first_day="2026-11-20",
        by="mem_a",
        at_us=AT_US,
    )
    scene = empty.given((edge_devices(WHO), added))
    scene.when(close).then_refused(PartiesReason.ACCOUNT_NOT_EMPTY, edge_devices=1)
    removed = scene.after(
        RemoveEdgeDevice(device_id="edge_1", account_id=WHO, by="mem_a", at_us=AT_US)
    )
    removed.when(close).then_refused(PartiesReason.ACCOUNT_NOT_EMPTY, edge_devices=1)
    charged = removed.after(ChargeDeviceFee(account_id=WHO, at_us=AT_US + DAY_US))
    charged.when(close).then((STREAM, closed))


@pytest.mark.parametrize("part", PARTS)
def test_an_account_is_not_closed_while_its_books_hold_anything(part: str) -> None:
    empty.having({f"party:{WHO}:{part}": 1}).when(close).then_refused(
        PartiesReason.ACCOUNT_NOT_EMPTY, book=..., units=1
    )


def test_an_account_with_a_cash_out_on_its_way_is_not_closed() -> None:
    mode = SetPaymentMode(
        account_id=WHO, mode="cash", billing_account_id=WHO, destination="x", by="m", at_us=1
    )
    ask = RequestCashOut(cash_out_id="c", account_id=WHO, amount=None, by="m", at_us=AT_US)
    rich = empty.having({f"party:{WHO}:earned": 10**9, "world:bank": 10**9}).after(mode)
    asked = rich.after(ask).having({f"party:{WHO}:earned": 0})
    on_its_way = replace(close, cash_out_ids=("c",))
    asked.when(on_its_way).then_refused(
        PartiesReason.ACCOUNT_NOT_EMPTY, cash_out_id="c", status="requested"
    )
    back = asked.after(CancelCashOut(cash_out_id="c", by="m", at_us=AT_US))
    back.when(on_its_way).then((STREAM, closed))


def test_every_book_of_a_party_is_one_of_the_chart() -> None:
    assert all(kind_of(book) for book in books_of(WHO))


def test_a_closed_accounts_keys_are_dead_and_those_dead_before_died_before() -> None:
    dead = ApiKeyRevoked(
        account_id=WHO, key_id="key_0", effective_at_us=AT_US - 9, by="mem_a", at_us=AT_US - 9
    )
    fading = replace(dead, key_id="key_2", effective_at_us=AT_US + 9)
    scene = with_member.given(
        (STREAM, replace(issued, key_id="key_0")),
        (STREAM, dead),
        (STREAM, replace(issued, key_id="key_2")),
        (STREAM, fading),
    )
    keys = account_of(scene.after(close), WHO).keys
    ends = {key_id: key.revoked_at_us for key_id, key in keys.items()}
    assert ends == {"key_0": AT_US - 9, "key_1": AT_US, "key_2": AT_US}
    assert not any(key.is_live(AT_US) for key in keys.values())


DEPOSIT = ConfirmDeposit(
    deposit_id="dep_1",
    account_id=WHO,
    source="cash",
    amount=credit(5),
    reference="r",
    confirmed_by="op",
    at_us=AT_US,
)
NEW: list[Any] = [
    DEPOSIT,
    market.job(),
    RegisterProvider(
        provider_id="prov_b", account_id=WHO, kind="physical", payment_mode="credits", at_us=AT_US
    ),
    InviteMember(
        account_id=WHO,
        invitation_id="invitation_1",
        code_sha256="c0" * 32,
        member_id="mem_b",
        role="viewer",
        scopes=("account",),
        key_expires_at_us=None,
        expires_at_us=AT_US + 1,
        by_key_id="key_1",
        at_us=AT_US,
    ),
    RedeemInvitation(
        account_id=WHO,
        code_sha256="c0" * 32,
        key_id="key_9",
        key_sha256="99" * 32,
        by_key_id=None,
        at_us=AT_US,
    ),
    ChangeRole(account_id=WHO, member_id="mem_a", role="viewer", by_key_id="key_1", at_us=AT_US),
    RemoveMember(account_id=WHO, member_id="mem_a", by_key_id="key_1", at_us=AT_US),
    IssueApiKey(
        account_id=WHO,
        key_id="key_9",
        key_sha256="99" * 32,
        scopes=SCOPES[:1],
        expires_at_us=None,
        by_key_id="key_1",
        at_us=AT_US,
    ),
    RotateApiKey(
        account_id=WHO,
        key_id="key_1",
        new_key_id="key_9",
        new_key_sha256="99" * 32,
        expires_at_us=None,
        by_key_id="key_1",
        at_us=AT_US,
    ),
    LinkWallet(
        account_id=WHO, address="0x" + "ab" * 20, message="m", signature="0x01", at_us=AT_US
    ),
]


@pytest.mark.parametrize("command", NEW, ids=lambda command: type(command).__name__)
def test_nothing_new_begins_for_a_closed_account(command: Any) -> None:
    with_member.after(close).when(command).then_refused(PartiesReason.ACCOUNT_CLOSED)


def test_no_lease_is_opened_for_a_job_of_a_closed_account() -> None:
    scene = empty.after(market.job()).after(close)
    scene.when(market.request()).then_refused(PartiesReason.ACCOUNT_CLOSED)


def test_what_was_done_before_the_closing_may_be_repeated_and_gives_nothing() -> None:
    deposited = with_member.after(DEPOSIT).after(market.job()).after(close)
    assert any(isinstance(fact, DepositConfirmed) for _, fact in deposited.past)
    deposited.when(DEPOSIT).then_nothing()
    deposited.when(market.job()).then_nothing()
    ended = RevokeApiKey(
        account_id=WHO, key_id="key_1", by_key_id="key_1", by_account_id=WHO, at_us=AT_US + 1
    )
    deposited.when(ended).then_nothing()
    other = replace(DEPOSIT, amount=credit(6))
    deposited.when(other).then_refused(PartiesReason.ACCOUNT_CLOSED)


def test_credits_bought_for_a_closed_account_wait_in_suspense() -> None:
    bought = ConfirmCreditsPurchase(
        burner="0xb",
        purchase_id=1,
        account_id=WHO,
        payer="0x1",
        tokens_burned=token(7),
        credits=credit(7),
        price_round=1,
        tx_hash="0x2",
        log_index=0,
        block_number=1,
        at_us=AT_US,
    )
    (change,) = empty.after(close).when(bought).changes()
    assert change.fact.account_id is None
