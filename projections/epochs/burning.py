"""What was charged to be burned: whose money is behind it, from when on that is final, and which
burn covers it. Tables and rules of the view `projections/epochs/epochs.py`.

    burn part of a charge == its final lot + its waiting lots          to the unit
    final lot:    what cash, earned credits and grants paid            ripe at the charge
    waiting lot:  what card money paid, or nobody yet, by payer        ripe once its money is there
    lots - given back - burned == network:burn_due                     at every position

A waiting lot is ripe as soon as the final money behind its payer (`settled` card money, debts
that were repaid or written off, card money that came back) is at least what the payer had spent of
such money up to and with that charge: oldest first, as card money is spent
(`domain/funds/card_money.py`). So card money inside its chargeback window delays its own burn and
no other.

    ripe(lot) == the first position p, not before its charge, with total(p) >= spent(lot)
    total(p)  == what the last row of `own.backing` at or before p says

Money that was settled and taken back before the charge is behind nothing that is charged later. A
lot that is ripe stays ripe: its burn may be on the chain.

A burn covers the lots that became ripe in its range of positions. What is given back of a charge
is taken off its own lots that no burn covers, those that are ripe last first, and never off those
of another charge (`domain/income/adjustment.py`). Source: design economics 3, 5 and 8.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.income.adjustment import Unburned, UnburnedCharge
from projections.runner import Connection, Rule

TABLES = """
    CREATE TABLE own.due (
        position bigint, kind text COLLATE "C", payer_id text COLLATE "C", units bigint NOT NULL,
        spent numeric, ripe bigint, PRIMARY KEY (position, kind, payer_id)) WITH (fillfactor = 80);
    COMMENT ON TABLE own.due IS 'Lots to be burned, by the charge and whose money has to come in';
    COMMENT ON COLUMN own.due.spent IS 'Waiting: such money its payer spent, this charge included';
    COMMENT ON COLUMN own.due.ripe IS 'Position from which the money is final; NULL: not yet';
    CREATE INDEX ON own.due (ripe);
    CREATE INDEX ON own.due (payer_id, spent) WHERE kind = 'waiting' AND ripe IS NULL;
    CREATE INDEX ON own.due (payer_id, position) WHERE kind = 'waiting';
    CREATE TABLE own.backing (
        payer_id text COLLATE "C", position bigint, settled bigint, total numeric NOT NULL,
        PRIMARY KEY (payer_id, position));
    COMMENT ON TABLE own.backing IS 'Final money behind a payer of card money, or of a debt';
    CREATE TABLE own.given_back (
        position bigint PRIMARY KEY, charge bigint NOT NULL, returned numeric NOT NULL,
        unburned bigint NOT NULL);
    COMMENT ON TABLE own.given_back IS 'Of a charge, by an adjustment; of that, from its own lots';
    CREATE INDEX ON own.given_back (charge, position);
    CREATE TABLE own.burn (
        burn_id bigint PRIMARY KEY, first_position bigint NOT NULL, last_position bigint NOT NULL,
        credits bigint NOT NULL, tokens bigint NOT NULL, price_micro_usd bigint NOT NULL,
        state text NOT NULL, tx_hash text, at_us bigint NOT NULL, position bigint NOT NULL,
        confirmed_position bigint, charged bigint);
    COMMENT ON COLUMN own.burn.charged IS 'The lots it covers, without what was given back of them';
"""

COVERS = "BETWEEN b.first_position AND least(b.last_position, b.position)"
"""SQL: a lot's `ripe` in the range of burn `b`."""

_IS_FINAL = """f.topic IN ('lease.usage_accrued.v1', 'resource.accrued.v1', 'volume.charged.v1')
    AND f.reserve_drawn IS NULL AND f.owed IS NULL AND f.late IS NULL
    AND strpos(d.told, '"card"') = 0 AND strpos(d.told, '"owed"') = 0
    AND strpos(d.told, '"burned"') = 0"""
"""SQL: of such a charge nothing waits, and nothing was retired at use: its whole burn part is one
final lot. Told by the text of what was drawn, which is cheap to read; a charge that this does not
name may be such a one as well.
"""

