"""What came out, kept for each state of code and tests, so that a run goes on where it ended; and
what was set aside because it changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutation.operators import Mutant, path_of
from tests.mutation.trial import KILLED, SURVIVED, Verdict

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
RESULTS = Path(__file__).with_name("results.jsonl")
FIELDS = ("module", "function", "source", "operator", "change")
READ = ("domain", "ledger", "contracts", "tests")
"""What decides how a trial comes out."""


def set_aside(file: Path = EQUIVALENT) -> dict[tuple[str, ...], str]:
    """The reason of each mutant that changes nothing, by its name."""
    if not file.exists():
        return {}
    told = tomllib.loads(file.read_text("utf-8")).get("equivalent", [])
    return {tuple(one[field] for field in FIELDS): one["reason"] for one in told}


def is_aside(mutant: Mutant, reasons: dict[tuple[str, ...], str]) -> bool:
    """Set aside by name, or because the types prove that nothing comes by."""
    return mutant.name in reasons or mutant.source.startswith("assert_never(")


def state_of(root: Path) -> str:
    """The commit, and what was changed since."""

    def git(*args: str) -> str:
        told = subprocess.run(["git", *args], cwd=root, text=True, capture_output=True)
        return told.stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD") or "none"
    but = (f":!{RESULTS.relative_to(Path(__file__).parents[2])}",)
    changed = git("diff", "HEAD", "--", *READ, *but) + git(
        "ls-files", "--others", "--exclude-standard", "--", *READ
    )
    return f"{commit}-{hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else commit


@dataclass(frozen=True, slots=True)
class Kept:
    """One line of a state's results. `text`: the hash of the module, to know it again later."""

    key: str
    text: str
    result: str
    why: str
    ran: int
    reach: int
    seconds: float


class Record:
    """The results of one state. Where a mutant was tried twice, the later one counts."""

    def __init__(self, root: Path, state: str) -> None:
        self._root = root
        self.folder = root / ".mutants" / state
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = self.folder / "results.jsonl"
        self.kept = _read(self._file)

    def take_over(self, state: str) -> int:
        """What was killed in an earlier state, where the module is still the same: tests that are
        added make no mutant live again.
        """
        before = _read(self._root / ".mutants" / state / "results.jsonl")
        taken = 0
        for key, one in before.items():
            is_same = one.text == self._hash(key.partition(" | ")[0])
            if one.result == KILLED and key not in self.kept and is_same:
                self._write(one)
                taken += 1
        return taken

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        self._write(Kept(mutant.key, self._hash(mutant.module), **asdict(verdict)))

    def _write(self, one: Kept) -> None:
        self.kept[one.key] = one
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(one)) + "\n")

    def _hash(self, module: str) -> str:
        path = path_of(self._root, module)
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


def _read(file: Path) -> dict[str, Kept]:
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {one.key: one for one in (Kept(**json.loads(line)) for line in lines)}


@dataclass(frozen=True, slots=True)
class Counts:
    """`sites`: of all modules that were asked for; `chosen` of them were to be tried. The rate is
    that of those that were tried: as long as some are `left`, it says nothing of all.
    """

    sites: int
    chosen: int
    killed: int
    survived: int
    equivalent: int

    @property
    def left(self) -> int:
        """Those that were drawn and have no result: no time was left, or none could be judged."""
        return self.chosen - self.killed - self.survived - self.equivalent

    @property
    def rate_ppm(self) -> int:
        """killed / (killed + survived), in millionths, floored."""
        return self.killed * 1_000_000 // max(1, self.killed + self.survived)


def counts_of(sites: int, chosen: Sequence[Mutant], record: Record, aside: set[str]) -> Counts:
    tried = [record.kept[one.key].result for one in chosen if one.key in record.kept]
    return Counts(
        sites=sites,
        chosen=len(chosen) + len(aside),
        killed=tried.count(KILLED),
        survived=tried.count(SURVIVED),
        equivalent=len(aside),
    )


def append(state: str, seed: int, counts: Counts, file: Path = RESULTS) -> None:
    """One line for each state and seed; the last run of it replaces the one before."""
    line = {"commit": state, "seed": seed, **asdict(counts), "left": counts.left}
    line["rate_ppm"] = counts.rate_ppm
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    told = [json.loads(one) for one in lines]
    others = [one for one in told if (one["commit"], one["seed"]) != (state, seed)]
    file.write_text("".join(json.dumps(one) + "\n" for one in [*others, line]), "utf-8")
