"""The market that the console is measured on: a long log, a fleet, and leases that run.

The long part of the log is a month of leases of others, written with COPY (`books.statements`);
fleet, accounts and the leases that are watched are recorded through the door of the log, the fleet
many nodes in one append, and the nodes of those leases report.
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from api.door import keys
from api.process import secret_files
from api.process.key_files import BLINDING
from api.process.service import Service
from api.settings import Settings
from benchmarks.books.statements import HOURS, write_log
from benchmarks.fleet.lease_open import DEVICES, OWNER, PRICE, node_commands, supply_commands
from benchmarks.workplace import Server
from domain import rules
from domain.funds.deposit import ConfirmDeposit
from domain.lease.lease import ReadyLease, lease_stream
from domain.metering import report
from domain.money import credit
from domain.parties.account import SCOPES_OF, FirstKey, OpenAccount
from domain.stream import Stream
from ledger import migrate
from ledger.fan_out.processes import Processes, usable
from ledger.log import usage
from ledger.log.handle import Ahead, Order
from ledger.log.market import Held
from projections import tables

KEPT, COPY = "console_kept", "console"
"""Databases: the market as it was made, and the copy that a run works on."""
MINUTE_US = 60_000_000
FIRST_NODE = 1_000_000
"""Nodes of the leases of others have lower numbers."""
NODES_TOGETHER = 40
"""Of one append: a node is about 17 facts, and an append holds 1,000."""
BOOT = "5b1c9a7e-6f0d-4f0b-9c3f-2f1d0c9e8a71"


class Market(NamedTuple):
    """Keys of the operator, of the owner of all nodes, and of each renter; how long it took."""

    operator: str
    owner: str
    renters: list[str]
    nodes: int
    facts: int
    seconds: float


class Asked(NamedTuple):
    """About how many facts of others, of how many hours; and how much of our own."""

    facts: int
    nodes: int
    renters: int
    hours: int = HOURS


def prepared(folder: Path, server: Server, asked: Asked) -> tuple[str, Market]:
    """A database with such a market, and its keys: a copy of the one that the folder holds, which
    is made the first time. One that was not finished is to be removed by hand.
    """
    told = folder / "market.json"
    if not told.exists():
        uri = server.create_database(KEPT)
        migrate.migrate(uri)
        with Service.open(Settings(data_dir=folder / "data", database_url=uri)) as service:
            market = made(service, asked)
        told.write_text(json.dumps(market._asdict()), encoding="utf-8")
    copied = (
        f"DROP DATABASE IF EXISTS {COPY}",
        f"CREATE DATABASE {COPY} TEMPLATE {KEPT} STRATEGY FILE_COPY",
        f"GRANT CREATE ON DATABASE {COPY} TO tallystick_owner, tallystick_projections",
    )
    with psycopg.connect(server.uri, autocommit=True) as connection:
        for statement in copied:
            connection.execute(statement.encode())
    uri = make_conninfo(server.uri, dbname=COPY)
    return uri, Market(**json.loads(told.read_text(encoding="utf-8")))


def made(service: Service, asked: Asked) -> Market:
    """Write it into the empty database of `service`, and build every view once at the end."""
    began = time.perf_counter()
    operator = keys.new(live=False)
    blinding = secret_files.read(secret_files.folder_of(service.settings.data_dir) / BLINDING)
    with psycopg.connect(service.conninfo, autocommit=True) as connection:
        write_log(connection, asked.facts, operator, asked.hours, blinding)
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('account', 'id'), max(id)) FROM account"
        )
        connection.execute("ANALYZE")
    owner, secrets = _parties(service, asked.renters)
    fleet(service, range(FIRST_NODE, FIRST_NODE + asked.nodes))
    names = [one.name for one in tables.PROJECTIONS]
    with Processes(usable()) as processes:
        list(processes.map(_rebuilt, [(service.conninfo, name) for name in names]))
    with service.connect() as own:
        tables.step_all(own)
    with psycopg.connect(service.conninfo, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        row = connection.execute("SELECT pos FROM public.market_events_head").fetchone()
    assert row is not None
    seconds = round(time.perf_counter() - began, 1)
    return Market(operator, owner, secrets, asked.nodes, row[0], seconds)


def _rebuilt(view: tuple[str, str]) -> None:
    conninfo, name = view
    with psycopg.connect(conninfo, autocommit=True) as connection:
        tables.rebuild(connection, tables.BY_NAME[name])


def fleet(service: Service, numbers: range) -> None:
    """Nodes with their devices and offers, by the door and its rules, many in one append."""
    for first in range(0, len(numbers), NODES_TOGETHER):
        now_us, some = time.time_ns() // 1_000, numbers[first : first + NODES_TOGETHER]
        commands = [one for number in some for one in node_commands(number, now_us)]
        (done,) = service.ledger.handle_all(
            [Order(commands)], now_us=now_us, ahead=Ahead(_New(some, commands), {})
        )
        assert done.done == len(commands), done


class _New:
    """Streams of nodes that begin here have no facts yet: nothing is asked for them."""

    def __init__(self, numbers: range, commands: list[Any]) -> None:
        slots = range(DEVICES)
        self._names = {f"GPU-{number:04d}-{slot}" for number in numbers for slot in slots}
        fields = ("code_sha256", "node_id", "key_id", "offer_id")
        told = (getattr(one, name, None) for one in commands for name in fields)
        self._names |= {name for name in told if name is not None}

    def get(self, stream: Stream[Any], /) -> Held | None:
        if self._names.isdisjoint(stream.id.split("|")):
            return None
        return Held(stream.kind, stream.uuid, 0, rules.initial(stream.kind))


def _parties(service: Service, renters: int) -> tuple[str, list[str]]:
    now_us = time.time_ns() // 1_000
    at: dict[str, Any] = {"at_us": now_us}
    owner, secrets = keys.new(live=False), [keys.new(live=False) for _ in range(renters)]
    commands: list[Any] = [_account(OWNER, "owner", owner, now_us), *supply_commands(now_us)]
    for number, secret in enumerate(secrets):
        account_id = f"acct_visitor{number:04d}"
        commands += [
            _account(account_id, f"visitor{number}", secret, now_us),
            ConfirmDeposit(
                deposit_id=f"deposit_visitor_{number}",
                account_id=account_id,
                source="cash",
                amount=credit(10**12),
                reference=f"{number}",
                confirmed_by="operator",
                **at,
            ),
        ]
    service.ledger.handle(commands, key=None, now_us=now_us)
    return owner, secrets


def _account(account_id: str, member_id: str, secret: str, now_us: int) -> OpenAccount:
    key_id = keys.key_id(secret)
    assert key_id is not None
    scopes = tuple(sorted(SCOPES_OF["party"]))
    return OpenAccount(
        account_id=account_id,
        kind="party",
        opened_by="operator",
        owner_member_id=member_id,
        first_key=FirstKey(key_id=key_id, key_sha256=keys.digest(secret), scopes=scopes),
        at_us=now_us,
    )


class Running:
    """A lease that runs, and the node that reports its use each minute."""

    def __init__(self, service: Service, lease_id: str) -> None:
        state = service.ledger.market.state_of(lease_stream(lease_id))
        assert state.reserved is not None
        self.lease_id, self.node_id = lease_id, state.reserved.node_id
        self.device_id = state.reserved.device_ids[0]
        self.from_us = time.time_ns() // 1_000
        ready = ReadyLease(
            lease_id=lease_id, node_id=self.node_id, endpoint=None, at_us=self.from_us
        )
        service.ledger.handle(ready, key=None, now_us=self.from_us)

    def row(self, minute: int, number: int) -> report.Row:
        """One minute, all of it available."""
        return report.Row(
            device=number,
            lease=number,
            driver_epoch=3,
            mono_start_us=minute * MINUTE_US,
            len_us=MINUTE_US,
            wall_minus_mono_us=self.from_us,
            available_us=MINUTE_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
            busy_us=30_000_000 + minute * 7_919,
            mem_byte_s=10**12 + minute,
            energy_mj=9_000_000,
            throttle_power_ns=0,
            throttle_thermal_ns=0,
        )


class Reporter:
    """A node of the fleet that is believed without its signature, as what is stored already is."""

    def __init__(self, node_id: str, leases: list[Running]) -> None:
        self.node_id, self.leases, self.seq = node_id, leases, 0
        self.genesis = report.genesis(node_id, sha256(node_id.encode()).digest())
        self.head = self.genesis

    def next(self, minute: int) -> usage.Item:
        """The report of a minute of its leases."""
        self.seq += 1
        body = report.encode(
            report.Report(
                node=self.node_id,
                seq=self.seq,
                prev=self.head.hex(),
                boot=BOOT,
                agent="0.1.0",
                mono_us=(minute + 1) * MINUTE_US,
                wall_us=self.leases[0].from_us + (minute + 1) * MINUTE_US,
                clock_offset_us=0,
                clock_rtt_us=8_000,
                devices=tuple(
                    report.Device(id=one.device_id, busy_source="gpm", energy_scope="device")
                    for one in self.leases
                ),
                leases=tuple(one.lease_id for one in self.leases),
                rows=tuple(one.row(minute, number) for number, one in enumerate(self.leases)),
            )
        )
        prev, self.head = self.head, report.report_hash(body)
        return usage.item(self.node_id, self.seq, prev, body, "0" * 16, bytes(64), self.genesis)


def reporters(leases: list[Running]) -> list[Reporter]:
    """The nodes of these leases."""
    by_node: dict[str, list[Running]] = {}
    for one in leases:
        by_node.setdefault(one.node_id, []).append(one)
    return [Reporter(node_id, some) for node_id, some in by_node.items()]


def job() -> dict[str, Any]:
    """What a renter runs."""
    most = {"asset": "CREDIT", "units": str(2 * PRICE)}
    return {"command": ["true"], "max_price_per_gpu_hour": most}
