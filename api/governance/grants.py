"""Milestone grants: TOKEN of the treasury, unlocked milestone by milestone (row R-11).

A key of the operator proposes and carries votes; each step is done by the signatures of governors
(`api/authority/votes.py`). Everybody may read: the parts of a grant, what has no milestone, and who
said yes to what.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field, model_validator

from api.authority.votes import EXAMPLE, ON_VOTE, BallotAnswer, VoteRequest, ballot_told, checked
from api.door.amounts import Money, money, tokens
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from domain.authority.reasons import AuthorityReason
from domain.authority.register import GOVERNORS, Register
from domain.funds.reasons import FundsReason
from domain.governance.grant import (
    MILESTONE_ID,
    MILESTONES_MAX,
    OPENING,
    STATED_MAX,
    TEXT_MAX,
    AcceptClawback,
    AcceptMilestone,
    Grant,
    Milestone,
    OpenGrant,
    ProposeClawback,
    ProposeGrant,
    ProposeMilestone,
    WaitingClawback,
    WaitingMilestone,
    existing_grant,
    stream_of,
)
from domain.governance.reasons import GovernanceReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from projections.funds import funding
from projections.funds.funding import FUNDING

resource = Resource("grants")

CARRIER = with_scope("operator")
GrantId = Annotated[str, Field(pattern=r"^grant_[0-9A-Za-z]{1,64}$")]
GrantInPath = Annotated[str, Path(pattern=r"^grant_[0-9A-Za-z]{1,64}$")]
MilestoneId = Annotated[str, Field(pattern=f"^{MILESTONE_ID}$", examples=["api-integration"])]
Sentence = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
Status = Literal["proposed", "open", "ended"]


class GrantMilestoneRequest(RequestModel):
    """A milestone and its share of the total, in parts per million."""

    milestone_id: MilestoneId
    share_ppm: Annotated[int, Field(ge=0, le=1_000_000)]


class MilestoneGrantRequest(RequestModel):
    """What the shares leave of the total has no milestone: it is told, and can only go back.
    `stated_micro_usd`: what the total is said to be worth, in micro-dollars; it decides nothing.
    """

    account_id: AccountId
    total: Money
    stated_micro_usd: Annotated[int, Field(gt=0, le=STATED_MAX)] | None = None
    milestones: Annotated[
        list[GrantMilestoneRequest], Field(min_length=1, max_length=MILESTONES_MAX)
    ]

    model_config = with_examples(
        {
            "account_id": "acct_" + "1" * 32,
            "total": {"asset": "TOKEN", "units": "5650000000000"},
            "milestones": [
                {"milestone_id": "api-integration", "share_ppm": 100000},
                {"milestone_id": "cluster-orchestration", "share_ppm": 200000},
            ],
        }
    )


class GrantMilestoneDoneRequest(RequestModel):
    """`evidence`: where it can be seen that the work is done."""

    milestone_id: MilestoneId
    evidence: Sentence

    model_config = with_examples(
        {"milestone_id": "api-integration", "evidence": "https://example.org/pull/17"}
    )


class GrantClawbackRequest(RequestModel):
    """`unassigned`: what has no milestone. `unearned`: all that is not unlocked; the grant ends."""

    scope: Literal["unassigned", "unearned"]
    reason: Sentence

    model_config = with_examples({"scope": "unassigned", "reason": "No ninth milestone is planned"})


class GrantAcceptanceRequest(RequestModel):
    """A governor's signed vote: on the `opening`, on one `milestone`, or on the `clawback`."""

    what: Literal["opening", "milestone", "clawback"]
    milestone_id: MilestoneId | None = None
    vote: VoteRequest

    model_config = with_examples({"what": "opening", "vote": EXAMPLE})

    @model_validator(mode="after")
    def _names_the_milestone(self) -> GrantAcceptanceRequest:
        if (self.what == "milestone") != (self.milestone_id is not None):
            raise ValueError("milestone_id goes with a milestone, and with nothing else")
        return self


