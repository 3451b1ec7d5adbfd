"""How the timers of the server went: for the operator. An error may name a party."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import AnswerModel, Count, Position, Told_at
from api.door.moments import moment
from api.door.operation import Resource
from ledger.beside import timer_runs
from ledger.beside.timer_runs import JobRun

resource = Resource("timers")


class TimerRunAnswer(AnswerModel):
    """One timer. `late`: its last success is longer ago than its alarm allows."""

    name: Annotated[str, Field(examples=["accrual"])]
    ran_at: Told_at
    succeeded_at: Told_at | None = None
    duration_us: Count | None = None
    error: str | None = None
    next_at: Told_at | None = None
    late: bool


class TimerRunsAnswer(AnswerModel):
    """The timers by name."""

    data: list[TimerRunAnswer]
    position: Position | None = None


@resource.get("/v1/timers", with_scope("operator"), TimerRunsAnswer)
def list_timers(call: Caller) -> Response:
    """Lists the timers of the server: last run, duration, error, next run.
    A timer without a row has not run on this database yet. `next_at` of a timer that failed is
    the end of its wait.
    """
    with call.read() as view:
        now_us = call.service.clock.now_us()
        runs = timer_runs.read(view.connection)
        return call.answer(view, TimerRunsAnswer(data=[_told(run, now_us) for run in runs]))


def _told(run: JobRun, now_us: int) -> TimerRunAnswer:
    return TimerRunAnswer(
        name=run.name,
        ran_at=moment(run.ran_us),
        succeeded_at=None if run.succeeded_us is None else moment(run.succeeded_us),
        duration_us=run.duration_us,
        error=run.error,
        next_at=None if run.next_us is None else moment(run.next_us),
        late=run.is_late(now_us),
    )
