"""What was asked for, and what became of it? Jobs, leases, and each lease as of any position.

The state of a lease follows from its facts alone:

    requested -> reserved -> active -> closing -> settled   and what `domain/lease/states.py` adds

`lease` holds the present, `lease_history` one row per fact with the state after it; a total that a
fact does not carry is NULL there. Totals never fall, so as of N each is the largest up to N; the
end of the funds may move either way, so it is the last one told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from domain.duration import HOUR_US
from domain.lease.lease import (
    DEGRADED_LIMIT_US,
    MIN_RUNWAY_US,
    REQUEST_TIMEOUT_US,
    START_TIMEOUT_US,
)
from domain.leasing.due import MOMENTS
from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.job (
        job_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        client_id text NOT NULL, project_id text NOT NULL, end_user_ref text NOT NULL,
        kind text NOT NULL, image text, command text[] NOT NULL, env_refs text[] NOT NULL,
        workload_sha256 text NOT NULL, gpu_count int NOT NULL, share_ppm int NOT NULL,
        mem_ppm int NOT NULL, models text[] NOT NULL, price_max_units bigint NOT NULL,
        federated text, participants text[], sla_class text,
        auto_restart boolean NOT NULL, constraints json,
        work text, refs json, plan json, parent_job_id text COLLATE "C", instance_id text,
        meter_maxima json NOT NULL, volumes json NOT NULL, attached json,
        state text NOT NULL, ended_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, job_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, client_id text NOT NULL, project_id text NOT NULL,
        end_user_ref text NOT NULL, gpu_count int NOT NULL, share_ppm int NOT NULL,
        mem_ppm int NOT NULL, models text[] NOT NULL, price_max_units bigint NOT NULL,
        term_us bigint, funds_units bigint, at_us bigint NOT NULL, position bigint NOT NULL,
        match_position bigint, reserved_position bigint, node_id text COLLATE "C",
        provider_id text COLLATE "C", provider_account_id text COLLATE "C",
        offer_id text, device_ids text[], gpu_class text, price_units bigint, pay_with text,
        own boolean, tariff_version int, fee_units bigint, escrow_units bigint,
        reserved_at_us bigint, ready_position bigint, ready_at_us bigint, endpoint text,
        opened_position bigint, opened_at_us bigint, funds_end_us bigint, term_end_us bigint,
        closed_position bigint, closed_at_us bigint, close_party text, close_code int,
        settled_position bigint, settled_at_us bigint, sla_class text, client_account_id text,
        archived_position bigint, archived_at_us bigint, revised_position bigint, revised_code int,
        reclaim_window_us bigint, interruptible boolean, gang_id text, moment_us bigint,
        restart_of text, constraints json, job_part int, attempt int, run_due_us bigint,
        overflow boolean, restarted_as text, restarted_position bigint, escrow_id text,
        remoting_session_id text, split_label text, route_id text,
        federated_account_id text, federated_fee_units bigint, start_timeout_us bigint,
        mode text, mig_profile text, mig_starts int[],
        state text NOT NULL, charge_units bigint NOT NULL, gpu_us bigint NOT NULL,
        hours int NOT NULL, usage_position bigint NOT NULL, version bigint NOT NULL
    ) WITH (fillfactor = 50);
    CREATE TABLE own.lease_history (
        lease_id text COLLATE "C" NOT NULL, position bigint NOT NULL, version bigint NOT NULL,
        topic text NOT NULL, at_us bigint NOT NULL, state text NOT NULL, charge_units bigint,
        gpu_us bigint, hours int, usage_position bigint, escrow_units bigint,
        funds_end_us bigint, term_end_us bigint, moment_us bigint);
    CREATE TABLE own.stake (
        account_id text COLLATE "C" NOT NULL, lease_id text COLLATE "C" NOT NULL,
        PRIMARY KEY (account_id, lease_id));
"""

_INDEXES = """
    CREATE UNIQUE INDEX lease_history_key ON own.lease_history (lease_id, position);
    CREATE INDEX ON own.lease_history (position);
    CREATE INDEX ON own.job (account_id, position);
    CREATE INDEX ON own.job (parent_job_id) WHERE parent_job_id IS NOT NULL;
    CREATE INDEX ON own.job (position) WHERE plan IS NOT NULL;
    CREATE INDEX ON own.lease ((position + 0));
    CREATE INDEX ON own.lease (account_id, position);
    CREATE INDEX ON own.lease (job_id, position);
    CREATE INDEX ON own.lease (provider_account_id, position);
    CREATE INDEX ON own.lease (node_id, position);
    CREATE INDEX ON own.lease (coalesce(node_id, ''), position) WHERE settled_position IS NULL;
    CREATE INDEX ON own.lease (settled_at_us)
        WHERE settled_position IS NOT NULL AND archived_position IS NULL;
    CREATE INDEX ON own.lease (position) WHERE close_code = 10004 AND revised_code IS NULL;
    CREATE INDEX ON own.lease (job_id, job_part, attempt) WHERE job_part IS NOT NULL;
    CREATE INDEX ON own.lease (job_id, position) WHERE close_code = 100 AND restarted_as IS NULL;
    CREATE INDEX ON own.lease (account_id, position)
        WHERE opened_position IS NOT NULL AND settled_position IS NULL;
"""

