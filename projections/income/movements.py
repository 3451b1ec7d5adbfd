"""What moved for a party, on which part of its books and for what? A bill as of any position.

    balance(part, N) == sum over its lines up to N == the party's accounts in the books at N
    sum(change of a kind, from M to N) == kind_change(N) - kind_change(M)

A part is what a party has of one sort: `cash`, `holdback`, and `escrow.cash` for everything it has
put into escrows from that source, whatever the lease and whoever rents; `escrow.federated.cash` for
what it holds for federated fees. Every fact moves a part at
most once, so each unit that moves stands in exactly one line, and each line has exactly one kind:
what the fact was for. Running totals stand beside every line, so sums between any two positions
cost the same for a long month as for a short one, and for a long log as for a short one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from projections import read
from projections.runner import Connection, Projection, Rule

KINDS: Mapping[str, str | tuple[str, str]] = {
    "lease.usage_accrued.v1": ("usage", "earning"),
    "deposit.confirmed.v1": "deposit",
    "deposit.credits_purchased.v1": "purchase",
    "payment.received.v1": "payment",
    "payment.reversed.v1": "reversal",
    "payment.reinstated.v1": "payment",
    "payment.refund_asked.v1": "payment_refund",
    "payment.refund_failed.v1": "payment_refund",
    "card.money_moved.v1": "card_final",
    "debt.repaid.v1": "debt",
    "debt.written_off.v1": "write_off",
    "grant.opened.v1": "milestone_grant",
    "grant.clawed_back.v1": "milestone_grant",
    "promotion.opened.v1": "promotion",
    "promotion.closed.v1": "promotion",
    "promotion.granted.v1": "grant",
    "promotion.expired.v1": "breakage",
    "lease.reserved.v1": "hold",
    "lease.topped_up.v1": "hold",
    "lease.extended.v1": "hold",
    "lease.funds_taken.v1": "reversal",
    "escrow.funded.v1": "hold",
    "escrow.returned.v1": "refund",
    "escrow.funds_taken.v1": "reversal",
    "lease.closed.v1": "refund",
    "lease.settled.v1": "refund",
    "lease.term_ended_early.v1": ("early_end", "earning"),
    "auction.bid_placed.v1": "bid_deposit",
    "auction.bid_withdrawn.v1": "bid_deposit",
    "auction.bid_lapsed.v1": "bid_deposit",
    "auction.bid_forfeited.v1": "bid_forfeit",
    "auction.awarded.v1": "bid_deposit",
    "auction.ended.v1": "bid_deposit",
    "auction.deposit_returned.v1": "bid_deposit",
    "auction.deposit_forfeited.v1": "bid_forfeit",
    "dispute.opened.v1": "dispute",
    "adjustment.booked.v1": "adjustment",
    "edge_device.fee_charged.v1": "device_fee",
    "earnings.matured.v1": "maturity",
    "earnings.swept.v1": "sweep",
    "earnings.forgone.v1": "forgone",
    "cash_out.requested.v1": "cash_out",
    "cash_out.failed.v1": "cash_out",
    "cash_out.cancelled.v1": "cash_out",
    "cash_out.returned.v1": "cash_out",
    "epoch.rewards_credited.v1": "reward",
    "epoch.rewards_matured.v1": "maturity",
    "epoch.reward_slashed.v1": "slash",
    "epoch.rewards_forfeited.v1": "forfeit",
    "payout.confirmed.v1": "payout",
    "resource.held.v1": "hold",
    "resource.returned.v1": "refund",
    "resource.accrued.v1": ("resources", "earning"),
    "storage_node.charged.v1": "storage_node",
    "volume.provisioned.v1": "hold",
    "volume.grace_ended.v1": "hold",
    "volume.charged.v1": ("volume", "earning"),
    "volume.deleted.v1": "refund",
    "region.earnings_gathered.v1": "region_pool",
    "region.day_shared.v1": "region_cost",
    "region.shares_paid.v1": "region_share",
}
"""What a fact's lines are for; of two kinds the second is that of the parts a party earns on. They
are looked for in this order: most lines are of usage.
"""

OTHER = "other"
EARNED_PARTS = ("holdback", "payable")

_TABLES = """
    CREATE TABLE own.escrow (
        account int PRIMARY KEY, party text COLLATE "C" NOT NULL, purpose text COLLATE "C");
    COMMENT ON TABLE own.escrow IS 'Who put the money into an escrow account, and gets it back';
    CREATE TABLE own.book (
        book int PRIMARY KEY, party text COLLATE "C" NOT NULL, part text COLLATE "C" NOT NULL,
        asset text NOT NULL, side smallint NOT NULL, UNIQUE (party, part));
    COMMENT ON TABLE own.book IS 'The parts of each party, in the order in which they were opened';
    CREATE TABLE own.holder (account int PRIMARY KEY, book int NOT NULL);
    COMMENT ON TABLE own.holder IS 'Which accounts of the books make up a part';
    CREATE TABLE own.tally (
        book int, kind text COLLATE "C", lines bigint NOT NULL, change bigint NOT NULL,
        PRIMARY KEY (book, kind)) WITH (fillfactor = 50);
    COMMENT ON TABLE own.tally IS 'Running totals at the head, by kind; kind empty: all of them';
    CREATE TABLE own.movement (
        book int NOT NULL, position bigint NOT NULL, kind text COLLATE "C" NOT NULL,
        change bigint NOT NULL, balance_after bigint NOT NULL, kind_lines bigint NOT NULL,
        kind_change bigint NOT NULL);
    COMMENT ON TABLE own.movement IS 'One line of a bill: change of a part on its normal side';
