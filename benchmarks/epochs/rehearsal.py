"""`tallystick policy dry-run` over a year: 52 epochs of 10,000 nodes under a proposal.

    python -m benchmarks.epochs.rehearsal            full
    python -m benchmarks.epochs.rehearsal --short    4 epochs
    python -m benchmarks.epochs.rehearsal --tiny     2 of 64 nodes: whether it runs at all

The files of made-up epochs lie on disk as sealing leaves them. Measured is what the command does:
read each, settle it as it was, compare with the file byte for byte, settle it under the proposal
with what the epochs before left, tell every account's difference. No peer: nobody else rehearses.
Limit: the same files parsed as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from api.governance import rehearsal
from benchmarks.epochs.lane_totals import node_cuts, totals_of
from benchmarks.epochs.settle import LANES, SOURCES, Epoch, drawn, lane_nodes, lane_rows, policy
from benchmarks.size import Size, size_asked
from domain.epochs.epoch_file import epoch_file
from domain.epochs.settlement import Cut, Openings, settle

FIGURE_SECONDS = 30.0


class Numbers(NamedTuple):
    epochs: int
    nodes: int


SIZES = {
    Size.FULL: Numbers(epochs=52, nodes=10_000),
    Size.SHORT: Numbers(epochs=4, nodes=10_000),
    Size.TINY: Numbers(epochs=2, nodes=64),
}
EPOCHS = SIZES[Size.FULL].epochs


def write_epochs(folder: Path, epochs: int, count: int) -> list[Path]:
    """Epochs of so many nodes that follow each other, each with other usage."""
    size = Epoch(count, count * 3)
    openings, files = Openings(unissued=10**18), []
    for epoch in range(1, epochs + 1):
        nodes = []
        for lane in range(LANES):
            rows = lane_rows(size, lane)
            rows["burned"] = drawn(epoch * LANES + lane, len(rows["burned"]), 3_000_000)
            nodes += node_cuts(totals_of(rows), lane_nodes(size, lane), SOURCES)
        openings = replace(openings, recyclable=openings.recyclable + 10**13)
        s = settle(
            Cut(epoch=epoch, cut_position=epoch, policy=policy(), openings=openings, nodes=nodes)
        )
        files.append(folder / f"{epoch}.json")
        files[-1].write_bytes(epoch_file(s))
        openings = Openings(
            unissued=openings.unissued - s.emission + s.returned_emission,
            recyclable=openings.recyclable - s.release + s.returned_release,
            compute_carry=s.compute_carry,
            availability_carry=s.availability_carry,
        )
    return files


def run(size: Size) -> dict[str, Any]:
    """Seconds of a rehearsal, and that the policy in force changes nothing."""
    epochs, nodes = SIZES[size]
    with tempfile.TemporaryDirectory(prefix="tally") as folder:
        files = write_epochs(Path(folder), epochs, nodes)
        proposed = replace(policy(), compute_ppm=600_000, treasury_ppm=200_000)
        began, used = time.perf_counter(), time.process_time()
        found = rehearsal.run(proposed, files)
        rehearsal.told_of(found, 10)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        assert found.holds
        assert not found.is_same
        same = rehearsal.run(policy(), files[:2])
        assert same.holds
        assert same.is_same
        used = time.process_time()
        for file in files:
            json.loads(file.read_bytes())
        limit = time.process_time() - used
    return {
        "figure": f"{EPOCHS} epochs of {nodes:,} nodes rehearsed < {FIGURE_SECONDS:.0f} s",
        "epochs": epochs,
        "nodes": nodes,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "cpu_ms_an_epoch": round(1_000 * cpu / epochs),
        "cpu_seconds_for_52": round(cpu * EPOCHS / epochs, 1),
        "limit_cpu_seconds": round(limit, 2),
        "of_limit": round(limit / cpu, 3),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def main() -> None:
    json.dump(run(size_asked(__doc__)), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
