"""Tasks on a Ray cluster: the one file that speaks Ray, of the extra `tallystick[ray]`.

A task whose process or node is lost is done again elsewhere, at most `RETRIES_MAX` times. Every
node needs this version of tallystick and sees the files that the tasks name under the same paths;
address, token and certificates are Ray's own settings (`RAY_AUTH_TOKEN_PATH`, `RAY_USE_TLS`).
Without an address a cluster of this machine is started and ended with the context.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any

from ledger.fan_out.executor import Found, Task, WorkLost

RETRIES_MAX = 5
AHEAD = 4
"""Tasks given to the cluster for each of its processors."""
NAME = "tallystick"
"""Of a task, as the cluster and its processes show it."""
SETTINGS = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
"""Whoever reaches a cluster without a token runs code on it; and nothing is told to its makers."""
TOKENS = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


class RayTasks:
    """A cluster at an address, or one of this machine; a context that leaves it."""

    def __init__(self, address: str | None = None) -> None:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        if address is None and not os.environ.keys() & TOKENS:
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        import ray  # reads its settings here

        self._ray: Any = ray
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            logging_level="ERROR",
            log_to_driver=False,
        )

    def map(self, function: Callable[[Task], Found], tasks: Iterable[Task]) -> Iterator[Found]:
        ray = self._ray
        remote = ray.remote(_done).options(
            name=NAME, num_cpus=1, max_retries=RETRIES_MAX, scheduling_strategy="SPREAD"
        )
        work = ray.put(function)
        rest, waiting = iter(tasks), deque[Any]()
        while True:
            room = AHEAD * self.processors() - len(waiting)
            waiting += [remote.remote(work, task) for task in islice(rest, max(1, room))]
            if not waiting:
                return
            try:
                yield ray.get(waiting.popleft())
            except ray.exceptions.RayTaskError as failed:
                raise failed.cause from None
            except ray.exceptions.RayError as lost:
                raise WorkLost(f"the cluster lost a task: {lost}") from lost

    def processors(self) -> int:
        """Those of all nodes that live."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def __enter__(self) -> RayTasks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ray.shutdown()


def _done(function: Callable[[Task], Found], task: Task) -> Found:
    """What a processor of the cluster does: Ray takes no `partial` for a task."""
    return function(task)