_LEASE_FACTS = (
    "lease.requested.v1",
    "lease.match_decided.v1",
    "lease.reserved.v1",
    "lease.ready.v1",
    "lease.opened.v1",
    "lease.topped_up.v1",
    "lease.usage_accrued.v1",
    "lease.closed.v1",
    "lease.settled.v1",
    "lease.restarted.v1",
    "lease.command_acknowledged.v1",
    "lease.work_ended.v1",
    "lease.quoted.v1",
    "lease.paused.v1",
    "lease.resumed.v1",
    "lease.degraded.v1",
    "lease.recovered.v1",
    "lease.reclaim_started.v1",
    "lease.reclaim_cancelled.v1",
    "lease.extended.v1",
    "lease.funds_moved.v1",
    "lease.funds_taken.v1",
    "lease.funds_end_warned.v1",
    "lease.fault_revised.v1",
    "lease.disputed.v1",
    "lease.resolved.v1",
    "lease.archived.v1",
)

_MOVES = """CASE f.topic WHEN 'lease.usage_accrued.v1' THEN NULL
    WHEN 'lease.command_acknowledged.v1' THEN NULL WHEN 'lease.requested.v1' THEN 'requested'
    WHEN 'lease.quoted.v1' THEN 'quoted' WHEN 'lease.reserved.v1' THEN 'reserved'
    WHEN 'lease.ready.v1' THEN CASE WHEN l.gang_id IS NOT NULL THEN 'gang_waiting' END
    WHEN 'lease.opened.v1' THEN 'active' WHEN 'lease.paused.v1' THEN 'paused'
    WHEN 'lease.resumed.v1' THEN 'active' WHEN 'lease.degraded.v1' THEN 'degraded'
    WHEN 'lease.recovered.v1' THEN 'active' WHEN 'lease.reclaim_started.v1' THEN 'reclaiming'
    WHEN 'lease.reclaim_cancelled.v1' THEN 'active' WHEN 'lease.closed.v1' THEN 'closing'
    WHEN 'lease.settled.v1' THEN CASE WHEN f.disputed THEN 'disputed' ELSE 'settled' END
    WHEN 'lease.disputed.v1' THEN f.status WHEN 'lease.resolved.v1' THEN f.status
    WHEN 'lease.archived.v1' THEN 'archived' END"""
"""The state a fact leads to; NULL: it stays, as it does after most facts."""

_MOMENT = "coalesce(f.open_until_us, f.paused_at_us, f.since_us, f.deadline_us)"
"""The moment that goes with a state: end of quotes, begin of a pause or silence, deadline."""

