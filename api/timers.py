"""Background jobs: what happens without anybody asking.

Each job has one leader (an advisory lock), is harmless to repeat, and keeps no position that the
logs do not keep. A job that fails waits longer each time and shows its error in `/readyz`; a money
job stops at the item that fails and never skips it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from api.chain.side import ChainNotReady, ChainSide, is_wanted
from api.corrections.corrections_timer import correct_due
from api.epochs.closing import forfeit_rewards, settle_due
from api.funds.payment_timer import run_payments
from api.income import cash_out_timer as cash_out_jobs
from api.income.invoicing import run_invoices
from api.income.maturing_timer import mature, sweep
from api.income.region_timer import run_regions
from api.jobs.parts import run_plans
from api.leasing.restarts import run_restarts
from api.leasing.watch_timer import run_watch
from api.market.bid_timer import run_bids
from api.metering.accrual import accrue
from api.metering.capacity_timer import run_capacity
from api.metering.meter_timer import run_device_fees, run_resources, run_storage_nodes
from api.parties import webhook_sender
from api.pools.scheduling import run_schedule
from api.process.leading import leading
from api.process.service import Service
from api.trust.trust_timer import run_trust
from domain.duration import SECOND_US
from domain.fleet.node import RecordEquivocation
from domain.funds.promotion import ExpirePromotion
from domain.metering.pin import PinUsage
from ledger.beside import lease_halves as lease_health
from ledger.beside import lease_logs
from ledger.beside import timer_runs as job_runs
from ledger.log.handle import LOG_AWAY
from ledger.log.usage import key_id_of
from ledger.log.usage_reads import TwiceSigned, nodes_that_signed_twice, twice_signed
from ledger.tree import cut, trees
from projections import tables
from projections.funds import funding
from projections.lease import leases
from projections.parties import access
from projections.runner import Connection

logger = logging.getLogger(__name__)

PAUSE_SECONDS_MAX = 300.0
EXPIRED_MAX = 500
"""Grants whose breakage is booked in one append."""
LEASES_MAX = 1_000
"""Leases listed together; a run of the accrual job goes through all of them."""

_OPEN_COUNT = """
    SELECT count(*) FROM proj_leases.lease WHERE settled_position IS NULL
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One job: `run` does what is due at a moment and returns how much that was."""

    name: str
    every_s: float
    alarm_s: int  # older than this without success, and somebody should look
    run: Callable[[Service, Connection, int], int]
    close: Callable[[], None] = lambda: None


# --- the jobs ----------------------------------------------------------------------------------


def run_accrual(service: Service, connection: Connection, now_us: int) -> int:
    """Start timeouts, finished lease hours, ends of funds and terms, settlements."""
    tables.step_all(connection, only=("leases",))
    stopped: list[str] = []

    def on_stopped(lease_id: str, error: Exception) -> None:
        logger.error("accrual of %s stops: %s", lease_id, error)
        stopped.append(lease_id)

    _make_room(service, connection)
    due = due_leases(connection, now_us)
    done = accrue(service.ledger, connection, due, now_us, on_stopped=on_stopped)
    if stopped:
        raise AccrualStopped(f"{len(stopped)} leases stop, the first is {stopped[0]}")
    return done


def _make_room(service: Service, connection: Connection) -> None:
    """For the states of all open leases, and half as many other streams."""
    row = connection.execute(_OPEN_COUNT).fetchone()
    assert row is not None
    service.ledger.market.make_room(row[0] * 3 // 2)


def due_leases(connection: Connection, now_us: int) -> Iterator[str]:
    """Leases that are due by `domain/leasing/due.py`: what there is to do for each says
    `due_commands`.

    By node, so that a report is read once for all the leases it names.
    """
    node_id, after = "", -1
    while rows := leases.read_due(connection, now_us, node_id, after, LEASES_MAX):
        yield from (lease_id for lease_id, _, _ in rows)
        _, node_id, after = rows[-1]


class AccrualStopped(Exception):
    """Some leases could not be accrued; the others were. Their epoch cannot close."""


def run_maturity(service: Service, connection: Connection, now_us: int) -> int:
    """What was earned becomes payable when its dispute window has passed."""
    return mature(service.ledger, connection, now_us)


def run_sweep(service: Service, connection: Connection, now_us: int) -> int:
    """What is payable goes to the billing account, once per account and UTC day."""
    return sweep(service.ledger, connection, now_us)


def run_cash_outs(service: Service, connection: Connection, now_us: int) -> int:
    """Accounts paid in cash ask for it by themselves; what was asked for goes to the processor."""
    asked = cash_out_jobs.request_automatic(service.ledger, connection, now_us)
    processor = service.payout_processor
    return asked + cash_out_jobs.send(service.ledger, connection, processor, now_us)


def run_payout_match(service: Service, connection: Connection, now_us: int) -> int:
    """The processor's list of payouts against our cash-outs; it fails while they differ."""
    processor = service.payout_processor
    return cash_out_jobs.match_payouts(service.ledger, connection, processor, now_us)


