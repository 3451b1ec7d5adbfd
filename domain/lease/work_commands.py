"""What a node was told to do with the work of a lease, and what it answered.

    start is told -> acknowledged -> (ready) -> work ended
    lease closed  -> stop is told  -> acknowledged: nothing of it runs any more

Both facts are on the stream `lease:{lease_id}`. An acknowledgement names the hash of the work it is
about, so nobody can say later that something else was meant. The decisions are in
`domain/leasing/work.py`; billing starts with `LeaseReady`, never here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from domain.frozen import replace

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseCommandAcknowledged:
    """Stream `lease:{lease_id}`."""

    lease_id: str
    node_id: str
    command: str  # COMMANDS
    workload_sha256: str  # of the job, as the node computed it from what it was told
    executor: str  # which of a node's executors has the work, 16 hex digits
    runner: str  # RUNNERS: by what it is confined
    at_us: int
    free_us: int | None  # of a start: billing begins at the latest so much later; None: no bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWorkEnded:
    """The work ended by itself, or was lost; a stop of ours is acknowledged instead."""

    lease_id: str
    node_id: str
    executor: str
    outcome: str  # OUTCOMES
    exit_code: int | None  # 0..255, of a process that a signal ended 128 + its number
    at_us: int


START, STOP = "start", "stop"
COMMANDS = (START, STOP)
RUNNERS = ("process", "trusted", "docker", "other")
EXITED, LIMITED, LOST, NOT_STARTED = "exited", "limited", "lost", "not_started"
OUTCOMES = (EXITED, LIMITED, LOST, NOT_STARTED)
"""`limited`: a limit of the lease ended it; `lost`: the node no longer has it (it restarted);
`not_started`: the node could not begin it, and says so against itself: nothing of it is charged.
"""
EXIT_CODE_MAX = 255


# What is remembered.


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one lease as far as its node has told."""

    started: LeaseCommandAcknowledged | None = None
    ended: LeaseWorkEnded | None = None
    stopped: LeaseCommandAcknowledged | None = None

    @property
    def may_run(self) -> bool:
        """Whether something of it may still run on the node."""
        return self.started is not None and self.ended is None and self.stopped is None


NO_WORK = Work()


def evolve_work(work: Work, fact: LeaseCommandAcknowledged | LeaseWorkEnded) -> Work:
    """The work after one more fact."""
    match fact:
        case LeaseCommandAcknowledged():
            if fact.command == START:
                return replace(work, started=fact)
            return replace(work, stopped=fact)
        case LeaseWorkEnded():
            return replace(work, ended=fact)
        case _:
            assert_never(fact)
