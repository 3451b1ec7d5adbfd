"""A lost key of the operator: the way back is announced, and waits for 72 hours.

    from the server's machine:  announced -> 72 hours -> a new key for an owner
    until then:                 announced -> cancelled

Whoever has the server's machine and its database can announce. So the announcement is public, and
one person is enough to stop it: a governor, because whoever stole the operator's keys must not be
able to keep its owner out; while none is enrolled, a key that administers the operator's account.
Nothing else changes: what takes votes or two signatures takes them of the new key, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.authority import ballot
from domain.authority.reasons import AuthorityReason
from domain.authority.register import register_of
from domain.authority.vote import CANCEL, SignedVote, Subject, VoteCast, content_text, digest
from domain.frozen import replace
from domain.parties.account import (
    SCOPES,
    AccountState,
    ApiKeyIssued,
    account_of,
    open_account,
    operator_of,
)
from domain.parties.api_key import administrating_key, issuing
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

KIND = "key_recovery"
KEY_RECOVERY_US = 72 * 3_600_000_000
WAITING, CANCELLED, ENDED = "waiting", "cancelled", "ended"

# Facts. Stream `key_recovery:operator`.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecoveryAnnounced:
    """`governors`: the version of the set in force; 0: none is enrolled."""

    number: int
    account_id: str
    member_id: str
    key_id: str
    key_sha256: str
    effective_at_us: int
    governors: int
    mode: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecoveryCancelled:
    """`by`: the member whose key asked for it; None: its member is no owner any more."""

    number: int
    mode: str
    by: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecoveryEnded:
    """In one append with the key that is issued by it."""

    number: int
    at_us: int


Fact: TypeAlias = KeyRecoveryAnnounced | KeyRecoveryCancelled | KeyRecoveryEnded | VoteCast

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceKeyRecovery:
    """`member_id` None: the first owner by id."""

    key_id: str
    key_sha256: str
    at_us: int
    member_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelKeyRecovery:
    """`vote`: needed once a governor is enrolled."""

    number: int
    vote: SignedVote | None
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndKeyRecovery:
    number: int
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class KeyRecovery:
    announced: KeyRecoveryAnnounced
    status: str = WAITING
    votes: tuple[VoteCast, ...] = ()

    @property
    def content(self) -> dict[str, Any]:
        """What a governor reads before signing."""
        one = self.announced
        return {
            "account_id": one.account_id,
            "member_id": one.member_id,
            "key_id": one.key_id,
            "effective_at_us": one.effective_at_us,
        }

    @property
    def subject(self) -> Subject:
        one = self.announced
        return Subject(KIND, str(one.number), 1, digest(content_text(self.content)), one.governors)


@dataclass(frozen=True, slots=True)
class KeyRecoveries:
    """All that were ever announced: number n is `all[n - 1]`."""

    all: tuple[KeyRecovery, ...] = ()

    @property
    def waiting(self) -> KeyRecovery | None:
        """At most one waits."""
        newest = self.all[-1] if self.all else None
        return newest if newest is not None and newest.status == WAITING else None


KEY_RECOVERIES: Stream[KeyRecoveries] = Stream(KIND, "operator")


def evolve(state: KeyRecoveries, fact: Fact) -> KeyRecoveries:
    match fact:
        case KeyRecoveryAnnounced():
            assert fact.number == len(state.all) + 1, fact
            return KeyRecoveries((*state.all, KeyRecovery(fact)))
        case KeyRecoveryCancelled():
            return _with_newest(state, status=CANCELLED)
        case KeyRecoveryEnded():
            return _with_newest(state, status=ENDED)
        case VoteCast():
            return _with_newest(state, votes=(*state.all[-1].votes, fact))
        case _:
            assert_never(fact)


def _with_newest(state: KeyRecoveries, **changed: Any) -> KeyRecoveries:
    return KeyRecoveries((*state.all[:-1], replace(state.all[-1], **changed)))


# How we decide.


def decide_announce(command: AnnounceKeyRecovery, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, KEY_RECOVERY_STATE, OWNER_NEEDED."""
    account_id = operator_of(world).account_id
    state = open_account(world, account_id or "")
    recoveries = world.state(KEY_RECOVERIES)
    if recoveries.waiting is not None:
        raise _wrong_state(recoveries.waiting)
    member_id = state.owners[0] if command.member_id is None else command.member_id
    if member_id not in state.owners:
        raise Refused(PartiesReason.OWNER_NEEDED, role=state.members.get(member_id))
    assert account_id is not None
    now = register_of(world).now
    announced = KeyRecoveryAnnounced(
        number=len(recoveries.all) + 1,
        account_id=account_id,
        member_id=member_id,
        key_id=command.key_id,
        key_sha256=command.key_sha256,
        effective_at_us=command.at_us + KEY_RECOVERY_US,
        governors=now.version,
        mode=now.mode,
        at_us=command.at_us,
    )
    return [Change(KEY_RECOVERIES, announced)]


