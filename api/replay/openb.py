"""Replays a cluster trace through the real marketplace on a simulated clock.

Real: every domain rule, the market log with its books on PostgreSQL, signed usage reports in the
usage log, accrual, pins, settlement, the projections and the matcher. Simulated: the clock, and
the nodes, which sign exactly the time their leases ran.

The same files give the same log head on every run: node keys and the blinding key are fixed, lanes
are filled in order, and the fleet projection is stepped before each match. `recount` checks the
outcome afterwards from the finished log alone.
"""

from __future__ import annotations

import hashlib
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from nacl.signing import SigningKey

from api.metering.accrual import due_now
from api.replay.trace_openb import TraceNode, TraceTask
from domain.duration import HOUR_US
from domain.fleet.device import AccrueCapacity
from domain.fleet.kinds import ClassModel
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
)
from domain.fleet.provider import OpenRegion, RegisterProvider
from domain.frozen import replace
from domain.funds.deposit import ConfirmDeposit
from domain.jobs.job import SubmitJob
from domain.lease.close_codes import TERM_REACHED
from domain.lease.lease import CloseLease, ReadyLease, RequestLease, ReserveLease, lease_stream
from domain.market.matching import RULE, Match, Need, choose
from domain.market.offer import PublishOffer
from domain.metering import report
from domain.metering.pin import PinUsage
from domain.money import credit
from domain.parties.account import BootstrapOperator, OpenAccount
from domain.prices.tariff import CLOUDBENDER, publish
from domain.stream import derive_id
from ledger.log import usage
from ledger.log.handle import Ledger
from ledger.log.usage_reads import NodeReader
from ledger.tree import cut, trees
from node_reporter.identity import key_id, public_key
from node_reporter.reports.reports import ReportChain
from projections import tables
from projections.market import feed as fleet_feed
from projections.market.feed import Feed
from projections.market.match import answer

BLINDING_KEY = b"tallystick/replay/blinding/v1"
"""Fixed: a replay hides nothing, and its log head must be the same everywhere."""
START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z, a Thursday: second 0 of every trace
EPOCH_US = 604_800_000_000
REPORT_EVERY_US = HOUR_US
PATIENCE_US = 2 * HOUR_US
COMMANDS_MAX = 64
"""Commands decided and appended together; a bound, not a rule."""
DEPOSIT_UNITS = 10**13
PRICES = {
    "T4": 600_000,
    "P100": 900_000,
    "V100M16": 1_400_000,
    "V100M32": 1_800_000,
    "A10": 1_100_000,
}
PRICE_ELSE = 1_000_000
"""Micro-credits per GPU-hour; invented, as the trace has no prices."""

TRACE_MODELS = ("V100M16", "V100M32", "G2", "G3")
"""V100 by memory, and two data-centre models that the trace does not name."""

OPERATOR, RENTER, OWNER = (derive_id("acct", "replay", name) for name in ("op", "renter", "owner"))
PROVIDER = derive_id("prov", OWNER, "replay")
REGION = derive_id("region", OWNER, "replay")
BOOT = "00000000-0000-4000-8000-000000000000"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Running:
    """One lease as its node sees it: what to report."""

    lease_id: str
    node_id: str
    device_ids: tuple[str, ...]
    share_ppm: int
    opened_us: int
    end_us: int


