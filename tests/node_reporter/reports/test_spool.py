"""The spool loses nothing, signs nothing twice, and tells an honest restore from a fraud."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from domain.metering import report
from node_reporter.clock import Moment
from node_reporter.identity import public_key
from node_reporter.meter.rows import Stretch
from node_reporter.reports.spool import (
    KEEP_ACKED_US,
    ROW_BYTES,
    HistoryDiffers,
    PendingEvent,
    Spool,
    SpoolUnreadable,
    Verdict,
)

NODE = "node_" + "5" * 32
KEY = SigningKey(bytes(32))
BOOT = "00000000-0000-4000-8000-00000000000a"
LATER_BOOT = "00000000-0000-4000-8000-00000000000b"
MINUTE_US = 60_000_000
WALL_US = 1_795_161_600_000_000
DEVICE = report.Device(id="GPU-1")


def stretch(minute: int, lease: str | None = None, reason: str = "tick") -> Stretch:
    row = report.Row(
        device=0,
        lease=None,
        driver_epoch=1,
        mono_start_us=minute * MINUTE_US,
        len_us=MINUTE_US,
        wall_minus_mono_us=WALL_US,
        available_us=MINUTE_US,
        unavailable_us=0,
        unknown_us=0,
        samples=60,
        energy_mj=minute,
        reason=reason,
    )
    return Stretch(device=DEVICE, lease=lease, row=row)


def now(minute: int = 10_000) -> Moment:
    return Moment(minute * MINUTE_US, minute * MINUTE_US, WALL_US + minute * MINUTE_US)


def filled(path: Path | str, minutes: range, *, cap_bytes: int = 1 << 26) -> Spool:
    spool = Spool(path, NODE, KEY, cap_bytes=cap_bytes)
    spool.record(BOOT, [stretch(minute) for minute in minutes], [], [])
    return spool


def sign(spool: Spool, boot: str = BOOT) -> report.Report:
    signed = spool.sign(now(), boot, clock=None, agent="0.1.0")
    assert signed is not None
    return report.parse(signed.body)


def genesis() -> bytes:
    return report.genesis(NODE, public_key(KEY))


def test_a_row_is_unsigned_or_in_one_report_never_both(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(2_500))
    found: list[report.Row] = []
    while spool.unsigned_count():
        one = sign(spool)
        assert len(one.rows) + spool.unsigned_count() + len(found) == 2_500
        found += one.rows
    assert [row.mono_start_us // MINUTE_US for row in found] == list(range(2_500))
    assert spool.sign(now(), BOOT, clock=None, agent="0.1.0") is None


def test_reports_chain_from_genesis_and_over_a_restart(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(2))
    first = sign(spool)
    spool.close()
    spool = filled(tmp_path / "s.db", range(2, 4))
    second = sign(spool)
    assert (first.seq, first.prev) == (1, genesis().hex())
    assert (second.seq, second.prev) == (2, report.report_hash(report.encode(first)).hex())


def test_open_rows_become_final_when_the_process_died(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(1)], [stretch(2)], [])
    assert spool.unsigned_count() == 1
    spool.record(BOOT, [], [stretch(2, "lease_12345678")], [])
    spool.close()
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    one = sign(spool)
    assert [(row.mono_start_us // MINUTE_US, row.lease) for row in one.rows] == [(1, None), (2, 0)]


def test_rows_of_an_earlier_boot_go_first_in_a_report_of_their_own(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(5, 7))
    spool.record(LATER_BOOT, [stretch(1)], [], [])
    first, second = sign(spool, LATER_BOOT), sign(spool, LATER_BOOT)
    assert (first.boot, first.mono_us) == (BOOT, 7 * MINUTE_US)
    assert (second.boot, second.mono_us) == (LATER_BOOT, now().mono_us)


def test_a_report_is_closed_before_it_has_too_many_leases(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(n, f"lease_{n:032d}") for n in range(300)], [], [])
    assert [len(sign(spool).leases), len(sign(spool).leases)] == [256, 44]


def test_events_travel_with_the_rows_of_their_boot(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    lost = PendingEvent(type="device.fault", at=now(1), device=DEVICE, data={"code": 15})
    spool.record(BOOT, [], [], [], [lost])
    one = sign(spool)
    assert (one.rows, one.events[0].type, one.events[0].device) == ((), "device.fault", 0)
    assert one.devices == (DEVICE,)


def test_many_events_and_many_rows_fit_into_reports(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    long = PendingEvent(type="device.fault", at=now(1), device=DEVICE, data={"why": "x" * 1_000})
    wide = [
        replace(one, row=replace(one.row, energy_mj=2**53 - 1 - n, mem_byte_s=2**53 - 1 - n))
        for n, one in enumerate(
            stretch(minute, f"lease_{minute % 200:032d}") for minute in range(2_000)
        )
    ]
    spool.record(BOOT, wide, [], [], [long] * 150)
    reports = []
    while spool.unsigned_count():
        reports.append(sign(spool))
    assert [len(one.events) for one in reports][:2] == [100, 50]
    assert sum(len(one.rows) for one in reports) == 2_000


def test_an_acknowledgement_of_a_report_never_signed_is_refused(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(2))
    one = sign(spool)
    with pytest.raises(HistoryDiffers):
        spool.ack(2, bytes(32), WALL_US)
    with pytest.raises(HistoryDiffers):
        spool.ack(1, bytes(32), WALL_US)
    assert len(spool.unacked(64, 1 << 20)) == 1
    spool.ack(1, report.report_hash(report.encode(one)), WALL_US)
    assert spool.unacked(64, 1 << 20) == []


def test_acknowledged_reports_stay_fourteen_days_for_a_restored_server(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(1))
    sign(spool)
    spool.ack(1, spool.head, WALL_US)
    assert spool.reconcile(0, None, WALL_US) is Verdict.RESEND
    assert [signed.seq for signed in spool.unacked(64, 1 << 20)] == [1]
    spool.ack(1, spool.head, WALL_US)
    spool.ack(1, spool.head, WALL_US + KEEP_ACKED_US + 1)
    with pytest.raises(HistoryDiffers):
        spool.reconcile(0, None, WALL_US)


def test_a_server_with_another_report_under_our_number_stops_everything(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(1))
    sign(spool)
    with pytest.raises(HistoryDiffers):
        spool.reconcile(1, bytes(32), WALL_US)
    with pytest.raises(HistoryDiffers):
        spool.reconcile(0, bytes(32), WALL_US)
    assert len(spool.unacked(64, 1 << 20)) == 1


def test_a_restored_disk_adopts_the_servers_head_and_sends_none_of_its_old_reports(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    spool = filled(path, range(1))
    sign(spool)
    spool.close()
    shutil.copy(path, tmp_path / "old.db")
    spool = filled(path, range(1, 3))
    sign(spool)
    theirs = spool.head
    spool.close()
    for leftover in tmp_path.glob("s.db*"):
        leftover.unlink()
    shutil.copy(tmp_path / "old.db", path)
    spool = filled(path, range(7, 8))
    assert spool.reconcile(2, theirs, WALL_US) is Verdict.ADOPTED
    assert (spool.lost_reports, spool.unacked(64, 1 << 20)) == (1, [])
    third = sign(spool)
    assert (third.seq, third.prev) == (3, theirs.hex())
    assert spool.reconcile(2, theirs, WALL_US) is Verdict.RESEND
    with pytest.raises(HistoryDiffers):
        spool.reconcile(1, bytes(32), WALL_US)


def test_a_full_spool_merges_rows_and_loses_neither_time_nor_energy(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(60), cap_bytes=30 * ROW_BYTES)
    assert spool.fullness_ppm() == 2_000_000
    assert spool.merge() == 59
    one = sign(spool)
    assert [(row.len_us, row.energy_mj) for row in one.rows] == [(60 * MINUTE_US, sum(range(60)))]


def test_a_merged_row_never_spans_an_hour_edge_or_two_leases(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    stretches = [stretch(1, reason="hour"), stretch(2), stretch(3, "lease_12345678"), stretch(4)]
    spool.record(BOOT, stretches, [], [])
    assert spool.merge() == 0


def test_a_spool_of_another_node_or_key_is_not_touched(tmp_path: Path) -> None:
    filled(tmp_path / "s.db", range(1)).close()
    with pytest.raises(SpoolUnreadable):
        Spool(tmp_path / "s.db", NODE, SigningKey(b"1" * 32))
    with pytest.raises(SpoolUnreadable):
        Spool(tmp_path / "s.db", "node_" + "6" * 32, KEY)


def test_an_unsigned_row_costs_about_what_the_cap_assumes(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", NODE, KEY)
    spool.record(BOOT, [stretch(n, f"lease_{n % 8:032d}") for n in range(20_000)], [], [])
    spool.close()
    size = sum(file.stat().st_size for file in tmp_path.glob("s.db*"))
    assert size / 20_000 <= ROW_BYTES


# --- kill -9 ---------------------------------------------------------------------------------

WRITER = """
import sys
import tempfile
from tests.node_reporter.reports.test_spool import BOOT, KEY, NODE, now, stretch
from node_reporter.reports.spool import Spool
spool = Spool(sys.argv[1], NODE, KEY)
for minute in range(int(sys.argv[2]), 10**9):
    spool.record(BOOT, [stretch(minute)], [stretch(minute + 1)], [])
    if minute % 3 == 0:
        spool.sign(now(10**7), BOOT, clock=None, agent="0.1.0")
    print(minute, flush=True)
