"""The breakers over HTTP: what each lets pass, what waits and why, and the governance's limits."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Units
from api.door.auth import everybody, with_scope
from api.door.call import Caller
from api.door.models import AnswerModel, Count, Position, RequestModel, Told_at, with_examples
from api.door.moments import moment
from api.door.operation import Resource
from api.door.second_person import checked
from domain.duration import SECOND_US
from domain.governance.breakers import (
    ASSETS,
    TEXT_MAX,
    WINDOW_US_MAX,
    WINDOW_US_MIN,
    Breaker,
    SetBreaker,
    stream_of,
)
from domain.prices.reasons import PricesReason

resource = Resource("breakers")

Name = Literal["mint", "payout", "cash_out"]
NameInPath = Annotated[Name, Path()]
Window = Annotated[int, Field(ge=WINDOW_US_MIN // SECOND_US, le=WINDOW_US_MAX // SECOND_US)]


class BreakerLimitRequest(RequestModel):
    """`limit`: units that may pass in a window; absent: no limit."""

    limit: Units | None = None
    window_seconds: Window
    reason: Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]

    model_config = with_examples(
        {
            "limit": "1500000000000",
            "window_seconds": 86_400,
            "reason": "A week's emission and a tenth",
        }
    )


class BreakerWaitingAnswer(AnswerModel):
    """What does not pass yet: `aggregate` and `amount` were more than the limit."""

    ref: str
    amount: Units
    aggregate: Units
    reason: str
    since: Told_at


class BreakerAnswer(AnswerModel):
    """`aggregate` counts against the limit now, and fades within a window."""

    breaker: Name
    asset: Literal["TOKEN", "CREDIT"]
    limit: Units | None = None
    window_seconds: Count
    aggregate: Units
    waiting: list[BreakerWaitingAnswer]
    position: Position | None = None


class BreakersAnswer(AnswerModel):
    breakers: list[BreakerAnswer]
    position: Position | None = None


@resource.get("/v1/breakers", everybody(), BreakersAnswer)
def list_breakers(call: Caller) -> Response:
    """Lists the limits on minting, promising and paying out, and the amounts that wait for them."""
    market = call.service.ledger.market
    with call.read() as view:
        told = [_told(name, market.state_of(stream_of(name)), call.now_us) for name in ASSETS]
        return call.answer(view, BreakersAnswer(breakers=told))


@resource.post(
    "/v1/breakers/{breaker}/limit",
    with_scope("operator"),
    BreakerAnswer,
    problems=[PricesReason.AMOUNT_OUT_OF_RANGE, PricesReason.BAD_WINDOW],
    checked=True,
)
def set_breaker(breaker: NameInPath, body: BreakerLimitRequest, call: Caller) -> Response:
    """Sets or removes the limit of a breaker. The reason is recorded for good."""
    command = SetBreaker(
        breaker=breaker,
        limit=None if body.limit is None else int(body.limit),
        window_us=body.window_seconds * SECOND_US,
        reason=body.reason,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(
        lambda: checked(call, command),
        lambda after: _told(breaker, after.state(stream_of(breaker)), call.now_us),
    )


def _told(name: str, state: Breaker, now_us: int) -> BreakerAnswer:
    return BreakerAnswer.model_validate(
        {
            "breaker": name,
            "asset": ASSETS[name].value,
            "limit": None if state.limit is None else str(state.limit),
            "window_seconds": state.window_us // SECOND_US,
            "aggregate": str(state.held(now_us)),
            "waiting": [
                BreakerWaitingAnswer(
                    ref=one.ref,
                    amount=str(one.amount),
                    aggregate=str(one.aggregate),
                    reason=one.reason,
                    since=moment(one.at_us),
                )
                for one in state.waiting.values()
            ],
        }
    )
