"""Formulas as proposals write them: which names they use, what of them is no integer arithmetic.

    formula := sum;  sum := product (("+" | "-") product)*
    product := atom (("*" | "/" | "//") atom)*
    atom := number | name | name "(" sum ("," sum)* ")" | "(" sum ")" | "-" atom

Nothing is evaluated here. What a formula computes is code in `domain/`; a proposal tells it in this
notation so that a machine can see floats, logarithms, names nobody declared, and a result that is
rounded before it is multiplied.
"""

from __future__ import annotations

import re

from domain.record import dataclass

INTEGER_FUNCTIONS = frozenset({"floor", "min", "max", "sum", "clamp"})
NESTING_MAX = 32
_TOKEN = re.compile(r"\s*(?:([0-9]+(?:\.[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|(//|\*\*|[-+*/(),^]))")


@dataclass(frozen=True, slots=True)
class Formula:
    """What stands in an expression. `unreadable`: why the notation breaks off, or empty."""

    names: tuple[str, ...] = ()
    fractions: tuple[str, ...] = ()  # numbers with a decimal point
    functions: tuple[str, ...] = ()  # that are no integer arithmetic: log, exp, ** ...
    rounds_early: bool = False  # a floor is multiplied or divided afterwards
    unreadable: str = ""


class _Unreadable(Exception):
    """The expression does not follow the notation."""


def read_formula(expression: str) -> Formula:
    """Names in the order in which they first stand there. Never raises."""
    reader = _Reader()
    try:
        reader.read(expression)
    except _Unreadable as error:
        return Formula(unreadable=str(error))
    return Formula(
        tuple(dict.fromkeys(reader.names)),
        tuple(dict.fromkeys(reader.fractions)),
        tuple(dict.fromkeys(reader.functions)),
        reader.rounds_early,
    )


class _Reader:
    """Recursive descent; each part answers whether its value was rounded."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.fractions: list[str] = []
        self.functions: list[str] = []
        self.rounds_early = False
        self._tokens: list[str] = []
        self._place = 0
        self._depth = 0

    def read(self, expression: str) -> None:
        at = 0
        text = expression.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise _Unreadable(f"{text[at : at + 10]!r} is not of the notation")
            self._tokens.append(found[0].strip())
            at = found.end()
        self._sum()
        if self._place < len(self._tokens):
            raise _Unreadable(f"{self._tokens[self._place]!r} stands where nothing may follow")

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._next()
        if not token or (wanted and token != wanted):
            there, belongs = token or "the end", wanted or "a value"
            raise _Unreadable(f"{there!r} stands where {belongs!r} belongs")
        self._place += 1
        return token

    def _sum(self) -> bool:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise _Unreadable(f"more than {NESTING_MAX} levels deep")
        rounded = self._product()
        while self._next() in ("+", "-"):
            self._take()
            rounded |= self._product()
        self._depth -= 1
        return rounded

    def _product(self) -> bool:
        rounded = self._atom()
        while self._next() in ("*", "/", "//", "**", "^"):
            sign = self._take()
            following = self._atom()
            self.rounds_early |= rounded or following
            if sign in ("**", "^"):
                self.functions.append(sign)
            rounded = rounded or following or sign == "//"
        return rounded

    def _atom(self) -> bool:
        token = self._take()
        if token == "-":  # noqa: S105 - a sign
            return self._atom()
        if token == "(":  # noqa: S105 - a bracket
            rounded = self._sum()
            self._take(")")
            return rounded
        if token[0].isdigit():
            if "." in token:
                self.fractions.append(token)
            return False
        if not (token[0].isalpha() or token[0] == "_"):
            raise _Unreadable(f"{token!r} stands where a value belongs")
        if self._next() != "(":
            self.names.append(token)
            return False
        return self._call(token)

    def _call(self, function: str) -> bool:
        self._take("(")
        rounded = self._sum()
        while self._next() == ",":
            self._take()
            rounded |= self._sum()
        self._take(")")
        if function not in INTEGER_FUNCTIONS:
            self.functions.append(function)
        return rounded or function == "floor"
