"""A whole installation that can be killed: PostgreSQL, server, jobs and payer as real processes.

The market is founded in the past through the door, so that leases of hours are metered, accrued
and settled within seconds. Who is killed, and when, is the test's business.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import httpx
import psycopg

from api.door import keys
from api.epochs import closing as settlement
from api.process.embedded_postgres import EmbeddedPostgres
from api.process.service import Service
from api.settings import Settings
from domain.chain.payout_root import ConfirmEpochMint
from domain.duration import HOUR_US
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.money import token
from domain.parties.account import FirstKey
from domain.parties.api_key import IssueApiKey
from tallystick_client.calls import authorities
from tests.e2e.load import Journal
from tests.processes import free_port, kill_with_children
from tests.scenes.running_market import OPERATOR, OPERATOR_KEY, OWNER, RENTER, Market, SignedNode

ROOT = Path(__file__).parents[2]
NODES = ("north", "east", "south", "west")
GPUS = 4
LEASE_SHARE_PPM = 100_000
TERMS_US = tuple(minutes * 60_000_000 for minutes in (40, 80, 120, 160))
"""The terms of a group's leases, one on each device of a node."""
DAY_US = 24 * HOUR_US
EMISSION = 10**12
PROGRAM = (sys.executable, "-c", "import sys; from cli.main import main; sys.exit(main())")
SECONDS_MAX = 180.0
"""After so long something hangs: on a busy machine 4 s of processor took more than 60 s."""
ASK_SECONDS = 0.2
"""Between two questions whether a process is up: each takes time from what is starting."""


@dataclass(frozen=True, slots=True)
class Metered:
    """A lease whose usage the load reports: what it must come to in the end."""

    lease_id: str
    node: str
    device: str
    from_us: int
    term_us: int


class Database(Protocol):
    """The PostgreSQL of a stand: the embedded one, or a pair of a primary and its standby."""

    @property
    def uri(self) -> str: ...

    @property
    def pid(self) -> int: ...

    def ensure_running(self) -> None: ...


@dataclass
class Stand:
    """One installation in one folder."""

    folder: Path
    postgres: Database
    url: str
    api_keys: dict[str, str]
    nodes: dict[str, SignedNode]
    groups: dict[str, list[Metered]]
    payouts: Journal = field(default_factory=Journal)
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _started_us: dict[str, int] = field(default_factory=dict)
    _readers: list[threading.Thread] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return self.postgres.uri

    # --- processes ---------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start "server", "jobs" or "payer"; it is up when `is_up` says so."""
        port = self.url.rpartition(":")[2]
        command = {
            "server": (*PROGRAM, "serve", "--port", port, "--no-jobs"),
            "jobs": (*PROGRAM, "jobs"),
            "payer": (
                sys.executable,
                "-m",
                "tests.e2e.payer",
                str(self.folder),
                str(self._next_payout()),
            ),
        }[name]
        environment = os.environ | {
            "TALLYSTICK_DATA_DIR": str(self.folder),
            "TALLYSTICK_REPORTS_PER_SECOND": "100000",
            "TALLYSTICK_REPORTS_BURST": "100000",
            "TALLYSTICK_REQUESTS_PER_SECOND": "100000",
            "TALLYSTICK_REQUESTS_BURST": "100000",
            "TALLYSTICK_PIN_EVERY_S": "1",
            "TALLYSTICK_SPEC_TTL_S": "0",  # its nodes tell their inventory once
            "PGAPPNAME": name,
        }
        if not isinstance(self.postgres, EmbeddedPostgres):
            environment["TALLYSTICK_DATABASE_URL"] = self.uri
        self._started_us[name] = time.time_ns() // 1_000
        with (self.folder / f"{name}.log").open("a") as log:
            process = self._running[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stderr=log,
                text=True,
                stdout=subprocess.PIPE if name == "payer" else log,
            )
        if name == "payer":
            assert process.stdout is not None
            reader = threading.Thread(target=self._read_payouts, args=(process.stdout,))
            reader.start()
            self._readers.append(reader)

    def _next_payout(self) -> int:
        """Some are repeated: a restarted scanner reads a few blocks again."""
        return max(1, self.payouts.count - 2)

    def _read_payouts(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                if line.endswith("\n"):
                    self.payouts.add(f"claim/{int(line)}", int(line))

    def kill(self, name: str) -> None:
        """SIGKILL, which no program can answer."""
        if name == "postgres":
            kill_with_children(self.postgres.pid)
            return
        process = self._running.pop(name)
        assert process.poll() is None, f"{name} had died by itself: {self.said(name)}"
        process.kill()
        process.wait(SECONDS_MAX)

    def restart(self, name: str) -> None:
        if name == "postgres":
            self.postgres.ensure_running()
        else:
            self.start(name)

    def await_up(self, name: str) -> None:
        """Wait until a process does its work. One that finds no database while it starts ends, and
        its supervisor starts it again; there is none here.
        """
        ends = time.monotonic() + SECONDS_MAX
        while not self._is_up(name):
            process = self._running[name]
            assert process.poll() is None, f"{name} ended: {self.said(name)}"
            assert time.monotonic() < ends, f"{name} did not come up: {self.said(name)}"
            time.sleep(ASK_SECONDS)

    def _is_up(self, name: str) -> bool:
        if name == "server":
            with suppress(httpx.TransportError):
                return httpx.get(f"{self.url}/readyz", verify=authorities()).is_success
            return False
        with psycopg.connect(self.uri) as connection:
            if name == "jobs":
                found = connection.execute(
                    "SELECT 1 FROM job_run WHERE ran_us > %s LIMIT 1", (self._started_us[name],)
                )
            else:
                found = connection.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE application_name = %s LIMIT 1", (name,)
                )
            return found.fetchone() is not None

    def said(self, name: str) -> str:
        """The end of what a process wrote."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-4_000:]

    def stop(self) -> None:
        """End everything that was started here."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait(SECONDS_MAX)
        for reader in self._readers:
            reader.join(SECONDS_MAX)

    def wait(self, until: Callable[[], bool], what: str, seconds: float = SECONDS_MAX) -> None:
        ends = time.monotonic() + seconds
        while not until():
            for name, process in self._running.items():
                assert process.poll() is None, f"{what}: {name} ended: {self.said(name)}"
            assert time.monotonic() < ends, f"{what}: {self.said('jobs')}{self.said('server')}"
            time.sleep(ASK_SECONDS)


