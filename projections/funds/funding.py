"""Which promotions and grants are there, who was granted what, who pays for whom, which caps?

    granted of a program == sum of its grants

What a grant or a cap has left is not here: the books and the budget's own stream say that, and
never lag.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.program (
        program text COLLATE "C" PRIMARY KEY, sponsor_account_id text NOT NULL,
        opened bigint NOT NULL, granted bigint NOT NULL, closed_at_us bigint,
        at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.promotion (
        account_id text COLLATE "C", program text COLLATE "C", priority int NOT NULL,
        expires_at_us bigint, granted bigint NOT NULL, breakage bigint NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (account_id, program));
    CREATE TABLE own.payer (
        position bigint PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        payer_account_id text COLLATE "C" NOT NULL, at_us bigint NOT NULL, ended_at_us bigint);
    CREATE INDEX ON own.payer (account_id, position);
    CREATE TABLE own.budget (
        account_id text COLLATE "C", scope text COLLATE "C", target text COLLATE "C",
        limit_units bigint, at_us bigint NOT NULL, PRIMARY KEY (account_id, scope, target));
    CREATE TABLE own.milestone_grant (
        grant_id text COLLATE "C" PRIMARY KEY, at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE INDEX ON own.milestone_grant (position);
"""

_INDEXES = """
    CREATE INDEX ON own.promotion (program, position);
    CREATE INDEX ON own.promotion (expires_at_us);
    CREATE INDEX ON own.payer (payer_account_id, position);
"""