"""

_INDEXES = """
    CREATE UNIQUE INDEX movement_key ON own.movement (book, position);
    CREATE INDEX movement_kind ON own.movement (book, kind, position);
"""


def _kind(topic: str, part: str) -> str:
    """SQL: the kind of a line of this fact on this part."""
    earned = f"{part} IN ({', '.join(repr(each) for each in EARNED_PARTS)})"
    whens = [
        f"WHEN '{name}' THEN "
        + (
            f"'{kind}'"
            if isinstance(kind, str)
            else f"CASE WHEN {earned} THEN '{kind[1]}' ELSE '{kind[0]}' END"
        )
        for name, kind in KINDS.items()
    ]
    for_fees = f"{topic} = 'lease.usage_accrued.v1' AND starts_with({part}, 'escrow.federated.')"
    return (
        f"CASE WHEN {for_fees} THEN 'federated_fee' ELSE"
        f" CASE {topic} {' '.join(whens)} ELSE '{OTHER}' END END"
    )


_ESCROW = """INSERT INTO own.escrow
    SELECT DISTINCT ON (a.id) a.id, n.party, n.purpose FROM (
        SELECT f.position, coalesce(p->>'account_id', f.account_id) AS party,
            p->>'purpose' AS purpose,
            'escrow:' || f.lease_id || ':' || coalesce(p->>'deposit', '1') || ':'
                || (p->>'source') AS name
        FROM facts f, json_array_elements(f.escrow) p) n
    JOIN public.account a ON a.name = n.name ORDER BY a.id, n.position
    ON CONFLICT (account) DO NOTHING"""

# Accounts of parties that were moved for the first time, whose they are, and which part; parts that
# are new are opened in the order in which they were moved.
_HOLDERS = """WITH touched AS (
        SELECT account, min(position) AS position FROM (
            SELECT position, unnest(accounts) AS account FROM public.posting
            WHERE position > %(first)s AND position <= %(last)s) p
        GROUP BY account
    ), fresh AS MATERIALIZED (
        SELECT t.position, a.id, a.asset, a.side,
            coalesce(e.party, split_part(a.name, ':', 2)) AS party,
            CASE WHEN e.party IS NULL THEN split_part(a.name, ':', 3)
                ELSE concat_ws('.', 'escrow', e.purpose, split_part(a.name, ':', 4)) END AS part
        FROM touched t JOIN public.account a ON a.id = t.account
        LEFT JOIN own.escrow e ON e.account = a.id
        LEFT JOIN own.holder h ON h.account = a.id
        WHERE h.account IS NULL AND (e.party IS NOT NULL OR starts_with(a.name, 'party:'))
    ), opened AS (
        INSERT INTO own.book
        SELECT (SELECT coalesce(max(book), 0) FROM own.book)
                + row_number() OVER (ORDER BY min(f.position), f.party, f.part COLLATE "C"),
            f.party, f.part, f.asset, f.side
        FROM fresh f LEFT JOIN own.book b ON b.party = f.party AND b.part = f.part
        WHERE b.book IS NULL GROUP BY f.party, f.part, f.asset, f.side
        RETURNING book, party, part
    )
    INSERT INTO own.holder
    SELECT f.id, b.book FROM fresh f JOIN (
        SELECT book, party, part FROM opened
        UNION ALL SELECT book, party, part FROM own.book) b USING (party, part)"""

# OFFSET 0: the kind of a line is worked out once, not for the tally it looks for and for its row.
_MOVEMENTS = f"""WITH moved AS (
        SELECT h.book, l.position, sum(l.units)::bigint AS units
        FROM (
            SELECT position, unnest(accounts) AS account, unnest(units) AS units
            FROM public.posting WHERE position > %(first)s AND position <= %(last)s
        ) l JOIN own.holder h ON h.account = l.account
        GROUP BY h.book, l.position
    ), told AS (
        SELECT m.book, m.position, {_kind("e.topic", "b.part")} AS kind, b.side * m.units AS change
        FROM moved m JOIN own.book b ON b.book = m.book
        JOIN public.market_events e ON e.notification_id = m.position
            AND e.notification_id > %(first)s AND e.notification_id <= %(last)s OFFSET 0
    ), stored AS (
        INSERT INTO own.movement
        SELECT t.book, t.position, t.kind, t.change,
            coalesce(w.change, 0) + sum(t.change) OVER of_book,
            coalesce(k.lines, 0) + count(*) OVER of_kind,
            coalesce(k.change, 0) + sum(t.change) OVER of_kind
        FROM told t LEFT JOIN own.tally w ON w.book = t.book AND w.kind = ''
        LEFT JOIN own.tally k ON k.book = t.book AND k.kind = t.kind
        WINDOW of_book AS (PARTITION BY t.book ORDER BY t.position ROWS UNBOUNDED PRECEDING),
            of_kind AS (PARTITION BY t.book, t.kind ORDER BY t.position ROWS UNBOUNDED PRECEDING)
        RETURNING *
    )
    INSERT INTO own.tally AS t
    SELECT book, kind, count(*), sum(change)::bigint FROM stored GROUP BY book, kind
    UNION ALL SELECT book, '', count(*), sum(change)::bigint FROM stored GROUP BY book
    ON CONFLICT (book, kind) DO UPDATE SET
        lines = t.lines + excluded.lines, change = t.change + excluded.change"""

_RULES = (
    Rule(("lease.reserved.v1",), "lease_id text, account_id text, escrow json", _ESCROW),
    Rule(
        ("lease.topped_up.v1", "lease.extended.v1"),
        "lease_id text, account_id text, parts json",
        _ESCROW.replace("f.escrow", "f.parts"),
    ),
    Rule(
        ("escrow.funded.v1",),
        "escrow_id text, account_id text, parts json",
        _ESCROW.replace("f.escrow", "f.parts").replace("f.lease_id", "f.escrow_id"),
    ),
    Rule(
        ("resource.held.v1",),
        "lease_id text, meter text, account_id text, parts json",
        _ESCROW.replace("f.escrow", "f.parts").replace(
            "f.lease_id", "f.lease_id || '/' || f.meter"
        ),
    ),
    Rule(
        ("volume.provisioned.v1",),
        "volume_id text, account_id text, reserve json",
        _ESCROW.replace("f.escrow", "f.reserve").replace("f.lease_id", "f.volume_id"),
    ),
    Rule(
        ("volume.grace_ended.v1",),
        "volume_id text, account_id text, refilled json",
        _ESCROW.replace("f.escrow", "f.refilled").replace("f.lease_id", "f.volume_id"),
    ),
    Rule((), "", _HOLDERS),
    Rule((), "", _MOVEMENTS),
)

MOVEMENTS = Projection("movements", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class PartBalance:
    """What a party has of one sort; `units` on the part's normal side (`owed`: what it owes)."""

    part: str
    asset: str
    units: int


