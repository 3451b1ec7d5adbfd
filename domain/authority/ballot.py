"""The one rule of all votes: who may vote on what, once, and how many votes carry it.

    electorate == governors of the set before the proposal who are still governors
    needed     == 1 in mode `single`; in `shared` the threshold, then or now, whichever is higher
    shared     => needed >= 2:  no signature carries anything alone

Six things are voted on by it, and the register itself: policies, grants, milestones, clawbacks,
slashes, adjustments. A vote names the SHA-256 of the content that was read; one that names another
is refused. A governor enrolled after the proposal has no vote on it, and one who was removed since
drops out of the count. To cancel what is scheduled takes governors of today: those who made it may
be gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.authority.reasons import AuthorityReason
from domain.authority.register import Register, register_of
from domain.authority.vote import CANCEL, SINGLE, YES, SignedVote, Subject, VoteCast
from domain.refusal import Refused
from domain.stream import World


def present_set(world: World) -> int:
    """The version of the governor set, for a proposal made now. Raises Refused: NO_GOVERNORS."""
    version = register_of(world).now.version
    if not version:
        raise Refused(AuthorityReason.NO_GOVERNORS)
    return version


def electorate(register: Register, version: int) -> tuple[str, ...]:
    """Governors of a set who still are governors."""
    now = register.now.members
    return tuple(one for one in register.at(version).members if one in now)


def needed(register: Register, version: int, approvals: int = 1) -> int:
    """So many votes carry what was proposed under this set; `approvals`: what else asks for more,
    as far as there are so many governors.
    """
    now = register.now
    if now.mode == SINGLE:
        return 1
    asked = max(now.threshold, min(approvals, len(now.members)))
    most = max(asked, register.at(version).threshold)
    assert most >= 2, (version, approvals)
    return most


def voters(register: Register, votes: Iterable[VoteCast], choice: str, version: int) -> list[str]:
    """Who said this and counts now, each once."""
    entitled = register.now.members if choice == CANCEL else electorate(register, version)
    said = {vote.governor_id for vote in votes if vote.choice == choice}
    return [one for one in entitled if one in said]


def cast(
    world: World,
    subject: Subject,
    votes: Iterable[VoteCast],
    vote: SignedVote,
    *,
    choice: str = YES,
    reason: str | None = None,
    approvals: int = 1,
    key_id: str,
    by: str,
    at_us: int,
) -> VoteCast:
    """A vote on this revision, beside the `votes` it has. Whether it carries says the fact.

    Raises Refused: NO_GOVERNORS, VOTE_MISMATCH, GOVERNOR_UNKNOWN, VOTED_ALREADY.
    """
    register = register_of(world)
    present_set(world)
    version = register.now.version if choice == CANCEL else subject.governors
    _check_names(subject, vote, version)
    entitled = register.now.members if choice == CANCEL else electorate(register, version)
    if vote.governor_id not in entitled:
        rule = (
            "not a governor" if vote.governor_id not in register.now.members else "enrolled later"
        )
        raise Refused(AuthorityReason.GOVERNOR_UNKNOWN, governor_id=vote.governor_id, rule=rule)
    before = [one for one in votes if (one.choice == CANCEL) == (choice == CANCEL)]
    if any(one.governor_id == vote.governor_id for one in before):
        raise Refused(AuthorityReason.VOTED_ALREADY, revision=subject.revision)
    counted = voters(register, before, choice, version)
    return VoteCast(
        kind=subject.kind,
        subject=subject.subject,
        revision=subject.revision,
        content_sha256=subject.content_sha256,
        governors=version,
        choice=choice,
        rehearsal_sha256=vote.rehearsal_sha256,
        governor_id=vote.governor_id,
        signature=vote.signature,
        mode=register.now.mode,
        count=len(counted) + 1,
        needed=needed(register, version, approvals),
        reason=reason,
        key_id=key_id,
        by=by,
        at_us=at_us,
    )


def require_votes(
    world: World, subject: Subject, votes: Iterable[VoteCast], approvals: int = 1
) -> None:
    """Count again: who was removed since has dropped out. Raises Refused: SECOND_PERSON_NEEDED."""
    register = register_of(world)
    count = len(voters(register, votes, YES, subject.governors))
    due = needed(register, subject.governors, approvals)
    if count < due:
        raise Refused(AuthorityReason.SECOND_PERSON_NEEDED, count=count, needed=due)


def _check_names(subject: Subject, vote: SignedVote, version: int) -> None:
    """Raises Refused: VOTE_MISMATCH, naming what the vote names differently."""
    for field, expected in (
        ("content_sha256", subject.content_sha256),
        ("revision", subject.revision),
        ("governors", version),
    ):
        if getattr(vote, field) != expected:
            raise Refused(AuthorityReason.VOTE_MISMATCH, field=field, expected=expected)
