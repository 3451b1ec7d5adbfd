"""Accounts: who may act, with which key, for whose money. Balances are not here but in the books.

An account has members with roles and API keys with scopes. No name, address or e-mail enters the
log: facts carry random ids, and names stay in an erasable table. How keys are issued and who may
join or leave is decided in `api_key` and `member`.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOpened:
    account_id: str
    kind: str  # "operator" (one), "party" (renters and providers alike), "client", "auditor"
    opened_by: str  # member or key id of whoever asked, or SIGN_UP
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
class MemberRoleChanged:
    """Every key of the member is narrowed to the new role at once."""

    account_id: str
    member_id: str
    role: str  # ROLES
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberInvited:
    """A key for `member_id` waits for whoever has the code. The code is shown to the inviter, the
    key to the one who redeems; a present member redeems with a key of their own.
    """

    account_id: str
    invitation_id: str
    code_sha256: str  # hex; the code itself is kept nowhere
    member_id: str  # made by the server, or a present member's who gets another key
    role: str
    scopes: tuple[str, ...]
    key_expires_at_us: int | None
    expires_at_us: int
    by_key_id: str  # the invitation ends with this key; BY_OPERATOR: a new account's first one
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationWithdrawn:
    account_id: str
    invitation_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationRedeemed:
    account_id: str
    invitation_id: str
    key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyIssued:
    account_id: str
    key_id: str  # the 8 public characters of the key
    key_sha256: str  # hex; the key itself is shown once and kept nowhere
    member_id: str
    scopes: tuple[str, ...]
    expires_at_us: int | None
    by_key_id: str | None  # the key it was issued with; None: the first one of an account
    succeeds: str | None  # the key that was rotated
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
    """Stream `operator:first`: there is one operator account, opened once, and with it the log is
    founded: in production, or in development for ever.
    """

    account_id: str
    environment: str  # ENVIRONMENTS
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountClosed:
    """Every key of the account ends with it, and nothing new begins for it."""

    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountVerified:
    """The operator knows who is behind an account that signed itself up."""

    account_id: str
    by: str
    at_us: int


SIGN_UP = "sign-up"
"""Stands in `opened_by` of an account that nobody of the market opened."""
BY_OPERATOR = ""
"""Stands in `by_key_id` of the invitation with which the owner of a new account begins."""

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstKey:
    """The key with which the first owner of a new account begins."""

    key_id: str
    key_sha256: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccount:
    account_id: str
    kind: str  # any of ACCOUNT_KINDS but "operator"
    opened_by: str
    owner_member_id: str
    first_key: FirstKey | None = None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapOperator:
    account_id: str
    member_id: str
    key_id: str
    key_sha256: str
    at_us: int
    environment: str = "production"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkWallet:
    """The signature over `message` was checked before; here the address finds its account."""

    account_id: str
    address: str
    message: str
    signature: str
    at_us: int


# Where money is real, and where it is not.

PRODUCTION, DEVELOPMENT = ENVIRONMENTS = ("production", "development")
"""In development simulated devices join, count and are paid, and new regions ask for no hardware:
nothing of it is worth anything, and no such log becomes one of production (decision 0047).
"""

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
    "audit:read",
    "meter",
    "oracle:write",
)

SCOPES_OF: dict[str, frozenset[str]] = {
    "operator": frozenset(SCOPES),
    "party": frozenset(SCOPES) - {"client", "payout:approve", "operator", "oracle:write"},
    "client": frozenset({"account", "account:admin", "client", "billing:read", "meter"}),
    "auditor": frozenset({"account", "billing:read", "earnings:read", "payout:read", "audit:read"}),
}
"""What a key may be allowed to do, by the kind of its account."""

READ_SCOPES = frozenset({"account", "billing:read", "earnings:read", "payout:read", "audit:read"})

SCOPES_OF_ROLE: dict[str, frozenset[str]] = {
    "owner": frozenset(SCOPES),
    "admin": frozenset(SCOPES) - {"payout:approve"},
    "billing": READ_SCOPES - {"audit:read"} | {"payout:approve"},
    "member": frozenset(SCOPES) - {"payout:approve", "account:admin"},
    "viewer": READ_SCOPES,
}
"""What the keys of a member may do, by the member's role; a changed role changes it at once."""


def effective_scopes(kind: str, role: str, scopes: Iterable[str]) -> frozenset[str]:
    """What a key opens: its own scopes, as far as its account and its member's role allow them.

    effective == scopes & SCOPES_OF[kind] & SCOPES_OF_ROLE[role]
    """
    return frozenset(scopes) & SCOPES_OF[kind] & SCOPES_OF_ROLE[role]


WALLET_DELAY_US = 72 * 3_600_000_000
"""A new payout wallet waits this long, the first one too, so that a theft can be noticed."""