@dataclass(frozen=True, slots=True)
class KindSum:
    """All lines of one kind on one part: how many, and what they add up to."""

    kind: str
    part: str
    asset: str
    lines: int
    change: int


@dataclass(frozen=True, slots=True)
class Movement:
    """One line. The last fields say whose usage it was, where the fact is an accrual."""

    position: int
    part: str
    kind: str
    asset: str
    change: int
    balance_after: int
    topic: str
    recorded_us: int
    at_us: int
    lease_id: str | None
    volume_id: str | None
    client_id: str | None
    project_id: str | None
    end_user_ref: str | None


def read_part_balances(connection: Connection, party: str, position: int) -> list[PartBalance]:
    """Every part that had moved by a position, in order of its name; zero balances too."""
    sql = """SELECT b.part, b.asset, m.balance_after AS units
        FROM proj_movements.book b CROSS JOIN LATERAL (
            SELECT balance_after FROM proj_movements.movement
            WHERE book = b.book AND position <= %(at)s ORDER BY position DESC LIMIT 1) m
        WHERE b.party = %(party)s ORDER BY b.part"""
    return read.many(connection, PartBalance, sql, party=party, at=position)


def read_kind_sums(connection: Connection, party: str, first: int, last: int) -> list[KindSum]:
    """What moved at positions in (first, last], by kind and part; kinds without a line left out."""
    upto = """LEFT JOIN LATERAL (
            SELECT kind_lines, kind_change FROM proj_movements.movement
            WHERE book = b.book AND kind = t.kind AND position <= {at}
            ORDER BY position DESC LIMIT 1) {name} ON true"""
    sql = f"""SELECT t.kind, b.part, b.asset,
            l.kind_lines - coalesce(f.kind_lines, 0) AS lines,
            l.kind_change - coalesce(f.kind_change, 0) AS change
        FROM proj_movements.book b JOIN proj_movements.tally t ON t.book = b.book AND t.kind <> ''
        {upto.format(at="%(first)s", name="f")} {upto.format(at="%(last)s", name="l")}
        WHERE b.party = %(party)s AND l.kind_lines > coalesce(f.kind_lines, 0)
        ORDER BY t.kind, b.part"""
    return read.many(connection, KindSum, sql, party=party, first=first, last=last)


