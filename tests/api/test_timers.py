"""Background jobs: harmless to repeat, one leader each, and one that fails stops alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.metering import accrual
from api.metering.accrual import AccrualStopped, run_accrual
from api.metering.capacity_timer import PROOF_WAIT_US, CapacityStopped, run_capacity
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.process.timer import Timer
from api.settings import Settings
from api.timers import Timers, all_timers, run
from domain.duration import HOUR_US, MINUTE_US
from domain.fleet.device import CapacityAccrued
from domain.fleet.node import NodeEquivocated, NodeState, RetireNode
from domain.lease.lease import START_TIMEOUT_US
from domain.metering.pin import UsagePinned
from domain.metering.report import lane_of
from domain.stream import Stream
from ledger.beside import timer_runs as job_runs
from ledger.beside.timer_runs import JobRun
from ledger.log import usage
from ledger.tree import trees
from projections.runner import Connection
from tests.scenes.running_market import START_US, Market

NOW_US = START_US + 2 * HOUR_US + 15 * MINUTE_US


@dataclass
class Running:
    """A service on a market in which one lease has run for more than two hours."""

    service: Service
    clock: SimulatedClock
    market: Market
    lease: str
    folder: Path

    def another(self) -> Service:
        """The same database in another process's eyes."""
        return Service.open(self.service.settings, clock=self.clock)


