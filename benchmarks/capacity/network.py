"""Epochs of a network of up to 1,000,000 nodes in compressed time, and a check of every root.

    python -m benchmarks.capacity.network            full: 10,000, 100,000 and 1,000,000 nodes, one
    after the other, about ten minutes; writes benchmarks/results/network.json and the page
    python -m benchmarks.capacity.network --short    1,000 and 10,000 nodes
    python -m benchmarks.capacity.network --tiny     640 nodes: whether it runs at all

A week passes as fast as it can be settled. What nodes did in it is made up, the same on every
machine (`made_up`); everything after that is the product's own code: weights, caps of nodes and
owners, shares, epoch file (`domain/epochs/lanes.py`, 64 lanes through an executor), what an epoch
leaves to the next, burned TOKEN that come back, rewards that mature an epoch later, what is taken
back, leaves (`domain/chain/leaves.py`) and the payout tree.

Each size has a process of its own, so that its memory is its own. Then another process computes it
all a second time from the epoch files (`benchmarks/capacity/network_check.py`). Up to 100,000 nodes
it is done once more in one process by 7 lanes, to the same root.

Not in it: reports, views, facts and their books. What these cost is measured one by one
(`benchmarks/capacity/costs.py`).
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from api.process.collecting import collecting_later
from benchmarks.capacity import keep
from benchmarks.capacity.network_check import Told, wallet_of, wrong_in
from benchmarks.epochs.lane_totals import Column
from benchmarks.epochs.settle import mixed
from benchmarks.size import Size, size_asked
from contracts.payout_tree import payout_tree
from domain.chain.leaves import LeafBook
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import EpochSealed, openings, sealed_fact
from domain.epochs.lanes import settle_lanes
from domain.epochs.policy import PolicyPublished, first_policy
from domain.epochs.reward_changes import RewardChanges
from domain.epochs.reward_terms import REWARD_TERMS, Rated
from domain.epochs.settlement import Attested, CutHead, NodeCut, Outcome, Use
from domain.money import token
from ledger.fan_out.choice import opened
from ledger.fan_out.executor import Executor
from ledger.fan_out.folder import Folder
from ledger.fan_out.processes import usable

RESULTS = Path(__file__).parents[1] / "results" / "network.json"
LANES, OTHER_LANES, OTHER_NODES_MAX = 64, 7, 100_000
EPOCHS, HOLDBACK = 3, 1
CHAIN_ID, DISTRIBUTOR = 8453, "0x" + "d1" * 20
EMISSION_PER_NODE = 12_000_000_000
"""TOKEN units an epoch: about as much as renters burn for what is used."""
SOURCES = ("burned", "cash", "grant.start")
CLASSES = ("datacenter", "professional", "development")
SCORES = (None, 700_000, 870_000, 990_000)
WEEK_MS = 604_800_000
CENTS = 187
"""The price of a whole TOKEN, of 10^8 units; a credit is a dollar, of 10^6 micro-credits."""


class Numbers(NamedTuple):
    sizes: tuple[int, ...]
    executor: str


SIZES = {
    Size.FULL: Numbers((10_000, 100_000, 1_000_000), f"processes:{usable()}"),
    Size.SHORT: Numbers((1_000, 10_000), f"processes:{usable()}"),
    Size.TINY: Numbers((640,), "serial"),
}
GOLDEN: dict[int, str] = {
    640: "0x70ae561a7024459d169e636cf4a537767bd714fd3cac965f269b3d1afbf5e3ce",
    10_000: "0xd9b21f3c27a2730cca6dda7df5d58e46d344328797250dbf6ef1af5bc426057f",
    100_000: "0x3beab99a89fd965c9330cf8ea2b78416825348c37cd9ee936d6c85895b99a3eb",
    1_000_000: "0x8172d63754d6b4d4214d055416610da98cabcd1001b561edb8099af18bde58bd",
}
"""The last root by nodes: on every machine, by every executor."""


@dataclass(frozen=True, slots=True)
class Network:
    """So many nodes, and over how many lanes they are spread."""

    nodes: int
    lanes: int = LANES

    def numbers(self, lane: int) -> Column:
        return np.arange(lane, self.nodes, self.lanes, dtype=np.int64)


def policy(nodes: int) -> PolicyPublished:
    """A new network's, with every cap and rating in use and an emission for so many nodes."""
    emission = EMISSION_PER_NODE * nodes
    terms = replace(
        REWARD_TERMS,
        class_ratings=(Rated("professional", 700_000), Rated("development", 400_000)),
        availability_cap_per_gpu_hour=60_000_000,
        owner_cap=emission // 1_250,
        release_tau=7,
        release_cap=emission // 10,
    )
    first = first_policy("operator", 0)
    told = {one.name: getattr(first, one.name) for one in fields(first)}
    plan = EmissionSegment(1, 52, 52 * emission)
    told |= {"rewards": terms, "segments": (plan,), "hard_cap": token(plan.total)}
    return PolicyPublished(**{**told, "holdback_epochs": HOLDBACK})


