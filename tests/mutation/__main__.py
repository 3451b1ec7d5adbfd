"""`python -m tests.mutation`: mutants of the money modules, drawn by seed, and who lives.

    python -m tests.mutation --seed 1 --count 400             the first 400 of seed 1
    python -m tests.mutation --seed 1 --count all             all of them; hours
    python -m tests.mutation --module domain.money            all mutants of one module
    python -m tests.mutation --at domain.money:34             all mutants of one line
    ... --fresh tests/api/funds                               the survivors, against slower tests

Each run goes on where the one before it ended (`.mutants/COMMIT`), and ends after `--seconds`.
`--count 500` of a seed begins with the mutants of `--count 400`. `--known COMMIT` takes over what
was killed at an earlier commit, where the module is the same. Without `--module` and `--at` the
counts go to `tests/mutation/results.jsonl`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import record as records
from tests.mutation import trial
from tests.mutation.money import LEFT_OUT, MODULES, TESTS
from tests.mutation.operators import Mutant, mutants_of
from tests.mutation.reach import DATABASE, Reach
from tests.mutation.record import Record
from tests.mutation.running import OPTIONS, SameExamples

ROOT = Path(__file__).parents[2]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def asked_for(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", default="400", help="so many of the seed, or `all`")
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--at", action="append", default=[], help="MODULE:LINE")
    parser.add_argument("--seconds", type=int, default=3_600)
    parser.add_argument("--known", action="append", default=[], help="an earlier commit")
    parser.add_argument("--fresh", nargs="+", default=[], help="tests for those that survived")
    parser.add_argument("--tests", nargs="+", default=list(TESTS))
    parser.add_argument("--root", type=Path, default=ROOT, help="where the modules are")
    return parser.parse_args(arguments)


def chosen(asked: argparse.Namespace) -> tuple[int, list[Mutant]]:
    """How many places there are, and the mutants that were asked for, in the seed's order."""
    named = [one.rpartition(":")[0] for one in asked.at]
    modules = asked.module or list(dict.fromkeys(named)) or list(MODULES)
    found = [one for module in modules for one in mutants_of(asked.root, module)]
    random.Random(asked.seed).shuffle(found)
    if asked.at:
        places = {(one.rpartition(":")[0], int(one.rpartition(":")[2])) for one in asked.at}
        return len(found), [one for one in found if (one.module, one.line) in places]
    if asked.module or asked.count == "all":
        return len(found), found
    return len(found), found[: int(asked.count)]


class Run:
    """A plugin of pytest: once the tests are collected, mutants are tried instead."""

    def __init__(self, asked: argparse.Namespace, todo: Sequence[Mutant], record: Record) -> None:
        self._asked, self._record = asked, record
        self._todo = sorted(todo, key=lambda one: not one.is_body)  # the quick ones first
        self.until = time.monotonic() + asked.seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {
            one.nodeid: one
            for one in session.items
            if not DATABASE & set(getattr(one, "fixturenames", ())) and not _is_long(one)
        }
        modules = sorted({one.module for one in self._todo})
        reach = Reach(
            self._asked.root, sorted({*MODULES, *modules} if self._asked.root == ROOT else modules)
        )
        if not reach.record(list(items.values()), self.until):
            say("time was up before every test had run once; the next run goes on there")
            return True
        if reach.failed:
            say(f"{len(reach.failed)} tests failed or were skipped and tell nothing")
        code = trial.Code(self._asked.root, modules)
        for number, mutant in enumerate(self._todo, start=1):
            if time.monotonic() > self.until:
                say(f"time is up; {len(self._todo) - number + 1} are left for the next run")
                break
            verdict = self._tried(mutant, code, reach, items)
            if verdict.result == trial.UNJUDGED:
                say(f"{number}/{len(self._todo)} {unjudged(mutant, verdict)}")
                continue
            self._record.add(mutant, verdict)
            if verdict.result == trial.SURVIVED:
                say(f"{number}/{len(self._todo)} {told(mutant)}")
        return True

    def _tried(
        self, mutant: Mutant, code: trial.Code, reach: Reach, items: dict[str, Any]
    ) -> trial.Verdict:
        near = [one for one in reach.of(mutant) if one in items]
        if mutant.is_body and not near and reach.is_used(mutant):
            return trial.Verdict(trial.SURVIVED, "no test comes by", 0, 0, 0.0)
        swaps = code.swaps(mutant) if mutant.is_body and near else []
        if swaps:
            return trial.forked(swaps, [items[one] for one in near], reach.seconds)
        others = near or [one for one in reach.of_module(mutant.module) if one in items]
        if not others:  # pytest without a name would run everything
            return trial.Verdict(trial.SURVIVED, "no test comes by", 0, 0, 0.0)
        return trial.fresh(self._asked.root, mutant, others)


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def told(mutant: Mutant) -> str:
    return (
        f"survived: {mutant.module}:{mutant.line} {mutant.function or 'the module'}: "
        f"{mutant.operator}: {mutant.change}   in: {mutant.source}"
    )


def unjudged(mutant: Mutant, verdict: trial.Verdict) -> str:
    return f"not judged: {mutant.module}:{mutant.line} {mutant.change}: {verdict.why}"


def tried_fresh(asked: argparse.Namespace, todo: Sequence[Mutant], record: Record) -> None:
    until = time.monotonic() + asked.seconds
    for mutant in todo:
        if time.monotonic() > until:
            break
        verdict = trial.fresh(asked.root, mutant, asked.fresh)
        if verdict.result == trial.UNJUDGED:
            say(unjudged(mutant, verdict))
            continue
        record.add(mutant, verdict)
        say(told(mutant) if verdict.result == trial.SURVIVED else f"killed: {verdict.why}")


def main(arguments: Sequence[str]) -> int:
    asked = asked_for(arguments)
    asked.root = asked.root.resolve()
    sites, wanted = chosen(asked)
    reasons = records.set_aside()
    aside = {one.key for one in wanted if records.is_aside(one, reasons)}
    wanted = [one for one in wanted if one.key not in aside]
    state = records.state_of(asked.root)
    record = Record(asked.root, state)
    for one in asked.known:
        say(f"{record.take_over(one)} were killed at {one}")
    known = record.kept
    if asked.fresh:
        lives = [o for o in wanted if o.key in known and known[o.key].result == trial.SURVIVED]
        tried_fresh(asked, lives, record)
    elif todo := [one for one in wanted if one.key not in known]:
        sys.path.insert(0, str(asked.root))
        left_out = [f"--ignore={asked.root / one}" for one in LEFT_OUT]
        # Tests are named from the root wherever the caller stands.
        where = [
            *OPTIONS,
            f"--rootdir={asked.root}",
            *left_out,
            *(str(asked.root / one) for one in asked.tests),
        ]
        pytest.main(where, plugins=[SameExamples(), Run(asked, todo, record)])
    counts = records.counts_of(sites, wanted, record, aside)
    lives = [o for o in wanted if o.key in record.kept]
    for one in lives:
        if record.kept[one.key].result == trial.SURVIVED:
            say(told(one))
    say(
        f"{state}, seed {asked.seed}: {counts.sites} places, {counts.chosen} drawn, "
        f"{counts.killed} killed, {counts.survived} survived, {counts.equivalent} equivalent, "
        f"{counts.left} not tried: "
        f"{counts.rate_ppm / 10_000:.1f} % of {counts.killed + counts.survived}"
    )
    if not asked.module and not asked.at:
        records.append(state, asked.seed, counts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
