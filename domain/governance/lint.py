"""The lint of policy proposals: what can be seen to be wrong before anybody votes.

    passes  <=>  no finding is an error;    the same document has the same findings, and their hash

Each rule is a mistake that was published somewhere (design economics 12 names where). A rule judges
only what the document declares, in whole numbers, exactly. What the terms would have paid in past
epochs is another question, and not asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from domain.authority.acts import LIMIT_MAX
from domain.authority.vote import content_text, digest
from domain.epochs.policy import APPROVALS_MAX, APPROVALS_MIN, COMPUTE_BASES, NOTICE_EPOCHS_MAX
from domain.epochs.reward_terms import RewardTerms, check_terms
from domain.governance.document import (
    Document,
    NodeReward,
    Part,
    Split,
    Terms,
    fractions_of,
    read_document,
)
from domain.governance.formula import read_formula
from domain.governance.splitting import Gain, best_split
from domain.money import PPM
from domain.prices.profit_bound import (
    BACK_MAX_PPM,
    MULTIPLE_MAX_PPM,
    WEIGHED,
    Parts,
    back_ppm,
    is_sound,
    multiple_of,
)
from domain.record import dataclass
from domain.refusal import Refused

ERROR, WARNING = "error", "warning"
GPU_TIME = "gpu_time"
WEIGHT_LEAST = 10_000
"""A cent: what at least is burned for a GPU-hour, in micro-credits, where time is the weight."""
BONUS_MAX_PPM = 2_000_000
"""With the weight itself, 10^6."""

RULES: dict[str, str] = {
    "form": "the document can be read",
    "no_float": "every number is whole: no float",
    "no_logarithm": "a formula is integer arithmetic: no logarithm, power or root",
    "formula_unreadable": "a formula follows the notation, and names what it uses",
    "weights_sum": "weights sum to exactly 1,000,000 ppm",
    "milestones_whole": "milestones and declared remainder make 100 %",
    "halves_never_round_up": "the parts that are shown of a division are not more than the whole",
    "parts_within_available": "parts are not more than what is available",
    "epochs_within_month": "what epochs are paid, in a long month too, fits into the month",
    "no_intermediate_rounding": "only the last result is rounded, and down",
    "penalty_never_falls": "n x penalty(n) never falls: hiding a node never pays",
    "inputs_are_facts": "what a formula starts from is recorded, and means one thing",
    "cap_multiple": "provider + client + burn x cap multiple leave 5 % of a charge to lose",
    "source_weights": "only money that is final has a weight",
    "splitting_gains_nothing": "one node shown as several earns no more",
    "flat_node_cap": "a cap per node is gone round by showing one node as several",
    "bonus_bounded": "a bonus has bounds",
    "weight_costs": "a weight by GPU time costs what its rewards.burned_per_gpu_hour says",
    "segments_overlap": "segments of the emission do not overlap",
    "totals_within_cap": "all segments together stay within the hard cap",
    "rewards_missing": "the terms say how an epoch's rewards are shared, and up to what bound",
    "terms_invalid": "the terms are ones that can be kept",
}
"""Every rule, and what holds where it finds nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken at one place."""

    rule: str
    severity: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What the lint found, in the order of the document."""

    findings: tuple[Finding, ...]

    @property
    def passes(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> int:
        return sum(one.severity == ERROR for one in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors

    @property
    def first_error(self) -> str:
        """The rule of the first error; empty when it passes."""
        return next((one.rule for one in self.findings if one.severity == ERROR), "")

    @property
    def sha256(self) -> str:
        """Of the findings as canonical JSON."""
        return digest(content_text([asdict(one) for one in self.findings]))


def lint(plain: Any) -> Report:
    """Judge a document as a TOML or JSON reader left it. Never raises."""
    floats = fractions_of(plain)
    if floats:
        return Report(tuple(_error("no_float", place, "is a float") for place in floats))
    document, faults = read_document(plain)
    if document is None:
        return Report(tuple(_error("form", one.field, one.message) for one in faults))
    return lint_document(document)


def lint_document(document: Document) -> Report:
    """Judge a document that can be read."""
    found: list[Finding] = []
    for rule in (
        _terms,
        _weights,
        _milestones,
        _divisions,
        _budgets,
        _periods,
        _examples,
        _penalties,
        _formulas,
        _splits,
        _node_rewards,
        _bonuses,
    ):
        found.extend(rule(document))
    assert all(one.rule in RULES for one in found)
    return Report(tuple(found))


def _error(rule: str, field: str, message: str) -> Finding:
    return Finding(rule, ERROR, field, message)


def _warning(rule: str, field: str, message: str) -> Finding:
    return Finding(rule, WARNING, field, message)


def _sum(parts: Iterable[Part]) -> int:
    return sum(one.ppm for one in parts)


# The terms of the policy itself.


def _terms(document: Document) -> Iterator[Finding]:
    terms = document.terms
    if terms is None:
        return
    shares = terms.compute_ppm + terms.availability_ppm + terms.treasury_ppm
    if shares != PPM:
        told = f"compute, availability and treasury sum to {shares} ppm, not {PPM}"
        yield _error("weights_sum", "terms", told)
    yield from _segments(terms)
    if terms.compute_base not in COMPUTE_BASES:
        told = f"{terms.compute_base!r} is none of {', '.join(COMPUTE_BASES)}"
        yield _error("terms_invalid", "terms.compute_base", told)
    if terms.compute_base == GPU_TIME:
        least = None if terms.rewards is None else terms.rewards.burned_per_gpu_hour
        if least is None or least < WEIGHT_LEAST:
            told = (
                "whoever leases from itself for next to nothing takes from others in a small pool:"
                f" set rewards.burned_per_gpu_hour to {WEIGHT_LEAST} micro-credits or more"
            )
            yield _error("weight_costs", "terms.compute_base", told)
    rules = terms.governance
    if rules is not None and not (
        APPROVALS_MIN <= rules.approvals <= APPROVALS_MAX
        and 1 <= rules.notice_epochs <= NOTICE_EPOCHS_MAX
    ):
        told = (
            f"{rules.approvals} approvals and {rules.notice_epochs} epochs of notice are not within"
            f" {APPROVALS_MIN} to {APPROVALS_MAX} and 1 to {NOTICE_EPOCHS_MAX}"
        )
        yield _error("terms_invalid", "terms.governance", told)
    if rules is not None and rules.alone is not None and not rules.alone.is_valid:
        told = f"each limit of what one person may do is from 1 to {LIMIT_MAX} units"
        yield _error("terms_invalid", "terms.governance.alone", told)
    if not terms.epoch_length_seconds:
        yield _error("terms_invalid", "terms.epoch_length_seconds", "is at least 1")
    if terms.rewards is None:
        told = "without them availability is not paid, and nothing caps what use is paid"
        yield _error("rewards_missing", "terms.rewards", told)
    else:
        yield from _rewards(terms.rewards, has_splits=bool(document.splits))


def _rewards(rewards: RewardTerms, *, has_splits: bool) -> Iterator[Finding]:
    place = "terms.rewards"
    if PPM + rewards.bonus_max_ppm > BONUS_MAX_PPM:
        told = f"{PPM} + {rewards.bonus_max_ppm} ppm is more than {BONUS_MAX_PPM}"
        yield _error("bonus_bounded", f"{place}.bonus_max_ppm", told)
    yield from _multiple(rewards, has_splits=has_splits)
    for index, one in enumerate(rewards.source_weights):
        if one.ppm and one.name not in WEIGHED:
            told = f"{one.name} is not among {', '.join(sorted(WEIGHED))}: it is not paid for good"
            yield _error("source_weights", f"{place}.source_weights[{index}]", told)
    if rewards.availability_cap_per_node is not None:
        told = f"{rewards.availability_cap_per_node} a node is twice that for one shown as two"
        yield _warning("flat_node_cap", f"{place}.availability_cap_per_node", told)
    try:
        check_terms(rewards)
    except Refused as refused:
        yield _error("terms_invalid", place, str(refused.facts["rule"]))


def _multiple(rewards: RewardTerms, *, has_splits: bool) -> Iterator[Finding]:
    place, multiple = "terms.rewards.cap_multiple_ppm", multiple_of(rewards)
    if multiple is None:
        told = "nothing bounds what a node is paid for what it burned by renting from itself"
        yield _error("cap_multiple", place, told)
    elif multiple > MULTIPLE_MAX_PPM:
        told = f"{multiple} is more than {MULTIPLE_MAX_PPM}: more TOKEN than were burned"
        yield _error("cap_multiple", place, told)
    if not has_splits:
        told = "no [[splits]] say what providers and clients get, what is burned and refunded"
        yield _error("cap_multiple", "splits", told)


def _segments(terms: Terms) -> Iterator[Finding]:
    ordered = sorted(terms.segments, key=lambda one: one.start_epoch)
    for one, following in pairwise(ordered):
        end = one.start_epoch + one.n_epochs - 1
        if end >= following.start_epoch:
            there = following.start_epoch
            told = f"epochs {one.start_epoch} to {end} run into the segment from {there}"
            yield _error("segments_overlap", "terms.segments", told)
    if any(one.n_epochs < 1 or one.start_epoch < 1 for one in terms.segments):
        yield _error("terms_invalid", "terms.segments", "start with epoch 1 and last at least 1")
    total = sum(one.total for one in terms.segments)
    if total > terms.hard_cap:
        told = f"{total} is {total - terms.hard_cap} more than the hard cap {terms.hard_cap}"
        yield _error("totals_within_cap", "terms.segments", told)


# Tables.


def _weights(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.weights):
        whole = _sum(table.parts)
        if whole != PPM:
            told = f"{table.name}: {len(table.parts)} weights sum to {whole} ppm, not {PPM}"
            yield _error("weights_sum", f"weights[{index}]", told)


def _milestones(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.milestones):
        whole = _sum(table.parts) + table.remainder_ppm
        if whole != PPM:
            told = (
                f"{table.name}: {_sum(table.parts)} ppm of milestones and {table.remainder_ppm} ppm"
                f" of declared remainder make {whole}, not {PPM}"
            )
            yield _error("milestones_whole", f"milestones[{index}]", told)


def _divisions(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.divisions):
        over = table.shown * table.parts - table.total
        if over > 0 and table.parts:
            told = (
                f"{table.name}: {table.parts} x {table.shown} is {over} more than {table.total};"
                f" rounded down it is {table.total // table.parts}"
            )
            # One of the parts, every time: what a single recipient is paid too much.
            each = table.times * (table.shown * table.parts - table.total) // table.parts
            told += f"; {table.times} times a part, {each} too much" if each else ""
            yield _error("halves_never_round_up", f"divisions[{index}].shown", told)


def _budgets(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.budgets):
        needed = sum(one.each * one.count for one in table.parts)
        if needed > table.available:
            parts = " + ".join(f"{one.count} x {one.each}" for one in table.parts)
            told = f"{table.name}: {parts} = {needed} is more than {table.available}"
            yield _error("parts_within_available", f"budgets[{index}]", told)


def _periods(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.periods):
        place = f"periods[{index}]"
        if len(set(table.per_epoch)) > 1:
            figures = ", ".join(map(str, table.per_epoch))
            told = f"{table.name}: one pool has several figures per epoch: {figures}"
            yield _error("epochs_within_month", f"{place}.per_epoch", told)
        for figure in dict.fromkeys(table.per_epoch):
            for epochs in table.epochs_in_month:
                if figure * epochs > table.monthly:
                    told = (
                        f"{table.name}: {figure} x {epochs} epochs = {figure * epochs} is more"
                        f" than {table.monthly} a month"
                    )
                    yield _error("epochs_within_month", f"{place}.per_epoch", told)


def _examples(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.examples):
        above, below = table.scale, 1
        for factor in table.factors:
            above, below = above * factor.numerator, below * factor.denominator
        if not below:
            yield _error("form", f"examples[{index}].factors", "a denominator is 0")
        elif above // below != table.shown:
            told = (
                f"{table.name}: the factors make {above // below} / {table.scale}, rounded once;"
                f" shown is {table.shown} / {table.scale}"
            )
            yield _error("no_intermediate_rounding", f"examples[{index}].shown", told)


def _penalties(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.penalties):
        ordered = sorted(table.multipliers, key=lambda one: one.n)
        for one, following in pairwise(ordered):
            if following.n * following.ppm < one.n * one.ppm:
                told = (
                    f"{table.name}: {following.n} nodes get {following.n * following.ppm} ppm of"
                    f" one node's reward, {one.n} get {one.n * one.ppm}"
                )
                yield _error("penalty_never_falls", f"penalties[{index}]", told)


def _formulas(document: Document) -> Iterator[Finding]:
    computed: dict[str, str] = {}  # output -> unit, of the formulas so far
    outputs = {one.output: one.unit for one in document.formulas}
    for index, rule in enumerate(document.formulas):
        place = f"formulas[{index}]"
        yield from _arithmetic(place, rule.output, rule.expression, {i.name for i in rule.inputs})
        if rule.output in computed:
            yield _error("inputs_are_facts", place, f"{rule.output} is computed twice")
        for given in rule.inputs:
            where = f"{place}.inputs.{given.name}"
            unit = outputs.get(given.name)
            if given.source not in ("fact", "policy", "formula"):
                told = f"{given.source!r} is none of fact, policy, formula"
                yield _error("form", where, told)
            elif unit is not None and given.source != "formula":
                told = (
                    f"{given.name} is an input in {given.unit} and a result in {unit}: a result is"
                    " no fact"
                )
                yield _error("inputs_are_facts", where, told)
            elif given.source == "formula" and given.name not in computed:
                told = f"no formula before this one computes {given.name}"
                yield _error("inputs_are_facts", where, told)
            elif given.source == "formula" and computed[given.name] != given.unit:
                told = f"{given.name} is computed in {computed[given.name]}, not {given.unit}"
                yield _error("inputs_are_facts", where, told)
        computed[rule.output] = rule.unit


def _arithmetic(place: str, output: str, expression: str, declared: set[str]) -> Iterator[Finding]:
    formula = read_formula(expression)
    where = f"{place}.expression"
    if formula.unreadable:
        yield _error("formula_unreadable", where, f"{output}: {formula.unreadable}")
        return
    for number in formula.fractions:
        yield _error("no_float", where, f"{output}: {number} is a float; write it as ppm")
    for name in formula.functions:
        yield _error("no_logarithm", where, f"{output}: {name} is no integer arithmetic")
    if formula.rounds_early:
        told = f"{output}: a rounded value is multiplied or divided again"
        yield _error("no_intermediate_rounding", where, told)
    for name in formula.names:
        if name not in declared:
            told = f"{output}: {name} is not among the inputs"
            yield _error("formula_unreadable", where, told)


def _splits(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.splits):
        place, left = f"splits[{index}]", PPM - table.burn_ppm - table.platform_ppm
        if left < table.provider_ppm or table.refund_ppm > PPM:
            told = f"{table.name}: the parts, or what is refunded, are more than the charge"
            yield _error("parts_within_available", place, told)
        paid, multiple = max(left, table.provider_ppm), _multiple_of(document, table)
        parts = Parts(paid * PPM, table.burn_ppm * PPM)
        for refund in sorted({0, min(table.refund_ppm, PPM)}):
            if not is_sound(parts, multiple, refund):
                yield _error("cap_multiple", place, _bound(table, parts, multiple, refund))


def _bound(table: Split, parts: Parts, multiple: int, refund: int) -> str:
    back = back_ppm(parts, multiple, refund)
    paid = parts.paid // PPM
    told = f"{table.name}: {paid} + {table.burn_ppm} x {multiple} / {PPM}"
    if refund:
        told += f", the reward kept of a refund of {refund},"
    told += " = " + ("all that is spent" if back is None else f"{back} ppm of what is spent")
    unnamed = paid - table.provider_ppm
    told += f" come back, more than {BACK_MAX_PPM}"
    return told + (f" ({unnamed} of it the client's: not named as the platform's)" * bool(unnamed))


def _multiple_of(document: Document, split: Split) -> int:
    """A split's cap multiple, at least that of the terms; 1 where neither says it."""
    rewards = None if document.terms is None else document.terms.rewards
    of_terms = None if rewards is None else multiple_of(rewards)
    named = [one for one in (split.cap_multiple_ppm, of_terms) if one is not None]
    return max(named, default=PPM)


def _node_rewards(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.node_rewards):
        place = f"node_rewards[{index}]"
        if table.per not in ("node", "owner"):
            yield _error("form", f"{place}.per", f"{table.per!r} is none of node, owner")
        elif table.per == "node":
            yield from _split_nodes(place, table)


def _split_nodes(place: str, table: NodeReward) -> Iterator[Finding]:
    """A flat cap alone is a warning: a network may want it and bind identities otherwise."""
    gain = best_split(table.tiers, table.flat, None)
    if gain is not None:
        yield _error("splitting_gains_nothing", place, _told(table.name, gain))
    elif table.cap is not None:
        gain = best_split(table.tiers, table.flat, table.cap)
        if gain is not None:
            yield _warning("flat_node_cap", f"{place}.cap", _told(table.name, gain))


def _told(name: str, gain: Gain) -> str:
    return (
        f"{name}: {gain.whole} units of work earn {gain.together} ppm as one node,"
        f" {gain.apart} ppm as two of {gain.one} and {gain.other}"
    )


def _bonuses(document: Document) -> Iterator[Finding]:
    for index, table in enumerate(document.bonuses):
        most = table.at_most_ppm
        if most is None:
            told = f"{table.name}: no upper bound is declared"
        elif not table.at_least_ppm <= most <= BONUS_MAX_PPM:
            told = f"{table.name}: {most} ppm is not from {table.at_least_ppm} to {BONUS_MAX_PPM}"
        else:
            continue
        yield _error("bonus_bounded", f"bonuses[{index}]", told)
