"""Wait lists: who waits for a region, how many start it, and leaving one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    EmptyRequest,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.fleet.providers import managed_region
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.wait_list import (
    PLACE,
    WAITING_MAX,
    LeaveWaitList,
    SetWaitListTerms,
    WaitList,
    wait_list_stream,
)
from projections.fleet import regions
from projections.fleet.fleet import FLEET

resource = Resource("regions")

_LIST = r"^(region_[0-9a-z]{1,64}|place_[A-Z]{2}(-[A-Z0-9]{1,3})?)$"
ListInPath = Annotated[str, Path(pattern=_LIST)]


class WaitListTermsRequest(RequestModel):
    """`threshold`: so many start the region. `first_user_administers`: the first one starts it and
    becomes its administrator.
    """

    threshold: Annotated[int, Field(ge=1, le=WAITING_MAX)]
    first_user_administers: bool = False

    model_config = with_examples({"threshold": 5}, {"threshold": 5, "first_user_administers": True})


class WaitListAnswer(AnswerModel):
    """A list of a region, or of a place that no region holds. `number`: yours on it."""

    list_id: str
    threshold: Count
    first_user_administers: bool
    waiting: Count
    reached_at: Told_at | None = None
    number: Count | None = None
    position: Position | None = None


class WaitListsAnswer(AnswerModel):
    data: list[WaitListAnswer]
    position: Position


@resource.post(
    "/v1/wait-lists/{list_id}/terms",
    with_scope("provider", "operator"),
    WaitListAnswer,
    problems=[
        FleetReason.REGION_UNKNOWN,
        PartiesReason.NOT_PERMITTED,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PartiesReason.UNKNOWN_MODE,
    ],
)
def set_wait_list_terms(list_id: ListInPath, body: WaitListTermsRequest, call: Caller) -> Response:
    """Sets what starts a region that people wait for; the operator does for places."""

    def commands() -> SetWaitListTerms:
        _require_terms(call, list_id)
        return SetWaitListTerms(
            list_id=list_id,
            threshold=body.threshold,
            first_user_administers=body.first_user_administers,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _state(list_id, after))


@resource.post(
    "/v1/wait-lists/{list_id}/leave",
    with_scope("provider"),
    WaitListAnswer,
    problems=[FleetReason.REGION_UNKNOWN, PartiesReason.UNKNOWN_MODE],
)
def withdraw_from_wait_list(list_id: ListInPath, body: EmptyRequest, call: Caller) -> Response:
    """Takes your account off a wait list."""
    del body
    command = LeaveWaitList(
        list_id=list_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, lambda after: _state(list_id, after))


@resource.get("/v1/wait-lists", with_scope("provider", "operator", "audit:read"), WaitListsAnswer)
def list_wait_lists(call: Caller) -> Response:
    """Lists the wait lists that your account is on, or all for operators and auditors."""
    own = not call.principal.sees_all
    with call.read(FLEET) as view:
        rows = regions.read_wait_lists(view.connection, call.principal.account_id, only_own=own)
        data = [
            WaitListAnswer(
                list_id=row.list_id,
                threshold=row.threshold,
                first_user_administers=row.first_user_administers,
                waiting=row.waiting,
                reached_at=moment_or_none(row.reached_at_us),
                number=row.number,
            )
            for row in rows
        ]
        return call.answer(view, WaitListsAnswer(data=data, position=view.position))


def _require_terms(call: Call, list_id: str) -> None:
    """Raises Refused: REGION_UNKNOWN, NOT_PERMITTED."""
    if call.principal.is_operator:
        return
    if list_id.startswith(PLACE):
        raise Refused(PartiesReason.NOT_PERMITTED, rule="the operator sets terms of places")
    managed_region(call, list_id)


def _state(list_id: str, after: After) -> WaitListAnswer:
    state: WaitList = after.state(wait_list_stream(list_id))
    return WaitListAnswer(
        list_id=list_id,
        threshold=state.threshold,
        first_user_administers=state.first_user_administers,
        waiting=len(state.account_ids),
    )
