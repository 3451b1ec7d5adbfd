"""One lane of an export walked: what a processor does for the verifier, without any other lane.

    every row its leaf, every leaf its chain, positions gapless, every pin  (ledger/tree/walk.py)
    every report signed by its node's key, next in its node's own chain, flagged exactly where it
    breaks a rule of its form
    every charge of a resource == what the signed rows give               (ledger/bundle/recount.py)

A node reports into one lane for ever, so lanes have nothing to tell each other: they are walked in
any order and anywhere that sees the files (`ledger/fan_out/executor.py`). What the facts say of a
lane goes in, what was found comes out.

With marks (`ledger/fan_out/marks.py`) a walk that ended in the middle goes on behind the last file
that it has walked whole. What a mark says is held against the log: the next row continues its
chain, and size, chain and root are those of the next pin, so no mark changes what is found of
these. That the rows before it were signed, and their charges right, is believed. No problem is:
where one shows after a mark, the lane is walked from its first row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from nacl.signing import VerifyKey

from domain.metering.report import NAME, genesis, lane_of, pae
from domain.nesting import read_json
from ledger.bundle import parquet
from ledger.bundle.recount import LaneRecount
from ledger.fan_out.fingerprint import auditing_code
from ledger.fan_out.marks import Marks
from ledger.log import report_form
from ledger.log.chain import genesis_usage, split_body, usage_leaf
from ledger.tree.checkpoint import is_signed
from ledger.tree.cut import LaneRecord
from ledger.tree.walk import RowWrong, Walk

_NAME = NAME.encode()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that differs. `where` is a log or a file; `position` is 0 where there is none."""

    where: str
    position: int
    what: str

    def __str__(self) -> str:
        at = f" position {self.position}" if self.position else ""
        return f"{self.where}{at}: {self.what}"


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file of a log: its path in the bundle, its first position, its rows as promised, and its
    SHA-256 as it lies there.
    """

    path: str
    first: int
    rows: object
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class LaneTask:
    """What the facts say of a lane. `pins`: (position of the fact, its record), in order.
    `facts`: the end of the chain of all facts, which decide keys, pins and recount. `marks`: where
    the walk says how far it is.
    """

    directory: Path
    lane: int
    files: tuple[RowFile, ...]
    keys: dict[tuple[str, str], bytes]  # public keys by node and key id
    pins: tuple[tuple[int, LaneRecord], ...]
    recount: LaneRecount
    facts: bytes = b""
    marks: Marks | None = None

    def __str__(self) -> str:
        return f"lane {self.lane} of {self.directory}"

    def mark(self) -> str:
        """The name of its mark: everything that decides how the lane is walked, the code too."""
        files = [[one.path, one.first, one.rows, one.sha256] for one in self.files]
        told = json.dumps([auditing_code(), self.facts.hex(), self.lane, files])
        return sha256(told.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class LaneFound:
    """What its walk came to; the problems in the order in which they showed. `walked_before`: how
    many of the reports an earlier run has walked.
    """

    lane: int
    reports: int
    nodes: int
    head: bytes
    root: bytes
    problems: tuple[Problem, ...]
    charges: int
    charges_unread: int
    walked_before: int = 0


def walk_lane(task: LaneTask) -> LaneFound:
    """Walk one lane to its end, or to the first row that is wrong."""
    work = _gone_on(task) or _LaneWalk(task)
    before = work.walk.position
    work.run()
    if before and work.problems:
        work, before = _LaneWalk(task), 0
        work.run()
    return LaneFound(
        task.lane,
        work.walk.position,
        len(work.nodes),
        work.walk.head,
        work.walk.tree.root(),
        tuple(work.problems),
        work.recount.counted,
        work.recount.unread,
        before,
    )


def _gone_on(task: LaneTask) -> _LaneWalk | None:
    """The walk as its mark says; None where there is none to go on from."""
    told = None if task.marks is None else task.marks.get(task.mark())
    if told is None:
        return None
    work = _LaneWalk(task)
    try:
        work.go_on(told)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return work


@dataclass(slots=True)
class _Node:
    """How far a node's own chain is."""

    seq: int
    prev: bytes


