"""A proposal as a document: who proposes what, the terms of a policy, tables that can be judged.

    read_document(plain) is (document, no faults)  or  (None, every fault with the place it is at)

`plain` is what a TOML or JSON reader makes of the file. All numbers are whole; one that may pass
2^53 - 1 may be written as decimal digits in quotes. What a table means is in its docstring here;
whether it is sound says `domain/governance/lint.py`. The same document, keys sorted, is what the
log keeps of a proposal, so everybody can judge it again.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import PolicyGovernance
from domain.epochs.reward_terms import RewardTerms
from domain.record import dataclass

FORMAT = "tallystick-policy-v1"
DOCUMENT_BYTES_MAX = 32_000
"""A fact holds it whole."""
ITEMS_MAX = 500
TEXT_MAX = 4_000
NUMBER_MAX = 2**63 - 1
FAULTS_MAX = 50
PROPOSAL_MAX = 999_999
"""The highest number of a proposal."""

_NONE = type(None)
_DIGITS = re.compile(r"0|[1-9][0-9]{0,18}")
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Heading:
    """`created`: the day the authors wrote it, like 2023-10-23."""

    number: int
    title: str
    category: str
    authors: tuple[str, ...]
    created: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """What `PolicyPublished` will hold. `effective_from_epoch`: not before this one."""

    epoch_length_seconds: int
    segments: tuple[EmissionSegment, ...]
    hard_cap: int  # 10^-8 TOKEN
    compute_ppm: int
    availability_ppm: int
    treasury_ppm: int
    compute_base: str
    holdback_epochs: int
    effective_from_epoch: int
    governance: PolicyGovernance | None = None
    rewards: RewardTerms | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A named share of a whole, in parts per million."""

    name: str
    ppm: int


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that are meant to make up one whole."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Milestones:
    """What milestones unlock of a grant. What has no milestone is declared as remainder."""

    name: str
    parts: tuple[Part, ...]
    remainder_ppm: int = 0


@dataclass(frozen=True, slots=True)
class Division:
    """`total` divided into equal parts, `shown` as so much each; done `times` times."""

    name: str
    total: int
    parts: int
    shown: int
    times: int = 1


