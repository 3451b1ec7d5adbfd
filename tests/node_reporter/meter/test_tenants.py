"""Whose time it is: assignments of the server, files of a scheduler, instances of a board."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_reporter.gpus.seam import Device
from node_reporter.meter.lease_files import LocalLease, read_lease_files
from node_reporter.meter.leases import AssignmentsUnreadable, Window, parse_windows
from node_reporter.meter.tenants import KEPT_US, Tenants

BOARD = "GPU-0"
LEASES = [f"lease_{n:032d}" for n in range(8)]


def instance(name: str, gi: int, profile: str = "3g.40gb") -> Device:
    return Device(id=f"MIG-{name}", parent=BOARD, gi=gi, ci=0, shape=f"mig:{profile}")


def leased(number: int, start: int = 0, until_us: int | None = None, *, from_us: int = 0) -> Window:
    return Window(
        lease_id=LEASES[number],
        device_id=BOARD,
        from_us=from_us,
        until_us=until_us,
        share_ppm=428_571,
        mem_ppm=500_000,
        mode="mig",
        mig_profile="3g.40gb",
        mig_start=start,
    )


def local(device_id: str, number: int, since_us: int = 100) -> LocalLease:
    return LocalLease(
        device_id=device_id,
        lease_id=LEASES[number],
        share_ppm=250_000,
        mode="mps",
        since_us=since_us,
    )


def works_on(tenants: Tenants, *present: Device) -> dict[str, list[str]]:
    return {one.id: [w.lease_id for w in tenants.of(one, present)] for one in present}


A, B, SMALL = instance("a", 1), instance("b", 2), instance("s", 3, "1g.10gb")


def test_two_leases_of_one_profile_have_an_instance_each_and_stay_there() -> None:
    tenants = Tenants([leased(2, 4), leased(1, 0)])
    both = {A.id: [LEASES[1]], B.id: [LEASES[2]], SMALL.id: []}
    assert works_on(tenants, A, B, SMALL) == both
    tenants.assigned = (leased(1, 0, until_us=50), leased(2, 4), leased(3, 0, from_us=60))
    now = works_on(tenants, A, B, SMALL)
    assert now[B.id] == [LEASES[2]], "it was there before"
    assert now[A.id] == [LEASES[1], LEASES[3]], "one after the other"
    assert works_on(Tenants([leased(1), leased(2), leased(3)]), A, B)[A.id] == [LEASES[1]]


def test_an_instance_is_leased_whole_however_small_a_part_of_its_board_it_is() -> None:
    (window,) = Tenants([leased(1)]).of(A, [A])
    assert (window.device_id, window.share_ppm, window.mem_ppm) == (A.id, 1_000_000, 1_000_000)


def test_a_lease_whose_instance_went_is_counted_on_none_of_another_size() -> None:
    tenants = Tenants([leased(1)])
    assert works_on(tenants, A)[A.id] == [LEASES[1]]
    assert works_on(tenants, SMALL) == {SMALL.id: []}
    assert works_on(tenants, B) == {B.id: [LEASES[1]]}, "one of its size takes over"


def test_a_file_says_which_of_two_equal_instances_a_lease_works_on() -> None:
    tenants = Tenants([leased(1), leased(2, 4)])
    tenants.learn([local(B.id, 1)], 0, 100)
    assert works_on(tenants, A, B) == {A.id: [LEASES[2]], B.id: [LEASES[1]]}


def test_a_lease_the_server_has_not_told_of_runs_from_its_file_to_its_end() -> None:
    tenants = Tenants([])
    tenants.learn([local(BOARD, 1, since_us=100)], 7, 500)
    (window,) = tenants.of(Device(id=BOARD), [])
    assert (window.from_us, window.until_us, window.share_ppm) == (107, None, 250_000)
    tenants.learn([], 7, 900)
    assert tenants.of(Device(id=BOARD), [])[0].until_us == 900
    tenants.learn([], 7, 900 + KEPT_US)
    assert tenants.windows() == ()


def test_the_servers_window_and_share_win_over_a_file() -> None:
    told = Window(lease_id=LEASES[1], device_id=BOARD, from_us=10, until_us=20)
    tenants = Tenants([told])
    tenants.learn([local(BOARD, 1)], 0, 100)
    assert tenants.of(Device(id=BOARD), []) == (told,)


@given(
    st.lists(
        st.builds(
            leased,
            st.integers(0, 7),
            st.sampled_from((0, 4)),
            st.one_of(st.none(), st.integers(51, 100)),
            from_us=st.integers(0, 50),
        ),
        max_size=8,
        unique_by=lambda window: window.lease_id,
    ),
    st.dictionaries(st.integers(0, 7), st.sampled_from((A.id, B.id)), max_size=2),
)
def test_a_lease_is_counted_on_one_instance_of_a_board_at_most(
    windows: list[Window], named: dict[int, str]
) -> None:
    tenants = Tenants(windows)
    tenants.learn([local(device, number) for number, device in named.items()], 0, 100)
    found = works_on(tenants, A, B, SMALL)
    counted = [lease for one in (A, B, SMALL) for lease in found[one.id]]
    assigned = [lease for lease in counted if lease in {w.lease_id for w in windows}]
    assert len(assigned) == len(set(assigned))
    assert found == works_on(tenants, A, B, SMALL), "looking changes nothing"


@pytest.mark.parametrize(
    ("line", "share"),
    [
        (LEASES[0], (1_000_000, None)),
        (f"  {LEASES[0]}   mps:25  ", (250_000, "mps")),
        (f"{LEASES[0]} ts:1/3", (333_333, "time_slice")),
        (f"{LEASES[0]} ts:3/1", None),
        (f"{LEASES[0]} ts:0/4", None),
        (f"{LEASES[0]} ts:1", None),
        (f"{LEASES[0]} mps:101", None),
        (f"{LEASES[0]} mps:1/2", None),
        (f"{LEASES[0]} gpu:1", None),
        ("job 4711", None),
        ("", None),
    ],
)
def test_a_line_names_a_lease_and_its_share_or_is_passed_over(
    tmp_path: Path, line: str, share: tuple[int, str | None] | None
) -> None:
    (tmp_path / "GPU-0").write_text(f"# a comment\n{line}\n")
    found = [(one.device_id, one.share_ppm, one.mode) for one in read_lease_files(tmp_path)]
    assert found == ([] if share is None else [("GPU-0", *share)])


def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    assert read_lease_files(tmp_path / "none") == []
    (tmp_path / "GPU-0").mkdir()
    (tmp_path / ".GPU-1.new").write_text(LEASES[0])
    (tmp_path / "GPU-2").write_bytes(b"\xff\xfe" + LEASES[0].encode())
    assert read_lease_files(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_to_does_not_hold_up_the_meter(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "GPU-0")
    (tmp_path / "GPU-1").write_text(LEASES[0])
    reading = threading.Thread(target=read_lease_files, args=(tmp_path,), daemon=True)
    reading.start()
    reading.join(timeout=10)
    assert not reading.is_alive()
    assert [one.device_id for one in read_lease_files(tmp_path)] == ["GPU-1"]


def test_a_profile_that_no_report_may_name_is_no_assignment() -> None:
    """Its rows would be set aside: a server could make a node lose its time."""
    item = {"lease_id": LEASES[0], "device_id": BOARD, "from_us": 1, "mig_profile": "3g_40gb"}
    with pytest.raises(AssignmentsUnreadable):
        parse_windows({"data": [item]})


def test_where_an_instance_is_placed_comes_with_its_assignment() -> None:
    item = {
        "lease_id": LEASES[0],
        "device_id": BOARD,
        "from_us": 1,
        "mode": "mig",
        "mig_profile": "3g.40gb",
        "mig_start": 4,
    }
    (window,) = parse_windows({"data": [item]})
    assert (window.mig_profile, window.mig_start) == ("3g.40gb", 4)
