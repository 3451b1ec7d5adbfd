"""Quotas of cloud regions: who may report them, what leases take, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.cloud.quotas import (
    QUOTA_MAX,
    CloudQuotaReported,
    CloudQuotaReturned,
    CloudQuotaTaken,
    GpuQuota,
    RegionQuotas,
    ReportCloudQuota,
    cloud_quota_stream,
    give_back,
    jobs_of,
    quota_model,
    runnable_of,
    take,
)
from domain.cloud.reasons import CloudReason
from domain.fleet.node import NodeJoinRequested
from domain.fleet.reasons import FleetReason
from domain.hardware.cloud_quota import Quota, runnable_jobs
from domain.hardware.reasons import HardwareReason
from domain.lease.lease import LeaseReserved
from domain.leasing.accrual import _cloud_quota_returned
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.supply import NOON_US, PROVIDER, REGION, region_opened, registered
from tests.given import Scene
from tests.scenes.samples import sample

QUOTAS = RegionQuotas(
    gpus=(GpuQuota("V100", Quota(8, 5)),), cpus=Quota(96, 80), local_ssd_gb=Quota(3_000, 0)
)
report = ReportCloudQuota(region_id=REGION, quotas=QUOTAS, by="mem_1", at_us=NOON_US)


def _scene(kind: str) -> Scene:
    return Scene().given(
        (Stream("provider", PROVIDER), replace(registered, kind=kind)),
        (Stream("region", REGION), region_opened),
    )


def _reporting(**changed: Any) -> ReportCloudQuota:
    return replace(report, quotas=replace(QUOTAS, **changed))


def test_the_last_report_counts() -> None:
    later = _scene("gcp").after(report)
    later = later.after(_reporting(cpus=Quota(96, 0)))
    state = later.state(cloud_quota_stream(REGION))
    assert isinstance(state.reported, CloudQuotaReported)
    assert state.reported.quotas.cpus == Quota(96, 0)


def test_a_provider_with_machines_of_its_own_has_no_quotas() -> None:
    _scene("physical").when(report).then_refused(CloudReason.NOT_A_CLOUD_REGION)


def test_a_region_that_is_not_there_is_refused() -> None:
    _scene("gcp").when(replace(report, region_id="region_2")).then_refused(
        FleetReason.REGION_UNKNOWN
    )


def test_a_model_is_known_and_named_once() -> None:
    one = GpuQuota("V100", Quota(1, 0))
    unknown = _reporting(gpus=(GpuQuota("H100", Quota(1, 0)),))
    _scene("gcp").when(unknown).then_refused(HardwareReason.UNKNOWN_GPU)
    _scene("gcp").when(_reporting(gpus=(one, one))).then_refused(MoneyReason.DUPLICATE_ID)


@pytest.mark.parametrize("quota", [Quota(-1, 0), Quota(0, -1), Quota(QUOTA_MAX + 1, 0)])
def test_a_quota_is_a_number_in_its_range(quota: Quota) -> None:
    for changed in (
        _reporting(cpus=quota),
        _reporting(local_ssd_gb=quota),
        _reporting(gpus=(GpuQuota("T4", quota),)),
    ):
        _scene("gcp").when(changed).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_a_limit_below_what_is_used_leaves_nothing() -> None:
    found = runnable_jobs("T4", Quota(2, 5), Quota(96, 0), Quota(3_000, 0))
    assert (found.jobs, found.limited_by) == (0, ("gpus",))


# --- what leases take ------------------------------------------------------------------------

STREAM = cloud_quota_stream(REGION)
ROOMY = RegionQuotas(
    gpus=(GpuQuota("V100", Quota(4, 1)), GpuQuota("A100", Quota(9, 0))),
    cpus=Quota(40, 0),
    local_ssd_gb=Quota(10_000, 0),
)
V100, A100 = "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB"


def _taken(scene: Scene, lease_id: str, model: str, jobs: int) -> Scene:
    changes = take(scene, REGION, lease_id, model, jobs, NOON_US)
    return scene.given(*((change.stream, change.fact) for change in changes))


def _left(scene: Scene) -> tuple[int, int]:
    now = scene.state(STREAM).now()
    return runnable_of(now, "V100").jobs, runnable_of(now, "A100").jobs


def test_leases_take_gpus_cpus_and_disk_of_the_quota_and_models_share_the_cpus() -> None:
    scene = _scene("gcp").after(replace(report, quotas=ROOMY))
    assert _left(scene) == (3, 3)
    scene = _taken(scene, "lease_1", V100, 2)
    assert _left(scene) == (1, 2), "16 of 40 CPUs are used: 24 are two jobs on A100"
    scene = _taken(scene, "lease_2", A100, 1)
    assert _left(scene) == (1, 1)
    for model, jobs in ((V100, 2), (A100, 2), ("NVIDIA H100 PCIe", 1)):
        with pytest.raises(Refused) as refused:
            take(scene, REGION, "lease_3", model, jobs, NOON_US)
        assert refused.value.reason is CloudReason.CLOUD_QUOTA_FULL


def test_a_lease_that_ends_gives_back_what_it_took_since_the_report_and_once() -> None:
    scene = _scene("gcp").after(replace(report, quotas=ROOMY))
    scene = _taken(scene, "lease_1", V100, 3)
    assert _left(scene)[0] == 0
    (change,) = give_back(scene, REGION, "lease_1", NOON_US)
    returned = CloudQuotaReturned(region_id=REGION, lease_id="lease_1", at_us=NOON_US)
    assert change.fact == returned
    scene = scene.given((STREAM, returned))
    assert _left(scene)[0] == 3
    assert give_back(scene, REGION, "lease_1", NOON_US) == []


def test_a_report_has_counted_the_leases_that_run() -> None:
    scene = _taken(_scene("gcp").after(replace(report, quotas=ROOMY)), "lease_1", V100, 3)
    scene = scene.after(replace(report, quotas=ROOMY, at_us=NOON_US + 1))
    assert _left(scene)[0] == 3, "what it says is used holds them"
    assert give_back(scene, REGION, "lease_1", NOON_US + 2) == []


def test_without_a_report_no_job_can_start() -> None:
    with pytest.raises(Refused):
        take(_scene("gcp"), REGION, "lease_1", V100, 1, NOON_US)


def test_what_is_taken_is_a_fact() -> None:
    scene = _scene("gcp").after(replace(report, quotas=ROOMY))
    (change,) = take(scene, REGION, "lease_1", V100, 2, NOON_US)
    fact = CloudQuotaTaken(region_id=REGION, lease_id="lease_1", gpu="V100", jobs=2, at_us=NOON_US)
    assert (change.stream, change.fact) == (STREAM, fact)


@pytest.mark.parametrize(
    ("model", "gpu"),
    [
        (V100, "V100"),
        (A100, "A100"),
        ("NVIDIA A100-PCIE-80GB", "A100"),
        ("Tesla T4", "T4"),
        ("Tesla P100-PCIE-16GB", "P100"),
        ("NVIDIA T400", None),
        ("NVIDIA H100 PCIe", None),
    ],
)
def test_a_model_counts_in_the_quota_that_a_part_of_its_name_is(
    model: str, gpu: str | None
) -> None:
    assert quota_model(model) == gpu
    assert jobs_of(ROOMY, model) == (0 if gpu is None else runnable_of(ROOMY, gpu).jobs)


def test_a_lease_that_is_over_gives_back_what_it_took_of_its_region_where_that_is_a_clouds() -> (
    None
):
    joined = replace(sample(NodeJoinRequested), node_id="node_1", region_id=REGION)
    lease = replace(
        sample(LeaseReserved), lease_id="lease_1", node_id="node_1", provider_id=PROVIDER
    )
    returned = CloudQuotaReturned(region_id=REGION, lease_id="lease_1", at_us=7)
    for kind, facts in (("gcp", [returned]), ("physical", [])):
        scene = _taken(_scene("gcp").after(replace(report, quotas=ROOMY)), "lease_1", V100, 1)
        scene = scene.given(
            (Stream("node", "node_1"), joined),
            (Stream("provider", PROVIDER), replace(registered, kind=kind)),
        )
        assert [one.fact for one in _cloud_quota_returned(lease, 7, scene)] == facts
        other = replace(lease, lease_id="lease_2")
        assert _cloud_quota_returned(other, 7, scene) == [], "it took nothing"
