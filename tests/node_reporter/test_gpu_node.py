"""The run on a real GPU, as far as a machine without one goes: a scripted driver, a known load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.node import gpu_load, gpu_node
from benchmarks.node.gpu_load import Kernel
from benchmarks.node.gpu_node import Metered, Sample, Tools, judged, sample_of
from tests.node_reporter import simulated_load
from tests.node_reporter.conftest import FakeMachine

SECOND_US = 1_000_000
GOOD = Metered(
    start_us=0,
    end_us=10 * SECOND_US,
    available_us=10 * SECOND_US,
    unavailable_us=0,
    unknown_us=0,
    busy_us=6 * SECOND_US,
    energy_mj=3_000_000,
    energy_gaps=0,
)
KERNELS = [Kernel(n * SECOND_US, n * SECOND_US + 600_000, 600_000) for n in range(10)]
SAMPLES = [Sample(n * 100_000, "GPU-0", 300_000, 60) for n in range(101)]


@pytest.mark.slow(
    "tests/node_reporter/programs/test_program.py"
    "::test_a_driver_that_goes_away_ends_the_process_with_75_and_nothing_lost",
    "::test_a_meter_that_is_wrong_is_told",
)
def test_the_whole_run_agrees_with_a_load_that_is_known(
    machine: Callable[[int], FakeMachine],
) -> None:
    found = machine(1)
    found.set(gpu__0__util="0", gpu__0__energy_rate_mw=str(simulated_load.POWER_MW[False]))
    program = [sys.executable, "-m", "tests.node_reporter.simulated_load"]
    tools = Tools(
        load=[*program, "load", str(found.script)],
        sampler=[*program, "sample", str(found.script)],
        environment=found.environment(),
        tick_ms=100,
        settle_s=0.5,
    )
    result = gpu_node.run(tools)
    assert result["gpu"] == simulated_load.UUID
    assert result["time"]["booked_us"] == result["time"]["ran_us"]
    assert result["busy"]["ok"], result["busy"]
    assert result["energy"]["ok"], result["energy"]
    assert result["calls"]["a_forked_child_sees"] == "nothing"
    assert 0 < result["calls"]["read_us"]["p50"] <= result["calls"]["read_us"]["p99"]
    assert result["doctor"][0]["values"]["energy_mj"] == "ok"


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("busy", {"busy_us": 3 * SECOND_US}),
        ("busy", {"busy_us": None}),
        ("energy", {"energy_mj": 6_000_000}),
        ("energy", {"energy_mj": None}),
        ("time", {"available_us": 9 * SECOND_US}),
        ("time", {"available_us": 9 * SECOND_US, "unknown_us": SECOND_US}),
    ],
)
def test_a_meter_that_is_wrong_is_told(part: str, wrong: dict[str, int | None]) -> None:
    good = judged(GOOD, SAMPLES, KERNELS)
    assert [good[name]["ok"] for name in ("time", "busy", "energy")] == [True] * 3
    assert not judged(replace(GOOD, **wrong), SAMPLES, KERNELS)[part]["ok"]  # type: ignore[arg-type]


def test_lines_of_nvidia_smi_are_read_and_those_without_a_power_left_out() -> None:
    assert sample_of("GPU-0, 123.45, 56\n", 7) == Sample(7, "GPU-0", 123_450, 56)
    assert sample_of("GPU-0, 70.00, [N/A]", 7) == Sample(7, "GPU-0", 70_000, None)
    for line in ("GPU-0, [N/A], 5", "", "no devices were found", "GPU-0, 1, 2, 3"):
        assert sample_of(line, 7) is None


@given(st.integers(0, 10**6), st.lists(st.integers(1, 900_000), min_size=3, max_size=30))
def test_energy_of_a_constant_power_is_power_times_time(power: int, gaps: list[int]) -> None:
    at, samples = 0, []
    for gap in gaps:
        samples.append(Sample(at, "GPU-0", power, None))
        at += gap
    assert gpu_node.energy_between(samples, 0, at) == power * at // SECOND_US


def test_samples_that_do_not_cover_the_time_measure_nothing() -> None:
    assert gpu_node.energy_between(SAMPLES, 0, 12 * SECOND_US) is None
    assert gpu_node.energy_between(SAMPLES[:1], 0, SECOND_US) is None


def test_of_a_kernel_at_the_edge_its_part_counts() -> None:
    assert gpu_node.busy_between(KERNELS, 300_000, 1_300_000) == 600_000


def test_a_machine_without_a_gpu_is_told_what_it_takes() -> None:
    if gpu_node.missing() is None:
        pytest.skip("this machine has a GPU")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.node.gpu_node"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "this needs a machine with an NVIDIA GPU" in done.stderr


def test_the_load_says_that_there_is_no_cuda(capsys: pytest.CaptureFixture[str]) -> None:
    if gpu_node.missing() is None:
        pytest.skip("this machine has a GPU")
    assert gpu_load.main(["--rounds", "1"]) == 1
    assert "libcuda" in capsys.readouterr().err
