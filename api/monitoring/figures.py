"""Numbers about the market as a whole, asked of the database: books, epochs, chain, what waits.

    unbalanced == 0     for every asset: debits - credits over all accounts

They are the same whichever process answers; what each process counts by itself is in
`api/telemetry/metrics.py`. Names of accounts never stand in a label: only kinds of accounts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psycopg
from prometheus_client.core import GaugeMetricFamily, Metric
from psycopg_pool import PoolTimeout, TooManyRequests

from api.door.health import lags
from api.process import founding
from api.process.service import Service
from domain.authority.key_recovery import KEY_RECOVERIES
from domain.duration import SECOND_US
from domain.parties.account import DEVELOPMENT
from ledger.beside import timer_runs
from projections.runner import Connection

_UP = "1: the database answers this process"

SILENT_US = 15 * 60 * SECOND_US
"""An active node whose last report is older than this is silent."""

_UNBALANCED = """
    SELECT asset, abs(sum(side * units::numeric))::bigint FROM public.account
    GROUP BY asset ORDER BY asset
"""
_BOOKS = r"""
    SELECT kind, sum(units)::bigint FROM (
        SELECT units, CASE
            WHEN name ~ '^world:(bank|card)$' THEN replace(name, 'world:', 'outside_')
            WHEN name ~ '^party:[^:]+:(burned|grant.*)$' THEN 'credits_not_to_pay_out'
            WHEN name ~ '^party:[^:]+:owed$' THEN 'owed_by_parties'
            WHEN name ~ '^party:[^:]+:(payable|holdback|earned)$' THEN 'earned_by_parties'
            WHEN name ~ '^party:' THEN 'paid_in_by_parties'
            WHEN name ~ '^escrow:' THEN 'escrow'
            WHEN name ~ '^payout:' THEN 'payouts_on_their_way'
            ELSE 'network' END AS kind
        FROM public.account WHERE asset = 'CREDIT' AND name <> 'world:burned') a
    GROUP BY kind ORDER BY kind
"""
_EPOCH = """
    SELECT coalesce(max(epoch), 0), coalesce(greatest(0, %(now)s - min(end_us)
        FILTER (WHERE sealed_position IS NULL)), 0) FROM proj_epochs.epoch
"""
_NODES = """
    SELECT count(*) FILTER (WHERE n.phase = 'active'),
        count(*) FILTER (WHERE n.phase = 'active' AND NOT n.quarantined
            AND coalesce(r.last_recorded_us, n.at_us) < %(now)s - %(silent)s)
    FROM proj_fleet.node n LEFT JOIN proj_usage.node_reports r USING (node_id)
"""
_LEASES = "SELECT count(*) FROM proj_leases.lease WHERE settled_position IS NULL"
_CASH_OUTS = """
    SELECT (SELECT count(*) FROM proj_money_out.hold WHERE released_us IS NULL),
        (SELECT count(*) FROM proj_money_out.difference WHERE settled_us IS NULL),
        (SELECT coalesce(%(now)s - min(requested_us), 0) FROM proj_money_out.cash_out
            WHERE state = 'requested')
"""
_WEBHOOKS = """
    SELECT count(*), coalesce(%(now)s - min(d.first_at_us), 0) FROM public.webhook_delivery d
    JOIN proj_webhooks.endpoint e USING (endpoint_id)
    WHERE d.outcome = 'waiting' AND e.enabled
"""
_CHAIN = """
    SELECT deployment, number, greatest(0, %(now)s - settled_us) FROM public.chain_cursor
"""
_INTENTS = """
    SELECT count(*) FROM public.chain_intent WHERE state NOT IN ('final', 'cancelled', 'failed')
"""


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The numbers of one moment. A collector of `prometheus_client`."""

    families: tuple[Metric, ...]

    def collect(self) -> Iterator[Metric]:
        """What `/metrics` shows of them."""
        yield from self.families


def read(service: Service) -> Figures:
    """Every number, as the database has it now; of one that is away, only that it is."""
    try:
        return read_all(service)
    except (psycopg.OperationalError, PoolTimeout, TooManyRequests):
        return Figures((_gauge("tallystick_database_up", _UP, 0),))


def read_all(service: Service) -> Figures:
    """Every number. Raises what says that the database cannot be asked, or not in time."""
    now_us = service.clock.now_us()
    with service.connection() as connection:
        families = (
            *_followers(connection, now_us),
            *_timers(connection, now_us),
            *_money(connection, now_us),
            *_market(connection, now_us),
            *_outside(connection, now_us),
            _gauge("tallystick_log_position", "Facts in the market log", service.head(connection)),
            _gauge("tallystick_database_up", _UP, 1),
        )
    return Figures((*families, *_server(service)))


