"""One of each thing that an address can name, made over HTTP by those whose it is."""

from __future__ import annotations

import itertools
from typing import Any

from tests.scenes.server import Scene

_numbers = itertools.count(1)
DESCRIBED: dict[str, Any] = {"vendor": "nvidia", "model": "NVIDIA A100-PCIE-40GB", "gpus": 4}
"""A machine that is to come in, as its owner describes it."""
FIRMWARE = ("tpm_cleared", "csm_off", "secure_boot_off")
ADMITTED = ("requested", "validated", "shipped", "firmware", "installed")
"""How far a machine is let in, in order."""


def datastore() -> dict[str, Any]:
    """What adds a datastore."""
    return {"name": f"d{next(_numbers)}", "kind": "nfs", "address": "10.0.0.5", "root_path": "/"}


def reservation() -> dict[str, Any]:
    """What reserves a port for a name."""
    number = next(_numbers)
    return {"name": f"r{number}", "host_name": f"h{number}", "port": 8_888}


def volume(scene: Scene) -> dict[str, Any]:
    """What creates a volume in the first region."""
    return {"name": "v", "region_id": scene.provider.region_id, "size_gib": 1}


def used_volume(scene: Scene) -> str:
    """A volume that a lease on a node of the first region had attached, and has no more."""
    volume_id = scene.renter.made("/v1/volumes", volume(scene))["volume_id"]
    mounted = [{"volume_id": volume_id, "path": "/vol/used"}]
    lease = scene.lease(job=scene.job(volumes=mounted))
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    return str(volume_id)


def dataset(scene: Scene) -> dict[str, Any]:
    """What places a dataset in the first region."""
    return {"name": "s3://matrix", "region_ids": [scene.provider.region_id]}


def with_plan_team(scene: Scene) -> None:
    """The owner's account gets the plan team, which datastores and reservations need."""
    scene.operator.made(f"/v1/accounts/{scene.owner.account_id}/plan", {"plan": "team"})


def added_of_team(scene: Scene, sort: str, body: dict[str, Any]) -> str:
    """The id of a thing in the owner's region that needs the plan team."""
    with_plan_team(scene)
    told = scene.owner.made(f"/v1/regions/{scene.provider.region_id}/{sort}", body)
    return str(told[f"{sort.removesuffix('s')}_id"])


def edge_device(region_id: str) -> dict[str, Any]:
    """What adds an edge device to a region with central storage."""
    number = next(_numbers)
    named = {"name": f"gate-{number}", "minion_id": f"minion-{number}"}
    return {"region_id": region_id, "model": "jetson-orin-nano", **named}


def device_config(name: str = "counter") -> dict[str, Any]:
    """What sets the first revision of a device configuration."""
    work = {"image": "counter:1", "model": "models/counter", "command": ["python", "run.py"]}
    return {"name": name, "revision": 1, "work": work}


def added_edge_device(scene: Scene) -> str:
    """The id of a device in a new region with central storage."""
    body = edge_device(scene.central_region(f"edges-{next(_numbers)}"))
    device_id: str = scene.owner.made("/v1/edge-devices", body)["device_id"]
    return device_id


def deployed_edge_device(scene: Scene) -> str:
    """The id of an active device; the configuration `counter` of its region was deployed to it."""
    region_id = scene.central_region(f"edges-{next(_numbers)}")
    device_id: str = scene.owner.made("/v1/edge-devices", edge_device(region_id))["device_id"]
    scene.owner.made(f"/v1/edge-devices/{device_id}/report")
    scene.owner.made(f"/v1/regions/{region_id}/device-configs", device_config())
    scene.owner.made(f"/v1/edge-devices/{device_id}/deploy", {"config": "counter"})
    return device_id


def approved_region(scene: Scene) -> str:
    """A region of the owner where machines come in by the whole procedure."""
    terms = {"storage_mode": "local", "admission": "approved"}
    return scene.region(f"approved-{next(_numbers)}", **terms)


def admission(scene: Scene, until: str = "requested") -> str:
    """The id of an admission in a region of its own, led as far as one of `ADMITTED`."""
    body = {**DESCRIBED, "region_id": approved_region(scene)}
    admission_id: str = scene.owner.made("/v1/admissions", body)["admission_id"]
    path, reached = f"/v1/admissions/{admission_id}", ADMITTED.index(until)
    if reached >= ADMITTED.index("validated"):
        scene.operator.made(f"{path}/validate")
    if reached >= ADMITTED.index("shipped"):
        scene.operator.made(f"{path}/ship", {"tracking": "1Z"})
    if reached >= ADMITTED.index("firmware"):
        for step in FIRMWARE:
            scene.owner.made(f"{path}/firmware", {"step": step})
    if reached >= ADMITTED.index("installed"):
        scene.owner.made(f"{path}/installed", {"minion_id": "minion-4f21"})
    return admission_id