"""


def killed_while_writing(path: Path, first: int, after_s: float) -> int:
    """Run a writer, kill it, and give the last minute it said was on disk."""
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    writer = subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3], env=dict(os.environ)
    )
    assert writer.stdout is not None
    said = writer.stdout.readline()
    time.sleep(after_s)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    lines = (said + writer.stdout.read()).split(b"\n")
    writer.stdout.close()
    # What follows the last line end may be half a number.
    return int(lines[-2])


def survive_kills(path: Path, times: int, seed: int = 7) -> None:
    draw = random.Random(seed)
    kept, first = 0, 0
    for _ in range(times):
        kept = killed_while_writing(path, first, draw.random() * 0.05)
        spool = Spool(path, NODE, KEY)
        while spool.sign(now(10**7), BOOT, clock=None, agent="0.1.0") is not None:
            pass
        reports = [report.parse(signed.body) for signed in spool.unacked(10**6, 1 << 40)]
        spool.close()
        minutes = [row.mono_start_us // MINUTE_US for one in reports for row in one.rows]
        # The open row and a row whose line was never read may be there, each once.
        assert minutes == list(range(len(minutes)))
        assert kept < len(minutes)
        prev = genesis()
        for one in reports:
            assert one.prev == prev.hex()
            prev = report.report_hash(report.encode(one))
        first = len(minutes)


def test_a_killed_reporter_keeps_every_committed_row_exactly_once(tmp_path: Path) -> None:
    survive_kills(tmp_path / "s.db", 4)


def run(seed: int) -> None:
    """Ten kills of a writer, at moments that the seed draws."""
    with tempfile.TemporaryDirectory(prefix="tally") as folder:
        survive_kills(Path(folder) / "s.db", 10, seed)


@pytest.mark.long
def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    survive_kills(tmp_path / "s.db", 200)


def test_s_l18_the_spool_and_the_files_beside_it_are_the_nodes_alone(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.db", range(2))
    found = list(tmp_path.iterdir())
    assert len(found) == 3, "with its journal"
    assert not [path.name for path in found if path.stat().st_mode & 0o077]
    spool.close()
