"""Disputes: a renter, or a provider, contests charges of one lease, and somebody neutral rules.

    opened --DisputeAnswered*--> upheld | rejected | split(ppm) | timed out after 90 days

    reserved == returned to the renter from it + paid to the provider      at every resolution
    upheld   == floor(claimed x upheld_ppm / 10^6)       per line; the remainder is the provider's
    a charge can be disputed once, and only what has not been given back of it yet

The claim is always the same: this much of these charges should not have been charged. Opening
inside the dispute window of a charge moves the provider's part of the claim from its holdback to
`dispute:{id}`, so that it does not mature; after the window, or with window 0, nothing is held and
a resolution debits the provider's later earnings. A resolution is an Adjustment for each line
(`domain/adjustment.py`), never an edit of what was charged.

Whoever opened it and the other party may add evidence, named by its position in a log or by hash.
An arbiter who is neither of them rules. Unsigned, overlapping and outside-window time needs no
arbiter: accrual never charges it. Nobody ruled for 90 days: it ends for the provider if only the
provider has put in signed evidence, else for the renter. No text is here: claims and statements
are SHA-256 hashes of texts that can be erased. Source: design economics 17, marketplace 1 and 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, assert_never

from domain import cash_out
from domain.adjustment import (
    ChargedLine,
    LineDisputed,
    Taking,
    corrections_of,
    held_back,
    peel_between,
    refund,
    require_room,
)
from domain.adjustment import stream_of as adjustments_of
from domain.lease_life import DISPUTED_US_MAX
from domain.lease_life import disputed as disputed_on_lease
from domain.lease_life import resolved as resolved_on_lease
from domain.maturity import reduce, window_at, windows_of
from domain.money import PPM, Amount, Big, credit
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World, derive_id

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something in a log, or a text by its hash. `signed`: the server found a valid signature of a
    party's key over it, and that it is about this lease.
    """

    kind: str  # EVIDENCE
    lane: int | None
    position: int | None
    sha256: str | None
    signed: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What waits in the dispute's account of one owner's part of one line."""

    account_id: str
    units: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputedLine:
    position: int
    charge: Amount
    claimed: Amount
    gpu_us: Big  # of the claim: floor(gpu_us of the line x claimed / charge)
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeOpened:
    """Stream `dispute:{dispute_id}`."""

    dispute_id: str
    lease_id: str
    account_id: str  # the renter
    provider_account_id: str
    side: str  # who opened it: "renter" or "provider"
    lines: tuple[DisputedLine, ...]
    claimed: Amount
    reserved: Amount
    claim_code: str  # CLAIMS
    claim_sha256: str | None
    evidence: tuple[Evidence, ...]
    expires_at_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeAnswered:
    """A statement, evidence, or both, of either side."""

    dispute_id: str
    side: str
    statement_sha256: str | None
    evidence: tuple[Evidence, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedLine:
    position: int
    claimed: Amount
    upheld: Amount
    adjustment_id: str | None  # absent: nothing was held and nothing is given back


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeResolved:
    """Appended after the adjustments it led to, in one put. `unfounded`: nothing of the claim was
    right; reputation counts it against `opened_by`.
    """

    dispute_id: str
    lease_id: str
    outcome: str  # OUTCOMES
    upheld_ppm: int
    lines: tuple[ResolvedLine, ...]
    claimed: Amount
    upheld: Amount
    opened_by: str  # "renter" or "provider"
    unfounded: bool
    arbiter_account_id: str | None  # absent: it timed out
    reason_sha256: str | None
    by: str
    at_us: int


DisputeFact = DisputeOpened | DisputeAnswered | DisputeResolved

# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    line: ChargedLine
    claimed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDispute:
    """`party_account_id`: who opens it, a party of the lease."""

    dispute_id: str
    claims: tuple[Claim, ...]
    party_account_id: str
    claim_code: str
    claim_sha256: str | None
    evidence: tuple[Evidence, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDispute:
    dispute_id: str
    party_account_id: str
    statement_sha256: str | None
    evidence: tuple[Evidence, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDispute:
    """`lines`: the disputed charges, as read again from log and books; `burn_promised` as in
    `domain.adjustment.Taking`.
    """

    dispute_id: str
    outcome: str  # "upheld", "rejected" or "split"
    upheld_ppm: int
    lines: tuple[ChargedLine, ...]
    burn_promised: int
    arbiter_account_id: str
    reason_sha256: str | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOutDispute:
    """Nobody ruled in time. Asked by the job."""

    dispute_id: str
    lines: tuple[ChargedLine, ...]
    burn_promised: int
    at_us: int


DAY_US = 86_400_000_000
TIMEOUT_US = 90 * DAY_US
OPEN_US_MAX = DISPUTED_US_MAX
"""A charge can be disputed for so long after its posting; held is only inside its window."""
LINES_MAX = 100
HELD_MAX = 400
"""Owners' parts held by one dispute: its fact stays small."""
EVIDENCE_MAX = 20
ANSWERS_MAX = 50
CLAIMS = ("not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other")
EVIDENCE = ("usage_report", "market_fact", "statement")
OUTCOMES = ("upheld", "rejected", "split", "timed_out")
RULINGS = ("upheld", "rejected", "split")

