"""Countersignatures: the renter's half of the stick, and both halves side by side."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import Path, Response
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey
from pydantic import Field

from api.door import errors
from api.door.amounts import Units
from api.door.auth import with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    EmptyRequest,
    Hex32,
    LeaseId,
    LeaseInPath,
    Moment,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.parties.accounts import own, visible
from domain.fleet.reasons import FleetReason
from domain.lease.countersign import (
    AddSigningKey,
    CountersignUsage,
    RevokeSigningKey,
    SignerState,
    message_for,
    signer_stream,
    stick_stream,
)
from domain.lease.reasons import LeaseReason
from domain.metering.reasons import MeteringReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.lease import countersigned, leases
from projections.lease.countersigned import COUNTERSIGNED
from projections.lease.leases import LEASES
from projections.metering.usage import USAGE

resource = Resource("countersignatures")

SignerId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
SignerInPath = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
SIGNATURES_MAX = 100


class SigningKeyRequest(RequestModel):
    """The public half of an Ed25519 key, 32 bytes as hex; the other half never leaves you."""

    public_key: Hex32

    model_config = with_examples({"public_key": "d75a980182b10ab7" * 4})


class SigningKeyAnswer(AnswerModel):
    """`key_id`: the first 16 hex digits of the SHA-256 of the public key."""

    account_id: AccountId
    key_id: SignerId
    public_key: Hex32
    added_at: Told_at
    revoked_at: Told_at | None = None
    position: Position | None = None


class SigningKeysAnswer(AnswerModel):
    account_id: AccountId
    data: list[SigningKeyAnswer]
    position: Position


class CountersignatureRequest(RequestModel):
    """`signature` (hex) is over these bytes: `tallystick/countersign/v1`, the lease id,
    `gpu_us N` and `until_us N`, joined by single newlines. `gpu_us` counts from the opening.
    """

    key_id: SignerId
    gpu_us: Units
    until: Moment
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]

    model_config = with_examples(
        {
            "key_id": "0" * 16,
            "gpu_us": "3600000000",
            "until": "2026-11-20T09:00:00Z",
            "signature": "0" * 128,
        }
    )


class CountersignatureAnswer(AnswerModel):
    lease_id: LeaseId
    account_id: AccountId
    key_id: SignerId
    gpu_us: Units
    until: Told_at
    signature: str
    signed_at: Told_at
    position: Position | None = None


class CountersignedUsageAnswer(AnswerModel):
    """matched + unconfirmed + contested = gpu_us, what was metered and accrued so far.

    Matched: both halves agree. Contested: metered before `signed_until` and not signed for.
    Unconfirmed: metered later than that. `signatures`: the last hundred at most, newest last.
    """

    lease_id: LeaseId
    gpu_us: Units
    matched_gpu_us: Units
    unconfirmed_gpu_us: Units
    contested_gpu_us: Units
    signed_until: Told_at | None = None
    signatures: list[CountersignatureAnswer]
    position: Position


@resource.post(
    "/v1/accounts/{account_id}/signing-keys",
    with_scope("account:admin"),
    SigningKeyAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.SIGNING_KEY_REVOKED,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def add_signing_key(account_id: AccountInPath, body: SigningKeyRequest, call: Caller) -> Response:
    """Registers a key that countersigns the usage of your leases."""
    own(call.principal, account_id)
    key_id = hashlib.sha256(bytes.fromhex(body.public_key)).hexdigest()[:16]

    def told(after: After) -> AnswerModel:
        return _key(after.state(signer_stream(account_id)), key_id)

    command = AddSigningKey(
        account_id=account_id,
        key_id=key_id,
        public_key=body.public_key,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, told)


@resource.post(
    "/v1/accounts/{account_id}/signing-keys/{key_id}/revoke",
    with_scope("account:admin"),
    SigningKeyAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, PartiesReason.SIGNING_KEY_UNKNOWN],
)
def revoke_signing_key(
    account_id: AccountInPath, key_id: SignerInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Revokes a signing key. Its earlier signatures stay valid."""
    del body
    own(call.principal, account_id)
    command = RevokeSigningKey(
        account_id=account_id, key_id=key_id, by=call.principal.member_id, at_us=call.now_us
    )

    def told(after: After) -> AnswerModel:
        return _key(after.state(signer_stream(account_id)), key_id, revoked_at_us=call.now_us)

    return call.record(lambda: command, told)


