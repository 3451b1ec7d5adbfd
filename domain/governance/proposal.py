"""Proposals of a policy: facts, and how far one has come.

    draft --linted--> linted --review--> in_review --votes--> approved --scheduled--> scheduled
    all but scheduled --> rejected | withdrawn;   a revision begins again, without a vote
    scheduled --> cancelled, until its first epoch was opened

The document is kept whole, so everybody can repeat the lint. How a proposal moves on is decided in
`domain/governance/vote.py`. That a scheduled version is in force says the epoch that was opened
under it, no fact here. Source: design economics 12, row R-13 (RNP-005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.authority.vote import CANCEL, NO, SINGLE, YES, Subject, VoteCast
from domain.frozen import replace
from domain.governance.document import Heading
from domain.governance.reasons import GovernanceReason
from domain.refusal import Refused
from domain.stream import Stream, World

# Facts. Stream `policy_proposal:{number}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProposed:
    """`document` is canonical JSON; what is beside it is in it, for whoever reads facts alone.
    `governors`: the set in force before it, which votes on it.
    """

    number: int
    title: str
    category: str
    authors: tuple[str, ...]
    created: str  # the day the authors wrote it
    document: str
    governors: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProposalRevised:
    """Another document under the same number; votes on the one before no longer count."""

    number: int
    revision: int  # the first document is revision 1
    title: str
    category: str
    authors: tuple[str, ...]
    created: str
    document: str
    governors: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProposalLinted:
    """Right after its document, in one append with it."""

    number: int
    revision: int
    passes: bool
    errors: int
    warnings: int
    document_sha256: str
    findings_sha256: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReviewOpened:
    """`stage` in the words of whoever reviews, like "In Render Team Review"."""

    number: int
    stage: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProposalWithdrawn:
    number: int
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProposalScheduled:
    """In one append with the `PolicyPublished` it names."""

    number: int
    version: int
    effective_from_epoch: int
    open_epoch: int  # when it was scheduled; 0: none yet
    mode: str  # of the register of governors
    by: str
    at_us: int


Fact: TypeAlias = (
    PolicyProposed
    | PolicyProposalRevised
    | PolicyProposalLinted
    | PolicyReviewOpened
    | VoteCast
    | PolicyProposalWithdrawn
    | PolicyProposalScheduled
)

DRAFT, LINTED, IN_REVIEW, APPROVED = "draft", "linted", "in_review", "approved"
REJECTED, WITHDRAWN, SCHEDULED = "rejected", "withdrawn", "scheduled"
CANCELLED = "cancelled"
STATUSES = (DRAFT, LINTED, IN_REVIEW, APPROVED, REJECTED, WITHDRAWN, SCHEDULED, CANCELLED)
ENDED = frozenset({REJECTED, WITHDRAWN, SCHEDULED, CANCELLED})
REVISED_IN = frozenset({DRAFT, LINTED, IN_REVIEW})
VOTED_ON = frozenset({LINTED, IN_REVIEW, APPROVED})
"""Also what is approved: a vote may have dropped out by the scheduling."""
KIND = "policy"
"""Of a vote on a proposal."""
REVISIONS_MAX = 20
TEXT_MAX = 1_000

# State.


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a proposal's history."""

    status: str
    by: str
    since_us: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal as far as its facts go. `changes` counts them: it is what callers have seen."""

    number: int = 0
    status: str = "unknown"
    changes: int = 0
    revision: int = 0
    heading: Heading | None = None
    document: str = ""
    proposed_by: str = ""
    proposed_at_us: int = 0
    linted: PolicyProposalLinted | None = None
    governors: int = 0
    votes: tuple[VoteCast, ...] = ()  # on the newest revision
    scheduled: PolicyProposalScheduled | None = None
    history: tuple[Step, ...] = ()

    @property
    def subject(self) -> Subject:
        """What a vote is on: the newest revision of the document."""
        assert self.linted is not None
        content = self.linted.document_sha256
        return Subject(KIND, str(self.number), self.revision, content, self.governors)

    @property
    def approved_by(self) -> tuple[str, ...]:
        return tuple(one.governor_id for one in self.votes if one.choice == YES)

    @property
    def rejected_by(self) -> tuple[str, ...]:
        return tuple(one.governor_id for one in self.votes if one.choice == NO)


_CARRIED = {YES: APPROVED, NO: REJECTED, CANCEL: CANCELLED}
_WORDS = {YES: "approval", NO: "rejection", CANCEL: "cancellation"}


def evolve(state: Proposal, fact: Fact) -> Proposal:
    after = _evolved(state, fact)
    by = state.history[-1].by if isinstance(fact, PolicyProposalLinted) else _by(fact)
    step = Step(after.status, by, fact.at_us, _note(fact))
    return replace(after, changes=state.changes + 1, history=(*state.history, step))


def _by(fact: Any) -> str:
    """Whose step it is: of a vote the governor, whoever carried it."""
    who: str = fact.governor_id if isinstance(fact, VoteCast) else fact.by
    return who


def _evolved(state: Proposal, fact: Fact) -> Proposal:
    match fact:
        case PolicyProposed():
            return replace(
                _with_document(state, fact),
                number=fact.number,
                proposed_by=fact.by,
                proposed_at_us=fact.at_us,
            )
        case PolicyProposalRevised():
            return _with_document(state, fact)
        case PolicyProposalLinted():
            return replace(state, linted=fact, status=LINTED if fact.passes else DRAFT)
        case PolicyReviewOpened():
            return replace(state, status=IN_REVIEW)
        case VoteCast():
            status = _CARRIED[fact.choice] if fact.carries else state.status
            return replace(state, status=status, votes=(*state.votes, fact))
        case PolicyProposalWithdrawn():
            return replace(state, status=WITHDRAWN)
        case PolicyProposalScheduled():
            return replace(state, status=SCHEDULED, scheduled=fact)
        case _:
            assert_never(fact)


def _with_document(state: Proposal, fact: PolicyProposed | PolicyProposalRevised) -> Proposal:
    return replace(
        state,
        status=DRAFT,
        revision=state.revision + 1,
        heading=Heading(fact.number, fact.title, fact.category, fact.authors, fact.created),
        document=fact.document,
        governors=fact.governors,
        linted=None,
        votes=(),
    )


def _note(fact: Fact) -> str:
    """What the history says of a fact beside its status."""
    match fact:
        case PolicyProposed():
            return ""
        case PolicyProposalRevised():
            return f"revision {fact.revision}"
        case PolicyProposalLinted():
            outcome = "passes" if fact.passes else "fails"
            return f"lint {outcome}: {fact.errors} errors, {fact.warnings} warnings"
        case PolicyReviewOpened():
            return fact.stage
        case VoteCast():
            reason = "" if fact.reason is None else f": {fact.reason}"
            mode = " (single)" if fact.mode == SINGLE else ""
            return f"{_WORDS[fact.choice]} {fact.count} of {fact.needed}{mode}{reason}"
        case PolicyProposalWithdrawn():
            return fact.reason
        case PolicyProposalScheduled():
            return f"version {fact.version} from epoch {fact.effective_from_epoch}"
        case _:
            assert_never(fact)


def stream_of(number: int) -> Stream[Proposal]:
    return Stream("policy_proposal", str(number))


def existing_proposal(world: World, number: int) -> Proposal:
    """Raises Refused: PROPOSAL_UNKNOWN."""
    state = world.state(stream_of(number))
    if state.heading is None:
        raise Refused(GovernanceReason.PROPOSAL_UNKNOWN, number=number)
    return state


STREAMS: dict[str, tuple[Any, Any]] = {"policy_proposal": (Proposal(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
