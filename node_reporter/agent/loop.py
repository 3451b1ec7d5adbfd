"""Real time for a `Reporter`: one thread per board, one for driver events, one that decides.

Only the deciding thread touches the reporter and its spool. A board's thread asks its board and
queues the answer with its own stamps, so a call that hangs delays nobody else, and a slow network
costs no poll. Polls are scheduled from now: no bursts to catch up.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from node_reporter.agent.agent import Reporter
from node_reporter.clock import Clock
from node_reporter.gpus.seam import Backend, Fault, MonitorBlind
from node_reporter.meter import polling
from node_reporter.meter.polling import Sight
from node_reporter.reports.delivery import EXIT_RESTART

FAULT_WAIT_S = 5.0
JOIN_S = 2.0


class Loop:
    """Runs one reporter until told to stop, until it must restart, or for `seconds`."""

    def __init__(
        self,
        reporter: Reporter,
        backend: Backend,
        clock: Clock,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`beat` is called each time the deciding thread has come round."""
        self._reporter, self._backend, self._clock = reporter, backend, clock
        self._beat = beat
        self._heard: queue.SimpleQueue[Sight | Fault | MonitorBlind | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch_board, args=(board_id,), daemon=True)
            for board_id in reporter.boards
        ]
        self._threads.append(threading.Thread(target=self._watch_faults, daemon=True))

    def stop(self) -> None:
        """Ask the loop to end; from any thread.

        It is woken, too: a signal that comes just as its wait is over makes CPython 3.11 wait on
        without an end, and no board's thread is there any more to wake it.
        """
        self._stop.set()
        self._heard.put(None)

    def run(self, seconds: float | None = None) -> int:
        """The exit code: 0 after `stop` or `seconds`, 75 when a new process is needed.

        Raises Stopped (78). What was measured is on disk when this returns or raises.
        """
        for thread in self._threads:
            thread.start()
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._stop.is_set():
                self._listen()
                self._reporter.mark_silent()
                self._reporter.turn()
                self._beat()
                if self._reporter.must_restart:
                    return EXIT_RESTART
                if deadline is not None and time.monotonic() >= deadline:
                    return 0
            return 0
        finally:
            self._end()

    def _listen(self) -> None:
        """Wait up to a quarter tick for something, then take all there is."""
        wait_s = self._reporter.tick_us / 4_000_000
        try:
            self._take(self._heard.get(timeout=wait_s))
            while True:
                self._take(self._heard.get_nowait())
        except queue.Empty:
            return

    def _take(self, heard: Sight | Fault | MonitorBlind | None) -> None:
        """None: only woken."""
        if isinstance(heard, Sight):
            self._reporter.see(heard)
        elif isinstance(heard, Fault):
            self._reporter.notice(heard)
        elif heard is not None:
            self._reporter.lose_sight()

    def _end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_S)
        hung = any(thread.is_alive() for thread in self._threads)
        self._drain()
        try:
            self._reporter.stop()
        finally:
            self._reporter.close(driver=not hung)

    def _drain(self) -> None:
        while True:
            try:
                self._take(self._heard.get_nowait())
            except queue.Empty:
                return

    def _watch_board(self, board_id: str) -> None:
        tick_s = self._reporter.tick_us / 1_000_000
        due = time.monotonic()
        while not self._stop.is_set():
            self._heard.put(
                polling.see(
                    self._backend,
                    board_id,
                    self._clock,
                    driver_epoch=self._reporter.driver_epoch,
                    tick_us=self._reporter.tick_us,
                )
            )
            now = time.monotonic()
            due = due + tick_s if due + tick_s > now else now + tick_s
            self._stop.wait(due - now)

    def _watch_faults(self) -> None:
        while not self._stop.is_set():
            asked = time.monotonic()
            try:
                for fault in self._backend.faults(FAULT_WAIT_S):
                    self._heard.put(fault)
            except MonitorBlind as blind:
                self._heard.put(blind)
                return
            self._stop.wait(max(0.0, 0.5 - (time.monotonic() - asked)))
