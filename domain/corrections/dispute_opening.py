"""How a dispute is opened: which charges are contested, by whom, and what is held meanwhile.

    held of a line == its owners' parts of the claim      one entry for each owner and charge

A charge can be contested inside its window, once. The part of each owner moves from its holdback
to `dispute:{id}` and does not mature meanwhile. Source: design economics 17; decision 0046.
"""

from __future__ import annotations

from typing import Any

from domain.corrections.dispute import (
    CLAIMS,
    HELD_MAX,
    LINES_MAX,
    TIMEOUT_US,
    Claim,
    DisputedLine,
    DisputeOpened,
    Held,
    OpenDispute,
    owner_of,
    reference_of,
    require_evidence_count,
    stream_of,
)
from domain.corrections.reasons import CorrectionsReason
from domain.income.adjustment import (
    ChargedLine,
    LineDisputed,
    corrections_of,
    held_back,
    peel_between,
    require_room,
)
from domain.income.adjustment import stream_of as adjustments_of
from domain.income.maturity import reduce, window_at, windows_of
from domain.income.reasons import IncomeReason
from domain.leasing.life import disputed as disputed_on_lease
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World


def decide_open(command: OpenDispute, world: World) -> list[Change]:
    """The claims, and what is held for them.

    Raises Refused: DISPUTE_STATE, UNKNOWN_MODE, COUNT_OUT_OF_RANGE, LINE_UNKNOWN, NOT_PERMITTED,
    LINE_DISPUTED, DISPUTE_TOO_LATE, AMOUNT_NOT_POSITIVE, ADJUSTMENT_TOO_LARGE.
    """
    state = world.state(stream_of(command.dispute_id))
    if state.opened is not None:
        if _same_claims(state.opened, command):
            return []
        raise Refused(
            CorrectionsReason.DISPUTE_STATE, dispute_id=command.dispute_id, status=state.status
        )
    first = _require_one_subject(command)
    lines: list[DisputedLine] = []
    frozen: list[Change] = []
    reduced: list[Change] = []
    for claim in command.claims:
        held = _hold(claim, command, world)
        lines.append(_disputed(claim, held))
        frozen.append(_frozen(claim, command))
        reduced += _reduced(claim, held, command, world)
    opened = Change(stream_of(command.dispute_id), _opened(command, first, tuple(lines)))
    told: list[Change] = []
    if first.lease_id is not None:
        told = disputed_on_lease(first.lease_id, command.dispute_id, command.at_us, world)
    return [opened, *frozen, *reduced, *told]


def _opened(
    command: OpenDispute, first: ChargedLine, lines: tuple[DisputedLine, ...]
) -> DisputeOpened:
    """Raises Refused: COUNT_OUT_OF_RANGE."""
    held_count = sum(len(line.held) for line in lines)
    if held_count > HELD_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, held=held_count, most=HELD_MAX)
    return DisputeOpened(
        dispute_id=command.dispute_id,
        lease_id=first.lease_id,
        volume_id=first.volume_id,
        account_id=first.account_id,
        provider_account_id=first.provider_account_id,
        side="renter" if command.party_account_id == first.account_id else "provider",
        lines=lines,
        claimed=credit(sum(claim.claimed for claim in command.claims)),
        reserved=credit(sum(one.units for line in lines for one in line.held)),
        claim_code=command.claim_code,
        claim_sha256=command.claim_sha256,
        evidence=command.evidence,
        expires_at_us=command.at_us + TIMEOUT_US,
        by=command.by,
        at_us=command.at_us,
    )


def _same_claims(opened: DisputeOpened, command: OpenDispute) -> bool:
    asked = [(claim.line.position, claim.claimed) for claim in command.claims]
    return [(line.position, line.claimed.units) for line in opened.lines] == asked


def _require_one_subject(command: OpenDispute) -> ChargedLine:
    """The first line; all of them are of one lease or volume of which the asker is a party.

    Raises Refused: UNKNOWN_MODE, COUNT_OUT_OF_RANGE, LINE_UNKNOWN, NOT_PERMITTED.
    """
    if command.claim_code not in CLAIMS:
        raise Refused(PartiesReason.UNKNOWN_MODE, claim_code=command.claim_code)
    positions = [claim.line.position for claim in command.claims]
    if not 1 <= len(positions) <= LINES_MAX or len(set(positions)) != len(positions):
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, lines=len(positions), most=LINES_MAX)
    require_evidence_count(command.evidence)
    first = command.claims[0].line
    for claim in command.claims:
        if claim.line.subject != first.subject:
            raise Refused(
                CorrectionsReason.LINE_UNKNOWN, position=claim.line.position, rule="one_subject"
            )
        if command.party_account_id not in (claim.line.account_id, claim.line.provider_account_id):
            raise Refused(PartiesReason.NOT_PERMITTED, position=claim.line.position)
    return first


def _hold(claim: Claim, command: OpenDispute, world: World) -> tuple[Held, ...]:
    """The owners' parts of a claim, to the unit what a resolution in the renter's favour would take
    from them. Inside the window all of it is still held back: nothing of it has matured.

    Raises Refused: LINE_DISPUTED, DISPUTE_TOO_LATE, AMOUNT_NOT_POSITIVE, ADJUSTMENT_TOO_LARGE.
    """
    line, state = claim.line, corrections_of(world, claim.line.position)
    if state.dispute_id is not None:
        raise Refused(
            IncomeReason.LINE_DISPUTED, position=line.position, dispute_id=state.dispute_id
        )
    until_us = line.posted_at_us + window_at(windows_of(world), line.posted_at_us)
    too_late = Refused(
        CorrectionsReason.DISPUTE_TOO_LATE, position=line.position, until_us=until_us
    )
    if command.at_us >= until_us:
        raise too_late
    require_room(state, line, claim.claimed, state.corrected)
    shares = peel_between(line.payees, state.recovered, state.recovered + claim.claimed)
    found = []
    for payee, units in zip(line.payees, shares, strict=True):
        owner = owner_of(payee)
        if not units or owner is None:
            continue
        if held_back(world, owner, line.position, payee.units) < units:
            raise too_late  # by a clock that is ahead it has just matured
        found.append(Held(owner, units))
    return tuple(found)


def _reduced(
    claim: Claim, held: tuple[Held, ...], command: OpenDispute, world: World
) -> list[Change]:
    """What is held no longer matures with the rest of the line."""
    cause = reference_of(command.dispute_id)
    return [
        reduce(world, one.account_id, claim.line.position, one.units, cause, command.at_us)
        for one in held
    ]


def _disputed(claim: Claim, held: tuple[Held, ...]) -> DisputedLine:
    line = claim.line
    return DisputedLine(
        position=line.position,
        charge=credit(line.charge),
        claimed=credit(claim.claimed),
        gpu_us=line.gpu_us * claim.claimed // line.charge,
        held=held,
        proven=line.proven,
    )


def _frozen(claim: Claim, command: OpenDispute) -> Change:
    fact = LineDisputed(
        position=claim.line.position,
        dispute_id=command.dispute_id,
        claimed=claim.claimed,
        at_us=command.at_us,
    )
    return Change(adjustments_of(claim.line.position), fact)


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {OpenDispute: decide_open}
