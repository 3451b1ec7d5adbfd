"""The spoof of the design, end to end: a driver library that lies, the real reporter, the judge.

The library is the fake NVML, loaded by unmodified nvidia-ml-py in a process of its own. The
reporter signs what it answers, and what the server holds is folded and judged as the product does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from domain.trust.tiers import Evidence, Identity, Metered, Standing, standing
from ledger.log.usage import StoredReport
from node_reporter.gpus.seam import Device, Reading
from node_reporter.gpus.simulated import SimulatedGpus
from projections.trust.evidence import fold
from tests.node_reporter.gpus.test_nvml import UUIDS, Machines, opened
from tests.node_reporter.reporter_scene import MINUTE_US, Scene
from tests.node_reporter.scripted_machines import Probe

LIBRARY = ("580.95.05", "5e" * 32)


class Library(SimulatedGpus):
    """What a driver library in another process answers, to a reporter in this one."""

    vendor = "nvml"

    def __init__(self, probe: Probe, clock: Any) -> None:
        super().__init__(clock)
        self._probe = probe

    def inventory(self) -> Sequence[Device]:
        return [Device(**told) for told in self._probe("inventory")]

    def look(self, board_id: str) -> Sequence[Device]:
        return [Device(**told) for told in self._probe("look", board_id)]

    def read(self, device_id: str) -> Reading:
        return Reading(**self._probe("read", device_id))


def judged(folder: Path, probe: Probe, minutes: int = 20) -> Standing:
    """Run the reporter on these answers, and judge the reports the server holds."""
    scene = Scene(
        folder, tick_us=MINUTE_US // 4, backend=lambda clock, _n, _o: Library(probe, clock)
    )
    scene.run(minutes)
    scene.reporter.stop()
    probe.end()
    folded = fold([StoredReport(*_stored(one)) for one in scene.server.stored()])
    (told,) = folded.identities.values()
    hours = [hour for (_, device, _, _), hour in folded.hours.items() if device == UUIDS[0]]
    hour = max(hours, key=lambda one: one.rows)
    names = [one.name for one in fields(Metered)]
    metered = Metered(**{name: getattr(hour, name) or 0 for name in names})
    identity = replace(
        Identity(**told.told), driver=LIBRARY[0], library_sha256=LIBRARY[1], proc_nvidia="ok"
    )  # the owner is root: these three he answers rightly
    return standing(Evidence(device_id=UUIDS[0], identity=identity, metered=metered), {LIBRARY})


def _stored(one: Any) -> tuple[Any, ...]:
    return (one.lane, one.position, one.node_id, one.node_seq, one.body, one.flags, one.recorded_us)


def rules(found: Standing) -> set[str]:
    return {finding.rule for finding in found.findings if finding.denies <= 2}


def test_an_a5000_faked_with_the_pci_id_of_a_4090_ends_at_tier_1(
    tmp_path: Path, machine: Machines
) -> None:
    faked = machine(1)
    faked.set(
        gpu__0__name="NVIDIA RTX A5000",
        gpu__0__pci_id=str(0x268410DE),
        gpu__0__cc="8.6",
        gpu__0__mem_total=str(24_564 * 2**20),
        gpu__0__power_max_mw="230000",
        gpu__0__util="42",
        gpu__0__energy_rate_mw="0",
        gpu__0__power_mw="200000",
    )
    found = judged(tmp_path, opened(faked))
    assert rules(found) == {
        "board",
        "energy_stands_still",
        "energy_is_not_power",
        "busy_never_jitters",
    }
    assert found.tier == 1


def test_the_board_that_the_fake_is_by_itself_is_known(tmp_path: Path, machine: Machines) -> None:
    """Beside the spoof: the same library under one name and one PCI id passes the table."""
    found = judged(tmp_path, opened(machine(1)))
    assert "board" not in rules(found)
    assert "uuid_form" not in rules(found)