@dataclass(slots=True)
class _LaneWalk:
    task: LaneTask
    walk: Walk = field(init=False)
    problems: list[Problem] = field(default_factory=list)
    nodes: dict[str, _Node] = field(default_factory=dict)
    recount: LaneRecount = field(init=False)
    files: int = 0  # so many are walked
    _keys: dict[tuple[str, str], VerifyKey] = field(default_factory=dict)
    _here: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.walk = Walk(genesis_usage(self.task.lane))
        self.recount = self.task.recount.anew()

    def run(self) -> None:
        task, where = self.task, f"usage/{self.task.lane}"
        pins = self._pins()
        try:
            self._check_pinned(pins)
            for file in task.files[self.files :]:
                for row in rows_of(task.directory, file, parquet.USAGE, self.problems):
                    self._take(row)
                    if self.walk.position in pins:
                        self._check_pinned(pins)
                self.files += 1
                self._mark(file)
        except RowWrong as wrong:
            self.problems.append(Problem(where, wrong.position, wrong.what))
            return
        size = self.walk.position
        self._market(self.recount.end(size))
        due = task.pins[-1][1].size if task.pins else 0
        if size < due:
            self.problems.append(Problem(where, size + 1, f"missing: {due} reports are pinned"))
        elif size > due:
            self.problems.append(Problem(where, due + 1, "not under a pin"))

    def _pins(self) -> dict[int, list[tuple[int, LaneRecord]]]:
        """By the size that they pin; of those that say the same, the first."""
        found: dict[int, list[tuple[int, LaneRecord]]] = {}
        for pin in self.task.pins:
            same = found.setdefault(pin[1].size, [pin])
            if pin[1] != same[0][1]:
                same.append(pin)
        return found

    def _check_pinned(self, pins: dict[int, list[tuple[int, LaneRecord]]]) -> None:
        walk = self.walk
        for position, record in pins.get(walk.position, ()):
            if record.head != walk.head or record.root != walk.tree.root():
                raise RowWrong(
                    walk.position, f"the reports up to here are not those of the pin {position}"
                )

    def _market(self, told: Iterator[tuple[int, str]]) -> None:
        self.problems += [Problem("market", position, what) for position, what in told]

    # --- how far it is ------------------------------------------------------------------------

    def _mark(self, file: RowFile) -> None:
        """After a file, if it is still the one that was hashed; none of a lane with a problem."""
        marks = self.task.marks
        if marks is None or self.problems:
            return
        if parquet.sha256_of(self.task.directory / file.path) != file.sha256:
            return
        marks.put(self.task.mark(), self._told())

    def _told(self) -> Any:
        walk = self.walk
        return {
            "files": self.files,
            "position": walk.position,
            "head": walk.head.hex(),
            "peaks": [peak.hex() for peak in walk.tree.peaks],
            "nodes": {name: [node.seq, node.prev.hex()] for name, node in self.nodes.items()},
            "recount": self.recount.told(),
        }

    def go_on(self, told: Any) -> None:
        """From the beginning to where a mark says. Raises what a mark of another form raises."""
        walk = self.walk
        self.files, walk.position = int(told["files"]), int(told["position"])
        walk.head = bytes.fromhex(told["head"])
        walk.tree.size = walk.position
        walk.tree.peaks = [bytes.fromhex(peak) for peak in told["peaks"]]
        if len(walk.tree.peaks) != walk.position.bit_count():
            raise ValueError("not the peaks of a tree of this size")
        for node_id, (seq, prev) in told["nodes"].items():
            self.nodes[node_id] = _Node(int(seq), bytes.fromhex(prev))
        self.recount.go_on(told["recount"])

    # --- the rows -----------------------------------------------------------------------------

    def _take(self, row: parquet.Row) -> None:
        stored_lane, position, node_id, node_seq, name, body, leaf, chain, flags, received_us = row
        lane, due = self.task.lane, self.walk.position + 1
        if stored_lane != lane or not self._is_here(node_id):
            raise RowWrong(due, f"{node_id} does not report into this lane")
        if name != NAME or node_seq < 1:
            raise RowWrong(due, "not a usage report")
        computed = usage_leaf(lane, node_id, node_seq, body, _NAME)
        self.walk.step(position, computed, leaf, chain)
        signed = self._check_report(due, node_id, node_seq, body, flags)
        recount = self.recount
        if recount.waiting:
            self._market(recount.report(due, node_id, signed, flags, received_us))

    def _is_here(self, node_id: str) -> bool:
        if node_id in self._here:
            return True
        if lane_of(node_id) != self.task.lane:
            return False
        self._here.add(node_id)
        return True

    def _check_report(
        self, position: int, node_id: str, node_seq: int, body: bytes, flags: int
    ) -> bytes:
        """The bytes that the node signed."""
        try:
            signed, key_id, signature = split_body(body)
        except ValueError as error:
            raise RowWrong(position, str(error)) from None
        key = self._keys.get((node_id, key_id)) or self._key(position, node_id, key_id)
        message = pae(signed)
        if not is_signed(key, message, signature):
            raise RowWrong(position, f"not signed by the key {key_id!r} of {node_id}")
        node = self.nodes.get(node_id) or self._node(node_id, bytes(key))
        if node_seq != node.seq + 1:
            raise RowWrong(position, f"report {node_seq} of {node_id} follows report {node.seq}")
        told = report_form.read_if_valid(signed)
        if (told or said(signed)) != (node_id, node_seq, node.prev.hex()):
            raise RowWrong(position, f"report {node_seq} of {node_id} does not follow by its bytes")
        fault = report_form.flag_fault(flags, told)
        if fault is not None:
            raise RowWrong(position, fault)
        node.seq, node.prev = node_seq, sha256(message).digest()  # `report_hash` of what was signed
        return signed

    def _key(self, position: int, node_id: str, key_id: str) -> VerifyKey:
        public_key = self.task.keys.get((node_id, key_id))
        if public_key is None:
            raise RowWrong(position, f"no fact gives the key {key_id!r} of {node_id}")
        try:
            found = self._keys[node_id, key_id] = VerifyKey(public_key)
        except (TypeError, ValueError):
            what = f"not signed by the key {key_id!r} of {node_id}"
            raise RowWrong(position, what) from None
        return found

    def _node(self, node_id: str, public_key: bytes) -> _Node:
        """Its chain begins with the key that signed its first report."""
        found = self.nodes[node_id] = _Node(0, genesis(node_id, public_key))
        return found


def rows_of(
    directory: Path, file: RowFile, schema: object, problems: list[Problem]
) -> Iterator[parquet.Row]:
    """The rows of one file. Raises RowWrong where it cannot be read."""
    count = 0
    try:
        for row in parquet.read_log(directory / file.path, schema):
            yield row
            count += 1
    except parquet.FileDamaged as damage:
        raise RowWrong(file.first + count, str(damage)) from None
    if count != file.rows:
        problems.append(Problem(file.path, 0, f"{count} rows, the manifest says otherwise"))


def said(signed: bytes) -> tuple[object, object, object] | None:
    """Node, number and predecessor, as signed bytes tell them that may break a rule of the form."""
    try:
        told = read_json(signed)
        return told["node"], told["seq"], told["prev"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
