"""What is on its way out to those who earned it: held back, payable, swept?

    sum(held.units of an account) == its holdback + what was taken out of it before it matured

`held` has one row per position that credited an account's holdback and has not matured: whatever
fact it was, the books say it. Rows go when they mature, so whoever looks for what is due reads
only that. `brought` tells by compute client what came in and left (row R-1). `payee` has one row
per account that ever earned, was swept to, or said how it is paid; `cash_out`, `hold` and
`difference` one per fact that began them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import EVERY, Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.held (
        position bigint NOT NULL, account_id text COLLATE "C" NOT NULL, units bigint NOT NULL,
        recorded_us bigint NOT NULL,
        client_id text COLLATE "C" NOT NULL DEFAULT '', reduced bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (position, account_id), CHECK (reduced <= units));
    COMMENT ON TABLE own.held IS 'Credited to holdback, and not matured yet; of it, taken out';
    CREATE TABLE own.brought (
        account_id text COLLATE "C", client_id text COLLATE "C", matured bigint NOT NULL DEFAULT 0,
        received bigint NOT NULL DEFAULT 0, swept bigint NOT NULL DEFAULT 0,
        paid bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (account_id, client_id)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.brought IS 'Lifetime totals by the client that brought the work';
    CREATE TABLE own.payee (
        account_id text COLLATE "C" PRIMARY KEY, payable bigint NOT NULL DEFAULT 0,
        earned bigint NOT NULL DEFAULT 0, matured bigint NOT NULL DEFAULT 0,
        reduced bigint NOT NULL DEFAULT 0, swept bigint NOT NULL DEFAULT 0, swept_day int,
        matured_through bigint NOT NULL DEFAULT 0,
        mode text NOT NULL DEFAULT 'credits', billing_account_id text, destination text)
        WITH (fillfactor = 70);
    COMMENT ON COLUMN own.payee.matured IS 'matured, reduced and swept are lifetime totals';
    CREATE TABLE own.cash_out (
        cash_out_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        units bigint NOT NULL, destination text NOT NULL, requested_by text NOT NULL,
        requested_us bigint NOT NULL, position bigint NOT NULL, state text NOT NULL,
        processor text, asked_us bigint, reference text, instructions text, reason text,
        ended_us bigint, returned bigint NOT NULL DEFAULT 0, clients json NOT NULL)
        WITH (fillfactor = 70);
    CREATE TABLE own.hold (
        account_id text COLLATE "C", hold_id text COLLATE "C", reason text NOT NULL,
        held_by text NOT NULL, held_us bigint NOT NULL, position bigint NOT NULL,
        released_us bigint, PRIMARY KEY (account_id, hold_id));
    CREATE TABLE own.difference (
        difference_id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, reference text,
        cash_out_id text, expected bigint, found bigint, found_us bigint NOT NULL,
        position bigint NOT NULL, note text, settled_by text, settled_us bigint);
"""