@dataclass(slots=True)
class SimulatedNode:
    """A machine that signs the time its leases ran."""

    node_id: str
    key: SigningKey
    chain: ReportChain
    device_ids: tuple[str, ...]
    leases: dict[str, Running] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the replay itself counted; `recount` checks it against the log."""

    tasks: int
    leases_settled: int
    tasks_without_gpu: int
    tasks_never_scheduled: int
    refused: int


class Replay:
    """One run. Owns nothing: ledger and connection are the caller's."""

    def __init__(
        self,
        ledger: Ledger,
        connection: psycopg.Connection[Any],
        nodes: Sequence[TraceNode],
        tasks: Sequence[TraceTask],
        progress: Progress = lambda _what, _done, _of: None,
    ) -> None:
        self._ledger = ledger
        self._connection = connection
        self._fleet = Feed.empty()
        self._trace_nodes = nodes
        self._tasks = tasks
        self._progress = progress
        self._nodes: dict[str, SimulatedNode] = {}
        self._open: dict[str, Running] = {}
        self._refused = 0
        self._settled = 0
        self._capacity_us = START_US
        usage.prepare(connection)

    def run(self) -> Replayed:
        """Found the market, play every task, settle every lease."""
        self._found()
        asked = [task for task in self._tasks if task.gpus]
        runs = sorted(
            (task for task in asked if task.length_s is not None),
            key=lambda task: (task.created_s, task.name),
        )
        for done, _ in enumerate(self._play(runs), 1):
            self._progress("leases settled", done, len(runs))
        return Replayed(
            tasks=len(self._tasks),
            leases_settled=self._settled,
            tasks_without_gpu=len(self._tasks) - len(asked),
            tasks_never_scheduled=sum(task.length_s is None for task in self._tasks),
            refused=self._refused,
        )

    # --- founding ----------------------------------------------------------------------------

    def _found(self) -> None:
        self._together(_founding(START_US), START_US)
        batch: list[Any] = []
        for done, node in enumerate(self._trace_nodes, 1):
            batch.extend(self._join(node, START_US))
            if len(batch) >= COMMANDS_MAX or done == len(self._trace_nodes):
                self._together(batch, START_US)
                batch.clear()
                self._progress("nodes admitted", done, len(self._trace_nodes))

    def _join(self, node: TraceNode, at_us: int) -> Iterator[Any]:
        key = SigningKey(hashlib.sha256(b"tallystick/replay/node/" + node.name.encode()).digest())
        node_id = derive_id("node", PROVIDER, node.name)
        code = hashlib.sha256(b"tallystick/replay/code/" + node.name.encode()).hexdigest()
        devices = tuple(f"GPU-{node.name}-{index}" for index in range(node.gpus))
        self._nodes[node_id] = SimulatedNode(node_id, key, ReportChain(node_id, key), devices)
        by: dict[str, Any] = {"by": "operator", "at_us": at_us}
        yield IssueJoinCode(code_sha256=code, provider_id=PROVIDER, region_id=REGION, **by)
        yield JoinNode(
            code_sha256=code,
            node_id=node_id,
            key_id=key_id(public_key(key)),
            public_key=public_key(key).hex(),
            token_sha256=code,
            agent="replay",
            client_id=None,
            devices=tuple(DeviceSpec(device, "nvidia", node.model, 16_384) for device in devices),
            host=HostSpec("x86_64", "linux"),
            at_us=at_us,
        )
        yield ConfirmNodeKey(node_id=node_id, key_id=key_id(public_key(key)), **by)
        yield AdmitNode(node_id=node_id, **by)
        yield ActivateNode(node_id=node_id, **by)
        yield PublishOffer(
            offer_id=derive_id("offer", PROVIDER, node.name),
            provider_id=PROVIDER,
            node_id=node_id,
            price_per_gpu_hour=credit(PRICES.get(node.model, PRICE_ELSE)),
            pay_with="cash",
            fractions=True,
            available_until_us=None,
            at_us=at_us,
        )

    # --- playing -----------------------------------------------------------------------------

    def _play(self, runs: Sequence[TraceTask]) -> Iterator[None]:
        """Yields once per settled lease. Events in time order; closings before openings."""
        ends: list[tuple[int, str]] = []
        arrivals = iter(runs)
        task = next(arrivals, None)
        hour_us = START_US + REPORT_EVERY_US
        while task is not None or ends or self._open:
            arrival_us = START_US + task.created_s * 1_000_000 if task is not None else None
            next_us = min(
                t for t in (arrival_us, ends[0][0] if ends else None, hour_us) if t is not None
            )
            if ends and ends[0][0] == next_us:
                self._close(heapq.heappop(ends)[1], next_us)
            elif next_us == hour_us:
                yield from self._hourly(hour_us)
                hour_us += REPORT_EVERY_US
            else:
                assert task is not None
                running = self._lease(task, next_us)
                if running is not None:
                    heapq.heappush(ends, (running.end_us, running.lease_id))
                task = next(arrivals, None)
        self._book_capacity(hour_us - REPORT_EVERY_US)

    def _lease(self, task: TraceTask, at_us: int) -> Running | None:
        """Match, reserve and open in one append; the fleet is stepped first."""
        assert task.length_s is not None
        tables.step_all(self._connection, only=("fleet",))
        end_us = at_us + task.length_s * 1_000_000
        need = Need(
            task.gpus,
            task.share_ppm,
            task.share_ppm,
            task.models,
            10**9,
            RENTER,
            at_us=at_us,
            until_us=end_us,
            is_fixed_term=True,
        )
        position = self._fleet.follow(self._connection)
        fees = fleet_feed.fees(self._connection, at_us)
        found = answer(self._fleet.columns, need, fees)
        match = choose(need, found.nodes)
        if match is None:
            self._refused += 1
            return None
        match = replace(match, considered=found.considered)
        job_id = derive_id("job", RENTER, task.name)
        lease_id = derive_id("lease", RENTER, task.name)
        commands = _lease_commands(task, job_id, lease_id, position, match, at_us)
        self._ledger.handle(commands, key=None, now_us=at_us)
        running = Running(lease_id, match.node_id, match.device_ids, task.share_ppm, at_us, end_us)
        self._open[lease_id] = self._nodes[match.node_id].leases[lease_id] = running
        return running

    def _close(self, lease_id: str, at_us: int) -> None:
        closing = CloseLease(
            lease_id=lease_id, closed_at_us=at_us, party="job", code=TERM_REACHED, at_us=at_us
        )
        self._ledger.handle(closing, key=None, now_us=at_us)

    def _hourly(self, now_us: int) -> Iterator[None]:
        """Reports, accrual, pin; capacity at the end of each epoch."""
        if self._report(now_us):
            yield from self._accrue(now_us)
            self._pin(now_us)
        if now_us >= self._capacity_us + EPOCH_US:
            self._book_capacity(now_us)

    def _report(self, now_us: int) -> bool:
        items = [_signed(node, now_us) for node in self._nodes.values() if node.leases]
        if not items:
            return False
        receipts = usage.append(self._connection, items, now_us)
        assert all(receipt.status is usage.Status.STORED for receipt in receipts)
        return True

    def _accrue(self, now_us: int) -> Iterator[None]:
        reader = NodeReader(self._connection)
        batch: list[Any] = []
        for lease_id in tuple(self._open):
            state = self._ledger.market.state_of(lease_stream(lease_id))
            batch.extend(due_now(state, lease_id, reader, now_us, PATIENCE_US))
            if len(batch) >= COMMANDS_MAX:
                self._together(batch, now_us)
                batch.clear()
        self._together(batch, now_us)
        for running in tuple(self._open.values()):
            if running.end_us <= now_us:
                del self._open[running.lease_id]
                del self._nodes[running.node_id].leases[running.lease_id]
                self._settled += 1
                yield

    def _pin(self, now_us: int) -> None:
        trees.follow_all(self._connection)
        pin = cut.pin(self._connection).fact(now_us)
        self._ledger.handle(PinUsage(pin=pin), key=None, now_us=now_us)

    def _book_capacity(self, to_us: int) -> None:
        """Where every device's time went since the last booking."""
        devices = [device for node in self._nodes.values() for device in node.device_ids]
        for first in range(0, len(devices), COMMANDS_MAX):
            batch = [
                AccrueCapacity(device_id=device, to_us=to_us, unavailable=(), at_us=to_us)
                for device in devices[first : first + COMMANDS_MAX]
            ]
            self._together(batch, to_us)
        self._capacity_us = to_us

    def _together(self, commands: Sequence[Any], now_us: int) -> None:
        if commands:
            self._ledger.handle(list(commands), key=None, now_us=now_us)


