"""A round of a job over many things: what fails stops for itself, and the others go on.

    done + stopped is all there was to do          unless the log is away: then nothing would go on

The round fails at its end, so that somebody looks; by then everything else is done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

from ledger.log.handle import LOG_AWAY

Given = ParamSpec("Given")


class OneByOne:
    """`told` says in the log what stops: "the plan of %s stops"."""

    def __init__(self, logger: logging.Logger, told: str) -> None:
        self.done = 0
        self._logger = logger
        self._told = told
        self._stopped: list[str] = []

    def take(
        self,
        name: str,
        work: Callable[Given, int | None],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> None:
        """Do the work of one thing and count what it did; work that does not count is one."""
        try:
            counted = work(*args, **kwargs)
            self.done += 1 if counted is None else counted
        except LOG_AWAY:
            raise  # it is no fault of this one, and the next one would wait as long
        except Exception:
            self._logger.exception(self._told, name)
            self._stopped.append(name)

    def end(self, stopped: type[Exception]) -> int:
        """How much was done. Raises `stopped` where anything was left behind."""
        if self._stopped:
            raise stopped(f"{len(self._stopped)} stop, the first is {self._stopped[0]}")
        return self.done
