"""Executes an export again: every epoch and every payout root, without server, network, database.

    verify (ledger/bundle/verify.py) -> each fact: the epochs and the books
    (ledger/bundle/epoch_replay.py)
                              -> each root: its totals (ledger/bundle/root_replay.py), its tree,
                              its file

The chain's side of it stands here, for the ledger does not know what a payout file looks like.
What it cannot see is said where the parts are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from api.process.collecting import collecting_later
from contracts import manifest
from contracts.manifest import ManifestInvalid, Payout
from contracts.payout_tree import PAYOUT_ENCODING, build
from domain.nesting import is_too_deep
from domain.refusal import Refused
from ledger.bundle import parquet
from ledger.bundle.epoch_replay import EpochReplay, Executed, executed
from ledger.bundle.lane_walk import Problem
from ledger.bundle.root_replay import TREASURY_ADDRESS, RootDue, RootReplay
from ledger.bundle.shape import MANIFEST_FILE, epoch_of, log_file, result_root
from ledger.bundle.verify import Step, VerifyReport, not_told, verify_bundle
from ledger.fan_out.executor import SERIAL, Executor
from ledger.fan_out.marks import Marks
from ledger.log.codec import NotStorable, decode

PROBLEMS_MAX = 20
"""So many are told; the first is the one to look at."""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What was executed again, and what differs; nothing was where `verified` is not ok."""

    verified: VerifyReport
    problems: tuple[Problem, ...]
    epochs: int
    roots: int
    accounts: int
    result_root: str | None

    @property
    def ok(self) -> bool:
        return self.verified.ok and not self.problems

    @property
    def first(self) -> Problem | None:
        return next(iter(self.problems), self.verified.first_bad)


def replay_bundle(
    directory: Path,
    root: Path | None = None,
    key: str | None = None,
    *,
    executor: Executor = SERIAL,
    step: Step = not_told,
    marks: Marks | None = None,
) -> ReplayReport:
    """Verify a bundle and execute it again; `executor` walks its lanes and settles its epochs,
    `step` counts the lanes, and `marks` is for them (`verify_bundle`). Never raises for what a
    bundle contains. Raises WorkLost.
    """
    directory = directory.absolute()  # an executor may work elsewhere
    verified = verify_bundle(directory, root, key, executor=executor, step=step, marks=marks)
    if not verified.ok:
        return ReplayReport(verified, (), 0, 0, 0, None)
    work = _Replay(directory, executor)
    for problem in work.run():
        work.problems.append(problem)
        if len(work.problems) == PROBLEMS_MAX:
            break
    hashes = work.epochs.hashes
    return ReplayReport(
        verified,
        tuple(work.problems),
        len(hashes),
        len(work.payouts),
        len(work.epochs.books.units),
        result_root(hashes),
    )


def _file(directory: Path, folder: str, epoch: int) -> bytes | None:
    path = directory / folder / f"{epoch}.json"
    if not path.is_file():
        return None
    data = path.read_bytes()
    return b"" if is_too_deep(data.decode(errors="replace")) else data


@collecting_later()
def _execute(task: tuple[Path, int]) -> Executed | None:
    directory, epoch = task
    return executed(epoch, _file(directory, "epochs", epoch))


class _Ahead:
    """The epoch files of a bundle, executed in order of their numbers, some ahead of the facts."""

    def __init__(self, directory: Path, executor: Executor) -> None:
        self._directory = directory
        names = (path.relative_to(directory).as_posix() for path in directory.glob("epochs/*"))
        numbers = sorted(number for number in map(epoch_of, names) if number is not None)
        self._numbers = iter(numbers)
        self._found = executor.map(_execute, [(directory, number) for number in numbers])
        self._waiting: dict[int, Executed | None] = {}

    def take(self, epoch: int) -> Executed | None:
        """Of this epoch; whoever asks twice has it executed twice."""
        while epoch not in self._waiting:
            number = next(self._numbers, None)
            if number is None:
                return _execute((self._directory, epoch))
            self._waiting[number] = next(self._found)
        return self._waiting.pop(epoch)