def _followers(connection: Connection, now_us: int) -> Iterator[Metric]:
    found = lags(connection)
    yield _by(
        "tallystick_job_position",
        "Position that a follower has reached",
        "job",
        ((lag.name, lag.position) for lag in found),
    )
    yield _by(
        "tallystick_job_behind",
        "Facts or reports that a follower has not read yet",
        "job",
        ((lag.name, lag.behind) for lag in found),
    )
    yield _by(
        "tallystick_job_behind_seconds",
        "Age of the oldest fact or report that a follower has not read yet",
        "job",
        (
            (lag.name, _seconds(now_us - lag.waiting_since_us))
            for lag in found
            if lag.waiting_since_us is not None
        ),
    )


def _timers(connection: Connection, now_us: int) -> Iterator[Metric]:
    runs = timer_runs.read(connection)
    yield _by(
        "tallystick_job_late",
        "1: a timer is without success for longer than its alarm",
        "job",
        ((run.name, int(run.is_late(now_us))) for run in runs),
    )
    yield _by(
        "tallystick_job_failing",
        "1: the last round of a timer ended with an error",
        "job",
        ((run.name, int(run.error is not None)) for run in runs),
    )
    yield _by(
        "tallystick_job_duration_microseconds",
        "How long the last round of a timer took",
        "job",
        ((run.name, run.duration_us) for run in runs if run.duration_us is not None),
    )


def _money(connection: Connection, now_us: int) -> Iterator[Metric]:
    yield _by(
        "tallystick_books_unbalanced",
        "Debits less credits of an asset, in its units; anything but 0 is a bug",
        "asset",
        connection.execute(_UNBALANCED).fetchall(),
    )
    yield _by(
        "tallystick_books_credits",
        "Micro-credits by kind of account: what came from outside, and whose it is",
        "kind",
        connection.execute(_BOOKS).fetchall(),
    )
    held, differences, waiting_us = _row(connection, _CASH_OUTS, now_us)
    yield _gauge("tallystick_cash_out_holds", "Holds on cash-outs not released", held)
    yield _gauge(
        "tallystick_payout_differences", "Differences with the processor's list", differences
    )
    yield _gauge(
        "tallystick_cash_out_waiting_seconds",
        "Age of the oldest cash-out that was asked for and not started: held, or the bank is short",
        _seconds(waiting_us),
    )


def _market(connection: Connection, now_us: int) -> Iterator[Metric]:
    epoch, overdue_us = _row(connection, _EPOCH, now_us)
    yield _gauge("tallystick_epoch", "The newest epoch", epoch)
    yield _gauge(
        "tallystick_epoch_overdue_seconds",
        "How long ago the oldest epoch ended that is not sealed",
        _seconds(overdue_us),
    )
    active, silent = _row(connection, _NODES, now_us)
    yield _gauge("tallystick_nodes_active", "Nodes that are active", active)
    yield _gauge("tallystick_nodes_silent", "Active nodes without a report for 15 minutes", silent)
    (leases,) = _row(connection, _LEASES, now_us)
    yield _gauge("tallystick_leases_open", "Leases that are not settled", leases)


def _outside(connection: Connection, now_us: int) -> Iterator[Metric]:
    waiting, oldest_us = _row(connection, _WEBHOOKS, now_us)
    yield _gauge("tallystick_webhooks_waiting", "Deliveries that wait to be tried again", waiting)
    yield _gauge(
        "tallystick_webhooks_waiting_seconds", "Age of the oldest of them", _seconds(oldest_us)
    )
    cursors = connection.execute(_CHAIN, {"now": now_us}).fetchall()
    yield _by(
        "tallystick_chain_block",
        "The last block read of a deployment",
        "deployment",
        ((name, number) for name, number, _ in cursors),
    )
    yield _by(
        "tallystick_chain_behind_seconds",
        "Age of the last block whose effects are all in the market log",
        "deployment",
        ((name, _seconds(behind_us)) for name, _, behind_us in cursors),
    )
    (unfinished,) = _row(connection, _INTENTS, now_us)
    yield _gauge("tallystick_chain_unfinished", "Transactions that are not final yet", unfinished)


def _server(service: Service) -> Iterator[Metric]:
    environment = founding.environment_of(service.ledger, service.settings)
    yield _gauge(
        "tallystick_development",
        "1: founded in development, where simulated devices are paid and nothing is real",
        int(environment == DEVELOPMENT),
    )
    yield _gauge(
        "tallystick_key_recovery_waiting",
        "1: a new key of the operator was announced; see tallystick key recoveries",
        int(service.ledger.world().state(KEY_RECOVERIES).waiting is not None),
    )
    disk = shutil.disk_usage(os.fspath(service.settings.data_dir))
    yield _gauge(
        "tallystick_disk_free_ratio", "Free part of the data folder's disk", disk.free / disk.total
    )


def _row(connection: Connection, sql: str, now_us: int) -> tuple[int, ...]:
    row = connection.execute(sql.encode(), {"now": now_us, "silent": SILENT_US}).fetchone()
    assert row is not None
    return tuple(row)


def _seconds(us: int) -> int:
    return max(0, us) // SECOND_US


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(name, told, value=value)


def _by(name: str, told: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=(label,))
    for each, value in values:
        family.add_metric((each,), value)
    return family
