"""An account with its owner Alice and members in every role, each with a key named after them."""

from __future__ import annotations

from domain.parties.account import (
    ROLES,
    SCOPES_OF,
    SCOPES_OF_ROLE,
    AccountOpened,
    ApiKeyIssued,
    MemberAdded,
)
from domain.stream import Stream
from tests.domain.scenes.supply import NOON_US
from tests.given import Scene

OPS = "acct_ops"
OPS_STREAM = Stream("account", OPS)


def key_of(
    role: str,
    key_id: str | None = None,
    *,
    scopes: tuple[str, ...] | None = None,
    expires_at_us: int | None = None,
) -> ApiKeyIssued:
    """A key of the member with this role: `key_admin` of `mem_admin`, with all the role may."""
    return ApiKeyIssued(
        account_id=OPS,
        key_id=key_id or f"key_{role}",
        key_sha256=f"sha of {key_id or role}",
        member_id=f"mem_{role}",
        scopes=tuple(sorted(SCOPES_OF_ROLE[role])) if scopes is None else scopes,
        expires_at_us=expires_at_us,
        by_key_id=None,
        succeeds=None,
        at_us=NOON_US,
    )


def member(role: str, member_id: str | None = None) -> MemberAdded:
    return MemberAdded(
        account_id=OPS,
        member_id=member_id or f"mem_{role}",
        role=role,
        by="mem_owner",
        at_us=NOON_US,
    )


opened = AccountOpened(account_id=OPS, kind="operator", opened_by="mem_owner", at_us=NOON_US)
staffed = Scene().given(
    (OPS_STREAM, opened),
    *((OPS_STREAM, member(role)) for role in ROLES),
    *((OPS_STREAM, key_of(role)) for role in ROLES),
)
"""Owner, admin, billing, member and viewer of the operator's account."""
assert SCOPES_OF["operator"] == SCOPES_OF_ROLE["owner"]
