"""Attributes: what third parties say about nodes and providers, each statement signed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey
from pydantic import Field

from api.door import errors
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    EmptyRequest,
    Moment,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from domain.fleet.reasons import FleetReason
from domain.lease.countersign import signer_stream
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.trust.attribute import (
    RevokeAttribute,
    StateAttribute,
    attribute_stream,
    message_for,
    statement_id,
)
from projections.fleet import supply
from projections.fleet.fleet import FLEET

resource = Resource("attributes")

_SUBJECT = r"^(node|prov)_[0-9A-Za-z_-]{1,100}$"
SubjectId = Annotated[str, Field(pattern=_SUBJECT)]
SubjectQuery = Annotated[str | None, Query(pattern=_SUBJECT)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,62}$")]
NameQuery = Annotated[str | None, Query(pattern=r"^[a-z][a-z0-9_.]{0,62}$")]
StatementId = Annotated[str, Field(pattern=r"^stmt_[0-9a-f]{32}$")]
StatementInPath = Annotated[str, Path(pattern=r"^stmt_[0-9a-f]{32}$")]
SIGN = with_scope("account:admin", "provider", "client", "renter")


class AttributeRequest(RequestModel):
    """`signature` (hex, Ed25519) is over five lines joined by newlines: `tallystick/attribute/v1`,
    `subject ID`, `NAME VALUE`, `stated_at_us N`, and `expires_at_us N` or `expires_at_us never`.
    The key is one of the signer's signing keys. Any account that has the statement may send it.
    """

    subject_id: SubjectId
    name: Name
    value: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
    signer_account_id: AccountId
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
    stated_at: Moment
    expires_at: Moment | None = None

    model_config = with_examples(
        {
            "subject_id": "node_" + "1" * 32,
            "name": "location",
            "value": "DE-BE",
            "signer_account_id": "acct_" + "2" * 32,
            "key_id": "0" * 16,
            "signature": "0" * 128,
            "stated_at": "2026-11-20T09:00:00Z",
        }
    )


class AttributeAnswer(AnswerModel):
    """`valid`: neither taken back by its signer nor expired."""

    statement_id: StatementId
    subject_id: SubjectId
    name: Name
    value: str
    signer_account_id: AccountId
    key_id: str
    signature: str
    stated_at: Told_at
    expires_at: Told_at | None = None
    revoked_at: Told_at | None = None
    valid: bool
    position: Position | None = None


class AttributeRevokedAnswer(AnswerModel):
    statement_id: StatementId
    revoked: bool
    position: Position | None = None


@resource.post(
    "/v1/attributes",
    SIGN,
    AttributeAnswer,
    status=201,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.PROVIDER_UNKNOWN,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.SIGNING_KEY_UNKNOWN,
        PartiesReason.NOT_PERMITTED,
        FleetReason.BAD_PERIOD,
        FleetReason.ATTRIBUTE_REVOKED,
        PartiesReason.UNKNOWN_MODE,
        "signature_invalid",
    ],
)
def add_attribute(body: AttributeRequest, call: Caller) -> Response:
    """Records a statement that a third party signed about a node or a provider."""
    command = StateAttribute(
        subject_id=body.subject_id,
        name=body.name,
        value=body.value,
        signer_account_id=body.signer_account_id,
        key_id=body.key_id,
        signature=body.signature,
        stated_at_us=body.stated_at,
        expires_at_us=body.expires_at,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    stream = attribute_stream(statement_id(command))

    def checked() -> StateAttribute:
        signer = call.service.ledger.market.state_of(signer_stream(body.signer_account_id))
        key = signer.key(body.key_id)
        if key is None:
            raise Refused(PartiesReason.SIGNING_KEY_UNKNOWN, key_id=body.key_id)
        _require_signed(key.public_key, command)
        return command

    def told(after: After) -> AnswerModel:
        stated = after.state(stream).stated
        assert stated is not None
        return _attribute(stated, None, call.now_us)

    return call.record(checked, told)


def _require_signed(public_key: str, command: StateAttribute) -> None:
    message = message_for(
        command.subject_id, command.name, command.value, command.stated_at_us, command.expires_at_us
    )
    try:
        VerifyKey(bytes.fromhex(public_key)).verify(message, bytes.fromhex(command.signature))
    except BadSignatureError:
        raise errors.problem("signature_invalid", "not a signature of this statement") from None


@resource.post(
    "/v1/attributes/{statement_id}/revoke",
    SIGN,
    AttributeRevokedAnswer,
    problems=[FleetReason.ATTRIBUTE_UNKNOWN],
)
def revoke_attribute(statement_id: StatementInPath, body: EmptyRequest, call: Caller) -> Response:
    """Revokes a statement that your account signed."""
    del body
    command = RevokeAttribute(
        statement_id=statement_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    told = AttributeRevokedAnswer(statement_id=statement_id, revoked=True)
    return call.record(lambda: command, lambda _after: told)


@resource.get("/v1/attributes", everybody(), page_of(AttributeAnswer), problems=["cursor_invalid"])
def list_attributes(
    call: Caller,
    order: InOrder,
    subject_id: SubjectQuery = None,
    name: NameQuery = None,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists statements in the order in which they came; `account_id` is the signer's.
    Anyone can check them with the public keys of `/v1/accounts/{id}/signing-keys`.
    """
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        rows = supply.read_attributes(
            view.connection,
            subject_ids=None if subject_id is None else [subject_id],
            name=name,
            signer_account_id=account_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: _attribute(row, row.revoked_at_us, call.now_us),
        )


def _attribute(row: Any, revoked_at_us: int | None, now_us: int) -> AttributeAnswer:
    is_valid = revoked_at_us is None and (row.expires_at_us is None or now_us < row.expires_at_us)
    return AttributeAnswer(
        statement_id=row.statement_id,
        subject_id=row.subject_id,
        name=row.name,
        value=row.value,
        signer_account_id=row.signer_account_id,
        key_id=row.key_id,
        signature=row.signature,
        stated_at=moment(row.stated_at_us),
        expires_at=moment_or_none(row.expires_at_us),
        revoked_at=moment_or_none(revoked_at_us),
        valid=is_valid,
    )
