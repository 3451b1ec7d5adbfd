"""Receipts anybody can check offline: the C2SP `.tlog-proof` file of one fact or one usage report.

    report -> lane tree -> lane record -> lanes_root -> pin -> market tree -> signed checkpoint

A market fact needs the last two steps only. What the file says besides the C2SP lines stands in
`extra` as JSON and is not authenticated: `check` recomputes every hash of it from the stored bytes.
Pure: files are written by `ledger/tree/prove.py`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from domain.metering.report import LANES, pae
from domain.nesting import read_json
from domain.record import dataclass
from ledger.log.chain import market_leaf, split_body, usage_leaf
from ledger.tree import merkle
from ledger.tree.checkpoint import Checkpoint, NoteInvalid, VerifierKey, open_checkpoint, signed_by
from ledger.tree.cut import LaneRecord

FORMAT = "c2sp.org/tlog-proof@v1"
MARKET_FACT = "market-fact"
USAGE_REPORT = "usage-report"
PIN_NAME = "usage.pinned.v1"
PROOF_BYTES_MAX = 1 << 22


class ProofInvalid(ValueError):
    """The proof file does not show what it says; the message names the step that fails."""


@dataclass(frozen=True, slots=True)
class MarketEntry:
    """One fact of the market log as stored."""

    originator_id: UUID
    version: int
    name: str
    body: bytes

    @property
    def leaf(self) -> bytes:
        return market_leaf(self.originator_id, self.version, self.name, self.body)


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """One report of the usage log as stored; `body` = signed bytes, key id and signature."""

    lane: int
    position: int
    node_id: str
    node_seq: int
    name: str
    body: bytes

    @property
    def leaf(self) -> bytes:
        return usage_leaf(self.lane, self.node_id, self.node_seq, self.body, self.name.encode())


@dataclass(frozen=True, slots=True)
class LaneProof:
    """A report in its lane's tree, and the lane's record under `lanes_root`."""

    record: LaneRecord
    path: tuple[bytes, ...]
    record_path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A fact of the market log under a signed checkpoint, with a report under it or not."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: str
    entry: MarketEntry
    report: UsageEntry | None = None
    lane: LaneProof | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What a proof file has been shown to say."""

    checkpoint: Checkpoint
    position: int
    entry: MarketEntry
    report: UsageEntry | None

    def __str__(self) -> str:
        under = f"{self.checkpoint.origin} at {self.checkpoint.size} facts"
        if self.report is None:
            return f"{self.entry.name} is fact {self.position} of {under}"
        return (
            f"report {self.report.node_seq} of {self.report.node_id}, lane {self.report.lane}"
            f" position {self.report.position}, is pinned by fact {self.position} of {under}"
        )


def render(proof: Proof) -> str:
    """The `.tlog-proof` file."""
    extra = json.dumps(_extra(proof), sort_keys=True, separators=(",", ":")).encode()
    lines = [FORMAT, f"extra {_base64(extra)}", f"index {proof.index}", *map(_base64, proof.path)]
    return "\n".join(lines) + "\n\n" + proof.checkpoint


def check(text: str, key: VerifierKey, node_key: bytes | None = None) -> Checked:
    """Recompute every step from the stored bytes up to a checkpoint signed by `key`.

    With the node's public key its signature is checked too. No network, no database.
    Raises ProofInvalid, naming the first step that fails.
    """
    proof = parse(text)
    try:
        checkpoint = open_checkpoint(proof.checkpoint, key)
    except NoteInvalid as invalid:
        raise ProofInvalid(f"checkpoint: {invalid}") from None
    if not merkle.verify_inclusion(
        proof.index, checkpoint.size, proof.entry.leaf, proof.path, checkpoint.root
    ):
        raise ProofInvalid(f"fact {proof.index + 1} is not in the checkpoint's tree")
    if proof.report is not None:
        assert proof.lane is not None
        _check_lane(proof.entry, proof.report, proof.lane)
        if node_key is not None:
            _check_signature(proof.report, node_key)
    return Checked(checkpoint, proof.index + 1, proof.entry, proof.report)


def parse(text: str) -> Proof:
    """Read a proof file; nothing is verified but its form. Raises ProofInvalid."""
    if len(text) > PROOF_BYTES_MAX:
        raise ProofInvalid("form: too large")
    head, blank, checkpoint = text.partition("\n\n")
    lines = head.split("\n")
    if not blank or len(lines) < 3 or lines[0] != FORMAT:
        raise ProofInvalid(f"form: not a {FORMAT} file")
    if not lines[1].startswith("extra ") or not lines[2].startswith("index "):
        raise ProofInvalid("form: needed an extra line and an index line")
    try:
        index, path = _number(lines[2].removeprefix("index ")), tuple(map(_hash, lines[3:]))
        extra = read_json(_unbase64(lines[1].removeprefix("extra ")))
        proof = _proof(extra, index, path, checkpoint)
        _ = proof.entry.leaf, proof.report and proof.report.leaf  # text that is not UTF-8 has none
        return proof
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ProofInvalid(f"form: {error!r}") from None


