"""Who may act? API keys, members, wallets, and the keys and tokens of nodes.

Not a session store and not a rule: it says what was issued and what was taken back; whether a call
may pass at this moment is for the door to judge by its clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.parties.account import SIGN_UP, effective_scopes
from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.account (
        account_id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, opened_by text NOT NULL,
        at_us bigint NOT NULL, closed_at_us bigint, position bigint NOT NULL,
        verified_at_us bigint);
    COMMENT ON COLUMN own.account.verified_at_us IS 'By the operator, where it signed itself up';
    CREATE TABLE own.member (
        account_id text COLLATE "C", member_id text COLLATE "C", role text NOT NULL,
        at_us bigint NOT NULL, removed_at_us bigint, position bigint NOT NULL,
        PRIMARY KEY (account_id, member_id));
    CREATE TABLE own.api_key (
        key_sha256 text COLLATE "C" PRIMARY KEY, key_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, member_id text NOT NULL, scopes text[] NOT NULL,
        expires_at_us bigint, revoked_at_us bigint, succeeds text, at_us bigint NOT NULL,
        position bigint NOT NULL);
    CREATE INDEX ON own.api_key (account_id, key_id);
    CREATE TABLE own.invitation (
        account_id text COLLATE "C", invitation_id text COLLATE "C",
        code_sha256 text COLLATE "C" NOT NULL, member_id text NOT NULL, role text NOT NULL,
        scopes text[] NOT NULL, key_expires_at_us bigint, expires_at_us bigint NOT NULL,
        over boolean NOT NULL, position bigint NOT NULL, PRIMARY KEY (account_id, invitation_id));
    COMMENT ON COLUMN own.invitation.over IS 'Redeemed, or withdrawn';
    CREATE TABLE own.wallet (
        account_id text COLLATE "C", position bigint, address text COLLATE "C" NOT NULL,
        effective_at_us bigint NOT NULL, at_us bigint NOT NULL,
        PRIMARY KEY (account_id, position));
    CREATE TABLE own.node (
        node_id text COLLATE "C" PRIMARY KEY, provider_id text COLLATE "C" NOT NULL,
        client_id text, token_sha256 text COLLATE "C" NOT NULL, retired_at_us bigint,
        equivocated_at_us bigint, revoked_at_us bigint, at_us bigint NOT NULL,
        position bigint NOT NULL);
    COMMENT ON COLUMN own.node.equivocated_at_us IS 'Or its key was found on two machines';
    CREATE TABLE own.node_key (
        node_id text COLLATE "C", key_id text COLLATE "C", public_key text NOT NULL,
        confirmed_at_us bigint, position bigint NOT NULL, from_seq bigint NOT NULL,
        old_revoked boolean NOT NULL, PRIMARY KEY (node_id, key_id));
    COMMENT ON COLUMN own.node_key.old_revoked IS 'Taken back after another key had replaced it';
    COMMENT ON COLUMN own.node_key.from_seq IS 'Number of the first report it signs';
    CREATE TABLE own.executor (
        node_id text COLLATE "C" PRIMARY KEY, key_sha256 text COLLATE "C",
        at_us bigint NOT NULL, position bigint NOT NULL);
    COMMENT ON TABLE own.executor IS 'One key a node; NULL: taken back';
"""

_INDEXES = """
    CREATE INDEX account_signed_up ON own.account (at_us) WHERE opened_by = 'sign-up';
    CREATE INDEX ON own.node (token_sha256);
    CREATE INDEX ON own.executor (key_sha256);
    CREATE INDEX ON own.wallet (address, position);
    CREATE INDEX ON own.invitation (code_sha256);
"""

