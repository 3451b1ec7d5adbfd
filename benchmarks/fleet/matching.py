"""How long one job's match against 100,000 nodes takes, its explanation included.

Beside it the same question to the plain reference (a scan in Python), and a lower bound: one
comparison over one column of the same fleet, which no answer that looks at every node undercuts.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.size import Size, size_asked
from domain.hardware.constraints import Constraints, Weights
from domain.market.dimensions import FreeDevice, Need, OfferedNode
from domain.market.explanation import explain
from domain.market.matching import choose
from domain.market.offer import OfferTerms
from domain.money import PPM
from projections.market.columns import Columns
from projections.market.match import answer

GPUS_EACH = 8
FIGURE_MS = 20
CAPACITY = 2**17
"""Of the columns; a fleet has its room before it is read."""


class Numbers(NamedTuple):
    nodes: int
    rounds: int


SIZES = {
    Size.FULL: Numbers(nodes=100_000, rounds=2_000),
    Size.SHORT: Numbers(nodes=100_000, rounds=400),
    Size.TINY: Numbers(nodes=100, rounds=8),
}
FEES = {"datacenter": 1_265_000, "professional": 400_000}
NOW_US, HOUR_US = 1_800_000_000_000_000, 3_600_000_000
RENTER = "acct_renter"
MODELS = (
    ("NVIDIA H100 80GB HBM3", 81_559, "datacenter"),
    ("NVIDIA A100-SXM4-40GB", 40_960, "datacenter"),
    ("NVIDIA L40S", 46_068, "datacenter"),
    ("NVIDIA RTX A6000", 49_140, "professional"),
    ("AMD Instinct MI300X", 196_288, "datacenter"),
)
TERMS = (
    OfferTerms(),
    OfferTerms(isolation="container", capabilities=("docker", "cuda"), storage_gib=500),
    OfferTerms(
        isolation="vm",
        capabilities=("docker", "cuda", "cudnn", "pytorch"),
        storage_gib=4_000,
        network_mbps=100_000,
        reclaim_window_us=4 * HOUR_US,
        sla_class="standard",
    ),
)


def fleet(nodes: int, seed: int = 7) -> Iterator[OfferedNode]:
    """Half of the devices are in use in part or whole; prices, models and settings are mixed."""
    rnd = random.Random(seed)
    for number in range(nodes):
        model, memory_mib, gpu_class = MODELS[number % len(MODELS)]
        yield OfferedNode(
            node_id=f"node_{number:032x}",
            offer_id=f"offer_{number:032x}",
            account_id=f"acct_{number % 5_000:032x}",
            provider_id=f"prov_{number % 5_000:032x}",
            price=FEES[gpu_class] + 10_000 * rnd.randrange(200),
            pay_with=rnd.choice(("cash", "cash", "burn")),
            fractions=rnd.random() < 0.8,
            served_gpu_us=rnd.randrange(10**9),
            devices=tuple(_device(rnd, model, number, slot) for slot in range(GPUS_EACH)),
            model=model,
            memory_mib=memory_mib,
            gpu_class=gpu_class,
            vendor="amd" if model.startswith("AMD") else "nvidia",
            phase="active" if rnd.random() < 0.97 else "maintenance",
            specs_at_us=NOW_US - rnd.randrange(1_000_000_000),
            region_id=f"region_{number % 300:032x}",
            is_public=number % 50 != 0,
            setting="edge" if number % 3 == 0 else "datacenter",
            arch="x86_64",
            os="linux",
            cpu_cores=rnd.choice((32, 64, 128)),
            ram_mib=rnd.choice((2**17, 2**19)),
            terms=rnd.choice(TERMS),
            reputation_ppm=rnd.choice((None, 700_000, 950_000)),
        )


def _device(rnd: random.Random, model: str, node: int, slot: int) -> FreeDevice:
    free = rnd.choice((PPM, PPM, PPM // 2, PPM // 4, 0, 0))
    mode = None if free == PPM else "memory"
    return FreeDevice(f"GPU-{node:x}-{slot}", model, free, free, mode)


def _need(**changes: object) -> Need:
    need = Need(
        gpu_count=1,
        share_ppm=PPM,
        mem_ppm=PPM,
        models=(),
        price_max=3_000_000,
        account_id=RENTER,
        at_us=NOW_US,
        until_us=NOW_US + HOUR_US,
        spec_ttl_us=900_000_000,
    )
    return replace(need, **changes)  # type: ignore[arg-type]


_PICKY = Constraints(
    vendors=("nvidia",),
    memory_mib=40_000,
    isolation="container",
    cpu_cores=64,
    ram_mib=2**18,
    storage_gib=1_000,
    arch="x86_64",
    capabilities=("docker", "cudnn"),
    setting="datacenter",
    min_reputation_ppm=900_000,
    reclaim_window_us=HOUR_US,
)
_SCORED = replace(
    _PICKY,
    rank="best_score",
    near_region=f"region_{1:032x}",
    weights=Weights(
        spec_fit=200_000,
        reputation=300_000,
        free_peers=200_000,
        storage=100_000,
        locality=100_000,
        price=100_000,
    ),
)
NEEDS = {
    "one GPU, whatever, lowest cost": _need(),
    "four halves, lowest cost": _need(gpu_count=4, share_ppm=PPM // 2, mem_ppm=PPM // 2),
    "twelve demands, lowest cost": _need(constraints=_PICKY),
    "twelve demands, best score": _need(constraints=_SCORED, gpu_count=2),
    "no match: 200 GB": _need(constraints=replace(_PICKY, memory_mib=200_000)),
    "no match: price": _need(price_max=1_000, constraints=_PICKY),
    "no match: eight whole of one": _need(gpu_count=8, models=(MODELS[0][0],), price_max=1_270_000),
    "no match: nine of eight": _need(gpu_count=9),
}


@dataclass(frozen=True, slots=True)
class Timed:
    p50_ms: float
    p99_ms: float
    cpu_p99_ms: float  # of the thread itself: on a busy machine the wall tells of the neighbours
    cpu_mean_ns: int


def timed(ask: Callable[[Need], object], needs: list[Need], rounds: int) -> Timed:
    """Wall and processor time of each call, all needs in turn."""
    seconds, busy = [], []
    for number in range(rounds):
        need = needs[number % len(needs)]
        started, used = time.perf_counter(), time.thread_time()
        ask(need)
        busy.append(time.thread_time() - used)
        seconds.append(time.perf_counter() - started)
    seconds.sort()
    busy.sort()
    return Timed(
        _at(seconds, 0.5), _at(seconds, 0.99), _at(busy, 0.99), round(1e9 * sum(busy) / len(busy))
    )


def _at(seconds: list[float], part: float) -> float:
    return round(1_000 * seconds[min(len(seconds) - 1, int(part * len(seconds)))], 2)


def run(size: Size) -> dict[str, Any]:
    """Milliseconds a match: of all kinds of request in turn, and of each kind."""
    nodes, rounds = SIZES[size]
    started = time.perf_counter()
    rows = list(fleet(nodes))
    columns = Columns(capacity=CAPACITY)
    columns.fill(rows)
    filled = time.perf_counter() - started
    every = list(NEEDS.values())
    price = columns.numbers["price"][: columns.size]

    def plainly(need: Need) -> object:
        return choose(need, rows), explain(need, rows)

    kinds = {
        name: asdict(timed(lambda need: answer(columns, need, FEES), [need], rounds // 8))
        for name, need in NEEDS.items()
    }
    return {
        "figure": f"match with explanation, {nodes:,} nodes: p99 < {FIGURE_MS} ms",
        "conditions": {
            "nodes": nodes,
            "devices": nodes * GPUS_EACH,
            "rounds": rounds,
            "filled_seconds": round(filled, 1),
            "cores": os.cpu_count(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        "ours": asdict(timed(lambda need: answer(columns, need, FEES), every, rounds)),
        "peer": asdict(timed(plainly, every[:1], 2)),
        "limit": asdict(
            timed(lambda need: np.count_nonzero(price <= need.price_max), every, rounds)
        ),
        "kinds": kinds,
    }


def main() -> None:
    print(json.dumps(run(size_asked(__doc__)), indent=1))


if __name__ == "__main__":
    main()
