"""Boards cut into instances while they are metered: what comes, what goes, what is told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import MINUTE_US
from node_reporter.gpus.seam import Device, DeviceLost, MonitorBlind, Reading, counted
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.machine import inventory
from tests.examples import examples
from tests.node_reporter.reporter_scene import TICK_US, Scene


class Cut(SimulatedGpus):
    """A board that is what the test says."""

    now: tuple[Device, ...] | None = None
    fails: Exception | None = None

    def look(self, board_id: str) -> Sequence[Device]:
        if self.fails is not None:
            raise self.fails
        return self.now or super().look(board_id)

    def read(self, device_id: str) -> Reading:
        return Reading(energy_mj=0) if self.now else super().read(device_id)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(tmp_path)
    found.gpus.__class__ = Cut
    return found


def board(scene: Scene) -> Cut:
    assert isinstance(scene.gpus, Cut)
    return scene.gpus


def instance(scene: Scene, name: str, gi: int = 1) -> Device:
    """Three sevenths of the board."""
    return Device(
        id=f"MIG-{name}",
        name="3g.71gb",
        parent=scene.gpus.inventory()[0].id,
        gi=gi,
        ci=0,
        shape="mig:3g.71gb",
        share_ppm=428_571,
        mem_ppm=500_000,
    )


def told(scene: Scene) -> dict[str, tuple[int, int, int]]:
    """(available, unknown, elapsed) microseconds of every device, from the server's copy."""
    scene.finish()
    found: dict[str, tuple[int, int, int]] = {}
    for device, _, row in scene.server.rows():
        a, u, whole = found.get(device, (0, 0, 0))
        found[device] = (a + row.available_us, u + row.unknown_us, whole + row.len_us)
    return found


def events(scene: Scene) -> list[tuple[str, str | None, object]]:
    """(type, device, class) of every event that is about a device."""
    return [
        (event.type, one.devices[event.device].id, event.data.get("class"))
        for one in scene.server.reports()
        for event in one.events
        if event.device is not None
    ]


def test_a_board_that_is_cut_ends_in_one_unknown_step_and_its_instances_begin(scene: Scene) -> None:
    scene.run(1)
    whole, first = scene.gpus.inventory()[0].id, instance(scene, "a")
    board(scene).now = (first, instance(scene, "b", 2))
    scene.run(1)
    board(scene).now = (first,)
    scene.run(1)
    found = told(scene)
    assert found[whole] == (MINUTE_US, TICK_US, MINUTE_US + TICK_US)
    assert found["MIG-b"] == (MINUTE_US - TICK_US, TICK_US, MINUTE_US)
    assert ("device.fault", "MIG-b", "reshaped") in events(scene)
    assert ("device.reshaped", "MIG-a", None) in events(scene)


def test_an_instance_made_anew_in_the_same_place_is_another_device(scene: Scene) -> None:
    board(scene).now = (instance(scene, "old"),)
    scene.run(1)
    board(scene).now = (instance(scene, "new"),)
    scene.run(1)
    found = told(scene)
    assert found["MIG-old"][1] == TICK_US, "the step in which it went"
    assert found["MIG-new"][0] > 0
    reasons = [row.reason for device, _, row in scene.server.rows() if device == "MIG-old"]
    assert reasons[-1] == "reshape"


def test_a_board_that_is_lost_takes_its_instances_along(scene: Scene) -> None:
    board(scene).now = (instance(scene, "a"), instance(scene, "b", 2))
    scene.run(1)
    board(scene).fails = DeviceLost(15, "lost")
    scene.run(1)
    board(scene).fails = None
    scene.run(1)
    scene.finish()
    for name in ("MIG-a", "MIG-b"):
        gone = sum(row.unavailable_us for device, _, row in scene.server.rows() if device == name)
        assert gone == MINUTE_US + TICK_US, "both edges belong to the outage"


def test_an_instance_is_told_as_a_part_of_its_board_and_listed_as_no_device(scene: Scene) -> None:
    whole, part = scene.gpus.inventory()[0], instance(scene, "a")
    assert [one["device_id"] for one in inventory.specs([whole, part], "sim")["devices"]] == [
        whole.id
    ]
    assert counted([whole, part]) == (part,)
    assert (part.reported().parent, part.reported().gi) == (whole.id, 1)


LAYOUTS: tuple[tuple[tuple[str, int], ...], ...] = (
    (),
    (("a", 1),),
    (("b", 2),),
    (("a", 1), ("b", 2)),
    (("c", 1), ("b", 2)),
)
FAILURES = (None, None, None, DeviceLost(15, "lost"), MonitorBlind(999, "unknown"))


@examples(60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(LAYOUTS), st.sampled_from(FAILURES), st.integers(1, 9), st.booleans()
        ),
        min_size=1,
        max_size=8,
    )
)
def test_time_is_conserved_however_a_board_is_cut_lost_and_restarted(
    turns: list[tuple[tuple[tuple[str, int], ...], Exception | None, int, bool]],
) -> None:
    """Rows of a device never overlap, and there is no moment without a device to count it on, but
    for what passed while no reporter ran and the board was cut otherwise.
    """
    with TemporaryDirectory() as folder:
        found = Scene(Path(folder))
        found.gpus.__class__ = Cut
        began_us = found.clock.now().mono_us
        for layout, fails, polls, crashes in turns:
            board(found).now = tuple(instance(found, name, gi) for name, gi in layout) or None
            board(found).fails = fails
            for _ in range(polls):
                found.clock.advance(TICK_US)
                found.reporter.poll()
                found.reporter.turn()
            if crashes:
                found.crash()
                found.gpus.__class__ = Cut
        board(found).fails = None
        found.finish()
        ended_us = found.clock.now().mono_us
        found.reporter.spool.close()
    spans: dict[str, list[tuple[int, int]]] = {}
    for device, _, row in found.server.rows():
        assert row.available_us + row.unavailable_us + row.unknown_us == row.len_us
        spans.setdefault(device, []).append((row.mono_start_us, row.mono_end_us))
    for own in spans.values():
        assert all(a[1] <= b[0] for a, b in pairwise(sorted(own)))
    covered_us = began_us
    for start_us, end_us in sorted(span for own in spans.values() for span in own):
        ran_on = not any(crashes for *_, crashes in turns)
        assert start_us <= covered_us or not ran_on, "somebody's time was lost"
        covered_us = max(covered_us, end_us)
    assert covered_us == ended_us
