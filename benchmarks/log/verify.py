"""`tallystick audit verify`: reports of 20 rows walked a second, by each executor.

    python -m benchmarks.log.verify            full: 96,000 reports, some 50 s
    python -m benchmarks.log.verify --short    19,200
    python -m benchmarks.log.verify --tiny     64: whether it runs at all

A made-up export with a fact for each node's key, one pin over all 64 lanes and a signed head, as
`audit export` writes it; the bytes and signatures are real. Measured is the whole command, market
log and file hashes included. One digest over all lanes must come of every executor.

There is no peer. The limit is the Ed25519 signatures alone, one key after the other, on one core.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from nacl.signing import SigningKey, VerifyKey

from benchmarks.log.reports import BenchNode, bench_node, reports
from benchmarks.size import Size, size_asked
from domain.metering import report
from domain.metering.report import LANES, lane_of
from ledger.bundle import parquet
from ledger.bundle.shape import (
    CHECKPOINT_FILE,
    FORMAT,
    KEYS_FILE,
    MANIFEST_FILE,
    MarketNotes,
    lane_prefix,
    manifest_bytes,
    pretty,
    result_root,
)
from ledger.bundle.verify import VerifyReport, verify_bundle
from ledger.fan_out.choice import opened
from ledger.fan_out.executor import Executor
from ledger.log.chain import (
    GENESIS_MARKET,
    chain,
    genesis_usage,
    market_leaf,
    stored_body,
    usage_leaf,
)
from ledger.tree.checkpoint import Checkpoint, VerifierKey, sign_note
from ledger.tree.cut import LaneRecord, lanes_tree
from ledger.tree.proof import PIN_NAME
from ledger.tree.walk import Walk

ROWS = 20
ORIGIN = "benchmark.example/log"
SIGNER = SigningKey(bytes(32))
AT_US = 1_790_000_000_000_000
PER_CORE, TWO_OF_SERIAL = 18_000, 1.9
"""Reports a second that are wanted of one core; of two processes, as a multiple of serial."""


class Numbers(NamedTuple):
    nodes: int
    reports_each: int


SIZES = {Size.FULL: Numbers(640, 150), Size.SHORT: Numbers(640, 30), Size.TINY: Numbers(64, 1)}
EXECUTORS = ("serial", "processes:2")
TURNS = 3


# --- a made-up export --------------------------------------------------------------------------


def write_bundle(folder: Path, nodes: int, reports_each: int) -> None:
    """An export of so many nodes with so many reports each, and nothing but what they need."""
    (folder / "log").mkdir(parents=True)
    by_lane: list[list[BenchNode]] = [[] for _ in range(LANES)]
    for node in map(bench_node, range(nodes)):
        by_lane[lane_of(node.id)].append(node)
    files, records = [], []
    for lane, some in enumerate(by_lane):
        walk = Walk(genesis_usage(lane))
        rows = _lane(walk, lane, some, reports_each)
        files += parquet.write_log(folder, lane_prefix(lane), parquet.USAGE, rows)
        records.append(LaneRecord(lane, walk.position, walk.head, walk.tree.root()))
    notes, market = MarketNotes(), Walk(GENESIS_MARKET)
    facts = _facts([node for some in by_lane for node in some], records)
    files += parquet.write_log(
        folder, "log/market", parquet.MARKET, _market(market, notes, list(facts))
    )
    head = Checkpoint(ORIGIN, market.position, market.tree.root())
    _write_beside(folder, head, notes, files)


def _lane(
    walk: Walk, lane: int, nodes: list[BenchNode], reports_each: int
) -> Iterator[parquet.Row]:
    streams = [(node, reports(node, ROWS)) for node in nodes]
    for _ in range(reports_each):
        for node, stream in streams:
            for one in islice(stream, 1):
                body = stored_body(one.body, node.key_id, one.signature)
                leaf = usage_leaf(lane, node.id, one.seq, body, report.NAME.encode())
                position = _appended(walk, leaf)
                yield (
                    *(lane, position, node.id, one.seq, report.NAME, body, leaf),
                    *(walk.head, 0, AT_US),
                )


def _appended(walk: Walk, leaf: bytes) -> int:
    walk.step(walk.position + 1, leaf, leaf, chain(walk.head, leaf))
    return walk.position


def _facts(nodes: list[BenchNode], records: list[LaneRecord]) -> Iterator[tuple[str, bytes]]:
    for node in nodes:
        told = {"node_id": node.id, "key_id": node.key_id, "public_key": node.public_key.hex()}
        yield "node.join_requested.v1", json.dumps(told).encode()
    lanes = [
        {"lane": one.lane, "size": str(one.size), "head": one.head.hex(), "root": one.root.hex()}
        for one in records
    ]
    root = lanes_tree(tuple(records)).root().hex()
    yield PIN_NAME, json.dumps({"lanes": lanes, "lanes_root": root}).encode()


def _market(
    walk: Walk, notes: MarketNotes, facts: list[tuple[str, bytes]]
) -> Iterator[parquet.Row]:
    for name, body in facts:
        stream = UUID(int=walk.position + 1)
        leaf = market_leaf(stream, 1, name, body)
        position = _appended(walk, leaf)
        notes.take(position, name, body)
        yield position, stream.bytes, 1, name, body, leaf, walk.head, AT_US


def _write_beside(
    folder: Path, head: Checkpoint, notes: MarketNotes, files: list[parquet.FileInfo]
) -> None:
    key = VerifierKey(ORIGIN, bytes(SIGNER.verify_key))
    beside = {
        CHECKPOINT_FILE: sign_note(head.text, ORIGIN, SIGNER).encode(),
        KEYS_FILE: pretty(notes.keys(str(key))),
    }
    for name, content in beside.items():
        (folder / name).write_bytes(content)
        files.append(parquet.info(folder, folder / name, 0))
    cut = notes.pins[-1]
    manifest = {
        "format": FORMAT,
        "origin": ORIGIN,
        "first": 1,
        "last": head.size,
        "cut": {"position": cut.position, "sizes": [one.size for one in cut.lanes]},
        "checkpoint": {"size": head.size, "root": head.root.hex()},
        "code_version": "benchmark",
        "policy_versions": [],
        "result_root": result_root({}),
        "files": [asdict(one) for one in files],
    }
    (folder / MANIFEST_FILE).write_bytes(manifest_bytes(manifest))


# --- measuring ---------------------------------------------------------------------------------


def run(size: Size) -> dict[str, Any]:
    """Reports a second of each executor, all with one digest."""
    nodes, each = SIZES[size]
    with tempfile.TemporaryDirectory(prefix="tally") as made:
        folder = Path(made) / "bundle"
        write_bundle(folder, nodes, each)
        found = {name: _verified(name, folder) for name in EXECUTORS}
        limit = _signatures(folder)
    digests = {one.pop("digest") for one in found.values()}
    assert len(digests) == 1, found
    serial = found["serial"]["reports_per_second"]
    return {
        "figure": f"audit verify, reports of {ROWS} rows a core >= {PER_CORE:,}/s;"
        f" two processes >= {TWO_OF_SERIAL} x serial",
        "reports": nodes * each,
        "executors": found,
        "limit_signatures_per_second": limit,
        "of_limit": round(serial / limit, 3),
        "two_processes_of_serial": round(found["processes:2"]["reports_per_second"] / serial, 2),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _verified(name: str, folder: Path) -> dict[str, Any]:
    """The middle of some turns: in its first one a process imports what it needs."""
    with opened(name) as executor:
        turns = sorted(
            (_turn(executor, folder) for _ in range(TURNS)), key=lambda one: one["seconds"]
        )
    assert len({one["digest"] for one in turns}) == 1, turns
    return turns[len(turns) // 2] | {"turns": [one["seconds"] for one in turns]}


def _turn(executor: Executor, folder: Path) -> dict[str, Any]:
    began, used = time.perf_counter(), time.process_time()
    found: VerifyReport = verify_bundle(folder, executor=executor)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    assert found.ok, found
    return {
        "digest": found.digest,
        "seconds": round(seconds, 2),
        "cpu_seconds_here": round(cpu, 2),
        "reports_per_second": round(found.reports / seconds),
    }


def _signatures(folder: Path) -> int:
    """Signatures of one lane's reports checked a second, and nothing else."""
    node = bench_node(0)
    key = VerifyKey(node.public_key)
    count = min(20_000, sum(1 for _ in folder.rglob("*.parquet")) * 100)
    some = [(report.pae(one.body), one.signature) for one in islice(reports(node, ROWS), count)]
    began = time.process_time()
    for signed, signature in some:
        key.verify(signed, signature)
    return round(count / (time.process_time() - began))


def main() -> None:
    json.dump(run(size_asked(__doc__)), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
