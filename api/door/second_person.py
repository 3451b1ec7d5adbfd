"""The second person of an operator's act: the header that carries governors' signatures.

    Governor-Signatures: {"governors": 3, "not_after_us": ..., "signatures": [{"governor_id": ...,
    "signature": ...}, ...]}

    a signature reaches the domain  =>  the governor's personal key signed this very request

What is signed is made here of the request itself: its Idempotency-Key, address and body. Whether
it takes a second person decides `domain/checked_acts.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api.door.call import Call
from api.door.errors import Problem, problem
from contracts.wallet_challenge import SignatureInvalid, signer_of
from domain.authority.acts import SIGNATURES_MAX, ActRequest, ActSignature, content_of, signed_text
from domain.authority.reasons import AuthorityReason
from domain.authority.register import Register, register_of
from domain.authority.vote import GOVERNOR_PATTERN, SIGNATURE_PATTERN, digest
from domain.checked_acts import CheckedAct
from domain.refusal import Refused
from ledger.bundle import passkey
from ledger.tree.checkpoint import signed_by

HEADER = "governor-signatures"
_NOT_AFTER_US_MAX = 2**53 - 1


class ActSignatureForm(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    governor_id: Annotated[str, Field(pattern=f"^{GOVERNOR_PATTERN}$")]
    signature: Annotated[str, Field(pattern=f"^{SIGNATURE_PATTERN}$")]


class ActSignatures(BaseModel):
    """The header. `governors`: the version of the set; good until `not_after_us`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    governors: Annotated[int, Field(ge=1, le=1_000_000)]
    not_after_us: Annotated[int, Field(ge=0, le=_NOT_AFTER_US_MAX)]
    signatures: Annotated[list[ActSignatureForm], Field(max_length=SIGNATURES_MAX)]


def checked(call: Call, command: Any) -> CheckedAct:
    """The command with who signed the request. Raises Problem: 400 malformed_header, 422
    signature_invalid; Refused: ACT_SIGNATURE_VOID.
    """
    assert call.key is not None, "an act is recorded"
    asked = act_request(
        register_of(call.service.ledger.world()),
        (call.request.method, _path(call), json.loads(call.body)),
        _read(call),
        request=call.key,
        by=call.principal.member_id,
        key_id=call.principal.key_id,
        at_us=call.now_us,
    )
    return CheckedAct(command=command, asked=asked)


def header_fields(signed: Mapping[str, Any]) -> dict[str, Any]:
    """Of a signed file what the header carries."""
    return {name: signed[name] for name in ActSignatures.model_fields}


def act_request(
    register: Register,
    what: tuple[str, str, Any],
    given: ActSignatures | None,
    *,
    request: str,
    by: str,
    key_id: str,
    at_us: int,
) -> ActRequest:
    """Method, address and body of an act, and who signed it. Raises Problem: 422
    signature_invalid; Refused: ACT_SIGNATURE_VOID.
    """
    told: dict[str, Any] = {"request": request, "by": by, "key_id": key_id, "at_us": at_us}
    if given is None:
        return ActRequest(content="", not_after_us=0, governors=0, signed=(), **told)
    content = content_of(*what, given.not_after_us)
    text = signed_text(register.network, request, digest(content), given.governors)
    signed = tuple(ActSignature(one.governor_id, one.signature) for one in given.signatures)
    _check_signed(register, text, signed)
    return ActRequest(
        content=content,
        not_after_us=given.not_after_us,
        governors=given.governors,
        signed=signed,
        **told,
    )


def signed_with(key: str, text: str, signature: str) -> bool:
    """Whether this personal key signed this text."""
    form, _, public = key.partition(":")
    if form == "wallet":
        try:
            return signer_of(text, signature) == public
        except SignatureInvalid:
            return False
    if form == "passkey":
        return passkey.is_asserted(public, text, signature)
    if len(signature) != 128:
        return False
    return signed_by(bytes.fromhex(public), text.encode(), bytes.fromhex(signature))


def _read(call: Call) -> ActSignatures | None:
    given = call.request.headers.getlist(HEADER)
    if not given:
        return None
    try:
        found = ActSignatures.model_validate_json(given[0])
    except ValidationError:
        found = None
    if found is None or len(given) > 1:
        raise Problem(400, "malformed_header", "Governor-Signatures is one JSON document")
    return found


def _path(call: Call) -> str:
    scope = call.request.scope
    path = (scope.get("raw_path") or scope["path"].encode()).decode("ascii")
    query = scope["query_string"].decode("ascii")
    return f"{path}?{query}" if query else path


def _check_signed(register: Register, text: str, signed: tuple[ActSignature, ...]) -> None:
    for one in signed:
        key = register.keys.get(one.governor_id)
        if key is None:
            raise Refused(
                AuthorityReason.ACT_SIGNATURE_VOID,
                rule="not a governor",
                governor_id=one.governor_id,
            )
        if not signed_with(key, text, one.signature):
            raise problem("signature_invalid", f"not signed by the key of {one.governor_id}")
