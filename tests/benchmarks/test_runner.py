"""The runner of the benchmarks: what was measured is kept, whatever fails after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as runner
from benchmarks import alone
from benchmarks.books import projections
from benchmarks.lines import Benchmark, Line
from benchmarks.machine import is_busy, others
from benchmarks.size import Size
from benchmarks.table import table
from tests.benchmarks import planted as plants
from tests.projections.story import Size as StorySize


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner does not look at the machine for seconds, nor start a server to ask about it."""
    monkeypatch.setattr(runner, "LOOK_SECONDS", dict.fromkeys(Size, 0.0))
    monkeypatch.setattr(runner, "machine", lambda: {"cores": 2})


def planted(*runs: Callable[..., dict[str, Any]]) -> list[Benchmark]:
    def line(result: dict[str, Any]) -> Iterator[Line]:
        yield Line(f"rate {result['rate']}", "", None, result["rate"], None, None, None, None)

    return [Benchmark(run.__name__, run, line) for run in runs]


def test_a_benchmark_that_fails_or_dies_costs_no_other_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results" / "latest.json"
    monkeypatch.setenv(plants.KEPT, str(output))
    some = planted(plants.first, plants.failing, plants.dying, plants.last)
    monkeypatch.setattr(runner, "BENCHMARKS", some)
    assert runner.main(["--tiny", "--output", str(output)]) == 1
    kept, told = _kept(output), capsys.readouterr()
    assert list(kept["benchmarks"]) == ["first", "last"]
    assert [line["what"] for line in kept["lines"]] == ["rate 7", "rate 9"]
    assert "rate 7" in told.out
    assert "rate 9" in told.out
    assert kept["failed"] == {
        "failing": "IndexError: list index out of range",
        "dying": "its process died: exit code 9",
    }
    assert "FAILED: failing: IndexError: list index out of range" in told.err
    assert "failing: 3 left" in told.err


def test_a_benchmark_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "GOING_SECONDS", 0.1)
    monkeypatch.setattr(alone, "PATIENCE_SECONDS", 0.5)
    started, answer = tmp_path / "started", alone._answer
    monkeypatch.setenv(plants.STARTED, str(started))

    def once_it_hangs(*arguments: Any) -> dict[str, Any]:
        while not started.exists():
            time.sleep(0.05)
        return answer(*arguments)

    monkeypatch.setattr(alone, "_answer", once_it_hangs)
    with pytest.raises(alone.Failed, match="ended after 1 s without a result"):
        alone.run_alone(plants.hanging, Size.TINY, 1)
    postgres, sleeper, folder = started.read_text().split()
    assert not any(_is_there(int(pid)) for pid in (postgres, sleeper))
    assert not Path(folder).exists()


