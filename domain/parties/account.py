"""Accounts: who may act, with which key, for whose money. Balances are not here but in the books.

An account has members with roles and API keys with scopes. No name, address or e-mail enters the
log: facts carry random ids, and names stay in an erasable table.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOpened:
    account_id: str
    kind: str  # "operator" (one), "party" (renters and providers alike), "client", "auditor"
    opened_by: str  # member or key id of whoever asked
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAdded:
    account_id: str
    member_id: str
    role: str  # ROLES
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRemoved:
    account_id: str
    member_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyIssued:
    account_id: str
    key_id: str  # the 8 public characters of the key
    key_sha256: str  # hex; the key itself is shown once and kept nowhere
    member_id: str
    scopes: tuple[str, ...]
    expires_at_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRevoked:
    account_id: str
    key_id: str
    effective_at_us: int  # a rotated key stays valid for 24 h beside its successor
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletLinked:
    account_id: str
    address: str  # lower-case 0x and 40 hex digits
    message: str  # the EIP-4361 text the wallet signed
    signature: str
    effective_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletClaimed:
    """Stream `wallet:{address}`: an address belongs to one account for ever."""

    address: str
    account_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorBootstrapped:
    """Stream `operator:first`: there is one operator account, opened once."""

    account_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountClosed:
    """Every key of the account ends with it, and nothing new begins for it."""

    account_id: str
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccount:
    account_id: str
    kind: str  # any of ACCOUNT_KINDS but "operator"
    opened_by: str
    owner_member_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapOperator:
    account_id: str
    member_id: str
    key_id: str
    key_sha256: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMember:
    account_id: str
    member_id: str
    role: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember:
    account_id: str
    member_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueApiKey:
    account_id: str
    key_id: str
    key_sha256: str
    member_id: str
    scopes: tuple[str, ...]
    expires_at_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeApiKey:
    account_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateApiKey:
    account_id: str
    key_id: str
    new_key_id: str
    new_key_sha256: str
    expires_at_us: int | None  # of the new key; member and scopes stay the same
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkWallet:
    """The signature over `message` was checked before; here the address finds its account."""

    account_id: str
    address: str
    message: str
    signature: str
    at_us: int


# Who may hold which scope.

ACCOUNT_KINDS = ("operator", "party", "client", "auditor")

ROLES = ("owner", "admin", "billing", "member", "viewer")

SCOPES = (
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
)

SCOPES_OF: dict[str, frozenset[str]] = {
    "operator": frozenset(SCOPES),
    "party": frozenset(SCOPES)
    - {"client", "payout:approve", "operator", "governance", "oracle:write"},
    "client": frozenset({"account", "account:admin", "client", "billing:read", "meter"}),
    "auditor": frozenset({"account", "billing:read", "earnings:read", "payout:read", "audit:read"}),
}
"""What a key may be allowed to do, by the kind of its account."""

KEY_OVERLAP_US = 24 * 3_600_000_000
"""How long a rotated key stays valid beside its successor."""

WALLET_DELAY_US = 72 * 3_600_000_000
"""A changed payout wallet waits this long, so that its owner can notice a theft."""

# State.


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    key_id: str
    key_sha256: str
    member_id: str
    scopes: tuple[str, ...]
    expires_at_us: int | None
    revoked_at_us: int | None = None  # when the revocation takes effect

    def is_live(self, at_us: int) -> bool:
        """Whether the key still opens anything at this moment."""
        ends = (self.expires_at_us, self.revoked_at_us)
        return all(end is None or at_us < end for end in ends)

    def ended(self, at_us: int) -> ApiKey:
        """The key, revoked at this moment if it was not before."""
        revoked_at_us = at_us if self.revoked_at_us is None else min(self.revoked_at_us, at_us)
        return replace(self, revoked_at_us=revoked_at_us)


@dataclass(frozen=True, slots=True)
class Wallet:
    address: str
    effective_at_us: int


@dataclass(frozen=True, slots=True)
class AccountState:
    kind: str = ""
    members: dict[str, str] = field(default_factory=dict)  # member id -> role
    keys: dict[str, ApiKey] = field(default_factory=dict)  # key id -> key
    wallets: tuple[Wallet, ...] = ()  # in the order they were linked
    closed_at_us: int | None = None

    @property
    def exists(self) -> bool:
        return self.kind != ""

    @property
    def is_closed(self) -> bool:
        return self.closed_at_us is not None

    @property
    def is_open(self) -> bool:
        return self.exists and not self.is_closed

    @property
    def owners(self) -> list[str]:
        return sorted(member_id for member_id, role in self.members.items() if role == "owner")

    def wallet_at(self, at_us: int) -> str | None:
        """The address that is paid at this moment: the last one whose delay has passed."""
        effective = [wallet for wallet in self.wallets if wallet.effective_at_us <= at_us]
        return effective[-1].address if effective else None


@dataclass(frozen=True, slots=True)
class WalletState:
    account_id: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorState:
    account_id: str | None = None


AccountFact: TypeAlias = (
    AccountOpened
    | MemberAdded
    | MemberRemoved
    | ApiKeyIssued
    | ApiKeyRevoked
    | WalletLinked
    | AccountClosed
)


def evolve(state: AccountState, fact: AccountFact) -> AccountState:
    match fact:
        case AccountOpened():
            return replace(state, kind=fact.kind)
        case MemberAdded():
            return replace(state, members={**state.members, fact.member_id: fact.role})
        case MemberRemoved():
            left = {who: role for who, role in state.members.items() if who != fact.member_id}
            return replace(state, members=left)
        case ApiKeyIssued():
            key = ApiKey(
                key_id=fact.key_id,
                key_sha256=fact.key_sha256,
                member_id=fact.member_id,
                scopes=fact.scopes,
                expires_at_us=fact.expires_at_us,
            )
            return replace(state, keys={**state.keys, fact.key_id: key})
        case ApiKeyRevoked():
            key = replace(state.keys[fact.key_id], revoked_at_us=fact.effective_at_us)
            return replace(state, keys={**state.keys, fact.key_id: key})
        case WalletLinked():
            linked = Wallet(fact.address, fact.effective_at_us)
            return replace(state, wallets=(*state.wallets, linked))
        case AccountClosed():
            ended = {key_id: key.ended(fact.at_us) for key_id, key in state.keys.items()}
            return replace(state, keys=ended, closed_at_us=fact.at_us)
        case _:
            assert_never(fact)


def evolve_wallet(_state: WalletState, fact: WalletClaimed) -> WalletState:
    return WalletState(fact.account_id)


def evolve_operator(_state: OperatorState, fact: OperatorBootstrapped) -> OperatorState:
    return OperatorState(fact.account_id)


# Decisions.


def account_stream(account_id: str) -> Stream[AccountState]:
    return Stream("account", account_id)


def account_of(world: World, account_id: str) -> AccountState:
    return world.state(account_stream(account_id))


def existing_account(world: World, account_id: str) -> AccountState:
    """Raises Refused: ACCOUNT_UNKNOWN."""
    state = account_of(world, account_id)
    if not state.exists:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
    return state


def open_account(world: World, account_id: str) -> AccountState:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED."""
    state = existing_account(world, account_id)
    require_open(state, account_id)
    return state


