"""Who is calling, and whether this call is for them. Deny by default.

    a call passes  <=>  its operation names the caller's audience, and one of the caller's scopes

Every operation declares both, or the service does not start. Another party's object is answered
404, never 403, by whoever reads it: 403 only says that a scope is missing. Sessions of wallets and
signatures of nodes on their other calls come later; usage reports prove themselves.
"""

from __future__ import annotations

import hashlib
import re
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from api.door import keys
from api.door.errors import Problem, problem
from domain.parties.account import SCOPES, SCOPES_OF
from projections.parties import access
from projections.parties.access import ACCESS

if TYPE_CHECKING:
    from api.process.service import Service

PUBLIC, KEY, NODE, EXECUTOR = "public", "key", "node", "executor"
V = TypeVar("V")
NOBODY = ""
"""No account has this id."""
SEES_ALL = {"operator": frozenset({"operator", "audit:read"}), "auditor": frozenset(SCOPES)}
"""By kind of account: keys with one of these scopes read what is not their own account's."""
CACHE_SECONDS = 2.0
CACHE_MAX = 10_000
_MACHINE_FORM = re.compile(r"(ts_(?:node|exec)_[0-9A-Za-z]{43})_([0-9A-Za-z]{6})")
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call an operation: audiences, and for API keys any one of the scopes."""

    audiences: frozenset[str]
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        assert self.audiences, "an operation is for somebody"
        assert (KEY in self.audiences) == bool(self.scopes), "scopes belong to API keys"
        assert self.scopes <= set(SCOPES), self.scopes - set(SCOPES)


def everybody() -> Access:
    """No credential needed; one that is given must be good."""
    return Access(frozenset({PUBLIC}))


def with_scope(*scopes: str) -> Access:
    """API keys with any one of these scopes."""
    return Access(frozenset({KEY}), frozenset(scopes))


def nodes_only() -> Access:
    """The key a node was given when it joined."""
    return Access(frozenset({NODE}))


def nodes_or_scope(*scopes: str) -> Access:
    return Access(frozenset({KEY, NODE}), frozenset(scopes))


def executors_only() -> Access:
    """The key of the program that runs the work of a node's leases."""
    return Access(frozenset({EXECUTOR}))


def executors_or_scope(*scopes: str) -> Access:
    return Access(frozenset({KEY, EXECUTOR}), frozenset(scopes))


def machines_or_scope(*scopes: str) -> Access:
    """A node's own key, its executor's, or an API key."""
    return Access(frozenset({KEY, NODE, EXECUTOR}), frozenset(scopes))


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling. `account_id` scopes everything they see; of a node and of its executor it is
    the node's id.
    """

    kind: str  # PUBLIC, KEY, NODE, EXECUTOR
    account_id: str = ""
    account_kind: str = ""
    member_id: str = ""
    key_id: str = ""
    scopes: frozenset[str] = frozenset()
    is_unverified: bool = False  # its account signed itself up (`unverified`)

    @property
    def name(self) -> str:
        """Stays the same when a key is rotated: part of the fingerprint of a request."""
        return f"{self.kind}/{self.account_id}/{self.member_id}"

    @property
    def sees_all(self) -> bool:
        """Operators and auditors read every party's objects. A key of the operator's account that
        lacks the operator's scopes is like anybody's.
        """
        return not self.scopes.isdisjoint(SEES_ALL.get(self.account_kind, ()))

    @property
    def is_operator(self) -> bool:
        return self.account_kind == "operator" and "operator" in self.scopes

    @property
    def caller(self) -> str:
        """Of an account with all its members and keys, of a node, of an executor: one name."""
        return f"{self.kind}/{self.account_id}"

    def owns(self, account_id: str) -> bool:
        return self.kind == KEY and self.account_id == account_id

    def may_see(self, account_id: str) -> bool:
        return self.sees_all or self.owns(account_id)

    @property
    def only(self) -> str | None:
        """The account to put into a WHERE: None for those who see everything."""
        return None if self.sees_all else self.account_id

    def among(self, asked: str | None) -> str | None:
        """`only`, for a list that was asked for one account: another party's holds nothing."""
        if self.sees_all or asked == self.account_id:
            return asked
        return self.account_id if asked is None else NOBODY


ANYBODY = Principal(PUBLIC)
OF_A_COPY = Principal(KEY, account_kind="auditor", scopes=SCOPES_OF["auditor"])
"""Who loaded a copy of a log: an auditor that the log does not know. A copy records nothing."""
IN_PROCESS = "tallystick.principal"
"""Where the scope of a call holds its principal if a page of the console calls for a session. Only
code of this process writes a scope: no header, path or body of a request gets there.
"""


def node_key(random: bytes) -> str:
    """The key of a node, `ts_node_<43 base62>_<6 base62 CRC-32>`, from 32 random bytes."""
    return _machine_key("ts_node_", random)


def executor_key(random: bytes) -> str:
    """The key of a node's executor, in the same form, from 32 random bytes."""
    return _machine_key("ts_exec_", random)


def _machine_key(prefix: str, random: bytes) -> str:
    body = f"{prefix}{keys.base62(int.from_bytes(random[:32], 'big'), 43)}"
    return f"{body}_{keys.base62(zlib.crc32(body.encode()), 6)}"


