"""Writes the export bundle: both logs under one signed checkpoint, for auditors without a server.

    rows of the market log  == 1 .. size of the checkpoint
    rows of a usage lane    == 1 .. its size in the cut, the last pin under that checkpoint

so that every row of the bundle is committed to by the one signature in it. Every row is checked as
it is read; a bundle is never written over a row that fails. Books and billing files are made from
the same facts elsewhere; this writes what cannot be recomputed.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from ledger.bundle import parquet
from ledger.bundle.shape import (
    CHECKPOINT_FILE,
    FORMAT,
    KEYS_FILE,
    MANIFEST_FILE,
    BodyWrong,
    MarketNotes,
    lane_prefix,
    manifest_bytes,
    pretty,
    result_root,
)
from ledger.log import lane_store
from ledger.log.chain import GENESIS_MARKET, genesis_usage
from ledger.tree import rows, trees
from ledger.tree.checkpoint import Checkpoint, VerifierKey
from ledger.tree.cut import LaneRecord
from ledger.tree.log_keys import open_by_any
from ledger.tree.trees import rotations
from ledger.tree.walk import RowWrong, Walk

Connection = psycopg.Connection[Any]


class NothingSigned(Exception):
    """There is no signed checkpoint to export under: let the followers run, then sign."""


class ExportRefused(Exception):
    """A row of the log is not what its hashes say: `log`, `position`, `what`."""

    def __init__(self, log: str, position: int, what: str) -> None:
        super().__init__(f"{log} position {position}: {what}")
        self.log = log
        self.position = position
        self.what = what


@dataclass(frozen=True, slots=True)
class Exported:
    """What a bundle holds."""

    checkpoint: Checkpoint
    cut_position: int | None
    facts: int
    reports: int
    files: tuple[parquet.FileInfo, ...]


def export_bundle(
    conninfo: str,
    directory: Path,
    key: VerifierKey,
    code_version: str,
    *,
    last: int | None = None,
    epochs: Mapping[int, bytes] | None = None,
    payouts: Mapping[int, bytes] | None = None,
    clients: Mapping[int, bytes] | None = None,
) -> Exported:
    """Write the bundle into a new directory, under the latest checkpoint of at most `last` facts.

    `epochs` are canonical epoch files by number, `payouts` payout files and `clients` files that
    tell whose work the rewards pay for; those whose epoch the facts seal, and give a root, are
    copied. The directory appears when it is complete and not
    before. Raises NothingSigned, NoteInvalid when the checkpoint is not `key`'s, ExportRefused, and
    FileExistsError.
    """
    if directory.exists():
        raise FileExistsError(f"{directory} is there already")
    part = directory.with_name(f".{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        with psycopg.connect(conninfo, autocommit=True) as conn, _one_snapshot(conn):
            signed = trees.latest_checkpoint(conn, last)
            if signed is None:
                raise NothingSigned
            beside = {"epochs": epochs or {}, "payouts": payouts or {}, "clients": clients or {}}
            made = _write(conn, part, signed[1], key, code_version, beside)
        part.rename(directory)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


@contextmanager
def _one_snapshot(conn: Connection) -> Generator[None, None, None]:
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def _write(
    conn: Connection,
    root: Path,
    note: str,
    key: VerifierKey,
    code_version: str,
    beside: Mapping[str, Mapping[int, bytes]],
) -> Exported:
    checkpoint, key = open_by_any(note, key, rotations(conn))
    notes = MarketNotes()
    market = _market_rows(conn, checkpoint, notes)
    files = parquet.write_log(root, "log/market", parquet.MARKET, market)
    cut = notes.pins[-1] if notes.pins else None
    for record in cut.lanes if cut else ():
        usage = _usage_rows(conn, record)
        files += parquet.write_log(root, lane_prefix(record.lane), parquet.USAGE, usage)
    files.append(_file(root, CHECKPOINT_FILE, note.encode()))
    files.append(_file(root, KEYS_FILE, pretty(notes.keys(str(key)))))
    # What was sealed, or got a root, after the head is not part of it.
    hashes = {x.epoch: x.file_sha256 for x in notes.sealed if x.epoch in beside["epochs"]}
    told = {x.epoch for x in notes.sealed if x.clients_sha256 is not None}
    for folder, known in (
        ("epochs", hashes.keys()),
        ("payouts", notes.roots.keys()),
        ("clients", told),
    ):
        for number in sorted(known & beside[folder].keys()):
            files.append(_file(root, f"{folder}/{number}.json", beside[folder][number]))
    manifest = {
        "format": FORMAT,
        "origin": checkpoint.origin,
        "first": 1,
        "last": checkpoint.size,
        "cut": {"position": cut.position, "sizes": [x.size for x in cut.lanes]} if cut else None,
        "checkpoint": {"size": checkpoint.size, "root": checkpoint.root.hex()},
        "code_version": code_version,
        "policy_versions": sorted(notes.policy_versions),
        "result_root": result_root(hashes),
        "files": [asdict(each) for each in files],
    }
    (root / MANIFEST_FILE).write_bytes(manifest_bytes(manifest))
    return Exported(
        checkpoint,
        cut.position if cut else None,
        checkpoint.size,
        sum(record.size for record in cut.lanes) if cut else 0,
        tuple(files),
    )


def _file(root: Path, name: str, content: bytes) -> parquet.FileInfo:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return parquet.info(root, path, 0)


def _market_rows(
    conn: Connection, checkpoint: Checkpoint, notes: MarketNotes
) -> Iterator[parquet.Row]:
    walk = Walk(GENESIS_MARKET)
    try:
        for position, stream, version, name, body, *rest in rows.market(
            conn, walk, checkpoint.size
        ):
            notes.take(position, name, body)
            yield position, stream.bytes, version, name, body, *rest
    except RowWrong as wrong:
        raise ExportRefused("market", wrong.position, wrong.what) from None
    except BodyWrong as wrong:
        raise ExportRefused("market", walk.position, str(wrong)) from None
    if walk.position != checkpoint.size:
        raise ExportRefused("market", walk.position + 1, "missing, though it was signed")
    if walk.tree.root() != checkpoint.root:
        raise ExportRefused("market", walk.position, "these facts have not the root that is signed")


def _usage_rows(conn: Connection, record: LaneRecord) -> Iterator[parquet.Row]:
    log, walk = f"usage/{record.lane}", Walk(genesis_usage(record.lane))
    try:
        # A transaction within the snapshot's own would hide what the writer of the rows raises.
        with (
            lane_store.at(conn, record.lane) as there,
            nullcontext() if there is conn else there.transaction(),
        ):
            yield from rows.usage(there, walk, record.lane, record.size)
    except RowWrong as wrong:
        raise ExportRefused(log, wrong.position, wrong.what) from None
    if walk.position != record.size:
        raise ExportRefused(log, walk.position + 1, "missing, though it was pinned")
    if walk.head != record.head or walk.tree.root() != record.root:
        raise ExportRefused(log, walk.position, "these reports are not those that were pinned")


def read_epoch_files(folder: Path, ending: str = ".json") -> dict[int, bytes]:
    """The files `<n>.json` of a folder, or `<n>` with another ending, by number."""
    names = {path: path.name.removesuffix(ending) for path in sorted(folder.glob(f"*{ending}"))}
    return {int(name): path.read_bytes() for path, name in names.items() if name.isdecimal()}
