"""The loop of a reporter ends when it is told to, whatever it waits for."""

from __future__ import annotations

import threading
import time
from typing import Any

from node_reporter.agent.loop import Loop
from node_reporter.clock import SystemClock
from tests.processes import until


class Silent:
    """A reporter and its driver, of which nothing is heard; a quarter of its tick is minutes."""

    boards = ()
    tick_us = 1_200_000_000
    must_restart = False

    def __init__(self) -> None:
        self.calls = list[str]()

    def faults(self, _seconds: float) -> tuple[()]:
        time.sleep(0.01)
        return ()

    def __getattr__(self, name: str) -> Any:
        return lambda **_: self.calls.append(name)


def test_a_loop_that_hears_nothing_any_more_ends_when_it_is_told_to() -> None:
    reporter: Any = Silent()
    loop = Loop(reporter, reporter, SystemClock())
    running = threading.Thread(target=loop.run, daemon=True)
    running.start()
    until(lambda: len(threading.enumerate()) > 2)
    time.sleep(0.2)  # it waits
    loop.stop()
    running.join(10)
    assert not running.is_alive()
    assert reporter.calls[-2:] == ["stop", "close"], "what was measured is kept"
