"""The expected "no": a rule that can refuse has a reason, named once, in its room.

A room names its reasons in its `reasons.py`, and `domain/reasons.py` merges them. A broken
invariant is not a refusal: that is an `assert`.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any


class Reason(Enum):
    """Why a command was refused. The value is the stable code of the problem document."""

    _value_: str


class Refused(Exception):
    """The command was understood and refused by a rule; nothing was recorded."""

    def __init__(self, reason: Reason, **facts: object) -> None:
        super().__init__(reason.value, facts)
        self.reason = reason
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels between processes whole."""
        return partial(Refused, self.reason, **self.facts), ()

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        return f"{self.reason.value}({told})"