def pin_record(entry: MarketEntry, lane: int) -> tuple[LaneRecord, bytes]:
    """One lane's record and the `lanes_root`, read from the stored bytes of a pin."""
    if entry.name != PIN_NAME:
        raise ProofInvalid(f"{entry.name} is not a pin")
    try:
        body = read_json(entry.body)
        lanes = [row for row in body["lanes"] if int(row["lane"]) == lane]
        (row,) = lanes
        size, head, root = int(row["size"]), bytes.fromhex(row["head"]), bytes.fromhex(row["root"])
        return LaneRecord(lane, size, head, root), bytes.fromhex(body["lanes_root"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ProofInvalid(f"pin: {error!r}") from None


# --- the steps below the market log ----------------------------------------------------------


def _check_lane(pin: MarketEntry, report: UsageEntry, lane: LaneProof) -> None:
    record, lanes_root = pin_record(pin, report.lane)
    if record != lane.record:
        raise ProofInvalid(f"lane {report.lane}: the pin holds another record")
    if not merkle.verify_inclusion(
        record.lane, LANES, merkle.leaf(record.bytes), lane.record_path, lanes_root
    ):
        raise ProofInvalid(f"lane {report.lane}: its record is not under the pin's lanes_root")
    if not merkle.verify_inclusion(
        report.position - 1, record.size, report.leaf, lane.path, record.root
    ):
        raise ProofInvalid(f"report: not at position {report.position} of lane {report.lane}")


def _check_signature(report: UsageEntry, node_key: bytes) -> None:
    try:
        signed, _, signature = split_body(report.body)
    except ValueError as error:
        raise ProofInvalid(f"report: {error}") from None
    if not signed_by(node_key, pae(signed), signature):
        raise ProofInvalid("report: not signed by this node key")


# --- extra -----------------------------------------------------------------------------------


def _extra(proof: Proof) -> dict[str, Any]:
    entry = proof.entry
    extra: dict[str, Any] = {
        "kind": MARKET_FACT,
        "entry": {
            "originator_id": str(entry.originator_id),
            "version": entry.version,
            "name": entry.name,
            "body": _base64(entry.body),
        },
    }
    if proof.report is None:
        return extra
    assert proof.lane is not None
    report, lane = proof.report, proof.lane
    return extra | {
        "kind": USAGE_REPORT,
        "report": {
            "lane": report.lane,
            "position": report.position,
            "node_id": report.node_id,
            "node_seq": report.node_seq,
            "name": report.name,
            "body": _base64(report.body),
        },
        "lane": {
            "size": lane.record.size,
            "head": _base64(lane.record.head),
            "root": _base64(lane.record.root),
            "path": [_base64(part) for part in lane.path],
            "record_path": [_base64(part) for part in lane.record_path],
        },
    }


def _proof(extra: Any, index: int, path: tuple[bytes, ...], checkpoint: str) -> Proof:
    entry = MarketEntry(
        UUID(extra["entry"]["originator_id"]),
        _integer(extra["entry"]["version"]),
        str(extra["entry"]["name"]),
        _unbase64(extra["entry"]["body"]),
    )
    if extra["kind"] == MARKET_FACT:
        return Proof(index, path, checkpoint, entry)
    if extra["kind"] != USAGE_REPORT:
        raise ValueError("an unknown kind of proof")
    report, lane = extra["report"], extra["lane"]
    if not 0 <= _integer(report["lane"]) < LANES:
        raise ValueError("lane")
    record = LaneRecord(
        report["lane"], _integer(lane["size"]), _hash(lane["head"]), _hash(lane["root"])
    )
    return Proof(
        index,
        path,
        checkpoint,
        entry,
        UsageEntry(
            report["lane"],
            _integer(report["position"]),
            str(report["node_id"]),
            _integer(report["node_seq"]),
            str(report["name"]),
            _unbase64(report["body"]),
        ),
        LaneProof(record, _hashes(lane["path"]), _hashes(lane["record_path"])),
    )


def _hashes(values: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(_hash(value) for value in values)


def _hash(text: str) -> bytes:
    value = _unbase64(text)
    if len(value) != merkle.HASH:
        raise ValueError("a hash has 32 bytes")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("an integer is needed")
    return value


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or str(int(text)) != text:
        raise ValueError(f"not a number: {text[:40]!r}")
    return int(text)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    if _base64(data) != text:
        raise ValueError("not canonical base64")
    return data