def test_a_benchmark_ends_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = (
        "from benchmarks.alone import run_alone; from benchmarks.size import Size;"
        "from tests.benchmarks.planted import orphaned; run_alone(orphaned, Size.TINY, 600)"
    )
    environment = {**os.environ, plants.STARTED: str(started)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    postgres, sleeper, folder = started.read_text().split()
    until = time.monotonic() + 30
    while _is_left(postgres, sleeper, folder):
        assert time.monotonic() < until
        time.sleep(0.05)


def _is_left(postgres: str, sleeper: str, folder: str) -> bool:
    return _is_there(int(postgres)) or _is_there(int(sleeper)) or Path(folder).exists()


def _is_there(pid: int) -> bool:
    """A process that still does something: not one that only waits to be fetched."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_what_was_measured_on_a_busy_machine_is_marked() -> None:
    quiet = {"load_average": 3.0, "cores_of_others": 0.0}
    cores = os.cpu_count() or 1
    for before, after, stolen, busy in (
        (0.0, 0.0, 0.0, False),
        (0.2 * cores, 0.0, 0.0, True),
        (0.0, 0.2 * cores, 0.0, True),
        (0.0, 0.0, 0.2 * cores, True),
    ):
        seen = [{**quiet, "cores_of_others": one} for one in (before, after)]
        assert is_busy(seen[0], seen[1], stolen) == busy
    line = replace(next(planted(plants.first)[0].lines({"rate": 7})), is_busy=True)
    assert "BUSY: rate 7" in table([line])


def test_others_are_seen_at_work() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as worker:
        seen = others(1.0)["cores_of_others"]
        worker.kill()
    assert seen > 0.4


def _kept(output: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return kept


def test_the_matcher_is_measured_on_a_story_that_every_view_can_follow(empty_database: str) -> None:
    measured = projections._matcher(empty_database, projections.SIZES[Size.TINY])
    assert measured["calls"] == 3
    assert 0 < measured["p50_ms"] <= measured["p99_ms"]


def test_a_story_of_too_few_leases_says_so_before_it_begins() -> None:
    with pytest.raises(ValueError, match="at least 4 leases"):
        StorySize(leases=2)


def _one(reached: bool | None) -> Benchmark:
    line = Line("it", "> 1/s", reached, 1, None, None, None, None)
    return Benchmark("first", plants.first, lambda _: iter([line]))


@pytest.mark.parametrize(("size", "judged"), [("full", False), ("short", None), ("tiny", None)])
def test_figures_are_judged_in_full_size_alone(
    size: str, judged: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BENCHMARKS", [_one(reached=False)])
    output = tmp_path / "told.json"
    assert runner.main([f"--{size}", "--output", str(output)]) == int(judged is False)
    assert (_kept(output)["size"], _kept(output)["lines"][0]["reached"]) == (size, judged)


@pytest.mark.parametrize(("size", "is_written"), [("short", True), ("tiny", False)])
def test_a_tiny_run_leaves_the_results_alone(
    size: str,
    is_written: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "latest.json")
    monkeypatch.setattr(runner, "BENCHMARKS", [_one(reached=None)])
    assert runner.main([f"--{size}"]) == 0
    assert (tmp_path / "latest.json").exists() == is_written
    assert ("written to" in capsys.readouterr().err) == is_written


def test_a_run_goes_on_where_one_of_the_same_code_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "told.json"
    monkeypatch.setattr(runner, "_commit", lambda: "abc")
    monkeypatch.setattr(runner, "BENCHMARKS", planted(plants.first, plants.failing))
    arguments = ["--tiny", "--output", str(output), "--go-on"]
    assert runner.main(arguments) == 1
    monkeypatch.setenv(plants.KEPT, str(output))
    monkeypatch.setattr(runner, "BENCHMARKS", planted(plants.first, plants.last))
    assert runner.main(arguments) == 0
    assert "first: " not in capsys.readouterr().err.split("FAILED", 1)[1]
    kept = _kept(output)
    assert list(kept["benchmarks"]) == ["first", "last"]
    assert [line["what"] for line in kept["lines"]] == ["rate 7", "rate 9"]
    assert kept["failed"] == {}
    monkeypatch.setattr(runner, "_commit", lambda: "other code")
    monkeypatch.setattr(runner, "BENCHMARKS", planted(plants.first))
    assert runner.main(arguments) == 0
    assert list(_kept(output)["benchmarks"]) == ["first"]


@pytest.mark.parametrize("commit", [None, "abc and changes"])
def test_a_run_does_not_go_on_where_the_code_has_no_name(
    commit: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "told.json"
    monkeypatch.setattr(runner, "_commit", lambda: commit)
    for run in (plants.first, plants.second):
        monkeypatch.setattr(runner, "BENCHMARKS", planted(run))
        assert runner.main(["--tiny", "--output", str(output), "--go-on"]) == 0
    assert list(_kept(output)["benchmarks"]) == ["second"]


def test_one_that_is_measured_anew_stands_beside_the_others_and_says_of_which_code_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "told.json"
    monkeypatch.setattr(runner, "_commit", lambda: "abc")
    monkeypatch.setattr(runner, "BENCHMARKS", planted(plants.first, plants.last, plants.failing))
    assert runner.main(["--tiny", "--output", str(output)]) == 1
    monkeypatch.setenv(plants.KEPT, str(output))
    monkeypatch.setattr(runner, "_commit", lambda: "other code")
    assert runner.main(["--tiny", "--output", str(output), "--keep", "--only", "last"]) == 1
    kept = _kept(output)
    assert [line["what"] for line in kept["lines"]] == ["rate 7", "rate 9"]
    assert (kept["commit"], list(kept["failed"])) == ("abc", ["failing"])
    assert "commit" not in kept["benchmarks"]["first"]
    assert kept["benchmarks"]["last"]["commit"] == "other code"
    for wrong in (["--tiny"], ["--short", "--only", "last"]):  # of all, or of another size
        with pytest.raises(SystemExit):
            runner.main([*wrong, "--output", str(output), "--keep"])
    assert _kept(output) == kept


def test_a_run_of_some_leaves_the_results_of_all_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "latest.json")
    monkeypatch.setattr(runner, "BENCHMARKS", [_one(reached=None)])
    assert runner.main(["--short", "--only", "first"]) == 0
    assert not (tmp_path / "latest.json").exists()
