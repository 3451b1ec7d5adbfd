"""Measured duty cycles go through the whole agent and the whole server, and no microsecond is lost.

The expected totals are computed here from the file alone, by other code than the replay's own.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import pytest

from api.replay import gentd26 as replay_measured
from api.replay.openb import PRICES
from api.replay.trace_gentd26 import Pod, Sample, counted, read_pods
from api.replay.trace_openb import TraceUnreadable
from tests.scenes.shell import tallystick

DUTY = Path(__file__).parents[2] / "traces" / "duty.csv"
PUBLISHED = Path(__file__).parents[4] / "shared" / "traces" / "gentd26"
HEAD = "value,timestamp_anon,container_ip\n"


def expected(file: TextIO) -> dict[str, int]:
    """Time and busy time of every pod's steps of at most 142.5 seconds, straight from the rows."""
    times: dict[str, dict[int, str]] = defaultdict(dict)
    for row in csv.DictReader(file):
        times[row["container_ip"]][int(float(row["timestamp_anon"]))] = row["value"]
    found = {"available": 0, "busy": 0, "elapsed": 0, "charge": 0}
    found["samples"] = sum(map(len, times.values()))
    for of_pod in times.values():
        at = sorted(of_pod)
        available = 0
        for before, now in pairwise(at):
            if (now - before) * 2 <= 57 * 5:
                available += (now - before) * 1_000_000
                found["busy"] += (now - before) * int(Fraction(of_pod[now]) * 10_000)
        found["available"] += available
        found["elapsed"] += (at[-1] - at[0]) * 1_000_000
        found["charge"] += available * PRICES[replay_measured.MODEL] // 3_600_000_000
    return found


def agrees(done: dict[str, Any], wanted: dict[str, int]) -> None:
    assert done["equal"] is True
    for name in ("by_file", "by_reports"):
        assert int(done[f"elapsed_us_{name}"]) == wanted["elapsed"]
        assert int(done[f"available_us_{name}"]) == wanted["available"]
        assert int(done[f"unknown_us_{name}"]) == wanted["elapsed"] - wanted["available"]
        assert int(done[f"busy_us_{name}"]) == wanted["busy"]
        assert int(done[f"samples_{name}"]) == wanted["samples"]
    assert int(done["gpu_microseconds_metered"]) == wanted["available"]
    assert int(done["charged_units"]) == wanted["charge"]
    assert (done["reports_flagged"], done["double_bookings"]) == (0, 0)
    assert done["books_balanced"] is True
    shared = int(done["providers_units"]) + int(done["platform_units"])
    assert int(done["charged_units"]) == shared


def test_a_small_trace_of_duty_cycles_is_metered_and_billed_to_the_microsecond(
    database: str,
) -> None:
    with DUTY.open(encoding="utf-8") as file:
        wanted = expected(file)
    assert 0 < wanted["available"] < wanted["elapsed"], "it has steps that nobody saw"
    done = replay_measured.replay_gentd26(database, read_pods(DUTY))
    agrees(done, wanted)
    assert (done["pods"], done["leases_settled"]) == (5, 5)
    assert done["reports"] > 10


def test_samples_of_another_file_do_not_agree() -> None:
    pods = read_pods(DUTY)
    first = pods[0]
    busier = replace(first, samples=(*first.samples[:-1], replace(first.samples[-1], busy_ppm=1)))
    assert counted([busier, *pods[1:]], 1).busy_us != counted(pods, 1).busy_us


def test_two_samples_are_an_available_step_up_to_two_and_a_half_ticks() -> None:
    def steps(*at_s: int) -> tuple[int, int, int]:
        found = counted([Pod("p", tuple(Sample(s, 500_000) for s in at_s))], 3_600_000_000)
        return found.available_us, found.unknown_us, found.busy_us

    assert steps(0, 142) == (142_000_000, 0, 71_000_000)
    assert steps(0, 143) == (0, 143_000_000, 0)
    assert steps(0, 57, 1_000) == (57_000_000, 943_000_000, 28_500_000)


def test_a_trace_is_read_as_csv_and_out_of_its_archive(tmp_path: Path) -> None:
    archive = tmp_path / "duty.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        made.add(DUTY, "./duty.csv")
    assert read_pods(archive) == read_pods(DUTY)
    with tarfile.open(archive, "w:gz") as made:
        made.addfile(tarfile.TarInfo("./empty.txt"), io.BytesIO())
    with pytest.raises(TraceUnreadable, match="not exactly one CSV"):
        read_pods(archive)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no column"),
        (HEAD, "no samples"),
        (HEAD + "much,0.0,a\n", "2: value must be a number"),
        (HEAD + "nan,0.0,a\n", "2: value must be a number"),
        (HEAD + "100.1,0.0,a\n", "2: value must be 0 to 100"),
        (HEAD + "1.0,0.5,a\n", "2: timestamp_anon must be whole seconds"),
        (HEAD + "1.0,0.0\n", "2: not 3 columns"),
        (HEAD + "1.0,0.0,a\n", "pod 'a' needs two samples"),
        (HEAD + "1.0,0.0,a\n1.0,0.0,a\n", "pod 'a' needs two samples"),
    ],
)
def test_an_unreadable_trace_names_file_line_and_rule(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "duty.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceUnreadable, match=told):
        read_pods(path)


def test_each_format_says_which_file_it_needs() -> None:
    ran = tallystick("trace", "replay", "--format", "gentd26", "--nodes", str(DUTY))
    assert (ran.code, ran.out) == (2, "")
    assert "--duty" in ran.err
    assert tallystick("trace", "replay", "--duty", str(DUTY)).code == 2


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_the_published_duty_cycles_of_143_pods_are_billed_to_the_microsecond(database: str) -> None:
    """Alibaba clusterdata, `cluster-trace-v2026-GenAI`: 157,417 samples."""
    archive = PUBLISHED / "pod_gpu_duty_cycle_anon.tar.gz"
    if not archive.exists():
        pytest.skip(
            "Alibaba's trace is data of others and not part of this repository;"
            f" with it at {archive} it is replayed, and tests/traces has a small one of our own"
        )
    with tarfile.open(archive, "r:gz") as made:
        inside = made.extractfile("pod_gpu_duty_cycle_anon.csv")
        assert inside is not None
        wanted = expected(io.TextIOWrapper(inside, encoding="utf-8"))
    done = replay_measured.replay_gentd26(database, read_pods(archive))
    agrees(done, wanted)
    assert (wanted["samples"], done["pods"], done["leases_settled"]) == (157_417, 143, 143)