def require_open(state: AccountState, account_id: str) -> None:
    """Raises Refused: ACCOUNT_CLOSED."""
    if state.is_closed:
        raise Refused(PartiesReason.ACCOUNT_CLOSED, account_id=account_id)


def wallet_stream(address: str) -> Stream[WalletState]:
    return Stream("wallet", address)


def wallet_of(world: World, address: str) -> WalletState:
    return world.state(wallet_stream(address))


def operator_of(world: World) -> OperatorState:
    return world.state(OPERATOR_STREAM)


OPERATOR_STREAM: Stream[OperatorState] = Stream("operator", "first")

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")


def decide_open(command: OpenAccount, world: World) -> list[Change]:
    """Open an account with its first owner. The operator's own is opened by `BootstrapOperator`.

    Raises Refused: NOT_PERMITTED, ACCOUNT_EXISTS.
    """
    if command.kind == "operator" or command.kind not in ACCOUNT_KINDS:
        raise Refused(PartiesReason.NOT_PERMITTED, kind=command.kind)
    _require_new(world, command.account_id)
    return _opening(
        command.account_id, command.kind, command.opened_by, command.owner_member_id, command.at_us
    )


def decide_bootstrap(command: BootstrapOperator, world: World) -> list[Change]:
    """The one operator account, its owner and a first key with every scope.

    Raises Refused: ACCOUNT_EXISTS, OPERATOR_EXISTS.
    """
    _require_new(world, command.account_id)
    present = operator_of(world)
    if present.account_id is not None:
        raise Refused(PartiesReason.OPERATOR_EXISTS, account_id=present.account_id)
    key = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.key_id,
        key_sha256=command.key_sha256,
        member_id=command.member_id,
        scopes=SCOPES,
        expires_at_us=None,
        at_us=command.at_us,
    )
    bootstrapped = OperatorBootstrapped(account_id=command.account_id, at_us=command.at_us)
    return [
        Change(OPERATOR_STREAM, bootstrapped),
        *_opening(
            command.account_id, "operator", command.member_id, command.member_id, command.at_us
        ),
        _on(command.account_id, key),
    ]