# State.


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    key_id: str
    key_sha256: str
    member_id: str
    scopes: tuple[str, ...]
    expires_at_us: int | None
    root_id: str  # the first key of its chain of rotations: budgets count there
    succeeds: str | None = None
    revoked_at_us: int | None = None  # when the revocation takes effect

    @property
    def ends_us(self) -> int | None:
        """The moment from which the key opens nothing; None: it has no end yet."""
        ends = [end for end in (self.expires_at_us, self.revoked_at_us) if end is not None]
        return min(ends, default=None)

    def is_live(self, at_us: int) -> bool:
        """Whether the key still opens anything at this moment."""
        return self.ends_us is None or at_us < self.ends_us

    def ended(self, at_us: int) -> ApiKey:
        """The key, revoked at this moment if it was not before."""
        revoked_at_us = at_us if self.revoked_at_us is None else min(self.revoked_at_us, at_us)
        return replace(self, revoked_at_us=revoked_at_us)


@dataclass(frozen=True, slots=True)
class Invitation:
    invitation_id: str
    code_sha256: str
    member_id: str
    role: str
    scopes: tuple[str, ...]
    key_expires_at_us: int | None
    expires_at_us: int
    by_key_id: str
    by: str


@dataclass(frozen=True, slots=True)
class Wallet:
    address: str
    effective_at_us: int


@dataclass(frozen=True, slots=True)
class AccountState:
    kind: str = ""
    opened_by: str = ""
    verified_at_us: int | None = None  # by the operator, where it signed itself up
    members: dict[str, str] = field(default_factory=dict)  # member id -> role
    keys: dict[str, ApiKey] = field(default_factory=dict)  # key id -> key
    invitations: dict[str, Invitation] = field(default_factory=dict)  # neither used nor withdrawn
    wallets: tuple[Wallet, ...] = ()  # in the order they were linked
    closed_at_us: int | None = None

    @property
    def exists(self) -> bool:
        return self.kind != ""

    @property
    def is_unverified(self) -> bool:
        """Whether nobody of the market knows who is behind it."""
        return self.opened_by == SIGN_UP and self.verified_at_us is None

    @property
    def is_closed(self) -> bool:
        return self.closed_at_us is not None

    @property
    def is_open(self) -> bool:
        return self.exists and not self.is_closed

    @property
    def owners(self) -> list[str]:
        return sorted(member_id for member_id, role in self.members.items() if role == "owner")

    def scopes_of(self, key: ApiKey) -> frozenset[str]:
        """What a key opens now, under its member's role; nothing once the member is gone."""
        role = self.members.get(key.member_id)
        return frozenset() if role is None else effective_scopes(self.kind, role, key.scopes)

    def root_of(self, key_id: str) -> str:
        """The first key of the chain of rotations that a key belongs to."""
        key = self.keys.get(key_id)
        return key_id if key is None else key.root_id

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
    environment: str | None = None

    @property
    def is_development(self) -> bool:
        """Whether the log was founded in development; one that is not founded is not."""
        return self.environment == DEVELOPMENT


AccountFact: TypeAlias = (
    AccountOpened
    | MemberAdded
    | MemberRemoved
    | MemberRoleChanged
    | MemberInvited
    | InvitationWithdrawn
    | InvitationRedeemed
    | ApiKeyIssued
    | ApiKeyRevoked
    | WalletLinked
    | AccountVerified
    | AccountClosed
)


def evolve(state: AccountState, fact: AccountFact) -> AccountState:
    match fact:
        case AccountOpened():
            return replace(state, kind=fact.kind, opened_by=fact.opened_by)
        case MemberAdded():
            return replace(state, members={**state.members, fact.member_id: fact.role})
        case MemberRemoved():
            left = {who: role for who, role in state.members.items() if who != fact.member_id}
            invited = {
                i: one for i, one in state.invitations.items() if one.member_id != fact.member_id
            }
            return replace(state, members=left, invitations=invited)
        case MemberRoleChanged():
            return replace(state, members={**state.members, fact.member_id: fact.role})
        case MemberInvited():
            return replace(state, invitations=_with_invitation(state, fact))
        case InvitationWithdrawn() | InvitationRedeemed():
            waiting = {
                key: one for key, one in state.invitations.items() if key != fact.invitation_id
            }
            return replace(state, invitations=waiting)
        case ApiKeyIssued():
            key = ApiKey(
                key_id=fact.key_id,
                key_sha256=fact.key_sha256,
                member_id=fact.member_id,
                scopes=fact.scopes,
                expires_at_us=fact.expires_at_us,
                root_id=fact.key_id if fact.succeeds is None else state.root_of(fact.succeeds),
                succeeds=fact.succeeds,
            )
            return replace(state, keys={**state.keys, fact.key_id: key})
        case ApiKeyRevoked():
            key = replace(state.keys[fact.key_id], revoked_at_us=fact.effective_at_us)
            return replace(state, keys={**state.keys, fact.key_id: key})
        case WalletLinked():
            linked = Wallet(fact.address, fact.effective_at_us)
            return replace(state, wallets=(*state.wallets, linked))
        case AccountVerified():
            return replace(state, verified_at_us=fact.at_us)
        case AccountClosed():
            ended = {key_id: key.ended(fact.at_us) for key_id, key in state.keys.items()}
            return replace(state, keys=ended, closed_at_us=fact.at_us)
        case _:
            assert_never(fact)