_INDEXES = """
    CREATE INDEX ON own.held (account_id, position);
    CREATE INDEX ON own.payee (account_id) WHERE payable > 0;
    CREATE INDEX ON own.payee (account_id) WHERE mode = 'cash';
    CREATE INDEX ON own.cash_out (account_id, position);
    CREATE INDEX ON own.cash_out (position) WHERE state IN ('requested', 'started', 'sent');
    CREATE INDEX ON own.cash_out (asked_us) WHERE asked_us IS NOT NULL;
    CREATE INDEX ON own.difference (position);
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


def _brought(topic: str, column: str, key: str = "account_id") -> Rule:
    """What the facts of a name tell by client, added up."""
    return Rule(
        (topic,),
        f"{key} text, clients json",
        f"""INSERT INTO own.brought AS t (account_id, client_id, {column})
        SELECT {"account_id" if key == "account_id" else _OWNER}, one->>'client_id',
            sum((one->>'units')::bigint)
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.clients) one GROUP BY 1, 2
        ON CONFLICT (account_id, client_id)
        DO UPDATE SET {column} = t.{column} + excluded.{column}""",
    )


_OWNER = "(SELECT account_id FROM own.cash_out c WHERE c.cash_out_id = f.cash_out_id)"

_RULES = (
    Rule(
        (EVERY,),
        "client_id text",
        """INSERT INTO own.held
        SELECT p.position, split_part(a.name, ':', 2), -l.units, f.recorded_us,
            coalesce(f.client_id, '')
        FROM facts f JOIN public.posting p ON p.position = f.position
        CROSS JOIN LATERAL unnest(p.accounts, p.units) l(account, units)
        JOIN public.account a ON a.id = l.account
        WHERE p.position > %(first)s AND p.position <= %(last)s AND p.asset = 'CREDIT'
            AND l.units < 0 AND a.name LIKE 'party:%%:holdback'""",
    ),
    Rule(
        (),  # read here: the body has a position of its own
        "",
        """UPDATE own.held h SET reduced = h.reduced + f.units
        FROM (
            SELECT b.account_id, b.position, sum(b.units) AS units FROM public.market_events e
            CROSS JOIN LATERAL json_to_record(convert_from(e.state, 'UTF8')::json)
                AS b(account_id text, position bigint, units bigint)
            WHERE e.topic = 'earnings.reduced.v1' AND e.notification_id > %(first)s
                AND e.notification_id <= %(last)s
            GROUP BY 1, 2
        ) f WHERE h.account_id = f.account_id AND h.position = f.position""",
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
    Rule(
        ("cash_out.requested.v1",),
        "cash_out_id text, account_id text, amount json, destination text, by text, at_us bigint,"
        " clients json",
        """INSERT INTO own.cash_out
        SELECT cash_out_id, account_id, (amount->>'units')::bigint, destination, by, at_us,
            position, 'requested', NULL, NULL, NULL, NULL, NULL, NULL, 0, clients FROM facts""",
    ),
    _brought("earnings.matured.v1", "matured"),
    _brought("earnings.brought.v1", "received"),
    _brought("earnings.swept.v1", "swept"),
    _brought("cash_out.paid.v1", "paid", key="cash_out_id"),
    Rule(
        ("cash_out.started.v1",),
        "cash_out_id text, processor text, at_us bigint",
        """UPDATE own.cash_out t SET state = 'started', processor = f.processor,
            asked_us = f.at_us
        FROM facts f WHERE t.cash_out_id = f.cash_out_id""",
    ),
    Rule(
        ("cash_out.sent.v1",),
        "cash_out_id text, reference text, instructions text",
        """UPDATE own.cash_out t SET state = 'sent', reference = f.reference,
            instructions = f.instructions
        FROM facts f WHERE t.cash_out_id = f.cash_out_id""",
    ),
    Rule(
        ("cash_out.paid.v1", "cash_out.failed.v1", "cash_out.cancelled.v1"),
        "cash_out_id text, reason text, at_us bigint",
        """UPDATE own.cash_out t SET state = split_part(f.topic, '.', 2), reason = f.reason,
            ended_us = f.at_us
        FROM facts f WHERE t.cash_out_id = f.cash_out_id""",
    ),
    Rule(
        ("cash_out.returned.v1",),
        "cash_out_id text, amount json, reason text",
        """UPDATE own.cash_out t SET returned = t.returned + f.units, reason = f.reason
        FROM (
            SELECT cash_out_id, sum((amount->>'units')::bigint) AS units,
                (array_agg(reason ORDER BY position DESC))[1] AS reason
            FROM facts GROUP BY cash_out_id
        ) f WHERE t.cash_out_id = f.cash_out_id""",
    ),
    Rule(
        ("cash_out.held.v1",),
        "account_id text, hold_id text, reason text, by text, at_us bigint",
        """INSERT INTO own.hold
        SELECT DISTINCT ON (account_id, hold_id) account_id, hold_id, reason, by, at_us, position
        FROM facts ORDER BY account_id, hold_id, position DESC
        ON CONFLICT (account_id, hold_id) DO UPDATE SET reason = excluded.reason,
            held_by = excluded.held_by, held_us = excluded.held_us,
            position = excluded.position, released_us = NULL""",
    ),
    Rule(
        ("cash_out.released.v1",),
        "account_id text, hold_id text, at_us bigint",
        """UPDATE own.hold t SET released_us = f.at_us
        FROM (
            SELECT DISTINCT ON (account_id, hold_id) * FROM facts
            ORDER BY account_id, hold_id, position DESC
        ) f
        WHERE t.account_id = f.account_id AND t.hold_id = f.hold_id
            AND f.position > t.position""",
    ),
    Rule(
        ("payout.difference_found.v1",),
        "difference_id text, kind text, reference text, cash_out_id text, expected json,"
        " found json, at_us bigint",
        """INSERT INTO own.difference
        SELECT difference_id, kind, reference, cash_out_id, (expected->>'units')::bigint,
            (found->>'units')::bigint, at_us, position FROM facts""",
    ),
    Rule(
        ("payout.difference_settled.v1",),
        "difference_id text, note text, by text, at_us bigint",
        """UPDATE own.difference t SET note = f.note, settled_by = f.by, settled_us = f.at_us
        FROM facts f WHERE t.difference_id = f.difference_id""",
    ),
)

MONEY_OUT = Projection("money_out", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Due:
    """Credited to an account's holdback after one position up to another, in micro-credits."""

    account_id: str
    after_position: int  # matured up to here, in the same view that found the rest
    gross: int
    clients: list[tuple[str, int]]  # of it, without reductions, by who brought the work


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
    sql = """SELECT h.account_id, coalesce(p.matured_through, 0) AS after_position, h.gross,
            h.clients
        FROM (
            SELECT account_id, sum(gross)::bigint AS gross,
                json_agg(json_build_array(client_id, net) ORDER BY net DESC, client_id) AS clients
            FROM (
                SELECT account_id, client_id, sum(units)::bigint AS gross,
                    sum(units - reduced)::bigint AS net
                FROM proj_money_out.held
                WHERE position <= %(through)s AND account_id > %(after)s
                GROUP BY account_id, client_id) c
            GROUP BY account_id ORDER BY account_id LIMIT %(limit)s
        ) h LEFT JOIN proj_money_out.payee p USING (account_id) ORDER BY h.account_id"""
    return read.many(connection, Due, sql, through=through_position, after=after, limit=limit)