@pytest.fixture
def running(database: str, tmp_path: Path) -> Generator[Running, None, None]:
    clock = SimulatedClock(NOW_US)
    settings = Settings(data_dir=tmp_path, database_url=database)
    with (
        Service.open(settings, clock=clock) as service,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        market = Market(service.ledger, connection)
        market.found("one", "two", gpus=2)
        lease = market.lease("a", "one")
        market.report("one", lease, START_US, NOW_US)
        yield Running(service, clock, market, lease, tmp_path)


@dataclass
class Tally:
    """A job's work for tests: counts how often it ran, and how many ran at once."""

    runs: int = 0
    inside: int = 0
    inside_max: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    entered: threading.Event = field(default_factory=threading.Event)
    pause: Callable[[], object] = lambda: None

    def __call__(self, _service: Service, _connection: Connection, _now_us: int) -> int:
        with self.lock:
            self.runs, self.inside = self.runs + 1, self.inside + 1
            self.inside_max = max(self.inside, self.inside_max)
        self.entered.set()
        self.pause()
        with self.lock:
            self.inside -= 1
        return 1


def test_every_job_once_does_what_is_due(running: Running) -> None:
    done = Timers(running.service).run_once()
    assert list(done) == [
        "equivocation",
        "accrual",
        "schedule",
        "lease_watch",
        "bids",
        "capacity",
        "payments",
        "maturity",
        "regions",
        "sweep",
        "plans",
        "restarts",
        "promotions",
        "cash_out",
        "payout_match",
        "device_fees",
        "storage_nodes",
        "volumes",
        "resources",
        "corrections",
        "epochs",
        "governors",
        "key_recovery",
        "trust",
        "invoices",
        "lease_parcels",
        "lease_logs",
        "workspaces",
        "webhooks",
        "secrets",
        "refusals",
        "sign_ups",
        "pin",
        "tree",
        "alerts",
    ]
    assert done["accrual"] == 2
    assert running.market.state(running.lease).hours_accrued == 2
    assert done["capacity"] == 4, "every device of both nodes"
    assert {fact.to_us for fact in running.market.facts(CapacityAccrued)} == {
        START_US + 2 * HOUR_US
    }
    (pin,) = running.market.facts(UsagePinned)
    assert sum(lane.size for lane in pin.lanes) == 1
    with running.service.connect() as connection:
        signed = trees.latest_checkpoint(connection)
    assert signed is not None
    assert signed[0] == running.market.head


def test_running_every_job_again_records_nothing(running: Running) -> None:
    jobs = Timers(running.service)
    jobs.run_once()
    head = running.market.head
    with running.service.connect() as connection:
        signed = trees.latest_checkpoint(connection)
        for again in (jobs, Timers(running.service)):
            assert set(again.run_once().values()) == {0}
        assert trees.latest_checkpoint(connection) == signed
    assert running.market.head == head
    assert running.market.ledger.books.books_balanced()


def test_the_command_runs_every_job_once_or_until_it_is_stopped(running: Running) -> None:
    stop = threading.Event()
    assert run(running.service, once=True, stop=stop)["accrual"] == 2
    stop.set()
    assert run(running.service, once=False, stop=stop) == {}


def test_jobs_that_run_on_their_own_settle_a_lease_and_stop_when_told(running: Running) -> None:
    running.market.close(running.lease, NOW_US)
    jobs = Timers(running.service)
    stop = threading.Event()
    thread = threading.Thread(target=jobs.run, args=(stop,))
    thread.start()
    waiting = threading.Event()
    try:
        for _ in range(1_000):
            is_settled = running.market.state(running.lease).status == "settled"
            if is_settled and len(runs_of(running)) == len(jobs.timers):
                break
            waiting.wait(0.02)
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert running.market.state(running.lease).status == "settled"
    assert running.market.state(running.lease).gpu_us == NOW_US - START_US
    assert [run.error for run in runs_of(running).values()] == [None] * len(jobs.timers)


def test_a_job_has_one_leader_among_all_processes(running: Running) -> None:
    """Two processes run the same job; while one is inside, the other does nothing."""
    with running.another() as other:
        asked = threading.Event()
        tally = Tally(pause=lambda: asked.wait(10))
        job = Timer("tally", 1, 60, tally)
        first, second = Timers(running.service, (job,)), Timers(other, (job,))
        thread = threading.Thread(target=first.run_once)
        thread.start()
        assert tally.entered.wait(10)
        assert second.run_once() == {"tally": 0}
        asked.set()
        thread.join(10)
        assert (tally.runs, tally.inside_max) == (1, 1)
        assert second.run_once() == {"tally": 1}, "it leads once the first has finished"


def test_a_leader_that_dies_is_followed_by_another(running: Running) -> None:
    tally = Tally()
    jobs = Timers(running.service, (Timer("tally", 1, 60, tally),))
    with psycopg.connect(running.service.conninfo, autocommit=True) as dying:
        stop = threading.Event()
        held = Tally(pause=lambda: stop.wait(10))
        holder = Timers(running.service, (Timer("tally", 1, 60, held),))
        thread = threading.Thread(target=_until_cut, args=(holder,))
        thread.start()
        try:
            assert held.entered.wait(10)
            assert jobs.run_once() == {"tally": 0}
            dying.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            done = 0
            for _ in range(500):
                done = jobs.run_once()["tally"]
                if done:
                    break
        finally:
            stop.set()
            thread.join(10)
    assert done == 1


def runs_of(running: Running) -> dict[str, JobRun]:
    with running.service.connect() as connection:
        return {run.name: run for run in job_runs.read(connection)}


def _until_cut(jobs: Timers) -> None:
    with pytest.raises(psycopg.OperationalError):
        jobs.run_once()


def test_a_failing_job_shows_its_error_and_the_others_go_on(running: Running) -> None:
    def broken(_service: Service, _connection: Connection, _now_us: int) -> int:
        raise ValueError("no such thing")

    tally = Tally()
    jobs = Timers(
        running.service, (Timer("broken", 0.01, 60, broken), Timer("sound", 0.01, 60, tally))
    )
    stop = threading.Event()
    thread = threading.Thread(target=jobs.run, args=(stop,))
    thread.start()
    try:
        for _ in range(1_000):
            if tally.runs > 2 and "broken" in runs_of(running):
                break
            stop.wait(0.01)
    finally:
        stop.set()
        thread.join(30)
    told = runs_of(running)
    assert told["broken"].error == "ValueError: no such thing"
    assert told["broken"].succeeded_us is None
    assert told["sound"].error is None
    assert tally.runs > 2


def test_a_job_is_late_when_its_alarm_time_has_passed_without_success() -> None:
    run = JobRun("accrual", NOW_US, NOW_US, alarm_us=60_000_000, error=None)
    assert not run.is_late(NOW_US + 60_000_000)
    assert run.is_late(NOW_US + 60_000_001)
    assert JobRun("accrual", NOW_US, None, alarm_us=60_000_000, error="E").is_late(NOW_US)


def test_a_lease_that_cannot_be_accrued_fails_the_job_after_the_others_were(
    running: Running,
) -> None:
    other = running.market.lease("b", "two", at_us=START_US)
    running.market.store_unreadable("two", NOW_US)
    with running.service.connect() as connection, pytest.raises(AccrualStopped, match=other):
        run_accrual(running.service, connection, NOW_US)
    assert running.market.state(running.lease).hours_accrued == 2
    assert running.market.state(other).hours_accrued == 0


def test_the_last_part_of_an_hour_of_a_device_that_left_is_booked_too(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, half_us = running.market.nodes["two"], START_US + HOUR_US // 2
    running.market.do(half_us, RetireNode(node_id=node.id, by="owner", at_us=half_us))
    with running.service.connect() as connection:
        assert run_capacity(running.service, connection, NOW_US) == 4
        for device in node.device_ids:
            assert running.market.balance(f"device:{device}:physical") == HOUR_US // 2 // 1_000
        with monkeypatch.context() as patched:
            patched.setattr(running.service.ledger.market, "state_of", _not_asked)
            assert run_capacity(running.service, connection, NOW_US) == 0
        assert run_capacity(running.service, connection, NOW_US + HOUR_US) == 2, "the other node's"


def _not_asked(stream: Stream[Any]) -> Any:
    raise AssertionError(f"{stream} is not due before the next hour")


def test_time_that_nobody_leased_and_no_report_proves_is_unavailable_and_not_idle(
    running: Running,
) -> None:
    """Its node was silent for the last quarter of the first hour."""
    market, quarter_us = running.market, HOUR_US // 4
    silent_us = START_US + 3 * quarter_us
    free = market.nodes["two"].device_ids
    market.report("two", None, START_US, silent_us, row_us=MINUTE_US)
    market.report("two", None, START_US + HOUR_US, NOW_US)
    early_us = START_US + HOUR_US + PROOF_WAIT_US - 1
    with running.service.connect() as connection:
        assert run_capacity(running.service, connection, early_us) == 0, "its reports may come"
        assert run_capacity(running.service, connection, early_us + 1) == 4
        assert _booked(market, free[0]) == (3 * quarter_us, quarter_us)
        assert run_capacity(running.service, connection, NOW_US) == 4
        assert _booked(market, free[1]) == (3 * quarter_us + HOUR_US, quarter_us)
    leased = market.nodes["one"].device_ids[0]
    assert _booked(market, leased) == (0, 0), "what a lease holds is leased, proven or not"
    for told in market.facts(CapacityAccrued):
        assert told.lane == lane_of(told.node_id)
        assert told.usage_position is not None, "how far the reports were read"


def _booked(market: Market, device_id: str) -> tuple[int, int]:
    """Microseconds idle and unavailable."""
    idle, out = (market.balance(f"device:{device_id}:{part}") for part in ("idle", "unavailable"))
    return idle * 1_000, out * 1_000


def test_a_node_whose_reports_cannot_be_read_stops_alone(running: Running) -> None:
    running.market.store_unreadable("two", NOW_US)
    stops = pytest.raises(CapacityStopped, match="2 devices stop, the first is GPU-two-0")
    with running.service.connect() as connection, stops:
        run_capacity(running.service, connection, NOW_US)
    booked = {fact.device_id for fact in running.market.facts(CapacityAccrued)}
    assert booked == set(running.market.nodes["one"].device_ids)


def test_a_lease_whose_node_never_says_ready_is_closed_and_costs_nothing(running: Running) -> None:
    market = running.market
    before = market.balance("party:acct_renter:cash")
    silent = market.lease("b", "two", at_us=NOW_US, is_ready=False)
    assert market.balance("party:acct_renter:cash") < before
    with running.service.connect() as connection:
        run_accrual(running.service, connection, NOW_US + START_TIMEOUT_US - 1)
        assert market.state(silent).status == "reserved"
        assert run_accrual(running.service, connection, NOW_US + START_TIMEOUT_US) == 1
        assert run_accrual(running.service, connection, NOW_US + START_TIMEOUT_US) == 0
    closed = market.state(silent).closed
    assert closed is not None
    assert (closed.party, closed.code, market.state(silent).charge_units) == ("job", 10_003, 0)
    assert market.state(silent).status == "settled"
    assert market.balance("party:acct_renter:cash") == before
    device = market.nodes["two"].device_ids[0]
    assert market.ledger.market.load(Stream("device", device)).state.holders == {}


_BREAK = """
    CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE check_violation USING CONSTRAINT = 'broken';
    END $$;
    CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON account
        FOR EACH ROW WHEN (NEW.name LIKE 'device:GPU-one-0:%') EXECUTE FUNCTION broken()
"""


def test_a_device_that_cannot_be_booked_stops_alone_and_is_named(running: Running) -> None:
    """Its books refuse: it stops, and is booked when they do no longer."""
    bad, *good = [d for name in ("one", "two") for d in running.market.nodes[name].device_ids]
    running.market.connection.execute(_BREAK)
    with running.service.connect() as connection:
        with pytest.raises(CapacityStopped, match=f"1 devices stop, the first is {bad}"):
            run_capacity(running.service, connection, NOW_US)
        booked = [fact.device_id for fact in running.market.facts(CapacityAccrued)]
        assert sorted(booked) == sorted(good)
        running.market.connection.execute("DROP TRIGGER broken ON account")
        assert run_capacity(running.service, connection, NOW_US) == 1


def test_every_open_lease_is_looked_at_however_many_came_before_it(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old leases that stay open must not starve the ones behind them."""
    monkeypatch.setattr(accrual, "LEASES_MAX", 1)
    later = [running.market.lease(name, "two", first=slot) for slot, name in enumerate("bc")]
    with running.service.connect() as connection:
        run_accrual(running.service, connection, NOW_US)
    assert [running.market.state(each).hours_accrued for each in (running.lease, *later)] == [2] * 3


def test_a_node_that_signed_two_bodies_under_one_number_is_put_into_quarantine(
    running: Running,
) -> None:
    node = running.market.nodes["two"]
    first, second = node.node.body(agent="one"), node.node.body(agent="two")
    running.market.store("two", first, NOW_US)
    (receipt,) = usage.append(running.market.connection, [node.node.item(second)], NOW_US)
    assert receipt.status is usage.Status.EQUIVOCATION
    assert Timers(running.service).run_once()["equivocation"] == 1
    (fact,) = running.market.facts(NodeEquivocated)
    assert (fact.node_id, fact.node_seq) == (node.id, 1)
    state = running.market.ledger.market.load(Stream("node", node.id)).state
    assert isinstance(state, NodeState)
    assert state.is_quarantined
    assert Timers(running.service).run_once()["equivocation"] == 0


def test_every_job_says_how_often_it_runs_and_when_somebody_should_look(running: Running) -> None:
    for job in all_timers(running.service):
        assert 0 < job.every_s < job.alarm_s, job.name


def test_a_round_says_how_long_it_took_and_when_the_next_one_is_due(running: Running) -> None:
    def broken(_service: Service, _connection: Connection, _now_us: int) -> int:
        raise ValueError("no such thing")

    jobs = Timers(running.service, (Timer("sound", 7, 60, Tally()), Timer("broken", 7, 60, broken)))
    with pytest.raises(ValueError, match="no such thing"):
        jobs.run_once()
    told = runs_of(running)
    for name, wait_us in (("sound", 7_000_000), ("broken", 0)):
        run = told[name]
        assert run.duration_us is not None
        assert run.duration_us >= 0
        assert run.next_us == run.ran_us + run.duration_us + wait_us