@dataclass(frozen=True, slots=True)
class Expense:
    """`count` times `each`."""

    name: str
    each: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """What is available, and what is to be paid from it."""

    name: str
    available: int
    parts: tuple[Expense, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """A pool per month that is paid by the epoch; a month of weekly epochs ends four or five."""

    name: str
    monthly: int
    per_epoch: tuple[int, ...]
    epochs_in_month: tuple[int, ...] = (4, 5)


@dataclass(frozen=True, slots=True)
class Factor:
    """numerator / denominator, exactly."""

    numerator: int
    denominator: int = 1


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example: the product of the factors, `shown` in units of 1 / `scale`."""

    name: str
    factors: tuple[Factor, ...]
    shown: int
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Multiplier:
    """What each of `n` nodes of an owner gets of a whole node's reward."""

    n: int
    ppm: int


@dataclass(frozen=True, slots=True)
class Penalty:
    """Multipliers by the number of nodes."""

    name: str
    multipliers: tuple[Multiplier, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """`source`: `fact` (recorded), `policy` (a term), `formula` (computed before this one)."""

    name: str
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A formula in the notation of `domain/governance/formula.py`."""

    output: str
    unit: str
    expression: str
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """Who gets what of a charge; what is not named is the client's. `cap_multiple_ppm`: the most
    TOKEN a node is paid for a TOKEN burned for it, at least what the terms say. `refund_ppm`: the
    highest credit of an SLA class.
    """

    name: str
    provider_ppm: int
    burn_ppm: int
    platform_ppm: int = 0
    cap_multiple_ppm: int | None = None
    refund_ppm: int = 0


@dataclass(frozen=True, slots=True)
class Tier:
    """From so many units of work on, each further unit earns `ppm` / 10^6."""

    from_units: int
    ppm: int


@dataclass(frozen=True, slots=True)
class NodeReward:
    """What work earns: `flat` once there is any, then by tiers, at most `cap`. `per`: `node` or
    `owner`, whose work is added up before the tiers apply.
    """

    name: str
    tiers: tuple[Tier, ...]
    flat: int = 0
    cap: int | None = None
    per: str = "node"


@dataclass(frozen=True, slots=True)
class Bonus:
    """A factor on a weight."""

    name: str
    at_most_ppm: int | None = None
    at_least_ppm: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """A whole document. Without terms it proposes no version of the policy, like a grant."""

    proposal: Heading
    terms: Terms | None = None
    weights: tuple[Weights, ...] = ()
    milestones: tuple[Milestones, ...] = ()
    divisions: tuple[Division, ...] = ()
    budgets: tuple[Budget, ...] = ()
    periods: tuple[Period, ...] = ()
    examples: tuple[Example, ...] = ()
    penalties: tuple[Penalty, ...] = ()
    formulas: tuple[Rule, ...] = ()
    splits: tuple[Split, ...] = ()
    node_rewards: tuple[NodeReward, ...] = ()
    bonuses: tuple[Bonus, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """A place of the document that cannot be read, and the rule it breaks."""

    field: str
    message: str


def read_document(plain: Any) -> tuple[Document | None, tuple[Fault, ...]]:
    """The document, or what keeps it from being one. Never raises."""
    faults: list[Fault] = []
    if not isinstance(plain, dict):
        return None, (Fault("", "a document is a table"),)
    if plain.get("format") != FORMAT:
        faults.append(Fault("format", f"is {FORMAT!r}"))
    body = {name: value for name, value in plain.items() if name != "format"}
    found = _read(Document, body, "", faults)
    if found is not None:
        _check_heading(found.proposal, faults)
    return (None, tuple(faults[:FAULTS_MAX])) if faults else (found, ())


def fractions_of(plain: Any, place: str = "") -> list[str]:
    """The places of a document where a float stands, or a number that is none."""
    if isinstance(plain, dict):
        found = [fractions_of(value, _at(place, str(name))) for name, value in plain.items()]
        return [one for each in found for one in each]
    if isinstance(plain, list):
        found = [fractions_of(value, f"{place}[{index}]") for index, value in enumerate(plain)]
        return [one for each in found for one in each]
    return [place] if type(plain).__name__ == "float" else []


def _check_heading(heading: Heading, faults: list[Fault]) -> None:
    if not 1 <= heading.number <= PROPOSAL_MAX:
        faults.append(Fault("proposal.number", f"is from 1 to {PROPOSAL_MAX}"))
    if _DATE.fullmatch(heading.created) is None:
        faults.append(Fault("proposal.created", "is a day like 2023-10-23"))
    if not 1 <= len(heading.authors) <= 20:
        faults.append(Fault("proposal.authors", "are 1 to 20"))
    for name, text in (("title", heading.title), ("category", heading.category)):
        if not 1 <= len(text) <= 200:
            faults.append(Fault(f"proposal.{name}", "has 1 to 200 characters"))


# Reading plain values into the forms above.


@cache
def _shape(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Names, types, and whether a default stands in for what is missing."""
    hints = get_type_hints(kind)
    return tuple((one.name, hints[one.name], one.default is not MISSING) for one in fields(kind))


def _read(kind: Any, plain: Any, place: str, faults: list[Fault]) -> Any:
    """An instance of a form, or None with faults."""
    if not isinstance(plain, dict):
        faults.append(Fault(place, "is a table"))
        return None
    before = len(faults)
    shape = _shape(kind)
    known = {name for name, _, _ in shape}
    unknown = [str(name) for name in plain if name not in known]
    faults += [Fault(_at(place, name), "is not known here") for name in unknown]
    values: dict[str, Any] = {}
    for name, hint, has_default in shape:
        if name in plain:
            values[name] = _value(hint, plain[name], _at(place, name), faults)
        elif not has_default and _NONE in get_args(hint):
            values[name] = None
        elif not has_default:
            faults.append(Fault(_at(place, name), "is missing"))
    return None if len(faults) > before else kind(**values)


def _value(hint: Any, plain: Any, place: str, faults: list[Fault]) -> Any:
    arguments = get_args(hint)
    if _NONE in arguments:
        (hint,) = (one for one in arguments if one is not _NONE)
        return _value(hint, plain, place, faults)
    if get_origin(hint) is tuple:
        return _items(arguments[0], plain, place, faults)
    if hint is int:
        return _number(plain, place, faults)
    if hint is bool:
        return plain if isinstance(plain, bool) else _fault(place, "is true or false", faults)
    if hint is str:
        return _text(plain, place, faults)
    return _read(hint, plain, place, faults)


def _items(hint: Any, plain: Any, place: str, faults: list[Fault]) -> Any:
    if not isinstance(plain, list) or len(plain) > ITEMS_MAX:
        return _fault(place, f"is a list of at most {ITEMS_MAX}", faults)
    return tuple(_value(hint, one, f"{place}[{index}]", faults) for index, one in enumerate(plain))


def _number(plain: Any, place: str, faults: list[Fault]) -> Any:
    if isinstance(plain, str) and _DIGITS.fullmatch(plain):
        plain = int(plain)
    if type(plain) is not int or not 0 <= plain <= NUMBER_MAX:
        return _fault(place, f"is a whole number from 0 to {NUMBER_MAX}", faults)
    return plain


def _text(plain: Any, place: str, faults: list[Fault]) -> Any:
    if not isinstance(plain, str) or len(plain) > TEXT_MAX:
        return _fault(place, f"is a text of at most {TEXT_MAX} characters", faults)
    if any((ord(one) < 32 and one not in "\n\t") or "\ud800" <= one <= "\udfff" for one in plain):
        return _fault(place, "has no control characters and no half characters", faults)
    return plain


def _fault(place: str, message: str, faults: list[Fault]) -> None:
    faults.append(Fault(place, message))


def _at(place: str, name: str) -> str:
    shown = name if name.isascii() and name.isprintable() else ascii(name)
    return f"{place}.{shown[:60]}" if place else shown[:60]
