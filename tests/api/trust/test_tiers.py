"""Tiers over HTTP: signed reports to a real server, and what it believes of them."""

from __future__ import annotations

from typing import Any

import pytest

from api.trust.trust_timer import run_trust
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import first_policy
from domain.metering import report
from domain.trust.record import PAIRS_MAX, DeviceTwice, RecordDeviceTwice
from projections import tables
from projections.trust.evidence import read_pairs
from tests.scenes.server import HARDWARE, HOUR_US, NOW_US, Provider, Scene
from tests.scenes.work import MINUTE_US, reported, send

OTHER = "GPU-22222222-3333-4444-8555-666666666666"
UUID = "GPU-5c1d8f3e-0f6b-4c6e-9a3b-2f1d0c9e8a71"
LIBRARY = {"driver": "580.95.05", "sha256": "5e" * 32}
A5000: dict[str, Any] = {
    "name": "NVIDIA RTX A5000",
    "pci_id": "0x223110DE",
    "mem_bytes": 24_564 * 2**20,
    "compute_capability": "8.6",
    "driver": "580.95.05",
    "library_sha256": "5e" * 32,
    "proc_nvidia": "ok",
    "power_limit_mw": 230_000,
    "counter_mj": 6_000_000,
    "integrated_mj": 6_100_000,
}
SILENT = {name: told for name, told in A5000.items() if not name.endswith("_mj")}
"""An identity that never tells what its energy came to beside its power."""
SPOOF = {**SILENT, "pci_id": "0x268410DE"}
"""What `spoof_a5000.c` answers: an A5000's name over a 4090's PCI id."""


def honest(minute: int) -> dict[str, Any]:
    """A device at work: nothing of it stands still."""
    return {"busy_us": 20_000_000 + minute * 610_007, "energy_mj": 6_000_000 + minute * 9_001}


def spoofed(_minute: int) -> dict[str, Any]:
    """Constant utilisation, and an energy call that never writes."""
    return {"busy_us": 25_200_000, "energy_mj": 0}


def told(
    scene: Scene,
    provider: Provider,
    identity: dict[str, Any] | None,
    values: Any = honest,
    *,
    minutes: int = 30,
    first: int = 0,
    device: str = UUID,
    parent: str | None = None,
) -> None:
    """Sign and send what a device says of itself, and so many minutes of its rows."""
    clock: Any = scene.clock
    ends_us = (first + minutes) * MINUTE_US
    clock.advance(max(0, NOW_US + ends_us - clock.now_us()))
    rows = tuple(
        report.Row(
            device=0,
            lease=None,
            driver_epoch=1,
            mono_start_us=minute * MINUTE_US,
            len_us=MINUTE_US,
            wall_minus_mono_us=NOW_US,
            available_us=MINUTE_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
            **values(minute),
        )
        for minute in range(first, first + minutes)
    )
    events = (
        ()
        if identity is None
        else (
            report.Event(
                type="device.inventory", mono_us=0, wall_us=NOW_US, device=0, data=identity
            ),
        )
    )
    body = reported(
        provider,
        devices=(report.Device(id=device, parent=parent),),
        rows=rows,
        events=events,
        mono_us=ends_us,
        wall_us=NOW_US + ends_us,
    )
    sent = send(scene, provider, body)
    assert sent.status_code == 200, sent.text
    assert sent.json()["results"][0]["receipt"]["flags"] == 0


def trust(scene: Scene, provider: Provider, device: str = UUID, **query: Any) -> dict[str, Any]:
    with scene.service.connect() as connection:
        tables.step_all(connection)
    path = f"/v1/nodes/{provider.node_id}/trust"
    devices = provider.owner.read(path, **query)["devices"]
    found: dict[str, Any] = next(one for one in devices if one["device_id"] == device)
    return found


def rules(device: dict[str, Any], at_most: int = 2) -> set[str]:
    return {one["rule"] for one in device["findings"] if one["denies"] <= at_most}


def test_the_spoof_of_the_design_is_caught_by_tier_2(scene: Scene) -> None:
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    told(scene, scene.provider, SPOOF, spoofed)
    spoof = trust(scene, scene.provider)
    assert spoof["tier"] == 1
    assert rules(spoof) == {
        "board",
        "energy_stands_still",
        "energy_not_compared",
        "busy_never_jitters",
    }
    lane = report.lane_of(scene.provider.node_id)
    board = next(one for one in spoof["findings"] if one["rule"] == "board")
    assert (board["lane"], board["evidence_position"]) == (lane, 1)
    assert "RTX 4090" in board["detail"]
    told(scene, scene.other, A5000, device=OTHER)
    device = trust(scene, scene.other, OTHER)
    assert (device["tier"], rules(device)) == (2, set()), "an honest one beside it is believed"


