"""The runner of the benchmarks: what was measured is kept, whatever fails after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as runner
from benchmarks.__main__ import Benchmark
from benchmarks.books import projections
from benchmarks.size import Size
from tests.projections.story import Size as StorySize


def test_a_benchmark_that_fails_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results" / "latest.json"

    def first(*_: object) -> dict[str, Any]:
        return {"rate": 7}

    def second(*_: object) -> dict[str, Any]:
        raise IndexError("list index out of range")

    def third(*_: object) -> dict[str, Any]:
        assert _kept(output)["benchmarks"]["first"]["rate"] == 7, "written before the next begins"
        return {"rate": 9}

    some = [Benchmark(each.__name__, each, lambda _: iter(())) for each in (first, second, third)]
    monkeypatch.setattr(runner, "BENCHMARKS", some)
    monkeypatch.setattr(runner, "machine", lambda: {"cores": 2})
    assert runner.main(["--output", str(output)]) == 1
    kept = _kept(output)
    assert list(kept["benchmarks"]) == ["first", "third"]
    assert kept["failed"] == {"second": "IndexError: list index out of range"}
    assert "FAILED: second: IndexError: list index out of range" in capsys.readouterr().err


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
    line = runner.Line("it", "> 1/s", reached, 1, None, None, None, None)
    return Benchmark("one", lambda *_: {"rate": 1}, lambda _: iter([line]))


@pytest.mark.parametrize(("size", "judged"), [("full", False), ("short", None), ("tiny", None)])
def test_figures_are_judged_in_full_size_alone(
    size: str, judged: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BENCHMARKS", [_one(reached=False)])
    monkeypatch.setattr(runner, "machine", lambda: {"cores": 2})
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
    monkeypatch.setattr(runner, "machine", lambda: {"cores": 2})
    assert runner.main([f"--{size}"]) == 0
    assert (tmp_path / "latest.json").exists() == is_written
    assert ("written to" in capsys.readouterr().err) == is_written
