"""One epoch of a million nodes, from ten million usage rows to the payout root.

    python -m benchmarks.epochs.settle            full: 1,000,000 nodes, 10,000,000 rows, some
    minutes
    python -m benchmarks.epochs.settle --short    20,000 nodes, 200,000 rows
    python -m benchmarks.epochs.settle --tiny     640 nodes: whether it runs at all

No database: the cut is made up, the same on every machine, and its rows lie in files by lane. What
a seal pays to read its cut from the views is not in it (`projections/epochs/cut_rows.py`).
Conditions:

- 64 lanes, a file of columns each; a row is a node, one of three funding sources, credits burned,
  GPU time and attested time; every node has an account and an address of its own, the worst case
- the stages one after the other; then lane by lane, from the lanes' files to the root: serial, and
  by 1, 2 and 4 processes with rows in another order; all must come to one root, which is written
  down here
- garbage collection waits, as it does in the job that seals

- peers: DuckDB for the sums, from Parquet; for the tree a leaf at a time through `eth_abi`, as the
  JavaScript library does it, on some of the leaves
- limits: the rows read and not added up; one multiplication and division a node and pool, sorted;
  the file's bytes hashed and written; the tree's hashes of ready bytes
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import eth_abi.abi as eth_abi
import numpy as np
import sha3
from numpy.typing import NDArray

from api.process.collecting import collecting_later
from benchmarks.epochs.lane_totals import (
    FIELDS,
    SUMS,
    Column,
    LaneTotals,
    NodeFacts,
    lane_totals,
    node_cuts,
    totals,
    write_lane,
)
from benchmarks.size import Size, size_asked
from contracts.payout_tree import PAYOUT_ENCODING, StandardTree, keccak256, payout_tree
from domain.epochs.epoch_file import epoch_file
from domain.epochs.lanes import Map, settle_lanes
from domain.epochs.policy import PolicyPublished, first_policy
from domain.epochs.reward_terms import REWARD_TERMS, Rated
from domain.epochs.settlement import Cut, CutHead, NodeCut, Openings, Outcome, Settlement, settle
from ledger.fan_out.choice import opened
from ledger.fan_out.executor import Executor, Serial
from ledger.fan_out.folder import Folder

LANES = 64
SOURCES = ("burned", "cash", "grant.start")
CHAIN_ID, DISTRIBUTOR = 8453, "0x" + "d1" * 20
PEER_LEAVES = 20_000
CUT_TO_ROOT_SECONDS, SHARES_AND_TREE_SECONDS = 60.0, 15.0
WEEK_US = 604_800_000_000


@dataclass(frozen=True, slots=True)
class Epoch:
    """How large a made-up epoch is."""

    nodes: int
    rows: int


class Numbers(NamedTuple):
    """`processes`: by how many it is settled lane by lane, one after the other."""

    epoch: Epoch
    processes: tuple[int, ...]


SIZES = {
    Size.FULL: Numbers(Epoch(1_000_000, 10_000_000), processes=(1, 2, 4)),
    Size.SHORT: Numbers(Epoch(20_000, 200_000), processes=(1, 2, 4)),
    Size.TINY: Numbers(Epoch(640, 6_400), processes=(1,)),
}
FULL = SIZES[Size.FULL].epoch
GOLDEN = {
    Size.FULL: "91579c917d84a53ce3686c386c9879e49ba5cea576769bc7339eb2b7d1152b53a3823d1130f4054f",
    Size.SHORT: "b0e037d7e5624023735d1d0b56559ff2dd5e57f02d3d46a1abff5cc7432cd7c2e1be31edc76e0f8b",
    Size.TINY: "f2d630e80a2748647216065ab7e731c3adbab7f7e6e2b76c62e9bda4cc8e09765b99e519e1149d4a",
}
"""How the epoch file's hash begins, then the root: on every machine, by every executor."""


def policy() -> PolicyPublished:
    """A new network's, with every cap and rating in use."""
    first = first_policy("operator", 0)
    terms = replace(
        REWARD_TERMS,
        class_ratings=(Rated("development", 400_000),),
        release_tau=7,
        release_cap=164_400_000_000,
        availability_cap_per_gpu_hour=50_000_000,
    )
    told = {one.name: getattr(first, one.name) for one in fields(first)}
    return PolicyPublished(**{**told, "rewards": terms})


