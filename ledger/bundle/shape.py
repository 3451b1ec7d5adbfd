"""What an export bundle looks like, shared by its writer and its reader. No database, no network.

manifest.json   what is there, and each file's SHA-256, bytes and rows
checkpoint      the signed note over the market log
keys.json       the log's verifier key; the nodes' keys, by the market position that gave them
log/            market-<first>-<last>.parquet, usage-<lane>-<first>-<last>.parquet
epochs/         <n>.json, the canonical epoch files
payouts/        <n>.json, the payout file of each epoch that has a root
clients/        <n>.json, whose work the rewards of an epoch pay for (`domain/epochs/clients.py`)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from domain.authority.log_key import FACT as LOG_KEY_FACT
from domain.authority.log_key import in_turn
from domain.metering.report import LANES
from domain.nesting import read_json
from ledger.bundle.authority import FACTS as AUTHORITY_FACTS
from ledger.bundle.authority import POLICY_FACT, Authority
from ledger.tree import merkle
from ledger.tree.cut import LaneRecord
from ledger.tree.log_keys import Rotation
from ledger.tree.proof import PIN_NAME

FORMAT = 2
"""In format 1 the facts had no time at which they were recorded."""
FORMATS = (1, FORMAT)
"""Those that are read."""
MANIFEST_FILE = "manifest.json"
CHECKPOINT_FILE = "checkpoint"
KEYS_FILE = "keys.json"
KEY_FACTS = ("node.join_requested.v1", "node.key_confirmed.v1", "node.key_rotated.v1")
SEALED_FACT = "epoch.sealed.v1"
ROOT_FACT = "payout.root_built.v1"

_MARKET_FILE = re.compile(r"log/market-([1-9][0-9]{0,17})-([1-9][0-9]{0,17})\.parquet")
_LANE_FILE = re.compile(r"log/usage-([0-9]{1,2})-([1-9][0-9]{0,17})-([1-9][0-9]{0,17})\.parquet")
_EPOCH_FILE = re.compile(r"(epochs|payouts|clients)/([1-9][0-9]{0,17})\.json")


def lane_prefix(lane: int) -> str:
    """The start of the names of a lane's files."""
    return f"log/usage-{lane}"


def pretty(value: Any) -> bytes:
    """JSON for people and for diffs."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """The manifest with the SHA-256 of all that it says: a flipped byte of it is seen, too."""
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    return pretty({**content, "sha256": sha256(pretty(content)).hexdigest()})


def result_root(hashes: Mapping[int, str]) -> str:
    """One hash for what all these epochs paid: RFC 6962 over number:8 || SHA-256 of the epoch file,
    in order of epochs; hex.
    """
    entries = [epoch.to_bytes(8, "big") + bytes.fromhex(hashes[epoch]) for epoch in sorted(hashes)]
    return merkle.root_of([merkle.leaf(entry) for entry in entries]).hex()


class LoadRefused(Exception):
    """This export and this database do not go together; the message says why. Nothing changed."""


class BodyWrong(ValueError):
    """A fact that the audit reads has not the fields it must have."""


@dataclass(frozen=True, slots=True)
class NodeKey:
    """A node's public key, and the first fact that gave it."""

    node_id: str
    key_id: str
    public_key: bytes
    position: int


@dataclass(frozen=True, slots=True)
class PinFact:
    """A `UsagePinned` fact, read from its stored bytes."""

    position: int
    lanes: tuple[LaneRecord, ...]
    lanes_root: bytes


@dataclass(frozen=True, slots=True)
class Sealed:
    """What an `EpochSealed` fact commits to outside the log."""

    position: int
    epoch: int
    cut_position: int
    file_sha256: str
    clients_sha256: str | None


