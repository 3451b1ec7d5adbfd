"""What is counted for and against whom: rows of evidence, each with the position that tells it.

    evidence as of p == sum of the rows with position <= p
    day              == sum of all rows, per subject, input, UTC day and client

A row is filed under the UTC day in which its fact says that it was recorded (`at_us`, which is in
the stored bytes; the time of the append is not). What takes a row back is a row with the opposite
sign, so the past can be read. A fault waits for the dispute window that was in force at its close
(`from_day`); nothing else waits.

What counts for whom is said in `domain/trust/evidence.py`: codes, caps and words come from there,
and each row is checked against its functions. Here is how rows are kept and found.

Leases between related parties (`domain/trust/related.py`) count for nobody. What a device did
follows it to another node of its owner, however late it becomes known. Source: design
economics 16; decisions 0037 and 0042.
"""

from __future__ import annotations

from domain.duration import DAY_US
from domain.income.maturity import DEFAULT_WINDOW_US
from domain.lease.close_codes import START_TIMEOUT, UNREACHABLE
from domain.trust import evidence
from domain.trust.evidence import LEASES_MAX, MEASURED_FORM, MEASURED_MAX, MEASURED_PREFIX, SLACK_US
from domain.trust.reputation_terms import (
    COMPLETION,
    CONDUCT,
    DISPUTES,
    PAYMENT,
    PERFORMANCE,
    RESPONSIVENESS,
    UPTIME,
)
from domain.trust.scores import OBSERVATION
from projections.runner import Rule
from projections.trust.ties import TIE_RULES, TIES, is_paid_back

TABLES = (
    TIES
    + """
    CREATE TABLE own.subject (
        kind text COLLATE "C", subject_id text COLLATE "C", owner_id text COLLATE "C",
        since_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (kind, subject_id));
    COMMENT ON COLUMN own.subject.owner_id IS 'The provider of a node';
    CREATE TABLE own.fault_window (
        position bigint PRIMARY KEY, effective_from_us bigint NOT NULL, window_us bigint NOT NULL);
    CREATE TABLE own.device_at (
        device_id text COLLATE "C", from_position bigint, node_id text COLLATE "C",
        until_position bigint, PRIMARY KEY (device_id, from_position)) WITH (fillfactor = 70);
    COMMENT ON COLUMN own.device_at.node_id IS 'NULL: retired';
    CREATE INDEX ON own.device_at (node_id);
    CREATE TABLE own.lease_device (
        lease_id text COLLATE "C", device_id text COLLATE "C", PRIMARY KEY (lease_id, device_id));
    CREATE INDEX ON own.lease_device (device_id);
    CREATE TABLE own.maintenance (
        maintenance_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        from_us bigint NOT NULL, until_us bigint NOT NULL, position bigint NOT NULL,
        cancelled_position bigint, cancelled_at_us bigint);
    CREATE INDEX ON own.maintenance (node_id);
    CREATE TABLE own.silence (
        lease_id text COLLATE "C", position bigint, since_us bigint NOT NULL,
        announced boolean NOT NULL, PRIMARY KEY (lease_id, position));
    CREATE TABLE own.teller (
        node_id text COLLATE "C", meter text COLLATE "C", position bigint NOT NULL,
        PRIMARY KEY (node_id, meter));
    COMMENT ON TABLE own.teller IS 'Since when a node tells of a resource beside the GPU';
    CREATE TABLE own.unfunded (
        position bigint PRIMARY KEY, lease_id text COLLATE "C" NOT NULL, units bigint NOT NULL);
    CREATE INDEX ON own.unfunded (lease_id);
    CREATE TABLE own.contest (
        dispute_id text COLLATE "C", lease_id text COLLATE "C", side text COLLATE "C",
        position bigint NOT NULL, PRIMARY KEY (dispute_id, side));
    COMMENT ON COLUMN own.contest.side IS 'Empty: it was opened; else this side answered it';
    CREATE TABLE own.measurement (
        statement_id text COLLATE "C" PRIMARY KEY, origin bigint NOT NULL,
        ref text COLLATE "C" NOT NULL);
    CREATE TABLE own.evidence (
        kind text COLLATE "C", subject_id text COLLATE "C", input text COLLATE "C", origin bigint,
        position bigint NOT NULL, since bigint NOT NULL, ref text COLLATE "C" NOT NULL,
        client_id text COLLATE "C" NOT NULL, counterparty text COLLATE "C", day int NOT NULL,
        from_day int NOT NULL, good bigint NOT NULL, total bigint NOT NULL,
        carried boolean NOT NULL, PRIMARY KEY (kind, subject_id, input, origin));
    COMMENT ON COLUMN own.evidence.origin IS 'The fact it was counted for';
    COMMENT ON COLUMN own.evidence.position IS 'Where it became known of this subject';
    COMMENT ON COLUMN own.evidence.ref IS 'The lease, device or payment it is about';
    COMMENT ON COLUMN own.evidence.since IS 'Devices that moved after it take it with them';
    COMMENT ON COLUMN own.evidence.carried IS 'Of a device, from the node where it was before';
    CREATE INDEX ON own.evidence (position);
    CREATE INDEX ON own.evidence (ref) WHERE NOT carried;
    CREATE INDEX ON own.evidence (kind, subject_id, input, day, counterparty)
        WHERE counterparty IS NOT NULL;
    CREATE TABLE own.day (
        kind text COLLATE "C", subject_id text COLLATE "C", input text COLLATE "C", day int,
        from_day int, client_id text COLLATE "C", good bigint NOT NULL, total bigint NOT NULL,
        PRIMARY KEY (kind, subject_id, input, day, from_day, client_id)) WITH (fillfactor = 80);
    COMMENT ON TABLE own.day IS 'In micro-observations; uptime in microseconds';
"""
)


