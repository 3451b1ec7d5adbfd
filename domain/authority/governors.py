"""How the register of governors changes: the first enrols alone, every other change is voted.

    first governor:  the operator's word and the key's own signature
    single:          one present governor's vote, in force at once
    shared:          `threshold` votes of the present ones, in force once the second epoch after
                     them was opened, so one whole epoch lies between

Who is to be enrolled has no vote on it, and signs that the key is held. What is scheduled can be
cancelled by as many until it is in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.authority import ballot
from domain.authority.reasons import AuthorityReason
from domain.authority.register import (
    ACTIONS,
    CHANGES_MAX,
    ENROL,
    GOVERNORS,
    GOVERNORS_MAX,
    OPEN,
    PROPOSED,
    REMOVE,
    SCHEDULED,
    SHARED_FROM,
    THRESHOLD_MIN,
    GovernorChange,
    GovernorChangeProposed,
    GovernorChangeScheduled,
    GovernorEnrolled,
    GovernorRemoved,
    GovernorSet,
    GovernorThresholdSet,
    Register,
    register_of,
)
from domain.authority.vote import CANCEL, SHARED, SINGLE, YES, SignedVote, governor_id, is_key
from domain.frozen import replace
from domain.refusal import Refused
from domain.stream import Change, Stream, World

DELAY_EPOCHS = 2

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeGovernorChange:
    """`key` and `signature` of who is to be enrolled, `governor_id` of who is to be removed.
    `governors`: the version of the set that the caller has read; the signature names it too.
    """

    network: str
    action: str
    governors: int
    by: str
    at_us: int
    key: str | None = None
    signature: str | None = None
    governor_id: str | None = None
    threshold: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteOnGovernorChange:
    """`open_epoch`: the newest there is, 0 when none."""

    number: int
    choice: str
    vote: SignedVote
    open_epoch: int
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyGovernorChange:
    number: int
    at_us: int


# How we decide.


def decide_propose(command: ProposeGovernorChange, world: World) -> list[Change]:
    """Raises Refused: GOVERNORS_MOVED, GOVERNOR_CHANGE_INVALID, GOVERNOR_UNKNOWN."""
    register = register_of(world)
    now = register.now
    if command.governors != now.version:
        raise Refused(
            AuthorityReason.GOVERNORS_MOVED, expected=now.version, found=command.governors
        )
    if len([one for one in register.changes if one.status in OPEN]) >= CHANGES_MAX:
        raise _invalid(f"at most {CHANGES_MAX} changes are open at one time")
    is_enrolment = command.action == ENROL
    if is_enrolment != (command.key is not None and command.signature is not None):
        raise _invalid("an enrolment has a key and its signature, and nothing else has")
    enrolled = governor_id(command.key) if command.key is not None else command.governor_id
    change = GovernorChangeProposed(
        number=len(register.changes) + 1,
        action=command.action,
        governor_id=enrolled,
        key=command.key,
        signature=command.signature,
        threshold=command.threshold,
        governors=now.version,
        mode=now.mode,
        by=command.by,
        at_us=command.at_us,
    )
    after = _after(now, change)
    if now.version:
        return [Change(GOVERNORS, change)]
    assert after.members == (enrolled,), "nobody is there to be removed"
    first = _fact(replace(change, number=0), after, command.network, command.at_us)
    return [Change(GOVERNORS, first)]


def decide_vote(command: VoteOnGovernorChange, world: World) -> list[Change]:
    """Raises Refused: GOVERNOR_CHANGE_UNKNOWN, GOVERNOR_CHANGE_STATE, EPOCH_MOVED, NO_GOVERNORS,
    VOTE_MISMATCH, GOVERNOR_UNKNOWN, VOTED_ALREADY, GOVERNOR_CHANGE_INVALID.
    """
    change = existing_change(register_of(world), command.number)
    wanted = {CANCEL: {SCHEDULED}, YES: {PROPOSED, SCHEDULED}}.get(command.choice, {PROPOSED})
    _require(change, wanted)
    cast = ballot.cast(
        world,
        change.subject,
        change.votes,
        command.vote,
        choice=command.choice,
        key_id=command.key_id,
        by=command.by,
        at_us=command.at_us,
    )
    voted = Change(GOVERNORS, cast)
    if command.choice != YES or not cast.carries or change.status == SCHEDULED:
        return [voted]
    is_single = cast.mode == SINGLE
    if not is_single:
        check_open_epoch(world, command.open_epoch)
    scheduled = GovernorChangeScheduled(
        number=command.number,
        from_epoch=0 if is_single else command.open_epoch + DELAY_EPOCHS,
        open_epoch=command.open_epoch,
        mode=cast.mode,
        at_us=command.at_us,
    )
    applied = [_applied(world, change, command.at_us)] if is_single else []
    return [voted, Change(GOVERNORS, scheduled), *applied]


def decide_apply(command: ApplyGovernorChange, world: World) -> list[Change]:
    """Raises Refused: GOVERNOR_CHANGE_UNKNOWN, GOVERNOR_CHANGE_STATE, SECOND_PERSON_NEEDED,
    GOVERNOR_CHANGE_INVALID, GOVERNOR_UNKNOWN.
    """
    change = existing_change(register_of(world), command.number)
    _require(change, {SCHEDULED})
    if not is_due(world, change):
        raise Refused(
            AuthorityReason.GOVERNOR_CHANGE_STATE,
            number=command.number,
            from_epoch=change.from_epoch,
        )
    ballot.require_votes(world, change.subject, change.votes)
    return [_applied(world, change, command.at_us)]


def existing_change(register: Register, number: int) -> GovernorChange:
    """Raises Refused: GOVERNOR_CHANGE_UNKNOWN."""
    if not 1 <= number <= len(register.changes):
        raise Refused(AuthorityReason.GOVERNOR_CHANGE_UNKNOWN, number=number)
    return register.changes[number - 1]


def is_due(world: World, change: GovernorChange) -> bool:
    """Whether a scheduled change may come into force."""
    return change.from_epoch is not None and has_opened(world, change.from_epoch)


def check_open_epoch(world: World, epoch: int) -> None:
    """Raises Refused: EPOCH_MOVED when another epoch is the newest by now."""
    if (epoch and not has_opened(world, epoch)) or has_opened(world, epoch + 1):
        raise Refused(AuthorityReason.EPOCH_MOVED, epoch=epoch)


def has_opened(world: World, epoch: int) -> bool:
    """Whether an epoch was opened. Its room is above this one."""
    stream: Stream[Any] = Stream("epoch", str(epoch))
    return world.state(stream).opened is not None


def _applied(world: World, change: GovernorChange, at_us: int) -> Change:
    register = register_of(world)
    after = _after(register.now, change.proposed)
    return Change(GOVERNORS, _fact(change.proposed, after, register.network, at_us))


def _after(now: GovernorSet, change: GovernorChangeProposed) -> GovernorSet:
    """The set with the change. Raises Refused: GOVERNOR_CHANGE_INVALID, GOVERNOR_UNKNOWN."""
    if change.action not in ACTIONS:
        raise _invalid(f"one of {', '.join(ACTIONS)}")
    members, threshold, mode = now.members, now.threshold, now.mode
    if change.action == ENROL:
        if change.key is None or not is_key(change.key):
            raise _invalid(
                "a key is ed25519:<64 hex digits>, wallet:0x<40 hex digits> or"
                " passkey:<COSE key in hex>@<origin>"
            )
        assert change.governor_id is not None
        if change.governor_id in members:
            raise _invalid("this key is enrolled already")
        if len(members) >= GOVERNORS_MAX:
            raise _invalid(f"at most {GOVERNORS_MAX} governors")
        members = (*members, change.governor_id)
        if mode == SINGLE and len(members) >= SHARED_FROM:
            mode, threshold = SHARED, THRESHOLD_MIN
    elif change.action == REMOVE:
        if change.governor_id not in members:
            raise Refused(
                AuthorityReason.GOVERNOR_UNKNOWN,
                governor_id=change.governor_id,
                rule="not a governor",
            )
        members = tuple(one for one in members if one != change.governor_id)
    else:
        threshold = change.threshold or 0
        if mode == SINGLE:
            raise _invalid("a threshold is set when three governors are enrolled")
    if not members:
        raise _invalid("one governor stays")
    if mode == SHARED and len(members) < SHARED_FROM:
        raise _invalid("three governors stay")
    if mode == SHARED and not THRESHOLD_MIN <= threshold <= len(members):
        raise _invalid(f"the threshold is from 2 to {len(members)}")
    return GovernorSet(now.version + 1, members, threshold, mode)


def _fact(change: GovernorChangeProposed, after: GovernorSet, network: str, at_us: int) -> Any:
    told: dict[str, Any] = {
        "change": change.number,
        "version": after.version,
        "threshold": after.threshold,
        "mode": after.mode,
        "at_us": at_us,
    }
    if change.action == ENROL:
        return GovernorEnrolled(
            network=network,
            governor_id=change.governor_id or "",
            key=change.key or "",
            signature=change.signature or "",
            signed_version=change.governors,
            by=change.by,
            **told,
        )
    if change.action == REMOVE:
        return GovernorRemoved(governor_id=change.governor_id or "", **told)
    return GovernorThresholdSet(**told)


def _require(change: GovernorChange, wanted: set[str]) -> None:
    if change.status not in wanted:
        raise Refused(
            AuthorityReason.GOVERNOR_CHANGE_STATE,
            number=change.proposed.number,
            status=change.status,
        )


def _invalid(rule: str) -> Refused:
    return Refused(AuthorityReason.GOVERNOR_CHANGE_INVALID, rule=rule)


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    ProposeGovernorChange: decide_propose,
    VoteOnGovernorChange: decide_vote,
    ApplyGovernorChange: decide_apply,
}
