"""What is known of how fast a machine is, before buying: each thing with who says it (K-4).

    source        who says it
    registry      the dated registry of hardware classes, by the model's name
    inventory     the node of itself; nobody has checked it
    offer         the provider, who promises it
    reports       measured and signed by the node: its last seven days
    statement     a third party, signed, under a name that begins with "benchmark"

Nothing is averaged over sources, and what nobody says is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from api.door.models import AnswerModel
from api.market.matching import Found
from domain.money import PPM
from projections.fleet import fleet, supply
from projections.metering import usage
from projections.runner import Connection

WEEK_US = 7 * 24 * 3_600_000_000
LANE_MTS = {1: 2_500, 2: 5_000, 3: 8_000, 4: 16_000, 5: 32_000, 6: 64_000}
"""Megatransfers a second of one PCIe lane, by generation."""
BENCHMARK = "benchmark"

Source = Literal["registry", "inventory", "offer", "reports", "statement"]


class NodePerformanceAnswer(AnswerModel):
    """`source`: where the value comes from. The `registry` of hardware classes, the `inventory` of
    the node, the `offer` of the provider, `reports` signed by the node over seven days, or a third
    party's `statement`. `throttled_ppm`: the part of the observable time in which power or heat
    held a clock down.
    """

    name: str
    value: str
    source: Source
    signer_account_id: str | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """An offer's machine: its node, the classes of its devices, and what the offer promises."""

    node_id: str
    gpu_classes: Sequence[str]
    terms: Mapping[str, Any]


def performance_of(
    connection: Connection,
    machines: Mapping[str, Machine],
    said: Mapping[str, Sequence[supply.Attribute]],
    now_us: int,
) -> dict[str, list[NodePerformanceAnswer]]:
    """By offer. One query for each sort of thing, whatever the number of offers. `said`: what is
    stated of each node and counts now.
    """
    ids = sorted({machine.node_id for machine in machines.values()})
    measured = usage.read_throttling(connection, ids, now_us - WEEK_US)
    specs = fleet.read_specs(connection, ids)
    return {
        offer_id: [
            *_classes(machine.gpu_classes),
            *_inventory(specs.get(machine.node_id)),
            *_promised(machine.terms),
            *_measured(measured.get(machine.node_id)),
            *_stated(said.get(machine.node_id, ())),
        ]
        for offer_id, machine in machines.items()
    }


def performance_of_match(
    connection: Connection, found: Found, now_us: int
) -> list[NodePerformanceAnswer]:
    """What is known of the speed of the machine that would be leased."""
    if found.match is None:
        return []
    offer_id = found.match.offer_id
    node = next(one for one in found.nodes if one.offer_id == offer_id)
    classes = [] if node.gpu_class is None else [node.gpu_class]
    machine = Machine(node.node_id, classes, asdict(node.terms))
    said = supply.read_attributes_in_force(connection, [node.node_id], now_us)
    return performance_of(connection, {offer_id: machine}, said, now_us)[offer_id]


def _classes(names: Sequence[str]) -> list[NodePerformanceAnswer]:
    return [NodePerformanceAnswer(name="gpu_class", value=one, source="registry") for one in names]


def _stated(said: Sequence[supply.Attribute]) -> list[NodePerformanceAnswer]:
    """Benchmarks that third parties signed."""
    return [
        NodePerformanceAnswer(
            name=one.name,
            value=one.value,
            source="statement",
            signer_account_id=one.signer_account_id,
        )
        for one in said
        if one.name.startswith(BENCHMARK)
    ]


def _inventory(specs: dict[str, Any] | None) -> list[NodePerformanceAnswer]:
    """The slowest link of a device to its host, where all tell theirs."""
    devices = [] if specs is None else specs["devices"]
    links = [
        LANE_MTS[one["pcie_gen"]] * one["pcie_lanes"]
        for one in devices
        if one.get("pcie_gen") in LANE_MTS and one.get("pcie_lanes")
    ]
    if not links or len(links) < len(devices):
        return []
    return [
        NodePerformanceAnswer(name="pcie_megatransfers", value=str(min(links)), source="inventory")
    ]


def _promised(terms: Mapping[str, Any]) -> list[NodePerformanceAnswer]:
    return [
        NodePerformanceAnswer(name=name, value=str(terms[name]), source="offer")
        for name in ("network_mbps", "network_class")
        if terms.get(name) is not None
    ]


def _measured(throttled: tuple[int, int] | None) -> list[NodePerformanceAnswer]:
    if throttled is None:
        return []
    held_us, known_us = throttled
    ppm = min(PPM, held_us * PPM // known_us)
    return [NodePerformanceAnswer(name="throttled_ppm", value=str(ppm), source="reports")]