_RULES = (
    Rule(
        ("promotion.opened.v1",),
        "program text, sponsor_account_id text, amount json, at_us bigint",
        """INSERT INTO own.program
        SELECT program, sponsor_account_id, (amount->>'units')::bigint, 0, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("promotion.closed.v1",),
        "program text, at_us bigint",
        """UPDATE own.program p SET closed_at_us = f.at_us FROM facts f
        WHERE p.program = f.program""",
    ),
    Rule(
        ("promotion.granted.v1",),
        "program text, amount json",
        """UPDATE own.program p SET granted = p.granted + f.units FROM (
            SELECT program, sum((amount->>'units')::bigint) AS units FROM facts GROUP BY program) f
        WHERE p.program = f.program""",
    ),
    Rule(
        ("promotion.granted.v1",),
        "account_id text, program text, priority int, expires_at_us bigint, amount json,"
        " at_us bigint",
        """INSERT INTO own.promotion AS p
        SELECT account_id, program, min(priority), min(expires_at_us),
            sum((amount->>'units')::bigint), 0, min(at_us), min(position)
        FROM facts GROUP BY account_id, program
        ON CONFLICT (account_id, program) DO UPDATE SET granted = p.granted + excluded.granted""",
    ),
    Rule(
        ("promotion.expired.v1",),
        "account_id text, program text, amount json",
        """UPDATE own.promotion p SET breakage = p.breakage + f.units FROM (
            SELECT account_id, program, sum((amount->>'units')::bigint) AS units FROM facts
            GROUP BY account_id, program) f
        WHERE p.account_id = f.account_id AND p.program = f.program""",
    ),
    Rule(
        ("funding.payer_set.v1",),
        "account_id text, payer_account_id text, at_us bigint",
        """INSERT INTO own.payer
        SELECT position, account_id, payer_account_id, at_us, NULL FROM facts""",
    ),
    Rule(
        ("funding.payer_ended.v1",),
        "account_id text, at_us bigint",
        """UPDATE own.payer p SET ended_at_us = f.at_us FROM facts f
        WHERE p.position = (
            SELECT max(q.position) FROM own.payer q
            WHERE q.account_id = f.account_id AND q.position < f.position)""",
    ),
    Rule(
        ("grant.proposed.v1",),
        "grant_id text, at_us bigint",
        "INSERT INTO own.milestone_grant SELECT grant_id, at_us, position FROM facts",
    ),
    Rule(
        ("budget.set.v1",),
        "account_id text, scope text, target text, monthly json, at_us bigint",
        """INSERT INTO own.budget
        SELECT DISTINCT ON (account_id, scope, target) account_id, scope, target,
            (monthly->>'units')::bigint, at_us
        FROM facts ORDER BY account_id, scope, target, position DESC
        ON CONFLICT (account_id, scope, target) DO UPDATE
            SET limit_units = excluded.limit_units, at_us = excluded.at_us""",
    ),
)

FUNDING = Projection("funding", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Program:
    """Micro-credits; the fund holds what was opened and not granted until the program is closed."""

    program: str
    sponsor_account_id: str
    opened: int
    granted: int
    closed_at_us: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Promotion:
    """What one account was granted by one program; `breakage`: what of it has expired so far."""

    account_id: str
    program: str
    priority: int
    expires_at_us: int | None
    granted: int
    breakage: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Payer:
    position: int
    account_id: str
    payer_account_id: str
    at_us: int
    ended_at_us: int | None


@dataclass(frozen=True, slots=True)
class Budget:
    """`limit_units` None: the cap was taken away again."""

    account_id: str
    scope: str
    target: str
    limit_units: int | None
    at_us: int


@dataclass(frozen=True, slots=True)
class MilestoneGrant:
    """That it was proposed; how far it has come, its own stream says."""

    grant_id: str
    at_us: int
    position: int


def read_grants(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[MilestoneGrant]:
    """Milestone grants in the order of their proposals."""
    sql = """SELECT * FROM proj_funding.milestone_grant WHERE position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, MilestoneGrant, sql, way, after=after, limit=limit)


def read_programs(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Program]:
    """In order of opening."""
    sql = """SELECT * FROM proj_funding.program WHERE position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Program, sql, way, after=after, limit=limit)


def read_program(connection: Connection, program: str) -> Program | None:
    sql = "SELECT * FROM proj_funding.program WHERE program = %(program)s"
    return read.one(connection, Program, sql, program=program)


def read_promotions(
    connection: Connection,
    *,
    account_id: str | None = None,
    program: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Promotion]:
    """Grants of promotions in order of the first one of each program and account."""
    sql = """SELECT * FROM proj_funding.promotion WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        AND (%(program)s::text IS NULL OR program = %(program)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Promotion,
        sql,
        way,
        account=account_id,
        program=program,
        after=after,
        limit=limit,
    )


def read_expired(connection: Connection, at_us: int, limit: int) -> list[tuple[str, str]]:
    """(account_id, program) of grants that have expired and still hold something: not spent, or
    come back from an escrow.
    """
    rows = connection.execute(
        """SELECT p.account_id, p.program FROM proj_funding.promotion p
        JOIN public.account a ON a.name = 'party:' || p.account_id || ':grant.' || p.program
        WHERE p.expires_at_us <= %s AND a.units > 0 ORDER BY p.position LIMIT %s""",
        (at_us, limit),
    )
    return [(str(account_id), str(program)) for account_id, program in rows]


def read_payer(connection: Connection, account_id: str) -> Payer | None:
    """Who pays for an account now."""
    sql = """SELECT * FROM proj_funding.payer WHERE account_id = %(id)s AND ended_at_us IS NULL
        ORDER BY position DESC LIMIT 1"""
    return read.one(connection, Payer, sql, id=account_id)


def read_funded(
    connection: Connection,
    payer_account_id: str,
    *,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Payer]:
    """Whom an account pays for, former ones too, in order."""
    sql = """SELECT * FROM proj_funding.payer WHERE payer_account_id = %(id)s
        AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Payer, sql, way, id=payer_account_id, after=after, limit=limit)


def read_budgets(
    connection: Connection, account_id: str, *, after: tuple[str, str] = ("", ""), limit: int = 50
) -> list[Budget]:
    """The caps an account has set, by scope and target."""
    sql = """SELECT * FROM proj_funding.budget WHERE account_id = %(id)s
        AND limit_units IS NOT NULL AND (scope, target) > (%(scope)s, %(target)s)
        ORDER BY scope, target LIMIT %(limit)s"""
    return read.many(
        connection, Budget, sql, id=account_id, scope=after[0], target=after[1], limit=limit
    )
