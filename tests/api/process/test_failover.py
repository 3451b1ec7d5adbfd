"""The primary is killed while calls and reports come in; the standby takes its place, and the same
server goes on. `tests/e2e/test_failover.py` is the long form, with everything in its own process.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from pathlib import Path

import psycopg
import pytest
from starlette.testclient import TestClient

from api.main import create_app
from api.process.service import Service
from api.settings import Settings
from ledger.log import usage
from ledger.log.usage import Full, Status, Unavailable, UsageLog
from tests.processes import until
from tests.scenes.shell import tallystick
from tests.scenes.usage_reports import Node
from tests.servers.standby import Pair, pair

OUTAGE_SECONDS_MAX = 30.0


class Caller(threading.Thread):
    """Opens accounts one after the other, each until it is acknowledged."""

    def __init__(self, http: TestClient, key: str) -> None:
        super().__init__(daemon=True)
        self.http, self.key = http, key
        self.told: dict[str, tuple[str, int]] = {}
        self.stop = threading.Event()

    def run(self) -> None:
        for number in itertools.count():
            headers = {"Authorization": f"Bearer {self.key}", "Idempotency-Key": f"a{number}"}
            while not self.stop.is_set():
                answer = self.http.post("/v1/accounts", json={}, headers=headers)
                if answer.status_code == 201:
                    told = answer.json()
                    self.told[f"a{number}"] = told["account_id"], told["position"]
                    break
                assert answer.status_code in (409, 429, 503), answer.text
                time.sleep(0.02)
            else:
                return


class Reporter(threading.Thread):
    """Sends reports of one node, each until it has its receipt."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.node = address, Node("failing over")
        self.told: dict[int, tuple[int | None, bytes | None]] = {}
        self.stop = threading.Event()

    def run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        async with UsageLog(self.address) as log:
            while not self.stop.is_set():
                items = self.node.items(1)
                while True:
                    try:
                        (receipt,) = await log.append(items)
                    except (Full, Unavailable):
                        await asyncio.sleep(0.02)
                        continue
                    break
                assert receipt.status in (Status.STORED, Status.DUPLICATE)
                self.told[items[0].seq] = receipt.position, receipt.lane_hash


@pytest.mark.timeout(120)
def test_a_running_server_goes_on_at_the_promoted_standby_with_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    with pair() as servers:
        at = {"DATABASE_URL": servers.uri, "DATA_DIR": tmp_path}
        key = tallystick("admin", "bootstrap", "--json", **at).document["api_key"]
        settings = Settings(
            data_dir=tmp_path,
            database_url=servers.uri,
            requests_per_second=100_000,
            requests_burst=100_000,
        )
        with Service.open(settings) as service, TestClient(create_app(service)) as http:
            caller, reporter = Caller(http, key), Reporter(servers.uri)
            for one in (caller, reporter):
                one.start()
            until(lambda: min(len(caller.told), len(reporter.told)) >= 20)
            began = time.monotonic()
            servers.fail_over()
            calls, reports = len(caller.told), len(reporter.told)
            until(lambda: len(caller.told) > calls + 1 and len(reporter.told) > reports + 1)
            assert time.monotonic() - began < OUTAGE_SECONDS_MAX
            servers.restore_standby()
            for one in (caller, reporter):
                one.stop.set()
            for one in (caller, reporter):
                one.join(30)
            assert http.get("/readyz").status_code == 200
        _check(servers, caller, reporter)


def _check(servers: Pair, caller: Caller, reporter: Reporter) -> None:
    """At the new primary and at the standby that was made anew."""
    head = servers.primary.ask("SELECT pos, hash FROM market_events_head")
    until(lambda: servers.standby.ask("SELECT pos, hash FROM market_events_head") == head)
    for server in (servers.primary, servers.standby):
        with psycopg.connect(server.uri, autocommit=True) as connection:
            for name, (_, position) in caller.told.items():
                found = connection.execute(
                    "SELECT position FROM command WHERE key = %s", (name,)
                ).fetchall()
                assert found == [(position,)], name
            stored = connection.execute(
                "SELECT node_seq, position, chain FROM usage_event WHERE node_id = %s",
                (reporter.node.id,),
            ).fetchall()
            there = {seq: (position, bytes(chain)) for seq, position, chain in stored}
            assert reporter.told.items() <= there.items()
            assert usage.verify(connection, range(64)) == len(stored)
