"""The register of governors over HTTP: who decides, and how that changes.

Everybody reads it. A key of the operator carries proposals and votes to the server; what decides is
the signature of a governor's personal key (`api/authority/votes.py`), of which the server never
sees the secret.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.authority.votes import (
    EXAMPLE,
    ON_VOTE,
    BallotAnswer,
    GovernorId,
    Mode,
    Signature,
    VoteRequest,
    ballot_told,
    checked,
)
from api.door import errors
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Digits,
    EmptyRequest,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.second_person import signed_with
from api.process.service import Service
from domain.authority.governors import (
    ApplyGovernorChange,
    ProposeGovernorChange,
    VoteOnGovernorChange,
    has_opened,
)
from domain.authority.reasons import AuthorityReason
from domain.authority.register import GOVERNORS, KIND, GovernorChange, Register
from domain.authority.vote import KEY_PATTERN, enrolment_text

resource = Resource("governors")

CARRIER = with_scope("operator")
NumberInPath = Annotated[int, Path(ge=1, le=1_000_000), Digits]
PublicKey = Annotated[str, Field(pattern=f"^({KEY_PATTERN})$")]
Version = Annotated[int, Field(ge=0, le=1_000_000)]
_KEY = "ed25519:" + "4" * 64


class GovernorChangeRequest(RequestModel):
    """`enrol`: a public key, and its own signature over the text of `tallystick governor v1`.
    `remove`: a governor. `threshold`: how many votes carry. `governors`: the version you have read.
    """

    action: Literal["enrol", "remove", "threshold"]
    governors: Version
    key: PublicKey | None = None
    signature: Signature | None = None
    governor_id: GovernorId | None = None
    threshold: Annotated[int, Field(ge=2, le=32)] | None = None

    model_config = with_examples(
        {"action": "enrol", "governors": 0, "key": _KEY, "signature": "3" * 128}
    )


class GovernorVoteRequest(RequestModel):
    """`cancel` stops a change that is scheduled and not in force yet."""

    choice: Literal["yes", "no", "cancel"]
    vote: VoteRequest

    model_config = with_examples({"choice": "yes", "vote": EXAMPLE})


class GovernorAnswer(AnswerModel):
    governor_id: str
    key: str


class GovernorChangeAnswer(AnswerModel):
    """`from_epoch`: it comes into force once this epoch was opened."""

    number: Count
    action: Literal["enrol", "remove", "threshold"]
    status: Literal["proposed", "scheduled", "applied", "rejected", "cancelled"]
    governor_id: str | None = None
    key: str | None = None
    threshold: Count | None = None
    from_epoch: Count | None = None
    proposed_by: str
    proposed_at: Told_at
    ballot: BallotAnswer


class GovernorsAnswer(AnswerModel):
    """`mode`: `single` until three governors are enrolled at once, `shared` for ever after.
    `threshold` votes carry what is proposed now.
    """

    network: str
    version: Count
    mode: Mode
    threshold: Count
    governors: list[GovernorAnswer]
    changes: list[GovernorChangeAnswer]
    position: Position | None = None


@resource.get("/v1/governors", everybody(), GovernorsAnswer)
def list_governors(call: Caller) -> Response:
    """Lists the governors in force and every change that was proposed."""
    with call.read() as view:
        register = call.service.ledger.market.state_of(GOVERNORS)
        return call.answer(view, _told(call.service, register))


@resource.post(
    "/v1/governors/changes",
    CARRIER,
    GovernorsAnswer,
    status=201,
    problems=[
        "signature_invalid",
        AuthorityReason.GOVERNORS_MOVED,
        AuthorityReason.GOVERNOR_UNKNOWN,
        AuthorityReason.GOVERNOR_CHANGE_INVALID,
    ],
)
def propose_governor_change(body: GovernorChangeRequest, call: Caller) -> Response:
    """Proposes a change of the governors. The first governor is enrolled at once."""
    network = network_of(call.service)
    if body.key is not None and body.signature is not None:
        text = enrolment_text(network, body.key, body.governors)
        if not signed_with(body.key, text, body.signature):
            raise errors.problem("signature_invalid", "not signed by the key itself")

    def command() -> ProposeGovernorChange:
        return ProposeGovernorChange(
            network=network, **body.model_dump(), by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(command, _after(call))


@resource.post(
    "/v1/governors/changes/{change}/votes",
    CARRIER,
    GovernorsAnswer,
    problems=[
        *ON_VOTE,
        AuthorityReason.GOVERNOR_CHANGE_UNKNOWN,
        AuthorityReason.GOVERNOR_CHANGE_STATE,
        AuthorityReason.GOVERNOR_CHANGE_INVALID,
        AuthorityReason.EPOCH_MOVED,
    ],
)
def vote_on_governor_change(
    change: NumberInPath, body: GovernorVoteRequest, call: Caller
) -> Response:
    """Votes on a change with a governor's signature."""
    vote = checked(call, KIND, str(change), body.vote, body.choice)

    def command() -> VoteOnGovernorChange:
        return VoteOnGovernorChange(
            number=change,
            choice=body.choice,
            vote=vote,
            open_epoch=newest_epoch(call.service),
            key_id=call.principal.key_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    again_on = frozenset({AuthorityReason.EPOCH_MOVED})
    return call.record(command, _after(call), again_on=again_on)


@resource.post(
    "/v1/governors/changes/{change}/apply",
    CARRIER,
    GovernorsAnswer,
    problems=[
        AuthorityReason.GOVERNOR_CHANGE_UNKNOWN,
        AuthorityReason.GOVERNOR_CHANGE_STATE,
        AuthorityReason.GOVERNOR_CHANGE_INVALID,
        AuthorityReason.GOVERNOR_UNKNOWN,
        AuthorityReason.SECOND_PERSON_NEEDED,
    ],
)
def apply_governor_change(change: NumberInPath, body: EmptyRequest, call: Caller) -> Response:
    """Puts a scheduled change into force, once its epoch was opened. A timer does this too."""
    del body
    command = ApplyGovernorChange(number=change, at_us=call.now_us)
    return call.record(lambda: command, _after(call))


def network_of(service: Service) -> str:
    """The name that every vote on this network carries: the origin of its log."""
    return service.settings.log_origin


def newest_epoch(service: Service) -> int:
    """The newest epoch that was opened; 0 when none was."""
    world, epoch = service.ledger.world(), 0
    while has_opened(world, epoch + 1):
        epoch += 1
    return epoch


def _after(call: Caller) -> Any:
    def told(after: After) -> GovernorsAnswer:
        return _told(call.service, after.state(GOVERNORS))

    return told


def _told(service: Service, register: Register) -> GovernorsAnswer:
    mode: Any = register.now.mode
    return GovernorsAnswer(
        network=register.network or network_of(service),
        version=register.now.version,
        mode=mode,
        threshold=register.now.threshold,
        governors=[
            GovernorAnswer(governor_id=one, key=register.keys[one]) for one in register.now.members
        ],
        changes=[_change(register, one) for one in register.changes],
    )


def _change(register: Register, change: GovernorChange) -> GovernorChangeAnswer:
    asked, told = change.proposed, {}
    told = {"action": asked.action, "status": change.status}
    return GovernorChangeAnswer.model_validate(
        {
            **told,
            "number": asked.number,
            "governor_id": asked.governor_id,
            "key": asked.key,
            "threshold": asked.threshold,
            "from_epoch": change.from_epoch,
            "proposed_by": asked.by,
            "proposed_at": moment(asked.at_us),
            "ballot": ballot_told(register, change.subject, change.votes, content=change.content),
        }
    )
