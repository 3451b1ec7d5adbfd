"""Whether the nodes of a region reach each other on private addresses, as they tried (C-3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from fastapi import Header, Response
from pydantic import Field

from api.door.auth import nodes_only, with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AnswerModel,
    Count,
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
from domain.fleet.node import node_stream
from domain.fleet.provider import region_stream
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.neighbour_proofs import ADDRESSES_MAX, PEERS_MAX, Tried, answer_text, statement
from domain.regions.neighbours import (
    FRESH_US,
    VERDICTS,
    Seen,
    TellNeighbours,
    Told,
    is_tried,
    require_recent,
    see,
    verdict_of,
)
from projections.fleet import fleet, regions
from projections.fleet.fleet import FLEET

resource = Resource("nodes")

NodeSignature = Annotated[str, Header(max_length=128)]
PrivateAddress = Annotated[
    str, Field(pattern=r"^[0-9.]{7,15}:[0-9]{4,5}$", examples=["10.0.0.7:7714"])
]
Challenge = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,18}$", examples=["1795161720000000"])]
Verdict = Literal["connected", "disconnected", "unknown", "single"]
assert get_args(Verdict) == VERDICTS


class NodeNeighbourTargetAnswer(AnswerModel):
    """`addresses`: private ones, as that node told them; `public_key`: it signs what answers."""

    node_id: NodeId
    addresses: list[PrivateAddress]
    public_key: str


class NodeNeighbourTargetsAnswer(AnswerModel):
    """`challenge`: what a neighbour that answers signs, with both nodes' ids."""

    challenge: Challenge
    data: list[NodeNeighbourTargetAnswer]


class NodeTriedRequest(RequestModel):
    """`proof`: hex of the neighbour's Ed25519 signature over the challenge and both ids; absent: it
    did not answer.
    """

    node_id: NodeId
    proof: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")] | None = None


class NodeNeighboursRequest(RequestModel):
    """`addresses`: those of RFC 1918 that the node answers its neighbours on."""

    challenge: Challenge
    addresses: Annotated[list[PrivateAddress], Field(max_length=ADDRESSES_MAX)]
    tried: Annotated[list[NodeTriedRequest], Field(max_length=PEERS_MAX)]

    model_config = with_examples(
        {
            "challenge": "1795161720000000",
            "addresses": ["10.0.0.7:7714"],
            "tried": [{"node_id": "node_" + "2" * 32}],
        }
    )


class NodeNeighboursAnswer(AnswerModel):
    """`verdict` of the node among the admitted nodes of its region: `connected` when each reached
    the other within a day, `disconnected` when one of a pair tried and did not, `unknown` when a
    pair was not tried, `single` when there is no other node. Of more than 129 nodes each tries some
    32 that are drawn, and `connected` takes 8 of them and none missed. Absent in a region of a
    cloud.
    """

    node_id: NodeId
    region_id: RegionId
    verdict: Verdict | None = None
    addresses: list[str]
    told_at: Told_at | None = None
    reached: list[NodeId]
    missed: list[NodeId]
    untried: list[NodeId]
    position: Position | None = None


class RegionNeighbourAnswer(AnswerModel):
    """How many other nodes it reaches both ways, misses, and has not tried."""

    node_id: NodeId
    verdict: Verdict
    addresses: list[str]
    told_at: Told_at | None = None
    reached: Count
    missed: Count
    untried: Count


class RegionNeighboursAnswer(AnswerModel):
    """`verdict` of the region: of all of its admitted nodes. Absent in a region of a cloud."""

    region_id: RegionId
    verdict: Verdict | None = None
    data: list[RegionNeighbourAnswer]
    position: Position


def to_try(call: Call, view: View, node: fleet.Node) -> NodeNeighbourTargetsAnswer:
    """The neighbours that a node tries now and that told within a day where they answer, and a
    challenge.
    """
    since_us = call.now_us - FRESH_US
    rows = regions.read_neighbours(view.connection, node.region_id)
    found = [
        NodeNeighbourTargetAnswer(
            node_id=one.node_id,
            addresses=one.addresses or [],
            public_key=call.service.ledger.market.state_of(node_stream(one.node_id)).public_key,
        )
        for one in rows
        if one.node_id != node.node_id
        and one.addresses
        and (one.at_us or 0) > since_us
        and is_tried(node.node_id, one.node_id, len(rows), call.now_us)
    ]
    return NodeNeighbourTargetsAnswer(challenge=str(call.now_us), data=found[:PEERS_MAX])


