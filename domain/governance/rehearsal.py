"""A rehearsal: what past epochs would have paid under another policy.

    opening == what the rehearsed epoch before left + what else moved in between, as it happened
    was == would be, to the unit, for every account        when the rules are the ones it had
    sum(would be - was) of all accounts == minted then - minted before - (carried then - before)

The cuts stay as they were: who used what, who was there, who burned. What an epoch leaves to the
next (carries, what the cap has left, burned TOKEN that may return, open adjustments) is carried on
under the proposed rules. What people would have done otherwise under them is no fact, and not here.
Source: design economics 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from domain.epochs.policy import PolicyPublished
from domain.epochs.settlement import AVAILABILITY, COMPUTE, Cut, Openings, Settlement, settle
from domain.frozen import replace


class RehearsalStops(Exception):
    """The past epochs cannot be rehearsed further, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """One past epoch: what it paid, and what it would have paid."""

    was: Settlement
    would_be: Settlement

    @property
    def epoch(self) -> int:
        return self.was.epoch

    def deltas(self) -> dict[str, int]:
        """TOKEN units by account that an account would have got more (> 0) or less; none of 0."""
        found = dict(self.would_be.rewards)
        for account_id, units in self.was.rewards:
            found[account_id] = found.get(account_id, 0) - units
        return {account_id: delta for account_id, delta in found.items() if delta}


def rehearse(
    settled: Iterable[Settlement], policy: PolicyPublished, first: int = 1
) -> Iterator[Rehearsed]:
    """Every past epoch in order, as it was settled and as it would have been.

    `settled` are consecutive epochs, with the policy and the openings that each had; what would
    have been goes from one to the next. The proposed
    policy rules from epoch `first` on, except that an epoch for which it plans no emission emits by
    the plan it had: a proposal's segments may begin in the future. One at a time: whoever takes an
    epoch and goes on needs no memory for those before.

    Raises RehearsalStops: an epoch is missing, or the proposed policy had emitted more before than
    what others took from the cap since then left.
    """
    before: Rehearsed | None = None
    for was in settled:
        cut = was.cut
        if before is not None and cut.epoch != before.epoch + 1:
            raise RehearsalStops(f"epoch {before.epoch} is followed by epoch {cut.epoch}")
        rules = _rules(policy, cut) if cut.epoch >= first else cut.policy
        openings = cut.openings if before is None else carried(before, cut)
        is_as_it_was = rules is cut.policy and openings == cut.openings
        would_be = was if is_as_it_was else settle(replace(cut, policy=rules, openings=openings))
        before = Rehearsed(was=was, would_be=would_be)
        yield before


def plans(policy: PolicyPublished, epoch: int) -> bool:
    """Whether a segment of the policy covers an epoch."""
    return any(one.start_epoch <= epoch < one.start_epoch + one.n_epochs for one in policy.segments)


def _rules(policy: PolicyPublished, cut: Cut) -> PolicyPublished:
    if plans(policy, cut.epoch):
        return policy
    return replace(policy, segments=cut.policy.segments)


def carried(before: Rehearsed, cut: Cut) -> Openings:
    """What the rehearsed epoch before leaves to `cut`: its own openings, moved by the differences.

    Raises RehearsalStops when the cap, or the burned TOKEN, would not have held so much.
    """
    was, then, opening = before.was, before.would_be, cut.openings
    found = Openings(
        unissued=opening.unissued + _issued(was) - _issued(then),
        recyclable=opening.recyclable + _recycled(was) - _recycled(then),
        compute_carry=opening.compute_carry - was.compute_carry + then.compute_carry,
        availability_carry=(
            opening.availability_carry - was.availability_carry + then.availability_carry
        ),
        adjustments=_adjustments(opening.adjustments, was.adjustments, then.adjustments),
    )
    for name in ("unissued", "recyclable", "compute_carry", "availability_carry"):
        if getattr(found, name) < 0:
            raise RehearsalStops(
                f"epoch {cut.epoch} would begin with {getattr(found, name)} {name}: "
                "the epochs before would have paid what something else took"
            )
    return found


def _issued(s: Settlement) -> int:
    return s.emission - s.returned_emission


def _recycled(s: Settlement) -> int:
    return s.release - s.returned_release


Pairs = tuple[tuple[str, int], ...]


def _adjustments(opening: Pairs, was: Pairs, then: Pairs) -> Pairs:
    """What is still to be given or given back, in order of accounts."""
    found = dict(opening)
    for sign, pairs in ((-1, was), (1, then)):
        for account_id, delta in pairs:
            found[account_id] = found.get(account_id, 0) + sign * delta
    return tuple((account_id, delta) for account_id, delta in sorted(found.items()) if delta)


