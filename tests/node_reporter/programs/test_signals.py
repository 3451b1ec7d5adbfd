"""A program ends when it is asked to, whatever its main thread does just then."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal, threading
from node_reporter.programs.signals import on_end

event = threading.Event()
on_end(event.set)
with event._cond:  # as in the middle of `event.wait()`
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
assert event.wait(20)
"""


def test_a_signal_in_the_middle_of_waiting_for_it_ends_the_wait() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], timeout=60, check=True)