def run_trees(service: Service, connection: Connection, now_us: int) -> int:
    """The audit trees follow both logs, and the head is signed again when it grew."""
    grown = trees.follow_all(connection)
    signed = trees.latest_checkpoint(connection)
    size = trees.head(connection).size
    if size and (signed is None or signed[0] < size):
        trees.publish_checkpoint(connection, service.signer, now_us)
    return grown


def run_pin(service: Service, connection: Connection, now_us: int) -> int:
    """Commit the market log to every report the trees have reached."""
    trees.follow_all(connection)
    pin = cut.pin(connection).fact(now_us)
    return len(service.ledger.handle(PinUsage(pin=pin), key=None, now_us=now_us).changes)


def run_equivocation(service: Service, connection: Connection, now_us: int) -> int:
    """A node that signed two bodies under one number is put into quarantine."""
    tables.step_all(connection, only=("access",))
    done = 0
    nodes = access.read_trusted(connection, nodes_that_signed_twice(connection))
    for one in twice_signed(connection, nodes):
        keys = access.read_node_keys(connection, one.node_id)
        if not _both_in_office(keys, one):
            continue
        command = RecordEquivocation(
            node_id=one.node_id,
            lane=one.lane,
            node_seq=one.node_seq,
            first_leaf=one.stored_leaf.hex(),
            second_leaf=one.other_leaf.hex(),
            at_us=now_us,
        )
        done += len(service.ledger.handle(command, key=None, now_us=now_us).changes)
    return done


def _both_in_office(keys: Sequence[access.NodeKey], one: TwiceSigned) -> bool:
    """Whether the key of this number signed both bodies, and the second before it was replaced.

    What a key signs out of its office shows that somebody else has found it, and nothing more.
    """
    place = max((n for n, key in enumerate(keys) if key.from_seq <= one.node_seq), default=0)
    is_own = {key_id_of(one.stored), key_id_of(one.other)} == {keys[place].key_id}
    replaced_us = keys[place + 1].confirmed_at_us if place + 1 < len(keys) else None
    return is_own and (replaced_us is None or one.received_us < replaced_us)


def run_promotions(service: Service, connection: Connection, now_us: int) -> int:
    """Grants that have expired: what is unspent, or came back from an escrow, is breakage."""
    tables.step_all(connection, only=("funding",))
    done = 0
    stopped: list[str] = []
    while expired := funding.read_expired(connection, now_us, EXPIRED_MAX):
        booked, failed = _expire(service, expired, now_us)
        done, stopped = done + booked, stopped + failed
        if not booked or len(expired) < EXPIRED_MAX:
            break
    if stopped:
        raise PromotionsStopped(f"{len(stopped)} grants stop, the first is {stopped[0]}")
    return done


class PromotionsStopped(Exception):
    """Some expired grants could not be booked; the others were."""


def _expire(
    service: Service, expired: Sequence[tuple[str, str]], now_us: int
) -> tuple[int, list[str]]:
    """Book grants together, or one by one where that fails; how many, and those that stop."""
    commands = [
        ExpirePromotion(program=program, account_id=account_id, at_us=now_us)
        for account_id, program in expired
    ]
    try:
        return len(service.ledger.handle(commands, key=None, now_us=now_us).changes), []
    except LOG_AWAY:
        raise  # it is no grant's fault, and the next one would wait as long
    except Exception as error:
        if len(expired) == 1:
            logger.exception("expiry of %s stops", expired[0])
            return 0, ["/".join(expired[0])]
        logger.warning("%d grants expire one by one: %s", len(expired), error)
        found = [_expire(service, [one], now_us) for one in expired]
        return sum(done for done, _ in found), [name for _, names in found for name in names]


def run_corrections(service: Service, connection: Connection, now_us: int) -> int:
    """SLA credits of settled leases, and disputes that nobody ruled in time."""
    return correct_due(service.ledger, connection, now_us)


def run_lease_logs(_service: Service, connection: Connection, now_us: int) -> int:
    """What work printed, and how its halves were, is forgotten a week after the last word."""
    return lease_logs.forget(connection, now_us) + lease_health.forget(connection, now_us)


def run_webhooks(service: Service, connection: Connection, now_us: int) -> int:
    """Endpoints are told what was recorded about their accounts."""
    return webhook_sender.run(service, connection, now_us)


def run_epochs(service: Service, connection: Connection, now_us: int) -> int:
    """Close, seal and credit epochs whose time has come."""
    before = service.head(connection)
    waits = settle_due(
        service.ledger,
        connection,
        now_us,
        "job",
        data_dir=service.settings.data_dir,
        development=service.settings.environment == "development",
    )
    if waits:
        logger.info("the open epoch waits: %s", "; ".join(waits))
    forfeit_rewards(service.ledger, connection, now_us)
    return service.head(connection) - before