_WAITING_LOTS = f"""
    known AS MATERIALIZED (
        SELECT f.*, ({_IS_FINAL}) IS TRUE AS is_final
        FROM facts f CROSS JOIN LATERAL (
            SELECT coalesce(f.drawn::text, '') AS told OFFSET 0) d
    ), rest AS (SELECT * FROM known WHERE NOT is_final), pays AS (
        SELECT * FROM (
            SELECT f.position, part->>'source' AS source,
                coalesce(part->>'account_id', f.account_id) AS payer_id,
                (part->'amount'->>'units')::numeric AS units,
                part->>'purpose' IS NULL AS is_usage
            FROM rest f, json_array_elements(f.drawn) part
            UNION ALL
            SELECT f.position, part->>'source', coalesce(part->>'account_id', f.account_id),
                (part->'amount'->>'units')::numeric, true
            FROM rest f, json_array_elements(f.reserve_drawn) part
            WHERE f.reserve_drawn IS NOT NULL
            UNION ALL
            SELECT f.position, 'owed', coalesce(f.owed->>'account_id', f.account_id),
                coalesce(f.owed->'amount'->>'units', f.owed->>'units')::numeric, true
            FROM rest f WHERE f.owed IS NOT NULL
            UNION ALL
            SELECT f.position, substring(line->>'account' FROM ':([^:]+)$'),
                substring(line->>'account' FROM '^party:(.+):[^:]+$'),
                (line->>'units')::numeric, true
            FROM rest f, json_array_elements(f.lines) line
            WHERE f.late IS NOT NULL AND (line->>'units')::numeric > 0) p
        WHERE p.units > 0
    ), sums AS (
        SELECT position, coalesce(sum(units) FILTER (WHERE source = 'burned'), 0) AS burned,
            coalesce(sum(units) FILTER (WHERE source <> 'burned'), 0) AS whole
        FROM pays WHERE is_usage GROUP BY position
    ), charged AS (
        SELECT f.position, CASE topic
            WHEN 'adjustment.booked.v1' THEN (
                SELECT -sum((line->>'units')::numeric) FROM json_array_elements(f.lines) line
                WHERE line->>'account' = 'network:burn_due')
            WHEN 'resource.accrued.v1' THEN (f.parts_new->>'burn')::numeric - coalesce(b.burned, 0)
            WHEN 'volume.charged.v1' THEN (f.parts_new->>'burn')::numeric
            ELSE CASE WHEN b.burned > 0 THEN 0 WHEN topic = 'lease.usage_accrued.v1'
                THEN (f.parts_new->>'burn')::numeric ELSE (f.parts->>'burn')::numeric END
            END AS due, b.whole
        FROM rest f LEFT JOIN sums b USING (position)
        WHERE topic <> 'adjustment.booked.v1' OR f.late IS NOT NULL
    ), waiting AS (
        SELECT c.position, p.payer_id, sum(p.units) AS spent,
            coalesce(div(greatest(c.due, 0) * sum(p.units) FILTER (WHERE p.is_usage),
                nullif(c.whole, 0)), 0) AS units
        FROM charged c JOIN pays p USING (position) WHERE p.source IN ('card', 'owed')
        GROUP BY c.position, p.payer_id, c.due, c.whole
    )"""
"""SQL after `facts`: what waits of each charge, by payer. The final lot has the remainder. Charges
of which nothing waits are left out.
"""

_CHARGES = (
    "lease.usage_accrued.v1",
    "resource.accrued.v1",
    "volume.charged.v1",
    "lease.term_ended_early.v1",
    "adjustment.booked.v1",
)