def test_a_spoof_that_learns_its_board_and_still_writes_no_energy_is_caught(scene: Scene) -> None:
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    told(scene, scene.provider, A5000, spoofed)
    assert rules(trust(scene, scene.provider)) == {"energy_stands_still", "busy_never_jitters"}
    told(scene, scene.other, SILENT, device=OTHER)
    silent = trust(scene, scene.other, OTHER)
    assert (silent["tier"], rules(silent)) == (1, {"energy_not_compared"}), (
        "rows that look honest do not make up for a comparison that is never told"
    )


def test_a_library_that_nobody_vouches_for_fails_until_somebody_does(scene: Scene) -> None:
    told(scene, scene.provider, A5000)
    assert rules(trust(scene, scene.provider)) == {"library_digest"}
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    assert trust(scene, scene.provider)["tier"] == 2
    (known,) = scene.anybody.read("/v1/trust/libraries")["data"]
    assert known == {**LIBRARY, "known": True}
    scene.operator.made("/v1/trust/libraries/forget", LIBRARY)
    assert trust(scene, scene.provider)["tier"] == 1


BARE = "fcff74a1-0000-1000-8044-e11a1e0e3b5d"
MI300X: dict[str, Any] = {
    **A5000,
    "name": "AMD Instinct MI300X",
    "pci_id": "0x74a11002",
    "mem_bytes": 205_822_885_888,
    "compute_capability": None,
    "driver": "6.12.12",
    "power_limit_mw": 750_000,
}
A770: dict[str, Any] = {
    **SILENT,
    "name": "Intel(R) Arc(TM) A770 Graphics",
    "pci_id": "0x56a08086",
    "mem_bytes": 15_473 * 2**20,
    "compute_capability": None,
    "driver": "1.6.33578",
    "power_limit_mw": 225_000,
}


@pytest.mark.parametrize("identity", [MI300X, A770], ids=["amd", "intel"])
def test_a_gpu_of_amd_or_intel_is_believed_by_what_its_own_driver_tells(
    shared: Scene, identity: dict[str, Any]
) -> None:
    told(shared, shared.provider, identity, device=BARE)
    assert rules(trust(shared, shared.provider, BARE)) == {"library_digest"}
    library = {"driver": identity["driver"], "sha256": identity["library_sha256"]}
    shared.operator.made("/v1/trust/libraries", library)
    device = trust(shared, shared.provider, BARE)
    assert (device["tier"], rules(device, at_most=3)) == (2, {"challenge"})
    told(shared, shared.other, {**identity, "pci_id": "0x268410DE"}, device=OTHER)
    assert "board" in rules(trust(shared, shared.other, OTHER)), "no board passes for another's"


def test_one_device_on_two_nodes_is_a_fact_and_neither_is_believed(scene: Scene) -> None:
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    for provider in (scene.provider, scene.other):
        told(scene, provider, A5000)
    for provider, rival in ((scene.provider, scene.other), (scene.other, scene.provider)):
        device = trust(scene, provider)
        assert device["tier"] == 0
        (twice,) = [one for one in device["findings"] if one["rule"] == "device_twice"]
        assert rival.node_id in twice["detail"]
    with scene.service.connect() as connection:
        assert run_trust(scene.service, connection, scene.clock.now_us()) == 1
        assert run_trust(scene.service, connection, scene.clock.now_us()) == 0, "once a pair"
    facts = scene.service.ledger.market.read_facts(0, 100_000)
    (fact,) = [one.fact for one in facts if isinstance(one.fact, DeviceTwice)]
    nodes = sorted([scene.provider.node_id, scene.other.node_id])
    assert [fact.first_node_id, fact.second_node_id] == nodes
    assert (fact.device_id, fact.first_position, fact.second_position) == (UUID, 1, 1)


def test_a_device_whose_pairs_are_all_told_holds_up_no_other(shared: Scene) -> None:
    """Else a crowd of nodes that report one id would hide every other pair behind its own."""
    commands = [
        RecordDeviceTwice(
            device_id=UUID,
            first_node_id=f"node_{number:032d}",
            first_lane=0,
            first_position=1,
            second_node_id=f"node_{number + 1:032d}",
            second_lane=0,
            second_position=1,
            seen_us=NOW_US,
            at_us=NOW_US,
        )
        for number in range(PAIRS_MAX)
    ]
    for command in commands:
        shared.service.ledger.handle(command, key=None, now_us=NOW_US)
    for provider in (shared.provider, shared.other):
        told(shared, provider, A5000)
        told(shared, provider, A5000, device=OTHER, first=30)
    with shared.service.connect() as connection:
        tables.step_all(connection)
        assert [one.device_id for one in read_pairs(connection, 0, 100)] == [OTHER]


