"""The charges of resources of an export counted a second time: DuckDB, and not one line of ours.

    sum(amounts of the signed rows)  == what the charge counted + what it names as refused
    what it counted                  <= floor(amount x time in the lease / time of the row), summed
    charge                           == floor(floor(measured / unit) x price / per)
    after_position                   == through_position of the charge before, of its meter

The first is an equation of every charge, whatever rules refused what, so nothing can be counted
that no row tells and no row can be left out in silence. Which rule refuses which row is not
computed here; `ledger/bundle/recount.py` decides that again.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

_METERS = """
    CREATE TEMP TABLE meter AS FROM (VALUES ('cpu', 1000000::HUGEINT), ('memory', 1000000000),
        ('storage', 1000000000), ('network', 1)) m (meter, scale)
"""


def _at(name: str) -> str:
    """A column of the rows is one value, or a list of one for each."""
    path = f"'$.resources.{name}'"
    return f"""CASE json_type(report, {path}) WHEN 'ARRAY'
        THEN json_extract_string(report, '$.resources.{name}[' || i || ']')
        ELSE json_extract_string(report, {path}) END"""


_ROWS = f"""
    CREATE TEMP TABLE signed AS
    WITH flat AS (
        SELECT node_id, position, received_us, i, report,
            json_extract_string(report, '$.leases[' || ({_at("lease")}) || ']') AS lease_id,
            CAST({_at("step_us")} AS HUGEINT) AS step_us,
            CAST({_at("len_us")} AS HUGEINT) AS len_us,
            CAST({_at("wall_minus_mono_us")} AS HUGEINT)
                + coalesce(CAST(report->>'clock_offset_us' AS HUGEINT), 0) AS wall_us,
            CAST({_at("wall_slew_us")} AS HUGEINT) AS slew_us,
            CAST({_at("cpu_us")} AS HUGEINT) AS cpu,
            CAST({_at("memory_byte_s")} AS HUGEINT) AS memory,
            CAST({_at("storage_byte_s")} AS HUGEINT) AS storage,
            CAST({_at("received_bytes")} AS HUGEINT)
                + CAST({_at("sent_bytes")} AS HUGEINT) AS network
        FROM (
            SELECT *, unnest(range(CAST(report->'resources'->>'n' AS BIGINT))) AS i FROM told)
    ), placed AS (
        SELECT *, wall_us + sum(step_us) OVER (
            PARTITION BY node_id, position ORDER BY i) AS from_us FROM flat
    )
    SELECT node_id, position, received_us, lease_id, meter, amount, from_us,
        from_us + len_us + slew_us AS to_us
    FROM placed UNPIVOT (amount FOR meter IN (cpu, memory, storage, network))
"""
_CHARGES = """
    CREATE TEMP TABLE charge AS
    SELECT f.position AS place, body->>'lease_id' AS lease_id, body->>'meter' AS meter,
        body->>'node_id' AS node_id, CAST(body->>'after_position' AS BIGINT) AS after,
        CAST(body->>'through_position' AS BIGINT) AS through,
        CAST(body->>'rows' AS BIGINT) AS rows, CAST(body->>'measured' AS HUGEINT) AS measured,
        CAST(body->>'quantity' AS HUGEINT) AS quantity,
        CAST(body->'charge'->>'units' AS HUGEINT) AS charge,
        CAST(body->'rate'->'price'->>'units' AS HUGEINT) AS price,
        CAST(body->'rate'->>'per' AS HUGEINT) AS per,
        coalesce(list_sum(list_transform(CAST(body->'refused' AS JSON[]),
            lambda one: CAST(one->>'quantity' AS HUGEINT))), 0)::HUGEINT AS refused,
        lag(CAST(body->>'through_position' AS BIGINT), 1, 0) OVER meters AS due_after,
        measured - lag(CAST(body->>'measured' AS HUGEINT), 1, 0) OVER meters AS counted
    FROM fact f WHERE name = 'resource.accrued.v1'
    WINDOW meters AS (PARTITION BY body->>'lease_id', body->>'meter' ORDER BY f.position)
