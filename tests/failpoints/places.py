"""What a failpoint is: a name, a place in the code or in the database, and what may happen there.

    production holds nothing of this: no place can be armed by a request, a setting or an operator

A place names a function of ours, or a table that PostgreSQL writes. Both are looked up when they
are armed, so a place that was renamed fails its test (decision 0064).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from node_reporter.reports.client import Unreachable


class Fault(StrEnum):
    """What happens at a place."""

    DEATH = "death"
    """The process is gone: no handler, no `finally`, no goodbye to the database."""
    LOST = "lost"
    """Every connection to the database is cut, and the process goes on."""
    FULL = "full"
    """The disk has no room."""
    TIMEOUT = "timeout"
    """It took too long, and was given up."""
    AWAY = "away"
    """The other side of the network does not answer."""


@dataclass(frozen=True, slots=True)
class Before:
    """Just before a function is called: "package.module:Class.name"."""

    function: str


@dataclass(frozen=True, slots=True)
class After:
    """A function has returned, and its caller does not know yet."""

    function: str


@dataclass(frozen=True, slots=True)
class Inside:
    """In PostgreSQL, right after a statement wrote this table; its transaction is open. `on` as in
    CREATE TRIGGER.
    """

    table: str
    on: str


@dataclass(frozen=True, slots=True)
class Answered:
    """As `Inside`, once the client has the answer: outside of a transaction block that is after the
    commit, in one it is in the middle of it.
    """

    table: str
    on: str


Place = Before | After | Inside | Answered


@dataclass(frozen=True, slots=True)
class Failpoint:
    """One named place. `reaches`: how often its scene passes by at least, in one life. `away`: how
    the other side's silence is told there.
    """

    name: str
    place: Place
    faults: tuple[Fault, ...] = (Fault.DEATH,)
    reaches: int = 1
    away: type[Exception] = Unreachable


@dataclass(frozen=True, slots=True)
class Target:
    """The function of a place, and where it is held."""

    holder: Any
    name: str
    function: Callable[..., Any]

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    @classmethod
    def of(cls, place: Before | After) -> Target:
        """Raises AttributeError and ModuleNotFoundError for a name that is not there."""
        module, _, path = place.function.partition(":")
        holder: Any = import_module(module)
        *above, name = path.split(".")
        for each in above:
            holder = getattr(holder, each)
        function = inspect.getattr_static(holder, name)
        assert callable(function) or isinstance(function, staticmethod), place
        return cls(holder, name, getattr(holder, name))
