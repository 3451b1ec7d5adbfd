"""How nodes are reached: what to measure, what they measured, and bytes through ingress nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Header, Response
from pydantic import Field

from api.door.auth import nodes_only, with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Moment,
    NodeId,
    NodeInPath,
    Position,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet import node_signatures
from api.fleet.nodes import READ_OR_NODE, visible_node
from api.fleet.providers import visible_region
from api.regions.neighbours import NodeNeighbourTargetsAnswer, to_try
from domain.calendar import day_of, day_text
from domain.fleet import keys as node_key
from domain.fleet.growth import INGRESS, growth_stream
from domain.fleet.node import node_stream
from domain.fleet.provider import region_stream
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.boundaries import place_stream
from domain.regions.reachability import (
    DAYS_KEPT,
    RTT_US_MAX,
    SAMPLES_MAX,
    TARGETS,
    Latency,
    ReportIngressBytes,
    ReportLatency,
)
from projections.fleet import regions
from projections.fleet.fleet import FLEET

resource = Resource("nodes")

Target = Literal["control", "ingress"]
NodeSignature = Annotated[str, Header(max_length=128)]
Bytes = Annotated[int, Field(ge=0, le=2**53)]


class NodeTargetAnswer(AnswerModel):
    """`address`: host and port to time a connection to; absent for the control: this server's."""

    target: Target
    node_id: NodeId | None = None
    address: str | None = None


class NodeTargetsAnswer(AnswerModel):
    """`role`: of an ingress, its reporter tells the bytes that go through it. `neighbours`: nodes
    of the region to try on private addresses; absent in a region of a cloud.
    """

    node_id: NodeId
    region_id: RegionId
    role: Literal["worker", "ingress", "control"]
    data: list[NodeTargetAnswer]
    neighbours: NodeNeighbourTargetsAnswer | None = None
    position: Position


class NodeLatencyWayRequest(RequestModel):
    """The median round trip of `samples` connections, in microseconds."""

    target: Target
    rtt_us: Annotated[int, Field(ge=1, le=RTT_US_MAX)]
    samples: Annotated[int, Field(ge=1, le=SAMPLES_MAX)]


class NodeLatencyRequest(RequestModel):
    ways: Annotated[list[NodeLatencyWayRequest], Field(min_length=1, max_length=len(TARGETS))]

    model_config = with_examples({"ways": [{"target": "control", "rtt_us": 18400, "samples": 5}]})


class NodeWayAnswer(AnswerModel):
    target: Target
    rtt_us: Count
    samples: Count
    measured_at: Told_at


class NodeLatencyAnswer(AnswerModel):
    """What the node's reporter measured last."""

    node_id: NodeId
    data: list[NodeWayAnswer]
    position: Position | None = None


class IngressBytesRequest(RequestModel):
    """Bytes through the interface that workers come through, from one moment to another of one UTC
    day; intervals follow each other.
    """

    from_: Annotated[Moment, Field(alias="from")]
    until: Moment
    bytes_in: Bytes
    bytes_out: Bytes

    model_config = with_examples(
        {
            "from": "2026-12-01T10:00:00Z",
            "until": "2026-12-01T10:05:00Z",
            "bytes_in": 1_048_576,
            "bytes_out": 524_288,
        }
    )


class IngressBytesAnswer(AnswerModel):
    node_id: NodeId
    position: Position | None = None


class IngressDayAnswer(AnswerModel):
    node_id: NodeId
    date: str
    bytes_in: Count
    bytes_out: Count
    until: Told_at


class IngressDaysAnswer(AnswerModel):
    region_id: RegionId
    data: list[IngressDayAnswer]
    position: Position