def _with_invitation(state: AccountState, fact: MemberInvited) -> dict[str, Invitation]:
    """Those that wait, with a new one; those whose time is over are forgotten."""
    new = Invitation(
        invitation_id=fact.invitation_id,
        code_sha256=fact.code_sha256,
        member_id=fact.member_id,
        role=fact.role,
        scopes=fact.scopes,
        key_expires_at_us=fact.key_expires_at_us,
        expires_at_us=fact.expires_at_us,
        by_key_id=fact.by_key_id,
        by=fact.by,
    )
    waiting = {k: one for k, one in state.invitations.items() if one.expires_at_us > fact.at_us}
    return {**waiting, fact.invitation_id: new}


def evolve_wallet(_state: WalletState, fact: WalletClaimed) -> WalletState:
    return WalletState(fact.account_id)


def evolve_operator(_state: OperatorState, fact: OperatorBootstrapped) -> OperatorState:
    return OperatorState(fact.account_id, fact.environment)


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

    Raises Refused: NOT_PERMITTED, ACCOUNT_EXISTS, SCOPE_UNKNOWN.
    """
    if command.kind == "operator" or command.kind not in ACCOUNT_KINDS:
        raise Refused(PartiesReason.NOT_PERMITTED, kind=command.kind)
    _require_new(world, command.account_id)
    opening = _opening(
        command.account_id, command.kind, command.opened_by, command.owner_member_id, command.at_us
    )
    first = command.first_key
    if first is None:
        return opening
    require_scopes(command.kind, "owner", first.scopes)
    return [*opening, _first_key(command.account_id, command.owner_member_id, first, command.at_us)]


def decide_bootstrap(command: BootstrapOperator, world: World) -> list[Change]:
    """The one operator account, its owner and a first key with every scope.

    Raises Refused: ACCOUNT_EXISTS, OPERATOR_EXISTS.
    """
    assert command.environment in ENVIRONMENTS, command.environment
    _require_new(world, command.account_id)
    present = operator_of(world)
    if present.account_id is not None:
        raise Refused(PartiesReason.OPERATOR_EXISTS, account_id=present.account_id)
    key = FirstKey(key_id=command.key_id, key_sha256=command.key_sha256, scopes=SCOPES)
    bootstrapped = OperatorBootstrapped(
        account_id=command.account_id, environment=command.environment, at_us=command.at_us
    )
    return [
        Change(OPERATOR_STREAM, bootstrapped),
        *_opening(
            command.account_id, "operator", command.member_id, command.member_id, command.at_us
        ),
        _first_key(command.account_id, command.member_id, key, command.at_us),
    ]


def decide_link_wallet(command: LinkWallet, world: World) -> list[Change]:
    """A wallet is paid `WALLET_DELAY_US` after it was linked, the first one too.

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
        effective_at_us=command.at_us + WALLET_DELAY_US,
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


def _first_key(account_id: str, member_id: str, key: FirstKey, at_us: int) -> Change:
    issued = ApiKeyIssued(
        account_id=account_id,
        key_id=key.key_id,
        key_sha256=key.key_sha256,
        member_id=member_id,
        scopes=key.scopes,
        expires_at_us=None,
        by_key_id=None,
        succeeds=None,
        at_us=at_us,
    )
    return _on(account_id, issued)


def require_scopes(kind: str, role: str, scopes: Iterable[str]) -> None:
    """Scopes that exist, and that this kind of account and this role may hold.

    Raises Refused: NOT_PERMITTED, SCOPE_UNKNOWN, ROLE_LACKS_SCOPE.
    """
    for scope in scopes:
        if scope not in SCOPES:
            raise Refused(PartiesReason.SCOPE_UNKNOWN, scope=scope, allowed=SCOPES)
        if scope not in SCOPES_OF[kind]:
            raise Refused(PartiesReason.NOT_PERMITTED, scope=scope, kind=kind)
        if scope not in SCOPES_OF_ROLE[role]:
            raise Refused(PartiesReason.ROLE_LACKS_SCOPE, scope=scope, role=role)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "account": (AccountState(), evolve),
    "wallet": (WalletState(), evolve_wallet),
    "operator": (OperatorState(), evolve_operator),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    OpenAccount: decide_open,
    BootstrapOperator: decide_bootstrap,
    LinkWallet: decide_link_wallet,
}
