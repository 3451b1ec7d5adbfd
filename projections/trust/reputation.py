"""How did leases end, and through whose fault? What nodes, owners and renters are known by.

    verdicts of a lease: its close, and later facts that move the fault; the latest counts

Here are leases, verdicts, and what edge and datacenter nodes were worth to their renters; what
counts as evidence is in `projections/trust/reputation_evidence.py`, scores are read by
`projections/trust/scores.py`. Own leases prove nothing about anybody: they are left out.
"""

from __future__ import annotations

from domain.record import dataclass
from domain.trust.scores import PARTIES
from projections import read
from projections.runner import Connection, Projection, Rule
from projections.trust import reputation_evidence
from projections.trust.reputation_evidence import RELATED

_TABLES = """
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        provider_id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL,
        client_id text COLLATE "C" NOT NULL, own boolean NOT NULL, related boolean NOT NULL,
        ppm bigint NOT NULL, opened_at_us bigint, opened_position bigint, closed_at_us bigint,
        position bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE TABLE own.verdict (
        position bigint PRIMARY KEY, lease_id text COLLATE "C" NOT NULL, code int NOT NULL,
        at_us bigint NOT NULL);
    COMMENT ON TABLE own.verdict IS 'The latest of a lease counts; code -1: it has not closed';
    CREATE INDEX ON own.verdict (lease_id, position);
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


_RULES = (
    *reputation_evidence.WORLD,
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
        " provider_account_id text, client_account_id text, owners json, own boolean,"
        " device_ids json, share_ppm bigint",
        f"""INSERT INTO own.lease
        SELECT lease_id, node_id, provider_id, account_id, client_id, own, {RELATED},
            json_array_length(device_ids) * share_ppm, NULL, NULL, NULL, position
        FROM facts f""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, device_ids json",
        """INSERT INTO own.lease_device
        SELECT DISTINCT lease_id, device_id
        FROM facts CROSS JOIN LATERAL json_array_elements_text(device_ids) d (device_id)""",
    ),
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        """UPDATE own.lease l SET opened_at_us = f.opened_at_us, opened_position = f.position
        FROM facts f
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
    *reputation_evidence.EVIDENCE,
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

REPUTATION = Projection("reputation", _TABLES + reputation_evidence.TABLES, _RULES, _INDEXES)


# --- reading ---------------------------------------------------------------------------------

KINDS = {"node": "node_id", "provider": "provider_id", "renter": "account_id"}


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


def read_parties(
    connection: Connection,
    kind: str,
    subject_id: str,
    *,
    client_id: str | None = None,
    as_of: int | None = None,
) -> dict[str, int]:
    """How many closed leases of a subject named each party; of one client's, if given."""
    counted = _AS_OF.format(subject=KINDS[kind])
    sql = f"""
        SELECT CASE {_PARTY} END, count(*) FROM ({counted}) c
        WHERE %(client)s::text IS NULL OR client_id = %(client)s GROUP BY 1"""
    values = {"id": subject_id, "client": client_id, "as_of": 2**62 if as_of is None else as_of}
    found = dict.fromkeys(PARTIES, 0)
    found.update(connection.execute(sql.encode(), values).fetchall())
    return found


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One observation: what the fact at `origin` said for one input of a subject. In
    micro-observations; uptime in microseconds. `from_day`: a fault waits for its dispute window.
    """

    input: str
    origin: int
    position: int
    client_id: str
    day: int
    from_day: int
    good: int
    total: int


def read_evidence(
    connection: Connection,
    kind: str,
    subject_id: str,
    *,
    as_of: int | None,
    day: int,
    after: tuple[int, str],
    limit: int,
) -> list[EvidenceRow]:
    """The rows that a score is made of, known up to a position and counted on a day, in order of
    the facts that they come from.
    """
    sql = """SELECT input, origin, position, client_id, day, from_day, good, total
        FROM proj_reputation.evidence
        WHERE kind = %(kind)s AND subject_id = %(id)s AND from_day <= %(day)s AND day <= %(day)s
            AND (%(as_of)s::bigint IS NULL OR position <= %(as_of)s)
            AND (origin, input) > (%(origin)s, %(input)s COLLATE "C")
        ORDER BY origin, input LIMIT %(limit)s"""
    return read.many(
        connection,
        EvidenceRow,
        sql,
        kind=kind,
        id=subject_id,
        day=day,
        as_of=as_of,
        origin=after[0],
        input=after[1],
        limit=limit,
    )


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