def read_held(connection: Connection, account_id: str, *, limit: int = 50) -> list[Held]:
    """What is held back of one account, in the order in which it matures."""
    sql = """SELECT position, units, recorded_us FROM proj_money_out.held
        WHERE account_id = %(account)s ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, Held, sql, account=account_id, limit=limit)


@dataclass(frozen=True, slots=True)
class Brought:
    """What of an account's money one client brought, over its lifetime, in micro-credits: matured,
    received from accounts and regions that pay it, swept, and paid out in cash,
    whatever came back of that.
    """

    client_id: str
    matured: int
    received: int
    swept: int
    paid: int


def read_brought(connection: Connection, account_id: str, *, limit: int = 200) -> list[Brought]:
    """By client, the one that brought most first; an empty id: no client is known."""
    sql = """SELECT client_id, matured, received, swept, paid
        FROM proj_money_out.brought WHERE account_id = %(account)s
        ORDER BY matured + received DESC, client_id LIMIT %(limit)s"""
    return read.many(connection, Brought, sql, account=account_id, limit=limit)


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


def read_paid_in_cash(
    connection: Connection, least: int, *, after: str = "", limit: int = 1_000
) -> list[Payee]:
    """Accounts in payment mode cash that have earned at least so much, by account."""
    sql = f"""{_PAYEE} WHERE mode = 'cash' AND earned >= %(least)s AND account_id > %(after)s
        ORDER BY account_id LIMIT %(limit)s"""
    return read.many(connection, Payee, sql, least=least, after=after, limit=limit)


# --- cash-outs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CashOut:
    """`state`: requested, started, sent, paid, failed, cancelled; amounts in micro-credits."""

    cash_out_id: str
    account_id: str
    units: int
    destination: str
    requested_by: str
    requested_us: int
    position: int
    state: str
    processor: str | None
    asked_us: int | None
    reference: str | None
    instructions: str | None
    reason: str | None
    ended_us: int | None
    returned: int
    clients: list[dict[str, str]]  # of `units`: {client_id, units}


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps an account's money here."""

    account_id: str
    hold_id: str
    reason: str
    held_by: str
    held_us: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A payout and a cash-out that do not agree; `settled_us` None: open, and alarming."""

    difference_id: str
    kind: str
    reference: str | None
    cash_out_id: str | None
    expected: int | None
    found: int | None
    found_us: int
    position: int
    note: str | None
    settled_by: str | None
    settled_us: int | None


_CASH_OUT = "SELECT * FROM proj_money_out.cash_out"


_OPEN = "state IN ('requested', 'started', 'sent')"
"""SQL: a cash-out that is not finished, in the words of the index of those."""


def read_cash_outs(
    connection: Connection,
    *,
    account_id: str | None = None,
    is_open: bool | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[CashOut]:
    """Cash-outs in the order in which they were requested; `is_open`: those that are not finished,
    or only those that are.
    """
    of_state = {None: "", True: f"AND {_OPEN}", False: f"AND NOT {_OPEN}"}[is_open]
    sql = f"""{_CASH_OUT} WHERE position > %(after)s {of_state}
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, CashOut, sql, way, account=account_id, after=after, limit=limit)


