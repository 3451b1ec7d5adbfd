"""Accounts, their members, API keys, wallets and deposits.

An account is opened by the operator and starts with one owner and one key. A key is shown in the
answer that makes it, also when that answer is asked for again, and kept nowhere.
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
    KeyInPath,
    MemberId,
    MemberInPath,
    Moment,
    Position,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.parties import wallet_challenges
from api.process import secret_files
from domain.account_closing import CloseAccount
from domain.funds.deposit import ConfirmDeposit, deposit_id_of
from domain.funds.reasons import FundsReason
from domain.money import MoneyReason
from domain.parties.account import (
    SCOPES_OF,
    AddMember,
    ApiKey,
    IssueApiKey,
    LinkWallet,
    OpenAccount,
    RemoveMember,
    RevokeApiKey,
    RotateApiKey,
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

resource = Resource("accounts")

Role = Literal["owner", "admin", "billing", "member", "viewer"]
ScopeName = Literal[
    "account",
    "account:admin",
    "provider",
    "renter",
    "client",
    "billing:read",
    "earnings:read",
    "payout:read",
    "payout:approve",
    "operator",
    "governance",
    "audit:read",
    "meter",
    "oracle:write",
]
Scopes = Annotated[list[ScopeName], Field(min_length=1, max_length=14)]

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

    kind: Literal["party", "client", "auditor"] = "party"
    scopes: Scopes | None = None

    model_config = with_examples({"kind": "party"})


class ApiKeyAnswer(AnswerModel):
    """`key` is there only in the answer that makes it."""

    key_id: KeyId
    member_id: MemberId
    scopes: list[ScopeName]
    expires_at: Told_at | None = None
    revoked_at: Told_at | None = None
    key: str | None = None
    position: Position | None = None


class AccountAnswer(AnswerModel):
    account_id: AccountId
    kind: Literal["operator", "party", "client", "auditor"]
    opened_at: Told_at
    closed_at: Told_at | None = None
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
    problems=[PartiesReason.NOT_PERMITTED, PartiesReason.ACCOUNT_EXISTS, MoneyReason.DUPLICATE_ID],
)
def create_account(body: AccountRequest, call: Caller) -> Response:
    """Opens an account with its first owner and a first API key, which is shown once."""
    account_id, member_id = call.id("acct"), call.id("member")
    scopes: Any = tuple(body.scopes or sorted(SCOPES_OF[body.kind]))
    key = new_key(call)

    def commands() -> list[Any]:
        opening = OpenAccount(
            account_id=account_id,
            kind=body.kind,
            opened_by=call.principal.member_id,
            owner_member_id=member_id,
            at_us=call.now_us,
        )
        return [opening, issuing(call, account_id, member_id, key, scopes, None)]

    def told(_after: After) -> AnswerModel:
        return AccountOpenedAnswer(
            account_id=account_id,
            kind=body.kind,
            opened_at=moment(call.now_us),
            member_id=member_id,
            key_id=id_of_key(key),
            scopes=list(scopes),
        )

    return call.record(commands, told, reveal=lambda: {"key": key})


@resource.get("/v1/accounts", READ, page_of(AccountAnswer), problems=["cursor_invalid"])
def list_accounts(call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None) -> Response:
    """Lists accounts in order of opening: your own, or all for operators and auditors."""
    place = call.place(cursor, [0])
    with call.read(ACCESS) as view:
        if call.principal.only is None:
            rows = access.read_accounts(view.connection, after=place.after[0], limit=limit + 1)
        else:
            found = access.read_account(view.connection, call.principal.only)
            rows = [found] if found is not None and found.position > place.after[0] else []
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
            call.service.follow(connection, [LEASES, FLEET, METERS, MONEY_OUT])
            return CloseAccount(
                account_id=account_id,
                lease_ids=tuple(leases.read_unsettled(connection, account_id)),
                node_ids=tuple(fleet.read_unretired(connection, account_id)),
                cash_out_ids=tuple(money_out.read_unfinished(connection, account_id)),
                escrow_ids=tuple(leases.read_filled_escrows(connection, account_id)),
                region_ids=tuple(meters.read_storage_regions(connection, account_id)),
                by=call.principal.member_id,
                at_us=call.now_us,
            )

    def told(after: After) -> AnswerModel:
        closed_us = after.state(account_stream(account_id)).closed_at_us
        assert closed_us is not None, account_id
        return AccountClosedAnswer(account_id=account_id, closed_at=moment(closed_us))

    return call.record(commands, told)


# --- members ---------------------------------------------------------------------------------


class AccountMemberRequest(RequestModel):
    """`member_id` absent: a new one."""

    role: Role
    member_id: MemberId | None = None

    model_config = with_examples({"role": "viewer"})


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
        _existing(view.connection, account_id)
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


@resource.post(
    "/v1/accounts/{account_id}/members",
    ADMIN,
    AccountMemberAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.MEMBER_EXISTS,
    ],
)
def add_member(account_id: AccountInPath, body: AccountMemberRequest, call: Caller) -> Response:
    """Adds a member with a role."""
    member_id = body.member_id or call.id("member")

    def commands() -> AddMember:
        own(call.principal, account_id)
        return AddMember(
            account_id=account_id,
            member_id=member_id,
            role=body.role,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(
        commands, lambda _after: AccountMemberAnswer(member_id=member_id, role=body.role)
    )


@resource.post(
    "/v1/accounts/{account_id}/members/{member_id}/remove",
    ADMIN,
    AccountMemberRemovedAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.MEMBER_UNKNOWN,
        PartiesReason.LAST_OWNER,
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
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda _after: AccountMemberRemovedAnswer(member_id=member_id))


# --- API keys --------------------------------------------------------------------------------


class ApiKeyRequest(RequestModel):
    """`member_id` absent: in the name of the caller."""

    scopes: Scopes
    member_id: MemberId | None = None
    expires_at: Moment | None = None

    model_config = with_examples({"scopes": ["billing:read"], "expires_at": "2030-01-01T00:00:00Z"})


class ApiKeyRotationRequest(RequestModel):
    """`expires_at` of the new key."""

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
        _existing(view.connection, account_id)
        rows = access.read_api_keys(view.connection, account_id)
        return call.answer(view, {"data": [_key_row(row) for row in rows]})


def _key_row(row: access.ApiKey) -> dict[str, Any]:
    scopes: Any = row.scopes
    told = ApiKeyAnswer(
        key_id=row.key_id,
        member_id=row.member_id,
        scopes=scopes,
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
        PartiesReason.NOT_PERMITTED,
        PartiesReason.MEMBER_UNKNOWN,
        MoneyReason.DUPLICATE_ID,
    ],
)
def create_api_key(account_id: AccountInPath, body: ApiKeyRequest, call: Caller) -> Response:
    """Issues an API key, which is shown once."""
    member_id = body.member_id or call.principal.member_id
    key, scopes = new_key(call), tuple(body.scopes)

    def commands() -> IssueApiKey:
        own(call.principal, account_id)
        return issuing(call, account_id, member_id, key, scopes, body.expires_at)

    def told(after: After) -> AnswerModel:
        return _key_told(after, account_id, id_of_key(key))

    return call.record(commands, told, reveal=lambda: {"key": key})


@resource.post(
    "/v1/accounts/{account_id}/api-keys/{key_id}/rotate",
    ADMIN,
    ApiKeyAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.API_KEY_UNKNOWN,
        PartiesReason.API_KEY_REVOKED,
        MoneyReason.DUPLICATE_ID,
    ],
)
def rotate_api_key(
    account_id: AccountInPath, key_id: KeyInPath, body: ApiKeyRotationRequest, call: Caller
) -> Response:
    """Issues a successor of a key, shown once. The old key stays valid for 24 hours."""
    key = new_key(call)

    def commands() -> RotateApiKey:
        own(call.principal, account_id)
        return RotateApiKey(
            account_id=account_id,
            key_id=key_id,
            new_key_id=id_of_key(key),
            new_key_sha256=keys.digest(key),
            expires_at_us=body.expires_at,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        return _key_told(after, account_id, id_of_key(key))

    return call.record(commands, told, reveal=lambda: {"key": key})


@resource.delete(
    "/v1/accounts/{account_id}/api-keys/{key_id}",
    ADMIN,
    ApiKeyAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, PartiesReason.API_KEY_UNKNOWN],
)
def delete_api_key(account_id: AccountInPath, key_id: KeyInPath, call: Caller) -> Response:
    """Revokes a key at once. A second call changes nothing."""

    def commands() -> RevokeApiKey:
        own(call.principal, account_id)
        return RevokeApiKey(
            account_id=account_id, key_id=key_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, lambda after: _key_told(after, account_id, key_id))


def new_key(call: Call) -> str:
    """The same for the same request, so that a lost answer can be asked for again."""
    assert call.key is not None
    random = secret_files.derive(call.service.server_key, "api-key/v1", call.account, call.key)
    return keys.make(random[:38], live=call.service.settings.environment == "production")


def id_of_key(key: str) -> str:
    """The 8 public characters of a key that was just made."""
    key_id = keys.key_id(key)
    assert key_id is not None
    return key_id


def issuing(
    call: Call,
    account_id: str,
    member_id: str,
    key: str,
    scopes: tuple[str, ...],
    expires_at_us: int | None,
) -> IssueApiKey:
    """The command that issues this key."""
    return IssueApiKey(
        account_id=account_id,
        key_id=id_of_key(key),
        key_sha256=keys.digest(key),
        member_id=member_id,
        scopes=scopes,
        expires_at_us=expires_at_us,
        at_us=call.now_us,
    )


def _key_told(after: After, account_id: str, key_id: str) -> ApiKeyAnswer:
    state = after.state(account_stream(account_id))
    key: ApiKey = state.keys[key_id]
    scopes: Any = list(key.scopes)
    return ApiKeyAnswer(
        key_id=key_id,
        member_id=key.member_id,
        scopes=scopes,
        expires_at=moment_or_none(key.expires_at_us),
        revoked_at=moment_or_none(key.revoked_at_us),
    )


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
    """Paid from `effective_at` on: the first wallet at once, a changed one after 72 hours."""

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
        _existing(view.connection, account_id)
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
    reference: Short

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

    return call.record(commands, told)


@resource.get(
    "/v1/accounts/{account_id}/deposits",
    with_scope("account", "billing:read", "operator"),
    page_of(DepositAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_deposits(
    account_id: AccountInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists confirmed deposits, and credits bought by burning tokens, in order."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0])
    with call.read(ACCESS, STATEMENTS) as view:
        _existing(view.connection, account_id)
        rows = statements.read_deposits(
            view.connection, account_id=account_id, after=place.after[0], limit=limit + 1
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


def _existing(connection: Any, account_id: str) -> None:
    if access.read_account(connection, account_id) is None:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
