"""Accounts: who may act, with which key, for whose money. Balances are not here but in the books.

An account has members with roles and API keys with scopes. No name, address or e-mail enters the
log: facts carry random ids, and names stay in an erasable table.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from dataclasses import dataclass

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
