"""How a proposal becomes the next version of the policy: by governors, after the lint, with notice.

    scheduled  =>  signed votes of present governors >= the register's threshold and the policy's
    effective_from_epoch >= open epoch + notice      no epoch that was opened gets another policy

What fails the lint can be talked about and revised, and not be approved. A proposal without terms,
like a grant, ends as approved. What is scheduled is published, and published versions are never
edited: as many governors cancel one until its first epoch was opened. How many approvals and how
much notice is part of the policy itself, so lowering the bar takes as many. Who may vote, and how
votes count, is decided in `domain/authority/ballot.py`. Source: design economics 12, design api 3.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from domain.authority import ballot
from domain.authority.governors import has_opened
from domain.authority.register import register_of
from domain.authority.vote import CANCEL, NO, YES, SignedVote, VoteCast, content_text, digest
from domain.duration import SECOND_US
from domain.epochs.policy import (
    GOVERNANCE,
    PolicyGovernance,
    PublishPolicy,
    cancel_version,
    check_version,
    governance_of,
    next_version,
    policies_of,
    standing_policies,
)
from domain.epochs.reasons import EpochsReason
from domain.frozen import replace
from domain.governance.document import (
    DOCUMENT_BYTES_MAX,
    Document,
    Terms,
    fractions_of,
    read_document,
)
from domain.governance.lint import Report, lint_document
from domain.governance.proposal import (
    APPROVED,
    DRAFT,
    ENDED,
    LINTED,
    REVISED_IN,
    REVISIONS_MAX,
    SCHEDULED,
    STATUSES,
    TEXT_MAX,
    VOTED_ON,
    PolicyProposalLinted,
    PolicyProposalRevised,
    PolicyProposalScheduled,
    PolicyProposalWithdrawn,
    PolicyProposed,
    PolicyReviewOpened,
    Proposal,
    existing_proposal,
    stream_of,
)
from domain.governance.reasons import GovernanceReason
from domain.money import token
from domain.parties.reasons import PartiesReason
from domain.prices import profit_bound
from domain.prices.tariff import tariffs_from
from domain.refusal import Refused
from domain.stream import Change, World

# Commands. `expected`: the state's `changes` that the caller saw; any other is refused.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposePolicy:
    document: str  # JSON
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisePolicyProposal:
    number: int
    expected: int
    document: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPolicyReview:
    number: int
    expected: int
    stage: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovePolicyProposal:
    number: int
    expected: int
    vote: SignedVote
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectPolicyProposal:
    number: int
    expected: int
    vote: SignedVote
    reason: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelPolicy:
    """A governor's word against a scheduled version, before its first epoch."""

    number: int
    expected: int
    vote: SignedVote
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawPolicyProposal:
    number: int
    expected: int
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePolicyProposal:
    """`open_epoch`: the newest there is, 0 when none; `effective_from_epoch` None: the earliest."""

    number: int
    expected: int
    open_epoch: int
    effective_from_epoch: int | None
    by: str
    at_us: int


def rules_in_force(world: World) -> PolicyGovernance:
    """How many approvals and how much notice the version in force asks for: the newest whose first
    epoch has been opened. One that waits for its epoch decides nothing yet, a cancelled one never.
    """
    published = standing_policies(world)
    for one in reversed(published):
        if has_opened(world, one.effective_from_epoch):
            return governance_of(one)
    return governance_of(published[0]) if published else GOVERNANCE


