"""Quotas of a cloud region: what the provider's cloud account may use there, and uses.

    used now  ==  used at the last report + what leases took since, as jobs of one GPU each
    a lease of n GPUs is reserved  =>  n <= runnable jobs of their model before it

The provider reports them, all at once; the last report counts. A lease that runs at a report is
part of what it says is used: when that lease ends, the next report says so. A lease of a part of a
GPU is a job too. Own jobs count like others: the cloud asks nobody whose they are. Only the
region's provider depends on what is reported. Rows C-26 and C-28.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.cloud.reasons import CloudReason
from domain.fleet.provider import existing_provider, existing_region
from domain.frozen import replace
from domain.hardware.cloud_quota import CPUS_PER_JOB, SSD_GB_PER_JOB, Quota, Runnable, runnable_jobs
from domain.hardware.reasons import HardwareReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.provider_kinds import is_cloud
from domain.refusal import Refused
from domain.stream import Change, Stream, World

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


NO_JOBS = Runnable(0, ("gpus",))
"""Of a model that a cloud has no quota for."""
NO_QUOTAS = RegionQuotas(gpus=(), cpus=Quota(0, 0), local_ssd_gb=Quota(0, 0))
"""Of a region whose provider reported none: no job can start there."""

# Facts. Stream `cloud-quota:{region_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudQuotaReported:
    region_id: str
    quotas: RegionQuotas
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudQuotaTaken:
    """A lease runs so many jobs of one GPU in the region."""

    region_id: str
    lease_id: str
    gpu: str  # of CPUS_PER_JOB
    jobs: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudQuotaReturned:
    """The lease is over."""

    region_id: str
    lease_id: str
    at_us: int


Fact: TypeAlias = CloudQuotaReported | CloudQuotaTaken | CloudQuotaReturned


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCloudQuota:
    region_id: str
    quotas: RegionQuotas
    by: str
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class CloudQuotas:
    """The last report, None before the first, and what leases took since."""

    reported: CloudQuotaReported | None = None
    taken: dict[str, CloudQuotaTaken] = field(default_factory=dict)  # by lease

    def now(self) -> RegionQuotas:
        """The quotas, with what was taken since the report among what is used."""
        told = NO_QUOTAS if self.reported is None else self.reported.quotas
        return quotas_after(told, [(one.gpu, one.jobs) for one in self.taken.values()])


def quotas_after(told: RegionQuotas, taken: Iterable[tuple[str, int]]) -> RegionQuotas:
    """What was reported, with so many jobs more on GPUs of these models."""
    jobs = Counter[str]()
    for gpu, count in taken:
        jobs[gpu] += count
    if not jobs:
        return told
    cpus = sum(CPUS_PER_JOB[gpu] * count for gpu, count in jobs.items())
    return RegionQuotas(
        gpus=tuple(GpuQuota(row.gpu, _with(row.quota, jobs[row.gpu])) for row in told.gpus),
        cpus=_with(told.cpus, cpus),
        local_ssd_gb=_with(told.local_ssd_gb, SSD_GB_PER_JOB * jobs.total()),
    )


def runnable_of(quotas: RegionQuotas, gpu: str) -> Runnable:
    """`runnable_jobs` under all quotas of a region."""
    mine = next((row.quota for row in quotas.gpus if row.gpu == gpu), Quota(0, 0))
    return runnable_jobs(gpu, mine, quotas.cpus, quotas.local_ssd_gb)


def _with(quota: Quota, more: int) -> Quota:
    return replace(quota, used=quota.used + more)


def evolve(state: CloudQuotas, fact: Fact) -> CloudQuotas:
    match fact:
        case CloudQuotaReported():
            return CloudQuotas(fact)
        case CloudQuotaTaken():
            return replace(state, taken={**state.taken, fact.lease_id: fact})
        case CloudQuotaReturned():
            left = {who: one for who, one in state.taken.items() if who != fact.lease_id}
            return replace(state, taken=left)
        case _:
            assert_never(fact)


def cloud_quota_stream(region_id: str) -> Stream[CloudQuotas]:
    return Stream("cloud-quota", region_id)


# Decisions.


def quota_model(model: str) -> str | None:
    """The quota that a device's model counts in; None: a cloud has none for it.

    "NVIDIA A100-SXM4-80GB" counts as A100: one part of the name, between what is no letter or
    digit, is the quota's name.
    """
    parts = re.split(r"[^0-9A-Za-z]+", model)
    return next((name for name in CPUS_PER_JOB if name in parts), None)


def jobs_of(quotas: RegionQuotas, model: str) -> int:
    """How many jobs of one GPU can still start on devices of this model."""
    gpu = quota_model(model)
    return 0 if gpu is None else runnable_of(quotas, gpu).jobs


def decide_report(command: ReportCloudQuota, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, NOT_A_CLOUD_REGION, UNKNOWN_GPU, DUPLICATE_ID,
    COUNT_OUT_OF_RANGE.
    """
    provider = existing_provider(world, existing_region(world, command.region_id).provider_id)
    if not is_cloud(world, provider.kind, command.at_us):
        raise Refused(CloudReason.NOT_A_CLOUD_REGION, region_id=command.region_id)
    _require_quotas(command.quotas)
    reported = CloudQuotaReported(
        region_id=command.region_id, quotas=command.quotas, by=command.by, at_us=command.at_us
    )
    return [Change(cloud_quota_stream(command.region_id), reported)]


def take(
    world: World, region_id: str, lease_id: str, model: str, jobs: int, at_us: int
) -> list[Change]:
    """A lease takes so many GPUs of a cloud region. Raises Refused: CLOUD_QUOTA_FULL."""
    stream = cloud_quota_stream(region_id)
    gpu = quota_model(model)
    left = runnable_of(world.state(stream).now(), gpu) if gpu is not None else NO_JOBS
    if gpu is None or jobs > left.jobs:
        raise Refused(
            CloudReason.CLOUD_QUOTA_FULL,
            region_id=region_id,
            gpu=gpu or model,
            jobs=jobs,
            runnable_jobs=left.jobs,
            limited_by=", ".join(left.limited_by),
        )
    taken = CloudQuotaTaken(region_id=region_id, lease_id=lease_id, gpu=gpu, jobs=jobs, at_us=at_us)
    return [Change(stream, taken)]


def give_back(world: World, region_id: str, lease_id: str, at_us: int) -> list[Change]:
    """What a lease that is over took of a cloud region since its last report."""
    stream = cloud_quota_stream(region_id)
    if lease_id not in world.state(stream).taken:
        return []
    fact = CloudQuotaReturned(region_id=region_id, lease_id=lease_id, at_us=at_us)
    return [Change(stream, fact)]


def _require_quotas(quotas: RegionQuotas) -> None:
    models = [row.gpu for row in quotas.gpus]
    for model in models:
        if model not in CPUS_PER_JOB:
            raise Refused(HardwareReason.UNKNOWN_GPU, gpu=model)
    if len(set(models)) < len(models):
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each GPU model once")
    for quota in (quotas.cpus, quotas.local_ssd_gb, *(row.quota for row in quotas.gpus)):
        for name, value in (("limit", quota.limit), ("used", quota.used)):
            if not 0 <= value <= QUOTA_MAX:
                raise Refused(
                    PartiesReason.COUNT_OUT_OF_RANGE,
                    field=name,
                    value=value,
                    at_least=0,
                    at_most=QUOTA_MAX,
                )


STREAMS: dict[str, tuple[Any, Any]] = {"cloud-quota": (CloudQuotas(), evolve)}
DECIDERS: dict[type[Any], Any] = {ReportCloudQuota: decide_report}
