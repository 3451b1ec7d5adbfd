"""The real reporter and the real server, and a wire between them that loses, repeats and reorders.

Everything real but the clocks: spool on disk, signatures, door, usage log, accrual, settlement.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from api.ingest.door import MEDIA_TYPE
from api.main import create_app
from api.process.service import Service
from api.replay.gentd26 import MeasuredGpus
from benchmarks.node import reporter_week
from node_reporter.agent import agent
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.meter.rows import Stretch
from node_reporter.reports.client import Response
from node_reporter.reports.delivery import Stopped
from node_reporter.reports.spool import Spool
from tests.conftest import Databases
from tests.in_process import InProcess
from tests.node_reporter.model_server import Wire
from tests.scenes.server import NOW_US, Provider, Scene, opened
from tests.scenes.work import accrue_now

TICK_US = 10_000_000
MINUTE_US = 60_000_000
FAULTS = ("lost_request", "lost_answer", "twice", "old_again", "reordered", "tail", "busy")


class Door:
    """The server as a transport of the reporter."""

    def __init__(self, http: InProcess) -> None:
        self.http = http

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        told = self.http.request(method, path, headers=dict(headers), content=body)
        named = {name.lower(): value for name, value in told.headers.items()}
        return Response(status=told.status_code, headers=named, body=told.content)


class Node:
    """The scene's first provider's node, with a real reporter on it."""

    def __init__(self, http: InProcess, clock: Any, provider: Provider, folder: Path) -> None:
        self.provider, self.server_clock, self.spool = provider, clock, folder / "spool.db"
        self.clock = SteppedClock(wall_us=clock.now_us())
        self.wire = Wire(cast(Any, Door(http)))
        self.said: list[str] = []
        self.start()

    def start(self) -> None:
        provider = self.provider
        self.reporter = Reporter(
            provider.node_id,
            provider.signing.key,
            MeasuredGpus(provider.device_ids),
            self.clock,
            self.spool,
            self.wire,
            node_key=provider.node.key or "",
            tick_us=TICK_US,
            tell=self.said.append,
            draw=lambda low, _high: low,
        )
        self.reporter.poll()

    def run(self, minutes: int) -> None:
        for _ in range(minutes * MINUTE_US // TICK_US):
            self.clock.advance(TICK_US)
            self.server_clock.move_to(self.clock.now().wall_us)
            self.reporter.poll()
            self.reporter.turn()

    def finish(self) -> None:
        self.wire.faults = []
        for _ in range(10):
            self.run(1)
            self.reporter.flush()
            if not self.reporter.spool.unsigned_count() and not self.reporter.spool.waiting()[0]:
                return
        raise AssertionError(self.said[-3:])


def node_of(scene: Scene, folder: Path) -> Node:
    return Node(scene.http, scene.clock, scene.provider, folder)


def settled_us(scene: Scene, node: Node, lease: dict[str, Any]) -> int:
    """Close the lease, let its node report to the end, settle: the GPU time it came to."""
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    node.finish()
    accrue_now(scene, lease["lease_id"])
    told = scene.renter.read(f"/v1/leases/{lease['lease_id']}")
    assert told["state"] == "settled", told
    return int(told["gpu_us"])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lease_is_billed_to_the_microsecond_whatever_the_wire_does(
    scene: Scene, tmp_path: Path, fault: str
) -> None:
    lease = scene.running()
    node = node_of(scene, tmp_path)
    for _ in range(5):
        node.wire.faults.append(fault)
        node.run(2)
    node.wire.faults = ["lost_request"] * 6
    node.run(4)
    node.wire.faults = [fault] * 3
    elapsed_us = node.clock.now().wall_us - NOW_US
    assert settled_us(scene, node, lease) == elapsed_us == 14 * MINUTE_US
    told = scene.provider.node.read(f"/v1/nodes/{scene.provider.node_id}/usage")
    assert told["reports_flagged"] == 0
    assert told["last_seq"] == told["reports"] == node.reporter.spool.seq


def test_a_truncated_batch_stores_nothing_and_the_next_one_is_whole(
    scene: Scene, tmp_path: Path
) -> None:
    lease = scene.running()
    node = node_of(scene, tmp_path)
    node.run(2)
    (headers, body), path = node.wire.sent[-1], f"/v1/nodes/{scene.provider.node_id}/usage"
    head = scene.provider.node.read(f"{path}/head")["acked_seq"]
    named = {"Content-Type": MEDIA_TYPE}
    for cut, packed in ((body[:-40], named), (body[: len(body) // 2], named)):
        assert scene.http.post(path, content=cut, headers=packed).status_code == 400
    short = gzip.compress(body)[:-9]
    told = scene.http.post(path, content=short, headers={**named, "Content-Encoding": "gzip"})
    assert (told.status_code, told.json()["code"]) == (400, "malformed")
    bomb = gzip.compress(b" " * 50_000_000)
    told = scene.http.post(path, content=bomb, headers={**named, "Content-Encoding": "gzip"})
    assert (told.status_code, told.json()["code"]) == (413, "too_large")
    assert scene.provider.node.read(f"{path}/head")["acked_seq"] == head
    node.run(2)
    assert settled_us(scene, node, lease) == 4 * MINUTE_US
    assert headers["Content-Type"] == MEDIA_TYPE


def test_two_machines_with_one_key_and_disk_end_in_quarantine(scene: Scene, tmp_path: Path) -> None:
    first = node_of(scene, tmp_path)
    first.run(3)
    first.reporter.spool.close()
    (tmp_path / "copy").mkdir()
    shutil.copy(first.spool, tmp_path / "copy" / "spool.db")
    first.start()
    second = node_of(scene, tmp_path / "copy")
    second.run(1)

    def turns() -> None:
        for _ in range(10):
            first.run(2)
            second.run(2)

    first.reporter.delivery.shaken = first.reporter.delivery.answering = True  # it never restarted
    with pytest.raises(Stopped, match=r"not ours|signed"):
        turns()
    with scene.service.connect() as connection:
        found = connection.execute("SELECT count(*) FROM usage_evidence").fetchone()
    assert found == (1,), "both bodies are kept: the stored one and the other"
    assert first.reporter.spool.seq
    assert second.reporter.spool.seq


@contextmanager
def served(database: str, folder: Path, clock: Any) -> Generator[InProcess, None, None]:
    """The same installation again, on this database."""
    from api.settings import Settings

    settings = Settings(
        data_dir=folder,
        database_url=database,
        spec_ttl_s=0,
        requests_per_second=1_000_000,
        requests_burst=1_000_000,
        reports_per_second=1_000_000,
        reports_burst=1_000_000,
    )
    with Service.open(settings, clock=clock) as service, InProcess(create_app(service)) as http:
        yield http


def rows_stored(database: str) -> list[tuple[int, str]]:
    with psycopg.connect(database) as connection:
        query = "SELECT node_seq, md5(body) FROM usage_event ORDER BY node_seq"
        return list(connection.execute(query).fetchall())


def test_a_server_restored_from_an_older_backup_gets_the_same_reports_again(
    postgres: Databases, database: str, tmp_path: Path
) -> None:
    name = database.rpartition("/")[2].partition("?")[0]
    (tmp_path / "node").mkdir()
    with opened(database, tmp_path / "server") as scene:
        scene.running()
        node = node_of(scene, tmp_path / "node")
        node.run(5)
        clock = scene.clock
    backup = postgres.create_database(f"{name}_backup", template=name)
    with served(database, tmp_path / "server", clock) as http:
        node.wire.server = cast(Any, Door(http))
        node.run(5)
    kept = rows_stored(database)
    assert len(rows_stored(backup)) < len(kept)
    with served(backup, tmp_path / "server", clock) as http:
        node.wire.server = cast(Any, Door(http))
        node.run(3)
        node.finish()
    assert rows_stored(backup)[: len(kept)] == kept
    postgres.drop_database(f"{name}_backup")


def test_three_hours_offline_are_caught_up_and_nothing_is_lost(
    database: str, tmp_path: Path
) -> None:
    """A week of it is `python -m benchmarks.node.reporter_week`."""
    told = reporter_week.measure(database, tmp_path, 30, 180)
    assert (told["lost_us"], told["devices"]) == (0, 8)
    first = agent.UNKNOWN_US_MAX // agent.INTERVAL_US  # minutes that are one row: see there
    assert told["conditions"]["rows_waiting"] >= 8 * (180 - first) - 8
    assert told["spool_bytes"] < 64 * 1024 * 1024
    assert told["seconds"] < 60


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_million_rows_are_caught_up_in_one_go(database: str, tmp_path: Path) -> None:
    """8 devices for 87 days at one row a minute, all of it waiting on disk."""
    from domain.metering import report

    with opened(database, tmp_path, reports_per_second=100_000, reports_burst=100_000) as scene:
        provider, rows, devices = scene.provider, 1_000_000, 8
        at_us = rows // devices * MINUTE_US
        spool = Spool(tmp_path / "spool.db", provider.node_id, provider.signing.key)
        described = [report.Device(id=f"GPU-far-{number}") for number in range(devices)]
        boot = "00000000-0000-4000-8000-00000000000c"
        for first in range(0, rows // devices, 1_000):
            spool.record(
                boot,
                [
                    Stretch(
                        device=device,
                        lease=None,
                        row=report.Row(
                            device=0,
                            lease=None,
                            driver_epoch=1,
                            mono_start_us=minute * MINUTE_US,
                            len_us=MINUTE_US,
                            wall_minus_mono_us=NOW_US - at_us,
                            available_us=MINUTE_US,
                            unavailable_us=0,
                            unknown_us=0,
                            samples=60,
                            energy_mj=minute,
                            reason="hour" if minute % 60 == 59 else "tick",
                        ),
                    )
                    for minute in range(first, min(first + 1_000, rows // devices))
                    for device in described
                ],
                [],
                [],
            )
        spool.close()
        node = node_of(scene, tmp_path)
        node.reporter.flush()
        node.finish()
        with scene.service.connect() as connection:
            found = connection.execute("SELECT body, flags FROM usage_event").fetchall()
        told = [report.parse(body[4 : 4 + int.from_bytes(body[:4], "big")]) for body, _ in found]
        metered = [row for one in told if one.boot == boot for row in one.rows]
        assert sum(row.available_us for row in metered) == rows * MINUTE_US
        assert rows > len(metered) > rows // 2, "above the cap rows are merged"
        assert node.reporter.spool.lost_rows == 0
        assert not any(flags for _, flags in found)