def read_cash_out(connection: Connection, cash_out_id: str) -> CashOut | None:
    sql = f"{_CASH_OUT} WHERE cash_out_id = %(id)s"
    return read.one(connection, CashOut, sql, id=cash_out_id)


def read_open(
    connection: Connection, *, states: Sequence[str], after: int = 0, limit: int = 1_000
) -> list[CashOut]:
    """Unfinished cash-outs in these of OPEN_STATES, oldest first."""
    sql = f"""{_CASH_OUT} WHERE {_OPEN}
        AND state = ANY(%(states)s) AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, CashOut, sql, states=list(states), after=after, limit=limit)


def read_unfinished(connection: Connection, account_id: str) -> list[str]:
    """Cash-outs of an account that are not finished: it cannot be closed."""
    sql = f"""{_CASH_OUT} WHERE account_id = %(account)s
        AND state IN ('requested', 'started', 'sent') ORDER BY position LIMIT 1000"""
    found = read.many(connection, CashOut, sql, account=account_id)
    return [each.cash_out_id for each in found]


def read_oldest_asked(connection: Connection, processor: str) -> int:
    """When the processor was first asked for a cash-out that is not finished; 0 for none."""
    sql = """SELECT min(asked_us) FROM proj_money_out.cash_out
        WHERE state IN ('requested', 'started', 'sent') AND processor = %(processor)s"""
    return read.number(connection, sql, processor=processor)


def read_to_match(
    connection: Connection, processor: str, since_us: int, named: Sequence[str]
) -> list[CashOut]:
    """Cash-outs that this processor was asked for since a moment, and those of these ids."""
    sql = f"""{_CASH_OUT} WHERE (asked_us >= %(since)s AND processor = %(processor)s)
        OR cash_out_id = ANY(%(named)s) ORDER BY position"""
    return read.many(
        connection, CashOut, sql, since=since_us, processor=processor, named=list(named)
    )


def read_holds(connection: Connection, account_id: str) -> list[Hold]:
    """The holds in force on an account, oldest first."""
    sql = """SELECT account_id, hold_id, reason, held_by, held_us FROM proj_money_out.hold
        WHERE account_id = %(account)s AND released_us IS NULL ORDER BY position"""
    return read.many(connection, Hold, sql, account=account_id)


def read_differences(
    connection: Connection,
    *,
    is_open: bool | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Difference]:
    """Differences in the order in which they were found."""
    sql = """SELECT * FROM proj_money_out.difference WHERE position > %(after)s
        AND (%(open)s::boolean IS NULL OR (settled_us IS NULL) = %(open)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Difference, sql, way, open=is_open, after=after, limit=limit)


@dataclass(frozen=True, slots=True)
class HeldUp:
    """What waits of all accounts; `requested_us`: of the oldest cash-out that has not started."""

    holds: int
    differences: int
    requested_us: int | None


def read_held_up(connection: Connection) -> HeldUp:
    """Holds that are not released, differences that are not settled, and the oldest request."""
    sql = """SELECT (SELECT count(*) FROM proj_money_out.hold WHERE released_us IS NULL) AS holds,
        (SELECT count(*) FROM proj_money_out.difference WHERE settled_us IS NULL) AS differences,
        (SELECT min(requested_us) FROM proj_money_out.cash_out WHERE state = 'requested')
            AS requested_us"""
    found = read.one(connection, HeldUp, sql)
    assert found is not None
    return found
