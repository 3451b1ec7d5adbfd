"""How far a node is believed: the tier of each device, and every rule that keeps it from the next.

Nothing here decides: `domain/trust/tiers.py` judges what the projection added up from signed
reports and recorded facts, so anybody with the logs comes to the same tier.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api.door.auth import everybody, nodes_or_scope, with_scope
from api.door.call import Caller
from api.door.models import (
    AnswerModel,
    Count,
    DeviceId,
    Hex32,
    NodeId,
    NodeInPath,
    Position,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.second_person import checked
from api.fleet.nodes import visible_node
from api.process import founding
from domain.epochs.reasons import EpochsReason
from domain.fleet.reasons import FleetReason
from domain.refusal import Refused
from domain.trust import tiers as trust
from domain.trust.reasons import TrustReason
from domain.trust.record import ForgetDriverLibrary, KnowDriverLibrary
from projections.fleet.fleet import FLEET
from projections.trust import evidence as view_of
from projections.trust.evidence import TRUST

resource = Resource("trust")

READ_OR_NODE = nodes_or_scope("provider", "operator", "audit:read")
Tier = Annotated[int, Field(ge=0, le=4)]


class TrustFindingAnswer(AnswerModel):
    """A rule that does not hold: the device stays below tier `denies`. The evidence is a report of
    a usage lane, or without `lane` a fact of the market log.
    """

    rule: Short
    denies: Tier
    detail: str
    lane: Annotated[int, Field(ge=0, le=63)] | None = None
    evidence_position: Count | None = None


class DeviceTrustAnswer(AnswerModel):
    """One device in the epoch; `simulated`: its driver says so itself."""

    device_id: DeviceId
    tier: Tier
    simulated: bool
    rows: Count
    available_us: Count
    energy_mj: Count
    findings: list[TrustFindingAnswer]


class NodeTrustAnswer(AnswerModel):
    """Without `epoch` there is none yet, and all that was reported counts."""

    node_id: NodeId
    epoch: Count | None = None
    start: Told_at | None = None
    end: Told_at | None = None
    devices: list[DeviceTrustAnswer]
    position: Position


class DriverLibraryRequest(RequestModel):
    """The file `libnvidia-ml.so` of a driver version, by its SHA-256."""

    driver: Annotated[str, Field(min_length=1, max_length=64)]
    sha256: Hex32

    model_config = with_examples({"driver": "580.95.05", "sha256": "5e" * 32})


class DriverLibraryAnswer(AnswerModel):
    driver: str
    sha256: Hex32
    known: bool
    position: Position | None = None


class DriverLibrariesAnswer(AnswerModel):
    data: list[DriverLibraryAnswer]
    position: Position


@resource.get(
    "/v1/nodes/{node_id}/trust",
    READ_OR_NODE,
    NodeTrustAnswer,
    problems=[FleetReason.NODE_UNKNOWN, EpochsReason.EPOCH_UNKNOWN],
)
def read_node_trust(
    node_id: NodeInPath,
    call: Caller,
    epoch: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> Response:
    """Returns the trust tier of each device of a node in an epoch, by default the newest."""
    with call.read(FLEET, TRUST) as view:
        visible_node(call, view, node_id)
        span = view_of.read_span(view.connection, epoch)
        if span is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        libraries = set(view_of.read_libraries(view.connection))
        development = founding.is_development(call.service.ledger)
        told = NodeTrustAnswer(
            node_id=node_id,
            epoch=span.epoch,
            start=None if span.epoch is None else moment(span.from_us),
            end=None if span.epoch is None else moment(span.to_us),
            devices=[
                _device(one, trust.standing(one, libraries, development=development))
                for one in view_of.read_evidence(view.connection, node_id, span)
            ],
            position=view.position,
        )
        return call.answer(view, told)


def _device(evidence: trust.Evidence, standing: trust.Standing) -> DeviceTrustAnswer:
    metered = evidence.metered
    return DeviceTrustAnswer(
        device_id=evidence.device_id,
        tier=standing.tier,
        simulated=standing.is_simulated,
        rows=metered.rows,
        available_us=metered.available_us,
        energy_mj=metered.energy_mj,
        findings=[
            TrustFindingAnswer(
                rule=one.rule,
                denies=one.denies,
                detail=one.detail[:500],
                lane=one.place.lane,
                evidence_position=one.place.position,
            )
            for one in standing.findings
        ],
    )


@resource.get("/v1/trust/libraries", everybody(), DriverLibrariesAnswer)
def list_driver_libraries(call: Caller) -> Response:
    """Lists the driver libraries that the operator trusts. A device under another fails tier 2."""
    with call.read(TRUST) as view:
        known = view_of.read_libraries(view.connection)
        data = [DriverLibraryAnswer(driver=one, sha256=digest, known=True) for one, digest in known]
        return call.answer(view, DriverLibrariesAnswer(data=data, position=view.position))


@resource.post(
    "/v1/trust/libraries",
    with_scope("operator"),
    DriverLibraryAnswer,
    status=201,
    problems=[TrustReason.REFERENCE_INVALID],
    checked=True,
)
def add_driver_library(body: DriverLibraryRequest, call: Caller) -> Response:
    """Adds a driver library to the trusted ones."""
    command = KnowDriverLibrary(
        driver=body.driver, sha256=body.sha256, by=call.principal.member_id, at_us=call.now_us
    )
    told = DriverLibraryAnswer(driver=body.driver, sha256=body.sha256, known=True)
    return call.record(lambda: checked(call, command), lambda _after: told)


@resource.post(
    "/v1/trust/libraries/forget", with_scope("operator"), DriverLibraryAnswer, checked=True
)
def remove_driver_library(body: DriverLibraryRequest, call: Caller) -> Response:
    """Removes a driver library from the trusted ones."""
    command = ForgetDriverLibrary(
        driver=body.driver, sha256=body.sha256, by=call.principal.member_id, at_us=call.now_us
    )
    told = DriverLibraryAnswer(driver=body.driver, sha256=body.sha256, known=False)
    return call.record(lambda: checked(call, command), lambda _after: told)
