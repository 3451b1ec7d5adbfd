"""The second person of an operator's act: the header that carries governors' signatures.

    Governor-Signatures: {"governors": 3, "not_after_us": ..., "signatures": [{"governor_id": ...,
    "signature": ...}, ...]}

    a signature reaches the domain  =>  the governor's personal key signed this very request

What is signed is made here of the request itself: its Idempotency-Key, address and body. Whether
it takes a second person decides `domain/checked_acts.py`.
"""

from __future__ import annotations

import json
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
from ledger.tree.checkpoint import signed_by

HEADER = "governor-signatures"
_NOT_AFTER_US_MAX = 2**53 - 1


class _One(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    governor_id: Annotated[str, Field(pattern=f"^{GOVERNOR_PATTERN}$")]
    signature: Annotated[str, Field(pattern=f"^{SIGNATURE_PATTERN}$")]


class _Signatures(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    governors: Annotated[int, Field(ge=1, le=1_000_000)]
    not_after_us: Annotated[int, Field(ge=0, le=_NOT_AFTER_US_MAX)]
    signatures: Annotated[list[_One], Field(min_length=1, max_length=SIGNATURES_MAX)]


def checked(call: Call, command: Any) -> CheckedAct:
    """The command with who signed the request. Raises Problem: 400 malformed_header, 422
    signature_invalid; Refused: ACT_SIGNATURE_VOID.
    """
    return CheckedAct(command=command, asked=_asked(call, _read(call)))


def signed_with(key: str, text: str, signature: str) -> bool:
    """Whether this personal key signed this text."""
    form, _, public = key.partition(":")
    if form == "wallet":
        try:
            return signer_of(text, signature) == public
        except SignatureInvalid:
            return False
    if len(signature) != 128:
        return False
    return signed_by(bytes.fromhex(public), text.encode(), bytes.fromhex(signature))


def _read(call: Call) -> _Signatures | None:
    given = call.request.headers.getlist(HEADER)
    if not given:
        return None
    try:
        found = _Signatures.model_validate_json(given[0])
    except ValidationError:
        found = None
    if found is None or len(given) > 1:
        raise Problem(400, "malformed_header", "Governor-Signatures is one JSON document")
    return found


def _asked(call: Call, given: _Signatures | None) -> ActRequest:
    assert call.key is not None, "an act is recorded"
    content, governors = "", 0
    signed: tuple[ActSignature, ...] = ()
    if given is not None:
        url = call.request.url
        path = url.path + (f"?{url.query}" if url.query else "")
        body = json.loads(call.body or b"{}")
        content = content_of(call.request.method, path, body, given.not_after_us)
        governors = given.governors
        signed = tuple(ActSignature(one.governor_id, one.signature) for one in given.signatures)
        register = register_of(call.service.ledger.world())
        _check_signed(
            register, signed_text(register.network, call.key, digest(content), governors), signed
        )
    return ActRequest(
        request=call.key,
        content=content,
        not_after_us=0 if given is None else given.not_after_us,
        governors=governors,
        signed=signed,
        by=call.principal.member_id,
        key_id=call.principal.key_id,
        at_us=call.now_us,
    )


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