# --- the cut ----------------------------------------------------------------------------------


def drawn(seed: int, count: int, below: int) -> Column:
    """Numbers below a bound, the same on every machine: splitmix64 of a counter."""
    return mixed(np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32), below)


def mixed(counters: NDArray[np.uint64], below: int) -> Column:
    """The number below a bound that each counter has."""
    state = counters * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) % np.uint64(below)).astype(np.int64)


def lane_rows(size: Epoch, lane: int) -> dict[str, Column]:
    """The usage rows of one lane."""
    count, seed = size.rows // LANES, lane * 8
    return {
        "node": drawn(seed, count, size.nodes // LANES),
        "source": drawn(seed + 1, count, len(SOURCES)),
        "burned": drawn(seed + 2, count, 3_000_000),
        "gpu_us": drawn(seed + 3, count, 3_600_000_000),
        "attested_us": drawn(seed + 4, count, 7_200_000_000),
    }


def write_lanes(folder: Path, size: Epoch, shuffle: int | None = None) -> list[Path]:
    """A file for each lane; `shuffle` seeds another order of the rows."""
    files = []
    for lane in range(LANES):
        rows = lane_rows(size, lane)
        if shuffle is not None:
            order = np.argsort(drawn(shuffle + lane, size.rows // LANES, 2**62))
            rows = {name: column[order] for name, column in rows.items()}
        files.append(folder / f"{lane}.npz")
        write_lane(files[-1], rows)
    return files


def lane_nodes(size: Epoch, lane: int) -> list[NodeFacts]:
    """What is known of a lane's nodes beside their usage."""
    scores = (None, 700_000, 870_000, 990_000)
    return [
        NodeFacts(
            node_id=f"node_{number:032x}",
            account_id=f"acct_{number:032x}",
            burned_tokens=number % 1_000 * 10**8,
            score_ppm=scores[number % 4],
            hardware_class=("datacenter", "development")[number % 2],
            tier=3 + number % 5 // 4,
            promised_us=WEEK_US // 20,
        )
        for number in range(lane, size.nodes, LANES)
    ]


def cut_of(size: Epoch, lanes: Sequence[LaneTotals], *, is_backwards: bool) -> Cut:
    nodes = [
        node
        for lane, found in enumerate(lanes)
        for node in node_cuts(found, lane_nodes(size, lane), SOURCES)
    ]
    if is_backwards:
        nodes.reverse()
    return Cut(**{one.name: getattr(head(), one.name) for one in fields(CutHead)}, nodes=nodes)


def head() -> CutHead:
    """What the cut says beside its nodes."""
    openings = Openings(
        unissued=10**18, recyclable=10**15, compute_carry=499_999, availability_carry=500_179
    )
    return CutHead(epoch=3, cut_position=4_711, policy=policy(), openings=openings)


def addresses(settlement: Outcome) -> dict[str, str]:
    """The wallet of every account."""
    return {who: "0x" + sha256(who.encode()).hexdigest()[:40] for who, _ in settlement.rewards}


def before(settlement: Outcome) -> dict[str, int]:
    """Lifetime totals of the root before, by account."""
    return {who: 10**9 + index % 977 for index, (who, _) in enumerate(settlement.rewards)}


def tree_of(
    settlement: Outcome, wallets: dict[str, str], earlier: dict[str, int], *, apply: Map = map
) -> StandardTree:
    """The tree over what every account has got in its lifetime."""
    leaves = [(wallets[who], earlier[who] + units) for who, units in settlement.rewards]
    previous = {wallets[who]: units for who, units in earlier.items()}
    committed = settlement.total + sum(earlier.values())
    return payout_tree(
        CHAIN_ID, DISTRIBUTOR, leaves, previous=previous, committed=committed, apply=apply
    )


def nodes_of(size: Epoch, lane: tuple[int, Path]) -> list[NodeCut]:
    """The nodes of one lane, from its file of rows."""
    number, file = lane
    return node_cuts(lane_totals(file), lane_nodes(size, number), SOURCES)


def root_by_lanes(size: Epoch, files: Sequence[Path], executor: Executor, folder: Path) -> str:
    """From the files of all lanes to the root, each step shared out by the executor."""
    found = settle_lanes(
        head(),
        list(enumerate(files)),
        partial(nodes_of, size),
        apply=executor.map,
        store=Folder(folder),
    )
    wallets, earlier = addresses(found.outcome), before(found.outcome)
    tree = tree_of(found.outcome, wallets, earlier, apply=executor.map)
    digest = sha256()
    for piece in found.file():
        digest.update(piece)
    return digest.hexdigest()[:16] + tree.root.hex()


def root_of(size: Epoch, lanes: Sequence[LaneTotals], *, is_backwards: bool = False) -> str:
    """From the totals of all lanes to the root."""
    settlement = settle(cut_of(size, lanes, is_backwards=is_backwards))
    tree = tree_of(settlement, addresses(settlement), before(settlement))
    return sha256(epoch_file(settlement)).hexdigest()[:16] + tree.root.hex()


# --- measuring --------------------------------------------------------------------------------


class Stages:
    """Wall and processor seconds of each stage, in order."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def time(self, name: str, work: Callable[[], Any], **more: Any) -> Any:
        began, used = time.perf_counter(), time.process_time()
        found = work()
        row = {
            "seconds": round(time.perf_counter() - began, 2),
            "cpu_seconds": round(time.process_time() - used, 2),
        }
        self.rows.append({"stage": name, **row, **more})
        return found

    def seconds(self, *names: str, of: str = "seconds") -> float:
        found: float = sum(row[of] for row in self.rows if row["stage"] in names)
        return round(found, 2)


def timed(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def whole_way(
    size: Epoch, files: Sequence[Path], folder: Path, stages: Stages, *, is_backwards: bool
) -> tuple[str, Settlement]:
    """From the lanes' files to the root and the epoch file on disk."""
    lanes = stages.time("sums", lambda: totals(Serial(), files))
    cut = stages.time("node cuts", lambda: cut_of(size, lanes, is_backwards=is_backwards))
    settlement: Settlement = stages.time("shares", lambda: settle(cut))
    data = stages.time("epoch file", lambda: epoch_file(settlement))
    digest = stages.time("hash and write", lambda: _kept(folder / "3.json", data))
    wallets, earlier = addresses(settlement), before(settlement)
    tree = stages.time("cumulative tree", lambda: tree_of(settlement, wallets, earlier))
    return digest[:16] + tree.root.hex(), settlement


def _kept(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return sha256(data).hexdigest()


def run(size: Size) -> dict[str, Any]:
    """Seconds of each stage from the cut to the root, and that all ways lead to one root."""
    epoch, processes = SIZES[size]
    with tempfile.TemporaryDirectory(prefix="tally") as made:
        folder = Path(made)
        (folder / "in_order").mkdir()
        (folder / "shuffled").mkdir()
        files = write_lanes(folder / "in_order", epoch)
        shuffled = write_lanes(folder / "shuffled", epoch, shuffle=17)
        with collecting_later():
            stages = Stages()
            root, settlement = whole_way(epoch, files, folder, stages, is_backwards=False)
            beside = list(_beside(folder, files, settlement))
            roots = {"serial": root}
        by_lanes = dict(_by_lanes(epoch, shuffled, folder, processes))
        roots |= {name: str(one.pop("root")) for name, one in by_lanes.items()}
        with collecting_later():
            roots["shuffled"] = root_of(epoch, totals(Serial(), shuffled), is_backwards=True)
    assert len(set(roots.values())) == 1, roots
    assert GOLDEN[size] == root, root
    return {
        "figure": f"cut to root of {FULL.nodes:,} nodes < {CUT_TO_ROOT_SECONDS:.0f} s; shares and"
        f" cumulative tree < {SHARES_AND_TREE_SECONDS:.0f} s on one core",
        "nodes": epoch.nodes,
        "rows": epoch.rows,
        "root": root,
        "cut_to_root_seconds": stages.seconds(*(row["stage"] for row in stages.rows)),
        "shares_and_tree_cpu_seconds": stages.seconds(
            "shares", "cumulative tree", of="cpu_seconds"
        ),
        "stages": _with_ratios(stages.rows, beside),
        "by_lanes": by_lanes,
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _by_lanes(
    size: Epoch, files: Sequence[Path], folder: Path, processes: Sequence[int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each executor, with the largest memory of this process so far, in MB."""
    for count in (0, *processes):
        store = folder / f"store_{count}"
        store.mkdir()
        with opened(f"processes:{count}" if count else "serial") as executor, collecting_later():
            list(executor.map(len, ["start"] * count))
            began = time.perf_counter()
            root = root_by_lanes(size, files, executor, store)
            seconds = round(time.perf_counter() - began, 2)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        told = {"root": root, "seconds": seconds, "peak_mb_of_the_run": peak_mb}
        yield f"{count} processes" if count else "serial", told


def _beside(
    folder: Path, files: Sequence[Path], settlement: Settlement
) -> Iterator[tuple[str, float | None, float]]:
    """(stage, peer's seconds, limit's seconds), processor time, in full size."""
    yield "sums", _duckdb(folder, files), timed(lambda: [dict(np.load(file)) for file in files])
    pool, whole = settlement.compute_pool, settlement.compute_weight
    weights = [node.compute_weight for node in settlement.nodes]

    def shares() -> object:
        return sorted([pool * one // whole for one in weights] * 2)

    yield "shares", None, timed(shares)
    data = (folder / "3.json").read_bytes()
    yield "epoch file", None, timed(lambda: _kept(folder / "limit.json", data))
    wallets = addresses(settlement)
    rows = [(CHAIN_ID, DISTRIBUTOR, wallets[who], units) for who, units in settlement.rewards]
    some = rows[:PEER_LEAVES]
    peer = timed(lambda: _leaf_by_leaf(some)) * len(rows) / len(some)
    yield "cumulative tree", peer, timed(lambda: _only_hashing(len(rows)))


def _duckdb(folder: Path, files: Sequence[Path]) -> float:
    import duckdb  # here, for processes that only take the made-up nodes from this file

    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {min(2, os.cpu_count() or 1)}")
        for lane, file in enumerate(files):
            with np.load(file) as rows:
                columns = {name: rows[name] for name in FIELDS}
            assert columns
            connection.execute(f"COPY (SELECT * FROM columns) TO '{folder}/{lane}.parquet'")
        names = ", ".join(f"sum({name})::bigint" for name in SUMS)
        return timed(
            lambda: connection.execute(
                f"SELECT filename, node, source, {names}"
                f" FROM read_parquet('{folder}/*.parquet', filename = true) GROUP BY ALL"
            ).fetchnumpy()
        )


def _leaf_by_leaf(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """The root as the library makes it: each leaf encoded by the ABI, then pair after pair."""
    leaves = sorted(keccak256(keccak256(eth_abi.encode(PAYOUT_ENCODING, row))) for row in rows)
    tree = [b""] * (2 * len(leaves) - 1)
    for index, leaf in enumerate(leaves):
        tree[len(tree) - 1 - index] = leaf
    for index in range(len(tree) - 1 - len(leaves), -1, -1):
        pair = sorted((tree[2 * index + 1], tree[2 * index + 2]))
        tree[index] = keccak256(b"".join(pair))
    return tree[0]


def _only_hashing(leaves: int) -> None:
    keccak = sha3.keccak_256
    for size, count in ((128, leaves), (32, leaves), (64, leaves - 1)):
        ready = bytes(size)
        for _ in range(count):
            keccak(ready).digest()


def _with_ratios(
    rows: Sequence[dict[str, Any]], beside: Sequence[tuple[str, float | None, float]]
) -> list[dict[str, Any]]:
    """Of the peer: how many times as fast. Of the limit: the part of it that is reached."""
    found = {stage: (peer, limit) for stage, peer, limit in beside}
    told = []
    for row in rows:
        peer, limit = found.get(row["stage"], (None, None))
        ours = max(row["cpu_seconds"], 0.01)
        more = {
            "peer_seconds": None if peer is None else round(peer, 2),
            "of_peer": None if peer is None else round(peer / ours, 2),
            "limit_seconds": None if limit is None else round(limit, 2),
            "of_limit": None if limit is None else round(limit / ours, 3),
        }
        told.append({**row, **more})
    return told


def main() -> None:
    json.dump(run(size_asked(__doc__)), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