def admit(access_: Access, principal: Principal) -> None:
    """Let the caller through. Raises Problem: 401 without a credential, 403 with a wrong one."""
    if PUBLIC in access_.audiences:
        return
    if principal.kind == PUBLIC:
        raise Problem(401, "unauthenticated", "this call needs a key", headers=_CHALLENGE)
    if principal.kind not in access_.audiences:
        wanted = " or ".join(sorted(access_.audiences))
        raise Problem(403, "audience_wrong", f"this call is for: {wanted}")
    if principal.kind == KEY and not access_.scopes & principal.scopes:
        wanted = " or ".join(sorted(access_.scopes))
        raise Problem(403, "scope_missing", f"needs the scope {wanted}", facts={"needs": wanted})


class Authenticator:
    """From an Authorization header to a principal. Remembers for two seconds who has a key, and
    which keys nobody has: one that is sent again and again costs the database nothing.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[str, tuple[Principal, int | None, float]] = {}
        self._missed: dict[str, float] = {}
        self._wrong: dict[str, float] = {}
        self._callers: dict[str, str] = {}

    def forget(self) -> None:
        """Ask the view again: keys were issued or taken back in this process."""
        self._known, self._missed, self._wrong = {}, {}, {}

    def caller(self, header: str | None) -> str | None:
        """Whose line a request with this key stands in, as long as it was good once: this is no
        permission, so it outlasts the two seconds and `forget`.
        """
        try:
            return None if header is None else self._callers.get(_digest(_token(header)))
        except Problem:
            return None

    def remembered(self, header: str | None) -> Principal | None:
        """The principal, if it can be told without asking the database. Raises Problem: 401."""
        if header is None:
            return ANYBODY
        digest = _digest(_token(header))
        known = self._known.get(digest)
        if self._wrong.get(digest, 0.0) > time.monotonic():
            raise _invalid()
        if known is None or known[2] < time.monotonic():
            return None
        if known[1] is not None and known[1] <= self._service.clock.now_us():
            return None
        return known[0]

    def authenticate(self, header: str | None) -> Principal:
        """Raises Problem: 401."""
        if header is None:
            return ANYBODY
        token = _token(header)
        digest = _digest(token)
        principal, ends_us = self._looked_up(token, digest)
        _remember(self._known, digest, (principal, ends_us, time.monotonic() + CACHE_SECONDS))
        if not principal.is_unverified:
            _remember(self._callers, digest, principal.caller)
        return principal

    def _looked_up(self, token: str, digest: str) -> tuple[Principal, int | None]:
        """Who has the key, and when it ends (us since the epoch). Raises Problem: 401."""
        with self._service.connection() as connection:
            self._service.follow(connection, [ACCESS])
            if token.startswith("ts_node_"):
                node = self._there(access.read_node_by_token(connection, digest), digest)
                return _of_node(node), None
            if token.startswith("ts_exec_"):
                node_id = self._there(access.read_executor(connection, digest), digest)
                return Principal(EXECUTOR, node_id), None
            if digest == self._service.auditor_sha256:
                return OF_A_COPY, None
            row = self._there(access.read_api_key(connection, digest), digest)
            principal = _of_key(row, token, self._service.clock.now_us())
            ends = row.expires_at_us, row.revoked_at_us
            return principal, min((end for end in ends if end is not None), default=None)

    def _there(self, row: V | None, digest: str) -> V:
        """A key that was not there twice is not looked up again so soon: at the first time it may
        be about to come.
        """
        if row is None:
            is_again = self._missed.get(digest, 0.0) > time.monotonic()
            missed = self._wrong if is_again else self._missed
            _remember(missed, digest, time.monotonic() + CACHE_SECONDS)
            raise _invalid()
        return row


def _remember(where: dict[str, V], digest: str, value: V) -> None:
    if len(where) >= CACHE_MAX:
        where.clear()
    where[digest] = value


def _token(header: str) -> str:
    """The bearer token, its checksum tested. Raises Problem: 401."""
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not (_is_machine_key(token) or keys.key_id(token)):
        raise _invalid()
    return token


def _digest(token: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(token.encode()).hexdigest()


def _is_machine_key(token: str) -> bool:
    form = _MACHINE_FORM.fullmatch(token)
    return form is not None and keys.base62(zlib.crc32(form[1].encode()), 6) == form[2]


def _of_key(row: access.ApiKey, token: str, now_us: int) -> Principal:
    if not keys.matches(token, row.key_sha256):
        raise _invalid()
    return principal_of(row, now_us)


def principal_of(row: access.ApiKey, now_us: int) -> Principal:
    """What a key opens at this moment, by whoever has proven to hold it. Raises Problem: 401."""
    if row.role is None:
        raise _invalid()
    if any(end is not None and end <= now_us for end in (row.expires_at_us, row.revoked_at_us)):
        raise _invalid()
    return Principal(
        KEY,
        row.account_id,
        row.account_kind,
        row.member_id,
        row.key_id,
        row.effective,
        row.is_unverified,
    )


def _of_node(row: access.NodeKey) -> Principal:
    if row.revoked_at_us is not None:
        raise problem("revoked", "the owner took the key of this node back")
    return Principal(NODE, row.node_id, key_id=row.key_id)


def _invalid() -> Problem:
    detail = "the key is malformed, unknown, expired or revoked"
    return Problem(401, "credential_invalid", detail, headers=_CHALLENGE)
