"""Rehearses a proposed policy on the epoch files that sealing left.

    reproduced == the file says what settling its own cut gives, byte for byte

Only the files are read: no database and no server, so whoever has them can rehearse as well. The
formulas are in `domain/governance/rehearsal.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from api.process.collecting import collecting_later
from domain.duration import SECOND_US
from domain.epochs.emission import check_segments
from domain.epochs.epoch_file import epoch_file, read_cut, read_policy
from domain.epochs.policy import COMPUTE_BASES, PolicyPublished
from domain.epochs.reward_terms import NO_TERMS, check_terms
from domain.epochs.settlement import Settlement, settle
from domain.governance.document import FORMAT, Terms, read_document
from domain.governance.rehearsal import (
    Difference,
    EpochDifference,
    RehearsalStops,
    Summary,
    Totals,
    plans,
    rehearse,
)
from domain.money import PPM, Amount, token
from domain.refusal import Refused
from ledger.fan_out.executor import SERIAL, Executor


class NothingToRehearse(Exception):
    """The proposal or the epoch files cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of it; `stopped` when an epoch could not follow under the proposed policy."""

    summary: Summary
    not_reproduced: tuple[int, ...]  # epochs whose file is not what its cut gives
    kept_plan: tuple[int, ...]  # epochs that emit by the plan they had: the proposal has none
    stopped: str | None

    @property
    def holds(self) -> bool:
        """Whether everything that must hold did."""
        broken = any(one.broken for one in self.summary.epochs)
        return not broken and not self.not_reproduced and self.stopped is None

    @property
    def is_same(self) -> bool:
        """Whether every account would have got in every epoch what it got."""
        return all(one.changed == 0 for one in self.summary.epochs)


def proposed_policy(plain: Any) -> PolicyPublished:
    """The policy of a proposal's `[terms]`, or of the `policy` of an epoch file.

    Raises NothingToRehearse.
    """
    if isinstance(plain, dict) and plain.get("format") == FORMAT:
        document, faults = read_document(plain)
        if document is None:
            raise NothingToRehearse(f"{faults[0].field}: {faults[0].message}; see policy lint")
        if document.terms is None:
            raise NothingToRehearse("the proposal has no [terms]: it changes no policy")
        return _checked(_of_terms(document.terms))
    try:
        return _checked(read_policy({"rewards": None, **plain}))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NothingToRehearse(f"neither a proposal nor a policy: {error!r}") from error


def _checked(policy: PolicyPublished) -> PolicyPublished:
    """What settling relies on; the rest is for the lint."""
    shares = (policy.compute_ppm, policy.availability_ppm, policy.treasury_ppm)
    if min(shares) < 0 or sum(shares) != PPM:
        raise NothingToRehearse("pool shares sum to exactly 1000000 ppm; see policy lint")
    if policy.compute_base not in COMPUTE_BASES:
        raise NothingToRehearse(f"compute_base is one of {', '.join(COMPUTE_BASES)}")
    try:
        check_segments(policy.segments)
        check_terms(policy.rewards or NO_TERMS)
    except Refused as refused:
        raise NothingToRehearse(f"{refused}; see policy lint") from refused
    return policy


def _of_terms(terms: Terms) -> PolicyPublished:
    """As publishing it would; which version it becomes decides no reward."""
    told = {one.name for one in fields(terms)} & {one.name for one in fields(PolicyPublished)}
    return PolicyPublished(
        **{name: getattr(terms, name) for name in told - {"hard_cap"}},
        version=0,
        epoch_length_us=terms.epoch_length_seconds * SECOND_US,
        hard_cap=token(terms.hard_cap),
        by="",
        at_us=0,
        proposal=None,
    )


def past_files(folder: Path) -> list[Path]:
    """The epoch files of a folder in order of epochs.

    Raises NothingToRehearse when there is none, or one is missing between two others.
    """
    found = sorted((int(one.stem), one) for one in folder.glob("*.json") if one.stem.isdecimal())
    if not found:
        raise NothingToRehearse(f"{folder}: no epoch files; sealing an epoch writes <number>.json")
    for number, (epoch, _) in enumerate(found, found[0][0]):
        if epoch != number:
            raise NothingToRehearse(f"{folder}: epoch {number} is missing; each follows from it")
    return [path for _, path in found]


@collecting_later()
def settled_file(path: Path) -> tuple[Settlement, bool]:
    """What a past epoch paid, and whether its file is what its own cut gives.

    Raises NothingToRehearse when the file cannot be read.
    """
    try:
        data = path.read_bytes()
        cut = read_cut(data)
    except (OSError, ValueError) as error:
        raise NothingToRehearse(f"{path}: {error}") from error
    settlement = settle(cut)
    return settlement, epoch_file(settlement) == data


@collecting_later()
def run(
    policy: PolicyPublished,
    files: Sequence[Path],
    *,
    first: int = 1,
    step: Callable[[int, int], None] = lambda _done, _of: None,
    executor: Executor = SERIAL,
) -> Rehearsal:
    """Rehearse the policy on every file; it rules from epoch `first` on. `step` counts epochs.
    What was paid is settled by `executor`; what would have been follows epoch by epoch, here.

    Raises NothingToRehearse when a file cannot be read; WorkLost.
    """
    summary, differing, kept, stopped = Summary(), [], [], None

    def settled() -> Iterator[Settlement]:
        for settlement, is_reproduced in executor.map(settled_file, files):
            if not is_reproduced:
                differing.append(settlement.epoch)
            yield settlement

    try:
        for done, one in enumerate(rehearse(settled(), policy, first), 1):
            summary.take(one)
            if one.epoch >= first and not plans(policy, one.epoch):
                kept.append(one.epoch)
            step(done, len(files))
    except RehearsalStops as error:
        stopped = str(error)
    return Rehearsal(summary, tuple(differing), tuple(kept), stopped)


# --- as a document ---------------------------------------------------------------------------


def told_of(rehearsal: Rehearsal, limit: int) -> dict[str, Any]:
    """The result as `--json` prints it: totals, and the `limit` biggest losers and winners."""
    was, would_be = rehearsal.summary.totals()
    everybody = rehearsal.summary.differences()
    changed = [one for one in everybody if one.delta]
    losers = [one for one in changed if one.delta < 0]
    winners = [one for one in reversed(changed) if one.delta > 0]
    largest = max(changed, key=lambda one: (abs(one.delta), one.account_id), default=None)
    epochs = rehearsal.summary.epochs
    return {
        "epochs": len(epochs),
        "first_epoch": epochs[0].epoch if epochs else None,
        "last_epoch": epochs[-1].epoch if epochs else None,
        "holds": rehearsal.holds,
        "is_same": rehearsal.is_same,
        "accounts": len(everybody),
        "accounts_gaining": len(winners),
        "accounts_losing": len(losers),
        "largest_difference": None if largest is None else _difference(largest),
        "was": _totals(was),
        "would_be": _totals(would_be),
        "winners": [_difference(one) for one in winners[:limit]],
        "losers": [_difference(one) for one in losers[:limit]],
        "by_epoch": [_epoch(one) for one in epochs],
        "kept_emission_plan": list(rehearsal.kept_plan),
        "not_reproduced": list(rehearsal.not_reproduced),
        "stopped": rehearsal.stopped,
    }


def _epoch(one: EpochDifference) -> dict[str, Any]:
    return {
        "epoch": one.epoch,
        "accounts": one.accounts,
        "accounts_changed": one.changed,
        "largest_difference": None if one.largest is None else _difference(one.largest),
        "was": _totals(one.was),
        "would_be": _totals(one.would_be),
        "broken": list(one.broken),
    }


def _totals(totals: Totals) -> dict[str, Any]:
    return {name: _amount(units) for name, units in asdict(totals).items()}


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "account_id": one.account_id,
        "was": _amount(one.was),
        "would_be": _amount(one.would_be),
        "delta": _amount(one.delta),
    }


def _amount(units: int) -> Mapping[str, str]:
    return _plain(token(units))


def _plain(amount: Amount) -> Mapping[str, str]:
    return {"asset": amount.asset.value, "units": str(amount.units)}