# What is remembered.


@dataclass(frozen=True, slots=True)
class Dispute:
    opened: DisputeOpened | None = None
    answers: int = 0
    signed_sides: frozenset[str] = frozenset()
    resolved: DisputeResolved | None = None
    last_answer: DisputeAnswered | None = None

    @property
    def is_open(self) -> bool:
        return self.opened is not None and self.resolved is None

    @property
    def status(self) -> str:
        """`opened`, `answered`, or the outcome."""
        if self.resolved is not None:
            return self.resolved.outcome
        if self.opened is None:
            return "unknown"
        return "answered" if self.answers else "opened"

    def side_of(self, account_id: str) -> str | None:
        """Which side an account is on; the renter's where it rents from itself."""
        assert self.opened is not None
        if account_id == self.opened.account_id:
            return "renter"
        return "provider" if account_id == self.opened.provider_account_id else None


def stream_of(dispute_id: str) -> Stream:
    return Stream("dispute", dispute_id)


def evolve(dispute: Dispute, fact: DisputeFact) -> Dispute:
    match fact:
        case DisputeOpened():
            return replace(
                dispute, opened=fact, signed_sides=_signed(dispute, fact.side, fact.evidence)
            )
        case DisputeAnswered():
            return replace(
                dispute,
                answers=dispute.answers + 1,
                last_answer=fact,
                signed_sides=_signed(dispute, fact.side, fact.evidence),
            )
        case DisputeResolved():
            return replace(dispute, resolved=fact)
        case _:
            assert_never(fact)


def _signed(dispute: Dispute, side: str, evidence: tuple[Evidence, ...]) -> frozenset[str]:
    return dispute.signed_sides | {side for one in evidence if one.signed}


def dispute_of(world: World, dispute_id: str) -> Dispute:
    """Raises Refused: DISPUTE_UNKNOWN."""
    state = world.state(stream_of(dispute_id))
    assert isinstance(state, Dispute)
    if state.opened is None:
        raise Refused(Reason.DISPUTE_UNKNOWN, dispute_id=dispute_id)
    return state


# How we decide: opening.


