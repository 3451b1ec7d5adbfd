"""A simulated network comes to one root by any lanes, and a second computation finds what is wrong.

The whole benchmark in its smallest size, without its processes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.capacity import network
from benchmarks.capacity.network import CHAIN_ID, DISTRIBUTOR, EPOCHS, HOLDBACK, Network, measured
from benchmarks.capacity.network_check import TOLD, wrong_in

NODES = 640


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("network")
    found = measured(Network(NODES), "serial", folder)
    assert found["root"] == network.GOLDEN[NODES], "a root does not depend on the machine"
    return folder


def wrong(folder: Path) -> list[str]:
    return wrong_in(folder, CHAIN_ID, DISTRIBUTOR, HOLDBACK)


def test_the_second_computation_comes_to_the_same(lived: Path) -> None:
    assert wrong(lived) == []
    last = json.loads((lived / f"{EPOCHS}.json").read_bytes())
    parts = {(pool, why) for pool, why, _, _ in last["unallocated"]}
    assert {("compute", "cap"), ("availability", "cap")} <= parts, "caps take part"
    cap = last["policy"]["rewards"]["owner_cap"]
    assert [who for who, units in last["rewards"] if units == cap], "and those of owners"
    assert last["adjustments_open"], "and debts that no epoch pays off"


def test_other_lanes_come_to_the_same_bytes(lived: Path, tmp_path: Path) -> None:
    measured(Network(NODES, network.OTHER_LANES), "serial", tmp_path)
    for epoch in range(1, EPOCHS + 1):
        name = f"{epoch}.json"
        assert (tmp_path / name).read_bytes() == (lived / name).read_bytes()
    assert (tmp_path / TOLD).read_bytes() == (lived / TOLD).read_bytes()


def a_unit_more(document: dict[str, Any]) -> None:
    document["rewards"][5][1] = str(int(document["rewards"][5][1]) + 1)


def a_node_less(document: dict[str, Any]) -> None:
    del document["nodes"][7]


def a_node_twice(document: dict[str, Any]) -> None:
    document["nodes"][7] = document["nodes"][8]


def begun_elsewhere(document: dict[str, Any]) -> None:
    document["openings"]["unissued"] = str(int(document["openings"]["unissued"]) - 1)


def another_root(told: dict[str, Any]) -> None:
    told["roots"][str(EPOCHS)] = "0x" + "00" * 32


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("2.json", a_unit_more, "rewards is"),
        ("2.json", a_unit_more, "the root is"),
        ("3.json", a_node_less, "was drawn"),
        ("3.json", a_node_twice, "each once"),
        ("2.json", begun_elsewhere, "the epoch before leaves"),
        (TOLD, another_root, "the root is"),
    ],
)
def test_what_is_wrong_is_found(
    lived: Path, tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    folder = Path(shutil.copytree(lived, tmp_path / "changed"))
    document = json.loads((folder / name).read_bytes())
    change(document)
    (folder / name).write_text(json.dumps(document))
    assert [one for one in wrong(folder) if said in one]