def decide_add_member(command: AddMember, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, MEMBER_EXISTS, ROLE_UNKNOWN."""
    state = open_account(world, command.account_id)
    present = state.members.get(command.member_id)
    if present is not None and present != command.role:
        raise Refused(PartiesReason.MEMBER_EXISTS, member_id=command.member_id, role=present)
    if command.role not in ROLES:
        raise Refused(PartiesReason.ROLE_UNKNOWN, role=command.role)
    if present is not None:
        return []
    added = MemberAdded(
        account_id=command.account_id,
        member_id=command.member_id,
        role=command.role,
        by=command.by,
        at_us=command.at_us,
    )
    return [_on(command.account_id, added)]


def decide_remove_member(command: RemoveMember, world: World) -> list[Change]:
    """A member leaves, and every key in their name ends at once. An account keeps an owner.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, MEMBER_UNKNOWN, LAST_OWNER.
    """
    state = open_account(world, command.account_id)
    if command.member_id not in state.members:
        raise Refused(PartiesReason.MEMBER_UNKNOWN, member_id=command.member_id)
    if state.owners == [command.member_id]:
        raise Refused(PartiesReason.LAST_OWNER, member_id=command.member_id)
    removed = MemberRemoved(
        account_id=command.account_id,
        member_id=command.member_id,
        by=command.by,
        at_us=command.at_us,
    )
    live = sorted(
        key.key_id
        for key in state.keys.values()
        if key.member_id == command.member_id and key.is_live(command.at_us)
    )
    return [
        _on(command.account_id, removed),
        *(
            _revoking(command.account_id, key_id, command.at_us, command.by, command.at_us)
            for key_id in live
        ),
    ]


def decide_issue_key(command: IssueApiKey, world: World) -> list[Change]:
    """A key in the name of a member, for scopes that the kind of account may hold.

    Raises Refused: NOT_PERMITTED, ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, MEMBER_UNKNOWN, SCOPE_UNKNOWN,
    DUPLICATE_ID.
    """
    state = open_account(world, command.account_id)
    for scope in command.scopes:
        if scope in SCOPES and scope not in SCOPES_OF[state.kind]:
            raise Refused(PartiesReason.NOT_PERMITTED, scope=scope, kind=state.kind)
    if command.member_id not in state.members:
        raise Refused(PartiesReason.MEMBER_UNKNOWN, member_id=command.member_id)
    for scope in command.scopes:
        if scope not in SCOPES:
            raise Refused(PartiesReason.SCOPE_UNKNOWN, scope=scope)
    issued = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.key_id,
        key_sha256=command.key_sha256,
        member_id=command.member_id,
        scopes=command.scopes,
        expires_at_us=command.expires_at_us,
        at_us=command.at_us,
    )
    return _issuing(state, issued)


def decide_revoke_key(command: RevokeApiKey, world: World) -> list[Change]:
    """The key ends now, even inside the overlap of a rotation. Twice is once."""
    state = existing_account(world, command.account_id)
    key = _key(state, command.key_id)
    if key.revoked_at_us is not None and key.revoked_at_us <= command.at_us:
        return []
    return [_revoking(command.account_id, command.key_id, command.at_us, command.by, command.at_us)]


def decide_rotate_key(command: RotateApiKey, world: World) -> list[Change]:
    """A successor with the same member and scopes; the old key lives on for `KEY_OVERLAP_US`.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, API_KEY_UNKNOWN, API_KEY_REVOKED, DUPLICATE_ID.
    """
    state = open_account(world, command.account_id)
    old = _key(state, command.key_id)
    successor = ApiKeyIssued(
        account_id=command.account_id,
        key_id=command.new_key_id,
        key_sha256=command.new_key_sha256,
        member_id=old.member_id,
        scopes=old.scopes,
        expires_at_us=command.expires_at_us,
        at_us=command.at_us,
    )
    if old.revoked_at_us is not None or not old.is_live(command.at_us):
        raise Refused(PartiesReason.API_KEY_REVOKED, key_id=command.key_id)
    if command.new_key_id in state.keys:
        raise Refused(MoneyReason.DUPLICATE_ID, key_id=command.new_key_id)
    ends_us = command.at_us + KEY_OVERLAP_US
    return [
        _on(command.account_id, successor),
        _revoking(command.account_id, command.key_id, ends_us, command.by, command.at_us),
    ]


def decide_link_wallet(command: LinkWallet, world: World) -> list[Change]:
    """The first wallet is paid at once, a changed one after `WALLET_DELAY_US`.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, WALLET_TAKEN, BAD_ADDRESS.
    """
    state = open_account(world, command.account_id)
    address = command.address.lower()
    owner = wallet_of(world, address).account_id
    if owner not in (None, command.account_id):
        raise Refused(PartiesReason.WALLET_TAKEN, address=address)
    if _ADDRESS.fullmatch(address) is None:
        raise Refused(PartiesReason.BAD_ADDRESS, address=command.address)
    if state.wallets and state.wallets[-1].address == address:
        return []
    linked = WalletLinked(
        account_id=command.account_id,
        address=address,
        message=command.message,
        signature=command.signature,
        effective_at_us=command.at_us + (WALLET_DELAY_US if state.wallets else 0),
        at_us=command.at_us,
    )
    claimed = WalletClaimed(address=address, account_id=command.account_id, at_us=command.at_us)
    claim = [Change(wallet_stream(address), claimed)] if owner is None else []
    return [*claim, _on(command.account_id, linked)]


def _on(account_id: str, fact: AccountFact) -> Change:
    return Change(account_stream(account_id), fact)


def _require_new(world: World, account_id: str) -> None:
    if account_of(world, account_id).exists:
        raise Refused(PartiesReason.ACCOUNT_EXISTS, account_id=account_id)


def _opening(account_id: str, kind: str, by: str, owner: str, at_us: int) -> list[Change]:
    opened = AccountOpened(account_id=account_id, kind=kind, opened_by=by, at_us=at_us)
    added = MemberAdded(account_id=account_id, member_id=owner, role="owner", by=by, at_us=at_us)
    return [_on(account_id, opened), _on(account_id, added)]


def _key(state: AccountState, key_id: str) -> ApiKey:
    if key_id not in state.keys:
        raise Refused(PartiesReason.API_KEY_UNKNOWN, key_id=key_id)
    return state.keys[key_id]


def _issuing(state: AccountState, issued: ApiKeyIssued) -> list[Change]:
    present = state.keys.get(issued.key_id)
    if present is None:
        return [_on(issued.account_id, issued)]
    if (present.key_sha256, present.scopes) == (issued.key_sha256, issued.scopes):
        return []
    raise Refused(MoneyReason.DUPLICATE_ID, key_id=issued.key_id)


def _revoking(account_id: str, key_id: str, ends_us: int, by: str, at_us: int) -> Change:
    revoked = ApiKeyRevoked(
        account_id=account_id, key_id=key_id, effective_at_us=ends_us, by=by, at_us=at_us
    )
    return _on(account_id, revoked)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "account": (AccountState(), evolve),
    "wallet": (WalletState(), evolve_wallet),
    "operator": (OperatorState(), evolve_operator),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    OpenAccount: decide_open,
    BootstrapOperator: decide_bootstrap,
    AddMember: decide_add_member,
    RemoveMember: decide_remove_member,
    IssueApiKey: decide_issue_key,
    RevokeApiKey: decide_revoke_key,
    RotateApiKey: decide_rotate_key,
    LinkWallet: decide_link_wallet,
}
