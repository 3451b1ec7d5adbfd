"""Sessions: a browser that has shown a key or a wallet once, and who it acts for now.

    a session opens what its key or wallet opens at this very moment, and nothing else

The cookie is 256 random bits; its hash names a row, the row names the key or the wallet, and that
is looked up at each request. So whatever ends the key, its member or its wallet ends the session,
and the key itself is neither in the cookie nor in a row.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from api.door.auth import KEY, Principal, principal_of
from api.door.errors import Problem, problem
from api.process.service import Service
from domain.frozen import replace
from domain.parties.account import SCOPES, effective_scopes
from ledger.beside import console_sessions
from ledger.beside.console_sessions import LIFE_US, ConsoleSession
from projections.parties import access
from projections.parties.access import ACCESS
from projections.runner import Connection

WALLET = "wallet"
"""The member of a session that was begun with a wallet: it is no member's, and only reads."""
WALLET_KINDS = ("party", "client")
WALLET_SEES_NOT = frozenset({"audit:read"})
BROWSER_MAX = 200


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in now, with what it may do; `token` is its cookie's."""

    token: str
    row: ConsoleSession
    principal: Principal


def digest(token: str) -> str:
    """What is kept of a token: hex SHA-256."""
    return hashlib.sha256(token.encode()).hexdigest()


def begin(service: Service, principal: Principal, wallet: str | None, browser: str) -> str:
    """The token of a new session for whoever has shown this key, or this wallet."""
    assert principal.kind == KEY, principal.kind
    now_us, token = service.clock.now_us(), secrets.token_urlsafe(32)
    row = ConsoleSession(
        session_id=f"session_{secrets.token_hex(8)}",
        account_id=principal.account_id,
        member_id=principal.member_id,
        key_id=principal.key_id if wallet is None else None,
        wallet=wallet,
        browser=_plain(browser),
        begun_us=now_us,
        seen_us=now_us,
        ends_us=now_us + LIFE_US,
    )
    with service.connection() as connection, connection.transaction():
        console_sessions.keep(connection, digest(token), row)
    return token


def find(service: Service, token: str) -> Session | None:
    """The session of a cookie, if it is not over and its key or wallet still opens something."""
    now_us = service.clock.now_us()
    with service.connection() as connection:
        row = console_sessions.find(connection, digest(token), now_us)
        if row is None:
            return None
        service.follow(connection, [ACCESS])
        try:
            principal = _principal_now(connection, row, now_us)
        except Problem:
            return None
    return Session(token, row, replace(principal, key_id=principal.key_id or row.session_id))


def alive(service: Service, asked: Sequence[Session]) -> set[str]:
    """Which of these are not over and open what they opened before, by the ids of their rows. They
    are not noted as seen: what a page does by itself keeps nobody signed in.
    """
    now_us = service.clock.now_us()
    with service.connection() as connection:
        service.follow(connection, [ACCESS])
        ids = [one.row.session_id for one in asked]
        kept = console_sessions.still_there(connection, ids, now_us)
        return {
            one.row.session_id
            for one in asked
            if one.row.session_id in kept and _opens_the_same(connection, one, now_us)
        }


def _opens_the_same(connection: Connection, session: Session, now_us: int) -> bool:
    try:
        principal = _principal_now(connection, session.row, now_us)
    except Problem:
        return False
    key_id = principal.key_id or session.row.session_id
    return replace(principal, key_id=key_id) == session.principal


def of_wallet(connection: Connection, address: str, now_us: int) -> Principal:
    """What a wallet opens: it reads for the account that is paid to it. Raises Problem: 401."""
    found = access.read_account_of_wallet(connection, address, now_us)
    if found is None or found.kind not in WALLET_KINDS:
        raise problem("credential_invalid", "no account is paid to this wallet now")
    scopes = effective_scopes(found.kind, "viewer", SCOPES) - WALLET_SEES_NOT
    return Principal(KEY, found.account_id, found.kind, WALLET, "", scopes, found.is_unverified)


def others(service: Service, session: Session) -> list[ConsoleSession]:
    """All sessions of the member whose session this is, this one too, last seen first."""
    row = session.row
    with service.connection() as connection:
        return console_sessions.of_member(
            connection, row.account_id, row.member_id, service.clock.now_us()
        )


def end(service: Service, session: Session, session_id: str) -> bool:
    """End one session of this session's member; False: the member has none of this id."""
    row = session.row
    with service.connection() as connection:
        return console_sessions.end(connection, session_id, row.account_id, row.member_id)


def _principal_now(connection: Connection, row: ConsoleSession, now_us: int) -> Principal:
    if row.wallet is not None:
        found = of_wallet(connection, row.wallet, now_us)
        if found.account_id != row.account_id:
            raise problem("credential_invalid")
        return found
    assert row.key_id is not None
    key = access.read_api_key_of(connection, row.account_id, row.key_id)
    if key is None:
        raise problem("credential_invalid")
    return principal_of(key, now_us)


def _plain(browser: str) -> str:
    """What a browser says of itself, short and without what no database holds."""
    return "".join(each for each in browser if each.isprintable())[:BROWSER_MAX]