def _among(codes: tuple[int, ...]) -> str:
    """SQL: 1 where the code of a close is one of these, which the domain gives."""
    return f"(f.code IN ({', '.join(map(str, codes))}))::int"


_DAY = f"(f.at_us / {DAY_US})::int"
_FROM_DAY = f"""((f.at_us + coalesce((
    SELECT w.window_us FROM own.fault_window w
    WHERE w.position < f.position AND w.effective_from_us <= f.at_us
    ORDER BY w.position DESC LIMIT 1), {DEFAULT_WINDOW_US})) / {DAY_US})::int"""
_DEVICES = """greatest(1, (SELECT count(*) FROM own.device_at a WHERE a.node_id = {node}
    AND a.from_position < f.position
    AND (a.until_position IS NULL OR a.until_position > f.position)))"""
_EXCUSED = """CASE WHEN EXISTS (SELECT FROM own.maintenance m WHERE m.node_id = {node}) THEN (
    SELECT coalesce(sum(upper(r) - lower(r)), 0) FROM unnest((
    SELECT range_agg(int8range(greatest(m.from_us, f.from_us), least(
        m.until_us, {until}, CASE WHEN m.cancelled_position < f.position
            THEN m.cancelled_at_us ELSE m.until_us END)))
    FROM own.maintenance m
    WHERE m.node_id = {node} AND m.position < f.position
        AND m.from_us < {until} AND m.until_us > f.from_us
        AND (m.cancelled_position IS NULL OR m.cancelled_position > f.position
            OR m.cancelled_at_us > greatest(m.from_us, f.from_us)))) r) ELSE 0 END"""
_KNOWN = """SELECT e.node_id, s.owner_id, greatest(1, a.devices) AS devices,
        coalesce(a.moved, false) AS moved,
        EXISTS (SELECT FROM own.maintenance m WHERE m.node_id = e.node_id) AS kept
    FROM (SELECT DISTINCT node_id FROM facts) e
    JOIN own.subject s ON s.kind = 'node' AND s.subject_id = e.node_id
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (
                WHERE a.until_position IS NULL OR a.until_position > %(last)s) AS devices,
            bool_or(a.from_position > %(first)s OR a.until_position > %(first)s) AS moved
        FROM own.device_at a WHERE a.node_id = e.node_id) a OFFSET 0"""
