"""The seeded suites, each over any range of seeds; what passed is kept by commit and added up.

    python -m tests.passes SUITE FROM [TO]     FROM alone is one seed; TO is not in the range
    python -m tests.passes --one-pass [FROM]   one range of every suite, as `make test-long` does
    python -m tests.passes --list              the suites
    python -m tests.passes --sums              what passed, by suite, in all and at this commit

A suite is a module with `run(seed)`, which raises if something is wrong. A module that also has
`seeded_scene()`, a context manager, gets what that gives as second argument, once for a process.
A run takes only the seeds that the commit has not passed (`--again` takes all), goes on after a
failure, and appends to `tests/passes.jsonl` what is done each half minute and when it is stopped.
With changes that are not committed it records nothing, and says so; neither does it once another
commit is here, or changes are: what was started later ran those.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.seeds import record, workers
from tests.seeds.record import Block
from tests.seeds.workers import Result

WRITE_S = 30


@dataclass(frozen=True)
class Suite:
    """How many seeds `make test` and `make test-slow` take, and how many one pass of
    `make test-long` takes.
    """

    name: str
    module: str
    what: str
    short: int
    one_pass: int
    seconds: float
    """Of a processor, that one seed takes, about; measured on two shared cores."""
    limit_s: int = 600
    """After so long a seed has failed."""

    @property
    def short_seeds(self) -> range:
        return range(self.short)


ALL = (
    Suite(
        "rules",
        "tests.seeds.rules",
        "the properties of the rules, each with the examples of make test-properties",
        short=1,
        one_pass=5,
        seconds=175,
        limit_s=3_600,
    ),
    Suite(
        "cheats",
        "tests.domain.adversary.test_search",
        "100 runs of the search for a coalition that gains, in memory",
        short=1,
        one_pass=100,
        seconds=8,
    ),
    Suite(
        "cheats-on-postgres",
        "tests.independent.test_search_on_postgres",
        "5 runs of the same search on a real log",
        short=1,
        one_pass=50,
        seconds=4,
    ),
    Suite(
        "cheats-on-evm",
        "tests.independent.test_search_on_evm",
        "5 runs of the same search with its TOKEN on the chain",
        short=1,
        one_pass=50,
        seconds=7,
    ),
    Suite(
        "conservation",
        "tests.node_reporter.agent.test_conservation",
        "85 schedules of faults of a node: time and energy add up",
        short=1,
        one_pass=20,
        seconds=12,
    ),
    Suite(
        "reporter-kills",
        "tests.node_reporter.reports.test_kill",
        "a reporter killed before up to 12 drawn statements of its spool",
        short=1,
        one_pass=20,
        seconds=7,
    ),
    Suite(
        "spool-kills",
        "tests.node_reporter.reports.test_spool",
        "10 kills of a program that writes a spool",
        short=1,
        one_pass=20,
        seconds=3.5,
    ),
    Suite(
        "executor-kills",
        "tests.node_reporter.executor.test_kill",
        "5 kills of an executor while a lease runs",
        short=1,
        one_pass=4,
        seconds=20,
    ),
    Suite(
        "kills",
        "tests.e2e.test_kill",
        "10 kills of server, timers and PostgreSQL under one load",
        short=1,
        one_pass=3,
        seconds=100,
    ),
    Suite(
        "failpoints",
        "tests.failpoints.suite",
        "a fault at each named place, at a passing that the seed draws",
        short=1,
        one_pass=10,
        seconds=40,
        limit_s=1_200,
    ),
    Suite(
        "tamper",
        "tests.tampering.test_tampering",
        "one tampering of logs, books, views, an export or a backup is found",
        short=100,
        one_pass=1_000,
        seconds=0.1,
    ),
    Suite(
        "requests",
        "tests.api.openapi.test_schemathesis",
        "20 requests to every operation of the API: no 5xx, no answer that is not declared",
        short=1,
        one_pass=4,
        seconds=175,
        limit_s=3_600,
    ),
    Suite(
        "lease-histories",
        "tests.ledger.log.test_linearizability",
        "lease commands of eight threads have an order",
        short=4,
        one_pass=100,
        seconds=1.5,
    ),
    Suite(
        "years",
        "tests.independent.test_year",
        "nine epochs of fifty nodes, settled by two programs",
        short=1,
        one_pass=20,
        seconds=2,
    ),
    Suite(
        "simulation",
        "tests.simulation.suite",
        "server, node, timers, renters and chain on one clock, cut anywhere, against a reference",
        short=200,
        one_pass=400,
        seconds=1.6,
    ),
)
SUITES = {one.name: one for one in ALL}


class _Progress:
    """Tells what happened, and records it."""

    def __init__(
        self,
        suite: Suite,
        commit: str | None,
        count: int,
        file: Path,
        here: Callable[[], str | None],
    ) -> None:
        self._suite, self._commit, self._count, self._file = suite, commit, count, file
        self._here = here
        self._began = self._written = time.monotonic()
        self._new: list[Result] = []
        self.done = 0
        self.failed: list[int] = []

    def add(self, result: Result) -> None:
        self.done += 1
        self._new.append(result)
        if result.failure is not None:
            self.failed.append(result.seed)
            print(
                f"{self._suite.name}: seed {result.seed} failed at {self._commit or 'no commit'}\n"
                f"{result.failure}"
                f"again: python -m tests.passes {self._suite.name} {result.seed}",
                flush=True,
            )
        if time.monotonic() - self._written >= WRITE_S:
            self.write()

    def write(self) -> None:
        """What is new, as blocks of seeds without a hole; and a line for whoever waits."""
        self._written = time.monotonic()
        told = {one.seed: one for one in self._new}
        self._new = []
        blocks = [
            Block(
                self._commit or "",
                self._suite.name,
                first,
                end,
                tuple(at for at in range(first, end) if told[at].failure is not None),
                round(sum(told[at].seconds for at in range(first, end))),
                record.now(),
            )
            for first, end in record.stretches(told)
        ]
        if self._commit is not None and self._commit != self._here():
            print(f"what is here is not {self._commit} any more: nothing more is recorded")
            self._commit = None
        if self._commit is not None:
            record.append(blocks, self._file)
        elapsed = round(time.monotonic() - self._began)
        print(
            f"{self._suite.name}: {self.done} of {self._count} seeds, {len(self.failed)} failed,"
            f" {elapsed} s",
            file=sys.stderr,
            flush=True,
        )


def run_range(
    suite: Suite,
    seeds: range,
    *,
    jobs: int,
    commit: str | None,
    again: bool = False,
    file: Path = record.FILE,
    here: Callable[[], str | None] | None = None,
) -> list[int]:
    """The seeds of the range that failed. `here`: which commit is here when they have ended."""
    had = set() if again or commit is None else record.passed_at(commit, suite.name, file)
    wanted = [seed for seed in seeds if seed not in had]
    if len(wanted) < len(seeds):
        print(f"{suite.name}: {len(seeds) - len(wanted)} seeds have passed at {commit} before")
    progress = _Progress(suite, commit, len(wanted), file, here or (lambda: commit))
    try:
        with closing(workers.results(suite.module, wanted, jobs, suite.limit_s)) as found:
            for result in found:
                progress.add(result)
    finally:
        progress.write()
    return progress.failed


def print_list() -> None:
    print(f"{'suite':<16}{'landing':>10}{'one pass':>10}{'s a seed':>10}{'min a pass':>12}  what")
    for one in ALL:
        minutes = one.one_pass * one.seconds / 60
        print(
            f"{one.name:<16}{one.short:>10,}{one.one_pass:>10,}{one.seconds:>10g}{minutes:>12.1f}"
            f"  {one.what}"
        )
    total = sum(one.one_pass * one.seconds for one in ALL) / 60
    print(
        f"one pass of all: about {total:.0f} minutes of a processor, {total / 2:.0f} on two cores"
    )


def print_sums(commit: str | None, file: Path = record.FILE) -> None:
    blocks = record.read(file)
    here = {one.suite: one for one in record.sums(one for one in blocks if one.commit == commit)}
    print(f"{'suite':<16}{'passed':>10}{'failed':>8}{'commits':>9}{'hours':>7}  at {commit}")
    for one in record.sums(blocks):
        now = here.get(one.suite)
        at_commit = f"{now.passed:,} passed, {now.failed} failed" if now else "-"
        hours = one.seconds / 3600
        print(
            f"{one.suite:<16}{one.passed:>10,}{one.failed:>8}{one.commits:>9}{hours:>7.1f}"
            f"  {at_commit}"
        )


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.passes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="the suites, and what a pass takes")
    what.add_argument("--sums", action="store_true", help="what passed so far")
    what.add_argument("--one-pass", type=int, nargs="?", const=0, metavar="FROM")
    parser.add_argument("suite", nargs="?", choices=tuple(SUITES))
    parser.add_argument("first", nargs="?", type=int, metavar="FROM")
    parser.add_argument("end", nargs="?", type=int, metavar="TO")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--again", action="store_true", help="also what this commit has passed")
    given = parser.parse_args(words)
    alone = given.list or given.sums or given.one_pass is not None
    if alone == (given.suite is not None) or (given.suite is not None and given.first is None):
        parser.error("name a suite and a seed, or one of --list, --sums, --one-pass")
    return given


def main(words: Sequence[str], file: Path = record.FILE) -> int:
    given = _arguments(words)
    if given.list:
        print_list()
        return 0
    commit = record.commit()
    if given.sums:
        print_sums(commit, file)
        return 0
    if commit is None:
        print("here are changes that are not committed: what passes is not recorded")
    if given.one_pass is not None:
        wanted = [(one, given.one_pass, given.one_pass + one.one_pass) for one in ALL]
    else:
        end = given.first + 1 if given.end is None else given.end
        wanted = [(SUITES[given.suite], given.first, end)]
    failed = {
        suite.name: found
        for suite, first, end in wanted
        if (
            found := run_range(
                suite,
                range(first, end),
                jobs=given.jobs,
                commit=commit,
                again=given.again,
                file=file,
                here=record.commit,
            )
        )
    }
    for name, seeds in failed.items():
        print(f"{name}: failed with {', '.join(map(str, seeds))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
