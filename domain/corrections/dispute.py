"""Disputes: a renter or a provider contests charges of one lease or volume; somebody neutral rules.

    opened --DisputeAnswered*--> upheld | rejected | split(ppm) | timed out after 90 days

    held of a line == the parts of its owners in the claim                 for every open dispute
    reserved == returned to the renter from it + paid to the provider      at every resolution
    upheld   == floor(claimed x upheld_ppm / 10^6)       per line; the remainder is the provider's
    upheld   <= reserved                                 of a dispute that timed out
    a charge can be disputed once, and only what has not been given back of it yet

The claim is always the same: this much of these charges should not have been charged. A charge can
be disputed inside its dispute window, whatever it was for. Opening moves the part of each owner of
it from that owner's holdback to `dispute:{id}`: none of it matures, so none of it is swept or paid
out, whoever shares an account with whom. After the window, or with window 0, there is only the
operator's goodwill. A resolution is an Adjustment for each line (`domain/income/adjustment.py`),
never an edit of what was charged.

The renter and the provider may add evidence, named by its position in a log or by hash.
An arbiter who is neither of them rules. Unsigned, overlapping and outside-window time needs no
arbiter: accrual never charges it. Without a ruling for 90 days, a charge that the log proves
stands (rows that the node signed, or a close that the renter asked for); another one goes back as
far as it is reserved, unless only the provider has put in signed evidence. Nothing measures the
disk of a volume, so the log proves none of its charges (decision 0062). No text is here: claims
and statements are SHA-256 hashes of texts that can be erased. How we decide:
`domain/corrections/dispute_opening.py` and `domain/corrections/dispute_ruling.py`. Source: design
economics 17, marketplace 1 and 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.corrections.reasons import CorrectionsReason
from domain.duration import DAY_US
from domain.frozen import replace
from domain.income.adjustment import ChargedLine, Part, Unburned
from domain.money import Amount, Big
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something in a log, or a text by its hash. `signed`: the server found a valid signature of a
    party's key over it, and that it is about this lease or volume.
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
    proven: bool  # the log itself shows what was charged for


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeOpened:
    """Stream `dispute:{dispute_id}`. About a lease, or about a volume."""

    dispute_id: str
    lease_id: str | None
    volume_id: str | None
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
    lease_id: str | None
    volume_id: str | None
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
    """`party_account_id`: who opens it, a party of what was charged."""

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
    """`lines`: the disputed charges, as read again from log and books; `unburned` as in
    `domain.income.adjustment.Taking`.
    """

    dispute_id: str
    outcome: str  # "upheld", "rejected" or "split"
    upheld_ppm: int
    lines: tuple[ChargedLine, ...]
    unburned: Unburned
    arbiter_account_id: str
    reason_sha256: str | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOutDispute:
    """Nobody ruled in time. Asked by the job."""

    dispute_id: str
    lines: tuple[ChargedLine, ...]
    unburned: Unburned
    at_us: int


TIMEOUT_US = 90 * DAY_US
LINES_MAX = 100
HELD_MAX = 400
"""Owners' parts held by one dispute: its fact stays small."""
EVIDENCE_MAX = 20
ANSWERS_MAX = 50
CLAIMS = ("not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other")
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


def stream_of(dispute_id: str) -> Stream[Dispute]:
    return Stream("dispute", dispute_id)


def reference_of(dispute_id: str) -> str:
    """How books, holds and adjustments name a dispute."""
    return f"dispute:{dispute_id}"


def owner_of(payee: Part) -> str | None:
    """The account whose holdback a part of a charge went to; None: it went elsewhere."""
    _, account_id, *part = payee.account.split(":")
    return account_id if part == ["holdback"] else None


def evolve(dispute: Dispute, fact: DisputeFact) -> Dispute:
    """The dispute after one more fact."""
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
    """Who has signed evidence. What the node signed speaks for the provider, whoever names it."""
    return dispute.signed_sides | {
        "provider" if one.kind == "usage_report" else side for one in evidence if one.signed
    }


def dispute_of(world: World, dispute_id: str) -> Dispute:
    """Raises Refused: DISPUTE_UNKNOWN."""
    state = world.state(stream_of(dispute_id))
    if state.opened is None:
        raise Refused(CorrectionsReason.DISPUTE_UNKNOWN, dispute_id=dispute_id)
    return state


def require_evidence_count(evidence: tuple[Evidence, ...]) -> None:
    """Raises Refused: COUNT_OUT_OF_RANGE."""
    if len(evidence) > EVIDENCE_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, evidence=len(evidence), most=EVIDENCE_MAX)


STREAMS: dict[str, tuple[Any, Any]] = {"dispute": (Dispute(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