@resource.post(
    "/v1/nodes/{node_id}/neighbours",
    nodes_only(),
    NodeNeighboursAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.REGION_NOT_SUITED,
        FleetReason.BAD_PERIOD,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PartiesReason.UNKNOWN_MODE,
        "bad_signature",
    ],
)
def report_neighbours(
    node_id: NodeInPath,
    body: NodeNeighboursRequest,
    call: Caller,
    node_signature: NodeSignature = "",
) -> Response:
    """Records the private addresses of a node and the neighbours it reached, signed by its key.

    `Node-Signature`: base64 of the key's Ed25519 signature over the DSSE encoding, with the payload
    type `org.tallystick.node.neighbours.v1`, of these lines: the node, the challenge, each address,
    and of each neighbour its id, a space and the proof. Each proof is checked against the
    neighbour's key.
    """
    signature = node_signatures.from_base64(node_signature)
    tried = tuple(Tried(one.node_id, one.proof or "") for one in body.tried)
    challenge, addresses = int(body.challenge), tuple(body.addresses)

    def commands() -> TellNeighbours:
        if not call.node_of_caller(node_id):
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
        # Before all signatures, of which there may be many.
        require_recent(challenge, call.now_us)
        market = call.service.ledger.market
        message = statement(node_id, challenge, addresses, tried)
        node_signatures.require(
            market.state_of(node_stream(node_id)).public_key, message, signature
        )
        for one in tried:
            if one.proof:
                key = market.state_of(node_stream(one.node_id)).public_key
                answered = answer_text(challenge, node_id, one.node_id)
                node_signatures.require(key, answered, bytes.fromhex(one.proof))
        return TellNeighbours(
            node_id=node_id,
            challenge=challenge,
            addresses=addresses,
            tried=tried,
            signature=signature.hex(),
            at_us=call.now_us,
        )

    def told(_after: object) -> NodeNeighboursAnswer:
        joined = call.service.ledger.market.state_of(node_stream(node_id)).joined
        assert joined is not None
        return NodeNeighboursAnswer(
            node_id=node_id,
            region_id=joined.region_id,
            addresses=list(addresses),
            told_at=moment(call.now_us),
            reached=[one.node_id for one in tried if one.proof],
            missed=[one.node_id for one in tried if not one.proof],
            untried=[],
        )

    return call.record(commands, told)


@resource.get(
    "/v1/nodes/{node_id}/neighbours",
    READ_OR_NODE,
    NodeNeighboursAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_neighbours(node_id: NodeInPath, call: Caller) -> Response:
    """Returns which nodes of its region a node reaches on private addresses, before it is admitted
    and after.
    """
    with call.read(FLEET) as view:
        found = visible_node(call, view, node_id)
        rows = _rows(view, found.region_id)
        mine = next((one for one in rows if one.node_id == node_id), None)
        seen = _seen([one for one in rows if one.is_admitted or one is mine], call.now_us)
        about = seen.get(node_id)
        is_cloud = _is_cloud(call, found.region_id)
        answer = NodeNeighboursAnswer(
            node_id=node_id,
            region_id=found.region_id,
            verdict=None if about is None or is_cloud else _word(about.verdict),
            addresses=[] if mine is None else mine.addresses or [],
            told_at=_at(mine),
            reached=[] if about is None else sorted(about.reached),
            missed=[] if about is None else sorted(about.missed),
            untried=[] if about is None or is_cloud else _untried(node_id, about, seen.keys()),
            position=view.position,
        )
        return call.answer(view, answer)


@resource.get(
    "/v1/regions/{region_id}/neighbours",
    with_scope("provider", "operator", "audit:read"),
    RegionNeighboursAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def read_region_neighbours(region_id: RegionInPath, call: Caller) -> Response:
    """Returns whether all nodes of a region reach each other on private addresses, node by node."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        rows = [one for one in _rows(view, region_id) if one.is_admitted]
        is_cloud = _is_cloud(call, region_id)
        seen = {} if is_cloud else _seen(rows, call.now_us)
        data = [
            RegionNeighbourAnswer(
                node_id=one.node_id,
                verdict=_word(seen[one.node_id].verdict),
                addresses=one.addresses or [],
                told_at=_at(one),
                reached=len(seen[one.node_id].reached),
                missed=len(seen[one.node_id].missed),
                untried=seen[one.node_id].untried,
            )
            for one in rows
            if one.node_id in seen
        ]
        verdict = None if is_cloud else _word(verdict_of(seen.values()))
        answer = RegionNeighboursAnswer(
            region_id=region_id, verdict=verdict, data=data, position=view.position
        )
        return call.answer(view, answer)


def verdict_on(call: Call, view: View, node: fleet.Node) -> Verdict | None:
    """Of one node among the admitted ones of its region; None in a region of a cloud."""
    if _is_cloud(call, node.region_id):
        return None
    rows, others = regions.read_neighbours_of(view.connection, node.region_id, node.node_id)
    seen = _seen(rows, call.now_us, others).get(node.node_id)
    return None if seen is None else _word(seen.verdict)


def _rows(view: View, region_id: str) -> list[regions.Neighbour]:
    return regions.read_neighbours(view.connection, region_id)


def _seen(rows: list[regions.Neighbour], now_us: int, others: int | None = None) -> dict[str, Seen]:
    told = {
        one.node_id: None
        if one.at_us is None
        else Told(one.at_us, frozenset(one.reached or ()), frozenset(one.missed or ()))
        for one in rows
    }
    return see(told, now_us, others)


def _untried(node_id: str, about: Seen, nodes: Iterable[str]) -> list[str]:
    return sorted(set(nodes) - about.reached - about.missed - {node_id})


def _is_cloud(call: Call, region_id: str) -> bool:
    opened = call.service.ledger.market.state_of(region_stream(region_id)).opened
    return opened is not None and opened.cloud_region is not None


def _at(row: regions.Neighbour | None) -> str | None:
    return None if row is None or row.at_us is None else moment(row.at_us)


def _word(verdict: str) -> Verdict:
    assert verdict in VERDICTS
    return verdict  # type: ignore[return-value]
