"""Accounts, their wallets and deposits.

An account is opened by the operator and starts with one owner and one key. More members come by
invitation (`members`), and more keys from the keys they have (`api_keys`).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door import keys
from api.door.amounts import Money, credits_, tokens_or_none
from api.door.auth import Principal, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    Address,
    AnswerModel,
    EmptyRequest,
    KeyId,
    MemberId,
    Position,
    Reference,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.door.second_person import checked
from api.parties import wallet_challenges
from api.parties.new_keys import ScopeName, Scopes, id_of_key, new_key
from domain.account_closing import CloseAccount
from domain.funds.deposit import ConfirmDeposit, deposit_id_of
from domain.funds.reasons import FundsReason
from domain.parties.account import (
    SCOPES_OF,
    SIGN_UP,
    FirstKey,
    LinkWallet,
    OpenAccount,
    account_stream,
)
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.income import money_out, statements
from projections.income.money_out import MONEY_OUT
from projections.income.statements import STATEMENTS
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.metering import meters
from projections.metering.meters import METERS
from projections.parties import access
from projections.parties.access import ACCESS
from projections.storage import volumes
from projections.storage.volumes import VOLUMES

resource = Resource("accounts")

AccountKind = Literal["party", "client", "auditor"]
"""What the operator opens; a market has one operator's account."""
READ = with_scope("account", "audit:read", "operator")
ADMIN = with_scope("account:admin")


def visible(principal: Principal, account_id: str) -> None:
    """Raises Refused: ACCOUNT_UNKNOWN, for another party's account as for none at all."""
    if not principal.may_see(account_id):
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)


def own(principal: Principal, account_id: str) -> None:
    """Raises Refused: ACCOUNT_UNKNOWN."""
    if not principal.owns(account_id):
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)


# --- accounts --------------------------------------------------------------------------------


class AccountRequest(RequestModel):
    """`scopes` of the first key; absent: everything the kind of account may do."""

    kind: AccountKind = "party"
    scopes: Scopes | None = None

    model_config = with_examples({"kind": "party"})


class AccountAnswer(AnswerModel):
    """`unverified`: it signed itself up, and the operator has not verified it."""

    account_id: AccountId
    kind: Literal["operator", "party", "client", "auditor"]
    opened_at: Told_at
    closed_at: Told_at | None = None
    unverified: bool | None = None
    position: Position | None = None


class AccountClosedAnswer(AnswerModel):
    """A second call changes nothing and answers with the time of the first one."""

    account_id: AccountId
    closed_at: Told_at
    position: Position | None = None


class AccountOpenedAnswer(AccountAnswer):
    member_id: MemberId
    key_id: KeyId
    scopes: list[ScopeName]
    key: str | None = None


@resource.post(
    "/v1/accounts",
    with_scope("operator"),
    AccountOpenedAnswer,
    status=201,
    problems=[PartiesReason.NOT_PERMITTED, PartiesReason.ACCOUNT_EXISTS],
)
def create_account(body: AccountRequest, call: Caller) -> Response:
    """Opens an account with its first owner and a first API key, which is shown once."""
    return opening(call, body.kind, call.principal.member_id, body.scopes)


def opening(
    call: Call, kind: AccountKind, opened_by: str, scopes_asked: list[ScopeName] | None = None
) -> Response:
    """An account, its owner and its first key, which is shown once."""
    account_id, member_id, key = call.id("acct"), call.id("member"), new_key(call)
    scopes: Any = tuple(scopes_asked or sorted(SCOPES_OF[kind]))

    def commands() -> OpenAccount:
        return OpenAccount(
            account_id=account_id,
            kind=kind,
            opened_by=opened_by,
            owner_member_id=member_id,
            first_key=FirstKey(key_id=id_of_key(key), key_sha256=keys.digest(key), scopes=scopes),
            at_us=call.now_us,
        )

    def told(_after: After) -> AnswerModel:
        return AccountOpenedAnswer(
            account_id=account_id,
            kind=kind,
            opened_at=moment(call.now_us),
            unverified=opened_by == SIGN_UP or None,
            member_id=member_id,
            key_id=id_of_key(key),
            scopes=list(scopes),
        )

    return call.record(commands, told, reveal=lambda: {"key": key})


