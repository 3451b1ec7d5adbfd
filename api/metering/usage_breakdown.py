"""Usage by kind of job, node, pool, client, group and end user: for renters, and for providers."""

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
    NodeQuery,
    TextQuery,
    Told_at,
    TruthQuery,
    page_of,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.timespans import bounded
from api.parties.accounts import visible
from domain.parties.reasons import PartiesReason
from projections.parties import demand
from projections.parties.demand import DEMAND, NAMES, START

resource = Resource("usage")

_NAMES = "|".join(NAMES)
By = Annotated[
    str,
    Query(
        pattern=rf"^(hour|day|{_NAMES})(,({_NAMES})){{0,7}}$",
        description="What to sum by: hour or day first, then any of the rest, commas between",
    ),
]


class UsageBreakdownAnswer(AnswerModel):
    """One grouping. `hour` and `day` begin it, in UTC. By `group_id` a lease is told once for each
    group that it was counted in.
    """

    hour: Told_at | None = None
    day: Told_at | None = None
    kind: str | None = None
    work: str | None = None
    node_id: str | None = None
    pool_id: str | None = None
    client_id: str | None = None
    project_id: str | None = None
    end_user_ref: str | None = None
    group_id: str | None = None
    accruals: Count
    gpu_us: Units
    charge: Money


@resource.get(
    "/v1/usage/breakdown",
    with_scope("billing:read", "earnings:read", "account", "operator"),
    page_of(UsageBreakdownAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_usage_breakdown(
    call: Caller,
    by: By = "kind",
    as_provider: TruthQuery = False,
    from_: FromQuery = None,
    to: MomentQuery = None,
    kind: TextQuery = None,
    work: TextQuery = None,
    node_id: NodeQuery = None,
    pool_id: TextQuery = None,
    client_id: TextQuery = None,
    project_id: TextQuery = None,
    end_user_ref: TextQuery = None,
    group_id: TextQuery = None,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists usage of leases, by kind of job, node, pool, client, project, end user or group.

    Your own leases, or with `as_provider` those on your nodes; operators and auditors see all
    accounts unless they name one. Hours that begin in [from, to), at most 366 days.
    """
    who = account_id or call.principal.only
    if account_id is not None:
        visible(call.principal, account_id)
    names = tuple(dict.fromkeys(by.split(",")))
    from_us, to_us = bounded(from_, to, call.now_us)
    place = call.place(cursor, list(START))
    with call.read(DEMAND) as view:
        rows = demand.read_used(
            view.connection,
            who,
            from_us=from_us,
            to_us=to_us,
            as_provider=as_provider,
            by=names,
            after=place.after,
            limit=limit + 1,
            kind=kind,
            work=work,
            node_id=node_id,
            pool_id=pool_id,
            client_id=client_id,
            project_id=project_id,
            end_user_ref=end_user_ref,
            group_id=group_id,
        )
        return call.page(view, place, rows, limit, lambda row: row.key, lambda row: _used(row, by))


def _used(row: demand.Used, by: str) -> UsageBreakdownAnswer:
    bucket: dict[str, Any] = {by.split(",")[0]: moment_or_none(row.bucket_us)}
    return UsageBreakdownAnswer(
        **(bucket if row.bucket_us is not None else {}),
        **{name: getattr(row, name) for name in NAMES},
        accruals=row.accruals,
        gpu_us=str(row.gpu_us),
        charge=credits_(row.charge),
    )
