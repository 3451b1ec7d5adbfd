"""Where work that falls into parts is done: here, in processes, or on a cluster (decision 0079).

    list(executor.map(function, tasks)) == [function(task) for task in tasks]

Results come in the order of the tasks, whichever is ready first, so nothing that is made of them
depends on how many processors there are. `function`, what it takes and what it gives travel by
pickle. A task whose process or machine is lost is done again: whatever it writes beside its result
has to appear by rename.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Found = TypeVar("Found")


class WorkLost(Exception):
    """The processes that did a task ended, again and again: no result of it will come."""


class Executor(Protocol):
    """All tasks of one kind, in order."""

    def map(self, function: Callable[[Task], Found], tasks: Iterable[Task]) -> Iterator[Found]:
        """The results in order of the tasks. Raises what a task raises; WorkLost."""


class Serial:
    """One task after the other, in this process."""

    def map(self, function: Callable[[Task], Found], tasks: Iterable[Task]) -> Iterator[Found]:
        return map(function, tasks)


SERIAL = Serial()
