"""Timers: what the server does by the clock.

Each timer has one leader (an advisory lock), is harmless to repeat, and keeps no position that the
logs do not keep. A timer that fails waits longer each time and shows its error in `/readyz`; one
of money stops at the item that fails and never skips it. Each stands in the registry of its room.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass

import psycopg

from api.process.leading import leading
from api.process.service import Service
from api.process.timer import Timer
from api.rooms import TIMERS
from domain.duration import SECOND_US
from ledger.beside import timer_runs
from ledger.log.durable import cancelled_after, unwaited
from ledger.log.full_disk import DISK
from projections import tables
from projections.runner import Connection

logger = logging.getLogger(__name__)

PAUSE_SECONDS_MAX = 300.0
STOP_SECONDS = 10.0
"""After a signal timers end what they do; then what they wait for at the database is cancelled."""


def load() -> None:
    """Import what timers need. Raises what an import raises."""
    for room in TIMERS:
        room()


def all_timers(service: Service) -> tuple[Timer, ...]:
    """The timers of a service, in the order of `run_once`: by their turns."""
    found = [each for room in TIMERS for each in room()]
    made = [each if isinstance(each, Timer) else each(service) for each in found]
    return tuple(sorted((each for each in made if each is not None), key=lambda each: each.turn))


@dataclass(slots=True)
class Timers:
    """Runs the timers of one process, each in a thread of its own, and knows how they went."""

    service: Service
    timers: Sequence[Timer] = ()

    def __post_init__(self) -> None:
        self.timers = tuple(self.timers) or all_timers(self.service)

    def run_once(self) -> dict[str, int]:
        """Every timer once, in order, in this thread; what each did. Errors are raised."""
        done: dict[str, int] = {}
        try:
            with self.service.connect() as connection:
                for timer in self.timers:
                    done[timer.name] = self._run(timer, connection)
        finally:
            self._close()
        return done

    def run(self, stop: threading.Event) -> None:
        """All timers and the followers of both logs until `stop` is set."""
        threads = [
            threading.Thread(target=self._repeat, args=(timer, stop), name=f"job-{timer.name}")
            for timer in self.timers
        ]
        threads.append(
            threading.Thread(
                target=tables.follow, args=(self.service.conninfo, stop), name="projections"
            )
        )
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._close()

    def _close(self) -> None:
        for timer in self.timers:
            timer.close()

    def _repeat(self, timer: Timer, stop: threading.Event) -> None:
        pause = 1.0
        while not stop.is_set():
            try:
                with self.service.connect() as connection:
                    while not stop.is_set():
                        self._run(timer, connection, wait_s=pause)
                        pause = 1.0
                        stop.wait(timer.every_s)
            except Exception as error:
                if stop.is_set():
                    logger.warning("timer %s was ended: %s", timer.name, type(error).__name__)
                    return
                DISK.notice(error)
                logger.exception("timer %s waits %.0f s", timer.name, pause)
                stop.wait(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _run(self, timer: Timer, connection: Connection, *, wait_s: float = 0.0) -> int:
        """One round, if this process leads the timer; how it went is there for every process.
        `wait_s`: how long the timer waits after an error, beside the time of the round.
        """
        now_us = self.service.clock.now_us()
        with (
            leading(connection, timer.name, rests_on_log=timer.rests_on_log) as leads,
            nullcontext() if timer.rests_on_log else unwaited(connection),
        ):
            if not leads:
                return 0
            began_ns, wait_us = time.monotonic_ns(), round(timer.every_s * SECOND_US)
            try:
                with self.service.traces.timer(timer.name):
                    done = timer.run(self.service, connection, now_us)
            except Exception as error:
                told, wait_us = f"{type(error).__name__}: {error}", round(wait_s * SECOND_US)
                with suppress(psycopg.Error):  # the first error is the one to tell
                    _record(timer, connection, now_us, began_ns, wait_us, told)
                raise
            _record(timer, connection, now_us, began_ns, wait_us, None)
        return done


def _record(
    timer: Timer,
    connection: Connection,
    now_us: int,
    began_ns: int,
    wait_us: int,
    error: str | None,
) -> None:
    took_us = (time.monotonic_ns() - began_ns) // 1_000
    timer_runs.record(
        connection,
        timer.name,
        now_us,
        timer.alarm_s * SECOND_US,
        error,
        duration_us=took_us,
        next_us=now_us + took_us + wait_us,
    )


def run(service: Service, *, once: bool, stop: threading.Event) -> dict[str, int]:
    """`tallystick jobs [--once]`: every timer once, or all of them until `stop` is set, and some
    seconds longer at most.
    """
    timers = Timers(service)
    with cancelled_after(stop, STOP_SECONDS):
        if once:
            return timers.run_once()
        timers.run(stop)
    return {}
