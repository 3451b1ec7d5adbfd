"""K-13: a region of remote workers behind ingress nodes gets its work evenly: 3 control nodes with
1 ingress and 1 worker, 1 and 100, 3 and 100, under production's rules.

Nodes join, are admitted and offered by commands, as a fleet would over days, and the server deals
the workers to the ingress nodes. Leases are opened over HTTP, one after the other, and settled with
the usage their nodes would have reported.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
)
from domain.fleet.roles import SetNodeRole
from domain.hardware.facts import HardwareFacts
from domain.lease.lease import CloseLease, ReadyLease, SettleLease
from domain.market.offer import PublishOffer
from domain.metering.counting import UsageRow
from domain.metering.report import lane_of
from domain.money import credit
from tests.scenes.server import Scene

WORKERS, INGRESSES, CONTROLS, TOGETHER, ROUNDS = 100, 3, 3, 50, 4
MODEL = "NVIDIA GeForce RTX 3090"
MINUTE_US = 60_000_000
PRICE = 900_000


AT_HOME = HardwareFacts(
    nvme_drives_gb=(1_000,), ram_gb=64, cpu_cores=8, sata_drives=(), ethernet_mbps=1_000
)


def _id(kind: str, number: int) -> str:
    return f"node_{kind}{number:031x}"


def _joining(scene: Scene, node_id: str) -> list[Any]:
    """One machine with one accelerator, from its join code to its offer."""
    now_us, provider = scene.clock.now_us(), scene.provider
    said: dict[str, Any] = {"by": "mem_owner", "at_us": now_us}
    device = DeviceSpec(
        device_id=f"GPU-{node_id}",
        vendor="nvidia",
        model=MODEL,
        memory_mib=24_576,
        pcie_gen=4,
        pcie_lanes=16,
    )
    return [
        IssueJoinCode(
            code_sha256=node_id,
            provider_id=provider.provider_id,
            region_id=provider.region_id,
            **said,
        ),
        JoinNode(
            code_sha256=node_id,
            node_id=node_id,
            key_id="0" * 16,
            public_key="ab" * 32,
            token_sha256="cd" * 32,
            agent="0.1.0",
            client_id=None,
            devices=(device,),
            host=HostSpec(arch="x86_64", os="linux"),
            hardware=AT_HOME,
            at_us=now_us,
        ),
        ConfirmNodeKey(node_id=node_id, key_id="0" * 16, **said),
        AdmitNode(node_id=node_id, **said),
        ActivateNode(node_id=node_id, **said),
    ]


def _offered(scene: Scene, node_id: str) -> PublishOffer:
    return PublishOffer(
        offer_id=node_id.replace("node", "offer"),
        node_id=node_id,
        provider_id=scene.provider.provider_id,
        price_per_gpu_hour=credit(PRICE),
        pay_with="cash",
        fractions=False,
        available_until_us=None,
        at_us=scene.clock.now_us(),
    )


def _do(scene: Scene, *commands: Any) -> None:
    scene.service.ledger.handle(commands, key=None, now_us=scene.clock.now_us())


def _region(scene: Scene, ingresses: int = INGRESSES, workers: int = WORKERS) -> None:
    """Control nodes, ingress nodes, and workers that the server puts behind these."""
    told = scene.owner.made(
        "/v1/regions",
        {
            "provider_id": scene.provider.provider_id,
            "name": "even",
            "storage_mode": "local",
            "setting": "edge",
            "admission": "permissionless",
            "allow_public_jobs": True,
        },
    )
    scene.provider.region_id = told["region_id"]
    for kind, role, count in (("c", "control", CONTROLS), ("a", "ingress", ingresses)):
        for number in range(count):
            node_id = _id(kind, number)
            said: dict[str, Any] = {"by": "mem_owner", "at_us": scene.clock.now_us()}
            set_role = SetNodeRole(node_id=node_id, role=role, ingress_node_id=None, **said)
            _do(scene, *_joining(scene, node_id), _offered(scene, node_id), set_role)
    for number in range(workers):
        _worker(scene, number)


def _worker(scene: Scene, number: int) -> None:
    node_id = _id("b", number)
    _do(scene, *_joining(scene, node_id), _offered(scene, node_id))


def _round(scene: Scene, count: int) -> list[str]:
    """So many leases at once, each for a minute; the nodes that got them."""
    job = scene.job(models=[MODEL])
    leases = [scene.lease(job=job) for _ in range(count)]
    start_us = scene.clock.now_us()
    _do(scene, *(_ready(lease, start_us) for lease in leases))
    load = _load(scene)
    assert sum(row["leases"] for row in load) == count
    scene.clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    for lease in leases:
        _do(scene, *_ended(lease, start_us))
    return [lease["node_id"] for lease in leases]


def _ready(lease: dict[str, Any], at_us: int) -> ReadyLease:
    return ReadyLease(
        lease_id=lease["lease_id"], node_id=lease["node_id"], endpoint=None, at_us=at_us
    )


def _ended(lease: dict[str, Any], start_us: int) -> tuple[CloseLease, SettleLease]:
    end_us = start_us + MINUTE_US
    row = UsageRow(
        position=end_us,
        device_id=lease["device_ids"][0],
        boot="b",
        mono_start_us=start_us,
        mono_end_us=end_us,
        wall_start_us=start_us,
        wall_end_us=end_us,
        available_us=MINUTE_US,
        share_ppm=1_000_000,
        received_us=end_us,
    )
    close = CloseLease(
        lease_id=lease["lease_id"], closed_at_us=end_us, party="renter", code=1, at_us=end_us
    )
    settle = SettleLease(
        lease_id=lease["lease_id"],
        lane=lane_of(lease["node_id"]),
        usage_position=end_us,
        rows=(row,),
        at_us=end_us + 2 * MINUTE_US,
    )
    return close, settle


def _load(scene: Scene) -> list[dict[str, Any]]:
    told = scene.owner.read(f"/v1/regions/{scene.provider.region_id}/ingress")
    rows: list[dict[str, Any]] = told["data"]
    return rows


@pytest.fixture
def region(scene: Scene) -> Scene:
    _region(scene)
    return scene


@pytest.mark.slow(
    "::test_k_13_one_ingress_carries_one_worker_and_a_hundred",
    "::test_k_13_a_node_that_stood_idle_is_served_next",
)
def test_k_13_a_hundred_workers_behind_three_ingress_nodes_get_their_work_evenly(
    region: Scene,
) -> None:
    assert [row["workers"] for row in _load(region)] == [34, 33, 33]
    served: Counter[str] = Counter()
    for _ in range(ROUNDS):
        served.update(_round(region, TOGETHER))
    # 200 leases on 100 workers: each got two, and nobody three while another had one. The control
    # and ingress nodes have offers too, and got none.
    assert set(served) == {_id("b", number) for number in range(WORKERS)}
    assert set(served.values()) == {ROUNDS * TOGETHER // WORKERS}
    load = _load(region)
    assert [int(row["served_gpu_us"]) for row in load] == [
        workers * 2 * MINUTE_US for workers in (34, 33, 33)
    ]
    growth = region.owner.read(f"/v1/regions/{region.provider.region_id}/growth")
    assert (growth["control"], growth["ingress"], growth["workers"]) == (3, 3, 100)


@pytest.mark.parametrize("workers", [1, WORKERS])
def test_k_13_one_ingress_carries_one_worker_and_a_hundred(scene: Scene, workers: int) -> None:
    _region(scene, ingresses=1, workers=workers)
    (load,) = _load(scene)
    assert load["workers"] == workers
    taken = min(workers, 5)
    assert len(set(_round(scene, taken))) == taken
    (load,) = _load(scene)
    assert int(load["served_gpu_us"]) == taken * MINUTE_US


def test_k_13_a_node_that_stood_idle_is_served_next(region: Scene) -> None:
    first = set(_round(region, TOGETHER))
    idle = {_id("b", number) for number in range(WORKERS)} - first
    assert set(_round(region, TOGETHER)) == idle
    _worker(region, WORKERS)
    _round(region, 1)
    _worker(region, WORKERS + 1)
    assert _round(region, 1) == [_id("b", WORKERS + 1)], "a newcomer is no worse for having idled"