class GrantMilestoneAnswer(AnswerModel):
    milestone_id: MilestoneId
    share_ppm: Count
    amount: Money
    state: Literal["locked", "proposed", "accepted"]
    proposed_by: str | None = None


class GrantClawbackAnswer(AnswerModel):
    scope: Literal["unassigned", "unearned"]
    proposed_by: str


class MilestoneGrantAnswer(AnswerModel):
    """locked + unlocked + unassigned + clawed_back = total, once it is open. `unassigned` has no
    milestone. `clawback`: one that waits for votes. `ballots`: what is voted on now.
    `implied_micro_usd` is what one TOKEN is worth by the stated value: floor(value / total).
    """

    grant_id: GrantId
    account_id: AccountId
    state: Status
    total: Money
    stated_micro_usd: Count | None = None
    implied_micro_usd: Count | None = None
    locked: Money
    unlocked: Money
    unassigned: Money
    clawed_back: Money
    milestones: list[GrantMilestoneAnswer]
    clawback: GrantClawbackAnswer | None = None
    ballots: list[BallotAnswer]
    proposed_by: str
    proposed_at: Told_at
    position: Position | None = None


ON_GRANT = (GovernanceReason.GRANT_UNKNOWN, GovernanceReason.GRANT_STATE)


@resource.post(
    "/v1/grants",
    CARRIER,
    MilestoneGrantAnswer,
    status=201,
    problems=[
        AuthorityReason.NO_GOVERNORS,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        GovernanceReason.GRANT_EXISTS,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        GovernanceReason.BAD_MILESTONE,
        GovernanceReason.DUPLICATE_MILESTONE,
        GovernanceReason.BAD_SHARE,
        GovernanceReason.OVER_ASSIGNED,
    ],
)
def propose_grant(body: MilestoneGrantRequest, call: Caller) -> Response:
    """Proposes a grant. The votes of governors open it."""
    grant_id = call.id("grant")

    def commands() -> ProposeGrant:
        return ProposeGrant(
            grant_id=grant_id,
            account_id=body.account_id,
            total=body.total.amount(),
            milestones=tuple(Milestone(one.milestone_id, one.share_ppm) for one in body.milestones),
            by=call.principal.member_id,
            at_us=call.now_us,
            stated_micro_usd=body.stated_micro_usd,
        )

    return call.record(commands, lambda after: _told(after, grant_id))


@resource.post(
    "/v1/grants/{grant_id}/milestones",
    CARRIER,
    MilestoneGrantAnswer,
    problems=[*ON_GRANT, GovernanceReason.UNKNOWN_MILESTONE, GovernanceReason.MILESTONE_STATE],
)
def propose_milestone(
    grant_id: GrantInPath, body: GrantMilestoneDoneRequest, call: Caller
) -> Response:
    """Reports a milestone as done. The votes of governors unlock it."""

    def commands() -> ProposeMilestone:
        return ProposeMilestone(
            grant_id=grant_id,
            milestone_id=body.milestone_id,
            evidence=body.evidence,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _told(after, grant_id))


@resource.post(
    "/v1/grants/{grant_id}/clawback", CARRIER, MilestoneGrantAnswer, problems=[*ON_GRANT]
)
def propose_clawback(grant_id: GrantInPath, body: GrantClawbackRequest, call: Caller) -> Response:
    """Proposes to claw back what is not earned. Unlocked TOKEN stay."""

    def commands() -> ProposeClawback:
        return ProposeClawback(
            grant_id=grant_id,
            scope=body.scope,
            reason=body.reason,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _told(after, grant_id))


