"""The policy of rewards: its versions, and the proposals by which a next one comes to be.

Everybody reads. A key of the operator carries proposals and votes; what decides is the signatures
of governors (`api/authority/votes.py`). Every call that changes a proposal names in If-Match what
it has read of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.authority.votes import (
    EXAMPLE,
    ON_VOTE,
    BallotAnswer,
    Mode,
    VoteRequest,
    ballot_told,
    checked,
)
from api.door.amounts import Money, Units, credits_or_none, money, tokens, tokens_or_none
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.errors import etag, problem
from api.door.models import (
    AnswerModel,
    Count,
    Digits,
    Hex32,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, InOrder, Limit
from api.door.positions import ReadAsOf
from domain.authority.reasons import AuthorityReason
from domain.authority.register import GOVERNORS
from domain.authority.vote import CANCEL, NO, YES
from domain.duration import SECOND_US
from domain.epochs.policy import NETWORK, PolicyPublished, governance_of
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_terms import RewardTerms
from domain.governance.document import FORMAT, PROPOSAL_MAX
from domain.governance.proposal import KIND, TEXT_MAX, Proposal, Step, existing_proposal, stream_of
from domain.governance.reasons import GovernanceReason
from domain.governance.vote import (
    ApprovePolicyProposal,
    CancelPolicy,
    OpenPolicyReview,
    ProposePolicy,
    RejectPolicyProposal,
    RevisePolicyProposal,
    SchedulePolicyProposal,
    WithdrawPolicyProposal,
    lint_of,
    rules_in_force,
)
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.trust.reasons import TrustReason
from projections.governance import policies
from projections.governance.policies import POLICIES
from projections.runner import Connection

resource = Resource("policies")

CARRIER = with_scope("operator")
NumberInPath = Annotated[int, Path(ge=1, le=PROPOSAL_MAX), Digits]
VersionInPath = Annotated[int, Path(ge=1, le=1_000_000), Digits]
Epoch = Annotated[int, Field(ge=1, le=1_000_000)]
Sentence = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
Status = Literal[
    "draft",
    "linted",
    "in_review",
    "approved",
    "rejected",
    "withdrawn",
    "scheduled",
    "effective",
    "cancelled",
]
_DOCUMENT = {
    "format": FORMAT,
    "proposal": {
        "number": 5,
        "title": "Beam Compute Client",
        "category": "Core (technical)",
        "authors": ["Ryan Shea", "Eli Mernit"],
        "created": "2023-10-23",
    },
    "milestones": [
        {
            "name": "BRWG grant",
            "parts": [{"name": "API Integration", "ppm": 900_000}],
            "remainder_ppm": 100_000,
        }
    ],
}


class PolicyProposalRequest(RequestModel):
    """`document`: what `tallystick policy lint` reads, as JSON."""

    document: dict[str, Any]

    model_config = with_examples({"document": _DOCUMENT})


class PolicyReviewRequest(RequestModel):
    """`stage`: a short text of the reviewer's own."""

    stage: Sentence

    model_config = with_examples({"stage": "In Render Team Review"})


class ProposalReasonRequest(RequestModel):
    reason: Sentence

    model_config = with_examples({"reason": "The remainder needs an owner"})


class PolicyVoteRequest(RequestModel):
    """A governor's signed vote on the document that was read."""

    vote: VoteRequest

    model_config = with_examples({"vote": EXAMPLE})


class PolicyRejectionRequest(RequestModel):
    """A governor's signed no, and why."""

    reason: Sentence
    vote: VoteRequest

    model_config = with_examples({"reason": "The remainder needs an owner", "vote": EXAMPLE})


class PolicySchedulingRequest(RequestModel):
    """Without an epoch: the earliest that notice and document allow."""

    effective_from_epoch: Epoch | None = None

    model_config = with_examples({})


class EmissionSegmentAnswer(AnswerModel):
    start_epoch: Count
    n_epochs: Count
    total: Money


class RewardRatingAnswer(AnswerModel):
    """What one unit weighs, in parts per million."""

    name: str
    ppm: Count