@dataclass(slots=True)
class _Replay:
    directory: Path
    executor: Executor
    problems: list[Problem] = field(default_factory=list)
    epochs: EpochReplay = field(init=False)
    roots: RootReplay = field(init=False)
    payouts: dict[int, Payout] = field(default_factory=dict)
    last: Payout | None = None
    treasury: str | None = None

    def __post_init__(self) -> None:
        self.epochs = EpochReplay(_Ahead(self.directory, self.executor).take)
        self.roots = RootReplay(self.epochs.holdback)

    def run(self) -> Iterator[Problem]:
        """Every fact in order. After a fact that cannot be read nothing can be said."""
        for position, _, _, name, body, _, head, *_ in self._rows():
            try:
                fact = decode(name, body)
            except NotStorable as error:
                yield Problem("market", position, f"not a fact of this version: {error}")
                return
            for what in self.epochs.take(position, fact):
                yield Problem("market", position, what)
            for due in self.roots.take(position, head, fact):
                found = [due] if isinstance(due, str) else self._root(due)
                for what in found:
                    yield Problem("market", position, what)

    def _rows(self) -> Iterator[parquet.Row]:
        manifest_file = json.loads((self.directory / MANIFEST_FILE).read_bytes())
        names = (str(entry["path"]) for entry in manifest_file["files"])  # these were verified
        found = [file for file in map(log_file, names) if file and file.lane is None]
        for file in sorted(found, key=lambda file: file.first):
            columns = parquet.OF_MARKET[manifest_file["format"]]
            yield from parquet.read_log(self.directory / file.path, columns)

    # --- payout roots -----------------------------------------------------------------------

    def _root(self, due: RootDue) -> Iterator[str]:
        epoch = due.built.epoch
        data = _file(self.directory, "payouts", epoch)
        if data is None:
            yield f"epoch {epoch}: its payout file is not in the bundle"
            return
        try:
            payout = manifest.decode(data)
        except ManifestInvalid as error:
            yield f"payouts/{epoch}.json: {error}"
            return
        if epoch not in self.payouts:
            yield from self._went_in(payout, due)
        self.payouts[epoch] = payout
        yield from self._came_out(payout, due)

    def _went_in(self, payout: Payout, due: RootDue) -> Iterator[str]:
        """What the file says beside its tree, and how it follows the file before."""
        epoch, built = due.built.epoch, due.built
        settlement = self.epochs.settlement(epoch)
        told: dict[str, tuple[object, object]] = {
            "epoch": (payout.epoch, epoch),
            "root": (payout.root, built.root),
            "manifest": (payout.manifest, built.manifest_sha256),
            "seq": (payout.seq, built.seq),
            "previousRoot": (payout.previous_root, built.previous_root),
            "committed": (payout.committed, built.committed.units),
            "leaves": (len(payout.tree.rows), built.leaves),
            "logHead": (payout.log_head, due.cut.head.hex()),
        }
        if settlement is not None:
            cut = settlement.cut
            told["cut"] = (payout.cut, str(cut.cut_position))
            told["policyVersion"] = (payout.policy_version, cut.policy.version)
            told["minted"] = (payout.minted, settlement.minted)
            told["file of the epoch"] = (payout.manifest, self.epochs.hashes.get(epoch))
        last = self.last
        if last is not None:
            told["chain"] = (payout.chain_id, last.chain_id)
            told["distributor"] = (payout.distributor, last.distributor)
            told["asset"] = (payout.asset, last.asset)
            told["root before"] = (payout.previous_root, last.root)
        self.last = payout
        for name, (said, known) in told.items():
            if said != known:
                yield f"payouts/{epoch}.json: {name} is {said}, the log gives {known}"

    def _came_out(self, payout: Payout, due: RootDue) -> Iterator[str]:
        """The root over the totals that the log gives. The treasury's address is in the files
        alone: one address, the same in all of them.
        """
        epoch = due.built.epoch
        totals = dict(due.totals)
        treasury = totals.pop(TREASURY_ADDRESS, 0)
        said = {str(row[2]).lower(): int(row[3]) for row in payout.tree.rows}
        unknown = sorted(said.keys() - totals.keys())
        if treasury and len(unknown) == 1:
            self.treasury = self.treasury or unknown[0]
            totals[self.treasury] = totals.get(self.treasury, 0) + treasury
        for address in sorted(said.keys() | totals.keys()):
            if said.get(address, 0) != totals.get(address, 0):
                yield (
                    f"epoch {epoch}: {address} has {said.get(address, 0)} under the root,"
                    f" the log gives {totals.get(address, 0)}"
                )
                return
        try:
            leaves = [(payout.chain_id, payout.distributor, *one) for one in totals.items()]
            computed = "0x" + build(leaves, PAYOUT_ENCODING).root.hex()
        except Refused as refused:
            computed = str(refused)
        if computed != due.built.root:
            yield f"epoch {epoch}: the root is {computed}, PayoutRootBuilt says {due.built.root}"
