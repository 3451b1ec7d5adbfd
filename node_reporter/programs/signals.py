"""How a program is asked to end: by SIGTERM of a service manager, or by Ctrl-C."""

from __future__ import annotations

import _thread
import signal
from collections.abc import Callable


def on_end(stop: Callable[[], None]) -> None:
    """At SIGTERM or SIGINT call `stop`, in a thread of its own.

    Python runs a handler in the middle of what the main thread does. Where that waits for an event
    it may hold the event's lock, and `Event.set` in the handler would wait for it for ever.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: _thread.start_new_thread(stop, ()))
