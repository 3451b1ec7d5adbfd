"""What passed at which commit: `tests/passes.jsonl`, one line for each finished block of seeds.

    commit, suite, from, to (not in it), failed: [seeds], seconds: of all processes, when: UTC

Lines are only appended, so that counts add up over runs, sessions and machines. A seed counts once
for each commit; one that failed counts as failed there, also if it passed when it was run again.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "passes.jsonl"
NO_CODE = (":!tests/passes.jsonl", ":!docs", ":!*.md")
"""What may change without a suite doing anything else than before."""


@dataclass(frozen=True)
class Block:
    """Seeds `first <= seed < end` of a suite, run at a commit; all but `failed` passed."""

    commit: str
    suite: str
    first: int
    end: int
    failed: tuple[int, ...]
    seconds: int
    when: str

    @property
    def passed(self) -> set[int]:
        return set(range(self.first, self.end)) - set(self.failed)

    def line(self) -> str:
        told = {
            "commit": self.commit,
            "suite": self.suite,
            "from": self.first,
            "to": self.end,
            "failed": list(self.failed),
            "seconds": self.seconds,
            "when": self.when,
        }
        return json.dumps(told) + "\n"

    @classmethod
    def of(cls, line: str) -> Block:
        told = json.loads(line)
        failed = tuple(told["failed"])
        first, end = told["from"], told["to"]
        return cls(told["commit"], told["suite"], first, end, failed, told["seconds"], told["when"])


@dataclass(frozen=True)
class Sum:
    """What blocks of one suite come to."""

    suite: str
    passed: int
    failed: int
    seconds: int
    commits: int


def commit() -> str | None:
    """The last commit that changed code; None where what is here is not that, or there is no git.

    What was run with changes that nobody else has is no pass of any commit.
    """
    try:
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *NO_CODE)
        return (
            None
            if changed
            else _git("log", "-1", "--format=%h", "--abbrev=12", "--", ".", *NO_CODE)
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def append(blocks: Iterable[Block], file: Path = FILE) -> None:
    """Whole lines, also where two runs write to the same file."""
    lines = "".join(block.line() for block in blocks)
    if not lines:
        return
    with file.open("a", encoding="utf-8") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        out.write(lines)


def read(file: Path = FILE) -> list[Block]:
    if not file.exists():
        return []
    return [Block.of(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def passed_at(commit: str, suite: str, file: Path = FILE) -> set[int]:
    """The seeds that this commit has had."""
    found: set[int] = set()
    for block in read(file):
        if (block.commit, block.suite) == (commit, suite):
            found |= block.passed
    return found


def stretches(seeds: Iterable[int]) -> Iterator[tuple[int, int]]:
    """
    >>> list(stretches([1, 2, 3, 7]))
    [(1, 4), (7, 8)]
    """
    first = end = None
    for seed in sorted(seeds):
        if first is None or end is None:
            first = seed
        elif seed != end:
            yield first, end
            first = seed
        end = seed + 1
    if first is not None and end is not None:
        yield first, end


def sums(blocks: Iterable[Block]) -> list[Sum]:
    """By suite. A pair of commit and seed counts once."""
    passed: dict[str, set[tuple[str, int]]] = {}
    failed: dict[str, set[tuple[str, int]]] = {}
    seconds: dict[str, int] = {}
    for block in blocks:
        mine = passed.setdefault(block.suite, set())
        mine |= {(block.commit, seed) for seed in block.passed}
        failed.setdefault(block.suite, set()).update((block.commit, one) for one in block.failed)
        seconds[block.suite] = seconds.get(block.suite, 0) + block.seconds
    return [
        Sum(
            suite,
            len(passed[suite] - failed[suite]),
            len(failed[suite]),
            seconds[suite],
            len({one for one, _ in passed[suite] | failed[suite]}),
        )
        for suite in sorted(passed)
    ]
