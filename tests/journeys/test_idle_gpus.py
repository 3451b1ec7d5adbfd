"""An idle GPU under production's settings: a fake driver library, the real reporter, the real
server, the default terms; and beside it the spoof of the design.

The library is the fake NVML, loaded by unmodified nvidia-ml-py in a process of its own. Three
things are made up and said here: the operator vouches for the digest of the fake library as if its
maker had published it, `/proc/driver/nvidia` is told as fine, for this machine has no driver, and
the fake's driver version is one that does not call itself fake.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from api.epochs.closing import close_epoch, seal_epoch
from api.process import founding
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_terms import REWARD_TERMS
from domain.metering.row_times import hour_of
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus import evidence
from projections import tables
from tests.domain.scenes.epochs import POLICY
from tests.journeys.test_reporter_wire import Door
from tests.node_reporter.conftest import FakeMachine, fake_nvml
from tests.node_reporter.gpus.test_nvml import opened as probed
from tests.node_reporter.gpus.test_spoof import Library
from tests.scenes.server import HARDWARE, HOUR_US, NOW_US, Caller, Provider, Scene, opened

__all__ = ("fake_nvml",)

TICK_US = 15_000_000
DRIVER = "580.95.05"
IDLE_MW = 90_000
SPOOF_A5000 = {
    "gpu__0__name": "NVIDIA RTX A5000",
    "gpu__0__pci_id": str(0x268410DE),
    "gpu__0__cc": "8.6",
    "gpu__0__mem_total": str(24_564 * 2**20),
    "gpu__0__power_max_mw": "230000",
    "gpu__0__util": "42",
    "gpu__0__power_mw": "200000",
}
"""An A5000's name over a 4090's PCI id, constant utilisation, energy that is never written."""


class Machine:
    """A provider's node: a fake driver library in a process, and the reporter that asks it."""

    def __init__(
        self, scene: Scene, provider: Provider, library: Path, folder: Path, n: int
    ) -> None:
        folder.mkdir()
        self.provider, self.is_honest, self.polls = provider, n == 0, 0
        self.uuid = f"GPU-{n:08x}-1111-4222-8333-444444444444"
        self.fake = FakeMachine(library=library, script=folder / "machine.txt")
        self.fake.gpus(1)
        self.fake.set(driver=DRIVER, gpu__0__uuid=self.uuid, gpu__0__energy_rate_mw="0")
        if not self.is_honest:
            self.fake.set(**SPOOF_A5000)
        self._join(scene)
        self.probe = probed(self.fake)
        self.clock = SteppedClock(wall_us=NOW_US)
        self.energy_mj = 1_000_000
        self.reporter = Reporter(
            provider.node_id,
            provider.signing.key,
            Library(self.probe, self.clock),
            self.clock,
            folder / "spool.db",
            Door(scene.http),
            node_key=provider.node.key or "",
            tick_us=TICK_US,
            interval_us=60_000_000,
            draw=lambda low, _high: low,
        )

    def _join(self, scene: Scene) -> None:
        """The server knows the GPU by the id that the library tells."""
        device = {
            "device_id": self.uuid,
            "vendor": "nvidia",
            "model": "NVIDIA H200",
            "memory_mib": 143_771,
            "connection": "pcie",
            "pcie_gen": 5,
            "pcie_lanes": 16,
        }
        path = f"/v1/nodes/{self.provider.node_id}"
        specs = {
            "devices": [device],
            "host": {"arch": "x86_64", "os": "linux"},
            "hardware": HARDWARE,
        }
        self.provider.node.made(f"{path}/specs", specs)
        scene.operator.made(f"{path}/admit", {})

    def poll(self) -> None:
        """A tick: an honest GPU idles at a power that is never twice the same."""
        self.clock.advance(TICK_US)
        self.polls += 1
        if self.is_honest:
            power_mw = IDLE_MW + self.polls * 7_919 % 4_001
            self.energy_mj += power_mw * TICK_US // 1_000_000
            self.fake.set(
                gpu__0__energy_mj=str(self.energy_mj),
                gpu__0__power_mw=str(power_mw),
                gpu__0__util="0",
            )
        self.reporter.poll()
        self.reporter.turn()

    def stop(self) -> None:
        self.reporter.flush()
        self.reporter.stop()
        self.probe.end()