@resource.get("/v1/accounts", READ, page_of(AccountAnswer), problems=["cursor_invalid"])
def list_accounts(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists accounts in order of opening: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(ACCESS) as view:
        rows = access.read_accounts(
            view.connection,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _account)


@resource.get(
    "/v1/accounts/{account_id}", READ, AccountAnswer, problems=[PartiesReason.ACCOUNT_UNKNOWN]
)
def read_account(account_id: AccountInPath, call: Caller) -> Response:
    """Returns an account."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        found = access.read_account(view.connection, account_id)
        if found is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        return call.answer(view, _account(found))


def _account(row: access.Account) -> AccountAnswer:
    kind: Any = row.kind
    return AccountAnswer(
        account_id=row.account_id,
        kind=kind,
        opened_at=moment(row.at_us),
        closed_at=moment_or_none(row.closed_at_us),
        unverified=row.is_unverified or None,
    )


@resource.post(
    "/v1/accounts/{account_id}/close",
    with_scope("account:admin", "operator"),
    AccountClosedAnswer,
    problems=[
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_NOT_EMPTY,
    ],
)
def close_account(account_id: AccountInPath, body: EmptyRequest, call: Caller) -> Response:
    """Closes an account. Its leases must be settled, its nodes retired and its books empty.

    All keys of the account end, the caller's own key too; nothing new can begin for it.
    """
    del body

    def commands() -> CloseAccount:
        if not call.principal.is_operator:
            own(call.principal, account_id)
        with call.service.connection() as connection:
            call.service.follow(connection, [LEASES, FLEET, METERS, MONEY_OUT, VOLUMES])
            return CloseAccount(
                account_id=account_id,
                lease_ids=tuple(leases.read_unsettled(connection, account_id)),
                node_ids=tuple(fleet.read_unretired(connection, account_id)),
                cash_out_ids=tuple(money_out.read_unfinished(connection, account_id)),
                escrow_ids=tuple(leases.read_filled_escrows(connection, account_id)),
                region_ids=tuple(meters.read_storage_regions(connection, account_id)),
                meters=tuple(meters.read_open_holds(connection, account_id)),
                volume_ids=tuple(volumes.read_kept(connection, account_id)),
                by=call.principal.member_id,
                at_us=call.now_us,
            )

    def told(after: After) -> AnswerModel:
        closed_us = after.state(account_stream(account_id)).closed_at_us
        assert closed_us is not None, account_id
        return AccountClosedAnswer(account_id=account_id, closed_at=moment(closed_us))

    return call.record(commands, told)


# --- wallets ---------------------------------------------------------------------------------


class WalletChallengeRequest(RequestModel):
    address: Address

    model_config = with_examples({"address": "0x" + "7e" * 20})


class WalletChallengeAnswer(AnswerModel):
    """Sign `message` exactly as it is (EIP-191), and send the signature with `nonce`."""

    nonce: str
    message: str
    expires_at: Told_at
    position: Position | None = None


class WalletProofRequest(RequestModel):
    nonce: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{22}$")]
    signature: Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{130}$")]

    model_config = with_examples({"nonce": "0" * 22, "signature": "0x" + "00" * 65})


class WalletAnswer(AnswerModel):
    """Paid from `effective_at` on: 72 hours after it was linked."""

    address: Address
    effective_at: Told_at
    linked_at: Told_at | None = None
    position: Position | None = None


class WalletsAnswer(AnswerModel):
    """In the order of linking; `paid` is the one that is paid now."""

    data: list[WalletAnswer]
    paid: Address | None = None
    position: Position


@resource.post(
    "/v1/accounts/{account_id}/wallets/challenge",
    ADMIN,
    WalletChallengeAnswer,
    status=201,
    records=False,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def create_wallet_challenge(
    account_id: AccountInPath, body: WalletChallengeRequest, call: Caller
) -> Response:
    """Returns a text (EIP-4361) for the wallet to sign. It is valid for ten minutes and one use."""
    own(call.principal, account_id)
    with call.read() as view:
        made = wallet_challenges.make(
            call.service, view.connection, account_id, body.address, call.now_us
        )
        told = WalletChallengeAnswer(
            nonce=made.nonce, message=made.message, expires_at=moment(made.expires_at_us)
        )
        return call.answer(view, told)


@resource.post(
    "/v1/accounts/{account_id}/wallets",
    ADMIN,
    WalletAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.WALLET_TAKEN,
        PartiesReason.BAD_ADDRESS,
        "challenge_unknown",
        "signature_invalid",
    ],
)
def link_wallet(account_id: AccountInPath, body: WalletProofRequest, call: Caller) -> Response:
    """Links the wallet that signed the challenge. Rewards are paid to this wallet."""

    @cache
    def proven() -> tuple[str, str]:
        """Once: the challenge is used up, even if the log has to be asked again."""
        return wallet_challenges.prove(
            call.service, account_id, body.nonce, body.signature, call.now_us
        )

    def commands() -> LinkWallet:
        own(call.principal, account_id)
        address, message = proven()
        return LinkWallet(
            account_id=account_id,
            address=address,
            message=message,
            signature=body.signature,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        state = after.state(account_stream(account_id))
        wallet = next(w for w in reversed(state.wallets) if w.address == proven()[0])
        return WalletAnswer(address=wallet.address, effective_at=moment(wallet.effective_at_us))

    return call.record(commands, told)


@resource.get(
    "/v1/accounts/{account_id}/wallets",
    READ,
    WalletsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def list_wallets(account_id: AccountInPath, call: Caller) -> Response:
    """Lists the wallets of an account and shows which one is paid now."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        existing(view.connection, account_id)
        rows = access.read_wallets(view.connection, account_id)
        told: dict[str, Any] = {"data": [_wallet(row) for row in rows]}
        paid = [row.address for row in rows if row.effective_at_us <= call.now_us]
        if paid:
            told["paid"] = paid[-1]
        return call.answer(view, told)


def _wallet(row: access.Wallet) -> dict[str, Any]:
    told = WalletAnswer(
        address=row.address, effective_at=moment(row.effective_at_us), linked_at=moment(row.at_us)
    )
    return told.model_dump(exclude_none=True)


# --- deposits --------------------------------------------------------------------------------


class DepositRequest(RequestModel):
    """Money that arrived outside. `reference` is the payment's own number: it counts once."""

    source: Literal["cash", "card"]
    amount: Money
    reference: Reference

    model_config = with_examples(
        {
            "source": "cash",
            "amount": {"asset": "CREDIT", "units": "25000000"},
            "reference": "bank transfer 2026-11-20/17",
        }
    )


class DepositAnswer(AnswerModel):
    deposit_id: Short
    source: Literal["cash", "card", "burned"]
    amount: Money
    reference: Short
    tokens_burned: Money | None = None
    confirmed_at: Told_at | None = None
    position: Position | None = None


@resource.post(
    "/v1/accounts/{account_id}/deposits",
    with_scope("operator"),
    DepositAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.DEPOSIT_EXISTS,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ],
    checked=True,
)
def create_deposit(account_id: AccountInPath, body: DepositRequest, call: Caller) -> Response:
    """Confirms money that arrived. Each payment is confirmed once."""
    deposit_id = deposit_id_of(body.source, body.reference)

    def commands() -> ConfirmDeposit:
        return ConfirmDeposit(
            deposit_id=deposit_id,
            account_id=account_id,
            source=body.source,
            amount=body.amount.amount(),
            reference=body.reference,
            confirmed_by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(_after: After) -> AnswerModel:
        return DepositAnswer(
            deposit_id=deposit_id, source=body.source, amount=body.amount, reference=body.reference
        )

    return call.record(lambda: checked(call, commands()), told)


@resource.get(
    "/v1/accounts/{account_id}/deposits",
    with_scope("account", "billing:read", "operator"),
    page_of(DepositAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_deposits(
    account_id: AccountInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists confirmed deposits, and credits bought by burning tokens, in order."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0], order)
    with call.read(ACCESS, STATEMENTS) as view:
        existing(view.connection, account_id)
        rows = statements.read_deposits(
            view.connection,
            account_id=account_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _deposit)


def _deposit(row: statements.Deposit) -> DepositAnswer:
    source: Any = row.source
    return DepositAnswer(
        deposit_id=row.deposit_id,
        source=source,
        amount=credits_(row.units),
        reference=row.reference,
        tokens_burned=tokens_or_none(row.tokens_burned),
        confirmed_at=moment(row.at_us),
        position=row.position,
    )


def existing(connection: Any, account_id: str) -> None:
    """Raises Refused: ACCOUNT_UNKNOWN."""
    if access.read_account(connection, account_id) is None:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