"""SQL: what is asked of a node once in a range: how many devices it had in all of it, unless some
moved, and whether any maintenance was ever told of it.
"""
_COLUMNS = """kind, subject_id, input, origin, position, since, ref, client_id, counterparty, day,
    from_day, good, total, carried"""
RELATED = f"(f.own OR {is_paid_back('f.account_id')})"
"""SQL: whether the renter of a `lease.reserved.v1` is related to one that it will pay, as was known
there.
"""


def _both(select: str) -> str:
    """A row for the node and one for its provider; `select` gives `node_id` and `provider_id`, and
    is worked out once for both.
    """
    return f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT s.kind, s.subject_id, o.input, o.position, o.position, o.since, o.ref, o.client_id,
            NULL, o.day, o.from_day, o.good, o.total, false
        FROM ({select} OFFSET 0) o CROSS JOIN LATERAL (
            VALUES ('node', o.node_id), ('provider', o.provider_id)) s (kind, subject_id)"""


def _closed(
    kind: str,
    subject: str,
    counterparty: str,
    name: str,
    goods: tuple[int, ...],
    totals: tuple[int, ...],
) -> Rule:
    """The first leases of a counterparty and day, by how they ended."""
    good, total = _among(goods), _among(totals)
    return Rule(
        ("lease.closed.v1",),
        "lease_id text, code int, at_us bigint",
        f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT '{kind}', c.subject_id, '{name}', c.position, c.position, c.since, c.lease_id,
            c.client_id, c.counterparty, c.day, c.from_day, c.good * {OBSERVATION},
            {OBSERVATION}, false
        FROM (
            SELECT l.{subject} AS subject_id, l.{counterparty} AS counterparty, f.position,
                l.position AS since, f.lease_id, l.client_id, {_DAY} AS day, {good} AS good,
                CASE {good} WHEN 1 THEN {_DAY} ELSE {_FROM_DAY} END AS from_day,
                row_number() OVER (
                    PARTITION BY l.{subject}, l.{counterparty}, {_DAY} ORDER BY f.position) AS nth
            FROM facts f JOIN own.lease l USING (lease_id) WHERE NOT l.related AND {total} = 1) c
        WHERE c.nth + (
            SELECT count(*) FROM own.evidence e
            WHERE e.kind = '{kind}' AND e.subject_id = c.subject_id AND e.input = '{name}'
                AND e.day = c.day AND e.counterparty = c.counterparty) <= {LEASES_MAX}""",
    )


