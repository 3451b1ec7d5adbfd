"""Processes of a benchmark beside its own: started clean, without threads or connections of ours.

They are forked from a server of processes that has read the modules once, so that twenty writers
do not read them twenty times.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext

READ_ONCE = (
    "benchmarks.books.accrual",
    "benchmarks.books.books",
    "benchmarks.books.projections",
    "benchmarks.epochs.seal_beside",
)


def context() -> ForkServerContext:
    """Where processes, pipes, queues and events come from."""
    found = get_context("forkserver")
    found.set_forkserver_preload(list(READ_ONCE))
    return found