def _founding(at_us: int) -> list[Any]:
    """A network with one renter who has paid, and one owner with a region."""
    secret = hashlib.sha256(b"tallystick/replay/operator").hexdigest()
    return [
        BootstrapOperator(
            account_id=OPERATOR,
            member_id="operator",
            key_id="replay00",
            key_sha256=secret,
            at_us=at_us,
        ),
        *(
            OpenAccount(
                account_id=account,
                kind="party",
                opened_by="operator",
                owner_member_id="owner",
                at_us=at_us,
            )
            for account in (RENTER, OWNER)
        ),
        publish(CLOUDBENDER, version=1, effective_from_us=at_us, by="operator", at_us=at_us),
        ConfirmDeposit(
            deposit_id=derive_id("deposit", RENTER, "replay"),
            account_id=RENTER,
            source="cash",
            amount=credit(DEPOSIT_UNITS),
            reference="replay",
            confirmed_by="operator",
            at_us=at_us,
        ),
        *(
            ClassModel(
                vendor="nvidia",
                model=model,
                gpu_class="datacenter",
                effective_from_us=at_us,
                by="operator",
                at_us=at_us,
            )
            for model in TRACE_MODELS
        ),
        RegisterProvider(
            provider_id=PROVIDER,
            account_id=OWNER,
            kind="physical",
            payment_mode="credits",
            at_us=at_us,
        ),
        OpenRegion(
            region_id=REGION,
            provider_id=PROVIDER,
            name="openb",
            storage_mode="local",
            setting="datacenter",
            admission="operator",
            allow_public_jobs=True,
            at_us=at_us,
        ),
    ]