LOTS = (
    Rule(
        _CHARGES,
        "account_id text, parts json, parts_new json, drawn json, reserve_drawn json, owed json,"
        " lines json, late json",
        f""", {_WAITING_LOTS}
        INSERT INTO own.due
        SELECT w.position, 'waiting', w.payer_id, w.units, coalesce((
                SELECT d.spent FROM own.due d WHERE d.payer_id = w.payer_id
                    AND d.kind = 'waiting' ORDER BY d.position DESC LIMIT 1), 0)
            + sum(w.spent) OVER (PARTITION BY w.payer_id ORDER BY w.position), NULL
        FROM waiting w
        UNION ALL
        SELECT c.position, 'final', '', c.due - coalesce(w.units, 0), NULL, c.position
        FROM charged c LEFT JOIN (
            SELECT position, sum(units) AS units FROM waiting GROUP BY 1) w USING (position)
        WHERE c.due > coalesce(w.units, 0)
        UNION ALL
        SELECT f.position, 'final', '', (f.parts_new->>'burn')::numeric, NULL, f.position
        FROM known f WHERE is_final AND (f.parts_new->>'burn')::numeric > 0""",
    ),
    Rule(
        ("adjustment.booked.v1",),
        "corrects_position bigint, returned numeric, lines json, late json",
        """INSERT INTO own.given_back
        SELECT position, corrects_position, returned, coalesce((
            SELECT sum((line->>'units')::bigint) FROM json_array_elements(f.lines) line
            WHERE line->>'account' = 'network:burn_due'), 0)
        FROM facts f WHERE late IS NULL""",
    ),
    # What there is of final money behind a payer, event by event. Of card money the facts tell the
    # balance, so what is new of it is the difference to the one before.
    Rule(
        ("card.money_moved.v1", "debt.repaid.v1", "debt.written_off.v1", "adjustment.booked.v1"),
        "account_id text, settled json, paid json, amount json, lines json, late json",
        """, told AS (
            SELECT position, account_id AS payer_id, (settled->>'units')::bigint AS settled,
                0::numeric AS units
            FROM facts WHERE topic = 'card.money_moved.v1'
            UNION ALL
            SELECT position, account_id, NULL, coalesce((
                SELECT sum((part->'amount'->>'units')::numeric)
                FROM json_array_elements(paid) part WHERE part->>'source' <> 'card'), 0)
            FROM facts WHERE topic = 'debt.repaid.v1'
            UNION ALL
            SELECT position, account_id, NULL, (amount->>'units')::numeric
            FROM facts WHERE topic = 'debt.written_off.v1'
            UNION ALL
            SELECT position, substring(line->>'account' FROM '^party:(.+):[^:]+$'), NULL,
                -sum((line->>'units')::numeric)
            FROM facts CROSS JOIN LATERAL json_array_elements(lines) line
            WHERE topic = 'adjustment.booked.v1' AND late IS NULL
                AND line->>'account' ~ '^party:.+:(card|owed)$' AND (line->>'units')::numeric < 0
            GROUP BY 1, 2
        ), changed AS (
            SELECT t.*, CASE WHEN settled IS NULL THEN units ELSE settled - coalesce(
                lag(settled) OVER (
                    PARTITION BY payer_id, settled IS NULL ORDER BY position), (
                SELECT b.settled FROM own.backing b WHERE b.payer_id = t.payer_id
                    AND b.settled IS NOT NULL ORDER BY b.position DESC LIMIT 1), 0) END AS new
            FROM told t
        )
        INSERT INTO own.backing
        SELECT payer_id, position, settled, coalesce((
            SELECT b.total FROM own.backing b WHERE b.payer_id = c.payer_id
            ORDER BY b.position DESC LIMIT 1), 0)
            + sum(new) OVER (PARTITION BY payer_id ORDER BY position)
        FROM changed c""",
    ),
    Rule(
        (*_CHARGES, "card.money_moved.v1", "debt.repaid.v1", "debt.written_off.v1"),
        "account_id text",
        """, touched AS (
            SELECT payer_id FROM own.backing WHERE position > %(first)s
            UNION
            SELECT payer_id FROM own.due WHERE position > %(first)s AND kind = 'waiting'
        )
        UPDATE own.due d SET ripe = greatest(d.position, r.backed)
        FROM (
            SELECT w.position, w.payer_id, b.backed
            FROM touched t CROSS JOIN LATERAL (
                SELECT max(total) AS most FROM own.backing b WHERE b.payer_id = t.payer_id) m
            JOIN own.due w ON w.payer_id = t.payer_id AND w.kind = 'waiting' AND w.ripe IS NULL
                AND w.spent <= m.most
            CROSS JOIN LATERAL (
                SELECT min(b.position) AS backed FROM own.backing b
                WHERE b.payer_id = w.payer_id AND b.total >= w.spent
                    AND b.position >= coalesce((
                        SELECT max(c.position) FROM own.backing c
                        WHERE c.payer_id = w.payer_id AND c.position <= w.position), 0)) b) r
        WHERE d.position = r.position AND d.kind = 'waiting' AND d.payer_id = r.payer_id
            AND r.backed IS NOT NULL""",
    ),
)
"""What is due, what was given back of it, and what it waits for."""

BURNS = (
    Rule(
        ("burn.intended.v1",),
        "burn_id bigint, first_position bigint, last_position bigint, credits json, tokens json,"
        " price_micro_usd bigint, at_us bigint",
        """INSERT INTO own.burn
        SELECT burn_id, first_position, last_position, (credits->>'units')::bigint,
            (tokens->>'units')::bigint, price_micro_usd, 'intended', NULL, at_us, position,
            NULL, NULL
        FROM facts""",
    ),
    Rule(
        ("burn.confirmed.v1", "burn.failed.v1"),
        "burn_id bigint, tokens json, tx_hash text",
        f"""UPDATE own.burn b SET tx_hash = f.tx_hash,
            tokens = coalesce((f.tokens->>'units')::bigint, b.tokens),
            charged = (SELECT coalesce(sum(d.units), 0) FROM own.due d
                WHERE d.ripe {COVERS}),
            state = CASE f.topic WHEN 'burn.confirmed.v1' THEN 'confirmed' ELSE 'failed' END,
            confirmed_position = CASE f.topic WHEN 'burn.confirmed.v1' THEN f.position END
        FROM facts f WHERE b.burn_id = f.burn_id""",
    ),
)