def decide_open(command: OpenDispute, world: World) -> list[Change]:
    """Raises Refused: DISPUTE_STATE, COUNT_OUT_OF_RANGE, NOT_PERMITTED, LINE_DISPUTED,
    DISPUTE_TOO_LATE, AMOUNT_NOT_POSITIVE, ADJUSTMENT_TOO_LARGE.
    """
    state = world.state(stream_of(command.dispute_id))
    assert isinstance(state, Dispute)
    if state.opened is not None:
        if _same_claims(state.opened, command):
            return []
        raise Refused(Reason.DISPUTE_STATE, dispute_id=command.dispute_id, status=state.status)
    first = _check_claims(command)
    side = "renter" if command.party_account_id == first.account_id else "provider"
    lines: list[DisputedLine] = []
    frozen: list[Change] = []
    reduced: list[Change] = []
    exposed: dict[str, int] = {}
    for claim in command.claims:
        held = _hold(claim, command, world)
        lines.append(_disputed(claim, held))
        frozen.append(_frozen(claim, command))
        reduced += (
            reduce(
                world, one.account_id, claim.line.position, one.units,
                f"dispute:{command.dispute_id}", command.at_us,
            )
            for one in held
        )  # fmt: skip
        for account_id, units in _exposed(claim, held, world):
            exposed[account_id] = exposed.get(account_id, 0) + units
    held_count = sum(len(line.held) for line in lines)
    if held_count > HELD_MAX:
        raise Refused(Reason.COUNT_OUT_OF_RANGE, held=held_count, most=HELD_MAX)
    reserved = sum(one.units for line in lines for one in line.held)
    opened = DisputeOpened(
        dispute_id=command.dispute_id,
        lease_id=first.lease_id,
        account_id=first.account_id,
        provider_account_id=first.provider_account_id,
        side=side,
        lines=tuple(lines),
        claimed=credit(sum(claim.claimed for claim in command.claims)),
        reserved=credit(reserved),
        claim_code=command.claim_code,
        claim_sha256=command.claim_sha256,
        evidence=command.evidence,
        expires_at_us=command.at_us + TIMEOUT_US,
        by=command.by,
        at_us=command.at_us,
    )
    kept = [
        change
        for account_id, units in exposed.items()
        for change in cash_out.hold_disputed(
            world, account_id, f"dispute:{command.dispute_id}", units, "an open dispute",
            command.by, command.at_us,
        )
    ]  # fmt: skip
    told = disputed_on_lease(first.lease_id, command.dispute_id, command.at_us, world)
    return [Change(stream_of(command.dispute_id), opened), *frozen, *reduced, *kept, *told]


def _same_claims(opened: DisputeOpened, command: OpenDispute) -> bool:
    asked = [(claim.line.position, claim.claimed) for claim in command.claims]
    return [(line.position, line.claimed.units) for line in opened.lines] == asked


def _check_claims(command: OpenDispute) -> ChargedLine:
    """The first line; all of them are of one lease of which the asker is a party."""
    if command.claim_code not in CLAIMS:
        raise Refused(Reason.UNKNOWN_MODE, claim_code=command.claim_code)
    positions = [claim.line.position for claim in command.claims]
    if not 1 <= len(positions) <= LINES_MAX or len(set(positions)) != len(positions):
        raise Refused(Reason.COUNT_OUT_OF_RANGE, lines=len(positions), most=LINES_MAX)
    _check_evidence(command.evidence)
    first = command.claims[0].line
    for claim in command.claims:
        if claim.line.lease_id != first.lease_id:
            raise Refused(Reason.LINE_UNKNOWN, position=claim.line.position, rule="one lease")
        if command.party_account_id not in (claim.line.account_id, claim.line.provider_account_id):
            raise Refused(Reason.NOT_PERMITTED, position=claim.line.position)
    return first


def _check_evidence(evidence: tuple[Evidence, ...]) -> None:
    if len(evidence) > EVIDENCE_MAX:
        raise Refused(Reason.COUNT_OUT_OF_RANGE, evidence=len(evidence), most=EVIDENCE_MAX)


def _hold(claim: Claim, command: OpenDispute, world: World) -> tuple[Held, ...]:
    """The owners' parts of a claim that are still held back inside the window, to the unit what a
    resolution in the renter's favour would take from them.
    """
    line, state = claim.line, corrections_of(world, claim.line.position)
    if state.dispute_id is not None:
        raise Refused(Reason.LINE_DISPUTED, position=line.position, dispute_id=state.dispute_id)
    if command.at_us >= line.posted_at_us + OPEN_US_MAX:
        raise Refused(Reason.DISPUTE_TOO_LATE, position=line.position)
    require_room(state, line, claim.claimed)
    if command.at_us >= line.posted_at_us + window_at(windows_of(world), line.posted_at_us):
        return ()
    shares = peel_between(line.payees, state.recovered, state.recovered + claim.claimed)
    found = []
    for payee, units in zip(line.payees, shares, strict=True):
        if units and payee.account.endswith(":holdback"):
            account_id = payee.account.split(":")[1]
            if held_back(world, account_id, line.position, payee.units) >= units:
                found.append(Held(account_id, units))
    return tuple(found)


