"""Our cash-outs against the processor's own list of payouts: each matched once, amounts equal.

    every payout listed is matched with exactly one cash-out, or it is a difference
    every cash-out that was sent is matched with exactly one payout, waits, or is a difference

Nothing is corrected here: what matches confirms the cash-out, and what does not is recorded as a
fact and alarms until a person has settled it with a reason. Pure. Source: row C-24.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from domain.income.reasons import IncomeReason
from domain.money import Amount, credit
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World, derive_id

MISSING_AFTER_US = 24 * 3_600_000_000
"""How long a cash-out that was sent may be absent from the processor's list."""

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutDifferenceFound:
    """Stream `payout_difference:{difference_id}`.

    unknown: a payout that names no cash-out; unexpected: one of a cash-out that was not to be
    paid; amount: another amount; twice: a second one; missing: sent, and not in the list.
    """

    difference_id: str
    kind: str
    reference: str | None  # the payout; absent when it is missing
    cash_out_id: str | None
    expected: Amount | None
    found: Amount | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutDifferenceSettled:
    """A person (or, for what was missing, its appearance) has explained it."""

    difference_id: str
    note: str
    by: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDifference:
    difference: Difference
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleDifference:
    difference_id: str
    note: str
    by: str
    at_us: int


# What is compared.


@dataclass(frozen=True, slots=True)
class Listed:
    """A payout in the processor's list. `cash_out_id` None: it kept no id of ours."""

    cash_out_id: str | None
    reference: str
    units: int
    taken_back: int


@dataclass(frozen=True, slots=True)
class Ours:
    """A cash-out as the log has it; `asked_us`: when the processor was first asked."""

    cash_out_id: str
    status: str
    units: int
    reference: str | None
    returned: int
    asked_us: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str
    reference: str | None
    cash_out_id: str | None
    expected: int | None
    found: int | None

    @property
    def difference_id(self) -> str:
        """The same difference, seen again, is the same stream."""
        seen = f"{self.reference or ''}|{self.cash_out_id or ''}|{self.found or 0}"
        return derive_id("difference", self.kind, seen)


@dataclass(frozen=True, slots=True)
class Matching:
    """`matched`: (cash-out, payout), each at most once."""

    matched: tuple[tuple[Ours, Listed], ...]
    differences: tuple[Difference, ...]


def match(listed: Iterable[Listed], ours: Iterable[Ours], now_us: int) -> Matching:
    """Compare the processor's list with all cash-outs that it names or should have.

    `ours` holds every cash-out named in the list, and every one whose payout the list would have
    to contain. A payout listed twice under one reference is one payout.
    """
    by_id = {one.cash_out_id: one for one in ours}
    payouts: dict[str, list[Listed]] = {}
    differences: list[Difference] = []
    for payout in {each.reference: each for each in listed}.values():
        if payout.cash_out_id in by_id:
            assert payout.cash_out_id is not None
            payouts.setdefault(payout.cash_out_id, []).append(payout)
        else:
            differences.append(_of("unknown", payout, None))
    matched: list[tuple[Ours, Listed]] = []
    for cash_out_id, found in payouts.items():
        one = by_id[cash_out_id]
        first, *others = sorted(found, key=lambda each: each.reference != one.reference)
        differences += [_of("twice", each, one) for each in others]
        kind = _kind(first, one)
        if kind is None:
            matched.append((one, first))
        else:
            differences.append(_of(kind, first, one))
    for one in by_id.values():
        is_due = one.asked_us is not None and now_us - one.asked_us > MISSING_AFTER_US
        if one.cash_out_id not in payouts and one.status in ("sent", "paid") and is_due:
            gone = Difference("missing", one.reference, one.cash_out_id, one.units, None)
            differences.append(gone)
    return Matching(tuple(matched), tuple(differences))


def _kind(payout: Listed, one: Ours) -> str | None:
    if one.status not in ("started", "sent", "paid"):
        return "unexpected"
    if one.reference not in (None, payout.reference):
        return "unexpected"
    return None if payout.units == one.units else "amount"


def _of(kind: str, payout: Listed, one: Ours | None) -> Difference:
    expected = None if one is None else one.units
    return Difference(kind, payout.reference, payout.cash_out_id, expected, payout.units)


# What we remember, and how we decide.


@dataclass(frozen=True, slots=True)
class DifferenceState:
    kind: str = ""
    is_settled: bool = False


def stream_of(difference_id: str) -> Stream[DifferenceState]:
    return Stream("payout_difference", difference_id)


def evolve(
    state: DifferenceState, fact: PayoutDifferenceFound | PayoutDifferenceSettled
) -> DifferenceState:
    if isinstance(fact, PayoutDifferenceFound):
        return DifferenceState(fact.kind)
    return DifferenceState(state.kind, is_settled=True)


def difference_of(world: World, difference_id: str) -> DifferenceState:
    return world.state(stream_of(difference_id))


def decide_record(command: RecordDifference, world: World) -> list[Change]:
    """The same difference again changes nothing, settled or not."""
    seen = command.difference
    if difference_of(world, seen.difference_id).kind:
        return []
    fact = PayoutDifferenceFound(
        difference_id=seen.difference_id,
        kind=seen.kind,
        reference=seen.reference,
        cash_out_id=seen.cash_out_id,
        expected=None if seen.expected is None else credit(seen.expected),
        found=None if seen.found is None else credit(seen.found),
        at_us=command.at_us,
    )
    return [Change(stream_of(seen.difference_id), fact)]


def decide_settle(command: SettleDifference, world: World) -> list[Change]:
    """Twice is once. Raises Refused: DIFFERENCE_UNKNOWN."""
    state = difference_of(world, command.difference_id)
    if not state.kind:
        raise Refused(IncomeReason.DIFFERENCE_UNKNOWN, difference_id=command.difference_id)
    if state.is_settled:
        return []
    fact = PayoutDifferenceSettled(
        difference_id=command.difference_id, note=command.note, by=command.by, at_us=command.at_us
    )
    return [Change(stream_of(command.difference_id), fact)]


def ids_of(listed: Sequence[Listed]) -> list[str]:
    """The cash-outs that a list of payouts names, each once."""
    return sorted({each.cash_out_id for each in listed if each.cash_out_id is not None})


STREAMS: dict[str, tuple[Any, Any]] = {"payout_difference": (DifferenceState(), evolve)}
DECIDERS: dict[type[Any], Any] = {RecordDifference: decide_record, SettleDifference: decide_settle}
