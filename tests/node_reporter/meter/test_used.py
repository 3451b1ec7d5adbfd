"""What leases used is signed by the reporter: once, in rows that adjoin."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from domain.metering import report
from domain.metering.resources import ResourceRow
from ledger.log.usage import signed_of
from node_reporter.executor.usage import Counters, write_counters
from node_reporter.meter.used import read_used
from tests.node_reporter.reporter_scene import Scene

LEASE = "lease_" + "7" * 32
START_US = 1_000


def tell(scene: Scene, cpu_us: int, *, sent: int | None = 5) -> None:
    """The executor's counters, now."""
    write_counters(
        scene.folder / "used",
        Counters(
            lease_id=LEASE,
            boot=scene.clock.boot_id,
            start_us=START_US,
            mono_us=scene.clock.now().mono_us,
            cpu_us=cpu_us,
            memory_byte_us=cpu_us * 3_500_000,
            storage_byte_us=0,
            received_bytes=7 * cpu_us,
            sent_bytes=sent,
            source="cgroup2",
        ),
    )


def signed(scene: Scene) -> list[ResourceRow]:
    """The resource rows of everything the server holds."""
    reports = [report.parse(signed_of(one.body)) for one in scene.server.stored()]
    return [row for one in reports for row in one.resources]


def test_counters_become_rows_that_adjoin_and_add_up(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    told = 0

    def each() -> None:
        nonlocal told
        told += 1_001
        tell(scene, told)

    scene.run(3, each)
    scene.crash()
    scene.run(2, each)
    scene.finish()
    rows = signed(scene)
    assert rows[0].mono_start_us == START_US
    assert all(a.mono_end_us == b.mono_start_us for a, b in pairwise(rows))
    assert sum(row.cpu_us or 0 for row in rows) == told
    assert sum(row.memory_byte_s or 0 for row in rows) == told * 3_500_000 // 1_000_000
    assert sum(row.received_bytes or 0 for row in rows) == 7 * told
    assert {row.source for row in rows} == {"cgroup2"}


def test_what_is_not_known_is_none_and_counters_that_go_back_say_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.run(1)
    tell(scene, 500, sent=None)
    scene.run(2)
    tell(scene, 400, sent=None)
    scene.finish()
    rows = signed(scene)
    assert [(row.cpu_us, row.sent_bytes) for row in rows] == [(500, None), (None, None)]


def test_a_file_that_is_no_counter_is_passed_over(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    tell(scene, 500)
    (good,) = read_used(tmp_path / "used")
    assert good.lease_id == LEASE
    whole = json.loads((tmp_path / "used" / LEASE).read_text())
    for change in ({"cpu_us": -1}, {"mono_us": "1"}, {"boot": None, "start_us": 2**60}):
        (tmp_path / "used" / LEASE).write_text(json.dumps(whole | change))
        assert read_used(tmp_path / "used") == []
    (tmp_path / "used" / "secret").write_text("{}")
    assert read_used(tmp_path / "nowhere") == []