@resource.post(
    "/v1/grants/{grant_id}/accept",
    CARRIER,
    MilestoneGrantAnswer,
    problems=[
        *ON_GRANT,
        GovernanceReason.UNKNOWN_MILESTONE,
        GovernanceReason.MILESTONE_STATE,
        *ON_VOTE,
        GovernanceReason.TREASURY_SHORT,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
    ],
)
def accept_grant(grant_id: GrantInPath, body: GrantAcceptanceRequest, call: Caller) -> Response:
    """Votes for a proposal with a governor's signature; the last vote needed does it."""
    kind, subject = body.what, grant_id
    if body.what == "milestone":
        subject = f"{grant_id}/{body.milestone_id}"
    vote = checked(call, OPENING if kind == "opening" else kind, subject, body.vote)

    def commands() -> Any:
        by: dict[str, Any] = {
            "vote": vote,
            "key_id": call.principal.key_id,
            "by": call.principal.member_id,
            "at_us": call.now_us,
        }
        if body.what == "opening":
            return OpenGrant(grant_id=grant_id, **by)
        if body.what == "clawback":
            return AcceptClawback(grant_id=grant_id, **by)
        assert body.milestone_id is not None
        return AcceptMilestone(grant_id=grant_id, milestone_id=body.milestone_id, **by)

    return call.record(commands, lambda after: _told(after, grant_id))


@resource.get("/v1/grants", everybody(), page_of(MilestoneGrantAnswer), problems=["cursor_invalid"])
def list_grants(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists grants in the order in which they were proposed."""
    place = call.place(cursor, [0], order)
    with call.read(FUNDING) as view:
        rows = funding.read_grants(
            view.connection, after=place.after[0], way=place.way, limit=limit + 1
        )
        market = call.service.ledger.market
        register = market.state_of(GOVERNORS)
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: grant_told(market.state_of(stream_of(row.grant_id)), register),
        )


@resource.get(
    "/v1/grants/{grant_id}",
    everybody(),
    MilestoneGrantAnswer,
    problems=[GovernanceReason.GRANT_UNKNOWN],
)
def read_grant(grant_id: GrantInPath, call: Caller) -> Response:
    """Returns one grant: its locked and unlocked parts, and the part without a milestone."""
    with call.read(FUNDING) as view:
        grant, _ = existing_grant(call.service.ledger.world(), grant_id)
        register = call.service.ledger.market.state_of(GOVERNORS)
        return call.answer(view, grant_told(grant, register))


def _told(after: After, grant_id: str) -> MilestoneGrantAnswer:
    return grant_told(after.state(stream_of(grant_id)), after.state(GOVERNORS))


def grant_told(grant: Grant, register: Register) -> MilestoneGrantAnswer:
    """A grant as it is told."""
    asked, status, back = grant.proposed, grant.status, grant.clawback
    assert asked is not None
    shown: Any = status
    asked_back: Any = None if back is None else back.proposed
    amounts = grant.parts.amounts
    return MilestoneGrantAnswer(
        grant_id=asked.grant_id,
        account_id=asked.account_id,
        state=shown,
        total=money(asked.total),
        stated_micro_usd=asked.stated_micro_usd,
        implied_micro_usd=grant.implied_micro_usd,
        locked=tokens(grant.locked),
        unlocked=tokens(grant.unlocked),
        unassigned=tokens(grant.parts.unassigned if status == "proposed" else grant.unassigned),
        clawed_back=tokens(grant.clawed_back),
        milestones=[
            GrantMilestoneAnswer(
                milestone_id=one.milestone_id,
                share_ppm=one.share_ppm,
                amount=tokens(amounts[one.milestone_id]),
                state="accepted"
                if one.milestone_id in grant.accepted
                else "proposed"
                if one.milestone_id in grant.waiting
                else "locked",
                proposed_by=_by(grant.waiting.get(one.milestone_id)),
            )
            for one in asked.milestones
        ],
        clawback=None
        if back is None
        else GrantClawbackAnswer(scope=asked_back.scope, proposed_by=asked_back.by),
        ballots=[
            ballot_told(register, subject, votes, content=content)
            for subject, content, votes in grant.ballots()
        ],
        proposed_by=asked.by,
        proposed_at=moment(asked.at_us),
    )


def _by(waiting: WaitingMilestone | WaitingClawback | None) -> str | None:
    return None if waiting is None else waiting.proposed.by