_RULES = (
    Rule(
        ("account.opened.v1",),
        "account_id text, kind text, opened_by text, at_us bigint",
        """INSERT INTO own.account
        SELECT account_id, kind, opened_by, at_us, NULL, position FROM facts""",
    ),
    Rule(
        ("account.verified.v1",),
        "account_id text, at_us bigint",
        """UPDATE own.account a SET verified_at_us = f.at_us FROM facts f
        WHERE a.account_id = f.account_id""",
    ),
    Rule(
        ("account.closed.v1",),
        "account_id text, at_us bigint",
        """UPDATE own.account a SET closed_at_us = f.at_us FROM facts f
        WHERE a.account_id = f.account_id""",
    ),
    Rule(
        ("account.member_added.v1",),
        "account_id text, member_id text, role text, at_us bigint",
        """INSERT INTO own.member
        SELECT DISTINCT ON (account_id, member_id)
            account_id, member_id, role, at_us, NULL::bigint, position
        FROM facts ORDER BY account_id, member_id, position DESC
        ON CONFLICT (account_id, member_id) DO UPDATE SET role = excluded.role,
            at_us = excluded.at_us, removed_at_us = NULL, position = excluded.position""",
    ),
    Rule(
        ("account.member_removed.v1",),
        "account_id text, member_id text, at_us bigint",
        """UPDATE own.member m SET removed_at_us = f.at_us FROM (
            SELECT DISTINCT ON (account_id, member_id) * FROM facts
            ORDER BY account_id, member_id, position DESC) f
        WHERE m.account_id = f.account_id AND m.member_id = f.member_id
            AND m.position < f.position""",
    ),
    Rule(
        ("account.member_role_changed.v1",),
        "account_id text, member_id text, role text",
        """UPDATE own.member m SET role = f.role FROM (
            SELECT DISTINCT ON (account_id, member_id) * FROM facts
            ORDER BY account_id, member_id, position DESC) f
        WHERE m.account_id = f.account_id AND m.member_id = f.member_id
            AND m.position < f.position""",
    ),
    Rule(
        ("account.api_key_issued.v1",),
        "account_id text, key_id text, key_sha256 text, member_id text, scopes text[],"
        " expires_at_us bigint, succeeds text, at_us bigint",
        """INSERT INTO own.api_key
        SELECT key_sha256, key_id, account_id, member_id, scopes, expires_at_us, NULL, succeeds,
            at_us, position
        FROM facts""",
    ),
    Rule(
        ("account.member_invited.v1",),
        "account_id text, invitation_id text, code_sha256 text, member_id text, role text,"
        " scopes text[], key_expires_at_us bigint, expires_at_us bigint",
        """INSERT INTO own.invitation
        SELECT account_id, invitation_id, code_sha256, member_id, role, scopes, key_expires_at_us,
            expires_at_us, false, position
        FROM facts""",
    ),
    Rule(
        ("account.invitation_withdrawn.v1", "account.invitation_redeemed.v1"),
        "account_id text, invitation_id text",
        """UPDATE own.invitation i SET over = true FROM facts f
        WHERE i.account_id = f.account_id AND i.invitation_id = f.invitation_id""",
    ),
    Rule(  # what was to give a member another key ends with the member
        ("account.member_removed.v1",),
        "account_id text, member_id text",
        """UPDATE own.invitation i SET over = true FROM facts f
        WHERE i.account_id = f.account_id AND i.member_id = f.member_id
            AND i.position < f.position""",
    ),
    Rule(
        ("account.api_key_revoked.v1",),
        "account_id text, key_id text, effective_at_us bigint",
        """UPDATE own.api_key k SET revoked_at_us = f.effective_at_us FROM (
            SELECT DISTINCT ON (account_id, key_id) * FROM facts
            ORDER BY account_id, key_id, position DESC) f
        WHERE k.account_id = f.account_id AND k.key_id = f.key_id""",
    ),
    Rule(  # after the others: no key is issued or revoked later
        ("account.closed.v1",),
        "account_id text, at_us bigint",
        """UPDATE own.api_key k SET revoked_at_us = least(k.revoked_at_us, f.at_us) FROM facts f
        WHERE k.account_id = f.account_id""",
    ),
    Rule(
        ("account.wallet_linked.v1",),
        "account_id text, address text, effective_at_us bigint, at_us bigint",
        """INSERT INTO own.wallet
        SELECT account_id, position, address, effective_at_us, at_us FROM facts""",
    ),
    Rule(
        ("node.join_requested.v1",),
        "node_id text, provider_id text, client_id text, token_sha256 text, at_us bigint",
        """INSERT INTO own.node
        SELECT node_id, provider_id, client_id, token_sha256, NULL, NULL, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("node.join_requested.v1", "node.key_confirmed.v1"),
        "node_id text, key_id text, public_key text, at_us bigint",
        """INSERT INTO own.node_key AS k
        SELECT node_id, key_id, min(public_key),
            min(at_us) FILTER (WHERE topic = 'node.key_confirmed.v1'), min(position), 1, false
        FROM facts GROUP BY node_id, key_id
        ON CONFLICT (node_id, key_id) DO UPDATE
            SET confirmed_at_us = coalesce(k.confirmed_at_us, excluded.confirmed_at_us)""",
    ),
    Rule(
        ("node.retired.v1",),
        "node_id text, at_us bigint",
        """UPDATE own.node n SET retired_at_us = f.at_us
        FROM (SELECT node_id, min(at_us) AS at_us FROM facts GROUP BY node_id) f
        WHERE n.node_id = f.node_id AND n.retired_at_us IS NULL""",
    ),
    Rule(
        ("node.equivocated.v1", "node.boots_alternated.v1"),
        "node_id text, at_us bigint",
        """UPDATE own.node n SET equivocated_at_us = f.at_us
        FROM (SELECT node_id, min(at_us) AS at_us FROM facts GROUP BY node_id) f
        WHERE n.node_id = f.node_id AND n.equivocated_at_us IS NULL""",
    ),
    Rule(
        ("node.key_rotated.v1",),
        "node_id text, key_id text, public_key text, from_seq bigint, at_us bigint",
        """INSERT INTO own.node_key
        SELECT node_id, key_id, public_key, at_us, position, from_seq, false FROM facts""",
    ),
    Rule(
        ("node.key_rotated.v1",),
        "node_id text, token_sha256 text",
        """UPDATE own.node n SET token_sha256 = f.token_sha256 FROM (
            SELECT DISTINCT ON (node_id) * FROM facts WHERE token_sha256 IS NOT NULL
            ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.old_key_revoked.v1",),
        "node_id text, key_id text",
        """UPDATE own.node_key k SET old_revoked = true FROM facts f
        WHERE k.node_id = f.node_id AND k.key_id = f.key_id""",
    ),
    Rule(
        ("node.key_revoked.v1",),
        "node_id text, at_us bigint",
        """UPDATE own.node n SET revoked_at_us = f.at_us
        FROM (SELECT node_id, min(at_us) AS at_us FROM facts GROUP BY node_id) f
        WHERE n.node_id = f.node_id AND n.revoked_at_us IS NULL""",
    ),
    Rule(
        ("node.executor_key_issued.v1", "node.executor_key_revoked.v1"),
        "node_id text, key_sha256 text, at_us bigint",
        """INSERT INTO own.executor
        SELECT DISTINCT ON (node_id) node_id, key_sha256, at_us, position
        FROM facts ORDER BY node_id, position DESC
        ON CONFLICT (node_id) DO UPDATE SET key_sha256 = excluded.key_sha256,
            at_us = excluded.at_us, position = excluded.position""",
    ),
)

ACCESS = Projection("access", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Account:
    account_id: str
    kind: str
    opened_by: str
    at_us: int
    closed_at_us: int | None
    position: int
    verified_at_us: int | None

    @property
    def is_unverified(self) -> bool:
        """Whether it signed itself up, and the operator has not said who is behind it."""
        return self.opened_by == SIGN_UP and self.verified_at_us is None


@dataclass(frozen=True, slots=True)
class Member:
    """`removed_at_us` None: still a member."""

    account_id: str
    member_id: str
    role: str
    at_us: int
    removed_at_us: int | None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Valid while not expired and, if revoked, before `revoked_at_us`."""

    key_sha256: str
    key_id: str
    account_id: str
    account_kind: str
    member_id: str
    role: str | None
    scopes: list[str]
    expires_at_us: int | None
    revoked_at_us: int | None
    succeeds: str | None
    at_us: int
    is_unverified: bool

    @property
    def effective(self) -> frozenset[str]:
        """The scopes that the member's present role leaves; none of a former member."""
        if self.role is None:
            return frozenset()
        return effective_scopes(self.account_kind, self.role, self.scopes)


@dataclass(frozen=True, slots=True)
class Invitation:
    """One that waits for its invitee until `expires_at_us`."""

    account_id: str
    invitation_id: str
    member_id: str
    role: str
    scopes: list[str]
    key_expires_at_us: int | None
    expires_at_us: int


@dataclass(frozen=True, slots=True)
class NodeKey:
    """A node's Ed25519 key. It signs the reports from `from_seq` on, up to that of the next key.
    Unconfirmed, equivocated and revoked nodes may not report; a retired node still empties its
    spool.
    """

    node_id: str
    provider_id: str
    key_id: str
    public_key: str
    confirmed_at_us: int | None
    retired_at_us: int | None
    equivocated_at_us: int | None
    revoked_at_us: int | None
    from_seq: int
    old_revoked: bool


@dataclass(frozen=True, slots=True)
class Wallet:
    account_id: str
    address: str
    effective_at_us: int
    at_us: int
    position: int


_KEY = """
    SELECT k.key_sha256, k.key_id, k.account_id, a.kind AS account_kind, k.member_id, m.role,
        k.scopes, k.expires_at_us, k.revoked_at_us, k.succeeds, k.at_us,
        a.opened_by = 'sign-up' AND a.verified_at_us IS NULL AS is_unverified
    FROM proj_access.api_key k JOIN proj_access.account a USING (account_id)
    LEFT JOIN proj_access.member m ON m.account_id = k.account_id
        AND m.member_id = k.member_id AND m.removed_at_us IS NULL
"""
_NODE_KEY = """
    SELECT n.node_id, n.provider_id, k.key_id, k.public_key, k.confirmed_at_us, n.retired_at_us,
        n.equivocated_at_us, n.revoked_at_us, k.from_seq, k.old_revoked
    FROM proj_access.node n JOIN proj_access.node_key k USING (node_id)
"""


def read_account(connection: Connection, account_id: str) -> Account | None:
    return read.one(
        connection,
        Account,
        "SELECT * FROM proj_access.account WHERE account_id = %(id)s",
        id=account_id,
    )


def read_accounts(
    connection: Connection,
    *,
    account_id: str | None = None,
    kind: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Account]:
    """In order of opening; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_access.account WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        AND (%(kind)s::text IS NULL OR kind = %(kind)s) ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection, Account, sql, way, account=account_id, kind=kind, after=after, limit=limit
    )


def count_sign_ups(connection: Connection, since_us: int) -> int:
    """Accounts that signed themselves up since then, also those that are closed by now."""
    sql = "SELECT count(*) FROM proj_access.account WHERE opened_by = %s AND at_us > %s"
    row = connection.execute(sql, (SIGN_UP, since_us)).fetchone()
    assert row is not None
    return int(row[0])


def read_unverified(connection: Connection, until_us: int, after: str, limit: int) -> list[str]:
    """Open accounts that signed themselves up by then and were not verified, by id."""
    sql = """SELECT account_id FROM proj_access.account
        WHERE opened_by = %s AND verified_at_us IS NULL AND closed_at_us IS NULL
            AND at_us <= %s AND account_id > %s
        ORDER BY account_id LIMIT %s"""
    found = connection.execute(sql, (SIGN_UP, until_us, after, limit))
    return [str(account_id) for (account_id,) in found]


def read_members(connection: Connection, account_id: str) -> list[Member]:
    """Present and former members, first added first."""
    sql = """SELECT account_id, member_id, role, at_us, removed_at_us FROM proj_access.member
        WHERE account_id = %(id)s ORDER BY position, member_id"""
    return read.many(connection, Member, sql, id=account_id)


def read_api_key(connection: Connection, key_sha256: str) -> ApiKey | None:
    """The key whose SHA-256 (hex) this is, with its member's present role."""
    return read.one(connection, ApiKey, _KEY + "WHERE k.key_sha256 = %(h)s", h=key_sha256)


def read_api_key_of(connection: Connection, account_id: str, key_id: str) -> ApiKey | None:
    """A key by its public id, with its member's present role."""
    sql = _KEY + "WHERE k.account_id = %(account)s AND k.key_id = %(key)s"
    return read.one(connection, ApiKey, sql, account=account_id, key=key_id)


def read_api_keys(connection: Connection, account_id: str) -> list[ApiKey]:
    """All keys of an account, revoked ones too, oldest first."""
    sql = _KEY + "WHERE k.account_id = %(id)s ORDER BY k.position"
    return read.many(connection, ApiKey, sql, id=account_id)


def read_invitations(connection: Connection, account_id: str, at_us: int) -> list[Invitation]:
    """Those that wait at this moment, oldest first."""
    sql = """SELECT account_id, invitation_id, member_id, role, scopes, key_expires_at_us,
            expires_at_us
        FROM proj_access.invitation
        WHERE account_id = %(id)s AND NOT over AND expires_at_us > %(at)s ORDER BY position"""
    return read.many(connection, Invitation, sql, id=account_id, at=at_us)


def read_account_of_invitation(connection: Connection, code_sha256: str) -> str | None:
    """The account that invites with the code whose SHA-256 (hex) this is, also a used one."""
    row = connection.execute(
        "SELECT account_id FROM proj_access.invitation WHERE code_sha256 = %s", (code_sha256,)
    ).fetchone()
    return None if row is None else str(row[0])


def read_node_keys(connection: Connection, node_id: str | None = None) -> list[NodeKey]:
    """The keys of one node, or of all: ingest keeps them in memory. A node's first key first."""
    sql = (
        _NODE_KEY + "WHERE %(id)s::text IS NULL OR n.node_id = %(id)s ORDER BY node_id, k.from_seq"
    )
    return read.many(connection, NodeKey, sql, id=node_id)


def read_trusted(connection: Connection, node_ids: Sequence[str]) -> list[str]:
    """Those of these nodes that are neither in quarantine for what they signed nor revoked."""
    found = connection.execute(
        """SELECT node_id FROM proj_access.node WHERE node_id = ANY(%s)
        AND equivocated_at_us IS NULL AND revoked_at_us IS NULL""",
        (list(node_ids),),
    )
    return [str(node_id) for (node_id,) in found]


def read_node_by_token(connection: Connection, token_sha256: str) -> NodeKey | None:
    """The node this bearer token (SHA-256, hex) is bound to, with its newest key."""
    sql = _NODE_KEY + "WHERE n.token_sha256 = %(h)s ORDER BY k.position DESC LIMIT 1"
    return read.one(connection, NodeKey, sql, h=token_sha256)


def read_executor(connection: Connection, key_sha256: str) -> str | None:
    """The node for which this key (SHA-256, hex) runs the work; one that is gone has none."""
    row = connection.execute(
        """SELECT node_id FROM proj_access.executor e JOIN proj_access.node n USING (node_id)
        WHERE e.key_sha256 = %s AND n.retired_at_us IS NULL AND n.revoked_at_us IS NULL""",
        (key_sha256,),
    ).fetchone()
    return None if row is None else str(row[0])


def read_wallets(connection: Connection, account_id: str) -> list[Wallet]:
    """Every wallet ever linked, oldest first; paid is the last one in effect."""
    sql = "SELECT * FROM proj_access.wallet WHERE account_id = %(id)s ORDER BY position"
    return read.many(connection, Wallet, sql, id=account_id)


def read_account_of_wallet(connection: Connection, address: str, at_us: int) -> Account | None:
    """The open account that is paid to this address (lower case) at this moment."""
    sql = """SELECT a.* FROM proj_access.account a JOIN LATERAL (
            SELECT w.address FROM proj_access.wallet w
            WHERE w.account_id = a.account_id AND w.effective_at_us <= %(at)s
            ORDER BY w.position DESC LIMIT 1) paid ON true
        WHERE a.account_id IN (
            SELECT account_id FROM proj_access.wallet WHERE address = %(address)s)
            AND paid.address = %(address)s AND a.closed_at_us IS NULL"""
    return read.one(connection, Account, sql, address=address, at=at_us)
