"""Disputes over work of an owner's nodes: what is claimed, what was said, and an answer.

Who rents is not shown: sides are called renter and provider.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from api.console.owner.own import ROWS_MAX
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit

OPEN = ("opened", "answered")


async def show_all(visit: Visit) -> Response:
    """`/earn/disputes`"""
    found = await visit.read("/v1/disputes", order="desc", limit=ROWS_MAX)
    rows = [one for one in found["data"] if one["provider_account_id"] == visit.account_id]
    return visit.show(
        "owner/disputes.html",
        rows=rows,
        has_more=found["has_more"],
        open_=[one for one in rows if one["state"] in OPEN],
    )


async def show(visit: Visit) -> Response:
    """`/earn/disputes/{dispute_id}`"""
    return await _page(visit, None)


async def take(visit: Visit) -> Response:
    """Say what happened, with a fact of the log as evidence where there is one."""
    await _own(visit)
    path = f"/v1/disputes/{visit.params['dispute_id']}"
    body: dict[str, Any] = {}
    if visit.form.get("statement", "").strip():
        body["statement"] = visit.form["statement"].strip()
    try:
        if position := visit.form.get("position", "").strip():
            if not position.isascii() or not position.isdigit() or len(position) > 15:
                raise refused("invalid", "a position of the log is a whole number")
            body["evidence"] = [{"kind": "market_fact", "position": int(position)}]
        await visit.record(f"{path}/answer", body)
    except Refused as problem:
        if problem.status in (401, 403, 404):
            raise
        return await _page(visit, problem)
    return visit.to(f"/earn/disputes/{visit.params['dispute_id']}")


async def _own(visit: Visit) -> Told:
    """The dispute, if it is about work of the visitor's nodes. Raises Refused."""
    told = await visit.read(f"/v1/disputes/{visit.params['dispute_id']}")
    if told["provider_account_id"] != visit.account_id:
        raise refused("not_found", "this dispute is not about your machines")
    return told


async def _page(visit: Visit, problem: Refused | None) -> Response:
    told = await _own(visit)
    return visit.show(
        "owner/dispute.html",
        200 if problem is None else problem.status,
        told=told,
        is_open=told["state"] in OPEN,
        problem=problem,
        text=visit.form.get("statement", ""),
    )
