"""A node's key, changed by the node and taken back by its owner (design metering 12).

A rotation is signed by both keys, so it needs no fingerprint to be compared again. After a
revocation nothing that the node signs or asks is taken: the machine joins anew, as another node.
"""

from __future__ import annotations

import hashlib
import os
from typing import Annotated

from fastapi import Response
from pydantic import Field

from api.door import auth, errors
from api.door.amounts import INTEGER_MAX
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Hex32,
    KeyId,
    NodeId,
    NodeInPath,
    Position,
    RequestModel,
    with_examples,
)
from api.door.operation import Resource
from api.fleet import node_signatures
from api.fleet.joining import NodeSignature
from api.fleet.nodes import NodeStateAnswer, may_run, node_state
from api.ingest.door import Refusal
from domain.fleet import keys as node_key
from domain.fleet.key_rotation import RevokeNodeKey, RotateNodeKey
from domain.fleet.keys import rotation
from domain.fleet.node import NodeState, node_stream
from domain.fleet.reasons import FleetReason
from domain.refusal import Refused
from projections.metering import usage
from projections.metering.usage import USAGE

resource = Resource("nodes")

Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class NodeKeyRotationRequest(RequestModel):
    """From report `from_seq` on, the next to be sent, `public_key` signs. Both signatures (hex) are
    over the DSSE encoding, with the payload type `org.tallystick.node.key-rotated.v1`, of four
    lines: the node's id, `from_seq`, the previous public key and the new one (hex).
    """

    public_key: Hex32
    previous_key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    from_seq: Annotated[int, Field(ge=2, le=INTEGER_MAX)]
    previous_signature: Signature
    signature: Signature

    model_config = with_examples(
        {
            "public_key": "3b" * 32,
            "previous_key_id": "0" * 16,
            "from_seq": 1843,
            "previous_signature": "0" * 128,
            "signature": "1" * 128,
        }
    )


class NodeKeyRotatedAnswer(AnswerModel):
    """`sealed_node_key`: the bearer key that replaces the one of the previous signing key, which is
    not valid any more. It is a sealed box of libsodium, in hex, and only the new signing key opens
    it (`crypto_box_seal_open`, with the X25519 key that follows from the Ed25519 key).
    """

    node_id: NodeId
    key_id: KeyId
    from_seq: Count
    sealed_node_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64,512}$")]
    position: Position | None = None


class NodeKeyRevocationRequest(RequestModel):
    """Revokes the key that the node signs with: the server rejects the node's reports. Revokes a
    replaced key: the server rejects reports that it signed and that are not stored yet, and the
    node goes on.
    """

    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]

    model_config = with_examples({"key_id": "0" * 16})


@resource.post(
    "/v1/nodes/{node_id}/keys/rotate",
    everybody(),
    NodeKeyRotatedAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.NODE_KEY_MISMATCH,
        FleetReason.NODE_KEY_USED,
        "bad_signature",
        "one_request_at_a_time",
    ],
)
def rotate_node_key(
    node_id: NodeInPath,
    body: NodeKeyRotationRequest,
    call: Caller,
    node_signature: NodeSignature = "",
) -> Response:
    """Replaces a node's signing key from a report on. The node calls this, with both keys.

    The bearer key changes with it, so no other credential is needed: a node that lost the answer
    has only its new key to ask again with, and only that key opens the answer.
    `Node-Signature`: base64 of the new key's signature over the DSSE encoding of the body's exact
    bytes, type `org.tallystick.node.rotate-request.v1`.
    """
    if not _node(call, node_id).exists:
        raise errors.of_refusal(Refused(FleetReason.NODE_UNKNOWN, node_id=node_id))
    node_signatures.require(
        body.public_key,
        node_key.envelope(node_key.ROTATE_REQUEST_TYPE, call.body),
        node_signatures.from_base64(node_signature),
    )
    _require_known(_node(call, node_id), body)
    call.account = f"rotate:{node_id}"

    def commands() -> RotateNodeKey:
        _require_both(_node(call, node_id), body)
        bearer = auth.node_key(os.urandom(32))
        return RotateNodeKey(
            node_id=node_id,
            public_key=body.public_key,
            previous_key_id=body.previous_key_id,
            from_seq=body.from_seq,
            last_seq=_last_seq(call, node_id),
            previous_signature=body.previous_signature,
            signature=body.signature,
            token_sha256=hashlib.sha256(bearer.encode()).hexdigest(),
            sealed_token=node_signatures.sealed_for(body.public_key, bearer),
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        rotated = after.state(node_stream(node_id)).rotated
        assert rotated is not None
        assert rotated.sealed_token is not None
        return NodeKeyRotatedAnswer(
            node_id=node_id,
            key_id=rotated.key_id,
            from_seq=rotated.from_seq,
            sealed_node_key=rotated.sealed_token,
        )

    try:
        # A report of this number that is on its way was judged by the key before.
        with call.service.ingest.hold(node_id):
            return call.record(commands, told)
    except Refusal as busy:
        raise errors.problem(busy.code, busy.detail, Retry_After="1") from None


@resource.post(
    "/v1/nodes/{node_id}/keys/revoke",
    with_scope("provider", "operator"),
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_KEY_MISMATCH],
)
def revoke_node_key(node_id: NodeInPath, body: NodeKeyRevocationRequest, call: Caller) -> Response:
    """Revokes a lost or stolen key.
    With the present key, the server rejects every later report and call of the node. With a
    replaced key, it rejects reports that are not stored yet, and the node goes on.
    """

    def commands() -> RevokeNodeKey:
        may_run(call, node_id)
        return RevokeNodeKey(
            node_id=node_id, key_id=body.key_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, node_state(node_id))


def _node(call: Call, node_id: str) -> NodeState:
    return call.service.ledger.market.state_of(node_stream(node_id))


def _require_known(state: NodeState, body: NodeKeyRotationRequest) -> None:
    """Whoever asks holds the node's key: the one before, which signed for the next, or that next
    one already. A stranger's request takes no turn of the node, and nothing of it is kept.

    Raises Problem: 401 bad_signature, 409 node_key_mismatch.
    """
    _require_both(state, body)
    if state.key_id not in (body.previous_key_id, node_key.key_id_of(body.public_key)):
        refused = Refused(FleetReason.NODE_KEY_MISMATCH, key_id=body.previous_key_id)
        raise errors.of_refusal(refused)


def _require_both(state: NodeState, body: NodeKeyRotationRequest) -> None:
    """Raises Problem: 401 bad_signature, where the key that signs now or the new one did not.

    Of another key than the one that signs now the rule says what becomes of it, signed or not.
    """
    assert state.joined is not None
    if body.previous_key_id != state.key_id:
        return
    message = rotation(state.joined.node_id, body.from_seq, state.public_key, body.public_key)
    node_signatures.require(state.public_key, message, bytes.fromhex(body.previous_signature))
    node_signatures.require(body.public_key, message, bytes.fromhex(body.signature))


def _last_seq(call: Call, node_id: str) -> int:
    with call.read(USAGE) as view:
        counted = usage.read_node_reports(view.connection, node_id)
    return counted.last_seq if counted else 0
