"""A world of facts and books for domain tests: every decision is booked, as the ledger books it.

no account below zero on its normal side; debits == credits, per asset, after every fact
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from domain import rules
from domain.money import Asset
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for


class Booked:
    """Implements `domain.stream.World`; `do` decides, records and books."""

    def __init__(self) -> None:
        self._states: dict[Stream[Any], Any] = {}
        self.books: dict[str, int] = defaultdict(int)
        self.facts: list[Any] = []

    def copied(self) -> Booked:
        """The same world to go on from: facts and states are never changed, only followed."""
        copy = Booked()
        copy._states.update(self._states)
        copy.books.update(self.books)
        copy.facts.extend(self.facts)
        return copy

    def state(self, stream: Stream[Any]) -> Any:
        return self._states.get(stream, rules.initial(stream.kind))

    def balance(self, account: str) -> int:
        return self.books.get(account, 0)

    def do(self, *commands: Any) -> list[Any]:
        """The facts it led to. Raises Refused; then nothing was recorded of that command."""
        made: list[Any] = []
        for command in commands:
            for change in rules.decide(command, self):
                self.record(change.stream, change.fact)
                made.append(change.fact)
        return made

    def record(self, stream: Stream[Any], fact: Any) -> None:
        self._states[stream] = rules.evolve(stream.kind, self.state(stream), fact)
        self.facts.append(fact)
        for entry in entries_for(fact):
            for account, units in entry.lines:
                self.books[account] += kind_of(account).side * units
                assert self.books[account] >= 0, (fact, account, self.books[account])

    def total(self, asset: Asset) -> int:
        """Debits less credits: always zero."""
        kinds = ((kind_of(name), units) for name, units in self.books.items())
        return sum(kind.side * units for kind, units in kinds if kind.asset is asset)

    def of(self, prefix: str) -> dict[str, int]:
        """Balances that are not zero of accounts whose name starts so."""
        return {
            name: units for name, units in self.books.items() if name.startswith(prefix) and units
        }
