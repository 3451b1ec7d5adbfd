"""Who decided what the log says was decided: governor sets, votes and acts, counted again.

    a vote counts             of a governor of the set that it names, who still was one; once
    its count                 == votes alike so far, with it
    needed                    >= what the register asked for (a policy may ask for more)
    what a vote decides       is there only after so many votes
    what a vote decides       is what was voted on (`voted.py`)
    above an act's limit      two governors of the set in force signed it, and it moved alone what
                              the acts of the day before say
    a key of the operator     was issued by another one, or announced 72 hours before

The counting is the domain's own (`domain/authority/ballot.py`), over the facts of an export. What
is wrong waits in `faults`; each text that a personal key is said to have signed waits in `signed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from domain.authority import acts, ballot, key_recovery
from domain.authority import register as registers
from domain.authority.acts import PERSONS, ActSignature, ActTaken, needs_two, signed_text
from domain.authority.register import Register
from domain.authority.vote import (
    CANCEL,
    YES,
    Subject,
    VoteCast,
    digest,
    enrolment_text,
    governor_id,
    is_key,
    vote_text,
)
from domain.epochs.reward_correction import ADJUSTMENT, SLASH
from domain.governance import proposal
from domain.governance.grant import CLAWBACK, MILESTONE, OPENING
from domain.record import dataclass
from ledger.bundle.voted import FOLDED, Differs, Voted, require_change

POLICY_FACT = "policy.published.v1"
VOTE_FACT = "vote.cast.v1"
ACT_FACT = "act.taken.v1"
GOVERNOR_FACT = "governor.enrolled.v1"
_REGISTER: dict[str, type[Any]] = {
    GOVERNOR_FACT: registers.GovernorEnrolled,
    "governor.removed.v1": registers.GovernorRemoved,
    "governor.threshold_set.v1": registers.GovernorThresholdSet,
    "governor.change_proposed.v1": registers.GovernorChangeProposed,
    "governor.change_scheduled.v1": registers.GovernorChangeScheduled,
}
_RECOVERY: dict[str, type[Any]] = {
    "key_recovery.announced.v1": key_recovery.KeyRecoveryAnnounced,
    "key_recovery.cancelled.v1": key_recovery.KeyRecoveryCancelled,
    "key_recovery.ended.v1": key_recovery.KeyRecoveryEnded,
}
OPERATOR_FACT = "account.operator_bootstrapped.v1"
KEY_FACT = "account.api_key_issued.v1"
_Named = Callable[[dict[str, Any]], Any]
_CORRECTION: tuple[tuple[str, ...], str, _Named] = (
    (SLASH, ADJUSTMENT),
    YES,
    lambda body: body["correction_id"],
)
_DECIDED: dict[str, tuple[tuple[str, ...], str, _Named]] = {
    POLICY_FACT: ((proposal.KIND,), YES, lambda body: body.get("proposal")),
    "policy.cancelled.v1": ((proposal.KIND,), CANCEL, lambda body: body["proposal"]),
    "grant.opened.v1": ((OPENING,), YES, lambda body: body["grant_id"]),
    "milestone.accepted.v1": (
        (MILESTONE,),
        YES,
        lambda body: f"{body['grant_id']}/{body['milestone_id']}",
    ),
    "grant.clawed_back.v1": ((CLAWBACK,), YES, lambda body: body["grant_id"]),
    "reward_correction.accepted.v1": _CORRECTION,
    "epoch.reward_slashed.v1": _CORRECTION,
    "epoch.reward_adjusted.v1": _CORRECTION,
    "governor.change_scheduled.v1": ((registers.KIND,), YES, lambda body: body["number"]),
    "governor.removed.v1": ((registers.KIND,), YES, lambda body: body["change"]),
    "governor.threshold_set.v1": ((registers.KIND,), YES, lambda body: body["change"]),
    GOVERNOR_FACT: ((registers.KIND,), YES, lambda body: body["change"]),
}
"""What takes votes: which kinds of subject, which choice, and the subject's name."""
FACTS = frozenset(
    {VOTE_FACT, ACT_FACT, OPERATOR_FACT, KEY_FACT, *_REGISTER, *_DECIDED, *_RECOVERY, *FOLDED}
)


class Wrong(ValueError):
    """A fact that says more than the votes and signatures before it allow."""


@dataclass(frozen=True, slots=True)
class SignedText:
    """What a personal key of a governor is said to have signed, by the fact at a position."""

    position: int
    key: str
    text: str
    signature: str