@resource.get(
    "/v1/accounts/{account_id}/signing-keys",
    with_scope("account", "audit:read", "operator"),
    SigningKeysAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def list_signing_keys(account_id: AccountInPath, call: Caller) -> Response:
    """Lists every key that could sign for an account, oldest first."""
    visible(call.principal, account_id)
    with call.read(COUNTERSIGNED) as view:
        rows = countersigned.read_signers(view.connection, account_id)
        keys = [
            SigningKeyAnswer(
                account_id=row.account_id,
                key_id=row.key_id,
                public_key=row.public_key,
                added_at=moment(row.added_at_us),
                revoked_at=moment_or_none(row.revoked_at_us),
            )
            for row in rows
        ]
        told = SigningKeysAnswer(account_id=account_id, data=keys, position=view.position)
        return call.answer(view, told)


@resource.post(
    "/v1/leases/{lease_id}/countersign",
    with_scope("renter", "client"),
    CountersignatureAnswer,
    status=201,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        PartiesReason.SIGNING_KEY_UNKNOWN,
        MeteringReason.COUNTERSIGN_TIME,
        MeteringReason.COUNTERSIGN_FELL,
        "signature_invalid",
    ],
)
def countersign_usage(
    lease_id: LeaseInPath, body: CountersignatureRequest, call: Caller
) -> Response:
    """Records a renter's signature for the usage of a lease: the total, up to a moment."""
    account_id, gpu_us = call.principal.account_id, int(body.gpu_us)

    def command() -> CountersignUsage:
        signer = call.service.ledger.market.state_of(signer_stream(account_id))
        key = signer.key(body.key_id)
        if key is None:
            raise Refused(PartiesReason.SIGNING_KEY_UNKNOWN, key_id=body.key_id)
        _require_signed(key.public_key, message_for(lease_id, gpu_us, body.until), body.signature)
        return CountersignUsage(
            lease_id=lease_id,
            account_id=account_id,
            key_id=body.key_id,
            gpu_us=gpu_us,
            until_us=body.until,
            signature=body.signature,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        fact = after.state(stick_stream(lease_id)).last
        assert fact is not None, lease_id
        return CountersignatureAnswer(
            lease_id=lease_id,
            account_id=fact.account_id,
            key_id=fact.key_id,
            gpu_us=str(fact.gpu_us),
            until=moment(fact.until_us),
            signature=fact.signature,
            signed_at=moment(fact.at_us),
        )

    return call.record(command, told)


@resource.get(
    "/v1/leases/{lease_id}/stick",
    with_scope(
        "renter", "provider", "client", "billing:read", "earnings:read", "operator", "audit:read"
    ),
    CountersignedUsageAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def read_stick(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns both halves of a lease's usage: the node's reports and the renter's signature."""
    with call.read(LEASES, USAGE, COUNTERSIGNED) as view:
        connection = view.connection
        if leases.read_lease(connection, lease_id, account_id=call.principal.only) is None:
            raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        halves = countersigned.read_halves(connection, lease_id)
        rows = countersigned.read_last_signatures(connection, lease_id, SIGNATURES_MAX)
        told = CountersignedUsageAnswer(
            lease_id=lease_id,
            gpu_us=str(halves.gpu_us),
            matched_gpu_us=str(halves.compared.matched),
            unconfirmed_gpu_us=str(halves.compared.unconfirmed),
            contested_gpu_us=str(halves.compared.contested),
            signed_until=moment_or_none(halves.until_us),
            position=view.position,
            signatures=[
                CountersignatureAnswer(
                    lease_id=row.lease_id,
                    account_id=row.account_id,
                    key_id=row.key_id,
                    gpu_us=str(row.gpu_us),
                    until=moment(row.until_us),
                    signature=row.signature,
                    signed_at=moment(row.at_us),
                    position=row.position,
                )
                for row in rows
            ],
        )
        return call.answer(view, told)


def _require_signed(public_key: str, message: bytes, signature: str) -> None:
    """Raises Problem: 422 signature_invalid."""
    try:
        VerifyKey(bytes.fromhex(public_key)).verify(message, bytes.fromhex(signature))
    except (BadSignatureError, ValueError):
        raise errors.problem("signature_invalid") from None


def _key(state: SignerState, key_id: str, revoked_at_us: int | None = None) -> SigningKeyAnswer:
    key = next(key for key in state.keys if key.key_id == key_id)
    return SigningKeyAnswer(
        account_id=key.account_id,
        key_id=key_id,
        public_key=key.public_key,
        added_at=moment(key.at_us),
        revoked_at=moment_or_none(revoked_at_us),
    )
