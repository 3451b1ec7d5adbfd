"""How a dispute is opened: which charges are contested, by whom, and what is held meanwhile.

    held of a line <= its owners' parts of the claim      held only inside the dispute window

Inside the window of a charge the provider's part of the claim moves from its holdback to
`dispute:{id}`, so that it does not mature; what has left the holdback by then is kept from being
paid out as cash. A charge is contested once. Source: design economics 17.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.corrections.dispute import (
    CLAIMS,
    HELD_MAX,
    LINES_MAX,
    OPEN_US_MAX,
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
from domain.income import cash_out
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
    """The claims, what is held for them, and what else of them must not leave as cash.

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
    first = _require_one_lease(command)
    lines: list[DisputedLine] = []
    frozen: list[Change] = []
    reduced: list[Change] = []
    exposed: dict[str, int] = {}
    for claim in command.claims:
        held = _hold(claim, command, world)
        lines.append(_disputed(claim, held))
        frozen.append(_frozen(claim, command))
        reduced += _reduced(claim, held, command, world)
        for account_id, units in _exposed(claim, held, world):
            exposed[account_id] = exposed.get(account_id, 0) + units
    opened = Change(stream_of(command.dispute_id), _opened(command, first, tuple(lines)))
    kept = [
        change
        for account_id, units in exposed.items()
        for change in cash_out.hold_disputed(
            world,
            account_id,
            reference_of(command.dispute_id),
            units,
            "an open dispute",
            command.by,
            command.at_us,
        )
    ]
    told = disputed_on_lease(first.lease_id, command.dispute_id, command.at_us, world)
    return [opened, *frozen, *reduced, *kept, *told]


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


def _require_one_lease(command: OpenDispute) -> ChargedLine:
    """The first line; all of them are of one lease of which the asker is a party.

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
        if claim.line.lease_id != first.lease_id:
            raise Refused(
                CorrectionsReason.LINE_UNKNOWN, position=claim.line.position, rule="one lease"
            )
        if command.party_account_id not in (claim.line.account_id, claim.line.provider_account_id):
            raise Refused(PartiesReason.NOT_PERMITTED, position=claim.line.position)
    return first


def _hold(claim: Claim, command: OpenDispute, world: World) -> tuple[Held, ...]:
    """The owners' parts of a claim that are still held back inside the window, to the unit what a
    resolution in the renter's favour would take from them.

    Raises Refused: LINE_DISPUTED, DISPUTE_TOO_LATE, AMOUNT_NOT_POSITIVE, ADJUSTMENT_TOO_LARGE.
    """
    line, state = claim.line, corrections_of(world, claim.line.position)
    if state.dispute_id is not None:
        raise Refused(
            IncomeReason.LINE_DISPUTED, position=line.position, dispute_id=state.dispute_id
        )
    if command.at_us >= line.posted_at_us + OPEN_US_MAX:
        raise Refused(CorrectionsReason.DISPUTE_TOO_LATE, position=line.position)
    require_room(state, line, claim.claimed)
    if command.at_us >= line.posted_at_us + window_at(windows_of(world), line.posted_at_us):
        return ()
    shares = peel_between(line.payees, state.recovered, state.recovered + claim.claimed)
    found = []
    for payee, units in zip(line.payees, shares, strict=True):
        owner = owner_of(payee)
        if units and owner and held_back(world, owner, line.position, payee.units) >= units:
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


def _exposed(claim: Claim, held: tuple[Held, ...], world: World) -> Iterator[tuple[str, int]]:
    """The owners' parts of a claim that are not held back: they must not leave as cash."""
    line, state = claim.line, corrections_of(world, claim.line.position)
    shares = peel_between(line.payees, state.recovered, state.recovered + claim.claimed)
    kept = {one.account_id for one in held}
    for payee, units in zip(line.payees, shares, strict=True):
        owner = owner_of(payee)
        if units and owner and owner not in kept:
            yield owner, units


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


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {OpenDispute: decide_open}
