"""Is a history of concurrent operations one that a sequential model could have given?

    linearizable  <=>  some order of the operations keeps every "returned before invoked", and in it
                       the model answers each as it was answered

The search of Wing and Gong (1993) with Lowe's memory of what was tried: from a state, any operation
may be next that no other one left over returned before; a pair of (operations done, state) that led
nowhere is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Operation:
    """One call: when it began and ended by one clock, what was asked, and what was answered."""

    invoked_ns: int
    returned_ns: int
    asked: tuple[str, ...]
    answered: str


Model = Callable[[State, tuple[str, ...]], tuple[str, State]]
"""What the model answers in a state, and the state after it. A state is hashable."""


def linearization(
    history: Sequence[Operation], model: Model[State], initial: State
) -> list[Operation] | None:
    """An order that explains the history, or None: there is none."""
    calls = sorted(history, key=lambda one: one.invoked_ns)
    everything = (1 << len(calls)) - 1
    tried: set[tuple[int, State]] = set()
    # One entry per operation chosen: what was done before it, the state then, what is still to try.
    done, state, order = 0, initial, list[int]()
    stack = [iter(_next(calls, done))]
    past: list[tuple[int, State]] = []
    while True:
        if done == everything:
            return [calls[index] for index in order]
        for index in stack[-1]:
            answer, after = model(state, calls[index].asked)
            key = (done | 1 << index, after)
            if answer != calls[index].answered or key in tried:
                continue
            tried.add(key)
            past.append((done, state))
            order.append(index)
            done, state = key
            stack.append(iter(_next(calls, done)))
            break
        else:
            stack.pop()
            if not past:
                return None
            done, state = past.pop()
            order.pop()


def _next(calls: Sequence[Operation], done: int) -> list[int]:
    """Operations that are left and that no other one left returned before."""
    left = [index for index in range(len(calls)) if not done >> index & 1]
    first_return = min((calls[index].returned_ns for index in left), default=0)
    return [index for index in left if calls[index].invoked_ns <= first_return]
