"""Disks that are full, read-only, old, copied or damaged: nothing is paid twice, little is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from domain.metering import report
from node_reporter.reports import spool as spools
from node_reporter.reports.spool import Spool, SpoolUnreadable
from tests.node_reporter.reporter_scene import BEGIN_US, MINUTE_US, TICK_US, WALL_US, Scene
from tests.node_reporter.reports.test_spool import BOOT, KEY, NODE, now, sign, stretch

ROOT = Path(__file__).parents[3]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def leased(scene: Scene) -> str:
    lease_id = scene.lease(1, 0, WALL_US)
    scene.reporter.flush()
    return lease_id


def credited(scene: Scene, lease_id: str) -> int:
    end_us = scene.true_clock.now().wall_us
    return sum(scene.credited_us(lease_id, WALL_US, end_us).values())


# --- a disk that takes nothing ---------------------------------------------------------------


def on_a_small_disk(folder: Path, how: str) -> dict[str, Any]:
    """Run the node on a tmpfs of 8 MB in a mount namespace of its own."""
    folder.mkdir()
    command = (
        f"mount -t tmpfs -o size=8m tmpfs {folder}"
        f" && exec {sys.executable} -m tests.node_reporter.small_disk {folder} {how}"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["available_us"] + told["unknown_us"] == told["elapsed_us"]
    assert told["alerts"] == []
    return told


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = "unshare --user --map-root-user --mount mount -t tmpfs tmpfs /mnt"
    return subprocess.run(command.split(), capture_output=True).returncode == 0


mounts = pytest.mark.skipif(not can_mount(), reason="no file system may be mounted here")


@mounts
def test_a_full_disk_costs_nothing_when_there_is_room_again_within_ten_minutes(
    tmp_path: Path,
) -> None:
    told = on_a_small_disk(tmp_path / "disk", "full")
    assert any("metering goes on in memory" in line for line in told["said"])
    assert "the disk takes the spool again" in told["said"]
    assert (told["raised"], told["unknown_us"], told["unavailable_us"]) == ("", 0, 0)


@mounts
def test_a_disk_that_stays_full_makes_the_time_unknown(tmp_path: Path) -> None:
    told = on_a_small_disk(tmp_path / "disk", "long")
    assert "full" in told["raised"]
    assert 10 * MINUTE_US <= told["unknown_us"] <= 11 * MINUTE_US
    assert told["unavailable_us"] == 0


@mounts
def test_on_a_read_only_disk_no_reporter_starts_and_the_time_is_unknown(tmp_path: Path) -> None:
    told = on_a_small_disk(tmp_path / "disk", "readonly")
    assert "readonly" in told["raised"] or "unable to open" in told["raised"]
    assert MINUTE_US <= told["unknown_us"] <= MINUTE_US + 2 * TICK_US


def test_a_write_that_finds_no_room_leaves_everything_as_it_was(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(1)], [stretch(2)], [])
    pages = spool._db.execute("PRAGMA page_count").fetchone()[0]
    spool._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(spools.SpoolBlocked):
        spool.record(BOOT, [stretch(n) for n in range(2, 2_000)], [], [])
    spool._db.execute("PRAGMA max_page_count = 1000000")
    assert spool.unsigned_count() == 1
    assert [row.mono_start_us // MINUTE_US for row in sign(spool).rows] == [1]
    spool.close()
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    assert [row.mono_start_us // MINUTE_US for row in sign(spool).rows] == [2]


# --- a disk that went back in time -----------------------------------------------------------


def restored(scene: Scene, copy: Path) -> None:
    """The machine comes up with an older copy of its spool."""
    scene.reporter.spool.close()
    for file in scene.folder.glob("spool.db*"):
        file.unlink()
    shutil.copy(copy, scene.folder / "spool.db")
    scene.start()


@pytest.mark.parametrize("writes_were_lost", [True, False], ids=["un-synced WAL", "snapshot"])
def test_time_on_a_disk_that_went_back_is_never_paid_twice(
    scene: Scene, *, writes_were_lost: bool
) -> None:
    lease_id = leased(scene)
    scene.run(5)
    old = scene.folder / "old.db"
    if writes_were_lost:
        scene.reporter.spool._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(scene.folder / "spool.db", old)
        scene.run(5)
        assert (scene.folder / "spool.db-wal").stat().st_size, "what follows is in the WAL alone"
    else:
        scene.reporter.spool.close()
        shutil.copy(scene.folder / "spool.db", old)
        scene.start()
        scene.run(5)
    held = scene.server.seq
    restored(scene, old)
    scene.run(5)
    scene.finish()
    assert scene.server.alerts == []
    assert scene.server.seq > held
    started = [e for one in scene.server.reports() for e in one.events if e.type == "agent.started"]
    assert started[-1].data["adopted_seq"] == held
    elapsed_us = scene.clock.now().mono_us - BEGIN_US
    assert elapsed_us - 2 * MINUTE_US < credited(scene, lease_id) <= elapsed_us


def test_a_disk_that_went_back_counts_the_reports_it_may_not_send(scene: Scene) -> None:
    scene.run(3)
    scene.wire.faults = ["lost_request"]
    scene.run(1)
    scene.reporter.spool.close()
    shutil.copy(scene.folder / "spool.db", scene.folder / "old.db")
    scene.start()
    scene.run(5)
    restored(scene, scene.folder / "old.db")
    scene.run(5)
    scene.finish()
    started = [e for one in scene.server.reports() for e in one.events if e.type == "agent.started"]
    assert started[-1].data["lost_reports"] == 1
    assert scene.server.alerts == []


# --- damage ----------------------------------------------------------------------------------


def damaged(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


HALF = "(SELECT max(id) FROM row) / 2"


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE row SET available_us = available_us + 1 WHERE id = {HALF}",
        f"UPDATE row SET available_us = 'much' WHERE id = {HALF}",
        f"UPDATE row SET len_us = -5 WHERE id = {HALF}",
        f"UPDATE row SET energy_mj = 9223372036854775807 WHERE id = {HALF}",
        f"UPDATE row SET reason = 77 WHERE id = {HALF}",
        f"UPDATE row SET device = 999999 WHERE id = {HALF}",
        f"UPDATE row SET lease = 1 WHERE id = {HALF}",
        f"UPDATE row SET mono_start_us = NULL WHERE id = {HALF}",
        f"UPDATE row SET wall_minus_mono_us = -9007199254740991 WHERE id = {HALF}",
    ],
)
def test_a_damaged_row_costs_its_own_time_and_no_other_rows(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "s.db"
    spool = Spool(path, NODE, KEY)
    spool.record(BOOT, [stretch(n) for n in range(100)], [], [])
    spool.close()
    damaged(path, statement)
    spool = Spool(path, NODE, KEY)
    found: list[report.Row] = []
    while spool.unsigned_count():
        found += sign(spool).rows
    assert [row.mono_start_us // MINUTE_US for row in found] == [n for n in range(100) if n != 49]
    assert spool.lost_rows == 1


def test_a_row_that_moved_over_another_spoils_neither_report(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    spool = Spool(path, NODE, KEY)
    spool.record(BOOT, [stretch(n) for n in range(100)], [], [])
    spool.close()
    damaged(path, f"UPDATE row SET mono_start_us = mono_start_us - 7 WHERE id = {HALF}")
    spool = Spool(path, NODE, KEY)
    reports = []
    while spool.unsigned_count():
        reports.append(sign(spool))
    assert sum(len(one.rows) for one in reports) == 100
    assert len(reports) > 1, "rows that overlap are not in one report, which would be refused whole"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET data = 'no json'",
        "UPDATE event SET data = '[1]'",
        "UPDATE event SET type = 'unheard.of'",
        "UPDATE event SET mono_us = 'late'",
    ],
)
def test_a_damaged_event_costs_no_row_its_worth(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "s.db"
    spool = Spool(path, NODE, KEY)
    event = spools.PendingEvent(type="agent.started", at=now(1), device=None, data={})
    spool.record(BOOT, [stretch(n) for n in range(3)], [], [], [event])
    spool.close()
    damaged(path, statement)
    spool = Spool(path, NODE, KEY)
    one = sign(spool)
    assert (len(one.rows), one.events) == (3, ())


def test_the_owner_is_told_of_rows_that_were_set_aside(scene: Scene) -> None:
    scene.wire.down = True
    scene.run(10)
    scene.reporter.spool.close()
    damaged(scene.folder / "spool.db", f"UPDATE row SET available_us = 0 WHERE id = {HALF}")
    scene.start()
    scene.finish()
    assert any("make no sense and were set aside" in line for line in scene.said)
    elapsed_us = scene.clock.now().mono_us - BEGIN_US
    lost_us = elapsed_us - sum(row.len_us for _, _, row in scene.server.rows())
    assert lost_us == MINUTE_US, "nobody is paid for a minute that nobody can read"


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:-9],
        lambda body: body.replace(b'"samples":', b'"samplez":', 1),
        lambda _body: b"",
    ],
    ids=["cut", "altered", "empty"],
)
def test_a_damaged_report_stops_the_chain_and_nothing_is_deleted(
    scene: Scene, change: Callable[[bytes], bytes]
) -> None:
    scene.run(2)
    scene.wire.faults = ["lost_request"]
    scene.run(1)
    held, waiting = scene.server.seq, scene.reporter.spool.unacked(1, 1)[0]
    scene.reporter.spool.close()
    with sqlite3.connect(scene.folder / "spool.db") as db:
        db.execute("UPDATE report SET body = ? WHERE seq = ?", (change(waiting.body), waiting.seq))
    db.close()
    scene.start()
    with pytest.raises(SpoolUnreadable, match=f"report {waiting.seq}"):
        scene.run(20)
    assert (scene.server.seq, scene.server.alerts) == (held, [])
    assert scene.reporter.spool.seq >= waiting.seq


def test_a_file_with_damaged_pages_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    spool = Spool(path, NODE, KEY)
    spool.record(BOOT, [stretch(n) for n in range(500)], [], [])
    spool.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8_192] + b"\xa5" * 16_384 + whole[24_576:])
    with pytest.raises(SpoolUnreadable, match="damaged"):
        Spool(path, NODE, KEY)
    path.write_bytes(b"this was no database")
    with pytest.raises(SpoolUnreadable, match="damaged"):
        Spool(path, NODE, KEY)


# --- a disk that fills -----------------------------------------------------------------------


def busy_for(scene: Scene, minutes: int) -> None:
    """429 to every POST, with the head still told: only the reports are not taken."""
    scene.draw = max
    scene.crash()
    scene.server.refuse_posts[:] = [(429, "too_many_reports")] * 1_000_000
    scene.run(minutes)
    asked = 1_000_000 - len(scene.server.refuse_posts)
    assert asked <= minutes // 5 + 20, "it asks every five minutes"
    reports, _ = scene.reporter.spool.waiting()
    assert reports <= 64, "what cannot be sent waits unsigned, and can still be merged"
    scene.server.refuse_posts.clear()


def test_a_server_that_is_busy_for_half_a_day_loses_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, tick_us=60_000_000)
    busy_for(scene, 12 * 60)
    scene.finish()
    assert sum(scene.device_us()) == scene.clock.now().mono_us - BEGIN_US


@pytest.mark.long
def test_a_server_that_is_busy_for_a_week_loses_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, count=8, tick_us=60_000_000)
    busy_for(scene, 7 * 24 * 60)
    assert scene.reporter.spool.used_bytes() <= spools.CAP_BYTES
    scene.finish()
    assert sum(scene.device_us(7)) == scene.clock.now().mono_us - BEGIN_US


def test_at_the_cap_rows_are_merged_from_where_the_last_merge_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "MERGE_BATCH", 100)
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    hours = [stretch(n, reason="hour" if n % 60 == 59 else "tick") for n in range(1_200)]
    spool.record(BOOT, hours, [], [])
    while spool.merge() or spool.unsigned_count() > 20:
        pass
    rows = sign(spool).rows
    assert len(rows) == 20
    assert sum(row.len_us for row in rows) == 1_200 * MINUTE_US
    assert all(a.mono_end_us == b.mono_start_us for a, b in pairwise(rows))


def test_faults_do_not_keep_rows_apart_and_a_wall_clock_that_was_set_does(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(1, reason="fault"), stretch(2), stretch(3, reason="gap")], [], [])
    assert spool.merge() == 2
    spool.close()
    damaged(tmp_path / "s.db", "UPDATE row SET wall_slew_us = 86400000000")
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(4)], [], [])
    assert spool.merge() == 0


def test_no_merged_row_is_longer_than_an_hour(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(minute) for minute in range(3_000)], [], [])
    spool.merge()
    assert [row.len_us for row in sign(spool).rows] == [60 * MINUTE_US] * 50


def test_acknowledged_reports_are_kept_packed_and_sent_again_as_they_were_signed(
    scene: Scene,
) -> None:
    scene.run(30)
    before = list(scene.server.bodies)
    (kept,) = scene.reporter.spool._db.execute(
        "SELECT sum(length(body)) FROM report WHERE state = 1"
    ).fetchone()
    assert kept < sum(map(len, before)) * 3 // 4
    del scene.server.bodies[3:]
    scene.crash()
    scene.finish()
    assert scene.server.bodies[: len(before)] == before
