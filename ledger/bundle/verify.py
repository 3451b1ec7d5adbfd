"""The offline verifier: recomputes everything an export bundle says, trusting nobody.

    every row its leaf, every leaf its chain, positions gapless           (ledger/tree/walk.py)
    root over all facts            == the root in the signed checkpoint
    every vote and enrolment       signed by the personal key of its governor
    every pin                      == chain and tree of its 64 lanes at its sizes
    every report, and every charge of a resource                    (ledger/bundle/lane_walk.py)
    first n facts                  == the published root at n, when one is given

Needs no network, no database and no driver. What it cannot see without a root kept by somebody
else: a tail cut off and signed again, or a whole other history; so it says when it had none.
Nor when a fact was recorded or a report received, which no chain covers. Whether the books follow
from the facts is for the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from domain.epochs.clients import wrong_in
from domain.metering.report import LANES, lane_of
from domain.nesting import read_json
from ledger.bundle import parquet, passkey
from ledger.bundle.lane_walk import LaneFound, LaneTask, Problem, RowFile, rows_of, walk_lane
from ledger.bundle.recount import Recount
from ledger.bundle.shape import (
    CHECKPOINT_FILE,
    FORMATS,
    KEYS_FILE,
    MANIFEST_FILE,
    BodyWrong,
    MarketNotes,
    clients_of,
    epoch_of,
    log_file,
    manifest_bytes,
    payout_of,
    result_root,
)
from ledger.fan_out.executor import SERIAL, Executor
from ledger.fan_out.marks import Marks
from ledger.log.chain import GENESIS_MARKET, lp4, market_leaf
from ledger.tree import merkle
from ledger.tree.checkpoint import (
    Checkpoint,
    NoteInvalid,
    VerifierKey,
    parse_checkpoint,
    parse_verifier_key,
    signed_by,
    split_note,
)
from ledger.tree.cut import lanes_tree
from ledger.tree.log_keys import open_by_any
from ledger.tree.walk import RowWrong, Walk

PUBLISHED = "published root"
WalletSigner = Callable[[str, str], str | None]
Step = Callable[[str, int, int], None]
"""Told how far it is: what is counted, how much of it is done, of how much."""


def not_told(_what: str, _done: int, _of: int) -> None:
    """A `Step` for callers without a screen."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found. `against` is the published root it was compared with, if there was one.
    `digest`: one hash over size, chain and root of both logs as they were recomputed, the same
    whoever does it and however the work is shared. `walked_before`: reports that an earlier run
    has walked.
    """

    problems: tuple[Problem, ...]
    checkpoint: Checkpoint | None
    against: Checkpoint | None
    key_given: bool
    facts: int
    reports: int
    pins: int
    nodes: int
    votes: int = 0
    unchecked: int = 0
    charges: int = 0
    charges_unread: int = 0
    digest: str = ""
    walked_before: int = 0

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def first_bad(self) -> Problem | None:
        """The first problem that has a position, or else the first."""
        placed = [problem for problem in self.problems if problem.position]
        return next(iter(placed or self.problems), None)

    def __str__(self) -> str:
        lines = [
            f"{self.facts} facts, {self.reports} reports of {self.nodes} nodes, {self.pins} pins"
        ]
        if self.votes:
            left = (
                f", {self.unchecked} by wallets or passkeys not checked" if self.unchecked else ""
            )
            lines.append(f"{self.votes} signatures of governors{left}")
        if self.charges or self.charges_unread:
            behind = self.charges_unread
            left = f", {behind} not: their reports are behind the last pin" if behind else ""
            lines.append(f"{self.charges} charges of resources counted again{left}")
        if self.walked_before:
            lines.append(f"{self.walked_before} reports were walked by an earlier run")
        if self.checkpoint is not None:
            head = f"{self.checkpoint.origin} {self.checkpoint.size} {self.checkpoint.root.hex()}"
            lines.append(f"checkpoint: {head}")
        if not self.key_given:
            lines.append("the log's key was taken from the bundle itself")
        if self.against is None:
            lines.append("not checked against a published root")
        elif self.ok:
            lines.append(f"begins with the {self.against.size} facts of the published root")
        if self.first_bad is not None:
            lines.append(f"first bad: {self.first_bad}")
            rest = [str(each) for each in self.problems if each != self.first_bad]
            lines += [f"also: {each}" for each in rest]
        lines.append("verified" if self.ok else "NOT VERIFIED")
        return "\n".join(lines)


def verify_bundle(
    directory: Path,
    root: Path | None = None,
    key: str | None = None,
    wallet_signer: WalletSigner | None = None,
    *,
    executor: Executor = SERIAL,
    step: Step = not_told,
    marks: Marks | None = None,
) -> VerifyReport:
    """Recompute a bundle. `root` is a file with a checkpoint got from elsewhere, earlier or now;
    `key` the log's verifier key, else the one in the bundle is used. `wallet_signer`: the address
    that signed a text (EIP-191), or None; without it, votes by wallets are counted as not checked,
    as are those by passkeys without their library. Lanes are walked by `executor`; `step` counts
    them. `marks`: where lanes say how far they are, and go on from where an earlier run has ended.

    Never raises for what a bundle contains: what differs is in `problems`. Raises WorkLost.
    """
    work = _Verification(directory.absolute(), wallet_signer, executor, step, marks)
    with suppress(_Stop):
        work.run(root, key)
    return work.report(key is not None)


def check_files(directory: Path) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """The manifest of a bundle, and in which files it differs from what lies there: what
    `verify_bundle` does first. Says nothing of the rows.
    """
    work = _Verification(directory.absolute())
    with suppress(_Stop):
        work.read_manifest()
    return work.manifest, tuple(work.problems)


class _Stop(Exception):
    """Nothing further can be said."""


@dataclass(slots=True)
class _Verification:
    directory: Path
    wallet_signer: WalletSigner | None = None
    executor: Executor = SERIAL
    step: Step = not_told
    marks: Marks | None = None
    problems: list[Problem] = field(default_factory=list)
    manifest: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)  # of the files, as they lie there
    notes: MarketNotes = field(default_factory=MarketNotes)
    checkpoint: Checkpoint | None = None
    against: Checkpoint | None = None
    market: Walk = field(default_factory=lambda: Walk(GENESIS_MARKET))
    lanes: list[LaneFound] = field(default_factory=list)
    unchecked: int = 0
    waiting: list[tuple[str, str]] = field(default_factory=list)
    recount: Recount = field(default_factory=Recount)

    def bad(self, where: str, what: str, position: int = 0) -> None:
        self.problems.append(Problem(where, position, what))

    def report(self, key_given: bool) -> VerifyReport:
        return VerifyReport(
            tuple(self.problems),
            self.checkpoint,
            self.against,
            key_given,
            self.market.position,
            sum(lane.reports for lane in self.lanes),
            len(self.notes.pins),
            sum(lane.nodes for lane in self.lanes),
            len(self.notes.authority.signed),
            self.unchecked,
            sum(lane.charges for lane in self.lanes),
            sum(lane.charges_unread for lane in self.lanes),
            self._digest(),
            sum(lane.walked_before for lane in self.lanes),
        )

    def _digest(self) -> str:
        logs = [(self.market.position, self.market.head, self.market.tree.root())]
        logs += [(lane.reports, lane.head, lane.root) for lane in self.lanes]
        told = [b"%d %b%b" % one for one in logs]
        return sha256(b"".join(lp4(one) for one in told)).hexdigest()

    def run(self, root: Path | None, given_key: str | None) -> None:
        self.read_manifest()
        key = self._log_key(given_key)
        self._open_checkpoint(key)
        if root is not None:
            self._open_published(root, key)
        self._walk_market()
        key = self._check_log_keys(key)
        self._check_votes()
        self._check_pins()
        self._walk_lanes()
        self._check_side_files(str(key))

    # --- what the bundle says of itself -----------------------------------------------------

    def read_manifest(self) -> None:
        try:
            content = (self.directory / MANIFEST_FILE).read_bytes()
            self.manifest = read_json(content)
            self.files = {str(entry["path"]): entry for entry in self.manifest["files"]}
            if self.manifest["format"] not in FORMATS or self.manifest["first"] != 1:
                raise ValueError("another format")
            if manifest_bytes(self.manifest) != content:
                self.bad(MANIFEST_FILE, "not as it was written: its own SHA-256 says so")
        except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            self.bad(MANIFEST_FILE, f"cannot be read: {error!r}")
            raise _Stop from None
        self._check_files()

    def _check_files(self) -> None:
        there = [
            path for path in self.files if _belongs(path) and (self.directory / path).is_file()
        ]
        paths = [self.directory / path for path in there]
        hashes = dict(zip(there, self.executor.map(parquet.sha256_of, paths), strict=True))
        self.hashes = hashes
        for path, entry in self.files.items():
            if not _belongs(path):
                self.bad(path, "no such file belongs to a bundle")
            elif path not in hashes:
                self.bad(path, "missing")
            elif hashes[path] != entry.get("sha256"):
                self.bad(path, "its SHA-256 is not the one in the manifest")
            elif (self.directory / path).stat().st_size != entry.get("bytes"):
                self.bad(path, "its size is not the one in the manifest")

    def _log_key(self, given: str | None) -> VerifierKey:
        try:
            return parse_verifier_key(self._keys()["log"] if given is None else given)
        except (NoteInvalid, KeyError, TypeError, AttributeError) as error:
            self.bad(KEYS_FILE, f"the log's key cannot be read: {error!r}")
            raise _Stop from None

    def _keys(self) -> Any:
        try:
            return read_json((self.directory / KEYS_FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def _open_checkpoint(self, key: VerifierKey) -> None:
        try:
            note = (self.directory / CHECKPOINT_FILE).read_text(encoding="utf-8")
            self.checkpoint = self._head_of(CHECKPOINT_FILE, note, key)
        except (OSError, ValueError) as error:
            self.bad(CHECKPOINT_FILE, str(error))
            return
        said = self.manifest.get("checkpoint")
        here = {"size": self.checkpoint.size, "root": self.checkpoint.root.hex()}
        if said != here or self.manifest.get("last") != here["size"]:
            self.bad(MANIFEST_FILE, "says another checkpoint than the one that is signed")
        if self.manifest.get("origin") != self.checkpoint.origin:
            self.bad(MANIFEST_FILE, "says another origin than the checkpoint")

    def _head_of(self, where: str, note: str, key: VerifierKey) -> Checkpoint:
        """The head of a note, whose signature waits: a rotation of the log's key may join it to
        this key, or may have ended this key, and only the facts can say so. Raises NoteInvalid.
        """
        head = parse_checkpoint(split_note(note)[0])
        if head.origin != key.name:
            raise NoteInvalid(f"checkpoint of {head.origin}, and the key is of {key.name}")
        self.waiting.append((where, note))
        return head

    def _check_log_keys(self, key: VerifierKey) -> VerifierKey:
        """The key that signed the head of the bundle; what waits for a rotation is judged."""
        rotations = self.notes.log_keys
        for one in rotations:
            if one.fault is not None:
                self.bad("market", one.fault, one.position)
        for where, note in self.waiting:
            try:
                _, by = open_by_any(note, key, rotations)
            except NoteInvalid as error:
                lost = any(one.old_signature is None for one in rotations)
                more = (
                    "; the log's key was replaced without the old one: give the new" if lost else ""
                )
                self.bad(where, f"{error}{more}")
                if where == PUBLISHED:
                    self.against = None
                continue
            if where == CHECKPOINT_FILE:
                key = by
        return key

    def _open_published(self, root: Path, key: VerifierKey) -> None:
        """A signed note must be the log's own; three bare lines are trusted as they are."""
        try:
            text = root.read_text(encoding="utf-8")
            published = (
                self._head_of(PUBLISHED, text, key) if "\n\n" in text else parse_checkpoint(text)
            )
            if published.origin != key.name:
                raise NoteInvalid(f"of another log: {published.origin}")
            self.against = published
        except (OSError, ValueError) as error:
            self.bad(PUBLISHED, str(error))

    # --- the market log ---------------------------------------------------------------------

    def _walk_market(self) -> None:
        """Raises _Stop at a bad fact: without the keys and pins after it, lanes say nothing."""
        walk, roots = self.market, {0: merkle.EMPTY_ROOT}
        heads = [head for head in (self.checkpoint, self.against) if head is not None]
        try:
            for row in self._facts():
                self._take_fact(walk, row)
                if any(head.size == walk.position for head in heads):
                    roots[walk.position] = walk.tree.root()
        except RowWrong as wrong:
            self.bad("market", wrong.what, wrong.position)
            raise _Stop from None
        self._check_heads(roots)

    def _take_fact(self, walk: Walk, row: parquet.Row) -> None:
        position, stream, version, name, body, leaf, chain, *_ = row
        if version < 0:
            raise RowWrong(walk.position + 1, "a negative version")
        computed = market_leaf(UUID(bytes=stream), version, name, body)
        walk.step(position, computed, leaf, chain)
        try:
            self.notes.take(position, name, body)
        except BodyWrong as wrong:
            raise RowWrong(position, str(wrong)) from None
        for what in self.recount.fact(position, UUID(bytes=stream), name, body):
            self.bad("market", what, position)

    def _check_heads(self, roots: dict[int, bytes]) -> None:
        signed, published, facts = self.checkpoint, self.against, self.market.position
        if signed is not None:
            if facts < signed.size:
                self.bad("market", f"missing: {signed.size} facts are signed", facts + 1)
            elif facts > signed.size:
                self.bad("market", "not under the signed checkpoint", signed.size + 1)
            elif roots[signed.size] != signed.root:
                self.bad("market", "the facts up to here have not the signed root", signed.size)
        if published is not None:
            if facts < published.size:
                missing = f"missing: the published root covers {published.size} facts"
                self.bad("market", missing, facts + 1)
            elif roots[published.size] != published.root:
                self.bad("market", "the facts up to here are not those published", published.size)

    def _check_votes(self) -> None:
        for position, what in self.notes.authority.faults:
            self.bad("market", what, position)
        for one in self.notes.authority.signed:
            form, _, public = one.key.partition(":")
            if (form == "wallet" and self.wallet_signer is None) or (
                form == "passkey" and not passkey.is_checkable()
            ):
                self.unchecked += 1
            elif not self._is_signed(form, public, one.text, one.signature):
                self.bad("market", f"not signed by the governor's key {one.key}", one.position)

    def _is_signed(self, form: str, public: str, text: str, signature: str) -> bool:
        if form == "wallet":
            return self.wallet_signer is not None and self.wallet_signer(text, signature) == public
        if form == "passkey":
            return passkey.is_asserted(public, text, signature)
        try:
            return signed_by(bytes.fromhex(public), text.encode(), bytes.fromhex(signature))
        except ValueError:
            return False

    # --- the pins and the lanes -------------------------------------------------------------

    def _check_pins(self) -> None:
        sizes = [0] * LANES
        for pin in self.notes.pins:
            if lanes_tree(pin.lanes).root() != pin.lanes_root:
                self.bad("market", "lanes_root is not the root over its lanes", pin.position)
            for lane in pin.lanes:
                if lane.size < sizes[lane.lane]:
                    self.bad(
                        "market", f"lane {lane.lane} is shorter than pinned before", pin.position
                    )
                sizes[lane.lane] = lane.size

    def _walk_lanes(self) -> None:
        """Each by itself, wherever there is a processor for it; told in their order."""
        tasks = list(self._tasks())
        for task, found in zip(tasks, self.executor.map(walk_lane, tasks), strict=True):
            assert found.lane == task.lane
            self.lanes.append(found)
            self.problems += found.problems
            self.step("lanes", len(self.lanes), len(tasks))

    def _tasks(self) -> Iterator[LaneTask]:
        keys: list[dict[tuple[str, str], bytes]] = [{} for _ in range(LANES)]
        for one in self.notes.node_keys.values():
            keys[lane_of(one.node_id)][one.node_id, one.key_id] = one.public_key
        for lane in range(LANES):
            pins = tuple((pin.position, pin.lanes[lane]) for pin in self.notes.pins)
            recount = self.recount.lane(lane)
            yield LaneTask(
                *(self.directory, lane, self._files_of(lane), keys[lane], pins, recount),
                facts=self.market.head,
                marks=self.marks,
            )

    def _files_of(self, lane: int | None) -> tuple[RowFile, ...]:
        found = [file for file in map(log_file, self.files) if file and file.lane == lane]
        found.sort(key=lambda file: file.first)
        return tuple(
            RowFile(
                file.path, file.first, self.files[file.path].get("rows"), self.hashes.get(file.path)
            )
            for file in found
        )

    def _facts(self) -> Iterator[parquet.Row]:
        for file in self._files_of(None):
            columns = parquet.OF_MARKET[self.manifest["format"]]
            yield from rows_of(self.directory, file, columns, self.problems)

    # --- beside the logs --------------------------------------------------------------------

    def _check_side_files(self, log_key: str) -> None:
        if self._keys() != self.notes.keys(log_key):
            self.bad(KEYS_FILE, "other keys than those the log gives")
        cut = self.notes.pins[-1] if self.notes.pins else None
        here = {"position": cut.position, "sizes": [x.size for x in cut.lanes]} if cut else None
        if self.manifest.get("cut") != here:
            self.bad(MANIFEST_FILE, "says another cut than the last pin")
        if self.manifest.get("policy_versions") != sorted(self.notes.policy_versions):
            self.bad(MANIFEST_FILE, "says other policy versions than the log")
        self._check_epochs({pin.position for pin in self.notes.pins})

    def _check_epochs(self, pins: set[int]) -> None:
        for sealed in self.notes.sealed:
            if sealed.cut_position not in pins:
                what = f"epoch {sealed.epoch}: its cut {sealed.cut_position} is not a pin"
                self.bad("market", what, sealed.position)
        hashes = {sealed.epoch: sealed.file_sha256 for sealed in self.notes.sealed}
        for path in self.files:
            epoch, file = epoch_of(path), self.directory / path
            if epoch is not None and file.is_file():
                if epoch not in hashes:
                    self.bad(path, "no fact seals this epoch")
                elif parquet.sha256_of(file) != hashes[epoch]:
                    self.bad(path, "not the file that was sealed")
            if clients_of(path) is not None and file.is_file():
                self._check_clients(path, clients_of(path))
            if payout_of(path) is not None and payout_of(path) not in self.notes.roots:
                self.bad(path, "no fact gives this epoch a root")
        here = {epoch: hashes[epoch] for epoch in map(epoch_of, self.files) if epoch in hashes}
        if self.manifest.get("result_root") != result_root(here):
            self.bad(MANIFEST_FILE, "its result root is not that of the epochs")

    def _check_clients(self, path: str, epoch: int | None) -> None:
        """The sealed file, whose parts add up to the rewards that it tells."""
        sealed = next((one for one in self.notes.sealed if one.epoch == epoch), None)
        data = (self.directory / path).read_bytes()
        if sealed is None or sealed.clients_sha256 is None:
            self.bad(path, "no fact seals this file")
        elif sha256(data).hexdigest() != sealed.clients_sha256:
            self.bad(path, "not the file that was sealed")
        elif wrong := wrong_in(data, sealed.epoch, sealed.file_sha256):
            self.bad(path, wrong)


def _belongs(path: str) -> bool:
    """Whether a bundle has a file of this name."""
    by_name = log_file(path) or epoch_of(path) or payout_of(path) or clients_of(path)
    return by_name is not None or path in (CHECKPOINT_FILE, KEYS_FILE)