def test_who_meters_a_device_of_another_node_harms_only_himself(scene: Scene) -> None:
    """Else anybody could take a rival's availability away by reporting its devices' ids."""
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    device = {
        "device_id": UUID,
        "vendor": "nvidia",
        "model": "NVIDIA RTX A5000",
        "memory_mib": 24_564,
    }
    path = f"/v1/nodes/{scene.provider.node_id}"
    specs = {
        "devices": [{**device, "connection": "pcie", "pcie_gen": 4, "pcie_lanes": 16}],
        "host": {"arch": "x86_64", "os": "linux"},
        "hardware": HARDWARE,
    }
    scene.provider.node.made(f"{path}/specs", specs)
    scene.operator.made(f"{path}/admit", {})
    for provider in (scene.provider, scene.other):
        told(scene, provider, A5000)
    assert trust(scene, scene.provider)["tier"] == 2
    assert trust(scene, scene.other)["tier"] == 0
    with scene.service.connect() as connection:
        assert run_trust(scene.service, connection, scene.clock.now_us()) == 1, (
            "a fact all the same"
        )


def _admit(scene: Scene, device_id: str) -> None:
    """A device of this id at home on the first provider's node."""
    device = {
        "device_id": device_id,
        "vendor": "nvidia",
        "model": "NVIDIA H100 80GB HBM3",
        "memory_mib": 81_559,
    }
    path = f"/v1/nodes/{scene.provider.node_id}"
    specs = {
        "devices": [{**device, "connection": "pcie", "pcie_gen": 4, "pcie_lanes": 16}],
        "host": {"arch": "x86_64", "os": "linux"},
        "hardware": HARDWARE,
    }
    scene.provider.node.made(f"{path}/specs", specs)
    scene.operator.made(f"{path}/admit", {})


@pytest.mark.parametrize("parent", [None, OTHER, UUID])
def test_who_meters_a_mig_instance_of_another_node_harms_only_himself(
    scene: Scene, parent: str | None
) -> None:
    """Nobody admits an instance: it is at home where the GPU is that it is cut from."""
    _admit(scene, UUID)
    mig = "MIG-" + UUID.removeprefix("GPU-")
    told(scene, scene.provider, A5000, device=mig, parent=UUID)
    told(scene, scene.other, A5000, device=mig, parent=parent)
    assert "device_twice" not in rules(trust(scene, scene.provider, mig))
    assert "device_twice" in rules(trust(scene, scene.other, mig))


def test_a_device_of_another_node_is_not_excused_by_a_parent_of_ones_own(shared: Scene) -> None:
    _admit(shared, UUID)
    told(shared, shared.provider, A5000)
    told(shared, shared.other, A5000, parent=shared.other.device_ids[0])
    assert "device_twice" in rules(trust(shared, shared.other))


def test_an_instance_told_under_two_boards_in_one_hour_counts_under_both(scene: Scene) -> None:
    mig = "MIG-" + UUID.removeprefix("GPU-")
    told(scene, scene.provider, A5000, device=mig, parent=UUID, minutes=10)
    told(scene, scene.provider, None, device=mig, parent=OTHER, minutes=10, first=10)
    assert trust(scene, scene.provider, mig)["rows"] == 20


def test_a_device_that_moved_to_another_node_is_one_device(scene: Scene) -> None:
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    told(scene, scene.provider, A5000, minutes=20)
    told(scene, scene.other, A5000, first=20, minutes=20)
    assert [trust(scene, each)["tier"] for each in (scene.provider, scene.other)] == [2, 2]


def test_a_tier_is_of_an_epoch_and_needs_evidence_of_it(scene: Scene) -> None:
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    start_us = NOW_US - NOW_US % HOUR_US
    opening = OpenEpoch(epoch=1, start_us=start_us, at_us=NOW_US)
    commands = [first_policy("operator", NOW_US), opening]
    scene.service.ledger.handle(commands, key=None, now_us=NOW_US)
    told(scene, scene.provider, A5000, minutes=30)
    told(scene, scene.other, A5000, minutes=9, device=OTHER)
    assert trust(scene, scene.provider, epoch=1)["tier"] == 2
    assert rules(trust(scene, scene.other, OTHER)) == {"little_evidence"}
    answer = scene.owner.get(f"/v1/nodes/{scene.provider.node_id}/trust", epoch=2)
    assert (answer.status_code, answer.json()["code"]) == (404, "epoch_unknown")


def test_a_flagged_report_says_nothing_of_a_device(scene: Scene) -> None:
    body = reported(scene.provider, rows=(), agent="a name that is much too long for an agent")
    assert send(scene, scene.provider, body).json()["results"][0]["receipt"]["flags"] == 1
    with scene.service.connect() as connection:
        tables.step_all(connection)
    path = f"/v1/nodes/{scene.provider.node_id}/trust"
    assert scene.owner.read(path)["devices"] == []


@pytest.mark.parametrize("who", ["rival", "renter"])
def test_others_do_not_see_a_nodes_tiers(shared: Scene, who: str) -> None:
    answer = getattr(shared, who).get(f"/v1/nodes/{shared.provider.node_id}/trust")
    assert answer.status_code in (403, 404)
