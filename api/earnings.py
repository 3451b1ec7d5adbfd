"""Earnings: what each provider's nodes have earned, by node, lease and epoch."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from api.amounts import Money, Units, credits_
from api.auth import with_scope
from api.call import Caller
from api.models import (
    AccountId,
    AccountQuery,
    Count,
    EpochQuery,
    LeaseId,
    LeaseQuery,
    NodeId,
    NodeQuery,
    Told,
    page_of,
)
from api.operation import Resource
from api.paging import LIST_LIMIT, Cursor, Limit
from projections import earnings
from projections.earnings import EARNINGS

resource = Resource("earnings")

By = Annotated[
    str,
    Query(
        pattern=r"^(node_id|lease_id|epoch)(,(node_id|lease_id|epoch)){0,2}$",
        description="What to sum by: of node_id, lease_id, epoch, with commas between",
    ),
]


class EarningTold(Told):
    """fee + provider + platform + burn = charge. `provider` is the provider's part; `burn` is
    retired for it and paid in TOKEN when the epoch is sealed.
    """

    account_id: AccountId
    node_id: NodeId | None = None
    lease_id: LeaseId | None = None
    epoch: Count | None = None
    accruals: Count
    gpu_us: Units
    charge: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money


@resource.get(
    "/v1/earnings", with_scope("earnings:read"), page_of(EarningTold), problems=["cursor_invalid"]
)  # fmt: skip
def list_earnings(
    call: Caller,
    by: By = "node_id,epoch",
    node_id: NodeQuery = None,
    lease_id: LeaseQuery = None,
    epoch: EpochQuery = None,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Sums of what was earned: your own, or everybody's for operators and auditors."""
    place = call.place(cursor, ["", "", "", 0])
    after = (place.after[0], place.after[1], place.after[2], place.after[3])
    with call.read(EARNINGS) as view:
        rows = earnings.read_earnings(
            view.connection, account_id=call.principal.among(account_id), node_id=node_id,
            lease_id=lease_id, epoch=epoch, by=tuple(dict.fromkeys(by.split(","))), after=after,
            limit=limit + 1,
        )  # fmt: skip
        return call.page(
            view, place, rows, limit,
            lambda row: [row.account_id, row.node_id or "", row.lease_id or "", row.epoch or 0],
            _earning,
        )  # fmt: skip


def _earning(row: earnings.Earned) -> EarningTold:
    return EarningTold(
        account_id=row.account_id, node_id=row.node_id, lease_id=row.lease_id, epoch=row.epoch,
        accruals=row.accruals, gpu_us=str(row.gpu_us), charge=credits_(row.charge),
        fee=credits_(row.fee), provider=credits_(row.provider), platform=credits_(row.platform),
        burn=credits_(row.burn),
    )  # fmt: skip