def document_in(text: str) -> tuple[Document, str]:
    """The document of a recorded or proposed text, and the text that is recorded of it.

    Raises Refused: PROPOSAL_INVALID, naming the first place that cannot be read.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(GovernanceReason.PROPOSAL_INVALID, rule="a document is JSON") from None
    for place in fractions_of(plain):
        raise Refused(GovernanceReason.PROPOSAL_INVALID, field=place, rule="is a float")
    document, faults = read_document(plain)
    if document is None:
        raise Refused(
            GovernanceReason.PROPOSAL_INVALID, field=faults[0].field, rule=faults[0].message
        )
    told = content_text(plain)
    if len(told.encode()) > DOCUMENT_BYTES_MAX:
        raise Refused(GovernanceReason.PROPOSAL_INVALID, rule=f"at most {DOCUMENT_BYTES_MAX} bytes")
    return document, told


def lint_of(proposal: Proposal) -> Report:
    """The findings again: the fact holds their hash."""
    return lint_document(document_in(proposal.document)[0])


def earliest_epoch(terms: Terms, world: World, open_epoch: int) -> int:
    """The first epoch a version may start with, if it is scheduled now."""
    notice = rules_in_force(world).notice_epochs
    last = max((one.effective_from_epoch for one in standing_policies(world)), default=0)
    return max(terms.effective_from_epoch, open_epoch + notice, last + 1)


# How we decide.


def decide_propose(command: ProposePolicy, world: World) -> list[Change]:
    """Raises Refused: NO_GOVERNORS, PROPOSAL_INVALID, PROPOSAL_EXISTS."""
    document, text = document_in(command.document)
    heading = document.proposal
    stream = stream_of(heading.number)
    if world.state(stream).heading is not None:
        raise Refused(GovernanceReason.PROPOSAL_EXISTS, number=heading.number)
    fact = PolicyProposed(
        number=heading.number,
        title=heading.title,
        category=heading.category,
        authors=heading.authors,
        created=heading.created,
        document=text,
        governors=ballot.present_set(world),
        by=command.by,
        at_us=command.at_us,
    )
    linted = _linted(document, text, 1, command.at_us)
    return [Change(stream, fact), Change(stream, linted)]


def decide_revise(command: RevisePolicyProposal, world: World) -> list[Change]:
    """Raises Refused: PROPOSAL_UNKNOWN, PROPOSAL_MOVED, NOT_PERMITTED, PROPOSAL_STATE,
    PROPOSAL_INVALID.
    """
    state = _seen(world, command.number, command.expected)
    if command.by != state.proposed_by:
        raise Refused(PartiesReason.NOT_PERMITTED, rule="only its author revises it")
    _require(state, REVISED_IN)
    if state.revision >= REVISIONS_MAX:
        raise Refused(GovernanceReason.PROPOSAL_STATE, rule=f"at most {REVISIONS_MAX} revisions")
    document, text = document_in(command.document)
    heading = document.proposal
    if heading.number != command.number:
        raise Refused(
            GovernanceReason.PROPOSAL_INVALID, field="proposal.number", rule="stays the same"
        )
    if text == state.document:
        return []
    stream = stream_of(command.number)
    fact = PolicyProposalRevised(
        number=command.number,
        revision=state.revision + 1,
        title=heading.title,
        category=heading.category,
        authors=heading.authors,
        created=heading.created,
        document=text,
        governors=ballot.present_set(world),
        by=command.by,
        at_us=command.at_us,
    )
    linted = _linted(document, text, fact.revision, command.at_us)
    return [Change(stream, fact), Change(stream, linted)]


def decide_review(command: OpenPolicyReview, world: World) -> list[Change]:
    """What fails the lint can be reviewed, too: that is how it gets better.

    Raises Refused: PROPOSAL_UNKNOWN, PROPOSAL_MOVED, PROPOSAL_STATE, PROPOSAL_INVALID.
    """
    state = _seen(world, command.number, command.expected)
    _require(state, frozenset({DRAFT, LINTED}))
    _require_text(command.stage, "stage")
    fact = PolicyReviewOpened(
        number=command.number, stage=command.stage, by=command.by, at_us=command.at_us
    )
    return [Change(stream_of(command.number), fact)]


def decide_approve(command: ApprovePolicyProposal, world: World) -> list[Change]:
    """Judged with every tariff in force or to come. Raises Refused: PROPOSAL_UNKNOWN,
    PROPOSAL_MOVED, PROPOSAL_STATE, PROPOSAL_LINT, PROFIT_BOUND, and those of `check_version` and
    `ballot.cast`: nobody votes in vain.
    """
    state = _seen(world, command.number, command.expected)
    _require(state, VOTED_ON)
    report = lint_of(state)
    if not report.passes:
        raise Refused(GovernanceReason.PROPOSAL_LINT, errors=report.errors, rule=report.first_error)
    terms = document_in(state.document)[0].terms
    if terms is not None:
        profit_bound.require_rewards(terms.rewards, tariffs_from(world, command.at_us))
        check_version(_soonest(terms, world, command.by, command.at_us), world)
    return [_cast(command, state, YES, world)]


def decide_reject(command: RejectPolicyProposal, world: World) -> list[Change]:
    """As many are needed as for a yes. Raises Refused: PROPOSAL_UNKNOWN, PROPOSAL_MOVED,
    PROPOSAL_STATE, PROPOSAL_INVALID, and those of `ballot.cast`.
    """
    state = _seen(world, command.number, command.expected)
    _require(state, VOTED_ON)
    _require_text(command.reason, "reason")
    return [_cast(command, state, NO, world)]


def decide_cancel(command: CancelPolicy, world: World) -> list[Change]:
    """The last vote needed takes the version back. Raises Refused: PROPOSAL_UNKNOWN,
    PROPOSAL_MOVED, PROPOSAL_STATE, POLICY_INVALID, and those of `ballot.cast`.
    """
    state = _seen(world, command.number, command.expected)
    _require(state, frozenset({SCHEDULED}))
    scheduled = state.scheduled
    assert scheduled is not None
    if has_opened(world, scheduled.effective_from_epoch):
        raise Refused(
            GovernanceReason.PROPOSAL_STATE, number=command.number, status=SCHEDULED, rule="begun"
        )
    cancelled = cancel_version(scheduled.version, command.number, command.at_us, world)
    voted = _cast(command, state, CANCEL, world)
    return [voted, cancelled] if voted.fact.carries else [voted]


def decide_withdraw(command: WithdrawPolicyProposal, world: World) -> list[Change]:
    """Raises Refused: PROPOSAL_UNKNOWN, PROPOSAL_MOVED, NOT_PERMITTED, PROPOSAL_STATE,
    PROPOSAL_INVALID.
    """
    state = _seen(world, command.number, command.expected)
    if command.by != state.proposed_by:
        raise Refused(PartiesReason.NOT_PERMITTED, rule="only its author withdraws it")
    _require(state, frozenset(STATUSES) - ENDED)
    _require_text(command.reason, "reason")
    fact = PolicyProposalWithdrawn(
        number=command.number, reason=command.reason, by=command.by, at_us=command.at_us
    )
    return [Change(stream_of(command.number), fact)]


def decide_schedule(command: SchedulePolicyProposal, world: World) -> list[Change]:
    """Publish the next version of the policy, far enough ahead. Its votes are counted again.

    Raises Refused: PROPOSAL_UNKNOWN, PROPOSAL_MOVED, PROPOSAL_STATE, SECOND_PERSON_NEEDED,
    PROPOSAL_WITHOUT_TERMS, PROFIT_BOUND, EPOCH_STATE, PROPOSAL_NOTICE, and those of
    `next_version`.
    """
    state = _seen(world, command.number, command.expected)
    _require(state, frozenset({APPROVED}))
    ballot.require_votes(world, state.subject, state.votes, rules_in_force(world).approvals)
    terms = document_in(state.document)[0].terms
    if terms is None:
        raise Refused(GovernanceReason.PROPOSAL_WITHOUT_TERMS, number=command.number)
    profit_bound.require_rewards(terms.rewards, tariffs_from(world, command.at_us))
    _check_open_epoch(world, command.open_epoch)
    earliest = earliest_epoch(terms, world, command.open_epoch)
    start = earliest if command.effective_from_epoch is None else command.effective_from_epoch
    if start < earliest:
        raise Refused(
            GovernanceReason.PROPOSAL_NOTICE, effective_from_epoch=start, earliest=earliest
        )
    publishing = publishing_of(
        terms, version=len(policies_of(world)) + 1, start=start, by=command.by, at_us=command.at_us
    )
    fact = PolicyProposalScheduled(
        number=command.number,
        version=publishing.version,
        effective_from_epoch=start,
        open_epoch=command.open_epoch,
        mode=register_of(world).now.mode,
        by=command.by,
        at_us=command.at_us,
    )
    published = next_version(replace(publishing, proposal=command.number), world)
    return [published, Change(stream_of(command.number), fact)]


def publishing_of(terms: Terms, *, version: int, start: int, by: str, at_us: int) -> PublishPolicy:
    """The terms of a document as a version of the policy from epoch `start` on."""
    return PublishPolicy(
        version=version,
        epoch_length_us=terms.epoch_length_seconds * SECOND_US,
        segments=terms.segments,
        hard_cap=token(terms.hard_cap),
        compute_ppm=terms.compute_ppm,
        availability_ppm=terms.availability_ppm,
        treasury_ppm=terms.treasury_ppm,
        compute_base=terms.compute_base,
        holdback_epochs=terms.holdback_epochs,
        effective_from_epoch=start,
        by=by,
        at_us=at_us,
        rewards=terms.rewards,
        governance=terms.governance,
    )


def _soonest(terms: Terms, world: World, by: str, at_us: int) -> PublishPolicy:
    """The version it would be if no notice had to be kept."""
    start = earliest_epoch(terms, world, open_epoch=0)
    version = len(policies_of(world)) + 1
    return publishing_of(terms, version=version, start=start, by=by, at_us=at_us)


def _linted(document: Document, text: str, revision: int, at_us: int) -> PolicyProposalLinted:
    report = lint_document(document)
    return PolicyProposalLinted(
        number=document.proposal.number,
        revision=revision,
        passes=report.passes,
        errors=report.errors,
        warnings=report.warnings,
        document_sha256=digest(text),
        findings_sha256=report.sha256,
        at_us=at_us,
    )


def _seen(world: World, number: int, expected: int) -> Proposal:
    """The proposal as the caller saw it. Raises Refused: PROPOSAL_UNKNOWN, PROPOSAL_MOVED."""
    state = existing_proposal(world, number)
    if state.changes != expected:
        raise Refused(
            GovernanceReason.PROPOSAL_MOVED, number=number, expected=expected, found=state.changes
        )
    return state


def _cast(
    command: ApprovePolicyProposal | RejectPolicyProposal | CancelPolicy,
    state: Proposal,
    choice: str,
    world: World,
) -> Change:
    """Raises Refused: those of `ballot.cast`."""
    fact: VoteCast = ballot.cast(
        world,
        state.subject,
        state.votes,
        command.vote,
        choice=choice,
        reason=command.reason if isinstance(command, RejectPolicyProposal) else None,
        approvals=rules_in_force(world).approvals,
        key_id=command.key_id,
        by=command.by,
        at_us=command.at_us,
    )
    return Change(stream_of(command.number), fact)


def _require(state: Proposal, wanted: frozenset[str]) -> None:
    if state.status not in wanted:
        raise Refused(GovernanceReason.PROPOSAL_STATE, number=state.number, status=state.status)


def _require_text(text: str, name: str) -> None:
    if not 1 <= len(text) <= TEXT_MAX:
        raise Refused(
            GovernanceReason.PROPOSAL_INVALID, field=name, rule=f"1 to {TEXT_MAX} characters"
        )


def _check_open_epoch(world: World, epoch: int) -> None:
    """Raises Refused: EPOCH_STATE when another epoch is the newest by now."""
    if (epoch and not has_opened(world, epoch)) or has_opened(world, epoch + 1):
        raise Refused(EpochsReason.EPOCH_STATE, epoch=epoch, rule="is not the newest")


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    ProposePolicy: decide_propose,
    RevisePolicyProposal: decide_revise,
    OpenPolicyReview: decide_review,
    ApprovePolicyProposal: decide_approve,
    RejectPolicyProposal: decide_reject,
    CancelPolicy: decide_cancel,
    WithdrawPolicyProposal: decide_withdraw,
    SchedulePolicyProposal: decide_schedule,
}
