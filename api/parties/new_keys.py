"""What every answer with a new key shares: the names of scopes and roles, and the key itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from api.door import keys
from api.door.call import Call
from api.process import secret_files

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
    "audit:read",
    "meter",
    "oracle:write",
]
Scopes = Annotated[list[ScopeName], Field(min_length=1, max_length=13)]


def new_key(call: Call) -> str:
    """The same for the same request, so that a lost answer can be asked for again."""
    assert call.key is not None
    random = secret_files.derive(call.service.server_key, "api-key/v1", call.account, call.key)
    return keys.make(random[:38], live=call.service.settings.environment == "production")


def new_code(call: Call) -> str:
    """The code of an invitation, `ts_invite_` and 256 bits; the same for the same request."""
    assert call.key is not None
    random = secret_files.derive(call.service.server_key, "invitation/v1", call.account, call.key)
    return f"ts_invite_{keys.base62(int.from_bytes(random[:32], 'big'), 43)}"


def id_of_key(key: str) -> str:
    """The 8 public characters of a key that was just made."""
    key_id = keys.key_id(key)
    assert key_id is not None
    return key_id
