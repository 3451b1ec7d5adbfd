"""Quotas of cloud regions: who may report them, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.fleet.cloud_region import (
    QUOTA_MAX,
    CloudQuotaReported,
    GpuQuota,
    ReportCloudQuota,
    cloud_quota_stream,
)
from domain.fleet.provider import ProviderRegistered, RegionOpened
from domain.fleet.reasons import FleetReason
from domain.hardware.cloud_quota import Quota, runnable_jobs
from domain.hardware.reasons import HardwareReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.stream import Stream
from tests.given import Scene

PROVIDER, REGION = "prov_1", "region_1"
NOW_US = 1_795_161_720_000_000
registered = ProviderRegistered(
    provider_id=PROVIDER, account_id="acct_owner", kind="gcp", at_us=NOW_US
)
opened = RegionOpened(
    region_id=REGION,
    provider_id=PROVIDER,
    name="iowa",
    storage_mode="central",
    setting="datacenter",
    admission="operator",
    allow_public_jobs=True,
    at_us=NOW_US,
    hardware_rules=(),
)
report = ReportCloudQuota(
    region_id=REGION,
    gpus=(GpuQuota("V100", Quota(8, 5)),),
    cpus=Quota(96, 80),
    local_ssd_gb=Quota(3_000, 0),
    by="mem_1",
    at_us=NOW_US,
)


def _scene(kind: str) -> Scene:
    return Scene().given(
        (Stream("provider", PROVIDER), replace(registered, kind=kind)),
        (Stream("region", REGION), opened),
    )


def test_the_last_report_counts() -> None:
    later = _scene("gcp").after(report)
    later = later.after(replace(report, cpus=Quota(96, 0), at_us=NOW_US + 1))
    state = later.state(cloud_quota_stream(REGION))
    assert isinstance(state.reported, CloudQuotaReported)
    assert state.reported.cpus == Quota(96, 0)


def test_a_provider_with_machines_of_its_own_has_no_quotas() -> None:
    _scene("physical").when(report).then_refused(FleetReason.NOT_A_CLOUD_REGION)


def test_a_region_that_is_not_there_is_refused() -> None:
    _scene("gcp").when(replace(report, region_id="region_2")).then_refused(
        FleetReason.REGION_UNKNOWN
    )


def test_a_model_is_known_and_named_once() -> None:
    one = GpuQuota("V100", Quota(1, 0))
    unknown = replace(report, gpus=(GpuQuota("H100", Quota(1, 0)),))
    _scene("gcp").when(unknown).then_refused(HardwareReason.UNKNOWN_GPU)
    _scene("gcp").when(replace(report, gpus=(one, one))).then_refused(MoneyReason.DUPLICATE_ID)


@pytest.mark.parametrize("quota", [Quota(-1, 0), Quota(0, -1), Quota(QUOTA_MAX + 1, 0)])
def test_a_quota_is_a_number_in_its_range(quota: Quota) -> None:
    for changed in (
        replace(report, cpus=quota),
        replace(report, local_ssd_gb=quota),
        replace(report, gpus=(GpuQuota("T4", quota),)),
    ):
        _scene("gcp").when(changed).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_a_limit_below_what_is_used_leaves_nothing() -> None:
    found = runnable_jobs("T4", Quota(2, 5), Quota(96, 0), Quota(3_000, 0))
    assert (found.jobs, found.limited_by) == (0, ("gpus",))
