"""The market that the console is measured on: a long log, a fleet, and leases that run.

The long part of the log is a month of leases of others, written with COPY (`books.statements`);
fleet, accounts and the leases that are watched are recorded through the door of the log, and the
nodes of those leases report.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any, NamedTuple

import psycopg

from api.door import keys
from api.process import secret_files
from api.process.key_files import BLINDING
from api.process.service import Service
from benchmarks.books.statements import HOURS, write_log
from benchmarks.fleet.lease_open import NODES_TOGETHER, OWNER, PRICE, node_commands, supply_commands
from domain.funds.deposit import ConfirmDeposit
from domain.lease.lease import ReadyLease, lease_stream
from domain.metering import report
from domain.money import credit
from domain.parties.account import SCOPES_OF, FirstKey, OpenAccount
from ledger.log import usage
from projections import tables

MINUTE_US = 60_000_000
FIRST_NODE = 1_000_000
"""Nodes of the leases of others have lower numbers."""
BOOT = "5b1c9a7e-6f0d-4f0b-9c3f-2f1d0c9e8a71"


class Market(NamedTuple):
    """Keys of the operator, of the owner of all nodes, and of each renter."""

    operator: str
    owner: str
    renters: list[str]
    facts: int
    seconds: float


def made(service: Service, facts: int, nodes: int, renters: int, hours: int = HOURS) -> Market:
    """Write it into the empty database of `service`, and build every view."""
    began = time.perf_counter()
    operator = keys.new(live=False)
    blinding = secret_files.read(secret_files.folder_of(service.settings.data_dir) / BLINDING)
    with psycopg.connect(service.conninfo, autocommit=True) as connection:
        write_log(connection, facts, operator, hours, blinding)
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('account', 'id'), max(id)) FROM account"
        )
        connection.execute("VACUUM ANALYZE")
    with service.connect() as own:
        for each in tables.PROJECTIONS:
            tables.rebuild(own, each)
    owner, secrets = _parties(service, renters)
    for first in range(0, nodes, NODES_TOGETHER):
        now_us = time.time_ns() // 1_000
        some = range(first, min(nodes, first + NODES_TOGETHER))
        commands = [one for number in some for one in node_commands(FIRST_NODE + number, now_us)]
        service.ledger.handle(commands, key=None, now_us=now_us)
    with service.connect() as own:
        tables.step_all(own)
        row = own.execute("SELECT count(*) FROM public.market_events").fetchone()
        own.execute("ANALYZE")
    assert row is not None
    return Market(operator, owner, secrets, row[0], time.perf_counter() - began)


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
