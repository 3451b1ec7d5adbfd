"""The runner of the benchmarks: what was measured is kept, whatever fails after it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as runner
from benchmarks.__main__ import Benchmark
from benchmarks.books import projections
from tests.projections.story import Size


def test_a_benchmark_that_fails_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results" / "latest.json"

    def first(_short: bool) -> dict[str, Any]:
        return {"rate": 7}

    def second(_short: bool) -> dict[str, Any]:
        raise IndexError("list index out of range")

    def third(_short: bool) -> dict[str, Any]:
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


def test_the_matcher_is_measured_on_a_story_that_every_view_can_follow(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "OPENB", replace(projections.OPENB, nodes=3))
    measured = projections._matcher(empty_database, 3)
    assert measured["calls"] == 3
    assert 0 < measured["p50_ms"] <= measured["p99_ms"]


def test_a_story_of_too_few_leases_says_so_before_it_begins() -> None:
    with pytest.raises(ValueError, match="at least 4 leases"):
        Size(leases=2)