def _taken_back(topics: tuple[str, ...], fields: str, rows: str) -> Rule:
    """Rows that are counted no more: the same with the opposite sign. `rows` join `facts f`."""
    return Rule(
        topics,
        fields,
        f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT e.kind, e.subject_id, e.input, f.position, f.position, e.since, e.ref, e.client_id,
            NULL, e.day, e.from_day, -e.good, -e.total, false
        FROM facts f {rows} AND NOT e.carried""",
    )


_SILENT = """(SELECT s.{what} FROM own.silence s
    WHERE s.lease_id = f.lease_id AND s.position < f.position
    ORDER BY s.position DESC LIMIT 1)"""
_MISSED = f"""SELECT l.node_id, l.provider_id, '{UPTIME}' AS input, f.position,
        l.position AS since, f.lease_id AS ref, '' AS client_id, {_DAY} AS day,
        {_DAY} AS from_day, -div(l.ppm::numeric * f.missed_us,
            1000000 * {_DEVICES.format(node="l.node_id")})::bigint AS good, 0 AS total
    FROM ({{missed}}) f JOIN own.lease l USING (lease_id)
    WHERE f.missed_us > 0 AND NOT {_SILENT.format(what="announced")}"""

WORLD = (
    Rule(
        ("node.join_requested.v1",),
        "node_id text, provider_id text, at_us bigint",
        """INSERT INTO own.subject
        SELECT DISTINCT ON (node_id) 'node', node_id, provider_id, at_us, position FROM facts
        ORDER BY node_id, position ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("provider.registered.v1",),
        "provider_id text, at_us bigint",
        """INSERT INTO own.subject
        SELECT DISTINCT ON (provider_id) 'provider', provider_id, NULL, at_us, position FROM facts
        ORDER BY provider_id, position ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("account.opened.v1",),
        "account_id text, at_us bigint",
        """INSERT INTO own.subject
        SELECT DISTINCT ON (account_id) 'renter', account_id, NULL, at_us, position FROM facts
        ORDER BY account_id, position ON CONFLICT DO NOTHING""",
    ),
    *TIE_RULES,
    Rule(
        ("maturity.window_set.v1",),
        "effective_from_us bigint, window_us bigint",
        "INSERT INTO own.fault_window SELECT position, effective_from_us, window_us FROM facts",
    ),
    Rule(
        ("device.registered.v1", "device.retired.v1"),
        "device_id text, node_id text",
        """INSERT INTO own.device_at
        SELECT device_id, position, CASE topic WHEN 'device.registered.v1' THEN node_id END, NULL
        FROM facts""",
    ),
    Rule(
        ("device.registered.v1", "device.retired.v1"),
        "device_id text",
        """UPDATE own.device_at a SET until_position = n.until_position FROM (
            SELECT device_id, from_position,
                lead(from_position) OVER (PARTITION BY device_id ORDER BY from_position)
            FROM own.device_at WHERE device_id IN (SELECT device_id FROM facts)
        ) n (device_id, from_position, until_position)
        WHERE a.device_id = n.device_id AND a.from_position = n.from_position
            AND a.until_position IS NULL AND n.until_position IS NOT NULL""",
    ),
    Rule(
        ("node.maintenance_scheduled.v1",),
        "maintenance_id text, node_id text, kind text, from_us bigint, until_us bigint,"
        " at_us bigint",
        f"""INSERT INTO own.maintenance
        SELECT maintenance_id, node_id, from_us, until_us, position, NULL, NULL FROM facts
        WHERE kind <> '{evidence.EXCUSES_NOTHING}' AND at_us <= from_us""",
    ),
    Rule(
        ("node.maintenance_cancelled.v1",),
        "maintenance_id text, at_us bigint",
        """UPDATE own.maintenance m
        SET cancelled_position = f.position, cancelled_at_us = f.at_us
        FROM facts f WHERE m.maintenance_id = f.maintenance_id AND m.cancelled_position IS NULL""",
    ),
    Rule(
        ("lease.degraded.v1",),
        "lease_id text, since_us bigint, kept_until_us bigint",
        """INSERT INTO own.silence
        SELECT lease_id, position, since_us, kept_until_us IS NOT NULL FROM facts""",
    ),
    Rule(
        ("resource.accrued.v1",),
        "node_id text, meter text, told_us numeric",
        """INSERT INTO own.teller
        SELECT node_id, meter, min(position) FROM facts WHERE told_us > 0 GROUP BY node_id, meter
        ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, owed json",
        """INSERT INTO own.unfunded
        SELECT position, lease_id, (owed->'amount'->>'units')::bigint FROM facts
        WHERE owed IS NOT NULL""",
    ),
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text, lease_id text",
        "INSERT INTO own.contest SELECT dispute_id, lease_id, '', position FROM facts",
    ),
    Rule(
        ("dispute.answered.v1",),
        "dispute_id text, side text",
        """INSERT INTO own.contest
        SELECT dispute_id, '', side, min(position) FROM facts GROUP BY dispute_id, side
        ON CONFLICT DO NOTHING""",
    ),
)
"""Who and what there is: before the leases of the same range are read."""