@dataclass(slots=True)
class MarketNotes:
    """What the audit needs to know of the facts, collected while they pass."""

    pins: list[PinFact] = field(default_factory=list)
    node_keys: dict[tuple[str, str], NodeKey] = field(default_factory=dict)
    sealed: list[Sealed] = field(default_factory=list)
    policy_versions: set[int] = field(default_factory=set)
    roots: dict[int, str] = field(default_factory=dict)  # of payouts, by epoch
    authority: Authority = field(default_factory=Authority)
    log_keys: list[Rotation] = field(default_factory=list)

    def take(self, position: int, name: str, body: bytes) -> None:
        """Look at one fact. Raises BodyWrong."""
        try:
            if name in AUTHORITY_FACTS:
                self.authority.take(position, name, read_json(body))
            if name == POLICY_FACT:
                self.policy_versions.add(int(read_json(body)["version"]))
            elif name == LOG_KEY_FACT:
                self._take_log_key(Rotation.of(position, read_json(body)))
            elif name == PIN_NAME:
                self.pins.append(_pin(position, read_json(body)))
            elif name in KEY_FACTS:
                self._take_key(position, read_json(body))
            elif name == SEALED_FACT:
                self.sealed.append(_sealed(position, read_json(body)))
            elif name == ROOT_FACT:
                told = read_json(body)
                self.roots[int(told["epoch"])] = str(told["root"])
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise BodyWrong(f"{name}: {error!r}") from None

    def _take_log_key(self, one: Rotation) -> None:
        announced = [rotation.new_key.hex() for rotation in self.log_keys]
        if not in_turn(one.number, one.old_key.hex(), announced):
            raise ValueError("a rotation out of turn")
        self.log_keys.append(one)

    def _take_key(self, position: int, body: dict[str, Any]) -> None:
        key = (str(body["node_id"]), str(body["key_id"]))
        "".join(key).encode()  # a name that is no text is none of a node
        public = bytes.fromhex(body["public_key"])
        known = self.node_keys.setdefault(key, NodeKey(*key, public, position))
        if known.public_key != public:
            raise ValueError(f"another key under the id given at position {known.position}")

    def keys(self, log_key: str) -> dict[str, Any]:
        """The content of keys.json."""
        nodes = sorted(self.node_keys.values(), key=lambda key: (key.position, key.key_id))
        return {
            "log": log_key,
            "receipts": None,
            "witnesses": [],
            "nodes": [
                {
                    "node_id": key.node_id,
                    "key_id": key.key_id,
                    "public_key": key.public_key.hex(),
                    "position": key.position,
                }
                for key in nodes
            ],
        }


def _pin(position: int, body: dict[str, Any]) -> PinFact:
    lanes = tuple(
        LaneRecord(
            int(row["lane"]),
            int(row["size"]),
            bytes.fromhex(row["head"]),
            bytes.fromhex(row["root"]),
        )
        for row in body["lanes"]
    )
    if [lane.lane for lane in lanes] != list(range(LANES)):
        raise ValueError("not the 64 lanes in order")
    if any(
        len(lane.head) != 32 or len(lane.root) != 32 or not 0 <= lane.size < 1 << 63
        for lane in lanes
    ):
        raise ValueError("not a lane record")
    return PinFact(position, lanes, bytes.fromhex(body["lanes_root"]))


def _sealed(position: int, body: dict[str, Any]) -> Sealed:
    clients = body.get("clients_sha256")
    return Sealed(
        position,
        int(body["epoch"]),
        int(body["cut_position"]),
        str(body["file_sha256"]),
        None if clients is None else str(clients),
    )


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file of a log by its name; `lane` is None for the market log."""

    path: str
    lane: int | None
    first: int
    last: int


def log_file(path: str) -> LogFile | None:
    """What a path of the manifest is, if it is a file of a log."""
    if match := _MARKET_FILE.fullmatch(path):
        return LogFile(path, None, int(match[1]), int(match[2]))
    match = _LANE_FILE.fullmatch(path)
    if match and int(match[1]) < LANES:
        return LogFile(path, int(match[1]), int(match[2]), int(match[3]))
    return None


def epoch_of(path: str) -> int | None:
    """The number of the epoch whose file this path is."""
    match = _EPOCH_FILE.fullmatch(path)
    return int(match[2]) if match and match[1] == "epochs" else None


def payout_of(path: str) -> int | None:
    """The number of the epoch whose payout file this path is."""
    match = _EPOCH_FILE.fullmatch(path)
    return int(match[2]) if match and match[1] == "payouts" else None


def clients_of(path: str) -> int | None:
    """The number of the epoch whose file by client this path is."""
    match = _EPOCH_FILE.fullmatch(path)
    return int(match[2]) if match and match[1] == "clients" else None
