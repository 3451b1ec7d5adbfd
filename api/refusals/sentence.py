"""The sentence of a refusal: a template, filled with the facts of the refusal in people's units.

    "This needs {needed:credit}[; your account has {available:credit}]. Buy credits."

`{fact:kind}` is a fact and how it is written (`KINDS`). `[...]` is a clause that is left out when
one of its facts is missing. A reason has one or more cases; the first case whose conditions hold
and whose facts are all there gives the sentence, and the last case holds always. The facts of a
problem document stay as they are; only the sentence uses the units of people.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.money import decimal

NOT_FOUND, FORBIDDEN, NO_CREDIT, CONFLICT, CHANGED, INVALID = 404, 403, 402, 409, 412, 422
"""The statuses a reason can have."""
ANY = "*"
"""For `when`: the fact is there, with any value."""

_PLACE = re.compile(r"\{([a-z_0-9]+):([a-z_]+)\}")
_CLAUSE = re.compile(r"\[([^\[\]]*)\]")
_SHOWN_MAX = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Case:
    """One sentence of a reason. `where`: facts that must have these values, or must be there."""

    template: str
    where: Mapping[str, str]

    @property
    def needs(self) -> frozenset[str]:
        """The facts without which the sentence cannot be said."""
        plain = _CLAUSE.sub("", self.template)
        return frozenset(name for name, _ in _PLACE.findall(plain))

    @property
    def uses(self) -> tuple[tuple[str, str], ...]:
        """Every fact the sentence can use, with its kind."""
        return tuple(_PLACE.findall(self.template))

    def holds(self, facts: Mapping[str, str]) -> bool:
        is_so = all(
            name in facts if value == ANY else facts.get(name) == value
            for name, value in self.where.items()
        )
        return is_so and self.needs <= facts.keys()

    def said(self, facts: Mapping[str, str]) -> str:
        def clause(found: re.Match[str]) -> str:
            named = {name for name, _ in _PLACE.findall(found[1])}
            return found[1] if named <= facts.keys() else ""

        def fact(found: re.Match[str]) -> str:
            return KINDS[found[2]](facts[found[1]])

        return _PLACE.sub(fact, _CLAUSE.sub(clause, self.template))


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a reason is answered with: the HTTP status, the sentence, and the advice after it."""

    status: int
    cases: tuple[Case, ...]
    advice: tuple[Case, ...] = ()

    def said(self, facts: Mapping[str, Any]) -> str:
        """The sentence for these facts; facts that are None count as missing."""
        known = {name: str(value) for name, value in facts.items() if value is not None}
        first = next(case for case in self.cases if case.holds(known))
        then = next((case for case in self.advice if case.holds(known)), None)
        return first.said(known) + ("" if then is None else " " + then.said(known))


def sentence(status: int, *cases: str | Case, advice: tuple[str | Case, ...] = ()) -> Sentence:
    """A reason's status and its cases, in order; the last one holds always."""
    return Sentence(status, tuple(map(_case, cases)), tuple(map(_case, advice)))


def when(template: str, **where: str) -> Case:
    """A case for certain values of facts only."""
    return Case(template, where)


def _case(given: str | Case) -> Case:
    return given if isinstance(given, Case) else Case(given, {})


# How a fact is written. Each function takes the text of the raw value; a value of another form
# is shown as it is, because a sentence must never fail.


def _whole(write: Callable[[int], str]) -> Callable[[str], str]:
    def written(raw: str) -> str:
        return write(int(raw)) if re.fullmatch(r"-?[0-9]+", raw) else text(raw)

    return written


def span(us: int) -> str:
    """A length of time in the largest unit that divides it: 3 days, 90 minutes, 1.5 seconds."""
    for length, name in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        count, rest = divmod(us, length * 1_000_000)
        if count and not rest:
            return f"{count:,} {name}{'' if count == 1 else 's'}"
    return f"{decimal(us, 6, 0)} seconds"