"""
_FOUND = """
    WITH life AS (
        SELECT body->>'lease_id' AS lease_id,
            max(CAST(body->>'at_us' AS BIGINT)) FILTER (WHERE name = 'lease.reserved.v1')
                AS reserved_us,
            max(CAST(body->>'opened_at_us' AS BIGINT)) FILTER (WHERE name = 'lease.opened.v1')
                AS opened_us,
            max(CAST(body->>'closed_at_us' AS BIGINT)) FILTER (WHERE name = 'lease.closed.v1')
                AS closed_us
        FROM fact WHERE name IN ('lease.reserved.v1', 'lease.opened.v1', 'lease.closed.v1')
        GROUP BY 1
    ), summed AS (
        SELECT c.place, count(s.amount) AS rows, coalesce(sum(s.amount), 0)::HUGEINT AS amount,
            coalesce(sum(s.amount * greatest(0, least(s.to_us, coalesce(l.closed_us, s.to_us))
                - greatest(s.from_us, l.opened_us)) // (s.to_us - s.from_us)), 0) AS most
        FROM charge c JOIN life l USING (lease_id) LEFT JOIN signed s
            ON s.node_id = c.node_id AND s.lease_id = c.lease_id AND s.meter = c.meter
            AND s.position > c.after AND s.position <= c.through AND (c.after > 0
                OR s.received_us >= (l.reserved_us - 3600000000) // 3600000000 * 3600000000)
        GROUP BY c.place
    )
    SELECT c.place, what FROM charge c JOIN summed s USING (place) JOIN meter m USING (meter)
    CROSS JOIN LATERAL (FROM (VALUES
        ('read after another place than the charge before ended', c.after <> c.due_after),
        ('other rows than the reports have', c.rows <> s.rows),
        ('counted and refused are not the sum of the rows', c.counted + c.refused <> s.amount),
        ('more is counted than ran inside the lease', c.counted > s.most),
        ('other units than were measured', c.quantity <> c.measured // m.scale),
        ('another price than its rate gives', c.charge <> c.quantity * c.price // c.per)
    ) v (what, is_wrong)) WHERE is_wrong ORDER BY c.place, what
"""


def differences(bundle: Path) -> list[tuple[int, str]]:
    """(position, what) of each charge that does not follow from the reports of a bundle."""
    with duckdb.connect(":memory:", config={"threads": 1}) as sql:
        files = [str(path) for path in sorted((bundle / "log").glob("market-*.parquet"))]
        sql.execute(
            "CREATE TEMP TABLE fact AS SELECT position, name, CAST(decode(body) AS JSON) AS body"
            " FROM read_parquet($files)",
            {"files": files},
        )
        sql.register("arrow_told", _reports(bundle))
        sql.execute(
            "CREATE TEMP TABLE told AS SELECT node_id, position, received_us, CAST(report AS JSON)"
            " AS report FROM arrow_told"
        )
        for statement in (_METERS, _ROWS, _CHARGES):
            sql.execute(statement)
        return [(int(at), str(what)) for at, what in sql.execute(_FOUND).fetchall()]


def _reports(bundle: Path) -> pa.Table:
    """The signed bytes of each clean report that has resource rows: a stored body begins with them,
    their length in four bytes before.
    """
    told: dict[str, list[object]] = {
        name: [] for name in ("node_id", "position", "received_us", "report")
    }
    for path in sorted((bundle / "log").glob("usage-*.parquet")):
        for row in pq.read_table(path).to_pylist():
            body = row["body"]
            signed = body[4 : 4 + int.from_bytes(body[:4], "big")]
            if not row["flags"] and b'"resources"' in signed:
                values = (row["node_id"], row["position"], row["recorded_us"], signed.decode())
                for name, value in zip(told, values, strict=True):
                    told[name].append(value)
    return pa.table(
        told,
        schema=pa.schema(
            [
                ("node_id", pa.string()),
                ("position", pa.int64()),
                ("received_us", pa.int64()),
                ("report", pa.string()),
            ]
        ),
    )
