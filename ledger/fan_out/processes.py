"""Tasks in several processes of this machine.

They are started anew and not forked, so that threads and connections of this process stay here. A
process that is killed takes the pool with it: the tasks that were not done go to a new pool, the
first of them alone. A task under which the pool dies `DEATHS_MAX` times is given up, with an error
that says so: what kills a process each time, such as too little memory, would do so for ever.

A pool of Python that breaks can forget a process or a task that it is given in that instant, and
wait for it without end (3.11). So all processes start before the first task, and a task of which a
broken pool tells nothing counts as not done.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any

from ledger.fan_out.executor import Found, Task, WorkLost

DEATHS_MAX = 3
AHEAD = 2
"""Tasks that wait for each process, so that none is idle while results are taken."""
OBJECTS_MAX = 1_000_000
"""New objects after which a process looks for cycles. A task is some 100,000 small tuples without
one: at Python's 700 a third of its time goes into looking through them."""
NICE = 10
"""Processors are for the server and its database first, for these processes where one is free."""
ASKED_S = 1
"""A pool of which nothing comes is asked this often whether it broke."""


def usable() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(slots=True)
class _Waiting:
    """A task whose result nobody has taken; `future` is None until it is given to the pool."""

    task: Any
    future: Future[Any] | None = None


class Processes:
    """So many processes; a context that ends them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._ended = False
        self._pool = self._started()

    def map(self, function: Callable[[Task], Found], tasks: Iterable[Task]) -> Iterator[Found]:
        rest = iter(tasks)
        waiting: deque[_Waiting] = deque()
        deaths = 0
        try:
            while True:
                room = self._count * (1 + AHEAD) - len(waiting)
                waiting += [_Waiting(task) for task in islice(rest, room)]
                if not waiting:
                    return
                # After a death the first one is alone: what kills its process then is itself.
                for one in islice(waiting, 1 if deaths else None):
                    one.future = one.future or self._submit(function, one.task)
                first = waiting[0]
                assert first.future is not None
                try:
                    found: Found = self._result(first.future)
                except BrokenProcessPool:
                    if self._ended:  # another thread left the context: its error is told
                        raise
                    deaths += 1
                    if deaths == DEATHS_MAX:
                        raise WorkLost(_lost(first.task)) from None
                    self._begin_again(waiting)
                    continue
                waiting.popleft()
                deaths = 0
                yield found
        finally:
            for one in waiting:
                if one.future is not None:
                    one.future.cancel()

    def _started(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            self._count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
        )
        pool._safe_to_dynamically_spawn_children = False  # type: ignore[attr-defined]
        return pool

    def _submit(self, function: Callable[[Task], Found], task: Task) -> Future[Found]:
        """In a pool that broke since the last result nothing can be submitted: that is told by the
        future, as it is of the tasks before it.
        """
        try:
            return self._pool.submit(function, task)
        except BrokenProcessPool as broken:
            told: Future[Found] = Future()
            told.set_exception(broken)
            return told

    def _result(self, future: Future[Found]) -> Found:
        """Raises what the task raises; BrokenProcessPool."""
        while not wait([future], ASKED_S).done:
            if self._pool._broken:
                raise BrokenProcessPool("the pool broke and told nothing of this task")
        return future.result()

    def _begin_again(self, waiting: Iterable[_Waiting]) -> None:
        """A new pool for what the old one did not do."""
        self._pool.shutdown()
        self._pool = self._started()
        for one in waiting:
            if one.future is not None and not _is_done(one.future):
                one.future = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended = True
        if error is not None:  # an interrupt, or what a task raised: nobody waits for the others
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(cancel_futures=True)


def _is_done(future: Future[Any]) -> bool:
    """With a result, or with an error of its own."""
    return future.done() and not isinstance(future.exception(), BrokenProcessPool)


def _lost(task: object) -> str:
    return (
        f"a process ended {DEATHS_MAX} times before this task was done: {str(task)[:200]};"
        " was it killed for its memory?"
    )


def _begin() -> None:
    """What a process does first: an interrupt is for its parent, whose end is its own. What waits
    for an answer goes before it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(OBJECTS_MAX)
    os.nice(NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
