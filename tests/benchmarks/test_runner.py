"""The runner of the benchmarks: what was measured is kept, whatever fails after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as runner
from benchmarks.__main__ import Benchmark
from benchmarks.projections import OPENB
from domain.lease import LeaseReserved
from tests.projections.story import LEASES_MIN, Size, story


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


def test_the_story_of_the_matchers_fleet_can_be_told_to_its_end() -> None:
    leases = [fact for _, fact in story(OPENB) if isinstance(fact, LeaseReserved)]
    assert len(leases) >= LEASES_MIN


def test_a_story_of_too_few_leases_says_so_before_it_begins() -> None:
    with pytest.raises(ValueError, match="at least 4 leases"):
        Size(leases=2)
