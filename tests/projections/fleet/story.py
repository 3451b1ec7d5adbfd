"""Policies of regions, maintenance that is and is not called off, statements, roles, licences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.cloud import quotas
from domain.fleet import kinds as resource_kind
from domain.fleet import licence, maintenance, node, provider
from domain.hardware.cloud_quota import Quota
from domain.machines import admission
from domain.money import Asset
from domain.stream import Stream
from domain.trust import attribute
from tests.projections.fleet.region_story import grown


def supplied(nodes: tuple[str, ...], at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Every fact of supply beside joining and offers, some of them more than once."""
    at: dict[str, Any] = {"by": "mem_a", "at_us": at_us}
    yield from _regions(at)
    for number, name in enumerate(nodes[:2], 1):
        planned = maintenance.MaintenanceScheduled(
            maintenance_id=f"maint_{number}",
            node_id=name,
            kind="planned",
            from_us=at_us + 10,
            until_us=at_us + 20,
            keep_leases=number == 1,
            **at,
        )
        yield maintenance.stream_of(name), planned
        yield Stream("node", name), node.NodeSpecConfirmed(node_id=name, at_us=at_us + number)
    cancelled = maintenance.MaintenanceCancelled(maintenance_id="maint_1", node_id=nodes[0], **at)
    yield maintenance.stream_of(nodes[0]), cancelled
    stream = Stream("node", nodes[0])
    yield stream, node.NodeDrainStarted(node_id=nodes[0], keep_leases=False, **at)
    yield stream, node.NodeActivated(node_id=nodes[0], **at)
    for name in ("preemptible", "on_demand", "committed"):
        held = node.NodeCapacityClassSet(node_id=nodes[0], capacity_class=name, **at)
        yield stream, held
    yield from _stated(nodes[0], at)
    yield from _clouds(at)
    yield from _asked_to_join(at)
    for role in ("control", "ingress", "worker"):
        yield (
            Stream("node", nodes[0]),
            node.NodeRoleSet(
                node_id=nodes[0],
                role=role,
                address="in.example:51820" if role == "ingress" else None,
                **at,
            ),
        )
    yield from grown(nodes, at)
    yield from _kinds(at)


def _regions(at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    region = Stream("region", "region_2")
    yield (
        region,
        provider.RegionOpened(
            region_id="region_2",
            provider_id="prov_1",
            name="homes",
            storage_mode="local",
            setting="edge",
            admission="permissionless",
            allow_public_jobs=True,
            at_us=at["at_us"],
            hardware_rules=("tpm_2_0", "ram"),
            cloud_region=None,
            site=None,
        ),
    )
    yield region, provider.RegionHardwareSet(region_id="region_2", rules=("ram",), **at)
    for tier in (0, 2):
        yield (
            region,
            provider.RegionPolicySet(
                region_id="region_2",
                allow_public_jobs=True,
                refused_workloads=("ip_lease", "cron"),
                down_ranked_workloads=("large_storage",),
                security_tier=tier,
                **at,
            ),
        )


def _clouds(at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    """A checklist twice; leases before a report and after it, one of them over."""
    for missing in (("project",), ()):
        checked = provider.CloudAccountChecked(
            provider_id="prov_1",
            project_id="farm-7",
            project_made_on="2022-03-01",
            done=("paid_billing",),
            missing=missing,
            **at,
        )
        yield Stream("provider", "prov_1"), checked
    stream = quotas.cloud_quota_stream("region_2")
    told = quotas.RegionQuotas(
        gpus=(quotas.GpuQuota("T4", Quota(8, 0)),), cpus=Quota(64, 0), local_ssd_gb=Quota(3_000, 0)
    )
    for number in range(4):
        if number == 2:
            yield stream, quotas.CloudQuotaReported(region_id="region_2", quotas=told, **at)
        taken = {"region_id": "region_2", "lease_id": f"lease_c{number}", "at_us": at["at_us"]}
        yield stream, quotas.CloudQuotaTaken(gpu="T4", jobs=1, **taken)
        if number % 2:
            yield stream, quotas.CloudQuotaReturned(**taken)


def _asked_to_join(at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    """Two machines ask to be let in; one of them is refused."""
    for number, gpus in enumerate((1, 8)):
        admission_id = f"admission_{number:032x}"
        asked = admission.AdmissionRequested(
            admission_id=admission_id,
            account_id="acct_cash",
            region_id="region_1",
            vendor="nvidia",
            model="NVIDIA A100-SXM4-80GB",
            gpus=gpus,
            **at,
        )
        yield admission.admission_stream(admission_id), asked
    refused = admission.AdmissionRefused(admission_id=admission_id, why="no power", **at)
    yield admission.admission_stream(admission_id), refused


def _stated(node_id: str, at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    for number in (1, 2):
        name = f"stmt_{number:032x}"
        yield (
            Stream("attribute", name),
            attribute.AttributeStated(
                statement_id=name,
                subject_id=node_id,
                name="location",
                value=f"DE-{number}",
                signer_account_id="acct_cash",
                key_id="0" * 16,
                signature="00" * 64,
                stated_at_us=at["at_us"],
                expires_at_us=at["at_us"] + 9 if number == 1 else None,
                **at,
            ),
        )
    name = f"stmt_{2:032x}"
    yield Stream("attribute", name), attribute.AttributeRevoked(statement_id=name, **at)
    name = f"stmt_{3:032x}"
    yield (
        Stream("attribute", name),
        attribute.AttributeStated(
            statement_id=name,
            subject_id=node_id,
            name="benchmark.resnet50",
            value="970/1000",
            signer_account_id="acct_cash",
            key_id="0" * 16,
            signature="00" * 64,
            stated_at_us=at["at_us"],
            expires_at_us=None,
            **at,
        ),
    )


def _kinds(at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    yield (
        resource_kind.NETWORK,
        resource_kind.ResourceKindRegistered(
            kind="npu",
            vendor="acme",
            dimensions=("compute", "memory"),
            memory="dedicated",
            is_divisible=False,
            capacity_asset=Asset.GPU_MS,
            effective_from_us=at["at_us"],
            **at,
        ),
    )
    yield (
        resource_kind.NETWORK,
        resource_kind.ModelClassed(
            vendor="acme",
            model="Acme One",
            gpu_class="accelerator",
            effective_from_us=at["at_us"],
            **at,
        ),
    )
    for number in (1, 2):
        yield (
            Stream("licence", f"lic_{number}"),
            licence.LicenceGranted(
                licence_id=f"lic_{number}",
                provider_id="prov_1",
                vendor="thirdai",
                model="ThirdAI",
                seats=4,
                terms_sha256="0a" * 32,
                from_us=at["at_us"],
                until_us=None,
                **at,
            ),
        )
    yield Stream("licence", "lic_2"), licence.LicenceRevoked(licence_id="lic_2", **at)
