"""Who used whose nodes, epoch by epoch: what signs of wash trade are computed from.

    sum of gpu_us over an epoch == GPU time that its accruals metered

An accrual belongs to the epoch whose cut is the first at or after it. A use is related when who
rents or pays is related to one that is paid for it (`domain/trust/related.py`): it would be its own
customer. How long a node or a renter has been here counts from its first use. Nothing is judged
here: `domain/epochs/wash_signals.py` has the formulas. Source: design economics 13.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.epochs.cuts import CUT_RULE, CUTS, EPOCH_OF
from projections.runner import Connection, Projection, Rule
from projections.trust.ties import IS_OWN_USE, TIE_RULES, TIES

_TABLES = (
    CUTS
    + TIES
    + """
    CREATE TABLE own.first (
        side text COLLATE "C", subject_id text COLLATE "C", at_us bigint NOT NULL,
        PRIMARY KEY (side, subject_id));
    COMMENT ON TABLE own.first IS 'The first use of a node, and by a renter';
    CREATE TABLE own.used (
        epoch int, node_id text COLLATE "C", account_id text COLLATE "C",
        provider_account_id text COLLATE "C", is_related boolean, gpu_us bigint NOT NULL,
        CHECK (gpu_us >= 0),
        PRIMARY KEY (epoch, node_id, account_id, provider_account_id, is_related)
    ) WITH (fillfactor = 70);
    COMMENT ON TABLE own.used IS 'GPU time of a renter on a node, as accrued';
"""
)
_INDEXES = "CREATE INDEX ON own.used (epoch, account_id);"

_RULES = (
    CUT_RULE,
    *TIE_RULES,
    Rule(
        ("lease.usage_accrued.v1",),
        "account_id text, node_id text, gpu_us_new bigint, at_us bigint",
        """INSERT INTO own.first
        SELECT s.side, s.subject_id, f.at_us FROM (
            SELECT 'node_id', node_id, min(position) FROM facts WHERE gpu_us_new > 0 GROUP BY 2
            UNION ALL SELECT 'account_id', account_id, min(position) FROM facts
            WHERE gpu_us_new > 0 GROUP BY 2) s (side, subject_id, position)
        JOIN facts f ON f.position = s.position ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "account_id text, provider_account_id text, client_account_id text, owners json,"
        " node_id text, gpu_us_new bigint, drawn json",
        f"""INSERT INTO own.used AS u
        SELECT {EPOCH_OF}, node_id, account_id, provider_account_id,
            {IS_OWN_USE}, sum(gpu_us_new)
        FROM facts f WHERE gpu_us_new > 0 GROUP BY 1, 2, 3, 4, 5
        ON CONFLICT (epoch, node_id, account_id, provider_account_id, is_related)
        DO UPDATE SET gpu_us = u.gpu_us + excluded.gpu_us""",
    ),
)

COUNTERPARTIES = Projection("counterparties", _TABLES, _RULES, _INDEXES)


NODES, RENTERS = "node_id", "account_id"
"""Whose use is divided: that of a node among renters, or that of a renter among owners of nodes."""

_AGE = """greatest(0, coalesce((
        SELECT e.end_us - s.at_us FROM proj_epochs.epoch e, proj_counterparties.first s
        WHERE e.epoch = %(epoch)s AND s.side = %(side)s AND s.subject_id = {subject}), 0))"""


@dataclass(frozen=True, slots=True)
class Used:
    """GPU-microseconds of a node in an epoch, by whether who used it is related to its owner.

    `age_us`: from its first use to the end of the epoch.
    """

    related: int
    others: tuple[int, ...]  # each unrelated renter's, largest first
    age_us: int


def read_used(connection: Connection, epoch: int, node_id: str) -> Used:
    """Who used a node in an epoch. Also reads the view of epochs, for its end."""
    sql = """SELECT is_related, sum(gpu_us)::bigint FROM proj_counterparties.used
        WHERE epoch = %s AND node_id = %s GROUP BY is_related, account_id ORDER BY 2 DESC"""
    rows = connection.execute(sql, (epoch, node_id)).fetchall()
    related = sum(int(gpu_us) for is_related, gpu_us in rows if is_related)
    age_us = read.number(
        connection, "SELECT " + _AGE.format(subject="%(id)s"), epoch=epoch, side=NODES, id=node_id
    )
    others = tuple(int(gpu_us) for is_related, gpu_us in rows if not is_related)
    return Used(related, others, age_us)


_OTHER = {NODES: "account_id", RENTERS: "provider_account_id"}


@dataclass(frozen=True, slots=True)
class Divided:
    """The use of one node, or of one renter, in an epoch: by whom, in GPU-microseconds."""

    subject_id: str
    gpu_us: int
    largest_us: int  # of one unrelated counterparty
    related_us: int  # of all related ones
    counterparties: int
    age_us: int  # from the first use to the end of the epoch


def read_divided(
    connection: Connection,
    epoch: int,
    side: str,
    *,
    subject_id: str | None = None,
    after: str = "",
    limit: int = 50,
) -> list[Divided]:
    """The nodes that were used in an epoch, or the renters that used some, by id, or one of them;
    `after` is the last one of the page before.
    """
    sql = f"""SELECT subject_id, sum(gpu_us)::bigint AS gpu_us,
            coalesce(max(gpu_us) FILTER (WHERE NOT is_related), 0)::bigint AS largest_us,
            coalesce(sum(gpu_us) FILTER (WHERE is_related), 0)::bigint AS related_us,
            count(DISTINCT other_id)::int AS counterparties,
            {_AGE.format(subject="subject_id")} AS age_us
        FROM (
            SELECT {side} AS subject_id, {_OTHER[side]} AS other_id, is_related,
                sum(gpu_us) AS gpu_us
            FROM proj_counterparties.used WHERE epoch = %(epoch)s AND {side} > %(after)s
                AND (%(subject)s::text IS NULL OR {side} = %(subject)s)
            GROUP BY 1, 2, 3) u
        GROUP BY subject_id ORDER BY subject_id LIMIT %(limit)s"""
    return read.many(
        connection,
        Divided,
        sql,
        epoch=epoch,
        side=side,
        subject=subject_id,
        after=after,
        limit=limit,
    )