@resource.get(
    "/v1/nodes/{node_id}/targets",
    READ_OR_NODE,
    NodeTargetsAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_node_targets(node_id: NodeInPath, call: Caller) -> Response:
    """Lists what a node's reporter should try: its region's control and ingress, and neighbours."""
    with call.read(FLEET) as view:
        row = visible_node(call, view, node_id)
        market = call.service.ledger.market
        place = market.state_of(place_stream(row.region_id)).told
        member = market.state_of(growth_stream(row.region_id)).member(node_id)
        data = [
            NodeTargetAnswer(target="control", address=None if place is None else place.address)
        ]
        role: Literal["worker", "ingress", "control"] = "worker"
        if member is not None:
            role = member.role  # type: ignore[assignment]
            if member.ingress_node_id is not None:
                told = market.state_of(node_stream(member.ingress_node_id)).role_told
                data.append(
                    NodeTargetAnswer(
                        target="ingress",
                        node_id=member.ingress_node_id,
                        address=None if told is None else told.address,
                    )
                )
        region = market.state_of(region_stream(row.region_id)).opened
        is_asked = region is not None and region.cloud_region is None
        answer = NodeTargetsAnswer(
            node_id=node_id,
            region_id=row.region_id,
            role=role,
            data=data,
            neighbours=to_try(call, view, row) if is_asked else None,
            position=view.position,
        )
        return call.answer(view, answer)


@resource.post(
    "/v1/nodes/{node_id}/latency",
    nodes_only(),
    NodeLatencyAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, PartiesReason.UNKNOWN_MODE],
)
def report_latency(node_id: NodeInPath, body: NodeLatencyRequest, call: Caller) -> Response:
    """Records how far a node is from its region's control and its ingress, sent by the node. Within
    five minutes of the last report nothing is recorded.
    """

    def commands() -> ReportLatency:
        _require_itself(call, node_id)
        return ReportLatency(
            node_id=node_id,
            ways=tuple(Latency(one.target, one.rtt_us, one.samples) for one in body.ways),
            at_us=call.now_us,
        )

    data = [
        NodeWayAnswer(
            target=one.target,
            rtt_us=one.rtt_us,
            samples=one.samples,
            measured_at=moment(call.now_us),
        )
        for one in body.ways
    ]
    return call.record(commands, lambda _after: NodeLatencyAnswer(node_id=node_id, data=data))


@resource.get(
    "/v1/nodes/{node_id}/latency",
    with_scope("provider", "renter", "operator", "audit:read"),
    NodeLatencyAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_latency(node_id: NodeInPath, call: Caller) -> Response:
    """Returns what a node measured of the way to its region's control and its ingress."""
    with call.read(FLEET) as view:
        visible_node(call, view, node_id, to_renters=True)
        ways = regions.read_ways(view.connection, [node_id]).get(node_id, [])
        answer = NodeLatencyAnswer(
            node_id=node_id, data=[way_told(way) for way in ways], position=view.position
        )
        return call.answer(view, answer)


def way_told(way: regions.Way) -> NodeWayAnswer:
    target: Target = "ingress" if way.target == "ingress" else "control"
    return NodeWayAnswer(
        target=target, rtt_us=way.rtt_us, samples=way.samples, measured_at=moment(way.at_us)
    )


@resource.post(
    "/v1/nodes/{node_id}/ingress-bytes",
    nodes_only(),
    IngressBytesAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.NODE_ROLE,
        FleetReason.BAD_PERIOD,
        PartiesReason.COUNT_OUT_OF_RANGE,
        "bad_signature",
    ],
)
def report_ingress_bytes(
    node_id: NodeInPath, body: IngressBytesRequest, call: Caller, node_signature: NodeSignature = ""
) -> Response:
    """Records the bytes that went through an ingress node, signed by its key.

    `Node-Signature`: base64 of the key's Ed25519 signature over the DSSE encoding of the body's
    exact bytes, with the payload type `org.tallystick.node.ingress-bytes.v1`.
    """
    signature = node_signatures.from_base64(node_signature)

    def commands() -> ReportIngressBytes:
        _require_itself(call, node_id)
        state = call.service.ledger.market.state_of(node_stream(node_id))
        if state.role != INGRESS:
            raise Refused(FleetReason.NODE_ROLE, rule="an_ingress_tells_bytes")
        message = node_key.envelope(node_key.INGRESS_BYTES_TYPE, call.body)
        node_signatures.require(state.public_key, message, signature)
        return ReportIngressBytes(
            node_id=node_id,
            from_us=body.from_,
            until_us=body.until,
            bytes_in=body.bytes_in,
            bytes_out=body.bytes_out,
            signature=signature.hex(),
            at_us=call.now_us,
        )

    return call.record(commands, lambda _after: IngressBytesAnswer(node_id=node_id))


@resource.get(
    "/v1/regions/{region_id}/ingress-bytes",
    with_scope("provider", "operator", "audit:read"),
    IngressDaysAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def list_ingress_bytes(region_id: RegionInPath, call: Caller) -> Response:
    """Lists the bytes through each ingress node of a region by UTC day, the newest first."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        rows = regions.read_ingress_days(
            view.connection, region_id, since_day=day_of(call.now_us) - DAYS_KEPT
        )
        data = [
            IngressDayAnswer(
                node_id=row.node_id,
                date=day_text(row.day),
                bytes_in=row.bytes_in,
                bytes_out=row.bytes_out,
                until=moment(row.until_us),
            )
            for row in rows
        ]
        told = IngressDaysAnswer(region_id=region_id, data=data, position=view.position)
        return call.answer(view, told)


def _require_itself(call: Call, node_id: str) -> None:
    if not call.node_of_caller(node_id):
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
