"""Usage reports: what a renter's leases used, by hour, day, client, project, end user and model."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response

from api.door.amounts import Money, Units, credits_
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import (
    AccountQuery,
    AnswerModel,
    Count,
    FromQuery,
    MomentQuery,
    TextQuery,
    Told_at,
    page_of,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.timespans import bounded
from api.metering.unbilled import UnbilledUsageAnswer, not_billed
from api.parties.accounts import visible
from domain.parties.reasons import PartiesReason
from projections.lease.leases import LEASES
from projections.metering import usage_hours
from projections.metering.usage_hours import START, USAGE_HOURS

resource = Resource("usage")

_NAMES = "client_id|project_id|end_user_ref|model"
By = Annotated[
    str,
    Query(
        pattern=rf"^(hour|day|{_NAMES})(,({_NAMES})){{0,4}}$",
        description="What to sum by: hour or day first, then any of the rest, commas between",
    ),
]


class UsageSummaryAnswer(AnswerModel):
    """One group: sum, largest accrual and number of accruals. `hour` and `day` begin it, in UTC.

    A lease hour counts in the UTC hour in which it begins; one accrual is a lease hour or the last
    part of one.
    """

    hour: Told_at | None = None
    day: Told_at | None = None
    client_id: str | None = None
    project_id: str | None = None
    end_user_ref: str | None = None
    model: str | None = None
    accruals: Count
    gpu_us: Units
    gpu_us_max: Units
    charge: Money
    charge_max: Money


class UsageSummaryPage(page_of(UsageSummaryAnswer)):  # type: ignore[misc]
    """A page of a list. `unbilled_estimate`, of a period that is not over and without filters: what
    running leases used and no group has yet, because each full hour is billed when it ends.
    """

    unbilled_estimate: UnbilledUsageAnswer | None = None


@resource.get(
    "/v1/usage/summary",
    with_scope("billing:read", "account", "operator"),
    UsageSummaryPage,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_usage_summary(
    call: Caller,
    by: By = "day",
    from_: FromQuery = None,
    to: MomentQuery = None,
    client_id: TextQuery = None,
    project_id: TextQuery = None,
    end_user_ref: TextQuery = None,
    model: TextQuery = None,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists usage of your leases: hours that begin in [from, to), at most 366 days.

    By default the 31 days up to `to` or now. Operators and auditors name the account.
    """
    who = account_id or call.principal.account_id
    visible(call.principal, who)
    names = tuple(dict.fromkeys(by.split(",")))
    from_us, to_us = bounded(from_, to, call.now_us)
    place = call.place(cursor, list(START))
    filters = {
        "client_id": client_id,
        "project_id": project_id,
        "end_user_ref": end_user_ref,
        "model": model,
    }
    with call.read(USAGE_HOURS, LEASES) as view:
        rows = usage_hours.read_usage_hours(
            view.connection,
            who,
            from_us=from_us,
            to_us=to_us,
            by=names,
            after=place.after,
            limit=limit + 1,
            **filters,
        )
        shown, more, headers = call.cut(view, place, rows, limit, lambda row: row.key)
        groups = [_used(row, by).model_dump(mode="json", exclude_none=True) for row in shown]
        if cursor is None and to_us >= call.now_us and set(filters.values()) == {None}:
            running = not_billed(call.service.ledger, view.connection, who, call.now_us)
            more["unbilled_estimate"] = running.model_dump(mode="json")
        return call.answer(view, {"data": groups, **more}, headers)


def _used(row: usage_hours.Used, by: str) -> UsageSummaryAnswer:
    bucket: dict[str, Any] = {by.split(",")[0]: moment_or_none(row.bucket_us)}
    return UsageSummaryAnswer(
        **(bucket if row.bucket_us is not None else {}),
        client_id=row.client_id,
        project_id=row.project_id,
        end_user_ref=row.end_user_ref,
        model=row.model,
        accruals=row.accruals,
        gpu_us=str(row.gpu_us),
        gpu_us_max=str(row.gpu_us_max),
        charge=credits_(row.charge),
        charge_max=credits_(row.charge_max),
    )