_RULES = (
    Rule(
        ("job.submitted.v1",),
        "job_id text, account_id text, client_id text, project_id text, end_user_ref text,"
        " kind text, image text, command text[], env_refs text[], workload_sha256 text,"
        " gpu_count int, share_ppm int, mem_ppm int, models text[],"
        " max_price_per_gpu_hour json, at_us bigint, federated text, participants text[],"
        ' sla_class text, auto_restart boolean, constraints json, work text, "references" json,'
        " plan json, parent_job_id text, instance_id text, meter_maxima json, volumes json,"
        " attached json",
        """INSERT INTO own.job
        SELECT job_id, account_id, client_id, project_id, end_user_ref, kind, image, command,
            env_refs, workload_sha256, gpu_count, share_ppm, mem_ppm, models,
            (max_price_per_gpu_hour->>'units')::bigint, federated, participants, sla_class,
            auto_restart, constraints, work, "references", plan, parent_job_id,
            instance_id, meter_maxima, volumes, attached, 'open', NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("job.volumes_set.v1",),
        "job_id text, volumes json",
        """UPDATE own.job j SET volumes = f.volumes FROM (
            SELECT DISTINCT ON (job_id) job_id, volumes FROM facts
            ORDER BY job_id, position DESC) f
        WHERE j.job_id = f.job_id""",
    ),
    Rule(
        ("job.cancelled.v1", "job.completed.v1", "job.failed.v1"),
        "job_id text, at_us bigint",
        """UPDATE own.job j SET state = f.state, ended_at_us = f.at_us FROM (
            SELECT DISTINCT ON (job_id) job_id, at_us, CASE topic
                WHEN 'job.cancelled.v1' THEN 'cancelled'
                WHEN 'job.failed.v1' THEN 'failed' ELSE 'completed' END AS state
            FROM facts ORDER BY job_id, position DESC) f
        WHERE j.job_id = f.job_id""",
    ),
    Rule(
        ("lease.requested.v1",),
        "lease_id text, job_id text, account_id text, client_id text, project_id text,"
        " end_user_ref text, gpu_count int, share_ppm int, mem_ppm int, models text[],"
        " max_price_per_gpu_hour json, term_us bigint, funds json, at_us bigint, restart_of text,"
        " constraints json, part int, attempt int, run_due_us bigint, overflow boolean,"
        " start_timeout_us bigint, escrow_id text, remoting_session_id text, split_label text,"
        " route_id text",
        """INSERT INTO own.lease (lease_id, job_id, account_id, client_id, project_id,
            end_user_ref, gpu_count, share_ppm, mem_ppm, models, price_max_units, term_us,
            funds_units, at_us, position, state, charge_units, gpu_us, hours, usage_position,
            version, start_timeout_us, restart_of, constraints, job_part, attempt, run_due_us,
            overflow, escrow_id, remoting_session_id, split_label, route_id)
        SELECT lease_id, job_id, account_id, client_id, project_id, end_user_ref, gpu_count,
            share_ppm, mem_ppm, models, (max_price_per_gpu_hour->>'units')::bigint, term_us,
            (funds->>'units')::bigint, at_us, position, 'requested', 0, 0, 0, 0,
            stream_version, start_timeout_us, restart_of, constraints, facts.part, attempt,
            run_due_us, overflow, escrow_id, remoting_session_id, split_label, route_id
        FROM facts""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, node_id text, provider_id text, provider_account_id text, offer_id text,"
        " device_ids text[], gpu_class text, price_per_gpu_hour json, pay_with text,"
        " own boolean, tariff_version int, fee_per_gpu_hour json, at_us bigint,"
        " sla_class text, client_account_id text, federated json, share_ppm int, mem_ppm int,"
        " mode text, mig json, reclaim_window_us bigint, interruptible boolean, gang_id text",
        """UPDATE own.lease l SET reserved_position = f.position, node_id = f.node_id,
            share_ppm = f.share_ppm, mem_ppm = f.mem_ppm, mode = f.mode,
            mig_profile = f.mig->>'profile', mig_starts = (
                SELECT array_agg(one::int) FROM json_array_elements_text(f.mig->'starts') one),
            provider_id = f.provider_id, provider_account_id = f.provider_account_id,
            offer_id = f.offer_id, device_ids = f.device_ids, gpu_class = f.gpu_class,
            price_units = (f.price_per_gpu_hour->>'units')::bigint, pay_with = f.pay_with,
            own = f.own, tariff_version = f.tariff_version,
            fee_units = (f.fee_per_gpu_hour->>'units')::bigint,
            reserved_at_us = f.at_us, sla_class = f.sla_class,
            client_account_id = f.client_account_id, reclaim_window_us = f.reclaim_window_us,
            interruptible = f.interruptible, gang_id = f.gang_id,
            federated_account_id = f.federated->>'account_id',
            federated_fee_units = (f.federated->'fee_per_hour'->>'units')::bigint
        FROM facts f WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.reserved.v1", "lease.topped_up.v1", "lease.extended.v1"),
        "lease_id text, client_account_id text, federated json, owners json, escrow json,"
        " parts json",
        """INSERT INTO own.stake
        SELECT DISTINCT s.account_id, f.lease_id FROM facts f CROSS JOIN LATERAL (
            SELECT f.client_account_id AS account_id UNION ALL SELECT f.federated->>'account_id'
            UNION ALL SELECT one->>'account_id' FROM json_array_elements(f.owners) one
            UNION ALL SELECT one->>'account_id' FROM json_array_elements(f.escrow) one
            UNION ALL SELECT one->>'account_id' FROM json_array_elements(f.parts) one) s
        WHERE s.account_id IS NOT NULL ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("escrow.funded.v1",),
        "escrow_id text, parts json",
        """INSERT INTO own.stake
        SELECT DISTINCT one->>'account_id', f.escrow_id
        FROM facts f, json_array_elements(f.parts) one
        WHERE one->>'account_id' IS NOT NULL ON CONFLICT DO NOTHING""",
    ),
    # Each of these rewrites the row of its lease: what they tell of one is written at once.
    Rule(
        (
            "lease.match_decided.v1",
            "lease.ready.v1",
            "lease.opened.v1",
            "lease.closed.v1",
            "lease.settled.v1",
            "lease.archived.v1",
        ),
        "lease_id text, at_us bigint, endpoint text, opened_at_us bigint, closed_at_us bigint,"
        " party text, code int",
        """UPDATE own.lease l SET match_position = coalesce(f.match_position, l.match_position),
            ready_position = coalesce(f.ready_position, l.ready_position),
            ready_at_us = coalesce(r.at_us, l.ready_at_us),
            endpoint = CASE WHEN r.position IS NULL THEN l.endpoint ELSE r.endpoint END,
            opened_position = coalesce(f.opened_position, l.opened_position),
            opened_at_us = coalesce(f.opened_at_us, l.opened_at_us),
            closed_position = coalesce(f.closed_position, l.closed_position),
            closed_at_us = coalesce(f.closed_at_us, l.closed_at_us),
            close_party = coalesce(f.party, l.close_party),
            close_code = coalesce(f.code, l.close_code),
            settled_position = coalesce(f.settled_position, l.settled_position),
            settled_at_us = coalesce(f.settled_at_us, l.settled_at_us),
            archived_position = coalesce(f.archived_position, l.archived_position),
            archived_at_us = coalesce(f.archived_at_us, l.archived_at_us)
        FROM (
            SELECT lease_id,
                max(position) FILTER (WHERE topic = 'lease.match_decided.v1') AS match_position,
                max(position) FILTER (WHERE topic = 'lease.ready.v1') AS ready_position,
                max(position) FILTER (WHERE topic = 'lease.opened.v1') AS opened_position,
                max(opened_at_us) FILTER (WHERE topic = 'lease.opened.v1') AS opened_at_us,
                max(position) FILTER (WHERE topic = 'lease.closed.v1') AS closed_position,
                max(closed_at_us) FILTER (WHERE topic = 'lease.closed.v1') AS closed_at_us,
                max(party) FILTER (WHERE topic = 'lease.closed.v1') AS party,
                max(code) FILTER (WHERE topic = 'lease.closed.v1') AS code,
                max(position) FILTER (WHERE topic = 'lease.settled.v1') AS settled_position,
                max(at_us) FILTER (WHERE topic = 'lease.settled.v1') AS settled_at_us,
                max(position) FILTER (WHERE topic = 'lease.archived.v1') AS archived_position,
                max(at_us) FILTER (WHERE topic = 'lease.archived.v1') AS archived_at_us
            FROM facts GROUP BY lease_id) f
        LEFT JOIN facts r ON r.position = f.ready_position
        WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.resumed.v1",),
        "lease_id text, mig_starts int[]",
        """UPDATE own.lease l SET mig_starts = nullif(f.mig_starts, '{}')
        FROM (SELECT DISTINCT ON (lease_id) * FROM facts ORDER BY lease_id, position DESC) f
        WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.fault_revised.v1",),
        "lease_id text, code int",
        """UPDATE own.lease l SET revised_position = f.position, revised_code = f.code
        FROM facts f WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.restarted.v1",),
        "lease_id text, as_lease_id text",
        """UPDATE own.lease l SET restarted_as = f.as_lease_id, restarted_position = f.position
        FROM facts f WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        _LEASE_FACTS,
        "lease_id text, at_us bigint, charge json, gpu_us bigint, hour_index bigint,"
        " usage_position bigint, escrow json, put_in json, funds_end_us bigint,"
        " term_end_us bigint, disputed boolean, status text, open_until_us bigint,"
        " paused_at_us bigint, since_us bigint, deadline_us bigint",
        f""", moved AS (
            SELECT f.*, {_MOVES} AS state, {_MOMENT} AS moment_us, l.state AS state_before,
                l.moment_us AS moment_before, l.position AS lease
            FROM facts f JOIN own.lease l ON l.lease_id = f.lease_id
        ), after AS (
            SELECT m.*, first_value(state) OVER w AS state_after,
                first_value(moment_us) OVER w AS moment_after
            FROM (SELECT *, count(state) OVER (
                    PARTITION BY lease ORDER BY position ROWS UNBOUNDED PRECEDING) AS moves
                FROM moved) m
            WINDOW w AS (PARTITION BY lease, moves ORDER BY position)
        ), line AS MATERIALIZED (
            SELECT f.lease, f.lease_id, f.position, f.stream_version AS version, f.topic, f.at_us,
                coalesce(f.state_after, f.state_before) AS state,
                (f.charge->>'units')::bigint AS charge_units, f.gpu_us,
                f.hour_index + 1 AS hours,
                CASE WHEN f.hour_index IS NOT NULL THEN f.usage_position END AS usage_position,
                coalesce((f.put_in->>'units')::bigint, CASE WHEN f.escrow IS NOT NULL THEN (
                    SELECT sum((part->'amount'->>'units')::bigint)
                    FROM json_array_elements(f.escrow) part) END) AS escrow_units,
                f.funds_end_us, f.term_end_us,
                CASE WHEN f.state_after IS NULL THEN f.moment_before ELSE f.moment_after END
                    AS moment_us
            FROM after f
        ), told AS (
            INSERT INTO own.lease_history
            SELECT lease_id, position, version, topic, at_us, state, charge_units, gpu_us, hours,
                usage_position, escrow_units, funds_end_us, term_end_us, moment_us FROM line
        )
        UPDATE own.lease l SET state = t.state, moment_us = t.moment_us, version = t.version,
            charge_units = coalesce(t.charge_units, l.charge_units),
            gpu_us = coalesce(t.gpu_us, l.gpu_us), hours = coalesce(t.hours, l.hours),
            usage_position = coalesce(t.usage_position, l.usage_position),
            escrow_units = coalesce(t.escrow_units, l.escrow_units),
            funds_end_us = coalesce(t.funds_end_us, l.funds_end_us),
            term_end_us = greatest(t.term_end_us, l.term_end_us)
        FROM (
            SELECT min(lease_id) AS lease_id,
                (array_agg(state ORDER BY position))[count(*)] AS state,
                (array_agg(moment_us ORDER BY position))[count(*)] AS moment_us,
                max(version) AS version, max(charge_units) AS charge_units,
                max(gpu_us) AS gpu_us, max(hours) AS hours,
                max(usage_position) AS usage_position, max(escrow_units) AS escrow_units,
                (array_agg(funds_end_us ORDER BY position)
                    FILTER (WHERE funds_end_us IS NOT NULL))[count(funds_end_us)] AS funds_end_us,
                max(term_end_us) AS term_end_us
            FROM line GROUP BY lease) t
        WHERE l.lease_id = t.lease_id""",
    ),
)

