"""Where the lanes of a made-up cut are added up: here, or in several processes.

    list(executor.map(function, lanes)) == [function(lane) for lane in lanes]

Results come in the order of the lanes, whoever is ready first, so a sum over them never depends on
how many processes there were. `function` and what it takes and gives travel by pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Protocol, TypeVar

Lane = TypeVar("Lane")
Found = TypeVar("Found")


class Executor(Protocol):
    """All of one kind of work, lane by lane."""

    def map(self, function: Callable[[Lane], Found], lanes: Iterable[Lane]) -> Iterator[Found]: ...


class Serial:
    """One lane after the other, in this process."""

    def map(self, function: Callable[[Lane], Found], lanes: Iterable[Lane]) -> Iterator[Found]:
        return map(function, lanes)


class Processes:
    """Lanes shared out among so many processes. Started anew, not forked: threads and connections
    of this one stay here.
    """

    def __init__(self, count: int) -> None:
        self._pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))

    def map(self, function: Callable[[Lane], Found], lanes: Iterable[Lane]) -> Iterator[Found]:
        return self._pool.map(function, lanes)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
