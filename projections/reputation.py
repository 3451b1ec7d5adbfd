"""How did leases end, and through whose fault? Per node, provider and renter; per client and for
everybody; and what edge and datacenter nodes were worth to their renters.

    tally == sum of what each lease's latest verdict counts          now, or as of a position

A verdict is the close of a lease, or a later fact that moves the fault. The rules of what counts
are `domain/reputation.py`'s, spelled out in SQL and compared with it by a test. Own leases prove
nothing about anybody: they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.reputation import (
    MINIMUM,
    PARTIES,
    PRIOR_LEASES,
    PRIOR_MEAN_PPM,
    RENTER_FAILED,
    SERVED,
    Z_MICRO,
    Score,
    Tally,
    score,
)
from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        provider_id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL,
        client_id text COLLATE "C" NOT NULL, own boolean NOT NULL, ppm bigint NOT NULL,
        opened_at_us bigint, closed_at_us bigint, position bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE TABLE own.verdict (
        position bigint PRIMARY KEY, lease_id text COLLATE "C" NOT NULL, code int NOT NULL,
        at_us bigint NOT NULL);
    COMMENT ON TABLE own.verdict IS 'The latest of a lease counts; code -1: it has not closed';
    CREATE INDEX ON own.verdict (lease_id, position);
    CREATE TABLE own.tally (
        kind text COLLATE "C", subject_id text COLLATE "C", client_id text COLLATE "C",
        good bigint NOT NULL, total bigint NOT NULL, score_ppm int NOT NULL,
        provisional boolean NOT NULL, PRIMARY KEY (kind, subject_id, client_id)
    ) WITH (fillfactor = 70);
    COMMENT ON COLUMN own.tally.client_id IS 'Empty: what everybody saw';
    COMMENT ON COLUMN own.tally.score_ppm IS 'Of what everybody saw; 0 in the rows of a client';
    CREATE TABLE own.place (node_id text COLLATE "C" PRIMARY KEY, setting text NOT NULL);
    CREATE TABLE own.region (region_id text COLLATE "C" PRIMARY KEY, setting text NOT NULL);
    CREATE TABLE own.setting (
        setting text COLLATE "C" PRIMARY KEY, leases bigint NOT NULL, unreachable bigint NOT NULL,
        promised_gpu_us numeric NOT NULL, served_gpu_us numeric NOT NULL);
    COMMENT ON TABLE own.setting IS 'What strangers leases got on edge and datacenter nodes (K-4)';
"""

_INDEXES = """
    CREATE INDEX ON own.lease (node_id);
    CREATE INDEX ON own.lease (provider_id);
    CREATE INDEX ON own.lease (account_id);
"""


def _list(codes: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(codes)))


_PROVIDER_FAULT = "{code} BETWEEN 10000 AND 19999"
_SERVED = f"{{code}} IN ({_list(SERVED)})"
_NODE_GOOD = f"({_SERVED})::int"
_NODE_TOTAL = f"({_SERVED} OR {_PROVIDER_FAULT})::int"
_RENTER_GOOD = f"({_SERVED} OR {_PROVIDER_FAULT})::int"
_RENTER_TOTAL = f"({_SERVED} OR {_PROVIDER_FAULT} OR {{code}} IN ({_list(RENTER_FAILED)}))::int"


def _added(rule: str) -> str:
    """What a verdict adds to what the one before it had counted."""
    return f"sum({rule.format(code='v.code')} - {rule.format(code='v.code_before')})::bigint"


# domain.reputation.lower_bound over whole leases. Twenty digits behind the point are more than the
# distance of a root that is no integer from the next integer.
_G = f"(good::numeric * 1000000 + {PRIOR_LEASES * PRIOR_MEAN_PPM})"
_N = f"(total::numeric * 1000000 + {PRIOR_LEASES * 1_000_000})"
_Q = f"div(4 * {Z_MICRO}::numeric * {_G} * ({_N} - {_G}) + {_N} - 1, {_N})"
_ROOT = f"ceil(sqrt(({Z_MICRO}::numeric * {Z_MICRO} + {_Q})::numeric(120, 20)))"
SCORE_SQL = (
    f"greatest(0, div((2 * {_G} + {Z_MICRO} - {_ROOT}) * 1000000, 2 * ({_N} + {Z_MICRO})))::int"
)
"""The score in ppm of columns `good` and `total`, in leases."""

