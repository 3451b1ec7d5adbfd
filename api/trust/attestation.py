"""Attestation (tier 4): a device signs the head of its node's chain, its maker vouches for it.

    nonce == SHA-256(server nonce || head of the chain)      so what was reported so far is covered

The server knows no maker's format: plug-ins do. A package names them in the group
`tallystick.attestation`:

    [project.entry-points."tallystick.attestation"]
    nvidia = "acme_attestation:Nvidia"

Each is a class, called without arguments, of the shape of `Attestor`; it says whether this evidence
is of this device and of this nonce. It runs before anything is recorded, and never decides a tier.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from importlib import metadata
from typing import Annotated, Protocol

from fastapi import Response
from pydantic import Field

from api.door.auth import nodes_only
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    DeviceId,
    DeviceInPath,
    EmptyRequest,
    Hex32,
    NodeId,
    NodeInPath,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from domain.fleet.node import node_stream
from domain.fleet.reasons import FleetReason
from domain.metering import report
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.trust.reasons import TrustReason
from domain.trust.record import NONCE_LIFE_US, IssueNonce, RecordAttestation, attestation_nonce
from domain.trust.record import stream_of as trust_stream
from ledger.log.usage import head_of

resource = Resource("attestation")

GROUP = "tallystick.attestation"
EVIDENCE_BYTES_MAX = 65_536
DETAIL_MAX = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a plug-in says of evidence, and why."""

    passed: bool
    detail: str


class Attestor(Protocol):
    """Checks one maker's evidence. Pure but for what it must ask its maker."""

    def verify(self, evidence: bytes, nonce: bytes, device_id: str) -> Verdict: ...


class AttestorUnusable(Exception):
    """An attestation plug-in cannot be used. Its package says why; remove it, or mend it."""


def attestor(name: str) -> Attestor:
    """The plug-in of this name. Raises Refused: REFERENCE_INVALID; AttestorUnusable."""
    found = next((one for one in metadata.entry_points(group=GROUP) if one.name == name), None)
    if found is None:
        raise Refused(TrustReason.REFERENCE_INVALID, field="plugin", rule="installed on the server")
    try:
        made: Attestor = found.load()()
    except Exception as error:
        raise AttestorUnusable(f"{name}: {error}") from error
    return made


class AttestationNonceAnswer(AnswerModel):
    """Sign `nonce` within ten minutes: it covers the node's reports up to `acked_seq`."""

    node_id: NodeId
    device_id: DeviceId
    server_nonce: Hex32
    acked_seq: Count
    head: Hex32
    nonce: Hex32
    expires_at: Told_at
    position: Position | None = None


class AttestationRequest(RequestModel):
    """Evidence in base64, as the plug-in of this name reads it."""

    server_nonce: Hex32
    plugin: Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$")]
    evidence: Annotated[str, Field(max_length=EVIDENCE_BYTES_MAX * 4 // 3 + 4)]

    model_config = with_examples({"server_nonce": "0" * 64, "plugin": "nvidia", "evidence": "e30="})


class AttestationAnswer(AnswerModel):
    node_id: NodeId
    device_id: DeviceId
    passed: bool
    detail: str
    position: Position | None = None


PROBLEMS = [FleetReason.NODE_UNKNOWN, FleetReason.DEVICE_UNKNOWN]


@resource.post(
    "/v1/nodes/{node_id}/devices/{device_id}/attestation-nonce",
    nodes_only(),
    AttestationNonceAnswer,
    problems=PROBLEMS,
)
def create_attestation_nonce(
    node_id: NodeInPath, device_id: DeviceInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Returns the nonce that a device must sign, bound to the last report of the node."""
    del body

    def commands() -> IssueNonce:
        _own(call, node_id)
        acked_seq, head = _head(call, node_id)
        return IssueNonce(
            device_id=device_id,
            node_id=node_id,
            server_nonce=os.urandom(32).hex(),
            acked_seq=acked_seq,
            head=head,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        state = after.state(trust_stream(device_id))
        assert state.nonce is not None
        return AttestationNonceAnswer(
            node_id=node_id,
            device_id=device_id,
            server_nonce=state.nonce.server_nonce,
            acked_seq=state.nonce.acked_seq,
            head=state.nonce.head,
            nonce=attestation_nonce(state.nonce.server_nonce, state.nonce.head).hex(),
            expires_at=moment(state.nonce.at_us + NONCE_LIFE_US),
        )

    return call.record(commands, told)


@resource.post(
    "/v1/nodes/{node_id}/devices/{device_id}/attestation",
    nodes_only(),
    AttestationAnswer,
    problems=[*PROBLEMS, TrustReason.REFERENCE_INVALID],
)
def create_attestation(
    node_id: NodeInPath, device_id: DeviceInPath, body: AttestationRequest, call: Caller
) -> Response:
    """Records evidence for an issued nonce. The verdict counts for the epoch it falls into."""
    said: list[Verdict] = []

    def commands() -> RecordAttestation:
        _own(call, node_id)
        evidence = _bytes(body.evidence)
        nonce = _nonce(call, node_id, device_id, body.server_nonce)
        if not said:
            said.append(attestor(body.plugin).verify(evidence, nonce, device_id))
        return RecordAttestation(
            device_id=device_id,
            node_id=node_id,
            server_nonce=body.server_nonce,
            plugin=body.plugin,
            evidence_sha256=hashlib.sha256(evidence).hexdigest(),
            passed=said[0].passed,
            detail=said[0].detail[:DETAIL_MAX],
            at_us=call.now_us,
        )

    def told(_after: After) -> AnswerModel:
        return AttestationAnswer(
            node_id=node_id,
            device_id=device_id,
            passed=said[0].passed,
            detail=said[0].detail[:DETAIL_MAX],
        )

    return call.record(commands, told)


def _own(call: Call, node_id: str) -> None:
    if not call.node_of_caller(node_id):
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)


def _nonce(call: Call, node_id: str, device_id: str, server_nonce: str) -> bytes:
    """The nonce that this evidence answers. Whether it is still good is decided with the fact."""
    state = call.service.ledger.market.state_of(trust_stream(device_id))
    nonce = state.nonce
    if nonce is None or (nonce.node_id, nonce.server_nonce) != (node_id, server_nonce):
        raise Refused(
            TrustReason.REFERENCE_INVALID, field="server_nonce", rule="asked for, and new"
        )
    return attestation_nonce(nonce.server_nonce, nonce.head)


def _head(call: Call, node_id: str) -> tuple[int, str]:
    """The last stored report of the node and its hash; before the first, its genesis."""
    with call.service.connection() as connection:
        seq, digest = head_of(connection, node_id)
    if digest is not None:
        return seq, digest.hex()
    state = call.service.ledger.market.state_of(node_stream(node_id))
    assert state.joined is not None
    return 0, report.genesis(node_id, bytes.fromhex(state.joined.public_key)).hex()


def _bytes(text: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Refused(TrustReason.REFERENCE_INVALID, field="evidence", rule="base64") from None
    if len(found) > EVIDENCE_BYTES_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, field="evidence", at_most=EVIDENCE_BYTES_MAX
        )
    return found