def _exposed(claim: Claim, held: tuple[Held, ...], world: World) -> Iterator[tuple[str, int]]:
    """The owners' parts of a claim that are not held back: they must not leave as cash."""
    line, state = claim.line, corrections_of(world, claim.line.position)
    shares = peel_between(line.payees, state.recovered, state.recovered + claim.claimed)
    kept = {one.account_id for one in held}
    for payee, units in zip(line.payees, shares, strict=True):
        account_id = payee.account.split(":")[1]
        if units and payee.account.endswith(":holdback") and account_id not in kept:
            yield account_id, units


def _disputed(claim: Claim, held: tuple[Held, ...]) -> DisputedLine:
    line = claim.line
    return DisputedLine(
        position=line.position,
        charge=credit(line.charge),
        claimed=credit(claim.claimed),
        gpu_us=line.gpu_us * claim.claimed // line.charge,
        held=held,
    )


def _frozen(claim: Claim, command: OpenDispute) -> Change:
    fact = LineDisputed(
        position=claim.line.position,
        dispute_id=command.dispute_id,
        claimed=claim.claimed,
        at_us=command.at_us,
    )
    return Change(adjustments_of(claim.line.position), fact)


# How we decide: answers and evidence.


def decide_answer(command: AnswerDispute, world: World) -> list[Change]:
    """Either side, as long as nobody has ruled. Raises Refused: DISPUTE_UNKNOWN, NOT_PERMITTED,
    DISPUTE_STATE, COUNT_OUT_OF_RANGE.
    """
    dispute = dispute_of(world, command.dispute_id)
    side = dispute.side_of(command.party_account_id)
    if side is None:
        raise Refused(Reason.NOT_PERMITTED, dispute_id=command.dispute_id)
    if not dispute.is_open:
        raise Refused(Reason.DISPUTE_STATE, dispute_id=command.dispute_id, status=dispute.status)
    if dispute.answers >= ANSWERS_MAX:
        raise Refused(Reason.COUNT_OUT_OF_RANGE, answers=dispute.answers, most=ANSWERS_MAX)
    if not command.evidence and command.statement_sha256 is None:
        raise Refused(Reason.COUNT_OUT_OF_RANGE, evidence=0)
    _check_evidence(command.evidence)
    fact = DisputeAnswered(
        dispute_id=command.dispute_id,
        side=side,
        statement_sha256=command.statement_sha256,
        evidence=command.evidence,
        by=command.by,
        at_us=command.at_us,
    )
    known = dispute.last_answer
    if known is not None and replace(known, at_us=fact.at_us) == fact:
        return []
    return [Change(stream_of(command.dispute_id), fact)]


# How we decide: resolutions.


def decide_rule(command: RuleDispute, world: World) -> list[Change]:
    """The arbiter is neither party. Raises Refused: DISPUTE_UNKNOWN, NOT_PERMITTED, UNKNOWN_MODE,
    SHARE_OUT_OF_RANGE, DISPUTE_STATE, CREDIT_TOO_LOW.
    """
    dispute = dispute_of(world, command.dispute_id)
    if dispute.side_of(command.arbiter_account_id) is not None:
        raise Refused(Reason.NOT_PERMITTED, dispute_id=command.dispute_id, rule="a party")
    if command.outcome not in RULINGS:
        raise Refused(Reason.UNKNOWN_MODE, outcome=command.outcome)
    whole = {"upheld": PPM, "rejected": 0}.get(command.outcome)
    is_within = 0 < command.upheld_ppm < PPM if whole is None else command.upheld_ppm == whole
    if not is_within:
        raise Refused(
            Reason.SHARE_OUT_OF_RANGE, outcome=command.outcome, upheld_ppm=command.upheld_ppm
        )
    known = dispute.resolved
    if known is not None:
        if (known.outcome, known.upheld_ppm) == (command.outcome, command.upheld_ppm):
            return []
        raise Refused(Reason.DISPUTE_STATE, dispute_id=command.dispute_id, status=known.outcome)
    return _resolve(
        world, dispute, command, command.outcome, command.upheld_ppm,
        by=command.by, arbiter=command.arbiter_account_id, reason_sha256=command.reason_sha256,
    )  # fmt: skip