def _lease_commands(
    task: TraceTask, job_id: str, lease_id: str, position: int, match: Match, at_us: int
) -> list[Any]:
    """From a job to a running lease, as one decision."""
    return [
        SubmitJob(
            job_id=job_id,
            account_id=RENTER,
            client_id="direct",
            project_id="openb",
            end_user_ref="trace",
            kind="batch",
            image=None,
            command=("trace", task.name),
            env_refs=(),
            gpu_count=task.gpus,
            share_ppm=task.share_ppm,
            mem_ppm=task.share_ppm,
            models=task.models,
            max_price_per_gpu_hour=credit(10**9),
            at_us=at_us,
        ),
        RequestLease(
            lease_id=lease_id,
            job_id=job_id,
            account_id=RENTER,
            term_us=(task.length_s or 0) * 1_000_000,
            funds=None,
            at_us=at_us,
        ),
        ReserveLease(
            lease_id=lease_id,
            rule=RULE,
            fleet_position=position,
            candidates=match.candidates,
            considered=match.considered,
            node_id=match.node_id,
            offer_id=match.offer_id,
            device_ids=match.device_ids,
            at_us=at_us,
        ),
        ReadyLease(lease_id=lease_id, node_id=match.node_id, endpoint=None, at_us=at_us),
    ]


def _signed(node: SimulatedNode, now_us: int) -> usage.Item:
    """The node's report of the last hour, as an item of the usage log."""
    devices = sorted({device for lease in node.leases.values() for device in lease.device_ids})
    leases = sorted(node.leases)
    rows = sorted(
        _rows(node.leases.values(), devices, leases, now_us),
        key=lambda row: (row.mono_start_us, row.device, row.lease or 0),
    )
    signed = node.chain.sign(
        rows,
        [report.Device(id=device) for device in devices],
        leases,
        mono_us=now_us - START_US,
        wall_us=now_us,
        boot=BOOT,
    )
    return usage.item(
        node.node_id,
        signed.seq,
        signed.prev,
        signed.body,
        key_id(public_key(node.key)),
        signed.signature,
        report.genesis(node.node_id, public_key(node.key)),
    )


def _rows(
    leases: Iterable[Running], devices: Sequence[str], order: Sequence[str], now_us: int
) -> Iterator[report.Row]:
    """One row per device and lease, cut at the lease's accounting hours."""
    for lease in leases:
        from_us = max(lease.opened_us, now_us - REPORT_EVERY_US)
        until_us = min(lease.end_us, now_us)
        while from_us < until_us:
            hours = (from_us - lease.opened_us) // HOUR_US + 1
            to_us = min(until_us, lease.opened_us + hours * HOUR_US)
            for device in lease.device_ids:
                yield report.Row(
                    device=devices.index(device),
                    lease=order.index(lease.lease_id),
                    driver_epoch=1,
                    mono_start_us=from_us - START_US,
                    len_us=to_us - from_us,
                    wall_minus_mono_us=START_US,
                    available_us=to_us - from_us,
                    unavailable_us=0,
                    unknown_us=0,
                    samples=60,
                    reason="hour",
                )
            from_us = to_us


# --- the independent pass --------------------------------------------------------------------

_LEASES = """
    SELECT convert_from(state, 'UTF8')::jsonb, topic FROM market_events
    WHERE topic = ANY(%s) ORDER BY notification_id
"""


@dataclass(frozen=True, slots=True)
class Recount:
    """What the finished log says, counted without the marketplace's own code."""

    gpu_microseconds_metered: int
    charged_units: int
    providers_units: int
    platform_units: int
    double_bookings: int
    wrong_model: int
    leases_settled: int


