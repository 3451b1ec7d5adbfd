"""The whole reporter on a stepped clock: time goes from polls to the server exactly once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import MINUTE_US
from node_reporter.clock import SteppedClock
from node_reporter.gpus.seam import DeviceLost, Health, MonitorBlind, Reading
from node_reporter.gpus.simulated import Outage, SimulatedGpus
from node_reporter.machine import inventory
from node_reporter.reports.delivery import Backoff, Stopped
from node_reporter.reports.spool import HistoryDiffers
from tests.examples import examples
from tests.node_reporter.reporter_scene import TICK_US, WALL_US, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_healthy_hour_arrives_as_available_time(scene: Scene) -> None:
    scene.run(60)
    scene.reporter.stop()
    assert scene.device_us() == (60 * MINUTE_US, 0, 0)
    assert 59 <= scene.server.seq <= 63
    assert scene.server.alerts == []


def test_one_lost_device_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    start = 10**9
    outage = Outage(index=1, from_us=start + 5 * MINUTE_US, until_us=start + 7 * MINUTE_US)
    scene = Scene(tmp_path, count=8, outages=(outage,))
    scene.run(10)
    scene.reporter.stop()
    assert scene.device_us(1) == (8 * MINUTE_US - TICK_US, 2 * MINUTE_US + TICK_US, 0)
    for neighbour in (0, 2, 7):
        assert scene.device_us(neighbour) == (10 * MINUTE_US, 0, 0)
    events = [event for one in scene.server.reports() for event in one.events]
    kinds = [event.type for event in events]
    assert [kind for kind in kinds if kind in ("device.fault", "device.recovered")] == [
        "device.fault",
        "device.recovered",
    ]


def test_a_blind_device_has_unknown_time_and_after_a_minute_asks_for_a_restart(
    tmp_path: Path,
) -> None:
    start = 10**9
    outage = Outage(
        index=0, from_us=start + MINUTE_US, until_us=10**15, health=Health.BLIND, code=999
    )
    scene = Scene(tmp_path, outages=(outage,))
    scene.run(1)
    assert not scene.reporter.must_restart
    scene.run(1)
    assert scene.reporter.must_restart
    scene.reporter.stop()
    available, unavailable, unknown = scene.device_us()
    assert (available, unavailable) == (MINUTE_US - TICK_US, 0)
    assert unknown == MINUTE_US + TICK_US


def test_one_blind_device_of_several_is_no_reason_to_restart(tmp_path: Path) -> None:
    outage = Outage(index=0, from_us=0, until_us=10**15, health=Health.BLIND, code=999)
    scene = Scene(tmp_path, count=2, outages=(outage,))
    scene.run(5)
    assert not scene.reporter.must_restart


def test_a_device_whose_thread_does_not_come_back_is_booked_as_unknown(scene: Scene) -> None:
    scene.run(1)
    scene.clock.advance(3 * TICK_US)
    scene.reporter.mark_silent()
    scene.reporter.flush()
    assert scene.device_us() == (MINUTE_US, 0, 3 * TICK_US)


def test_the_time_of_a_lease_opened_between_two_reports_is_the_leases(scene: Scene) -> None:
    scene.run(2)
    scene.clock.advance(TICK_US)
    opened_us = scene.clock.now().wall_us
    lease_id = scene.lease(1, 0, opened_us, opened_us + 3 * MINUTE_US)
    scene.reporter.poll()
    scene.run(6)
    scene.reporter.stop()
    leased = [row for _, lease, row in scene.server.rows() if lease == lease_id]
    assert sum(row.available_us for row in leased) == 3 * MINUTE_US
    assert leased[0].wall_start_us == opened_us
    assert leased[-1].reason == "lease"


def test_leases_are_remembered_over_a_restart_without_the_server(scene: Scene) -> None:
    lease_id = scene.lease(1, 0, scene.clock.now().wall_us)
    scene.run(2)
    scene.wire.down = True
    scene.crash()
    scene.run(5)
    scene.finish()
    assert {lease for _, lease, _ in scene.server.rows()} == {lease_id}


def test_a_crash_leaves_an_unknown_gap_and_no_hole(scene: Scene) -> None:
    scene.run(5)
    begin_us = 10**9
    scene.clock.advance(2 * MINUTE_US)
    scene.crash()
    scene.run(3)
    scene.finish()
    assert sum(scene.device_us()) == scene.clock.now().mono_us - begin_us
    gaps = [row for _, _, row in scene.server.rows() if row.reason == "gap"]
    assert len(gaps) == 1
    assert gaps[0].unknown_us == gaps[0].len_us >= 2 * MINUTE_US
    assert len({row.driver_epoch for _, _, row in scene.server.rows()}) == 2


def test_hours_without_the_server_are_kept_unsigned_and_caught_up(scene: Scene) -> None:
    scene.wire.down = True
    scene.run(60 * 3)
    assert scene.server.seq == 0
    assert scene.reporter.spool.seq == 0, "nothing is signed while nobody answers"
    scene.finish()
    assert sum(scene.device_us()) == scene.clock.now().mono_us - 10**9


def test_near_the_cap_reports_get_longer_and_nothing_is_dropped(scene: Scene) -> None:
    scene.wire.down = True
    scene.reporter.spool.cap_bytes = 2_000
    scene.run(60 * 4)
    assert scene.reporter.spool.unsigned_count() <= 22
    assert scene.reporter.spool.fullness_ppm() <= 1_100_000
    scene.finish()
    assert scene.device_us()[0] >= 240 * MINUTE_US
    assert sum(scene.device_us()) == scene.clock.now().mono_us - 10**9


def test_a_restored_snapshot_is_not_fraud(scene: Scene) -> None:
    scene.run(5)
    scene.reporter.spool.close()
    shutil.copy(scene.folder / "spool.db", scene.folder / "snapshot.db")
    scene.start()
    scene.run(5)
    scene.reporter.spool.close()
    for file in scene.folder.glob("spool.db*"):
        file.unlink()
    shutil.copy(scene.folder / "snapshot.db", scene.folder / "spool.db")
    later = scene.server.seq
    scene.start()
    scene.run(5)
    scene.finish()
    assert scene.server.alerts == []
    assert scene.server.seq > later
    started = [e for one in scene.server.reports() for e in one.events if e.type == "agent.started"]
    assert started[-1].data["adopted_seq"] == later
    assert any("going on there" in line for line in scene.said)


def test_a_server_restored_from_an_older_backup_gets_its_reports_again(scene: Scene) -> None:
    scene.run(10)
    before = list(scene.server.bodies)
    del scene.server.bodies[4:]
    scene.run(15)
    scene.finish()
    assert scene.server.bodies[: len(before)] == before
    assert scene.server.alerts == []


def take_turns(*scenes: Scene) -> None:
    for _ in range(10):
        for scene in scenes:
            scene.run(2)


def test_a_disk_cloned_to_two_nodes_ends_in_equivocation_and_stops(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = Scene(tmp_path / "first")
    first.run(3)
    first.reporter.spool.close()
    shutil.copy(first.folder / "spool.db", tmp_path / "second" / "spool.db")
    first.start()
    second = Scene(tmp_path / "second", shared=first.wire)
    second.clock.advance(300_000_000)
    second.run(3)
    first.run(1)
    with pytest.raises(Stopped):
        take_turns(first, second)
    assert first.server.alerts == ["equivocation"]


@pytest.mark.parametrize(
    ("status", "code", "times"),
    [(401, "bad_signature", 3), (400, "malformed", 1), (422, "equivocation", 1), (409, "fork", 3)],
)
def test_a_refusal_that_repetition_cannot_heal_stops_the_reporter(
    scene: Scene, status: int, code: str, times: int
) -> None:
    scene.run(2)
    held = scene.server.seq
    scene.server.refuse_posts[:] = [(status, code)] * times
    with pytest.raises(Stopped):
        scene.run(20)
    assert scene.server.refuse_posts == []
    assert scene.server.seq == held
    assert scene.reporter.spool.unacked(64, 1 << 20)[0].seq == held + 1


@pytest.mark.parametrize("times", [1, 2])
def test_a_signature_refused_once_or_twice_is_tried_again(scene: Scene, times: int) -> None:
    scene.run(2)
    scene.server.refuse_posts[:] = [(401, "bad_signature")] * times
    scene.run(20)
    scene.finish()
    assert sum(scene.device_us()) == scene.clock.now().mono_us - 10**9


def test_a_process_of_the_server_has_time_to_learn_of_a_key_before_the_reporter_gives_up(
    scene: Scene,
) -> None:
    """Other processes learn of a key a little later than the one that let it in."""
    scene.run(2)
    scene.server.refuse_posts[:] = [(401, "bad_signature")] * 2
    scene.run(20)
    waits = [int(line.split()[-2]) for line in scene.said if "(401" in line]
    assert len(waits) == 2
    assert min(waits) >= 5


def test_a_server_that_stays_busy_is_asked_ever_more_rarely(scene: Scene) -> None:
    scene.run(2)
    scene.draw = lambda low, high: max(low, high)
    scene.crash()
    scene.server.refuse_posts[:] = [(500, "internal")] * 1_000
    scene.run(60)
    assert 1_000 - len(scene.server.refuse_posts) <= 20


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_a_refusal_that_time_can_heal_keeps_metering_and_the_spool(
    scene: Scene, status: int
) -> None:
    scene.server.refuse_next[:] = [(status, "for_now")] * 40
    scene.run(30)
    scene.finish()
    assert sum(scene.device_us()) == scene.clock.now().mono_us - 10**9
    assert scene.server.alerts == []


def test_a_batch_that_is_too_large_is_halved_until_it_is_taken(scene: Scene) -> None:
    scene.server.batch_max = 3
    scene.wire.faults = ["lost_request"] * 12
    scene.run(30)
    scene.finish()
    assert sum(scene.device_us()) == scene.clock.now().mono_us - 10**9


def test_the_clock_offset_is_measured_and_reported(scene: Scene) -> None:
    scene.server.clock = SteppedClock(wall_us=WALL_US + 7_000_000)
    scene.run(2)
    offsets = {one.clock_offset_us for one in scene.server.reports()}
    assert max(offset for offset in offsets if offset is not None) <= 7_000_000
    assert None not in offsets


def test_suspended_time_is_reported_and_not_billed(scene: Scene) -> None:
    scene.run(1)
    scene.clock.advance(TICK_US, suspended_us=3_600_000_000)
    scene.reporter.poll()
    scene.run(1)
    scene.reporter.stop()
    rows = [row for _, _, row in scene.server.rows()]
    assert sum(row.suspended_us for row in rows) == 3_600_000_000
    assert sum(row.len_us for row in rows) == 2 * MINUTE_US + TICK_US


def test_two_runs_on_one_stepped_clock_give_the_same_bytes(tmp_path: Path) -> None:
    bodies = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        scene = Scene(tmp_path / name, count=2)
        scene.run(10)
        bodies.append(scene.server.bodies)
    assert bodies[0] == bodies[1]


def test_waits_grow_with_failures_stay_below_five_minutes_and_heed_the_server() -> None:
    longest = Backoff(draw=lambda low, high: max(low, high))
    assert [longest.wait_us(n, None) for n in (1, 2, 3)] == [1_000_000, 2_000_000, 4_000_000]
    assert longest.wait_us(60, None) == 300_000_000
    assert longest.wait_us(1, 30) == 31_000_000
    assert longest.wait_us(1, 10**9) == 300_000_000


class Broken(SimulatedGpus):
    """A backend whose reads end as the test says."""

    answer: Exception | Reading = Reading()

    def read(self, device_id: str) -> Reading:
        if isinstance(self.answer, Exception):
            raise self.answer
        return super().read(device_id)


@pytest.mark.parametrize(
    ("error", "restart"),
    [
        (MonitorBlind(18, "mismatch", restart=True), True),
        (MonitorBlind(999, "unknown"), False),
        (DeviceLost(15, "lost"), False),
    ],
)
def test_only_a_dead_driver_asks_for_a_restart_at_once(
    scene: Scene, error: Exception, *, restart: bool
) -> None:
    scene.gpus.__class__ = Broken
    assert isinstance(scene.gpus, Broken)
    scene.gpus.answer = error
    scene.clock.advance(TICK_US)
    scene.reporter.poll()
    assert scene.reporter.must_restart is restart


ways = st.lists(
    st.sampled_from(
        [
            *("minute", "minute", "minute", "crash", "stop", "down", "up"),
            *("twice", "old_again", "lost_request", "lost_answer", "busy", "reordered", "tail"),
            *("server restored", "too large"),
        ]
    ),
    min_size=3,
    max_size=25,
)


@examples(40)
@given(ways)
def test_delivery_is_exactly_once_over_any_loss_repetition_and_crash(what: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), count=2)
        scene.reporter.flush()
        for one in what:
            match one:
                case "minute":
                    scene.run(1)
                case "crash":
                    scene.crash()
                case "stop":
                    scene.reporter.stop()
                    scene.crash()
                case "down" | "up":
                    scene.wire.down = one == "down"
                case "server restored":
                    del scene.server.bodies[-2:]
                case "too large":
                    scene.server.batch_max = max(1, scene.server.batch_max // 8)
                case _:
                    scene.wire.faults.append(one)
        scene.finish()
        elapsed_us = scene.clock.now().mono_us - 10**9
        assert [sum(scene.device_us(device)) for device in (0, 1)] == [elapsed_us, elapsed_us]
        assert scene.server.alerts == []
        scene.reporter.close()


def test_the_inventory_is_told_once_and_again_when_it_changes(scene: Scene) -> None:
    scene.run(3)
    scene.crash()
    scene.run(3)
    assert [len(specs["devices"]) for specs in scene.server.specs] == [1]
    scene.count = 2
    scene.crash()
    scene.run(3)
    assert [len(specs["devices"]) for specs in scene.server.specs] == [1, 2]
    assert scene.server.specs[0]["host"]["driver"] == "simulated"


def test_the_same_inventory_is_told_again_every_five_minutes(scene: Scene) -> None:
    """R-19: what a node says of itself counts for fifteen minutes on the server."""
    scene.run(16)
    assert [len(specs["devices"]) for specs in scene.server.specs] == [1, 1, 1, 1]
    assert scene.server.specs[0] == scene.server.specs[-1]


def test_simulated_devices_are_of_any_maker_and_kind_and_seats_name_their_licence() -> None:
    clock = SteppedClock(wall_us=WALL_US, mono_us=10**9)
    ipus = inventory.specs(
        SimulatedGpus(clock, model="Bow IPU", maker="graphcore", kind="ipu").inventory(), "sim"
    )
    (ipu,) = ipus["devices"]
    assert (ipu["vendor"], ipu["kind"], ipu["model"]) == ("graphcore", "ipu", "Bow IPU")
    seats = SimulatedGpus(clock, count=2, model="ThirdAI Bolt", maker="thirdai", licence="lic_1")
    told = inventory.specs(seats.inventory(), "sim")["devices"]
    assert [(one["device_id"], one["kind"], one["memory_mib"]) for one in told] == [
        ("lic_1:1", "seat", 0),
        ("lic_1:2", "seat", 0),
    ]
    (plain,) = inventory.specs(SimulatedGpus(clock).inventory(), "sim")["devices"]
    assert "kind" not in plain


def test_a_wall_clock_set_back_a_day_loses_no_time_and_ends_its_row(scene: Scene) -> None:
    scene.run(1)
    scene.clock.advance(TICK_US, wall_step_us=-86_400_000_000)
    scene.reporter.poll()
    scene.run(1)
    scene.reporter.stop()
    rows = [row for _, _, row in scene.server.rows()]
    assert scene.device_us() == (2 * MINUTE_US + TICK_US, 0, 0)
    assert min(row.wall_slew_us for row in rows) == -86_400_000_000
    assert sum(row.wall_slew_us != 0 for row in rows) == 1


def test_a_history_that_differs_names_the_report(scene: Scene) -> None:
    scene.run(2)
    with pytest.raises(HistoryDiffers, match="report 1 of the server is not ours"):
        scene.reporter.spool.reconcile(1, bytes(32), WALL_US)


def test_time_is_not_signed_as_idle_because_the_next_try_was_drawn_late(tmp_path: Path) -> None:
    """The server was there again for a minute and was not asked before the rows were closed: the
    waiting time between two tries may be longer than rows stay open.
    """
    scene = Scene(tmp_path, draw=lambda _low, high: high, tick_us=1_000_000)
    scene.run(2)
    scene.wire.faults = ["lost_request"]

    def down_from_then_on() -> None:
        scene.wire.down = scene.wire.down or not scene.wire.faults

    scene.run(1, each=down_from_then_on)
    assert scene.wire.down
    opened_us = scene.true_clock.now().wall_us
    lease = scene.lease(1, 0, opened_us)
    scene.run(3)
    scene.wire.down = False
    scene.run(5)
    scene.finish()
    end_us = scene.true_clock.now().wall_us
    assert sum(scene.credited_us(lease, opened_us, end_us).values()) >= 8 * MINUTE_US


def test_time_is_not_signed_as_idle_while_the_server_does_not_tell_its_leases(scene: Scene) -> None:
    """Seeds 7 and 11 of the simulation: the answer to one look at the assignments was lost, the row
    was closed all the same, and the lease that had begun in it was never paid for that minute.
    """
    scene.run(2)
    opened_us = scene.true_clock.now().wall_us
    lease = scene.lease(1, 0, opened_us)
    scene.wire.down = True
    scene.run(2)
    scene.wire.down = False
    scene.run(3)
    scene.finish()
    end_us = scene.true_clock.now().wall_us
    assert sum(scene.credited_us(lease, opened_us, end_us).values()) >= 5 * MINUTE_US


def test_leases_that_were_not_told_are_asked_for_before_the_next_cut(tmp_path: Path) -> None:
    """Seed 1793 of the simulation: one answer was lost, nothing was asked until the next cut was
    due, ten minutes apart as with a full spool; that answer was lost, too, and the rows were closed
    as nobody's.
    """
    scene = Scene(tmp_path, interval_us=10 * MINUTE_US)
    scene.run(2)
    opened_us = scene.true_clock.now().wall_us
    lease = scene.lease(1, 0, opened_us)
    for _ in range(2):
        scene.wire.down = True
        scene.reporter.flush()
        scene.wire.down = False
        scene.run(4)
    scene.finish()
    end_us = scene.true_clock.now().wall_us
    assert sum(scene.credited_us(lease, opened_us, end_us).values()) >= 8 * MINUTE_US


def test_a_node_whose_clock_is_behind_learns_the_servers_time_before_it_closes_its_first_rows(
    tmp_path: Path,
) -> None:
    """Seed 185 of the simulation: leases were told before the time was, and half a minute that was
    placed by the node's own clock lay before the lease that it was of.
    """
    scene = Scene(tmp_path)
    scene.true_clock.pass_time(5 * MINUTE_US)
    opened_us = scene.true_clock.now().wall_us
    lease = scene.lease(1, 0, opened_us)
    scene.run(3)
    scene.finish()
    end_us = scene.true_clock.now().wall_us
    assert sum(scene.credited_us(lease, opened_us, end_us).values()) == end_us - opened_us


def test_time_that_was_not_told_before_the_last_chance_is_asked_for_then(tmp_path: Path) -> None:
    """The waiting time after a failure may be longer than rows stay open."""
    scene = Scene(tmp_path, draw=lambda _low, high: high)
    scene.true_clock.pass_time(5 * MINUTE_US)
    opened_us = scene.true_clock.now().wall_us
    lease = scene.lease(1, 0, opened_us)
    scene.wire.down = True
    scene.run(3)
    for _ in range(5):
        scene.clock.advance(TICK_US)
        scene.reporter.poll()
        scene.reporter.turn()
    scene.wire.down = False
    assert scene.reporter.delivery.due_us > scene.clock.now().mono_us + MINUTE_US
    scene.finish()
    end_us = scene.true_clock.now().wall_us
    assert sum(scene.credited_us(lease, opened_us, end_us).values()) == end_us - opened_us


def test_what_a_node_measured_is_on_disk_when_the_server_refuses_it_for_good(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handshake that stops the reporter came before its rows were closed, to learn the time."""

    def refused() -> None:
        raise Stopped("the server refuses this node's new key")

    monkeypatch.setattr(scene.reporter.delivery, "handshake", refused)
    for _ in range(3):
        scene.clock.advance(TICK_US)
        scene.reporter.poll()
    with pytest.raises(Stopped):
        scene.reporter.stop()
    scene.crash()
    scene.finish()
    assert sum(row.len_us for _, _, row in scene.server.rows() if row.reason == "shutdown") == (
        3 * TICK_US
    )