_VERDICTS = ("lease.closed.v1", "lease.fault_revised.v1")
# Each new verdict beside the one before it, of leases between strangers.
_NEW = """
    SELECT v.lease_id, v.code, v.position, coalesce((
        SELECT w.code FROM own.verdict w WHERE w.lease_id = v.lease_id AND w.position < v.position
        ORDER BY w.position DESC LIMIT 1), -1) AS code_before,
        l.node_id, l.provider_id, l.account_id, l.client_id
    FROM own.verdict v JOIN own.lease l USING (lease_id)
    WHERE v.position > %(first)s AND v.position <= %(last)s AND NOT l.own
"""


def _tallied(kind: str, subject: str, good: str, total: str) -> Rule:
    return Rule(
        (),
        "",
        f"""INSERT INTO own.tally AS t
        SELECT '{kind}', v.{subject}, s.client_id, {_added(good)}, {_added(total)}, 0, true
        FROM ({_NEW}) v CROSS JOIN LATERAL (VALUES (''), (v.client_id)) s (client_id)
        GROUP BY v.{subject}, s.client_id
        ON CONFLICT (kind, subject_id, client_id) DO UPDATE
        SET good = t.good + excluded.good, total = t.total + excluded.total""",
    )


def _scored(kind: str, subject: str) -> Rule:
    return Rule(
        (),
        "",
        f"""UPDATE own.tally t
        SET score_ppm = CASE t.client_id WHEN '' THEN {SCORE_SQL} ELSE 0 END,
            provisional = t.total < {MINIMUM}
        WHERE t.kind = '{kind}' AND t.subject_id IN (SELECT v.{subject} FROM ({_NEW}) v)""",
    )


_SUBJECTS = (
    ("node", "node_id", _NODE_GOOD, _NODE_TOTAL),
    ("provider", "provider_id", _NODE_GOOD, _NODE_TOTAL),
    ("renter", "account_id", _RENTER_GOOD, _RENTER_TOTAL),
)