# --- what holds of each ----------------------------------------------------------------------


def broken(one: Rehearsed) -> tuple[str, ...]:
    """The invariants that the rehearsed epoch breaks, in words; computed apart from `settle`."""
    s, opening = one.would_be, one.would_be.cut.openings
    carries = s.compute_carry + s.availability_carry
    found = []
    for pool, given, everything in (
        (COMPUTE, sum(node.compute for node in s.nodes), s.compute_pool + opening.compute_carry),
        (
            AVAILABILITY,
            sum(node.availability for node in s.nodes),
            s.availability_pool + opening.availability_carry,
        ),
    ):
        nobodys = sum(part.units for part in s.unallocated if part.pool == pool)
        if given + nobodys != everything:
            found.append(f"{pool}: shares + unallocated == pool + carry")
    if s.minted + opening.compute_carry + opening.availability_carry != s.total + carries:
        found.append("minted + carries before == rewards + carries after")
    if s.emission > opening.unissued:
        found.append("emission <= what the hard cap has left")
    if s.release > opening.recyclable:
        found.append("release <= burned TOKEN that may return")
    if any(units <= 0 for _, units in s.rewards):
        found.append("every reward > 0")
    if sum(one.deltas().values()) != _left_over(one.would_be) - _left_over(one.was):
        found.append("sum of differences == difference of minted - carried")
    return tuple(found)


def _left_over(s: Settlement) -> int:
    """Minted and not carried on: what all accounts together get."""
    opening = s.cut.openings
    before = opening.compute_carry + opening.availability_carry
    return s.minted + before - s.compute_carry - s.availability_carry


# --- all of them together --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Of one epoch or of several, in TOKEN units. The last three are nobody's, by reason."""

    rewards: int = 0
    minted: int = 0
    emission: int = 0
    release: int = 0
    returned: int = 0
    treasury: int = 0
    rounding: int = 0
    zero_weight: int = 0
    cap: int = 0

    def __add__(self, other: Totals) -> Totals:
        names = [one.name for one in fields(Totals)]
        return Totals(**{name: getattr(self, name) + getattr(other, name) for name in names})


def totals_of(s: Settlement) -> Totals:
    """The totals of one settlement."""
    nobodys: dict[str, int] = {}
    for part in s.unallocated:
        nobodys[part.reason] = nobodys.get(part.reason, 0) + part.units
    return Totals(
        rewards=s.total,
        minted=s.minted,
        emission=s.emission,
        release=s.release,
        returned=s.returned_emission + s.returned_release,
        treasury=s.treasury_pool,
        **nobodys,
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """What an account got, and would have got."""

    account_id: str
    was: int
    would_be: int

    @property
    def delta(self) -> int:
        return self.would_be - self.was


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochDifference:
    """One epoch of a summary; `largest` is the reward that changes most, None when none does."""

    epoch: int
    was: Totals
    would_be: Totals
    accounts: int
    changed: int
    largest: Difference | None
    broken: tuple[str, ...]


class Summary:
    """What a rehearsal comes to, taken in epoch by epoch."""

    def __init__(self) -> None:
        self.epochs: list[EpochDifference] = []
        self._units: dict[str, tuple[int, int]] = {}

    def take(self, one: Rehearsed) -> EpochDifference:
        """Count one more epoch in."""
        was, would_be = dict(one.was.rewards), dict(one.would_be.rewards)
        found = [
            Difference(who, was.get(who, 0), would_be.get(who, 0)) for who in was.keys() | would_be
        ]
        for each in found:
            before = self._units.get(each.account_id, (0, 0))
            self._units[each.account_id] = (before[0] + each.was, before[1] + each.would_be)
        changed = [each for each in found if each.delta]
        told = EpochDifference(
            epoch=one.epoch,
            was=totals_of(one.was),
            would_be=totals_of(one.would_be),
            accounts=len(found),
            changed=len(changed),
            largest=max(changed, key=_size, default=None),
            broken=broken(one),
        )
        self.epochs.append(told)
        return told

    def differences(self) -> list[Difference]:
        """Of every account, all epochs together: who loses most first, who gains most last."""
        found = [Difference(who, *units) for who, units in self._units.items()]
        return sorted(found, key=lambda each: (each.delta, each.account_id))

    def totals(self) -> tuple[Totals, Totals]:
        """As it was, and as it would have been, over all epochs."""
        return (
            sum((told.was for told in self.epochs), Totals()),
            sum((told.would_be for told in self.epochs), Totals()),
        )


def _size(one: Difference) -> tuple[int, str]:
    return abs(one.delta), one.account_id
