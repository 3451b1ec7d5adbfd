"""Quotas of a cloud region: what the provider's cloud account may use there, and uses.

The provider reports them, all at once; the last report counts. Only its provider depends on them.
Rows C-26 and C-28: shown as limit and used, and as the jobs that can still start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.fleet.provider import existing_provider, existing_region
from domain.fleet.reasons import FleetReason
from domain.hardware.cloud_quota import CPUS_PER_JOB, Quota
from domain.hardware.reasons import HardwareReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

CLOUD_KINDS = ("gcp",)
"""The kinds of providers that have quotas."""
QUOTA_MAX = 10**9


@dataclass(frozen=True, slots=True)
class GpuQuota:
    """The quota for GPUs of one model, as `CPUS_PER_JOB` names them."""

    gpu: str
    quota: Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionQuotas:
    """All quotas of a region. A model that is not named has none."""

    gpus: tuple[GpuQuota, ...]
    cpus: Quota
    local_ssd_gb: Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudQuotaReported:
    """Stream `cloud-quota:{region_id}`."""

    region_id: str
    quotas: RegionQuotas
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCloudQuota:
    region_id: str
    quotas: RegionQuotas
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class CloudQuotas:
    """The last report; None before the first."""

    reported: CloudQuotaReported | None = None


def evolve(_state: CloudQuotas, fact: CloudQuotaReported) -> CloudQuotas:
    return CloudQuotas(fact)


def cloud_quota_stream(region_id: str) -> Stream[CloudQuotas]:
    return Stream("cloud-quota", region_id)


def decide_report(command: ReportCloudQuota, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, NOT_A_CLOUD_REGION, UNKNOWN_GPU, DUPLICATE_ID,
    COUNT_OUT_OF_RANGE.
    """
    provider = existing_provider(world, existing_region(world, command.region_id).provider_id)
    if provider.kind not in CLOUD_KINDS:
        raise Refused(FleetReason.NOT_A_CLOUD_REGION, region_id=command.region_id)
    _require_quotas(command.quotas)
    reported = CloudQuotaReported(
        region_id=command.region_id, quotas=command.quotas, by=command.by, at_us=command.at_us
    )
    return [Change(cloud_quota_stream(command.region_id), reported)]


def _require_quotas(quotas: RegionQuotas) -> None:
    models = [row.gpu for row in quotas.gpus]
    for model in models:
        if model not in CPUS_PER_JOB:
            raise Refused(HardwareReason.UNKNOWN_GPU, gpu=model)
    if len(set(models)) < len(models):
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each GPU model once")
    for quota in (quotas.cpus, quotas.local_ssd_gb, *(row.quota for row in quotas.gpus)):
        for field, value in (("limit", quota.limit), ("used", quota.used)):
            if not 0 <= value <= QUOTA_MAX:
                raise Refused(
                    PartiesReason.COUNT_OUT_OF_RANGE,
                    field=field,
                    value=value,
                    at_least=0,
                    at_most=QUOTA_MAX,
                )


STREAMS: dict[str, tuple[Any, Any]] = {"cloud-quota": (CloudQuotas(), evolve)}
DECIDERS: dict[type[Any], Any] = {ReportCloudQuota: decide_report}
