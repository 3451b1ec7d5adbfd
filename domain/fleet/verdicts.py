"""The verdicts on one node: the rules of its region over what the node told of itself.

    stopping(node) == failing(node) - what its region does not insist on - what was waived for it

Rules that were relaxed are still told as failing. A verdict becomes a fact when what it stops
changes, so that whoever matches leases need not know the rules, which are those of
`domain/hardware/admission.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.fleet.kinds import SEAT
from domain.fleet.provider import RegionState
from domain.hardware.admission import RULES, WAIVABLE, Gpu, System, Verdict, judge
from domain.hardware.facts import HardwareFacts

if TYPE_CHECKING:
    from domain.fleet.node import NodeSpecReported

GIB_MIB = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHardwareJudged:
    """Stream `node:{node_id}`: its verdicts are others than before. `failing` names every rule that
    does not hold, `waived` those of them that stop nothing there.
    """

    node_id: str
    joinable: bool
    sellable: bool
    failing: tuple[str, ...]
    waived: tuple[str, ...]
    at_us: int


def system_of(specs: NodeSpecReported, storage_mode: str) -> System:
    """What a node told, as the rules ask for it. What it did not tell is not known."""
    told = specs.hardware or HardwareFacts()
    ram_mib = specs.host.ram_mib if told.ram_gb is None else told.ram_gb * GIB_MIB
    return System(
        gpus=tuple(
            Gpu(
                model=device.model,
                vram_mib=0 if device.memory == "unified" else device.memory_mib,
                connection=device.connection,
                pcie_gen=device.pcie_gen,
                pcie_lanes=device.pcie_lanes,
            )
            for device in specs.devices
            if device.kind != SEAT
        ),
        seats=sum(device.kind == SEAT for device in specs.devices),
        storage_mode=storage_mode,
        nvme_drives_gb=told.nvme_drives_gb,
        tpm_2_0=told.tpm_2_0,
        ram_mib=ram_mib,
        cpu_cores=told.cpu_cores,
        sata_drives=told.sata_drives,
        ethernet_mbps=told.ethernet_mbps,
    )


def verdict_of(
    specs: NodeSpecReported, region: RegionState, waived: tuple[str, ...] = ()
) -> Verdict:
    """The node's verdicts in its region; `waived`: what the operator waived for this node."""
    assert region.opened is not None
    relaxed = {*waived, *(name for name in WAIVABLE if name not in region.hardware_rules)}
    return judge(system_of(specs, region.opened.storage_mode), relaxed & set(WAIVABLE))


def judged(
    node_id: str, before: Verdict, now: Verdict, at_us: int
) -> tuple[NodeHardwareJudged, ...]:
    """The fact that the verdicts are others; none while they stop the same as before."""
    if now.stopping == before.stopping:
        return ()
    assert all(name in RULES for name in now.failing), now
    fact = NodeHardwareJudged(
        node_id=node_id,
        joinable=now.joinable,
        sellable=now.sellable,
        failing=now.failing,
        waived=now.waived,
        at_us=at_us,
    )
    return (fact,)
