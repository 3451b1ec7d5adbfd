"""How regions grow: phases, the smallest and largest number of workers, and which go together."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from fastapi import Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Position,
    Ppm,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.fleet.providers import managed_region, visible_region
from domain.fleet.growth import (
    INGRESS,
    PHASES,
    WORKERS_MAX,
    Growth,
    GrowthTerms,
    SetRegionGrowth,
    SetRegionPhase,
    growth_stream,
)
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from projections.fleet import regions
from projections.fleet.fleet import FLEET

resource = Resource("regions")

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")
Phase = Literal["waitlisted", "opening", "open", "draining", "closed"]
assert get_args(Phase) == PHASES
Workers = Annotated[int, Field(ge=0, le=WORKERS_MAX)]


class RegionGrowthRequest(RequestModel):
    """`workers_min`: other accounts can lease once there were so many. `workers_max`: no more join;
    absent: no cap. `homogeneous`: all GPUs are of one model. `cpu_and_gpu`: nodes without GPUs
    beside nodes with them. `owner_share_ppm`: the part of the owner of a machine that was joined by
    a check-in. `waitlisted`: accounts wait, and no node joins.
    """

    workers_min: Workers = 0
    workers_max: Annotated[int, Field(ge=1, le=WORKERS_MAX)] | None = None
    homogeneous: bool = False
    cpu_and_gpu: bool = True
    owner_share_ppm: Ppm = 1_000_000
    waitlisted: bool = False

    model_config = with_examples(
        {"workers_min": 3, "workers_max": 100, "owner_share_ppm": 900_000},
        {"homogeneous": True, "cpu_and_gpu": False},
    )


class RegionPhaseRequest(RequestModel):
    phase: Phase

    model_config = with_examples({"phase": "open"})


class RegionGrowthAnswer(AnswerModel):
    """`cause` of the phase: `hand`, its `wait_list`, its `first_user`, or its `workers`."""

    region_id: RegionId
    phase: Phase
    cause: Literal["hand", "wait_list", "first_user", "workers"] | None = None
    since: Told_at | None = None
    workers_min: Count
    workers_max: Count | None = None
    homogeneous: bool
    cpu_and_gpu: bool
    owner_share_ppm: Ppm
    workers: Count
    ingress: Count
    control: Count
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/growth",
    WRITE,
    RegionGrowthAnswer,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_PHASE,
        FleetReason.REGION_MIX,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def set_region_growth(region_id: RegionInPath, body: RegionGrowthRequest, call: Caller) -> Response:
    """Sets how a region grows. A region without workers is opening until it has enough."""

    def commands() -> SetRegionGrowth:
        managed_region(call, region_id)
        return SetRegionGrowth(
            region_id=region_id,
            terms=GrowthTerms(**body.model_dump(exclude={"waitlisted"})),
            waitlisted=body.waitlisted,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _told(region_id))


@resource.post(
    "/v1/regions/{region_id}/phase",
    WRITE,
    RegionGrowthAnswer,
    problems=[FleetReason.REGION_UNKNOWN, FleetReason.REGION_PHASE],
)
def set_region_phase(region_id: RegionInPath, body: RegionPhaseRequest, call: Caller) -> Response:
    """Moves a region to another phase. A draining region takes no nodes and no new leases of other
    accounts; one without nodes can be closed, for good.
    """

    def commands() -> SetRegionPhase:
        managed_region(call, region_id)
        return SetRegionPhase(
            region_id=region_id, phase=body.phase, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, _told(region_id))


@resource.get(
    "/v1/regions/{region_id}/growth",
    READ,
    RegionGrowthAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def read_region_growth(region_id: RegionInPath, call: Caller) -> Response:
    """Returns how a region grows, its phase, and how many nodes of each role it has."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        row = regions.read_growth(view.connection, [region_id])[region_id]
        told: dict[str, Any] = {name: getattr(row, name) for name in _SAME}
        answer = RegionGrowthAnswer(
            **told, since=moment_or_none(row.phase_at_us), position=view.position
        )
        return call.answer(view, answer)


_SAME = (
    "region_id",
    "phase",
    "cause",
    "workers_min",
    "workers_max",
    "homogeneous",
    "cpu_and_gpu",
    "owner_share_ppm",
    "workers",
    "ingress",
    "control",
)


def _told(region_id: str) -> Any:
    def told(after: After) -> AnswerModel:
        state: Growth = after.state(growth_stream(region_id))
        asked, phase = state.asked, state.phase
        known: Any = phase
        return RegionGrowthAnswer(
            region_id=region_id,
            phase=known,
            workers_min=asked.workers_min,
            workers_max=asked.workers_max,
            homogeneous=asked.homogeneous,
            cpu_and_gpu=asked.cpu_and_gpu,
            owner_share_ppm=asked.owner_share_ppm,
            workers=len(state.workers),
            ingress=sum(one.role == INGRESS for one in state.members),
            control=sum(one.role == "control" for one in state.members),
        )

    return told