class ChainDiffers(Exception):
    """Chain and ledger tell different stories: no root is proposed until a person has looked."""


def chain_job(service: Service) -> Job:
    """The chain's side: scan, mint, propose, accept. Keeps a node's connection between rounds."""
    side = ChainSide(service)

    def run_chain(_service: Service, _connection: Connection, now_us: int) -> int:
        try:
            report = side.step(now_us)
        except ChainNotReady:
            logger.info("the chain waits for a policy and a first epoch")
            return 0
        if report.differences:
            raise ChainDiffers("; ".join(map(str, report.differences)))
        return report.effects + len(report.done)

    return Job("chain", 15, 600, run_chain, side.close)


def all_jobs(service: Service) -> tuple[Job, ...]:
    """The jobs of a service; their order is that of `run_once`."""
    return (
        Job("equivocation", 5, 60, run_equivocation),
        Job("accrual", 5, 7_200, run_accrual),
        Job("schedule", 2, 600, run_schedule),
        Job("lease_watch", 15, 600, run_watch),
        Job("bids", 2, 60, run_bids),
        Job("capacity", 300, 7_200, run_capacity),
        Job("payments", 60, 7_200, run_payments),
        Job("maturity", 60, 7_200, run_maturity),
        Job("regions", 300, 93_600, run_regions),
        Job("sweep", 300, 7_200, run_sweep),
        Job("plans", 5, 7_200, run_plans),
        Job("restarts", 60, 7_200, run_restarts),
        Job("promotions", 60, 7_200, run_promotions),
        Job("cash_out", 60, 7_200, run_cash_outs),
        Job("payout_match", 3_600, 14_400, run_payout_match),
        Job("device_fees", 600, 93_600, run_device_fees),
        Job("storage_nodes", 300, 7_200, run_storage_nodes),
        Job("resources", 60, 7_200, run_resources),
        Job("corrections", 60, 7_200, run_corrections),
        Job("epochs", 60, 900, run_epochs),
        *((chain_job(service),) if is_wanted(service.settings) else ()),
        Job("trust", 30, 7_200, run_trust),
        Job("invoices", 600, 93_600, run_invoices),
        Job("lease_logs", 600, 93_600, run_lease_logs),
        Job("webhooks", 5, 86_400, run_webhooks),
        Job("pin", service.settings.pin_every_s, 120, run_pin),
        Job("tree", 2, 60, run_trees),
    )


# --- running them ------------------------------------------------------------------------------


@dataclass(slots=True)
class Jobs:
    """Runs the jobs of one process, each in a thread of its own, and knows how they went."""

    service: Service
    jobs: Sequence[Job] = ()

    def __post_init__(self) -> None:
        self.jobs = tuple(self.jobs) or all_jobs(self.service)

    def run_once(self) -> dict[str, int]:
        """Every job once, in order, in this thread; what each did. Errors are raised."""
        done: dict[str, int] = {}
        try:
            with self.service.connect() as connection:
                for job in self.jobs:
                    done[job.name] = self._run(job, connection)
        finally:
            self._close()
        return done

    def run(self, stop: threading.Event) -> None:
        """All jobs and the followers of both logs until `stop` is set."""
        threads = [
            threading.Thread(target=self._repeat, args=(job, stop), name=f"job-{job.name}")
            for job in self.jobs
        ]
        threads.append(
            threading.Thread(
                target=tables.follow, args=(self.service.conninfo, stop), name="projections"
            )
        )
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._close()

    def _close(self) -> None:
        for job in self.jobs:
            job.close()

    def _repeat(self, job: Job, stop: threading.Event) -> None:
        pause = 1.0
        while not stop.is_set():
            try:
                with self.service.connect() as connection:
                    while not stop.is_set():
                        self._run(job, connection)
                        pause = 1.0
                        stop.wait(job.every_s)
            except Exception:
                logger.exception("job %s waits %.0f s", job.name, pause)
                stop.wait(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _run(self, job: Job, connection: Connection) -> int:
        """One round, if this process leads the job; how it went is there for every process."""
        now_us, alarm_us = self.service.clock.now_us(), job.alarm_s * SECOND_US
        with leading(connection, job.name) as leads:
            if not leads:
                return 0
            try:
                done = job.run(self.service, connection, now_us)
            except Exception as error:
                with suppress(psycopg.Error):  # the first error is the one to tell
                    told = f"{type(error).__name__}: {error}"
                    job_runs.record(connection, job.name, now_us, alarm_us, told)
                raise
            job_runs.record(connection, job.name, now_us, alarm_us)
        return done


def run(service: Service, *, once: bool, stop: threading.Event) -> dict[str, int]:
    """`tallystick jobs [--once]`: every job once, or all of them until `stop` is set."""
    jobs = Jobs(service)
    if once:
        return jobs.run_once()
    jobs.run(stop)
    return {}
