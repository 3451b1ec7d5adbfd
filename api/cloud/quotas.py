"""Quotas of cloud regions: limit and used, and the jobs that can still start under them."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from fastapi import Response
from pydantic import Field

from api.door.call import Caller
from api.door.models import (
    AnswerModel,
    Count,
    Position,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.providers import READ, WRITE, own_region, visible_region
from domain.cloud.quotas import (
    QUOTA_MAX,
    CloudQuotas,
    GpuQuota,
    RegionQuotas,
    ReportCloudQuota,
    cloud_quota_stream,
    runnable_of,
)
from domain.cloud.reasons import CloudReason
from domain.fleet.reasons import FleetReason
from domain.hardware.cloud_quota import CPUS_PER_JOB, Limit, Quota
from domain.money import MoneyReason
from projections.fleet.fleet import FLEET

resource = Resource("clouds")

CloudGpu = Literal["P100", "V100", "T4", "A100"]
assert get_args(CloudGpu) == tuple(CPUS_PER_JOB)
Quantity = Annotated[int, Field(ge=0, le=QUOTA_MAX)]


class CloudLimitRequest(RequestModel):
    """What the cloud allows in the region, and what of it is used."""

    limit: Quantity
    used: Quantity


class GpuQuotaRequest(CloudLimitRequest):
    gpu: CloudGpu


class CloudQuotasRequest(RequestModel):
    """All quotas of the region at once. A GPU model that is left out has none."""

    gpus: Annotated[list[GpuQuotaRequest], Field(max_length=len(CPUS_PER_JOB))]
    cpus: CloudLimitRequest
    local_ssd_gb: CloudLimitRequest

    model_config = with_examples(
        {
            "gpus": [{"gpu": "V100", "limit": 8, "used": 5}],
            "cpus": {"limit": 96, "used": 80},
            "local_ssd_gb": {"limit": 3000, "used": 0},
        }
    )


class CloudLimitAnswer(AnswerModel):
    """`free`: the limit less what is used, at least 0."""

    limit: Count
    used: Count
    free: Count


class GpuQuotaAnswer(CloudLimitAnswer):
    """`runnable_jobs`: how many more jobs of one GPU can start; `limited_by`: what stops the next
    one.
    """

    gpu: str
    runnable_jobs: Count
    limited_by: list[Limit]


class CloudQuotasAnswer(AnswerModel):
    """The last report, with the `leases` that began since among what is used. Before the first
    report there are no quotas, and no lease can start.
    """

    region_id: RegionId
    gpus: list[GpuQuotaAnswer]
    cpus: CloudLimitAnswer | None = None
    local_ssd_gb: CloudLimitAnswer | None = None
    leases: Count = 0
    reported_at: Told_at | None = None
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/cloud-quotas",
    WRITE,
    CloudQuotasAnswer,
    problems=[FleetReason.REGION_UNKNOWN, CloudReason.NOT_A_CLOUD_REGION, MoneyReason.DUPLICATE_ID],
)
def report_cloud_quotas(
    region_id: RegionInPath, body: CloudQuotasRequest, call: Caller
) -> Response:
    """Reports what a region's cloud allows and what of it is used; the last report counts."""

    def commands() -> ReportCloudQuota:
        own_region(call, region_id)
        return ReportCloudQuota(
            region_id=region_id,
            quotas=RegionQuotas(
                gpus=tuple(GpuQuota(row.gpu, Quota(row.limit, row.used)) for row in body.gpus),
                cpus=Quota(body.cpus.limit, body.cpus.used),
                local_ssd_gb=Quota(body.local_ssd_gb.limit, body.local_ssd_gb.used),
            ),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(
        commands, lambda after: _quotas(region_id, after.state(cloud_quota_stream(region_id)))
    )


@resource.get(
    "/v1/regions/{region_id}/cloud-quotas",
    READ,
    CloudQuotasAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def read_cloud_quotas(region_id: RegionInPath, call: Caller) -> Response:
    """Returns the quotas of a cloud region, and how many jobs can still start on each GPU model."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        state = call.service.ledger.market.state_of(cloud_quota_stream(region_id))
        return call.answer(view, _quotas(region_id, state))


def _quotas(region_id: str, state: CloudQuotas) -> CloudQuotasAnswer:
    if state.reported is None:
        return CloudQuotasAnswer(region_id=region_id, gpus=[])
    quotas = state.now()
    return CloudQuotasAnswer(
        region_id=region_id,
        gpus=[_of_gpu(row, quotas) for row in quotas.gpus],
        cpus=_quota(quotas.cpus),
        local_ssd_gb=_quota(quotas.local_ssd_gb),
        leases=len(state.taken),
        reported_at=moment(state.reported.at_us),
    )


def _quota(quota: Quota) -> CloudLimitAnswer:
    return CloudLimitAnswer(limit=quota.limit, used=quota.used, free=quota.free)


def _of_gpu(row: GpuQuota, quotas: RegionQuotas) -> GpuQuotaAnswer:
    found = runnable_of(quotas, row.gpu)
    return GpuQuotaAnswer(
        gpu=row.gpu,
        limit=row.quota.limit,
        used=row.quota.used,
        free=row.quota.free,
        runnable_jobs=found.jobs,
        limited_by=list(found.limited_by),
    )
