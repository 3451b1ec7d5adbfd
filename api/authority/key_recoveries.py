"""A lost key of the operator over HTTP: everybody sees an announced recovery, and one may stop it.

It is announced on the server's machine with `tallystick admin recover-key`; the rules are in
`domain/authority/key_recovery.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Response

from api.authority.votes import ON_VOTE, BallotAnswer, VoteRequest, ballot_told, checked
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Digits,
    KeyId,
    MemberId,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from domain.authority.key_recovery import (
    KEY_RECOVERIES,
    KIND,
    CancelKeyRecovery,
    KeyRecoveries,
    KeyRecovery,
)
from domain.authority.reasons import AuthorityReason
from domain.authority.register import Register, register_of
from domain.authority.vote import CANCEL
from domain.parties.reasons import PartiesReason

resource = Resource("key-recoveries")

NumberInPath = Annotated[int, Path(ge=1, le=1_000_000), Digits]


class KeyRecoveryCancelRequest(RequestModel):
    """`vote`: a governor's signed `cancel`; needed once a governor is enrolled."""

    vote: VoteRequest | None = None

    model_config = with_examples({})


class KeyRecoveryAnswer(AnswerModel):
    """A new key of the operator. It works from `effective_at` on unless it is cancelled before."""

    number: Count
    status: Literal["waiting", "cancelled", "ended"]
    member_id: MemberId
    key_id: KeyId
    announced_at: Told_at
    effective_at: Told_at
    ballot: BallotAnswer


class KeyRecoveriesAnswer(AnswerModel):
    """Newest last."""

    data: list[KeyRecoveryAnswer]
    position: Position | None = None


@resource.get("/v1/key-recoveries", everybody(), KeyRecoveriesAnswer)
def list_key_recoveries(call: Caller) -> Response:
    """Lists the recoveries of the operator's key: one that waits, and all that were."""
    with call.read() as view:
        market = call.service.ledger.market
        told = _told(register_of(call.service.ledger.world()), market.state_of(KEY_RECOVERIES))
        return call.answer(view, told)


@resource.post(
    "/v1/key-recoveries/{recovery}/cancel",
    with_scope("operator"),
    KeyRecoveriesAnswer,
    problems=[
        *ON_VOTE,
        AuthorityReason.KEY_RECOVERY_UNKNOWN,
        AuthorityReason.KEY_RECOVERY_STATE,
        AuthorityReason.SECOND_PERSON_NEEDED,
        PartiesReason.API_KEY_UNKNOWN,
        PartiesReason.API_KEY_REVOKED,
        PartiesReason.ADMINISTRATOR_NEEDED,
    ],
)
def cancel_key_recovery(
    recovery: NumberInPath, body: KeyRecoveryCancelRequest, call: Caller
) -> Response:
    """Cancels a recovery that waits. One person is enough: a governor, or while none is enrolled a
    key with account:admin of the operator's account.
    """
    vote = None if body.vote is None else checked(call, KIND, str(recovery), body.vote, CANCEL)

    def command() -> CancelKeyRecovery:
        return CancelKeyRecovery(
            number=recovery,
            vote=vote,
            key_id=call.principal.key_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> KeyRecoveriesAnswer:
        register = register_of(call.service.ledger.world())
        return _told(register, after.state(KEY_RECOVERIES))

    return call.record(command, told)


def _told(register: Register, recoveries: KeyRecoveries) -> KeyRecoveriesAnswer:
    return KeyRecoveriesAnswer(data=[_one(register, one) for one in recoveries.all])


def _one(register: Register, recovery: KeyRecovery) -> KeyRecoveryAnswer:
    told = recovery.announced
    return KeyRecoveryAnswer.model_validate(
        {
            "number": told.number,
            "status": recovery.status,
            "member_id": told.member_id,
            "key_id": told.key_id,
            "announced_at": moment(told.at_us),
            "effective_at": moment(told.effective_at_us),
            "ballot": ballot_told(
                register, recovery.subject, recovery.votes, content=recovery.content
            ),
        }
    )
