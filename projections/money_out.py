"""What is on its way out to those who earned it: held back, payable, swept?

    sum(held.units of an account) == its holdback + what was taken out of it before it matured

`held` has one row per position that credited an account's holdback and has not matured: whatever
fact it was, the books say it. Rows go when they mature, so whoever looks for what is due reads
only that. `payee` has one row per account that ever earned, was swept to, or said how it is paid.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.held (
        position bigint NOT NULL, account_id text COLLATE "C" NOT NULL, units bigint NOT NULL,
        recorded_us bigint NOT NULL, PRIMARY KEY (position, account_id));
    COMMENT ON TABLE own.held IS 'Credited to holdback, and not matured yet';
    CREATE TABLE own.payee (
        account_id text COLLATE "C" PRIMARY KEY, payable bigint NOT NULL DEFAULT 0,
        earned bigint NOT NULL DEFAULT 0, matured bigint NOT NULL DEFAULT 0,
        reduced bigint NOT NULL DEFAULT 0, swept bigint NOT NULL DEFAULT 0, swept_day int,
        matured_through bigint NOT NULL DEFAULT 0,
        mode text NOT NULL DEFAULT 'credits', billing_account_id text, destination text)
        WITH (fillfactor = 70);
    COMMENT ON COLUMN own.payee.matured IS 'matured, reduced and swept are lifetime totals';
"""

_INDEXES = """
    CREATE INDEX ON own.held (account_id, position);
    CREATE INDEX ON own.payee (account_id) WHERE payable > 0;
"""


def _balance(part: str) -> Rule:
    """The present balance of one kind of party account, as its last posting left it."""
    return Rule(
        (),
        "",
        f"""INSERT INTO own.payee AS t (account_id, {part})
        SELECT split_part(a.name, ':', 2), (array_agg(l.after ORDER BY p.position DESC))[1]
        FROM public.posting p
        CROSS JOIN LATERAL unnest(p.accounts, p.balances_after) l(account, after)
        JOIN public.account a ON a.id = l.account
        WHERE p.position > %(first)s AND p.position <= %(last)s AND p.asset = 'CREDIT'
            AND a.name LIKE 'party:%%:{part}'
        GROUP BY a.name
        ON CONFLICT (account_id) DO UPDATE SET {part} = excluded.{part}""",
    )


_RULES = (
    Rule(
        (),
        "",
        """INSERT INTO own.held
        SELECT p.position, split_part(a.name, ':', 2), -l.units, e.recorded_us
        FROM public.posting p
        CROSS JOIN LATERAL unnest(p.accounts, p.units) l(account, units)
        JOIN public.account a ON a.id = l.account
        JOIN public.market_events e ON e.notification_id = p.position
        WHERE p.position > %(first)s AND p.position <= %(last)s AND p.asset = 'CREDIT'
            AND l.units < 0 AND a.name LIKE 'party:%%:holdback'""",
    ),
    Rule(
        ("earnings.matured.v1",),
        "account_id text, through_position bigint",
        """DELETE FROM own.held h USING facts f
        WHERE h.account_id = f.account_id AND h.position <= f.through_position""",
    ),
    _balance("payable"),
    _balance("earned"),
    Rule(
        ("earnings.matured.v1",),
        "account_id text, amount json, reduced json, through_position bigint",
        """INSERT INTO own.payee AS t (account_id, matured, reduced, matured_through)
        SELECT account_id, sum((amount->>'units')::bigint), sum((reduced->>'units')::bigint),
            max(through_position)
        FROM facts GROUP BY account_id
        ON CONFLICT (account_id) DO UPDATE SET matured = t.matured + excluded.matured,
            reduced = t.reduced + excluded.reduced,
            matured_through = excluded.matured_through""",
    ),
    Rule(
        ("earnings.swept.v1",),
        "account_id text, amount json, day int",
        """INSERT INTO own.payee AS t (account_id, swept, swept_day)
        SELECT account_id, sum((amount->>'units')::bigint), max(day) FROM facts
        GROUP BY account_id
        ON CONFLICT (account_id) DO UPDATE SET swept = t.swept + excluded.swept,
            swept_day = excluded.swept_day""",
    ),
    Rule(
        ("earnings.payment_mode_set.v1",),
        "account_id text, mode text, billing_account_id text, destination text",
        """INSERT INTO own.payee AS t (account_id, mode, billing_account_id, destination)
        SELECT DISTINCT ON (account_id) account_id, mode, billing_account_id, destination
        FROM facts ORDER BY account_id, position DESC
        ON CONFLICT (account_id) DO UPDATE SET mode = excluded.mode,
            billing_account_id = excluded.billing_account_id,
            destination = excluded.destination""",
    ),
)

MONEY_OUT = Projection("money_out", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Due:
    """Credited to an account's holdback after one position up to another, in micro-credits."""

    account_id: str
    after_position: int  # matured up to here, in the same view that found the rest
    gross: int


@dataclass(frozen=True, slots=True)
class Held:
    """Credited to holdback at one position and not matured; `units` before reductions."""

    position: int
    units: int
    recorded_us: int


def read_due(
    connection: Connection, through_position: int, *, after: str = "", limit: int = 1_000
) -> list[Due]:
    """Accounts with earnings that have not matured at or before a position, by account.

    Accounts with nothing there are not looked at: the rows are those of an index by position.
    """
    sql = """SELECT h.account_id, coalesce(p.matured_through, 0) AS after_position, h.gross
        FROM (
            SELECT account_id, sum(units)::bigint AS gross FROM proj_money_out.held
            WHERE position <= %(through)s AND account_id > %(after)s
            GROUP BY account_id ORDER BY account_id LIMIT %(limit)s
        ) h LEFT JOIN proj_money_out.payee p USING (account_id) ORDER BY h.account_id"""
    return read.many(connection, Due, sql, through=through_position, after=after, limit=limit)


def read_held(connection: Connection, account_id: str, *, limit: int = 50) -> list[Held]:
    """What is held back of one account, in the order in which it matures."""
    sql = """SELECT position, units, recorded_us FROM proj_money_out.held
        WHERE account_id = %(account)s ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, Held, sql, account=account_id, limit=limit)


_PAYEE = """SELECT account_id, payable, earned, matured, reduced, swept, swept_day, mode,
    billing_account_id, destination FROM proj_money_out.payee"""


@dataclass(frozen=True, slots=True)
class Payee:
    """Balances now and lifetime totals in micro-credits; `swept_day` in UTC days since 1970."""

    account_id: str
    payable: int
    earned: int
    matured: int
    reduced: int
    swept: int
    swept_day: int | None
    mode: str
    billing_account_id: str | None
    destination: str | None


def read_payee(connection: Connection, account_id: str) -> Payee:
    """How one account stands; all zeros when it never earned."""
    found = read.one(
        connection, Payee, f"{_PAYEE} WHERE account_id = %(account)s", account=account_id
    )
    return found or Payee(account_id, 0, 0, 0, 0, 0, None, "credits", None, None)


def read_payable(
    connection: Connection, day: int, *, after: str = "", limit: int = 1_000
) -> list[Payee]:
    """Accounts with something payable that were not swept on this UTC day, by account."""
    sql = f"""{_PAYEE} WHERE payable > 0 AND coalesce(swept_day, -1) < %(day)s
        AND account_id > %(after)s ORDER BY account_id LIMIT %(limit)s"""
    return read.many(connection, Payee, sql, day=day, after=after, limit=limit)