class RewardTermsAnswer(AnswerModel):
    """How rewards are shared in an epoch, and up to what cap; an absent cap means no cap."""

    source_weights: list[RewardRatingAnswer]
    burned_per_gpu_hour: Money | None = None
    class_ratings: list[RewardRatingAnswer]
    cap_multiple_ppm: Count | None = None
    cap_goes_to: str
    zero_weight_goes_to: str
    bonus_from_ppm: Count
    bonus_range_ppm: Count
    bonus_max_ppm: Count
    availability_min_tier: Count
    availability_tier_2_ppm: Count
    availability_min_uptime_ppm: Count
    availability_cap_per_gpu_hour: Money | None = None
    availability_cap_per_node: Money | None = None
    owner_cap: Money | None = None
    release_tau: Count | None = None
    release_cap: Money
    min_wait_us: Units
    forfeit_epochs: Count | None = None


class PolicyVersionAnswer(AnswerModel):
    """`in_force`: the newest epoch was opened under it. `cancelled`: governors stopped it before
    its first epoch. `proposal`: absent in the first version, which an operator published. `mode`:
    of the governors when it was scheduled. Without `rewards`, availability is not paid.
    """

    version: Count
    effective_from_epoch: Count
    in_force: bool
    cancelled: bool
    mode: Mode | None = None
    epoch_length_seconds: Count
    hard_cap: Money
    segments: list[EmissionSegmentAnswer]
    compute_ppm: Count
    availability_ppm: Count
    treasury_ppm: Count
    compute_base: str
    holdback_epochs: Count
    rewards: RewardTermsAnswer | None = None
    approvals: Count
    notice_epochs: Count
    proposal: Count | None = None
    published_at: Told_at
    published_position: Position
    by: str
    position: Position | None = None


class PolicyLintFindingAnswer(AnswerModel):
    rule: str
    severity: Literal["error", "warning"]
    field: str
    message: str


class PolicyLintAnswer(AnswerModel):
    passes: bool
    errors: Count
    warnings: Count
    document_sha256: Hex32
    findings_sha256: Hex32


class PolicyProposalStepAnswer(AnswerModel):
    """One line of the history; `note` in words."""

    status: Status
    by: str
    at: Told_at
    note: str | None = None


class PolicyProposalAnswer(AnswerModel):
    """`changes` counts its facts: If-Match of a next call is `"v<changes>"`. Votes are those on the
    newest revision.
    """

    number: Count
    title: str
    category: str
    authors: list[str]
    created: str
    status: Status
    revision: Count
    changes: Count
    proposed_by: str
    proposed_at: Told_at
    approved_by: list[str]
    rejected_by: list[str]
    ballot: BallotAnswer
    lint: PolicyLintAnswer
    policy_version: Count | None = None
    effective_from_epoch: Count | None = None
    history: list[PolicyProposalStepAnswer]
    position: Position | None = None


class PolicyProposalDetailAnswer(PolicyProposalAnswer):
    """With its document, and what the lint finds in it."""

    document: dict[str, Any]
    findings: list[PolicyLintFindingAnswer]


# --- proposals: their paths begin like those of versions, so they come first ------------------

ON_PROPOSAL = (
    GovernanceReason.PROPOSAL_UNKNOWN,
    GovernanceReason.PROPOSAL_MOVED,
    GovernanceReason.PROPOSAL_STATE,
    GovernanceReason.PROPOSAL_INVALID,
)
ON_PROPOSAL_VOTE = (*ON_PROPOSAL, *ON_VOTE)