LEASES = Projection("leases", _TABLES, _RULES, _INDEXES)

DUE_COLUMNS = {
    "request_ends": f"at_us + {REQUEST_TIMEOUT_US}",
    "quotes_end": "moment_us",
    "start_timeout": f"reserved_at_us + coalesce(start_timeout_us, {START_TIMEOUT_US})",
    "hour_end": f"opened_at_us + (hours + 1) * {HOUR_US}",
    "term_end": "term_end_us",
    "runway_begin": f"funds_end_us - {MIN_RUNWAY_US}",
    "silence_end": f"moment_us + {DEGRADED_LIMIT_US}",
    "at_once": "0",
}
"""The moments of `domain/leasing/due.py` as this view tells them: the same, or earlier for a
request that stands in a queue and for a silent lease that a maintenance keeps."""
_DUE = "CASE state {} END".format(
    " ".join(
        f"WHEN '{state}' THEN least({', '.join(map(DUE_COLUMNS.__getitem__, names))})"
        for state, names in MOMENTS.items()
    )
)
_DUE_LEASES = f"""
    SELECT lease_id, coalesce(node_id, ''), position FROM proj_leases.lease
    WHERE settled_position IS NULL AND (coalesce(node_id, ''), position) > (%(node)s, %(after)s)
        AND {_DUE} <= %(now)s
    ORDER BY coalesce(node_id, ''), position LIMIT %(limit)s
"""


