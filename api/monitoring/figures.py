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
from ledger.beside import chain_store, timer_runs
from ledger.books import totals
from projections.epochs import epochs
from projections.income import money_out
from projections.lease import leases
from projections.metering import usage
from projections.parties import webhooks
from projections.runner import Connection

_UP = "1: the database answers this process"

SILENT_US = 15 * 60 * SECOND_US
"""An active node whose last report is older than this is silent."""


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
            _gauge(
                "tallystick_standby_away",
                "1: every write waits for synchronous standbys, and too few stream",
                int(service.standby.is_away(connection)),
            ),
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
            (lag.name, _age(now_us, lag.waiting_since_us))
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
        "By how much debits and credits of an asset differ, in its units; not 0 is a bug",
        "asset",
        ((asset, abs(units)) for asset, units in totals.unbalanced(connection).items()),
    )
    yield _by(
        "tallystick_books_credits",
        "Micro-credits by kind of account: what came from outside, and whose it is",
        "kind",
        totals.credits_by_kind(connection).items(),
    )
    held_up = money_out.read_held_up(connection)
    yield _gauge("tallystick_cash_out_holds", "Holds on cash-outs not released", held_up.holds)
    yield _gauge(
        "tallystick_payout_differences",
        "Differences with the processor's list",
        held_up.differences,
    )
    yield _gauge(
        "tallystick_cash_out_waiting_seconds",
        "Age of the oldest cash-out that was asked for and not started: held, or the bank is short",
        _age(now_us, held_up.requested_us),
    )


def _market(connection: Connection, now_us: int) -> Iterator[Metric]:
    epoch, overdue_us = epochs.read_overdue(connection, now_us)
    yield _gauge("tallystick_epoch", "The newest epoch", epoch)
    yield _gauge(
        "tallystick_epoch_overdue_seconds",
        "How long ago the oldest epoch ended that is not sealed",
        overdue_us // SECOND_US,
    )
    active, silent = usage.count_silent(connection, now_us - SILENT_US)
    yield _gauge("tallystick_nodes_active", "Nodes that are active", active)
    yield _gauge("tallystick_nodes_silent", "Active nodes without a report for 15 minutes", silent)
    yield _gauge(
        "tallystick_leases_open", "Leases that are not settled", leases.count_open(connection)
    )


def _outside(connection: Connection, now_us: int) -> Iterator[Metric]:
    waiting, oldest_us = webhooks.read_waiting(connection)
    yield _gauge("tallystick_webhooks_waiting", "Deliveries that wait to be tried again", waiting)
    yield _gauge(
        "tallystick_webhooks_waiting_seconds", "Age of the oldest of them", _age(now_us, oldest_us)
    )
    followed = chain_store.followed(connection)
    yield _by(
        "tallystick_chain_block",
        "The last block read of a deployment",
        "deployment",
        ((name, number) for name, number, _ in followed),
    )
    yield _by(
        "tallystick_chain_behind_seconds",
        "Age of the last block whose effects are all in the market log",
        "deployment",
        ((name, _age(now_us, settled_us)) for name, _, settled_us in followed),
    )
    yield _gauge(
        "tallystick_chain_unfinished",
        "Transactions that are not final yet",
        chain_store.count_unfinished(connection),
    )


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


def _age(now_us: int, since_us: int | None) -> int:
    """Seconds since a moment; 0 where there is none."""
    return 0 if since_us is None else max(0, now_us - since_us) // SECOND_US


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(name, told, value=value)


def _by(name: str, told: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=(label,))
    for each, value in values:
        family.add_metric((each,), value)
    return family