@pytest.fixture
def scene(database: str, tmp_path: Path) -> Generator[Scene, None, None]:
    with opened(database, tmp_path / "server") as made:
        assert not founding.is_development(made.service.ledger)
        yield made


def an_epoch_of_an_hour(scene: Scene) -> None:
    """Under the terms that a new network starts with."""
    policy = replace(
        POLICY, epoch_length_us=HOUR_US, rewards=replace(REWARD_TERMS, min_wait_us=0), at_us=NOW_US
    )
    told: dict[str, Any] = {each.name: getattr(policy, each.name) for each in fields(policy)}
    opening = OpenEpoch(epoch=1, start_us=hour_of(NOW_US), at_us=NOW_US)
    scene.service.ledger.handle([PublishPolicy(**told), opening], key=None, now_us=NOW_US)


def sealed(scene: Scene) -> None:
    clock: Any = scene.clock
    now_us = clock.move_to(hour_of(NOW_US) + 2 * HOUR_US)
    ledger, folder = scene.service.ledger, scene.service.settings.data_dir
    with scene.service.connect() as connection:
        close_epoch(ledger, connection, 1, now_us, "op", override="other nodes report nothing")
        seal_epoch(ledger, connection, 1, now_us, data_dir=folder)


def rules(owner: Caller, machine: Machine) -> set[str]:
    """What keeps a machine's GPU below tier 2 in the epoch."""
    found = owner.read(f"/v1/nodes/{machine.provider.node_id}/trust", epoch=1)["devices"]
    (device,) = [one for one in found if one["device_id"] == machine.uuid]
    return {one["rule"] for one in device["findings"] if one["denies"] <= 2}


def test_an_idle_honest_gpu_is_paid_for_being_there_and_spoof_a5000_is_not(
    scene: Scene, tmp_path: Path, fake_nvml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = evidence.library_digest
    honest = Machine(scene, scene.provider, fake_nvml, tmp_path / "honest", 0)
    spoof = Machine(scene, scene.other, fake_nvml, tmp_path / "spoof", 1)
    maps = Path(f"/proc/{honest.probe.pid}/maps")  # of the process that loaded the library
    sha256 = digest("nvidia", maps)
    assert sha256 is not None
    monkeypatch.setattr(evidence, "library_digest", lambda vendor: digest(vendor, maps))
    monkeypatch.setattr(evidence, "kernel_driver", lambda _vendor: "ok")
    scene.operator.made("/v1/trust/libraries", {"driver": DRIVER, "sha256": sha256})
    an_epoch_of_an_hour(scene)
    clock: Any = scene.clock
    for _ in range(40 * 60_000_000 // TICK_US):
        clock.advance(TICK_US)
        for each in (honest, spoof):
            each.poll()
    honest.stop()
    spoof.stop()
    sealed(scene)
    with scene.service.connect() as connection:
        tables.step_all(connection)
    why = scene.owner.read(f"/v1/epochs/1/explain/{honest.provider.node_id}")
    (there,) = why["devices"]
    assert rules(scene.owner, honest) == set()
    assert (there["tier"], there.get("reason")) == (2, None)
    pool = int(scene.anybody.read("/v1/epochs/1")["availability_pool"]["units"])
    assert int(why["availability_tier_2"]["paid"]["units"]) == pool * 200_000 // 1_000_000 > 0
    assert int(why["availability"]["paid"]["units"]) == 0, "no challenge was passed"
    why = scene.rival.read(f"/v1/epochs/1/explain/{spoof.provider.node_id}")
    (there,) = why["devices"]
    assert there["tier"] == 1
    assert why["availability_tier_2"]["paid"]["units"] == "0"
    assert why["reasons"][-1] == "availability: trust tier 1: the policy asks for 2"
    told = rules(scene.rival, spoof)
    assert told == {"board", "energy_stands_still", "energy_is_not_power", "busy_never_jitters"}