def decide_time_out(command: TimeOutDispute, world: World) -> list[Change]:
    """Raises Refused: DISPUTE_UNKNOWN, DISPUTE_STATE, CREDIT_TOO_LOW."""
    dispute = dispute_of(world, command.dispute_id)
    if not dispute.is_open:
        return []
    assert dispute.opened is not None
    if command.at_us < dispute.opened.expires_at_us:
        raise Refused(
            Reason.DISPUTE_STATE, dispute_id=command.dispute_id,
            expires_at_us=dispute.opened.expires_at_us,
        )  # fmt: skip
    upheld_ppm = 0 if dispute.signed_sides == {"provider"} else PPM
    return _resolve(
        world, dispute, command, "timed_out", upheld_ppm,
        by="job", arbiter=None, reason_sha256=None,
    )  # fmt: skip


def _resolve(
    world: World,
    dispute: Dispute,
    command: RuleDispute | TimeOutDispute,
    outcome: str,
    upheld_ppm: int,
    *,
    by: str,
    arbiter: str | None,
    reason_sha256: str | None,
) -> list[Change]:
    """One adjustment a line; what is reserved goes whole to renter and provider."""
    opened = dispute.opened
    assert opened is not None
    by_position = {line.position: line for line in command.lines}
    taking = Taking(world, command.at_us, command.burn_promised)
    adjustments: list[Change] = []
    resolved: list[ResolvedLine] = []
    for disputed in opened.lines:
        line = by_position[disputed.position]
        units = disputed.claimed.units * upheld_ppm // PPM
        adjustment_id = None
        if units or disputed.held:
            adjustment_id = derive_id("adj", command.dispute_id, str(line.position))
            adjustments.append(
                refund(
                    taking, line, units, adjustment_id=adjustment_id, reason="dispute",
                    cause=f"dispute:{command.dispute_id}", by=by,
                    held={f"party:{one.account_id}:holdback": one.units for one in disputed.held},
                    reserve=f"dispute:{command.dispute_id}",
                )
            )  # fmt: skip
        resolved.append(
            ResolvedLine(
                position=line.position,
                claimed=disputed.claimed,
                upheld=credit(units),
                adjustment_id=adjustment_id,
            )
        )
    upheld = sum(line.upheld.units for line in resolved)
    fact = DisputeResolved(
        dispute_id=command.dispute_id,
        lease_id=opened.lease_id,
        outcome=outcome,
        upheld_ppm=upheld_ppm,
        lines=tuple(resolved),
        claimed=opened.claimed,
        upheld=credit(upheld),
        opened_by=opened.side,
        unfounded=upheld == 0,
        arbiter_account_id=arbiter,
        reason_sha256=reason_sha256,
        by=by,
        at_us=command.at_us,
    )
    payees = dict.fromkeys(
        payee.account.split(":")[1]
        for line in by_position.values()
        for payee in line.payees
        if payee.account.endswith(":holdback")
    )
    released = [
        change
        for account_id in payees
        for change in cash_out.release_disputed(
            world, account_id, f"dispute:{command.dispute_id}", by, command.at_us
        )
    ]
    told = Change(stream_of(command.dispute_id), fact)
    on_lease = resolved_on_lease(opened.lease_id, command.dispute_id, outcome, command.at_us, world)
    return [*taking.changes, *adjustments, told, *released, *on_lease]


STREAMS: dict[str, tuple[Any, Any]] = {"dispute": (Dispute(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    OpenDispute: decide_open,
    AnswerDispute: decide_answer,
    RuleDispute: decide_rule,
    TimeOutDispute: decide_time_out,
}