@dataclass(slots=True)
class Authority:
    """Fed with the facts of `FACTS` in the order of the log."""

    register: Register = field(default_factory=Register)
    voted: Voted = field(default_factory=Voted)
    votes: dict[tuple[str, str], list[VoteCast]] = field(default_factory=dict)
    moved: dict[str, acts.Acts] = field(default_factory=dict)
    operator: str | None = None
    recoveries: dict[int, key_recovery.KeyRecoveryAnnounced] = field(default_factory=dict)
    roots: set[str] = field(default_factory=set)  # keys of the operator that no other key issued
    signed: list[SignedText] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)

    def take(self, position: int, name: str, body: dict[str, Any]) -> None:
        """Count one fact. What it says wrongly is a fault; a body of another form raises
        KeyError, TypeError or ValueError.
        """
        try:
            if name in _DECIDED and not self._is_first(name, body):
                kinds, choice, named = _DECIDED[name]
                content = self._require_votes(kinds, str(named(body)), choice)
                self._require_content(name, body, content)
            if name in _REGISTER:
                self._take_change(position, name, body)
            elif name == VOTE_FACT:
                self._take_vote(position, _plain(VoteCast, body))
            elif name == ACT_FACT:
                self._take_act(position, _act(body))
            elif name == OPERATOR_FACT:
                self.operator = str(body["account_id"])
            elif name == KEY_FACT:
                self._take_key(body)
            elif name in _RECOVERY:
                self._take_recovery(_plain(_RECOVERY[name], body))
        except (Wrong, Differs) as wrong:
            self.faults.append((position, str(wrong)))
        except (AssertionError, IndexError) as error:
            self.faults.append((position, f"no such change or set of governors: {error}"))
        if name in FOLDED:
            self.voted.fold(name, body)

    def _require_content(self, name: str, body: dict[str, Any], content: str) -> None:
        """Raises Differs where what is decided is not what was voted on."""
        if name in _REGISTER:
            fact = _plain(_REGISTER[name], body)
            number = fact.number if hasattr(fact, "number") else fact.change
            require_change(fact, self.register.changes[number - 1], content)
        else:
            self.voted.require(name, body, content)

    def _is_first(self, name: str, body: dict[str, Any]) -> bool:
        """The first policy and the first governor, for whom nobody could vote."""
        if name == POLICY_FACT:
            return body.get("proposal") is None and body["version"] == 1
        return name == GOVERNOR_FACT and not body["change"] and not self.register.now.version

    # --- the register -----------------------------------------------------------------------

    def _take_change(self, position: int, name: str, body: dict[str, Any]) -> None:
        fact = _plain(_REGISTER[name], body)
        if isinstance(fact, registers.GovernorEnrolled):
            self._check_key(position, fact)
        self.register = registers.evolve(self.register, fact)

    def _check_key(self, position: int, fact: registers.GovernorEnrolled) -> None:
        if fact.governor_id != governor_id(fact.key) or not is_key(fact.key):
            raise Wrong("the governor's id is not that of the key")
        if self.register.network not in ("", fact.network):
            raise Wrong("another network than the governors before")
        text = enrolment_text(fact.network, fact.key, fact.signed_version)
        self.signed.append(SignedText(position, fact.key, text, fact.signature))

    # --- votes ------------------------------------------------------------------------------

    def _take_vote(self, position: int, vote: VoteCast) -> None:
        of = self.votes.setdefault((vote.kind, vote.subject), [])
        alike = [
            one
            for one in of
            if one.revision == vote.revision and (one.choice == CANCEL) == (vote.choice == CANCEL)
        ]
        self._sign(position, vote)
        self._check_vote(vote, alike)
        of.append(vote)
        if vote.kind == registers.KIND:
            self.register = registers.evolve(self.register, vote)

    def _sign(self, position: int, vote: VoteCast) -> None:
        subject = Subject(
            vote.kind, vote.subject, vote.revision, vote.content_sha256, vote.governors
        )
        text = vote_text(self.register.network, subject, vote.choice, vote.rehearsal_sha256)
        key = self._key(vote.governor_id)
        self.signed.append(SignedText(position, key, text, vote.signature))

    def _key(self, governor: str) -> str:
        if governor not in self.register.keys:
            raise Wrong(f"{governor} was never enrolled")
        return self.register.keys[governor]

    def _check_vote(self, vote: VoteCast, before: list[VoteCast]) -> None:
        now, version = self.register.now, vote.governors
        if not 1 <= version <= now.version or (vote.choice == CANCEL and version != now.version):
            raise Wrong(f"a vote under the set {version}, which is not the one that votes on it")
        entitled = now.members
        if vote.choice != CANCEL:
            entitled = ballot.electorate(self.register, version)
        if vote.governor_id not in entitled:
            raise Wrong(f"{vote.governor_id} has no vote on this")
        if any(one.governor_id == vote.governor_id for one in before):
            raise Wrong(f"{vote.governor_id} voted already")
        if any((one.content_sha256, one.governors) != _content(vote) for one in before):
            raise Wrong("a vote on another content than the votes before")
        count = len(ballot.voters(self.register, before, vote.choice, version)) + 1
        needed = ballot.needed(self.register, version)
        if vote.count != count or vote.needed < needed or vote.mode != now.mode:
            told = f"{vote.count} of {vote.needed} in mode {vote.mode}"
            raise Wrong(f"says {told}; counted are {count} of {needed} in mode {now.mode}")

    def _require_votes(self, kinds: tuple[str, ...], subject: str, choice: str) -> str:
        """The hash of the content that enough of them voted on. Raises Wrong."""
        cast = [vote for kind in kinds for vote in self.votes.get((kind, subject), ())]
        newest = max((vote.revision for vote in cast), default=0)
        cast = [vote for vote in cast if vote.revision == newest and vote.choice == choice]
        if not cast:
            raise Wrong(f"nobody voted {choice} on {kinds[0]} {subject}")
        version = cast[-1].governors
        count = len(ballot.voters(self.register, cast, choice, version))
        needed = ballot.needed(self.register, version)
        if count < needed:
            raise Wrong(f"{count} of {needed} votes on {kinds[0]} {subject}")
        return cast[-1].content_sha256

    # --- acts -------------------------------------------------------------------------------

    def _take_act(self, position: int, act: ActTaken) -> None:
        before = self.moved.get(act.act, acts.Acts())
        self.moved[act.act] = acts.evolve(before, act)
        now, persons = self.register.now, {one.governor_id for one in act.signed}
        if (act.mode, act.governors) != (now.mode, now.version):
            raise Wrong("another set of governors than the one in force")
        if act.alone != before.moved_alone(act.at_us):
            raise Wrong(f"one person had moved {before.moved_alone(act.at_us)}, not {act.alone}")
        if needs_two(act.mode, act.units, act.alone, act.limit) and len(persons) < PERSONS:
            raise Wrong("one person alone above the limit")
        if act.signed:
            self._check_signatures(position, act, before)
        self.voted.require_limit(act)

    def _check_signatures(self, position: int, act: ActTaken, before: acts.Acts) -> None:
        """Raises Wrong."""
        now = self.register.now
        if act.content is None or digest(act.content) != act.content_sha256:
            raise Wrong("another content than the one that was signed")
        if act.request in before.used:
            raise Wrong("a signed request was used before")
        text = signed_text(
            self.register.network, act.request, act.content_sha256 or "", act.governors
        )
        for one in act.signed:
            if one.governor_id not in now.members:
                raise Wrong(f"{one.governor_id} is no governor")
            key = self._key(one.governor_id)
            self.signed.append(SignedText(position, key, text, one.signature))

    # --- keys of the operator ----------------------------------------------------------------

    def _take_key(self, body: dict[str, Any]) -> None:
        if body["account_id"] != self.operator or body.get("by_key_id") is not None:
            return
        if self.roots and body["key_id"] not in self.roots:
            raise Wrong("a key of the operator that no other key issued")
        self.roots.add(str(body["key_id"]))

    def _take_recovery(self, fact: Any) -> None:
        number = int(fact.number)
        if isinstance(fact, key_recovery.KeyRecoveryAnnounced):
            self.recoveries[number] = fact
            return
        announced = self.recoveries.pop(number, None)
        if announced is None:
            raise Wrong("no such recovery of the operator's key waits")
        if isinstance(fact, key_recovery.KeyRecoveryCancelled):
            stopped = self.votes.get((key_recovery.KIND, str(number)), ())
            if self.register.now.version and fact.by is not None and not stopped:
                raise Wrong("stopped by no governor")
        elif fact.at_us < announced.at_us + key_recovery.KEY_RECOVERY_US:
            raise Wrong("a recovered key of the operator came too early")
        else:
            self.roots.add(announced.key_id)


def _content(vote: VoteCast) -> tuple[str, int]:
    return vote.content_sha256, vote.governors


def _plain(kind: type[Any], body: dict[str, Any]) -> Any:
    """A fact whose fields are stored as they are; what is None is not stored."""
    return kind(**{one.name: body.get(one.name) for one in fields(kind)})


def _act(body: dict[str, Any]) -> ActTaken:
    signed = tuple(
        ActSignature(str(one["governor_id"]), str(one["signature"])) for one in body["signed"]
    )
    units, limit = (
        None if body.get(name) is None else int(body[name]) for name in ("units", "limit")
    )
    numbers = {"units": units, "limit": limit, "alone": int(body["alone"]), "signed": signed}
    return _plain(ActTaken, {**body, **numbers})  # type: ignore[no-any-return]
