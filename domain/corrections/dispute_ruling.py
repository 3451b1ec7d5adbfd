"""How a dispute ends: either side answers, an arbiter who is neither of them rules, or time is up.

    reserved == returned to the renter from it + paid to the provider      at every resolution
    upheld   == floor(claimed x upheld_ppm / 10^6)       per line; the remainder is the provider's
    upheld   <= reserved                                 of a dispute that timed out

Without a ruling for 90 days, a charge that the log proves stands: the reports that the node signed
are the provider's evidence by themselves. Of another one the renter gets what is reserved, and
neither the network nor later earnings are asked; where only the provider has put in signed
evidence it stands too. A resolution is an Adjustment for each line (`domain/income/adjustment.py`),
never an edit of what was charged. Source: design economics 17.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.corrections.dispute import (
    ANSWERS_MAX,
    RULINGS,
    AnswerDispute,
    Dispute,
    DisputeAnswered,
    DisputedLine,
    DisputeOpened,
    DisputeResolved,
    ResolvedLine,
    RuleDispute,
    TimeOutDispute,
    dispute_of,
    reference_of,
    require_evidence_count,
    stream_of,
)
from domain.corrections.reasons import CorrectionsReason
from domain.frozen import replace
from domain.income.adjustment import ChargedLine, Taking, refund
from domain.leasing.life import resolved as resolved_on_lease
from domain.money import PPM, credit
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World, derive_id


def decide_answer(command: AnswerDispute, world: World) -> list[Change]:
    """Either side, as long as nobody has ruled. Raises Refused: DISPUTE_UNKNOWN, NOT_PERMITTED,
    DISPUTE_STATE, COUNT_OUT_OF_RANGE.
    """
    dispute = dispute_of(world, command.dispute_id)
    side = dispute.side_of(command.party_account_id)
    if side is None:
        raise Refused(PartiesReason.NOT_PERMITTED, dispute_id=command.dispute_id)
    if not dispute.is_open:
        raise Refused(
            CorrectionsReason.DISPUTE_STATE, dispute_id=command.dispute_id, status=dispute.status
        )
    if dispute.answers >= ANSWERS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, answers=dispute.answers, most=ANSWERS_MAX)
    if not command.evidence and command.statement_sha256 is None:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, evidence=0)
    require_evidence_count(command.evidence)
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


def decide_rule(command: RuleDispute, world: World) -> list[Change]:
    """The arbiter is neither party. Raises Refused: DISPUTE_UNKNOWN, NOT_PERMITTED, UNKNOWN_MODE,
    SHARE_OUT_OF_RANGE, DISPUTE_STATE, CREDIT_TOO_LOW.
    """
    dispute = dispute_of(world, command.dispute_id)
    if dispute.side_of(command.arbiter_account_id) is not None:
        raise Refused(PartiesReason.NOT_PERMITTED, dispute_id=command.dispute_id, rule="a party")
    if command.outcome not in RULINGS:
        raise Refused(PartiesReason.UNKNOWN_MODE, outcome=command.outcome, allowed=RULINGS)
    whole = {"upheld": PPM, "rejected": 0}.get(command.outcome)
    is_within = 0 < command.upheld_ppm < PPM if whole is None else command.upheld_ppm == whole
    if not is_within:
        raise Refused(
            PartiesReason.SHARE_OUT_OF_RANGE, outcome=command.outcome, upheld_ppm=command.upheld_ppm
        )
    known = dispute.resolved
    if known is not None:
        if (known.outcome, known.upheld_ppm) == (command.outcome, command.upheld_ppm):
            return []
        raise Refused(
            CorrectionsReason.DISPUTE_STATE, dispute_id=command.dispute_id, status=known.outcome
        )
    ruling = _Ruling(
        outcome=command.outcome,
        upheld_ppm=command.upheld_ppm,
        by=command.by,
        arbiter_account_id=command.arbiter_account_id,
        reason_sha256=command.reason_sha256,
    )
    return _resolve(world, dispute, command, ruling)


def decide_time_out(command: TimeOutDispute, world: World) -> list[Change]:
    """Raises Refused: DISPUTE_UNKNOWN, DISPUTE_STATE, CREDIT_TOO_LOW."""
    dispute = dispute_of(world, command.dispute_id)
    if not dispute.is_open:
        return []
    assert dispute.opened is not None
    if command.at_us < dispute.opened.expires_at_us:
        raise Refused(
            CorrectionsReason.DISPUTE_STATE,
            dispute_id=command.dispute_id,
            expires_at_us=dispute.opened.expires_at_us,
        )
    ruling = _Ruling(outcome="timed_out", upheld_ppm=PPM, by="job", is_ruled=False)
    return _resolve(world, dispute, command, ruling)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruling:
    """What was ruled, and by whom: an arbiter, or nobody in time."""

    outcome: str  # OUTCOMES
    upheld_ppm: int
    by: str
    arbiter_account_id: str | None = None
    reason_sha256: str | None = None
    is_ruled: bool = True


def _resolve(
    world: World, dispute: Dispute, command: RuleDispute | TimeOutDispute, ruling: _Ruling
) -> list[Change]:
    """One adjustment a line; what is reserved goes whole to renter and provider."""
    opened = dispute.opened
    assert opened is not None
    by_position = {line.position: line for line in command.lines}
    taking = Taking(world, command.at_us, command.unburned)
    adjustments: list[Change] = []
    resolved: list[ResolvedLine] = []
    for disputed in opened.lines:
        units = _upheld(disputed, dispute, ruling)
        charged = by_position[disputed.position]
        found = _adjusted(taking, charged, disputed, units, opened, ruling)
        upheld = 0 if found is None else found.fact.returned
        adjustments += [] if found is None else [found]
        resolved.append(
            ResolvedLine(
                position=disputed.position,
                claimed=disputed.claimed,
                upheld=credit(upheld),
                adjustment_id=None if found is None else found.fact.adjustment_id,
            )
        )
    fact = _ruled(opened, tuple(resolved), ruling, command.at_us)
    assert ruling.is_ruled or fact.upheld.units <= opened.reserved.units, fact
    return [
        *taking.changes,
        *adjustments,
        Change(stream_of(opened.dispute_id), fact),
        *_told(opened, ruling, command.at_us, world),
    ]


def _told(opened: DisputeOpened, ruling: _Ruling, at_us: int, world: World) -> list[Change]:
    """What the lease is told of the end; a volume has no state that a dispute changes."""
    if opened.lease_id is None:
        return []
    return resolved_on_lease(opened.lease_id, opened.dispute_id, ruling.outcome, at_us, world)


def _upheld(disputed: DisputedLine, dispute: Dispute, ruling: _Ruling) -> int:
    """What of the claim is taken back from those that the charge paid."""
    if ruling.is_ruled:
        return disputed.claimed.units * ruling.upheld_ppm // PPM
    stands = disputed.proven or dispute.signed_sides == {"provider"} or not disputed.held
    return 0 if stands else disputed.claimed.units


def _adjusted(
    taking: Taking,
    charged: ChargedLine,
    disputed: DisputedLine,
    units: int,
    opened: DisputeOpened,
    ruling: _Ruling,
) -> Change | None:
    """What is upheld of a line goes back to the renter, and the rest of what was held to owners.
    None: nothing was held and nothing is given back.
    """
    if not units and not disputed.held:
        return None
    reference = reference_of(opened.dispute_id)
    return refund(
        taking,
        charged,
        units,
        adjustment_id=derive_id("adj", opened.dispute_id, str(disputed.position)),
        reason="dispute",
        cause=reference,
        by=ruling.by,
        held={f"party:{one.account_id}:holdback": one.units for one in disputed.held},
        reserve=reference,
        only_held=not ruling.is_ruled,
    )


def _ruled(
    opened: DisputeOpened, lines: tuple[ResolvedLine, ...], ruling: _Ruling, at_us: int
) -> DisputeResolved:
    upheld = sum(line.upheld.units for line in lines)
    upheld_ppm = ruling.upheld_ppm if ruling.is_ruled else upheld * PPM // opened.claimed.units
    return DisputeResolved(
        dispute_id=opened.dispute_id,
        lease_id=opened.lease_id,
        volume_id=opened.volume_id,
        outcome=ruling.outcome,
        upheld_ppm=upheld_ppm,
        lines=lines,
        claimed=opened.claimed,
        upheld=credit(upheld),
        opened_by=opened.side,
        unfounded=upheld == 0,
        arbiter_account_id=ruling.arbiter_account_id,
        reason_sha256=ruling.reason_sha256,
        by=ruling.by,
        at_us=at_us,
    )


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    AnswerDispute: decide_answer,
    RuleDispute: decide_rule,
    TimeOutDispute: decide_time_out,
}
