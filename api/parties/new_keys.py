"""What every answer with a new key shares: the names of scopes and roles, and the key itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from api.door import keys
from api.door.call import Call
from api.process.service import Service
from ledger.beside import sealed_secrets, secret_salts
from projections.runner import Connection

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
    """The same for the same request, so that a lost answer can be asked for again in 24 hours."""
    random = call.secret("api-key/v1")
    return keys.make(random[:38], live=call.service.settings.environment == "production")


def new_code(call: Call) -> str:
    """The code of an invitation, `ts_invite_` and 256 bits; as long the same."""
    random = call.secret("invitation/v1")
    return f"ts_invite_{keys.base62(int.from_bytes(random[:32], 'big'), 43)}"


def run_secrets(_service: Service, connection: Connection, now_us: int) -> int:
    """Erase what secrets that were shown 24 hours ago could be made from, and the secrets that
    sign no more; how many.
    """
    return secret_salts.forget(connection, now_us) + sealed_secrets.forget(connection, now_us)


def id_of_key(key: str) -> str:
    """The 8 public characters of a key that was just made."""
    key_id = keys.key_id(key)
    assert key_id is not None
    return key_id
