"""A world whose balances are what its facts book: decisions, postings and limits without a
database. Positions count from 1, as in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from domain import rules
from domain.income.adjustment import ChargedLine
from domain.money import Asset
from domain.stream import Change, Stream
from ledger.beside.charged import charge_of, line_of
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from tests.given import Scene


@dataclass
class Booked:
    """Implements `domain.stream.World`; `log` holds every fact, position 1 first."""

    balances: dict[str, int] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    _states: dict[Stream[Any], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, scene: Scene) -> Self:
        """The world of a scene; its facts book nothing, its balances are given."""
        made = cls(dict(scene.balances))
        for stream, fact in scene.past:
            made._record(Change(stream, fact))
        return made

    def state(self, stream: Stream[Any]) -> Any:
        return self._states.get(stream, rules.initial(stream.kind))

    def balance(self, account: str) -> int:
        return self.balances.get(account, 0)

    def do(self, command: Any) -> list[Change]:
        """Record what a command leads to, as the door would."""
        changes = rules.decide(command, self)
        for change in changes:
            self._record(change)
            self._book(change.fact)
        return changes

    def lines(self) -> list[ChargedLine]:
        """Every charge so far, oldest first."""
        return [
            line_of(position, change.fact, self.booked(change.fact))
            for position, change in enumerate(self.log, 1)
            if charge_of(change.fact)
        ]

    def booked(self, fact: Any) -> dict[str, int]:
        """What a fact moves in credits: account -> units, debits above zero."""
        found = [entry for entry in entries_for(fact) if entry.asset is Asset.CREDIT]
        return dict(found[0].lines) if found else {}

    def total(self) -> int:
        """Debits less credits over every account of credits: 0, whatever is recorded."""
        kinds = {name: kind_of(name) for name in self.balances}
        return sum(
            kind.side * self.balances[name]
            for name, kind in kinds.items()
            if kind.asset is Asset.CREDIT
        )

    def facts(self, kind: type[Any]) -> list[Any]:
        return [change.fact for change in self.log if isinstance(change.fact, kind)]

    def _record(self, change: Change) -> None:
        state = rules.evolve(change.stream.kind, self.state(change.stream), change.fact)
        self._states[change.stream] = state
        self.log.append(change)

    def _book(self, fact: Any) -> None:
        for entry in entries_for(fact):
            for account, units in entry.lines:
                left = self.balance(account) + kind_of(account).side * units
                assert left >= 0, f"{account} would be {left} after {fact}"
                self.balances[account] = left
