"""The verdicts on one node: the rules of its region over what the node told of itself.

    stopping(node) == failing(node) - what its region does not insist on - what was waived for it

Rules that were relaxed are still told as failing. A verdict becomes a fact when what it stops
changes, so that whoever matches leases need not know the rules, which are those of
`domain/hardware/admission.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.fleet.kinds import SEAT, seeded_memory
from domain.fleet.provider import RegionState
from domain.hardware.admission import (
    DATACENTER_LIMITS,
    RULES,
    SOC,
    WAIVABLE,
    Gpu,
    Limits,
    System,
    Verdict,
    judge,
    limits_of,
)
from domain.hardware.facts import HardwareFacts
from domain.record import dataclass

if TYPE_CHECKING:
    from domain.fleet.node import DeviceSpec, NodeSpecReported

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


def is_unified(device: DeviceSpec) -> bool:
    """Whether a device shares the memory of its host: it says so, or all of its vendor's do."""
    return "unified" in (device.memory, seeded_memory(device.kind, device.vendor))


def _connection(device: DeviceSpec) -> str:
    """A device that shares the host's memory and tells no lanes is on one chip with its host."""
    is_soc = is_unified(device) and device.pcie_lanes is None
    return SOC if is_soc else device.connection


def system_of(
    specs: NodeSpecReported, storage_mode: str, limits: Limits = DATACENTER_LIMITS
) -> System:
    """What a node told, as the rules ask for it. What it did not tell is not known."""
    told = specs.hardware or HardwareFacts()
    ram_mib = specs.host.ram_mib if told.ram_gb is None else told.ram_gb * GIB_MIB
    return System(
        gpus=tuple(
            Gpu(
                model=device.model,
                vram_mib=0 if is_unified(device) else device.memory_mib,
                connection=_connection(device),
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
        limits=limits,
    )


def verdict_of(
    specs: NodeSpecReported, region: RegionState, waived: tuple[str, ...] = ()
) -> Verdict:
    """The node's verdicts in its region; `waived`: what the operator waived for this node."""
    assert region.opened is not None
    relaxed = {*waived, *(name for name in WAIVABLE if name not in region.hardware_rules)}
    limits = limits_of(region.opened.setting, specs.at_us)
    return judge(system_of(specs, region.opened.storage_mode, limits), relaxed & set(WAIVABLE))


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