def recount(connection: psycopg.Connection[Any]) -> Recount:
    """Read the facts once more and add them up: windows per device, models, money."""
    facts: dict[str, list[dict[str, Any]]] = {}
    topics = [
        "lease.reserved.v1",
        "lease.opened.v1",
        "lease.closed.v1",
        "lease.settled.v1",
        "lease.requested.v1",
        "lease.usage_accrued.v1",
        "device.registered.v1",
    ]
    for body, topic in connection.execute(_LEASES, (topics,)):
        facts.setdefault(topic, []).append(body)
    closed = {fact["lease_id"]: fact["closed_at_us"] for fact in facts.get("lease.closed.v1", ())}
    opened = {fact["lease_id"]: fact["opened_at_us"] for fact in facts.get("lease.opened.v1", ())}
    settled, accrued = facts.get("lease.settled.v1", []), facts.get("lease.usage_accrued.v1", [])
    parts = {
        name: sum(int(fact["parts_new"][name]) for fact in accrued)
        for name in ("fee", "provider", "platform", "burn")
    }
    return Recount(
        gpu_microseconds_metered=sum(int(fact["gpu_us"]) for fact in settled),
        charged_units=sum(int(fact["charge"]["units"]) for fact in settled),
        providers_units=parts["provider"],
        platform_units=parts["fee"] + parts["platform"] + parts["burn"],
        double_bookings=_double_bookings(facts.get("lease.reserved.v1", []), opened, closed),
        wrong_model=_wrong_models(facts),
        leases_settled=len(settled),
    )


def _double_bookings(
    reserved: Iterable[dict[str, Any]], opened: dict[str, int], closed: dict[str, int]
) -> int:
    """Moments at which the leases of one device together hold more than the device."""
    edges: dict[str, list[tuple[int, int]]] = {}
    for fact in reserved:
        lease = fact["lease_id"]
        if lease in opened and lease in closed:
            for device in fact["device_ids"]:
                edges.setdefault(device, []).extend(
                    ((opened[lease], fact["share_ppm"]), (closed[lease], -fact["share_ppm"]))
                )
    found = 0
    for changes in edges.values():
        held = 0
        for _, share in sorted(changes):  # at one instant what ends comes first
            held += share
            found += share > 0 and held > 1_000_000
    return found


def _wrong_models(facts: dict[str, list[dict[str, Any]]]) -> int:
    """Leases with a device of a model they did not allow."""
    model = {fact["device_id"]: fact["model"] for fact in facts.get("device.registered.v1", ())}
    allowed = {fact["lease_id"]: fact["models"] for fact in facts.get("lease.requested.v1", ())}
    return sum(
        1
        for fact in facts.get("lease.reserved.v1", ())
        if allowed[fact["lease_id"]]
        and any(model[device] not in allowed[fact["lease_id"]] for device in fact["device_ids"])
    )


def replay_openb(
    ledger: Ledger,
    connection: psycopg.Connection[Any],
    nodes: Sequence[TraceNode],
    tasks: Sequence[TraceTask],
    progress: Progress = lambda _what, _done, _of: None,
) -> dict[str, Any]:
    """Replay a trace and count it again; the document of `tallystick trace replay --json`."""
    started = time.monotonic()
    replayed = Replay(ledger, connection, nodes, tasks, progress).run()
    counted = recount(connection)
    assert counted.leases_settled == replayed.leases_settled, (counted, replayed)
    _, head = ledger.market.head()
    return {
        "tasks": replayed.tasks,
        "leases_settled": replayed.leases_settled,
        "tasks_without_gpu": replayed.tasks_without_gpu,
        "tasks_never_scheduled": replayed.tasks_never_scheduled,
        "refused": replayed.refused,
        "gpu_microseconds_metered": str(counted.gpu_microseconds_metered),
        "charged_units": str(counted.charged_units),
        "providers_units": str(counted.providers_units),
        "platform_units": str(counted.platform_units),
        "double_bookings": counted.double_bookings,
        "wrong_model": counted.wrong_model,
        "books_balanced": ledger.books.books_balanced(),
        "log_head": head.hex(),
        "seconds": round(time.monotonic() - started, 1),
    }