def decide_cancel(command: CancelKeyRecovery, world: World) -> list[Change]:
    """Raises Refused: KEY_RECOVERY_UNKNOWN, KEY_RECOVERY_STATE, SECOND_PERSON_NEEDED,
    VOTE_MISMATCH, GOVERNOR_UNKNOWN; without governors NO_GOVERNORS, API_KEY_UNKNOWN,
    API_KEY_REVOKED, ADMINISTRATOR_NEEDED.
    """
    recovery = _waiting(world, command.number)
    now, votes = register_of(world).now, list[Change]()
    if command.vote is not None:
        cast = ballot.cast(
            world,
            recovery.subject,
            recovery.votes,
            command.vote,
            choice=CANCEL,
            key_id=command.key_id,
            by=command.by,
            at_us=command.at_us,
        )
        votes = [Change(KEY_RECOVERIES, cast)]
    elif now.members:
        raise Refused(AuthorityReason.SECOND_PERSON_NEEDED, count=0, needed=1)
    else:
        administrating_key(_operator(world, recovery), command.key_id, command.at_us)
    return [*votes, _cancelled(recovery, now.mode, command.by, command.at_us)]


def decide_end(command: EndKeyRecovery, world: World) -> list[Change]:
    """The new key opens what an owner's key may. Raises Refused: KEY_RECOVERY_UNKNOWN,
    KEY_RECOVERY_STATE, DUPLICATE_ID.
    """
    recovery = _waiting(world, command.number)
    told = recovery.announced
    if command.at_us < told.effective_at_us:
        raise _wrong_state(recovery)
    state = _operator(world, recovery)
    if told.member_id not in state.owners or state.is_closed:
        return [_cancelled(recovery, register_of(world).now.mode, None, command.at_us)]
    issued = ApiKeyIssued(
        account_id=told.account_id,
        key_id=told.key_id,
        key_sha256=told.key_sha256,
        member_id=told.member_id,
        scopes=SCOPES,
        expires_at_us=None,
        by_key_id=None,
        succeeds=None,
        at_us=command.at_us,
    )
    ended = KeyRecoveryEnded(number=command.number, at_us=command.at_us)
    return [Change(KEY_RECOVERIES, ended), *issuing(state, issued)]


def _waiting(world: World, number: int) -> KeyRecovery:
    """Raises Refused: KEY_RECOVERY_UNKNOWN, KEY_RECOVERY_STATE."""
    known = world.state(KEY_RECOVERIES).all
    if not 1 <= number <= len(known):
        raise Refused(AuthorityReason.KEY_RECOVERY_UNKNOWN, number=number)
    if known[number - 1].status != WAITING:
        raise _wrong_state(known[number - 1])
    return known[number - 1]


def _operator(world: World, recovery: KeyRecovery) -> AccountState:
    return account_of(world, recovery.announced.account_id)


def _cancelled(recovery: KeyRecovery, mode: str, by: str | None, at_us: int) -> Change:
    number = recovery.announced.number
    fact = KeyRecoveryCancelled(number=number, mode=mode, by=by, at_us=at_us)
    return Change(KEY_RECOVERIES, fact)


def _wrong_state(recovery: KeyRecovery) -> Refused:
    return Refused(
        AuthorityReason.KEY_RECOVERY_STATE,
        number=recovery.announced.number,
        status=recovery.status,
        effective_at_us=recovery.announced.effective_at_us,
    )


STREAMS: dict[str, tuple[Any, Any]] = {KIND: (KeyRecoveries(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    AnnounceKeyRecovery: decide_announce,
    CancelKeyRecovery: decide_cancel,
    EndKeyRecovery: decide_end,
}