def moment(us: int) -> str:
    """A UTC date-time to the second, rounded up, so that a moment to wait for has come."""
    try:
        at = _EPOCH + timedelta(seconds=-(-us // 1_000_000))
    except OverflowError:
        return "the end of time"
    return at.strftime("%Y-%m-%d %H:%M UTC" if not at.second else "%Y-%m-%d %H:%M:%S UTC")


def day(number: int) -> str:
    """A day counted from 1970-01-01."""
    try:
        return (_EPOCH + timedelta(days=number)).strftime("%Y-%m-%d")
    except OverflowError:
        return "the end of time"


def text(raw: str) -> str:
    """Words; a list as its members with commas; nothing unprintable, and not too long."""
    if raw[:1] in "([" and raw[-1:] in ")]":
        with suppress(ValueError, SyntaxError):
            raw = ", ".join(map(str, ast.literal_eval(raw)))
    shown = "".join(one if one.isprintable() else "?" for one in raw)
    return shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "..."


def word(raw: str) -> str:
    """A machine word as people write it: time_slice is time slice."""
    return text(raw).replace("_", " ")


def field_word(raw: str) -> str:
    """The name of a field as people write it: its unit is no part of the name."""
    return _FIELDS.get(raw, re.sub(r"(_us|_ppm|_mib|_seconds)$", "", raw).replace("_", " "))


def rule_words(raw: str) -> str:
    """A rule as it stands in the facts, with fields named as people name them."""
    return re.sub(
        r"\b[a-z]+(?:_[a-z]+)*_(?:us|ppm|mib)\b", lambda one: field_word(one[0]), text(raw)
    )


def _counted(one: str, many: str) -> Callable[[str], str]:
    return _whole(lambda number: f"{number:,} {one if number == 1 else many}")


_FIELDS = {
    "term_us": "term",
    "more_us": "extra time",
    "run_us": "run time",
    "timeout_us": "timeout",
    "hold_us": "hold time",
    "notice_us": "notice",
    "gpu_ppm_max": "number of GPUs",
    "mem_ppm": "part of the memory",
    "share_ppm": "share of the GPU",
    "effective_from_us": "start",
    "chargeback_window_us": "charge-back window",
    "#/": "body",
}

KINDS: dict[str, Callable[[str], str]] = {
    "text": text,
    "word": word,
    "field": field_word,
    "rule": rule_words,
    "credit": _whole(lambda units: f"{decimal(units, 6)} CREDIT"),
    "amount": _whole(lambda units: decimal(units, 6)),
    "token": _whole(lambda units: f"{decimal(units, 8)} TOKEN"),
    "usd": _whole(lambda units: f"{decimal(units, 6)} USD"),
    "time": _whole(moment),
    "day": _whole(day),
    "span": _whole(span),
    "percent": _whole(lambda ppm: f"{decimal(ppm, 4, 0)} %"),
    "part": _whole(lambda ppm: decimal(ppm, 6, 0)),
    "score": _whole(lambda ppm: decimal(ppm, 6, 0)),
    "gpu_hours": _whole(lambda us: f"{decimal(us * 1_000_000 // 3_600_000_000, 6)} GPU-hours"),
    "gib": _whole(lambda mib: f"{decimal(mib * 10_000 // 1024, 4, 0)} GiB"),
    "count": _whole(lambda number: f"{number:,}"),
    "gpus": _counted("GPU", "GPUs"),
    "gpus_of": _whole(lambda ppm: f"{decimal(ppm, 6, 0)} GPUs"),
    "nodes": _counted("node", "nodes"),
    "leases": _counted("lease", "leases"),
    "characters": _counted("character", "characters"),
    "bytes": _counted("byte", "bytes"),
    "months": _counted("month", "months"),
    "seconds": _whole(lambda seconds: span(seconds * 1_000_000)),
}
"""How a fact is written, by kind: micro-credits as CREDIT, microseconds as a date or a length of
time, parts per million as percent or as a part of one.
"""