# --- founding ---------------------------------------------------------------------------------


def build(folder: Path, postgres: Database, groups: tuple[str, ...]) -> Stand:
    """Found the market more than a day ago, settle its first epoch, and open the leases of every
    group some hours ago.
    """
    now_us = time.time_ns() // 1_000
    start_us = (now_us // HOUR_US - 30) * HOUR_US
    outside = None if isinstance(postgres, EmbeddedPostgres) else postgres.uri
    settings = Settings(data_dir=folder, database_url=outside)
    with (
        Service.open(settings) as service,
        psycopg.connect(service.conninfo, autocommit=True) as connection,
    ):
        market = Market(service.ledger, connection)
        renters, owners = _first_key("renter"), _first_key("provider")
        first_keys = {RENTER: renters[1], OWNER: owners[1]}
        market.found(*NODES, gpus=GPUS, at_us=start_us, first_keys=first_keys)
        api_keys = {RENTER: renters[0], OWNER: owners[0]}
        api_keys[OPERATOR] = _operators_key(market, start_us)
        _earn(market, folder, start_us)
        leases_us = start_us + 25 * HOUR_US
        found = {group: _open_leases(market, group, leases_us) for group in groups}
    url = f"http://127.0.0.1:{free_port()}"
    return Stand(folder, postgres, url, api_keys, market.nodes, found)


def _first_key(scope: str) -> tuple[str, FirstKey]:
    """A key with one scope, and what the server keeps of it."""
    key = keys.new(live=False)
    key_id = keys.key_id(key)
    assert key_id is not None
    return key, FirstKey(key_id=key_id, key_sha256=keys.digest(key), scopes=(scope,))


def _operators_key(market: Market, at_us: int) -> str:
    key, made = _first_key("operator")
    market.do(
        at_us,
        IssueApiKey(
            account_id=OPERATOR,
            key_id=made.key_id,
            key_sha256=made.key_sha256,
            scopes=made.scopes,
            expires_at_us=None,
            by_key_id=OPERATOR_KEY,
            at_us=at_us,
        ),
    )
    return key


def _earn(market: Market, folder: Path, start_us: int) -> None:
    """One settled and minted epoch: the treasury's part is there to be paid out."""
    end_us = start_us + DAY_US
    market.do(
        start_us,
        PublishPolicy(
            version=1,
            epoch_length_us=DAY_US,
            segments=(EmissionSegment(1, 100, 100 * EMISSION),),
            hard_cap=token(1_000 * EMISSION),
            compute_ppm=700_000,
            availability_ppm=200_000,
            treasury_ppm=100_000,
            compute_base="burned_value",
            holdback_epochs=0,
            effective_from_epoch=1,
            by="operator",
            at_us=start_us,
        ),
        OpenEpoch(epoch=1, start_us=start_us, at_us=start_us),
    )
    waits = settlement.settle_due(
        market.ledger, market.connection, end_us + 1, "job", data_dir=folder
    )
    assert not waits, waits
    sealed = settlement.epoch_state(market.ledger, 1).sealed
    assert sealed is not None
    market.do(
        end_us + 2,
        ConfirmEpochMint(
            epoch=1,
            amount=token(sealed.minted),
            settlement_id=sealed.file_sha256,
            tx_hash="0x1",
            block_number=1,
            at_us=end_us + 2,
        ),
    )


def _open_leases(market: Market, group: str, at_us: int) -> list[Metered]:
    """One lease on each device of each node, of a tenth of it, with terms long over."""
    found = []
    for name, node in market.nodes.items():
        for slot, term_us in enumerate(TERMS_US):
            lease_id = market.lease(
                f"{group}{name}{slot}",
                name,
                first=slot,
                share_ppm=LEASE_SHARE_PPM,
                term_us=term_us,
                at_us=at_us,
            )
            found.append(Metered(lease_id, name, node.device_ids[slot], at_us, term_us))
    return found