def lot_of(row: str) -> str:
    """SQL: whether `u` is the lot of what a source paid of a charge; of `row` position, source and
    payer_id.
    """
    return f"""(u.position = {row}.position
        AND u.kind = CASE {row}.source WHEN 'card' THEN 'waiting' ELSE 'final' END
        AND u.payer_id = CASE {row}.source WHEN 'card' THEN {row}.payer_id ELSE '' END)"""


def burn_of(row: str) -> str:
    """SQL: the confirmed burn `b` (burn_id, burnt_at) of what a source paid of a charge, if there
    is one. Burned credits were retired at the charge itself.
    """
    return f"""LEFT JOIN LATERAL (
        SELECT b.burn_id, b.confirmed_position AS burnt_at
        FROM own.due u JOIN own.burn b ON b.state = 'confirmed' AND u.ripe {COVERS}
        WHERE {lot_of(row)} AND {row}.source <> 'burned') b ON true"""


# Of each lot what is left: what was given back of its charge is taken off the lots that are ripe
# last, which no burn can cover before the others.
_LEFT = """
    SELECT d.position, d.ripe, d.units - least(d.units, greatest(0, g.units - d.after)) AS units
    FROM (
        SELECT l.*, sum(l.units) OVER (PARTITION BY l.position
            ORDER BY l.ripe DESC NULLS FIRST, l.kind DESC, l.payer_id
            ROWS UNBOUNDED PRECEDING) - l.units AS after
        FROM proj_epochs.due l WHERE l.position IN ({charges})) d
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(unburned), 0) AS units FROM proj_epochs.given_back g
        WHERE g.charge = d.position) g
"""
_RIPE = f"""
    WITH left_of AS ({
    _LEFT.format(
        charges="SELECT position FROM proj_epochs.due WHERE ripe BETWEEN %(first)s AND %(last)s"
    )
})
    SELECT ripe, sum(sum(units)) OVER (ORDER BY ripe)::bigint AS so_far FROM left_of
    WHERE units > 0 AND ripe BETWEEN %(first)s AND %(last)s GROUP BY ripe ORDER BY ripe
"""


def read_ripe(
    connection: Connection, first_position: int, last_position: int
) -> list[tuple[int, int]]:
    """(position, micro-credits that became ripe from the first position up to there), in order."""
    asked = {"first": first_position, "last": last_position}
    rows = connection.execute(_RIPE.encode(), asked).fetchall()
    return [(int(position), int(so_far)) for position, so_far in rows]


def read_burn_open(connection: Connection) -> tuple[int, int]:
    """(market position, micro-credits that were charged to be burned up to there and are not yet):
    what the books hold in `network:burn_due` at that position.
    """
    sql = """SELECT p.position, (SELECT coalesce(sum(units), 0) FROM proj_epochs.due)
            - (SELECT coalesce(sum(unburned), 0) FROM proj_epochs.given_back)
            - (SELECT coalesce(sum(credits), 0) FROM proj_epochs.burn WHERE state = 'confirmed')
        FROM proj_epochs.position p WHERE p.source = 'market'"""
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


_UNBURNED = f"""
    SELECT c.charge, coalesce((
        SELECT sum(l.units) FROM ({_LEFT.format(charges="SELECT unnest(%(charges)s::bigint[])")}) l
        WHERE l.position = c.charge AND NOT EXISTS (
            SELECT FROM proj_epochs.burn b WHERE b.state <> 'failed'
                AND l.ripe {COVERS})), 0)::bigint, (
        SELECT count(*) FROM proj_epochs.given_back g WHERE g.charge = c.charge)
    FROM unnest(%(charges)s::bigint[]) c(charge) ORDER BY c.charge
"""


def read_unburned(connection: Connection, positions: Iterable[int]) -> Unburned:
    """Of charges, by position, what no burn covers yet of what they are to burn."""
    row = connection.execute("SELECT coalesce(max(burn_id), 0) FROM proj_epochs.burn").fetchone()
    assert row is not None
    asked = {"charges": sorted(set(positions))}
    found = connection.execute(_UNBURNED.encode(), asked).fetchall()
    return Unburned(int(row[0]), tuple(UnburnedCharge(*map(int, one)) for one in found))
