"""Runs seeds of one suite in processes, each with a scene of its own, and tells how each ended.

A process that dies or hangs fails its seed, and another one goes on with the next.
"""

from __future__ import annotations

import gc
import importlib
import logging
import multiprocessing
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from hypothesis import settings

from tests import examples

STOP_S = 20
"""A process that was told to end has so long to stop what it started."""
_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Result:
    seed: int
    seconds: float
    failure: str | None
    """What was raised, as a traceback; None if the seed passed."""


def runner(module: str, stack: ExitStack) -> Callable[[int], None]:
    """`run` of a suite's module, with the scene that the module opens, if it has one."""
    suite: Any = importlib.import_module(module)
    if not hasattr(suite, "seeded_scene"):
        return suite.run  # type: ignore[no-any-return]
    scene = stack.enter_context(suite.seeded_scene())
    return lambda seed: suite.run(seed, scene)


class SuiteBroken(Exception):
    """The module cannot be imported, or its scene cannot be made: no seed is to blame."""


def results(
    module: str, seeds: Iterable[int], jobs: int, limit_s: int
) -> Generator[Result, None, None]:
    """As they come. Closing it stops the processes."""
    waiting: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    given = list(seeds)
    for seed in given:
        waiting.put(seed)
    told: queue.SimpleQueue[Result | Exception] = queue.SimpleQueue()
    stopping = threading.Event()
    lanes = [
        threading.Thread(target=_lane, args=(module, waiting, told, stopping, limit_s))
        for _ in range(min(jobs, len(given)))
    ]
    for lane in lanes:
        waiting.put(None)
        lane.start()
    try:
        for _ in given:
            result = told.get()
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        stopping.set()
        for lane in lanes:
            lane.join()


def _lane(
    module: str,
    waiting: queue.SimpleQueue[int | None],
    told: queue.SimpleQueue[Result | Exception],
    stopping: threading.Event,
    limit_s: int,
) -> None:
    """One process after the other, each until it dies."""
    worker: _Worker | None = None
    try:
        while not stopping.is_set() and (seed := waiting.get()) is not None:
            worker = worker or _Worker(module)
            began = time.monotonic()
            failure, lives = worker.run(seed, limit_s, stopping)
            if not lives:
                worker.stop()
                worker = None
            told.put(Result(seed, time.monotonic() - began, failure))
    except Exception as broken:  # whatever it is: nobody else would tell, and who waits would wait
        told.put(broken)
    finally:
        if worker is not None:
            worker.stop()


class _Worker:
    def __init__(self, module: str) -> None:
        self._line, theirs = _spawn.Pipe()
        self._process = _spawn.Process(target=_work, args=(module, theirs))
        self._process.start()
        theirs.close()
        try:
            broken = self._line.recv()
        except EOFError:
            broken = "its process ended\n"
        if broken is not None:
            self.stop()
            raise SuiteBroken(f"{module}: {broken}")

    def run(self, seed: int, limit_s: int, stopping: threading.Event) -> tuple[str | None, bool]:
        """What was raised; whether the process lives on."""
        ends = time.monotonic() + limit_s
        try:
            self._line.send(seed)
            while not self._line.poll(1):
                if stopping.is_set() or time.monotonic() > ends:
                    self._process.terminate()
                    return f"not done after {limit_s} s\n", False
            return self._line.recv(), True
        except (EOFError, OSError):
            self._process.join(STOP_S)
            return f"the process ended with {self._process.exitcode}\n", False

    def stop(self) -> None:
        self._line.close()
        self._process.join(STOP_S if self._process.exitcode is None else 0)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(STOP_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(module: str, line: Connection) -> None:
    """The process: each seed that comes is run, and what it raised is sent back."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent closes the line
    logging.getLogger().addHandler(logging.NullHandler())  # no word of each request that fails
    examples.register()
    settings.load_profile("seeds")
    with ExitStack() as stack:
        try:
            run = runner(module, stack)
        except Exception:
            line.send(traceback.format_exc())
            return
        gc.freeze()  # as the tests do: the collector took a tenth of the time of a simulation
        gc.set_threshold(20_000, 20, 20)
        line.send(None)
        while True:
            try:
                seed = line.recv()
            except EOFError:
                return
            try:
                run(seed)
                failure = None
            except Exception:
                failure = traceback.format_exc()
            line.send(failure)


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(1)
