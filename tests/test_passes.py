"""The command that runs seeded suites tells each failure with its seed, goes on, and remembers."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import passes
from tests.passes import ALL, SUITES, Suite, run_range
from tests.seeds import record, toy, workers
from tests.seeds.record import Block, Sum

TOY = Suite("toy", "tests.seeds.toy", "fails, dies and hangs", 1, 1, 1, limit_s=3)


def ran(file: Path, seeds: range, commit: str | None = "one", *, again: bool = False) -> list[int]:
    return run_range(TOY, seeds, jobs=1, commit=commit, again=again, file=file)


def test_a_failure_is_told_with_seed_and_commit_and_the_rest_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "passes.jsonl"
    failed = run_range(TOY, range(10), jobs=2, commit="one", file=file)
    assert sorted(failed) == [toy.FAILS, toy.DIES, toy.HANGS]
    said = capsys.readouterr()
    assert "toy: seed 3 failed at one\n" in said.out
    assert "AssertionError: three is no good\nagain: python -m tests.passes toy 3\n" in said.out
    assert "the process ended with 9\nagain: python -m tests.passes toy 5\n" in said.out
    assert "not done after 3 s\nagain: python -m tests.passes toy 7\n" in said.out
    assert "toy: 10 of 10 seeds, 3 failed" in said.err
    (block,) = record.read(file)
    assert (block.commit, block.suite, block.first, block.end) == ("one", "toy", 0, 10)
    assert block.failed == (3, 5, 7)


def test_a_second_run_skips_what_passed_and_another_commit_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "passes.jsonl"
    assert ran(file, range(2, 5)) == [3]
    assert ran(file, range(5)) == [3], "what failed is tried again"
    assert "2 seeds have passed at one before" in capsys.readouterr().out
    told = [(block.first, block.end, block.failed) for block in record.read(file)]
    assert told == [(2, 5, (3,)), (0, 2, ()), (3, 4, (3,))]
    assert ran(file, range(3)) == []
    assert len(record.read(file)) == 3, "nothing was left to do"
    assert ran(file, range(3), again=True) == []
    assert ran(file, range(3), "two") == []
    assert record.read(file)[-1].commit == "two"
    assert record.passed_at("one", "toy", file) == {0, 1, 2, 4}
    assert record.passed_at("two", "toy", file) == {0, 1, 2}


def test_what_no_commit_has_is_run_and_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "passes.jsonl"
    assert ran(file, range(3, 5), commit=None) == [3]
    assert not file.exists()


def test_what_ran_after_another_commit_came_is_not_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that is started later reads what is there then."""
    file = tmp_path / "passes.jsonl"
    moved = run_range(TOY, range(3), jobs=1, commit="one", file=file, here=lambda: "two")
    assert moved == []
    assert not file.exists()
    assert "what is here is not one any more" in capsys.readouterr().out
    run_range(TOY, range(3), jobs=1, commit="one", file=file, here=lambda: None)
    assert not file.exists()


@pytest.mark.timeout(30)
def test_a_process_that_cannot_be_started_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_module: str) -> None:
        raise OSError("no room for another process")

    monkeypatch.setattr(workers, "_Worker", full)
    with pytest.raises(OSError, match="no room"):
        ran(tmp_path / "passes.jsonl", range(3))


def test_a_seed_decides_what_is_drawn_also_on_a_server_of_ci() -> None:
    told = "from tests import examples; from hypothesis import settings; examples.register();"
    asked = f"{told} print(settings.get_profile('seeds').derandomize)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=record.ROOT,
        env={**os.environ, "CI": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_sums_count_each_seed_once_for_each_commit(tmp_path: Path) -> None:
    file = tmp_path / "passes.jsonl"
    at = "2026-11-26T03:00:00+00:00"
    record.append(
        [
            Block("one", "toy", 0, 10, (3,), 5, at),
            Block("one", "toy", 0, 5, (), 2, at),  # 3 passed this time: it failed at this commit
            Block("two", "toy", 0, 10, (), 5, at),
            Block("two", "other", 7, 8, (7,), 1, at),
        ],
        file,
    )
    assert record.sums(record.read(file)) == [
        Sum("other", passed=0, failed=1, seconds=1, commits=1),
        Sum("toy", passed=19, failed=1, seconds=12, commits=2),
    ]


def test_a_suite_that_cannot_begin_blames_no_seed(tmp_path: Path) -> None:
    broken = Suite("broken", "tests.seeds.no_such_module", "is not there", 1, 1, 1)
    file = tmp_path / "passes.jsonl"
    with pytest.raises(workers.SuiteBroken, match="no_such_module"):
        run_range(broken, range(10), jobs=2, commit="one", file=file)
    assert not file.exists()


def test_a_commit_is_the_last_one_that_changed_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        told = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
        subprocess.run(["git", *told, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(record, "ROOT", tmp_path)
    assert record.commit() is None, "no repository"
    for name in ("code.py", "README.md", "tests/passes.jsonl", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    first = record.commit()
    assert first is not None
    for name in ("README.md", "tests/passes.jsonl", "docs/page.md"):
        (tmp_path / name).write_text("2\n")
    assert record.commit() == first, "no suite does anything else than before"
    git("commit", "-a", "-m", "second")
    assert record.commit() == first
    (tmp_path / "code.py").write_text("2\n")
    assert record.commit() is None, "nobody else has this"
    git("commit", "-a", "-m", "third")
    assert record.commit() not in (None, first)


@pytest.mark.parametrize("suite", ALL, ids=lambda suite: str(suite.name))
def test_a_suite_takes_a_seed_and_fits_into_a_pass(suite: Suite) -> None:
    """Read and not imported, which would take seconds for some."""
    path = record.ROOT / f"{suite.module.replace('.', '/')}.py"
    module = ast.parse(path.read_text(encoding="utf-8"))
    functions = {one.name: one for one in module.body if isinstance(one, ast.FunctionDef)}
    taken = [one.arg for one in functions["run"].args.args]
    assert taken[0] == "seed"
    assert len(taken) == 1 + ("seeded_scene" in functions)
    assert 0 < suite.short <= suite.one_pass
    assert SUITES[suite.name] is suite


def test_one_pass_of_all_ends_within_an_hour_on_two_cores() -> None:
    """By the estimates, beside the long tests, which take the rest of the hour."""
    assert sum(one.one_pass * one.seconds for one in ALL) / 2 < 45 * 60


@pytest.mark.parametrize("words", [[], ["cheats"], ["--list", "cheats", "1"], ["nothing", "1"]])
def test_a_line_that_asks_for_nothing_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        passes.main(words)
    assert ended.value.code == 2
    assert "python -m tests.passes" in capsys.readouterr().err