_RULES = (
    Rule(
        ("region.opened.v1",),
        "region_id text, setting text",
        "INSERT INTO own.region SELECT region_id, setting FROM facts",
    ),
    Rule(
        ("node.join_requested.v1",),
        "node_id text, region_id text",
        """INSERT INTO own.place
        SELECT f.node_id, r.setting FROM facts f JOIN own.region r USING (region_id)""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, node_id text, provider_id text, account_id text, client_id text,"
        " own boolean, device_ids json, share_ppm bigint",
        """INSERT INTO own.lease
        SELECT lease_id, node_id, provider_id, account_id, client_id, own,
            json_array_length(device_ids) * share_ppm, NULL, NULL, position
        FROM facts""",
    ),
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        """UPDATE own.lease l SET opened_at_us = f.opened_at_us FROM facts f
        WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.closed.v1",),
        "lease_id text, closed_at_us bigint",
        """UPDATE own.lease l SET closed_at_us = f.closed_at_us FROM facts f
        WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        _VERDICTS,
        "lease_id text, code int, at_us bigint",
        """INSERT INTO own.verdict
        SELECT f.position, f.lease_id, f.code, f.at_us
        FROM facts f JOIN own.lease l ON l.lease_id = f.lease_id""",
    ),
    *(_tallied(*subject) for subject in _SUBJECTS),
    *(_scored(kind, subject) for kind, subject, _, _ in _SUBJECTS),
    Rule(
        (),
        "",
        f"""INSERT INTO own.setting AS s
        SELECT p.setting, sum((v.code_before = -1)::int),
            sum((v.code = 10004)::int - (v.code_before = 10004)::int), 0, 0
        FROM ({_NEW}) v JOIN own.place p USING (node_id) GROUP BY p.setting
        ON CONFLICT (setting) DO UPDATE SET leases = s.leases + excluded.leases,
            unreachable = s.unreachable + excluded.unreachable""",
    ),
    # What was promised and what was metered, once a lease is settled: both are final then.
    Rule(
        ("lease.settled.v1",),
        "lease_id text, gpu_us numeric",
        """INSERT INTO own.setting AS s
        SELECT p.setting, 0, 0, sum(g.promised), sum(least(f.gpu_us, g.promised))
        FROM facts f JOIN own.lease l USING (lease_id) JOIN own.place p USING (node_id)
        CROSS JOIN LATERAL (SELECT
            div(l.ppm::numeric * greatest(0, l.closed_at_us - l.opened_at_us), 1000000) AS promised
        ) g WHERE NOT l.own AND l.opened_at_us IS NOT NULL GROUP BY p.setting
        ON CONFLICT (setting) DO UPDATE
        SET promised_gpu_us = s.promised_gpu_us + excluded.promised_gpu_us,
            served_gpu_us = s.served_gpu_us + excluded.served_gpu_us""",
    ),
)

REPUTATION = Projection("reputation", _TABLES, _RULES, _INDEXES)


# --- reading ---------------------------------------------------------------------------------

KINDS = {"node": "node_id", "provider": "provider_id", "renter": "account_id"}


@dataclass(frozen=True, slots=True)
class Reputation:
    """A score, and how many closes named each party, beside what it counts."""

    score: Score
    by_party: dict[str, int]


_PARTY = " ".join(
    f"WHEN code < {end} THEN '{party}'"
    for party, end in zip(PARTIES, (100, 10_000, 20_000, 30_000, 40_000), strict=True)
)
# The latest verdict of each lease up to a position, of leases between strangers.
_AS_OF = """
    SELECT l.client_id, v.code FROM proj_reputation.lease l CROSS JOIN LATERAL (
        SELECT w.code FROM proj_reputation.verdict w
        WHERE w.lease_id = l.lease_id AND w.position <= %(as_of)s
        ORDER BY w.position DESC LIMIT 1) v
    WHERE l.{subject} = %(id)s AND NOT l.own
"""


def read_reputation(
    connection: Connection,
    kind: str,
    subject_id: str,
    *,
    client_id: str | None = None,
    as_of: int | None = None,
) -> Reputation:
    """What is known of a node, a provider or a renter: by everybody, or by one client.

    `as_of` a position of the market log gives what was known then, from the verdicts up to there.
    """
    good, total = (_RENTER_GOOD, _RENTER_TOTAL) if kind == "renter" else (_NODE_GOOD, _NODE_TOTAL)
    counted = _AS_OF.format(subject=KINDS[kind])
    sql = f"""
        SELECT coalesce(sum({good.format(code="code")}), 0),
            coalesce(sum({total.format(code="code")}), 0),
            coalesce(sum({good.format(code="code")}) FILTER (WHERE client_id = %(client)s), 0),
            coalesce(sum({total.format(code="code")}) FILTER (WHERE client_id = %(client)s), 0)
        FROM ({counted}) c"""
    parties = f"""
        SELECT CASE {_PARTY} END, count(*) FROM ({counted}) c
        WHERE %(client)s::text IS NULL OR client_id = %(client)s GROUP BY 1"""
    values = {"id": subject_id, "client": client_id, "as_of": 2**62 if as_of is None else as_of}
    row: Any = connection.execute(sql.encode(), values).fetchone()
    by_party = dict.fromkeys(PARTIES, 0)
    by_party.update(connection.execute(parties.encode(), values).fetchall())
    seen = None if client_id is None else Tally(int(row[2]), int(row[3]))
    return Reputation(score(Tally(int(row[0]), int(row[1])), seen), by_party)


def read_scores(
    connection: Connection, kind: str, subject_ids: list[str]
) -> dict[str, tuple[int, bool]]:
    """By subject: what everybody saw, as (score in ppm, provisional). Nobody is left out: without
    a lease it is the start.
    """
    start = score(Tally())
    scores = dict.fromkeys(subject_ids, (start.score_ppm, start.is_provisional))
    sql = """SELECT subject_id, score_ppm, provisional FROM proj_reputation.tally
        WHERE kind = %s AND subject_id = ANY(%s) AND client_id = ''"""
    for subject_id, score_ppm, provisional in connection.execute(sql, (kind, subject_ids)):
        scores[subject_id] = (score_ppm, provisional)
    return scores


def has_rented_to(connection: Connection, owner_account_id: str, account_id: str) -> bool:
    """Whether a lease of this renter was ever on a node of the owner's."""
    sql = """SELECT FROM proj_reputation.lease l JOIN proj_fleet.provider p USING (provider_id)
        WHERE l.account_id = %s AND p.account_id = %s AND NOT l.own LIMIT 1"""
    return connection.execute(sql, (account_id, owner_account_id)).fetchone() is not None


@dataclass(frozen=True, slots=True)
class Setting:
    """What leases of strangers got on nodes of this setting. `served_gpu_us` of what was promised,
    over settled leases; `unreachable` of `leases` ended because their node was silent too long.
    """

    setting: str
    leases: int
    unreachable: int
    promised_gpu_us: int
    served_gpu_us: int


def read_settings(connection: Connection) -> list[Setting]:
    """One row for each setting on which a lease has closed, by name."""
    sql = """SELECT setting, leases, unreachable, promised_gpu_us::bigint, served_gpu_us::bigint
        FROM proj_reputation.setting ORDER BY setting"""
    return read.many(connection, Setting, sql)
