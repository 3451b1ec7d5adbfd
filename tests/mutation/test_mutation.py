"""The tool itself, on a toy: who is noticed is killed, who is not survives, and it goes on where it
ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.money import MODULES
from tests.mutation.operators import mutants_of, path_of
from tests.mutation.record import RESULTS, set_aside

ROOT = Path(__file__).parents[2]
TOY = '''"""A fee of three tenths, and a limit of fourteen days."""

LIMIT = 14


def fee(units: int) -> int:
    return units * 3 // 10


def late(days: int) -> bool:
    return days > LIMIT
'''
TESTS = """from toy import fee, late


def test_the_fee():
    assert fee(10) == 3


def test_late():
    assert late(15) and not late(14)
"""


def run(root: Path, *others: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", "--root", str(root), *others],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_mutant_that_a_test_notices_is_killed_and_another_survives(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY, "utf-8")
    (tmp_path / "test_toy.py").write_text(TESTS, "utf-8")
    asked = ("--module", "toy", "--tests", "test_toy.py")
    told = run(tmp_path, *asked)
    (file,) = tmp_path.glob(".mutants/*/results.jsonl")
    kept = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    lives = {one["key"] for one in kept if one["result"] == "survived"}
    rounded = "units * 3 // 10 -> -(-(units * 3) // 10)"
    assert lives == {f"toy | fee | return units * 3 // 10 | rounding | {rounded} | 1"}
    killed = {one["key"]: one["why"] for one in kept if one["result"] == "killed"}
    assert killed["toy | late | return days > LIMIT | boundary | days > LIMIT -> days >= LIMIT | 1"]
    assert "test_late" in killed["toy |  | LIMIT = 14 | constant | 14 -> 15 | 1"], "at the top, too"
    assert len(kept) == len(mutants_of(tmp_path, "toy"))
    assert f"{len(killed)} killed, 1 survived" in told
    assert run(tmp_path, *asked).splitlines()[-1] == told.splitlines()[-1]
    assert len(file.read_text("utf-8").splitlines()) == len(kept), "nothing was tried again"


@pytest.mark.slow("::test_a_mutant_that_a_test_notices_is_killed_and_another_survives")
def test_a_test_that_fails_without_the_mutant_kills_none(tmp_path: Path) -> None:
    """One that needs the process it was read in, as one that needs a thread or a lock does."""
    (tmp_path / "toy.py").write_text(TOY, "utf-8")
    needs_its_process = "import os\n\nfrom toy import fee, late\n\nHERE = os.getpid()\n\n\n" + (
        "def test_here():\n    late(fee(3))\n    assert os.getpid() == HERE\n"
    )
    (tmp_path / "test_toy.py").write_text(needs_its_process, "utf-8")
    told = run(tmp_path, "--module", "toy", "--tests", "test_toy.py")
    assert "not judged: toy:7" in told
    bodies = [one for one in mutants_of(tmp_path, "toy") if one.is_body]
    assert f" {len(bodies)} not tried" in told


@pytest.mark.slow("::test_a_mutant_that_a_test_notices_is_killed_and_another_survives")
def test_tests_that_cannot_be_run_kill_none(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY, "utf-8")
    (tmp_path / "test_toy.py").write_text(TESTS, "utf-8")
    (tmp_path / "test_broken.py").write_text("def test_broken():\n    assert False\n", "utf-8")
    run(tmp_path, "--module", "toy", "--tests", "test_toy.py")
    for name in ("test_no_such_file.py", "test_broken.py"):
        told = run(tmp_path, "--module", "toy", "--tests", "test_toy.py", "--fresh", name)
        assert "not judged: toy:7" in told, name
        assert " 1 survived" in told, name


@pytest.mark.slow("::test_a_mutant_that_a_test_notices_is_killed_and_another_survives")
def test_a_mutant_with_which_pytest_cannot_begin_is_killed(tmp_path: Path) -> None:
    """What all tests import refuses it."""
    (tmp_path / "toy.py").write_text(TOY, "utf-8")
    (tmp_path / "test_toy.py").write_text("from toy import fee\n\n\ndef test():\n    fee(0)\n")
    run(tmp_path, "--module", "toy", "--tests", "test_toy.py")
    (tmp_path / "conftest.py").write_text("import toy\n\nassert toy.LIMIT == 14\n", "utf-8")
    told = run(tmp_path, "--module", "toy", "--tests", "test_toy.py", "--fresh", "test_toy.py")
    assert "killed: status 4" in told


@pytest.mark.parametrize("module", MODULES)
def test_the_modules_of_money_are_there(module: str) -> None:
    assert path_of(ROOT, module).is_file()


def test_what_was_set_aside_is_still_there_and_has_a_reason() -> None:
    """Where a line was changed, its mark goes: whether nothing notices is asked again."""
    aside = set_aside()
    there = {one.name for module in {name[0] for name in aside} for one in mutants_of(ROOT, module)}
    assert [name for name in aside if name not in there] == []
    assert all(len(reason.split()) >= 4 for reason in aside.values())


def test_the_result_of_each_run_says_what_it_counted() -> None:
    for line in RESULTS.read_text("utf-8").splitlines():
        told = json.loads(line)
        tried = told["killed"] + told["survived"]
        assert tried + told["equivalent"] + told["left"] == told["chosen"] <= told["sites"]
        assert told["rate_ppm"] == told["killed"] * 1_000_000 // max(1, tried)
