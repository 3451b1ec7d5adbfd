"""Joining: a join code of one use, and the signed request of the node that uses it.

First contact needs only the join code. From then on the node calls with the key that it was given.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from fastapi import Header, Response
from pydantic import Field, model_validator

from api.door import auth, errors
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Hex32,
    NodeId,
    Position,
    ProviderId,
    RegionId,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet import node_signatures
from api.fleet.node_signatures import fingerprint
from api.fleet.node_specs import (
    EXAMPLE_SPECS,
    Devices,
    HardwareForm,
    HostForm,
    facts_of,
    require_driver,
)
from api.fleet.providers import managed_region
from domain.fleet import keys as node_key
from domain.fleet.node import JOIN_CODE_LIFE_US, IssueJoinCode, JoinNode, join_code_of, node_stream
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused

resource = Resource("nodes")

JOIN_CODE_LETTERS = 8
_CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # no letters that are read as others

WRITE = with_scope("provider")


class JoinCodeRequest(RequestModel):
    """`lifetime`: an ephemeral node is retired with the last lease on it. `owner_account_id`: of
    the machine, if it is not the provider's own.
    """

    region_id: RegionId
    owner_account_id: AccountId | None = None
    lifetime: Literal["permanent", "ephemeral"] = "permanent"

    model_config = with_examples(
        {"region_id": "region_" + "1" * 32},
        {"region_id": "region_" + "1" * 32, "lifetime": "ephemeral"},
    )


class JoinCodeAnswer(AnswerModel):
    """Type `code` at the machine within ten minutes; it works once."""

    region_id: RegionId
    expires_at: Told_at
    code: Annotated[str, Field(pattern=r"^[0-9A-Z]{8}$")] | None = None
    position: Position | None = None


class NodeJoinRequest(RequestModel):
    """What the machine says about itself; `public_key` is Ed25519, `key_id` its short name: the
    first 16 hex digits of its SHA-256, so that confirming the name confirms the key.
    """

    code: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{8,16}$")]
    public_key: Hex32
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    agent: Annotated[str, Field(min_length=1, max_length=32)]
    client_id: AccountId | None = None
    devices: Devices
    host: HostForm
    hardware: HardwareForm | None = None

    model_config = with_examples(
        {
            "code": "7KQ2M9XD",
            "public_key": "3b" * 32,
            "key_id": "e97347e22a6967c6",
            "agent": "0.1.0",
            **EXAMPLE_SPECS,
        }
    )

    @model_validator(mode="after")
    def _names_its_key(self) -> NodeJoinRequest:
        if self.key_id != hashlib.sha256(bytes.fromhex(self.public_key)).hexdigest()[:16]:
            raise ValueError("key_id is the first 16 hex digits of the public key's SHA-256")
        return self


NodeSignature = Annotated[str, Header(max_length=128)]


class NodeJoinedAnswer(AnswerModel):
    """`node_key` is shown to the node that holds the code and the key, and kept nowhere."""

    node_id: NodeId
    provider_id: ProviderId
    region_id: RegionId
    fingerprint: Annotated[str, Field(description="The owner compares this with the machine's")]
    node_key: str | None = None
    position: Position | None = None


@resource.post(
    "/v1/nodes/join-codes",
    WRITE,
    JoinCodeAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.PROVIDER_UNKNOWN,
        FleetReason.JOIN_CODE_USED,
        FleetReason.STORAGE_NODE_STATE,
        FleetReason.ADMISSION_STATE,
        FleetReason.REGION_PHASE,
        FleetReason.REGION_FULL,
    ],
)
def create_join_code(body: JoinCodeRequest, call: Caller) -> Response:
    """Issues a code that lets one machine join a region, valid for ten minutes."""
    code = new_code(call.secret("join-code/v1"))

    def commands() -> IssueJoinCode:
        return IssueJoinCode(
            code_sha256=code_digest(code),
            provider_id=managed_region(call, body.region_id),
            region_id=body.region_id,
            lifetime=body.lifetime,
            owner_account_id=body.owner_account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = JoinCodeAnswer(
        region_id=body.region_id, expires_at=moment(call.now_us + JOIN_CODE_LIFE_US)
    )
    return call.record(commands, lambda _after: told, reveal=lambda: {"code": code})


def new_code(random: bytes) -> str:
    number = int.from_bytes(random[:16], "big")
    letters = []
    for _ in range(JOIN_CODE_LETTERS):
        number, letter = divmod(number, len(_CODE_ALPHABET))
        letters.append(_CODE_ALPHABET[letter])
    return "".join(letters)


def code_digest(code: str) -> str:
    return hashlib.sha256(code.replace("-", "").upper().encode()).hexdigest()


@resource.post(
    "/v1/nodes/join",
    everybody(),
    NodeJoinedAnswer,
    status=201,
    problems=[
        FleetReason.JOIN_CODE_UNKNOWN,
        FleetReason.JOIN_CODE_USED,
        FleetReason.JOIN_CODE_EXPIRED,
        FleetReason.NODE_EXISTS,
        PartiesReason.CLIENT_UNKNOWN,
        PartiesReason.CLIENT_NOT_AUTHORISED,
        FleetReason.REGION_PHASE,
        FleetReason.REGION_FULL,
        FleetReason.REGION_MIX,
        "bad_signature",
    ],
)
def join_node(body: NodeJoinRequest, call: Caller, node_signature: NodeSignature = "") -> Response:
    """Joins a machine by its code, its public key and its inventory, signed by that key.

    `Node-Signature`: base64 of the key's Ed25519 signature over the DSSE encoding of the body's
    exact bytes, with the payload type `org.tallystick.node.join.v1`.
    """
    node_signatures.require(
        body.public_key,
        node_key.envelope(node_key.JOIN_TYPE, call.body),
        node_signatures.from_base64(node_signature),
    )
    code_sha256 = code_digest(body.code)
    if join_code_of(call.service.ledger.world(), code_sha256).issued is None:
        # A stranger: nothing is kept of the request, not even what a secret would be made from.
        raise errors.of_refusal(Refused(FleetReason.JOIN_CODE_UNKNOWN))
    call.account = f"join:{code_sha256}"
    node_id = call.id("node")
    bearer = auth.node_key(call.secret("node-key/v1", body.public_key))

    def commands() -> JoinNode:
        require_driver(call, body.host.driver)
        return JoinNode(
            code_sha256=code_sha256,
            node_id=node_id,
            key_id=body.key_id,
            public_key=body.public_key,
            token_sha256=hashlib.sha256(bearer.encode()).hexdigest(),
            agent=body.agent,
            client_id=body.client_id,
            devices=tuple(device.spec() for device in body.devices),
            host=body.host.spec(),
            hardware=facts_of(body.hardware),
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        joined = after.state(node_stream(node_id)).joined
        assert joined is not None, node_id
        return NodeJoinedAnswer(
            node_id=node_id,
            provider_id=joined.provider_id,
            region_id=joined.region_id,
            fingerprint=fingerprint(body.public_key),
        )

    return call.record(commands, told, reveal=lambda: {"node_key": bearer})