def read_due(
    connection: Connection, now_us: int, node_id: str, after: int, limit: int
) -> list[tuple[str, str, int]]:
    """(lease, node or '', position) of leases with `due_us` <= now behind a node and position, in
    their order: by node, so that a report is read once for all the leases it names.
    """
    asked = {"node": node_id, "after": after, "now": now_us, "limit": limit}
    found = connection.execute(_DUE_LEASES.encode(), asked)
    return [(str(lease_id), str(node), int(position)) for lease_id, node, position in found]


@dataclass(frozen=True, slots=True)
class Job:
    """`state` is open, cancelled or completed; `price_max_units` is per GPU-hour."""

    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    kind: str
    image: str | None
    command: list[str]
    env_refs: list[str]
    workload_sha256: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    price_max_units: int
    federated: str | None
    participants: list[str]
    sla_class: str | None
    auto_restart: bool
    constraints: dict[str, Any] | None
    work: str | None
    refs: list[dict[str, str]] | None
    plan: dict[str, Any] | None
    parent_job_id: str | None
    instance_id: str | None
    meter_maxima: list[dict[str, Any]]
    volumes: list[dict[str, Any]]
    attached: dict[str, Any] | None
    state: str
    ended_at_us: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease with its terms. `at_us` and `position` are of the request, `version` of its stream.

    `charge_units` and `gpu_us` are what has been accrued so far. Terms are None before they exist;
    `match_position` is the fact that explains the choice.
    """

    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    price_max_units: int
    term_us: int | None
    funds_units: int | None
    at_us: int
    position: int
    match_position: int | None
    reserved_position: int | None
    node_id: str | None
    provider_id: str | None
    provider_account_id: str | None
    offer_id: str | None
    device_ids: list[str] | None
    gpu_class: str | None
    price_units: int | None
    pay_with: str | None
    own: bool | None
    tariff_version: int | None
    fee_units: int | None
    escrow_units: int | None
    reserved_at_us: int | None
    ready_position: int | None
    ready_at_us: int | None
    endpoint: str | None
    opened_position: int | None
    opened_at_us: int | None
    funds_end_us: int | None
    term_end_us: int | None
    closed_position: int | None
    closed_at_us: int | None
    close_party: str | None
    close_code: int | None
    settled_position: int | None
    settled_at_us: int | None
    sla_class: str | None
    client_account_id: str | None
    archived_position: int | None
    archived_at_us: int | None
    revised_position: int | None
    revised_code: int | None
    reclaim_window_us: int | None
    interruptible: bool | None
    gang_id: str | None
    moment_us: int | None
    federated_account_id: str | None
    federated_fee_units: int | None
    mode: str | None
    mig_profile: str | None
    mig_starts: list[int] | None
    restart_of: str | None
    escrow_id: str | None
    remoting_session_id: str | None
    split_label: str | None
    route_id: str | None
    constraints: dict[str, Any] | None
    job_part: int | None
    attempt: int | None
    run_due_us: int | None
    overflow: bool | None
    restarted_as: str | None
    restarted_position: int | None
    start_timeout_us: int | None
    state: str
    charge_units: int
    gpu_us: int
    hours: int
    usage_position: int
    version: int


@dataclass(frozen=True, slots=True)
class LeaseFact:
    """One fact of a lease and the state after it; totals where the fact carries them."""

    lease_id: str
    position: int
    version: int
    topic: str
    at_us: int
    state: str
    charge_units: int | None
    gpu_us: int | None
    hours: int | None
    usage_position: int | None
    escrow_units: int | None
    funds_end_us: int | None
    term_end_us: int | None
    moment_us: int | None


_PARTY = """
    (%(account)s::text IS NULL OR account_id = %(account)s OR provider_account_id = %(account)s)
"""


def read_job(connection: Connection, job_id: str, *, account_id: str | None = None) -> Job | None:
    """One job; with `account_id`, only if it is that account's."""
    sql = """SELECT * FROM proj_leases.job WHERE job_id = %(id)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)"""
    return read.one(connection, Job, sql, id=job_id, account=account_id)


def read_is_open(connection: Connection, job_ids: Sequence[str]) -> bool:
    """Whether one of these jobs has a lease that is not settled, or a plan that may open one."""
    sql = """SELECT EXISTS (SELECT FROM proj_leases.lease
            WHERE job_id = ANY(%(ids)s) AND settled_position IS NULL AND archived_position IS NULL)
        OR EXISTS (SELECT FROM proj_leases.job
            WHERE job_id = ANY(%(ids)s) AND plan IS NOT NULL AND state = 'open')"""
    row = connection.execute(sql, {"ids": list(job_ids)}).fetchone()
    return row is not None and bool(row[0])