@resource.post(
    "/v1/policies/proposals",
    CARRIER,
    PolicyProposalAnswer,
    status=201,
    problems=[
        AuthorityReason.NO_GOVERNORS,
        GovernanceReason.PROPOSAL_INVALID,
        GovernanceReason.PROPOSAL_EXISTS,
    ],
)
def propose_policy(body: PolicyProposalRequest, call: Caller) -> Response:
    """Proposes a policy, or another document for approval. Its lint is recorded."""
    text = json.dumps(body.document)

    def told(after: After) -> PolicyProposalAnswer:
        return proposal_told(after.state(after.changes[0].stream), after)

    def command() -> ProposePolicy:
        return ProposePolicy(document=text, by=call.principal.member_id, at_us=call.now_us)

    return call.record(command, told, tag=_changes)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/revise",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=[*ON_PROPOSAL, PartiesReason.NOT_PERMITTED],
)
def revise_policy_proposal(
    proposal_number: NumberInPath, body: PolicyProposalRequest, call: Caller
) -> Response:
    """Replaces the document of a proposal. Votes on the earlier document end."""
    text = json.dumps(body.document)
    return _change(call, proposal_number, RevisePolicyProposal, document=text)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/review",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=ON_PROPOSAL,
)
def open_policy_review(
    proposal_number: NumberInPath, body: PolicyReviewRequest, call: Caller
) -> Response:
    """Opens the review of a proposal, also of one that fails the lint."""
    return _change(call, proposal_number, OpenPolicyReview, stage=body.stage)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/approve",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=[
        *ON_PROPOSAL_VOTE,
        GovernanceReason.PROPOSAL_LINT,
        PricesReason.PROFIT_BOUND,
        TrustReason.POLICY_INVALID,
        EpochsReason.BAD_SEGMENT,
        EpochsReason.SEGMENTS_OVERLAP,
    ],
)
def approve_policy_proposal(
    proposal_number: NumberInPath, body: PolicyVoteRequest, call: Caller
) -> Response:
    """Approves a proposal with a governor's signature."""
    return _vote(call, proposal_number, ApprovePolicyProposal, body.vote, YES)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/reject",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=ON_PROPOSAL_VOTE,
)
def reject_policy_proposal(
    proposal_number: NumberInPath, body: PolicyRejectionRequest, call: Caller
) -> Response:
    """Rejects a proposal with a governor's signature."""
    return _vote(call, proposal_number, RejectPolicyProposal, body.vote, NO, reason=body.reason)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/cancel",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=[*ON_PROPOSAL_VOTE, TrustReason.POLICY_INVALID],
)
def cancel_policy_proposal(
    proposal_number: NumberInPath, body: PolicyVoteRequest, call: Caller
) -> Response:
    """Votes to cancel a scheduled version before its first epoch, with a governor's signature."""
    return _vote(call, proposal_number, CancelPolicy, body.vote, CANCEL)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/withdraw",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=[*ON_PROPOSAL, PartiesReason.NOT_PERMITTED],
)
def withdraw_policy_proposal(
    proposal_number: NumberInPath, body: ProposalReasonRequest, call: Caller
) -> Response:
    """Withdraws your own proposal, as long as it is not scheduled."""
    return _change(call, proposal_number, WithdrawPolicyProposal, reason=body.reason)