EVIDENCE = (
    _closed("node", "node_id", "account_id", COMPLETION, evidence.NODE_GOOD, evidence.NODE_TOTAL),
    _closed(
        "provider", "provider_id", "account_id", COMPLETION, evidence.NODE_GOOD, evidence.NODE_TOTAL
    ),
    _closed(
        "renter", "account_id", "provider_id", CONDUCT, evidence.RENTER_GOOD, evidence.RENTER_TOTAL
    ),
    Rule(
        ("lease.ready.v1",),
        "lease_id text, at_us bigint",
        _both(
            f"""SELECT l.node_id, l.provider_id, '{RESPONSIVENESS}' AS input, f.position,
                l.position AS since, f.lease_id AS ref, l.client_id, {_DAY} AS day,
                {_DAY} AS from_day, {OBSERVATION} AS good, {OBSERVATION} AS total
            FROM facts f JOIN own.lease l USING (lease_id) WHERE NOT l.related"""
        ),
    ),
    Rule(
        ("lease.closed.v1",),
        "lease_id text, code int, at_us bigint",
        _both(
            f"""SELECT l.node_id, l.provider_id, '{RESPONSIVENESS}' AS input, f.position,
                l.position AS since, f.lease_id AS ref, l.client_id, {_DAY} AS day,
                {_FROM_DAY} AS from_day, 0 AS good, {OBSERVATION} AS total
            FROM facts f JOIN own.lease l USING (lease_id)
            WHERE NOT l.related AND f.code = {START_TIMEOUT}"""
        ),
    ),
    Rule(
        ("challenge.judged.v1",),
        "node_id text, device_id text, rule text, at_us bigint",
        _both(
            f"""SELECT f.node_id, n.owner_id AS provider_id, '{RESPONSIVENESS}' AS input,
                f.position, f.position AS since, f.device_id AS ref, '' AS client_id,
                {_DAY} AS day, {_DAY} AS from_day, (f.rule IS NULL)::int * {OBSERVATION} AS good,
                {OBSERVATION} AS total
            FROM facts f JOIN own.subject n ON n.kind = 'node' AND n.subject_id = f.node_id"""
        ),
    ),
    Rule(
        ("dispute.resolved.v1",),
        "dispute_id text, opened_by text, at_us bigint",
        _both(
            f"""SELECT l.node_id, l.provider_id, '{RESPONSIVENESS}' AS input, f.position,
                l.position AS since, l.lease_id AS ref, l.client_id, {_DAY} AS day,
                {_DAY} AS from_day, (a.dispute_id IS NOT NULL)::int * {OBSERVATION} AS good,
                {OBSERVATION} AS total
            FROM facts f JOIN own.contest c ON c.dispute_id = f.dispute_id AND c.side = ''
            JOIN own.lease l ON l.lease_id = c.lease_id
            LEFT JOIN own.contest a ON a.dispute_id = f.dispute_id AND a.side = 'provider'
                AND a.position < f.position
            WHERE NOT l.related AND f.opened_by = 'renter'"""
        ),
    ),
    Rule(
        ("dispute.resolved.v1",),
        "dispute_id text, opened_by text, unfounded boolean, at_us bigint",
        f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT 'renter', l.account_id,
            CASE f.opened_by WHEN 'renter' THEN '{DISPUTES}' ELSE '{RESPONSIVENESS}' END,
            f.position, f.position, l.position, l.lease_id, l.client_id, NULL, {_DAY}, {_DAY},
            CASE f.opened_by WHEN 'renter' THEN (NOT f.unfounded)::int
                ELSE (a.dispute_id IS NOT NULL)::int END * {OBSERVATION}, {OBSERVATION}, false
        FROM facts f JOIN own.contest c ON c.dispute_id = f.dispute_id AND c.side = ''
        JOIN own.lease l ON l.lease_id = c.lease_id
        LEFT JOIN own.contest a ON a.dispute_id = f.dispute_id AND a.side = 'renter'
            AND a.position < f.position
        WHERE NOT l.related""",
    ),
    Rule(
        ("lease.settled.v1",),
        "lease_id text, charge json, at_us bigint",
        f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT 'renter', l.account_id, '{PAYMENT}', f.position, f.position, l.position,
            f.lease_id, l.client_id, NULL, {_DAY}, {_DAY},
            greatest(0, {OBSERVATION} - div(u.owed * {OBSERVATION}, c.units))::bigint,
            {OBSERVATION}, false
        FROM facts f JOIN own.lease l USING (lease_id)
        CROSS JOIN LATERAL (SELECT (f.charge->>'units')::numeric AS units) c
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(units), 0) AS owed FROM own.unfunded
            WHERE lease_id = f.lease_id AND position < f.position) u
        WHERE NOT l.related AND c.units > 0""",
    ),
    Rule(
        ("payment.reversed.v1",),
        "payment_id text, account_id text, spent json, at_us bigint",
        f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT 'renter', f.account_id, '{PAYMENT}', f.position, f.position, f.position,
            f.payment_id, '', NULL, {_DAY}, {_DAY}, 0, {OBSERVATION}, false
        FROM facts f WHERE f.account_id IS NOT NULL AND (f.spent->>'units')::bigint > 0""",
    ),
    _taken_back(
        ("payment.reinstated.v1",),
        "payment_id text",
        f"""JOIN LATERAL (
            SELECT e.* FROM own.evidence e
            WHERE e.ref = f.payment_id AND e.input = '{PAYMENT}' AND e.position < f.position
                AND e.total > 0
            ORDER BY e.position DESC LIMIT 1) e ON true""",
    ),
    # Renters say what they got of what they were promised; only who has rented the node may.
    Rule(
        ("attribute.stated.v1",),
        "statement_id text, subject_id text, name text, value text, signer_account_id text,"
        " at_us bigint",
        f""", said AS (
            SELECT f.*, l.lease_id, l.provider_id, l.client_id, l.since, {_DAY} AS day,
                split_part(value, '/', 1)::numeric AS delivered,
                split_part(value, '/', 2)::numeric AS expected,
                row_number() OVER (
                    PARTITION BY f.subject_id, f.signer_account_id, {_DAY} ORDER BY f.position
                ) AS nth_of_signer
            FROM facts f CROSS JOIN LATERAL (
                SELECT l.lease_id, l.provider_id, l.client_id, l.position AS since
                FROM own.lease l
                WHERE l.node_id = f.subject_id AND l.account_id = f.signer_account_id
                    AND NOT l.related AND l.opened_position < f.position
                ORDER BY l.position DESC LIMIT 1) l
            WHERE starts_with(f.name, '{MEASURED_PREFIX}')
                AND f.value ~ '^{MEASURED_FORM}$'
        ), within AS (
            SELECT s.*, b.all_of_day,
                row_number() OVER (PARTITION BY s.subject_id, s.day ORDER BY s.position) AS nth
            FROM said s CROSS JOIN LATERAL (
                SELECT count(*) AS all_of_day,
                    count(*) FILTER (WHERE e.counterparty = s.signer_account_id) AS of_signer
                FROM own.evidence e
                WHERE e.kind = 'node' AND e.subject_id = s.subject_id
                    AND e.input = '{PERFORMANCE}' AND e.day = s.day
                    AND e.counterparty IS NOT NULL) b
            WHERE s.nth_of_signer + b.of_signer <= {LEASES_MAX}
        ), counted AS (
            SELECT * FROM within WHERE nth + all_of_day <= {MEASURED_MAX}
        ), remembered AS (
            INSERT INTO own.measurement SELECT statement_id, position, lease_id FROM counted
        )
        INSERT INTO own.evidence ({_COLUMNS})
        SELECT s.kind, s.subject_id, '{PERFORMANCE}', c.position, c.position, c.since, c.lease_id,
            c.client_id, c.signer_account_id, c.day, c.day,
            least({OBSERVATION}, div(c.delivered * {OBSERVATION}, c.expected))::bigint,
            {OBSERVATION}, false
        FROM counted c CROSS JOIN LATERAL (
            VALUES ('node', c.subject_id), ('provider', c.provider_id)) s (kind, subject_id)""",
    ),
    _taken_back(
        ("attribute.revoked.v1",),
        "statement_id text",
        f"""JOIN own.measurement m ON m.statement_id = f.statement_id AND m.origin < f.position
        JOIN own.evidence e ON e.ref = m.ref AND e.origin = m.origin
            AND e.input = '{PERFORMANCE}'""",
    ),
    Rule(
        ("device.capacity_accrued.v1",),
        "device_id text, node_id text, from_us bigint, to_us bigint, physical json,"
        " unavailable json, at_us bigint",
        _both(
            f"""SELECT n.node_id, n.owner_id AS provider_id, '{UPTIME}' AS input, f.position,
                f.position AS since, f.device_id AS ref, '' AS client_id, {_DAY} AS day,
                {_DAY} AS from_day,
                div(1000 * (p.promised_ms - p.lost_ms), d.count)::bigint AS good,
                div(1000 * p.promised_ms, d.count)::bigint AS total
            FROM facts f JOIN ({_KNOWN}) n USING (node_id)
            CROSS JOIN LATERAL (
                SELECT CASE WHEN n.moved THEN {_DEVICES.format(node="n.node_id")}
                    ELSE n.devices END AS count OFFSET 0) d
            CROSS JOIN LATERAL (
                SELECT CASE WHEN n.kept THEN ({_EXCUSED.format(node="n.node_id", until="f.to_us")})
                    / 1000 ELSE 0 END AS ms OFFSET 0) out
            CROSS JOIN LATERAL (
                SELECT (f.physical->>'units')::numeric AS physical_ms,
                    (f.unavailable->>'units')::numeric AS unavailable_ms) b
            CROSS JOIN LATERAL (
                SELECT greatest(0, b.physical_ms - out.ms) AS promised_ms,
                    least(greatest(0, b.physical_ms - out.ms),
                        greatest(0, b.unavailable_ms - out.ms)) AS lost_ms) p
            WHERE p.promised_ms > 0"""
        ),
    ),
    # A device that is leased is not unavailable in the books, however silent: the lease knows.
    Rule(
        ("lease.recovered.v1",),
        "lease_id text, gap_us bigint, at_us bigint",
        _both(_MISSED.format(missed="SELECT *, gap_us AS missed_us FROM facts")),
    ),
    Rule(
        ("lease.closed.v1",),
        "lease_id text, code int, closed_at_us bigint, at_us bigint",
        _both(
            _MISSED.format(
                missed=f"""SELECT *, closed_at_us - {_SILENT.format(what="since_us")} AS missed_us
                FROM facts f WHERE code = {UNREACHABLE}"""
            )
        ),
    ),
    # What was not metered, but for what is taken from the node for this lease already.
    Rule(
        ("resource.returned.v1",),
        "lease_id text, meter text, from_us bigint, until_us bigint, ran_us bigint,"
        " told_us bigint, at_us bigint",
        _both(
            f"""SELECT q.node_id, q.provider_id, '{UPTIME}' AS input, q.position, q.since,
                q.lease_id AS ref, '' AS client_id, q.day, q.day AS from_day,
                (q.already - q.lost)::bigint AS good, 0 AS total
            FROM (
                SELECT p.*, greatest(p.taken, coalesce(max(p.lost) OVER (
                    PARTITION BY p.lease_id ORDER BY p.position
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS already
                FROM (
                    SELECT l.node_id, l.provider_id, f.position, l.position AS since, f.lease_id,
                        {_DAY} AS day,
                        div(l.ppm::numeric * greatest(0, f.ran_us - f.told_us - {SLACK_US}
                                - ({_EXCUSED.format(node="l.node_id", until="f.until_us")})),
                            1000000 * {_DEVICES.format(node="l.node_id")}) AS lost,
                        (SELECT coalesce(sum(-e.good), 0) FROM own.evidence e
                            WHERE e.ref = f.lease_id AND e.kind = 'node' AND NOT e.carried
                                AND e.input = '{UPTIME}' AND e.good < 0
                                AND e.position < f.position) AS taken
                    FROM facts f JOIN own.lease l USING (lease_id)
                    JOIN own.teller t ON t.node_id = l.node_id AND t.meter = f.meter
                        AND t.position < f.position) p) q
            WHERE q.lost > q.already"""
        ),
    ),
    # The path was at fault: neither the node nor its renter is told by this lease.
    _taken_back(
        ("lease.fault_revised.v1",),
        "lease_id text, code int",
        f"""JOIN own.evidence e ON e.ref = f.lease_id
            AND e.input IN ({", ".join(f"'{name}'" for name in evidence.REVISED)})
            AND e.origin = (SELECT min(v.position) FROM own.verdict v
                WHERE v.lease_id = f.lease_id)
            AND {_among(evidence.REVISING)} = 1""",
    ),
    Rule(
        (),
        "",
        # kind || '' keeps the key, which begins with the kind, out of it: without statistics, as in
        # a proof, PostgreSQL reads all evidence of nodes by it, once for each lease of a device.
        f"""INSERT INTO own.evidence ({_COLUMNS})
        SELECT DISTINCT ON (h.node_id, e.input, e.origin) 'node', h.node_id, e.input, e.origin,
            greatest(e.position, h.from_position), e.since, e.ref, e.client_id, NULL::text, e.day,
            e.from_day, e.good, e.total, true
        FROM (
            SELECT e.subject_id, e.origin, e.input, a.from_position, a.node_id
            FROM own.evidence e
            LEFT JOIN own.lease_device d ON d.lease_id = e.ref
            JOIN own.device_at a ON a.device_id = coalesce(d.device_id, e.ref)
                AND a.from_position > e.since AND a.from_position <= %(last)s
            WHERE e.position > %(first)s AND e.position <= %(last)s AND e.kind = 'node'
                AND NOT e.carried AND a.node_id <> e.subject_id
            UNION ALL
            SELECT e.subject_id, e.origin, e.input, a.from_position, a.node_id
            FROM own.device_at a
            CROSS JOIN LATERAL (
                SELECT lease_id AS ref FROM own.lease_device WHERE device_id = a.device_id
                UNION ALL SELECT a.device_id) d
            JOIN own.evidence e ON e.ref = d.ref AND e.kind || '' = 'node' AND NOT e.carried
                AND e.since < a.from_position AND e.position < a.from_position
                AND e.position <= %(first)s
            WHERE a.from_position > %(first)s AND a.from_position <= %(last)s
                AND a.node_id <> e.subject_id
        ) h JOIN own.evidence e ON e.kind = 'node' AND e.subject_id = h.subject_id
            AND e.input = h.input AND e.origin = h.origin
        ORDER BY h.node_id, e.input, e.origin, h.from_position
        ON CONFLICT DO NOTHING""",
    ),
    Rule(
        (),
        "",
        """INSERT INTO own.day AS d
        SELECT kind, subject_id, input, day, from_day, client_id, sum(good), sum(total)
        FROM own.evidence WHERE position > %(first)s AND position <= %(last)s
        GROUP BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (kind, subject_id, input, day, from_day, client_id) DO UPDATE
        SET good = d.good + excluded.good, total = d.total + excluded.total""",
    ),
)
"""What follows for reputations: after leases and verdicts of the same range were read."""