# --- what nodes did in a week -----------------------------------------------------------------


def made_up(numbers: Column, epoch: int) -> dict[str, Column]:
    """A column for each thing that is drawn of these nodes, whatever lane they are in."""
    counters = numbers.astype(np.uint64)

    def drawn(salt: int, below: int) -> Column:
        return mixed(counters + np.uint64((salt << 40) + 1), below)

    week = 100 * epoch
    gpus = np.array([1, 1, 2, 8], np.int64)[drawn(1, 4)]
    is_away = drawn(week, 100) < 3
    used_ms = np.where(is_away | (drawn(week + 1, 5) == 0), 0, drawn(week + 2, WEEK_MS) * gpus)
    there_ms = np.where(is_away, 0, drawn(week + 3, WEEK_MS) * gpus)
    burned = used_ms // 1_000 * drawn(week + 4, 3_000_000) // 3_600
    source = drawn(week + 5, len(SOURCES))
    tokens = np.where(source == 2, 0, burned * 10_000 // CENTS)  # for a grant none is burned
    return {
        "number": numbers,
        "source": source,
        "burned": burned,
        "used_ms": used_ms,
        "tokens": tokens,
        "bought": np.where(source == 0, tokens, 0),
        "score": drawn(2, len(SCORES)),
        "class": drawn(3, len(CLASSES)),
        "tier": 1 + drawn(4, 4),
        "there_ms": there_ms,
        "promised_ms": WEEK_MS * gpus // 2,
    }


def account_of(number: int, nodes: int) -> str:
    """Of 100 nodes 40 have an owner to themselves, 55 are in fleets of about four, and 5 belong to
    ten owners.
    """
    place = number % 100
    if place < 40:
        return f"acct_{number:012x}"
    if place < 95:
        return f"acct_f{number * 2_654_435_761 % (1 << 32) % max(1, nodes * 55 // 400):011x}"
    return f"acct_g{number // 100 % 10:011x}"


def nodes_of(network: Network, epoch: int, lane: int) -> list[NodeCut]:
    """The nodes of a lane as the cut of an epoch has them."""
    columns = [one.tolist() for one in made_up(network.numbers(lane), epoch).values()]
    found = []
    for number, source, burned, used_ms, tokens, bought, *rest in zip(*columns, strict=True):
        score, kind, tier, there_ms, promised_ms = rest
        use = Use(SOURCES[source], burned, used_ms * 1_000)
        there = Attested(CLASSES[kind], tier, there_ms * 1_000, promised_ms * 1_000)
        found.append(
            NodeCut(
                f"node_{number:012x}",
                account_of(number, network.nodes),
                (use,) if used_ms else (),
                tokens,
                SCORES[score],
                (there,) if there_ms else (),
                bought,
            )
        )
    return found


# --- one epoch after the other ----------------------------------------------------------------


class Stages:
    """Seconds by the name of what they went into."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._at = time.perf_counter()

    def ended(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = round(self.seconds.get(name, 0.0) + now - self._at, 2)
        self._at = now


class Live:
    """A network over its epochs, and what they leave in a folder for the check."""

    def __init__(self, network: Network, folder: Path, executor: Executor) -> None:
        self.network, self.folder, self.executor = network, folder, executor
        self.policy = policy(network.nodes)
        self.unissued = self.policy.hard_cap.units
        self.recyclable = 0
        self.sealed: EpochSealed | None = None
        self.waiting: dict[int, Outcome] = {}
        self.book = LeafBook()
        self.stages = Stages()
        self.told = Told({}, {}, {})

    def run(self) -> None:
        for epoch in range(1, EPOCHS + 1):
            self._draw(epoch)
            self._settle(epoch)
            if epoch > HOLDBACK:
                self._pay(epoch, self.waiting.pop(epoch - HOLDBACK))
        self.told.write(self.folder)

    def _draw(self, epoch: int) -> None:
        """What all nodes did, added up in one piece: no lane may lose any of it."""
        columns = made_up(np.arange(self.network.nodes, dtype=np.int64), epoch)
        sums = {name: int(columns[name].sum()) for name in ("tokens", "used_ms", "there_ms")}
        self.recyclable += sums["tokens"]
        self.told.drawn[epoch] = {"nodes": self.network.nodes, **sums}
        self.stages.ended("made up")

    def _settle(self, epoch: int) -> None:
        changes = RewardChanges(adjusted=self._adjusted(epoch))
        self.told.adjusted[epoch] = dict(changes.adjusted)
        head = CutHead(
            epoch=epoch,
            cut_position=1_000 * epoch,
            policy=self.policy,
            openings=openings(self.sealed, self.unissued, self.recyclable, changes),
        )
        store = self.folder / f"store_{epoch}"
        store.mkdir()
        found = settle_lanes(
            head,
            range(self.network.lanes),
            partial(nodes_of, self.network, epoch),
            apply=self.executor.map,
            store=Folder(store),
        )
        file = b"".join(found.file())
        shutil.rmtree(store)
        (self.folder / f"{epoch}.json").write_bytes(file)
        settled = self.waiting[epoch] = found.outcome
        self.unissued -= settled.emission - settled.returned_emission
        self.recyclable -= settled.release - settled.returned_release
        self.sealed = sealed_fact(settled, epoch, sha256(file).hexdigest())
        self.stages.ended("cut to epoch file")

    def _adjusted(self, epoch: int) -> dict[str, int]:
        """Of what the epoch before paid, half of one account is taken back, and more than one ever
        earned; a third is given something.
        """
        before = self.waiting.get(epoch - 1)
        if before is None:
            return {}
        (one, paid), (other, all_of_it), (third, _) = before.rewards[:3]
        return {one: -paid // 2, other: -100 * all_of_it, third: 12_345_678}

    def _pay(self, epoch: int, matured: Outcome) -> None:
        """The root after this epoch: its leaves, and the tree."""
        book, previous = self.book, dict(self.book.totals)
        for account_id, units in matured.rewards:
            wallet = wallet_of(account_id)
            if account_id not in book.wallets and wallet is not None:
                book.link(account_id, wallet, 0)
            book.mature(account_id, units)
        book.take(epoch)
        committed = sum(units for who, units in book.matured.items() if who in book.wallets)
        self.stages.ended("leaves")
        tree = payout_tree(
            CHAIN_ID,
            DISTRIBUTOR,
            sorted(book.totals.items()),
            previous=previous,
            committed=committed,
            apply=self.executor.map,
        )
        self.told.roots[epoch] = "0x" + tree.root.hex()
        self.stages.ended("tree")


# --- measuring --------------------------------------------------------------------------------


def measured(network: Network, executor: str, folder: Path) -> dict[str, Any]:
    """The whole life of a network, with what it took. In a process of its own: its memory is the
    most that this process ever had, and the most that one of the executor's had.
    """
    began, load = time.perf_counter(), os.getloadavg()[0]
    with opened(executor) as work, collecting_later():
        live = Live(network, folder, work)
        live.run()
    seconds = time.perf_counter() - began
    mine, theirs = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "nodes": network.nodes,
        "lanes": network.lanes,
        "executor": executor,
        "epochs": EPOCHS,
        "root": live.told.roots[EPOCHS],
        "leaves": len(live.book.totals),
        "seconds": round(seconds, 2),
        "processor_seconds": round(
            mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime, 2
        ),
        "memory_mib": mine.ru_maxrss >> 10,
        "memory_of_a_lane_mib": theirs.ru_maxrss >> 10,
        "file_bytes": (folder / f"{EPOCHS}.json").stat().st_size,
        "stages": live.stages.seconds,
        "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
    }


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Done in a process that begins and ends with it."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as one:
        return one.submit(work, *arguments).result()


def run(size: Size) -> dict[str, Any]:
    """Every size, checked."""
    numbers = SIZES[size]
    return {"networks": [_checked(nodes, numbers.executor) for nodes in numbers.sizes]}


def _checked(nodes: int, executor: str) -> dict[str, Any]:
    """One size; its roots and files computed again by the second implementation, and where it is
    not too large by other lanes in one process.
    """
    with tempfile.TemporaryDirectory(prefix="tally") as made:
        folders = [Path(made) / "ours", Path(made) / "others"]
        for folder in folders:
            folder.mkdir()
        found: dict[str, Any] = apart(measured, Network(nodes), executor, folders[0])
        wrong, found["check_seconds"] = apart(_timed_check, folders[0])
        assert not wrong, wrong
        if nodes <= OTHER_NODES_MAX:
            other = apart(measured, Network(nodes, OTHER_LANES), "serial", folders[1])
            assert other["root"] == found["root"], (other["root"], found["root"])
            for epoch in range(1, EPOCHS + 1):
                one, two = ((folder / f"{epoch}.json").read_bytes() for folder in folders)
                assert one == two, f"the file of epoch {epoch} is another by other lanes"
            found["serial_seconds"] = other["seconds"]
    assert GOLDEN.get(nodes, found["root"]) == found["root"], found["root"]
    return found


def _timed_check(folder: Path) -> tuple[list[str], float]:
    began = time.perf_counter()
    return wrong_in(folder, CHAIN_ID, DISTRIBUTOR, HOLDBACK), round(time.perf_counter() - began, 2)


def main() -> None:
    """Measure, print, and in full size keep."""
    keep.measured(run, size_asked(__doc__), RESULTS)


if __name__ == "__main__":
    main()
