"""given(past facts).when(command).then(new facts): the language of the domain's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

import pytest

from domain import rules
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream


@dataclass(frozen=True)
class Scene:
    """A world made of facts and balances; implements `domain.stream.World`."""

    past: tuple[tuple[Stream[Any], Any], ...] = ()
    balances: Mapping[str, int] = field(default_factory=dict)
    _folded: dict[Stream[Any], tuple[int, Any]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Of a stream: its state after so many facts of the past."""

    def given(self, *past: tuple[Stream[Any], Any]) -> Scene:
        after = replace(self, past=self.past + past)
        after._folded.update(self._folded)
        return after

    def having(self, balances: Mapping[str, int]) -> Scene:
        return replace(self, balances={**self.balances, **balances})

    def state(self, stream: Stream[Any]) -> Any:
        known = self._folded.get(stream)
        count, state = known or (0, rules.initial(stream.kind))
        for where, fact in islice(self.past, count, None):
            if where == stream:
                state = rules.evolve(stream.kind, state, fact)
        self._folded[stream] = len(self.past), state
        return state

    def balance(self, account: str) -> int:
        return self.balances.get(account, 0)

    def when(self, command: Any) -> Outcome:
        return Outcome(self, command)

    def after(self, command: Any) -> Scene:
        """The scene with whatever the command leads to."""
        return self.given(*((c.stream, c.fact) for c in rules.decide(command, self)))


@dataclass(frozen=True)
class Outcome:
    scene: Scene
    command: Any

    def changes(self) -> list[Change]:
        return rules.decide(self.command, self.scene)

    def then(self, *expected: tuple[Stream[Any], Any]) -> None:
        assert [(c.stream, c.fact) for c in self.changes()] == list(expected)

    def then_nothing(self) -> None:
        self.then()

    def then_refused(self, reason: Reason, **facts: object) -> None:
        """Refused for this reason and told these facts; `...` stands for any value of one.

        Where a decision refuses twice for one reason, its facts tell which rule it was.
        """
        with pytest.raises(Refused) as caught:
            self.changes()
        assert caught.value.reason is reason
        told = caught.value.facts
        assert facts.keys() <= told.keys(), told
        assert {name: told[name] for name, fact in facts.items() if fact is not ...} == {
            name: fact for name, fact in facts.items() if fact is not ...
        }


class Does(Protocol):
    """A world that records what a command leads to."""

    def do(self, command: Any, /) -> Any: ...


def refused(world: Does, *commands: Any) -> Reason:
    """Why the last one was refused, once those before it are done. Fails where it is not."""
    *before, last = commands
    for command in before:
        world.do(command)
    with pytest.raises(Refused) as caught:
        world.do(last)
    return caught.value.reason
