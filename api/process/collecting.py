"""Garbage collection that waits while a large settlement is worked out.

A million nodes are tens of millions of small tuples without a cycle among them. Each full pass of
the collector visits them all and finds nothing, and holds up every other thread meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collecting_later() -> Generator[None, None, None]:
    """Collect only afterwards. What is worked out inside is best let go inside."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