def read_jobs(
    connection: Connection,
    *,
    account_id: str | None = None,
    client_id: str | None = None,
    state: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Job]:
    """In order of submission; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_leases.job WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        AND (%(client)s::text IS NULL OR client_id = %(client)s)
        AND (%(state)s::text IS NULL OR state = %(state)s) ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Job,
        sql,
        way,
        account=account_id,
        client=client_id,
        state=state,
        after=after,
        limit=limit,
    )


def read_live_leases(connection: Connection, account_id: str) -> list[str]:
    """The renter's leases that run or wait for their last reports, in order of request."""
    sql = b"""SELECT lease_id FROM proj_leases.lease
        WHERE account_id = %s AND opened_position IS NOT NULL AND settled_position IS NULL
        ORDER BY position"""
    return [row[0] for row in connection.execute(sql, (account_id,))]


def read_lease(
    connection: Connection,
    lease_id: str,
    *,
    account_id: str | None = None,
    as_of_position: int | None = None,
) -> LeaseRow | None:
    """One lease, now or as of a position; with `account_id`, only if it is renter or provider.

    As of a position before the request there is no lease. The projection must have reached
    `as_of_position`.
    """
    found = read_leases(
        connection, lease_id=lease_id, account_id=account_id, as_of_position=as_of_position, limit=1
    )
    return found[0] if found else None


