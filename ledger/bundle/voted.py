"""What came of a vote is what was voted on: the content, by its hash, and each number that follows.

    hash of the content, from the facts of the proposal  == the hash that the votes carry
    what stands in the log after the votes               == what the domain makes of that content
    the limit of an act                                  == that of the policy of its moment

The facts of proposals are folded by the domain itself; what the log says came of them is compared
with it. Whether there were enough votes is counted beside this (`authority.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from domain import rules
from domain.authority.acts import ActTaken
from domain.authority.register import (
    GovernorChange,
    GovernorEnrolled,
    GovernorRemoved,
    GovernorThresholdSet,
)
from domain.authority.vote import digest
from domain.checked_acts import ACTS, limits_of
from domain.epochs.epoch import stream_of as epoch_stream
from domain.epochs.policy import NETWORK, PolicyPublished
from domain.epochs.reward_changes import RewardAdjusted, RewardSlashed
from domain.epochs.reward_correction import SLASH, RewardCorrectionAccepted, correction_stream
from domain.governance import grant, proposal
from domain.governance.grant import (
    GrantClawedBack,
    GrantOpened,
    MilestoneAccepted,
    clawback_of,
    milestone_of,
    opening_of,
)
from domain.governance.vote import document_in, publishing_of
from domain.nesting import read_json
from domain.refusal import Refused
from domain.stream import Stream
from ledger.log import codec

FOLDED: dict[str, Callable[[Any], Stream[Any]]] = {
    "policy_proposal.proposed.v1": lambda fact: proposal.stream_of(fact.number),
    "policy_proposal.revised.v1": lambda fact: proposal.stream_of(fact.number),
    "policy_proposal.linted.v1": lambda fact: proposal.stream_of(fact.number),
    "grant.proposed.v1": lambda fact: grant.stream_of(fact.grant_id),
    "grant.opened.v1": lambda fact: grant.stream_of(fact.grant_id),
    "milestone.proposed.v1": lambda fact: grant.stream_of(fact.grant_id),
    "milestone.accepted.v1": lambda fact: grant.stream_of(fact.grant_id),
    "grant.clawback_proposed.v1": lambda fact: grant.stream_of(fact.grant_id),
    "grant.clawed_back.v1": lambda fact: grant.stream_of(fact.grant_id),
    "reward_correction.proposed.v1": lambda fact: correction_stream(fact.correction_id),
    "reward_correction.accepted.v1": lambda fact: correction_stream(fact.correction_id),
    "policy.published.v1": lambda _fact: NETWORK,
    "policy.cancelled.v1": lambda _fact: NETWORK,
    "epoch.opened.v1": lambda fact: epoch_stream(fact.epoch),
}
"""Facts that say what is voted on, what came of it, and which policy is in force."""
_LIMITED = {act.name: act for act in ACTS.values()}


class Differs(ValueError):
    """What came of a vote, or a limit, is not what was voted on."""


@dataclass(slots=True)
class Voted:
    """A world of these facts alone; implements what the domain asks of one."""

    states: dict[Stream[Any], Any] = field(default_factory=dict)

    def state(self, stream: Stream[Any]) -> Any:
        return self.states.get(stream, rules.initial(stream.kind))

    def balance(self, account: str) -> int:
        raise AssertionError(f"{account}: an export's votes need no balance")

    def fold(self, name: str, body: dict[str, Any]) -> None:
        """Raises ValueError for a body of another form."""
        fact = codec.decode_values(name, body)
        stream = FOLDED[name](fact)
        self.states[stream] = rules.evolve(stream.kind, self.state(stream), fact)

    def require(self, name: str, body: dict[str, Any], content_sha256: str) -> None:
        """What this fact says follows from the content with this hash. Raises Differs."""
        fact = codec.decode_values(name, body)
        match fact:
            case PolicyPublished():
                self._policy(fact, content_sha256)
            case GrantOpened() | MilestoneAccepted() | GrantClawedBack():
                self._grant(fact, content_sha256)
            case RewardCorrectionAccepted() | RewardSlashed() | RewardAdjusted():
                self._correction(fact, content_sha256)
            case _:
                pass

    def _policy(self, fact: PolicyPublished, voted: str) -> None:
        state = self.state(proposal.stream_of(fact.proposal or 0))
        _same(digest(state.document), voted)
        try:
            read_json(state.document)  # before a parser that recurses
            terms = document_in(state.document)[0].terms
        except (Refused, ValueError):
            terms = None
        if terms is None:
            raise Differs("a policy whose document has no terms")
        made = publishing_of(
            terms,
            version=fact.version,
            start=fact.effective_from_epoch,
            by=fact.by,
            at_us=fact.at_us,
        )
        for one in PolicyPublished.__dataclass_fields__:
            if one != "proposal" and getattr(made, one) != getattr(fact, one):
                raise Differs(f"{one} of the policy is not what was voted on")

    def _grant(self, fact: GrantOpened | MilestoneAccepted | GrantClawedBack, voted: str) -> None:
        state = self.state(grant.stream_of(fact.grant_id))
        if state.proposed is None:
            raise Differs("a grant that nobody proposed")
        match fact:
            case GrantOpened():
                _same(opening_of(state.proposed)[0].content_sha256, voted)
                if fact.locked.units + fact.unassigned.units != state.proposed.total.units:
                    raise Differs("another total than the one that was voted on")
            case MilestoneAccepted():
                waiting = state.waiting.get(fact.milestone_id)
                if waiting is None:
                    raise Differs("a milestone that nobody proposed")
                _same(milestone_of(state, waiting.proposed)[0].content_sha256, voted)
                if fact.amount.units != state.parts.amounts[fact.milestone_id]:
                    raise Differs("another amount than the one that was voted on")
            case GrantClawedBack():
                if state.clawback is None:
                    raise Differs("a clawback that nobody proposed")
                _same(clawback_of(state.clawback.proposed)[0].content_sha256, voted)
                if fact.scope != state.clawback.proposed.scope:
                    raise Differs("another scope than the one that was voted on")

    def _correction(
        self, fact: RewardCorrectionAccepted | RewardSlashed | RewardAdjusted, voted: str
    ) -> None:
        correction = self.state(correction_stream(fact.correction_id))
        asked = correction.proposed
        if asked is None:
            raise Differs("a correction that nobody proposed")
        _same(correction.ballot()[0].content_sha256, voted)
        if not isinstance(fact, RewardCorrectionAccepted):
            moved = fact.amount.units if isinstance(fact, RewardSlashed) else fact.delta
            told = correction.accepted
            is_slash = isinstance(fact, RewardSlashed)
            if told is None or moved != (told.slashed if is_slash else told.adjusted):
                raise Differs("another amount than the one that was accepted")
            if fact.account_id != asked.account_id:
                raise Differs("another account than the one that was voted on")
            return
        wanted = 0 if asked.kind == SLASH else asked.delta + fact.slashed
        if not 0 <= fact.slashed <= max(-asked.delta, 0) or fact.adjusted != wanted:
            raise Differs("another amount than the one that was voted on")

    def require_limit(self, act: ActTaken) -> None:
        """The limit is that of the policy in force at this position. Raises Differs."""
        known = _LIMITED.get(act.act)
        if known is None:
            raise Differs(f"{act.act} is no act that takes two")
        limit = known.limit(limits_of(self))
        if act.limit != limit:
            raise Differs(f"says a limit of {act.limit}; the policy's is {limit}")


def require_change(fact: Any, change: GovernorChange, content_sha256: str) -> None:
    """What came of a change of the governors is what was voted on. Raises Differs."""
    _same(change.subject.content_sha256, content_sha256)
    asked = change.proposed
    match fact:
        case GovernorEnrolled():
            is_same = (asked.action, asked.key) == ("enrol", fact.key)
        case GovernorRemoved():
            is_same = (asked.action, asked.governor_id) == ("remove", fact.governor_id)
        case GovernorThresholdSet():
            is_same = (asked.action, asked.threshold) == ("threshold", fact.threshold)
        case _:
            is_same = True
    if not is_same:
        raise Differs("another change of the governors than the one that was voted on")


def _same(content: str, voted: str) -> None:
    if content != voted:
        raise Differs("the votes are on another content")
