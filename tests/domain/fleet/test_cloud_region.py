"""Quotas of cloud regions: who may report them, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.fleet.cloud_region import (
    QUOTA_MAX,
    CloudQuotaReported,
    GpuQuota,
    RegionQuotas,
    ReportCloudQuota,
    cloud_quota_stream,
)
from domain.fleet.reasons import FleetReason
from domain.hardware.cloud_quota import Quota, runnable_jobs
from domain.hardware.reasons import HardwareReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.stream import Stream
from tests.domain.scenes.supply import NOON_US, PROVIDER, REGION, region_opened, registered
from tests.given import Scene

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
    _scene("physical").when(report).then_refused(FleetReason.NOT_A_CLOUD_REGION)


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