def read_leases(
    connection: Connection,
    *,
    lease_id: str | None = None,
    account_id: str | None = None,
    job_id: str | None = None,
    node_id: str | None = None,
    state: str | None = None,
    is_open: bool | None = None,
    renter_id: str | None = None,
    as_of_position: int | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[LeaseRow]:
    """In order of request; `after` is the last position of the page before.

    `account_id` is renter or provider, `renter_id` the renter; `is_open`: nothing has closed it, or
    something has. `state` and all terms are those of `as_of_position`.
    """
    asked = {
        "lease_id": lease_id,
        "job_id": job_id,
        "node_id": node_id,
        "account_id": renter_id,
        "state": state,
    }
    named = {name: value for name, value in asked.items() if value is not None}
    sql = _leases_sql(tuple(named), is_open, account_id is not None, as_of_position is not None)
    return read.listed(
        connection,
        LeaseRow,
        sql,
        way,
        **named,
        party=account_id,
        at=as_of_position,
        after=after,
        limit=limit,
    )


@lru_cache(maxsize=256)
def _leases_sql(
    named: tuple[str, ...], is_open: bool | None, of_party: bool, is_past: bool
) -> tuple[str, ...]:
    """The list of leases with these columns given, in parts that have no lease in common.

    It says what is asked and nothing else: each part is read in order from the index of the leases
    of a renter, a provider, a node, a job, so that a page costs the same however many there were.
    """
    source = f"({_AS_OF}) lease" if is_past else "proj_leases.lease"
    wanted = [f"{name} = %({name})s" for name in named]
    if is_open is not None:
        wanted.append(f"closed_at_us IS {'NULL' if is_open else 'NOT NULL'}")
    # Who asks for leases of all reads an index of their own: for PostgreSQL would look through it
    # for a renter with many leases, and those may all be old.
    is_of_all = not of_party and {"state"} >= set(named)
    key = "position + 0" if is_of_all else "position"
    renters = (*wanted, "account_id = %(party)s")
    providers = (*wanted, "provider_account_id = %(party)s", "account_id <> %(party)s")
    parts = (renters, providers) if of_party else (wanted,)
    return tuple(
        f"SELECT * FROM {source} WHERE {' AND '.join([f'{key} > %(after)s', *part])}"
        f" ORDER BY {key} LIMIT %(limit)s"
        for part in parts
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a lease has come, in few words: what is looked at again and again."""

    lease_id: str
    account_id: str
    provider_account_id: str | None
    node_id: str | None
    state: str
    version: int
    charge_units: int
    gpu_us: int
    opened_at_us: int | None
    settled_at_us: int | None
    funds_end_us: int | None
    term_end_us: int | None


def read_standings(connection: Connection, lease_ids: Sequence[str]) -> list[Standing]:
    """How far each of these leases has come, with one query, in no order; unknown ids are left
    out.
    """
    sql = f"""SELECT {", ".join(Standing.__slots__)} FROM proj_leases.lease
        WHERE lease_id = ANY(%(ids)s)"""
    return read.many(connection, Standing, sql, ids=list(lease_ids))


def read_unsettled(connection: Connection, account_id: str, limit: int = 50) -> list[str]:
    """Ids of leases that are not settled, in order of request: of this renter or provider, or with
    credits of this account in their escrow, or with a part of their charge for it.
    """
    sql = f"""SELECT lease_id FROM proj_leases.lease WHERE settled_position IS NULL AND ({_PARTY}
            OR lease_id IN (SELECT lease_id FROM proj_leases.stake WHERE account_id = %(account)s))
        ORDER BY position LIMIT %(limit)s"""
    rows = connection.execute(sql.encode(), {"account": account_id, "limit": limit})
    return [str(row[0]) for row in rows]


@dataclass(frozen=True, slots=True)
class DeviceEnd:
    """What a lease holds of a device, and when it ends as things are now; None: not known."""

    device_id: str
    share_ppm: int
    mem_ppm: int
    ends_us: int | None


def read_ends(connection: Connection, device_ids: list[str]) -> list[DeviceEnd]:
    """When those who hold these devices end: with their term, or else with their funds. The views
    of the fleet and of leases are followed together.
    """
    sql = """SELECT h.device_id, h.share_ppm, h.mem_ppm,
            coalesce(l.term_end_us, l.funds_end_us) AS ends_us
        FROM proj_fleet.holding h JOIN proj_leases.lease l USING (lease_id)
        WHERE h.device_id = ANY(%(ids)s)"""
    return read.many(connection, DeviceEnd, sql, ids=device_ids)


def read_funds_ended(
    connection: Connection,
    *,
    job_id: str | None = None,
    account_id: str | None = None,
    auto_only: bool = False,
    after: int = 0,
    limit: int = 100,
) -> list[LeaseRow]:
    """Leases whose funds ended, of open jobs, that nothing goes on for yet; oldest first."""
    sql = """SELECT l.* FROM proj_leases.lease l JOIN proj_leases.job j USING (job_id)
        WHERE l.close_code = 100 AND l.restarted_as IS NULL AND j.state = 'open'
            AND (j.auto_restart OR NOT %(auto)s) AND l.position > %(after)s
            AND (%(job)s::text IS NULL OR l.job_id = %(job)s)
            AND (%(account)s::text IS NULL OR l.account_id = %(account)s)
        ORDER BY l.position LIMIT %(limit)s"""
    return read.many(
        connection,
        LeaseRow,
        sql,
        auto=auto_only,
        after=after,
        job=job_id,
        account=account_id,
        limit=limit,
    )


def _known(column: str, since: str) -> str:
    return f"CASE WHEN l.{since} <= %(at)s THEN l.{column} END AS {column}"


_SINCE = {
    "match_position": ("match_position",),
    "reserved_position": (
        "reserved_position",
        "node_id",
        "provider_id",
        "provider_account_id",
        "offer_id",
        "device_ids",
        "gpu_class",
        "price_units",
        "pay_with",
        "own",
        "tariff_version",
        "fee_units",
        "reserved_at_us",
        "sla_class",
        "client_account_id",
        "federated_account_id",
        "federated_fee_units",
        "mode",
        "mig_profile",
        "mig_starts",
        "reclaim_window_us",
        "interruptible",
        "gang_id",
    ),
    "ready_position": ("ready_position", "ready_at_us", "endpoint"),
    "opened_position": ("opened_position", "opened_at_us"),
    "closed_position": ("closed_position", "closed_at_us", "close_party", "close_code"),
    "settled_position": ("settled_position", "settled_at_us"),
    "archived_position": ("archived_position", "archived_at_us"),
    "revised_position": ("revised_position", "revised_code"),
    "restarted_position": ("restarted_as", "restarted_position"),
}

_AS_OF = f"""
    SELECT l.lease_id, l.job_id, l.account_id, l.client_id, l.project_id, l.end_user_ref,
        l.gpu_count, l.share_ppm, l.mem_ppm, l.models, l.price_max_units, l.term_us,
        l.funds_units, l.at_us, l.position, l.restart_of, l.constraints,
        l.start_timeout_us, l.escrow_id, l.remoting_session_id, l.split_label, l.route_id,
        l.job_part, l.attempt, l.run_due_us, l.overflow,
        {", ".join(_known(column, since) for since, cs in _SINCE.items() for column in cs)},
        s.*
    FROM proj_leases.lease l
    CROSS JOIN LATERAL (
        SELECT (array_agg(h.state ORDER BY h.position DESC))[1] AS state,
            coalesce(max(h.charge_units), 0) AS charge_units, coalesce(max(h.gpu_us), 0) AS gpu_us,
            coalesce(max(h.hours), 0) AS hours,
            coalesce(max(h.usage_position), 0) AS usage_position, max(h.version) AS version,
            max(h.escrow_units) AS escrow_units,
            (array_agg(h.funds_end_us ORDER BY h.position DESC)
                FILTER (WHERE h.funds_end_us IS NOT NULL))[1] AS funds_end_us,
            max(h.term_end_us) AS term_end_us,
            (array_agg(h.moment_us ORDER BY h.position DESC))[1] AS moment_us
        FROM proj_leases.lease_history h
        WHERE h.lease_id = l.lease_id AND h.position <= %(at)s) s
    WHERE l.position <= %(at)s
"""


@dataclass(frozen=True, slots=True)
class FundedLease:
    """`devices`: that end with it if it ends; None: those of all of a gang that has not opened."""

    lease_id: str
    reserved_position: int
    devices: int | None


def read_funded_by(
    connection: Connection, account_id: str, limit: int, before: int | None = None
) -> list[FundedLease]:
    """Leases not settled yet whose escrow may hold card money or cash of an account, the latest
    reservation first; `before`: of the earlier ones. It is a list to look at: whose money it is,
    the lease says.
    """
    sql = """SELECT l.lease_id, l.reserved_position,
            CASE WHEN l.gang_id IS NULL OR l.opened_position IS NOT NULL
                THEN cardinality(l.device_ids) END
        FROM proj_leases.lease l
        WHERE l.settled_position IS NULL AND l.reserved_position < %s
            AND (l.account_id = %s OR EXISTS (SELECT FROM proj_leases.stake s
                WHERE s.account_id = %s AND s.lease_id IN (l.lease_id, l.escrow_id)))
            AND EXISTS (SELECT FROM public.account a
                WHERE a.name >= 'escrow:' || coalesce(l.escrow_id, l.lease_id) || ':'
                    AND a.name < 'escrow:' || coalesce(l.escrow_id, l.lease_id) || ';'
                    AND a.units > 0 AND split_part(a.name, ':', 4) IN ('card', 'cash'))
        ORDER BY l.reserved_position DESC LIMIT %s"""
    before = 2**63 - 1 if before is None else before
    rows = connection.execute(sql, (before, account_id, account_id, limit)).fetchall()
    return [FundedLease(*row) for row in rows]


def read_filled_escrows(connection: Connection, account_id: str) -> list[str]:
    """Jobs whose escrow holds something, of an account or with a deposit of it."""
    sql = """SELECT j.job_id FROM proj_leases.job j
        WHERE (j.account_id = %s OR EXISTS (SELECT FROM proj_leases.stake s
                WHERE s.account_id = %s AND s.lease_id = j.job_id))
            AND EXISTS (SELECT FROM public.account a WHERE a.name >= 'escrow:' || j.job_id || ':'
                AND a.name < 'escrow:' || j.job_id || ';' AND a.units > 0)
        ORDER BY j.job_id"""
    return [str(job_id) for (job_id,) in connection.execute(sql, (account_id, account_id))]


def read_lease_history(
    connection: Connection, lease_id: str, *, after: int = 0, way: Way = OLDEST, limit: int = 500
) -> list[LeaseFact]:
    """Every fact of a lease in order; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_leases.lease_history
        WHERE lease_id = %(id)s AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, LeaseFact, sql, way, id=lease_id, after=after, limit=limit)


def read_lease_events(
    connection: Connection,
    *,
    account_id: str | None,
    lease_id: str | None,
    after: int,
    until: int,
    limit: int,
) -> list[LeaseFact]:
    """Facts of one lease or of all leases of a renter or provider (None: of everybody), in the
    order of the log, with positions in (after, until].
    """
    sql = f"""SELECT h.* FROM proj_leases.lease_history h JOIN proj_leases.lease USING (lease_id)
        WHERE h.position > %(after)s AND h.position <= %(until)s AND {_PARTY}
        AND (%(lease)s::text IS NULL OR h.lease_id = %(lease)s)
        ORDER BY h.position LIMIT %(limit)s"""
    return read.many(
        connection,
        LeaseFact,
        sql,
        account=account_id,
        lease=lease_id,
        after=after,
        until=until,
        limit=limit,
    )


@dataclass(frozen=True, slots=True)
class JobCost:
    """What the leases of one job came to so far. `parent_job_id`: None at the top of the tree."""

    job_id: str
    parent_job_id: str | None
    kind: str
    state: str
    leases: int
    open_leases: int
    gpu_us: int
    charge_units: int


def read_job_costs(connection: Connection, job_id: str, limit: int = 1_000) -> list[JobCost]:
    """A job and every job that is a part of it, each lease in exactly one of them."""
    sql = """WITH RECURSIVE tree AS (
            SELECT job_id, position FROM proj_leases.job WHERE job_id = %(id)s
            UNION
            SELECT j.job_id, j.position FROM proj_leases.job j
            JOIN tree t ON j.parent_job_id = t.job_id)
        SELECT j.job_id, j.parent_job_id, j.kind, j.state, count(l.lease_id) AS leases,
            count(l.lease_id) FILTER (WHERE l.settled_position IS NULL) AS open_leases,
            coalesce(sum(l.gpu_us), 0)::bigint AS gpu_us,
            coalesce(sum(l.charge_units), 0)::bigint AS charge_units
        FROM tree t JOIN proj_leases.job j ON j.job_id = t.job_id
        LEFT JOIN proj_leases.lease l ON l.job_id = j.job_id
        GROUP BY j.job_id, j.parent_job_id, j.kind, j.state, j.position
        ORDER BY j.position LIMIT %(limit)s"""
    return read.many(connection, JobCost, sql, id=job_id, limit=limit)


@dataclass(frozen=True, slots=True)
class PartRow:
    """A chunk or member of a job by its latest lease, and what all its leases cost."""

    part: int
    attempt: int
    lease_id: str
    node_id: str | None
    state: str
    close_code: int | None
    charge_units: int


def read_parts(
    connection: Connection, job_id: str, *, after: int = -1, way: Way = OLDEST, limit: int = 50
) -> list[PartRow]:
    """By number; `after` is the last one of the page before."""
    sql = """SELECT * FROM (
            SELECT DISTINCT ON (job_part) job_part AS part, attempt, lease_id, node_id, state,
                close_code, (sum(charge_units) OVER (PARTITION BY job_part))::bigint AS charge_units
            FROM proj_leases.lease WHERE job_id = %(id)s AND job_part > %(after)s
            ORDER BY job_part, attempt DESC) p
        ORDER BY part LIMIT %(limit)s"""
    return read.listed(connection, PartRow, sql, way, id=job_id, after=after, limit=limit)


def read_planned(connection: Connection, *, after: int = 0, limit: int = 200) -> list[Job]:
    """Jobs whose plan may have something to do: they are open, or parts of them still run."""
    sql = """SELECT * FROM proj_leases.job j WHERE plan IS NOT NULL AND position > %(after)s
        AND (state = 'open' OR EXISTS (SELECT FROM proj_leases.lease l
            WHERE l.job_id = j.job_id AND l.job_part IS NOT NULL AND l.closed_position IS NULL))
        ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, Job, sql, after=after, limit=limit)


def count_open(connection: Connection) -> int:
    """Leases that are not settled."""
    sql = "SELECT count(*) FROM proj_leases.lease WHERE settled_position IS NULL"
    return read.number(connection, sql)
