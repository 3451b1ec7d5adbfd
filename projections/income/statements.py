"""What moved on which account of the books? Journals, statements, and balances as of any position.

    balance as of N == balance_after of the account's last line at or before N

Present balances are not here: the books answer those themselves and never lag. A line keeps only
numbers; which fact moved them is read from the log by its position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.line (
        account int NOT NULL, position bigint NOT NULL, units bigint NOT NULL,
        balance_after bigint NOT NULL);
    COMMENT ON TABLE own.line IS 'One row per account and posting: debit > 0, credit < 0';
    CREATE TABLE own.deposit (
        position bigint PRIMARY KEY, deposit_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C", source text NOT NULL, units bigint NOT NULL,
        reference text NOT NULL, confirmed_by text, tokens_burned bigint, at_us bigint NOT NULL);
    COMMENT ON TABLE own.deposit IS 'Money in: deposits, and credits bought by burning tokens';
"""

_INDEXES = """
    CREATE UNIQUE INDEX line_key ON own.line (account, position)
        INCLUDE (units, balance_after);
    CREATE INDEX ON own.deposit (account_id, position);
"""

_RULES = (
    Rule(
        (),
        "",
        """INSERT INTO own.line
        SELECT l.account, p.position, l.units, l.balance_after
        FROM public.posting p,
            unnest(p.accounts, p.units, p.balances_after) l(account, units, balance_after)
        WHERE p.position > %(first)s AND p.position <= %(last)s""",
    ),
    Rule(
        ("deposit.confirmed.v1",),
        "deposit_id text, account_id text, source text, amount json, reference text,"
        " confirmed_by text, at_us bigint",
        """INSERT INTO own.deposit
        SELECT position, deposit_id, account_id, source, (amount->>'units')::bigint, reference,
            confirmed_by, NULL, at_us
        FROM facts""",
    ),
    Rule(
        ("deposit.credits_purchased.v1",),
        "burner text, purchase_id bigint, account_id text, credits json, tokens_burned json,"
        " tx_hash text, at_us bigint",
        """INSERT INTO own.deposit
        SELECT position, burner || '/' || purchase_id, account_id, 'burned',
            (credits->>'units')::bigint, tx_hash, NULL, (tokens_burned->>'units')::bigint, at_us
        FROM facts""",
    ),
)

STATEMENTS = Projection("statements", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Balance:
    """`units` on the account's normal side; `position` of the last line that made it."""

    account_name: str
    asset: str
    units: int
    position: int


@dataclass(frozen=True, slots=True)
class Line:
    """One account's part of one posting: debit > 0, credit < 0, and its balance after it.

    `topic` is the fact that moved it, `lease_id` where that fact names one.
    """

    account_name: str
    asset: str
    position: int
    units: int
    balance_after: int
    topic: str
    at_us: int
    recorded_us: int
    lease_id: str | None


@dataclass(frozen=True, slots=True)
class Deposit:
    """`account_id` None: credits bought for an account nobody knows."""

    deposit_id: str
    account_id: str | None
    source: str
    units: int
    reference: str
    confirmed_by: str | None
    tokens_burned: int | None
    at_us: int
    position: int


_ACCOUNTS = """(
    SELECT a.* FROM public.account a WHERE a.name = ANY(%(names)s)
    UNION SELECT a.* FROM unnest(%(prefixes)s::text[]) x
    JOIN public.account a ON a.name >= x COLLATE "C" AND a.name < (x || chr(1114111)) COLLATE "C"
) a"""
"""The accounts asked for; a prefix is a range of the index by name."""

POSITION_MAX = 2**63 - 1


def accounts_of(account_id: str) -> list[str]:
    """The prefix under which all book accounts of a party are found."""
    return [f"party:{account_id}:"]


def read_balances(
    connection: Connection,
    *,
    names: Sequence[str] = (),
    prefixes: Sequence[str] = (),
    as_of_position: int | None = None,
) -> list[Balance]:
    """Balances of accounts by name or prefix, now (from the books) or as of a position.

    The projection must have reached `as_of_position`. Accounts without a line by then are left
    out; sorted by name.
    """
    if as_of_position is None:
        sql = f"""SELECT a.name AS account_name, a.asset, a.units, h.pos AS position
            FROM {_ACCOUNTS}, public.market_events_head h ORDER BY a.name"""
    else:
        sql = f"""SELECT a.name AS account_name, a.asset, l.balance_after AS units, l.position
            FROM {_ACCOUNTS} CROSS JOIN LATERAL (
                SELECT balance_after, position FROM proj_statements.line
                WHERE account = a.id AND position <= %(at)s ORDER BY position DESC LIMIT 1) l
            ORDER BY a.name"""
    return read.many(
        connection, Balance, sql, names=list(names), prefixes=list(prefixes), at=as_of_position
    )


def read_lines(
    connection: Connection,
    *,
    names: Sequence[str] = (),
    prefixes: Sequence[str] = (),
    from_us: int | None = None,
    to_us: int | None = None,
    as_of_position: int | None = None,
    after: tuple[int, str] = (0, ""),
    newest: bool = False,
    limit: int = 50,
) -> list[Line]:
    """The journal of some accounts, in order of position, then account name; or the newest first.

    `from_us`, `to_us` bound the recorded time, half-open. `after` is (position, account_name) of
    the last line of the page before.
    """
    last = POSITION_MAX if as_of_position is None else as_of_position
    if to_us is not None:
        last = min(last, read_position_at(connection, to_us - 1))
    first = 0 if newest else after[0]
    last = min(last, after[0]) if newest else last
    beyond, way = ("<", "DESC") if newest else (">", "ASC")
    if from_us is not None:
        first = max(first, read_position_at(connection, from_us - 1) + 1)
    sql = f"""SELECT l.account_name, l.asset, l.position, l.units, l.balance_after, e.topic,
            e.recorded_us, f.at_us, f.lease_id
        FROM (
            SELECT a.name AS account_name, a.asset, b.* FROM {_ACCOUNTS} CROSS JOIN LATERAL (
                SELECT position, units, balance_after FROM proj_statements.line
                WHERE account = a.id AND position BETWEEN %(first)s AND %(last)s
                    AND (position, a.name) {beyond} (%(position)s, %(name)s)
                ORDER BY position {way} LIMIT %(limit)s) b
            ORDER BY b.position {way}, a.name {way} LIMIT %(limit)s
        ) l JOIN public.market_events e ON e.notification_id = l.position
        CROSS JOIN LATERAL json_to_record(convert_from(e.state, 'UTF8')::json)
            AS f(at_us bigint, lease_id text)
        ORDER BY l.position {way}, l.account_name {way}"""
    return read.many(
        connection,
        Line,
        sql,
        names=list(names),
        prefixes=list(prefixes),
        first=first,
        last=last,
        position=after[0],
        name=after[1],
        limit=limit,
    )


def read_deposits(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Deposit]:
    """Confirmed deposits and bought credits in order; `after` is the last position before."""
    sql = """SELECT * FROM proj_statements.deposit WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Deposit, sql, way, account=account_id, after=after, limit=limit)


def read_position_at(connection: Connection, at_us: int) -> int:
    """The last market position recorded at or before a time: what `as_of=<time>` means."""
    return read.number(connection, "SELECT public.market_position_at(%(at)s)", at=at_us)