def read_movements(
    connection: Connection,
    party: str,
    *,
    first: int = 0,
    last: int,
    kind: str | None = None,
    client_id: str | None = None,
    project_id: str | None = None,
    end_user_ref: str | None = None,
    after: tuple[int, str] = (0, ""),
    newest: bool = False,
    limit: int = 50,
) -> list[Movement]:
    """Lines at positions in (first, last], in order of position, then part; or the newest first.
    With a client, project or end user only lines of accruals that name it. `after` is (position,
    part) of the last line of the page before.
    """
    beyond, way = ("<", "DESC") if newest else (">", "ASC")
    of_kind = "" if kind is None else "AND kind = %(kind)s"
    filtered = (client_id, project_id, end_user_ref) != (None, None, None)
    # The index gives each part's next lines in order; a filter is looked up line by line.
    wanted = (
        ""
        if not filtered
        else """AND EXISTS (
        SELECT FROM proj_usage.accrual u WHERE u.position = o.position
            AND (%(client)s::text IS NULL OR u.client_id = %(client)s)
            AND (%(project)s::text IS NULL OR u.project_id = %(project)s)
            AND (%(user)s::text IS NULL OR u.end_user_ref = %(user)s))"""
    )
    sql = f"""SELECT l.position, l.part, l.kind, l.asset, l.change, l.balance_after, e.topic,
            e.recorded_us, f.*
        FROM (
            SELECT b.part, b.asset, m.* FROM proj_movements.book b CROSS JOIN LATERAL (
                SELECT position, kind, change, balance_after FROM proj_movements.movement o
                WHERE o.book = b.book AND o.position BETWEEN %(first)s AND %(last)s {of_kind}
                    AND (o.position {beyond} %(position)s OR b.part {beyond} %(part)s) {wanted}
                ORDER BY o.position {way} LIMIT %(limit)s) m
            WHERE b.party = %(party)s
            ORDER BY m.position {way}, b.part {way} LIMIT %(limit)s
        ) l JOIN public.market_events e ON e.notification_id = l.position
        CROSS JOIN LATERAL json_to_record(convert_from(e.state, 'UTF8')::json)
            AS f(at_us bigint, lease_id text, volume_id text, client_id text, project_id text,
                end_user_ref text)
        ORDER BY l.position {way}, l.part {way}"""
    return read.many(
        connection,
        Movement,
        sql,
        party=party,
        kind=kind,
        client=client_id,
        project=project_id,
        user=end_user_ref,
        first=first + 1 if newest else max(first + 1, after[0]),
        last=min(last, after[0]) if newest else last,
        position=after[0],
        part=after[1],
        limit=limit,
    )