@resource.post(
    "/v1/policies/proposals/{proposal_number}/schedule",
    CARRIER,
    PolicyProposalAnswer,
    guarded=True,
    problems=[
        *ON_PROPOSAL,
        AuthorityReason.SECOND_PERSON_NEEDED,
        GovernanceReason.PROPOSAL_WITHOUT_TERMS,
        GovernanceReason.PROPOSAL_NOTICE,
        PricesReason.PROFIT_BOUND,
        EpochsReason.EPOCH_STATE,
        EpochsReason.POLICY_VERSION,
        TrustReason.POLICY_INVALID,
        EpochsReason.BAD_SEGMENT,
        EpochsReason.SEGMENTS_OVERLAP,
    ],
)
def schedule_policy_proposal(
    proposal_number: NumberInPath, body: PolicySchedulingRequest, call: Caller
) -> Response:
    """Publishes an approved proposal as the next version, for an epoch far enough ahead."""
    expected = call.if_match()

    def command() -> SchedulePolicyProposal:
        with call.read(POLICIES) as view:
            newest = policies.read_newest_epoch(view.connection)
        return SchedulePolicyProposal(
            number=proposal_number,
            expected=expected,
            open_epoch=0 if newest is None else newest.epoch,
            effective_from_epoch=body.effective_from_epoch,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    again_on = frozenset({EpochsReason.EPOCH_STATE})  # an epoch was opened meanwhile
    return call.record(command, _told_of(proposal_number), again_on=again_on, tag=_changes)


@resource.get(
    "/v1/policies/proposals",
    everybody(),
    page_of(PolicyProposalAnswer),
    problems=["cursor_invalid"],
)
def list_policy_proposals(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists proposals in the order in which they were made."""
    place = call.place(cursor, [0], order)
    with call.read(POLICIES) as view:
        rows = policies.read_proposals(
            view.connection, after=place.after[0], way=place.way, limit=limit + 1
        )
        world = call.service.ledger.world()
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: proposal_told(world.state(stream_of(row.number)), world, view.connection),
        )


@resource.get(
    "/v1/policies/proposals/{proposal_number}",
    everybody(),
    PolicyProposalDetailAnswer,
    problems=[GovernanceReason.PROPOSAL_UNKNOWN],
)
def read_policy_proposal(proposal_number: NumberInPath, call: Caller) -> Response:
    """Returns one proposal: its document, the lint's findings, and its votes with their times."""
    with call.read(POLICIES) as view:
        world = call.service.ledger.world()
        found = existing_proposal(world, proposal_number)
        told = PolicyProposalDetailAnswer(
            **proposal_told(found, world, view.connection).model_dump(),
            document=json.loads(found.document),
            findings=[
                PolicyLintFindingAnswer.model_validate(asdict(one))
                for one in lint_of(found).findings
            ],
        )
        return call.answer(view, told, {"ETag": etag(found.changes)})


# --- versions ---------------------------------------------------------------------------------


@resource.get(
    "/v1/policies",
    everybody(),
    page_of(PolicyVersionAnswer),
    problems=["cursor_invalid", "as_of_unsupported"],
)
def list_policies(
    call: Caller, order: ByNumber, as_of: ReadAsOf, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists every version of the policy, oldest first, as known now or at a moment of the past."""
    place = call.place(cursor, [0], order)
    with call.read(POLICIES, as_of=as_of) as view:
        rows = policies.read_policies(
            view.connection, as_of=view.as_of, after=place.after[0], way=place.way, limit=limit + 1
        )
        in_force = _in_force(view.connection, view.as_of)
        told = _versions(call)
        return call.page(
            view, place, rows, limit, lambda row: [row.version], lambda row: told(row, in_force)
        )


@resource.get(
    "/v1/policies/{policy_version}",
    everybody(),
    PolicyVersionAnswer,
    problems=["as_of_unsupported", "not_found"],
)
def read_policy(policy_version: VersionInPath, call: Caller, as_of: ReadAsOf) -> Response:
    """Returns one version of the policy."""
    with call.read(POLICIES, as_of=as_of) as view:
        rows = policies.read_policies(
            view.connection, as_of=view.as_of, after=policy_version - 1, limit=1
        )
        if [row.version for row in rows] != [policy_version]:
            raise problem("not_found", f"there is no version {policy_version}")
        in_force = _in_force(view.connection, view.as_of)
        return call.answer(view, _versions(call)(rows[0], in_force))


def _change(call: Call, number: int, kind: Any, **more: Any) -> Response:
    """Record a change of a proposal by a person who has read it."""
    expected = call.if_match()

    def command() -> Any:
        return kind(
            number=number, expected=expected, by=call.principal.member_id, at_us=call.now_us, **more
        )

    return call.record(command, _told_of(number), tag=_changes)


def _vote(
    call: Call, number: int, kind: Any, body: VoteRequest, choice: str, **more: Any
) -> Response:
    """Record a governor's vote, its signature checked."""
    vote = checked(call, KIND, str(number), body, choice)
    return _change(call, number, kind, vote=vote, key_id=call.principal.key_id, **more)


def _told_of(number: int) -> Any:
    return lambda after: proposal_told(after.state(stream_of(number)), after)


def _changes(body: dict[str, Any]) -> int:
    return int(body["changes"])


def _versions(call: Call) -> Callable[[policies.PolicyRow, int], PolicyVersionAnswer]:
    """How a row is told: with its version's terms, and how it came to be."""
    market = call.service.ledger.market
    state = market.state_of(NETWORK)

    def told(row: policies.PolicyRow, in_force: int) -> PolicyVersionAnswer:
        policy = state.published[row.version - 1]
        mode = None
        if policy.proposal is not None:
            scheduled = market.state_of(stream_of(policy.proposal)).scheduled
            mode = None if scheduled is None else scheduled.mode
        is_cancelled = row.version in state.cancelled
        return policy_told(policy, row.position, in_force, mode, is_cancelled)

    return told


def _in_force(connection: Connection, as_of: int | None) -> int:
    newest = policies.read_newest_epoch(connection, as_of)
    return 0 if newest is None else newest.policy_version


def policy_told(
    policy: PolicyPublished, position: int, in_force: int, mode: Any, is_cancelled: bool
) -> PolicyVersionAnswer:
    """A version as it is told."""
    rules = governance_of(policy)
    return PolicyVersionAnswer(
        version=policy.version,
        effective_from_epoch=policy.effective_from_epoch,
        in_force=policy.version == in_force,
        cancelled=is_cancelled,
        mode=mode,
        epoch_length_seconds=policy.epoch_length_us // SECOND_US,
        hard_cap=money(policy.hard_cap),
        segments=[
            EmissionSegmentAnswer(
                start_epoch=one.start_epoch, n_epochs=one.n_epochs, total=tokens(one.total)
            )
            for one in policy.segments
        ],
        compute_ppm=policy.compute_ppm,
        availability_ppm=policy.availability_ppm,
        treasury_ppm=policy.treasury_ppm,
        compute_base=policy.compute_base,
        holdback_epochs=policy.holdback_epochs,
        rewards=None if policy.rewards is None else _rewards(policy.rewards),
        approvals=rules.approvals,
        notice_epochs=rules.notice_epochs,
        proposal=policy.proposal,
        published_at=moment(policy.at_us),
        published_position=position,
        by=policy.by,
    )


def _rewards(terms: RewardTerms) -> RewardTermsAnswer:
    def rated(given: Any) -> list[RewardRatingAnswer]:
        return [RewardRatingAnswer(name=one.name, ppm=one.ppm) for one in given]

    return RewardTermsAnswer(
        source_weights=rated(terms.source_weights),
        burned_per_gpu_hour=credits_or_none(terms.burned_per_gpu_hour),
        class_ratings=rated(terms.class_ratings),
        cap_multiple_ppm=terms.cap_multiple_ppm,
        cap_goes_to=terms.cap_goes_to,
        zero_weight_goes_to=terms.zero_weight_goes_to,
        bonus_from_ppm=terms.bonus_from_ppm,
        bonus_range_ppm=terms.bonus_range_ppm,
        bonus_max_ppm=terms.bonus_max_ppm,
        availability_min_tier=terms.availability_min_tier,
        availability_tier_2_ppm=terms.availability_tier_2_ppm,
        availability_min_uptime_ppm=terms.availability_min_uptime_ppm,
        availability_cap_per_gpu_hour=tokens_or_none(terms.availability_cap_per_gpu_hour),
        availability_cap_per_node=tokens_or_none(terms.availability_cap_per_node),
        owner_cap=tokens_or_none(terms.owner_cap),
        release_tau=terms.release_tau,
        release_cap=tokens(terms.release_cap),
        min_wait_us=str(terms.min_wait_us),
        forfeit_epochs=terms.forfeit_epochs,
    )


def proposal_told(
    found: Proposal, world: Any, connection: Connection | None = None
) -> PolicyProposalAnswer:
    """A proposal as it is told, with `world` for who votes on it. With a connection, also that its
    version came into force: that is the opening of an epoch, and no fact of the proposal.
    """
    register, approvals = world.state(GOVERNORS), rules_in_force(world).approvals
    heading, linted, scheduled = found.heading, found.linted, found.scheduled
    assert heading is not None
    assert linted is not None
    history = [_step(one) for one in found.history]
    status: Any = found.status
    if scheduled is not None and connection is not None:
        begun = policies.read_first_epoch(connection, scheduled.version)
        if begun is not None:
            status = "effective"
            note = f"epoch {begun.epoch} was opened under it"
            history.append(_step(Step(status, scheduled.by, begun.at_us, note)))
    return PolicyProposalAnswer(
        number=found.number,
        title=heading.title,
        category=heading.category,
        authors=list(heading.authors),
        created=heading.created,
        status=status,
        revision=found.revision,
        changes=found.changes,
        proposed_by=found.proposed_by,
        proposed_at=moment(found.proposed_at_us),
        approved_by=list(found.approved_by),
        rejected_by=list(found.rejected_by),
        ballot=ballot_told(register, found.subject, found.votes, approvals=approvals),
        lint=PolicyLintAnswer(
            passes=linted.passes,
            errors=linted.errors,
            warnings=linted.warnings,
            document_sha256=linted.document_sha256,
            findings_sha256=linted.findings_sha256,
        ),
        policy_version=None if scheduled is None else scheduled.version,
        effective_from_epoch=None if scheduled is None else scheduled.effective_from_epoch,
        history=history,
    )


def _step(step: Step) -> PolicyProposalStepAnswer:
    status: Any = step.status
    return PolicyProposalStepAnswer(
        status=status, by=step.by, at=moment(step.since_us), note=step.note or None
    )
