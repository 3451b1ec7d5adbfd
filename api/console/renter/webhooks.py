"""Webhooks: addresses that are told what is recorded about an account, and what they answered."""

from __future__ import annotations

from starlette.responses import Response

from api.console.renter import listing
from api.console.visits.reading import Refused, refused
from api.console.visits.visit import Visit

DONE = ("stop", "start", "test")


async def show(visit: Visit, problem: Refused | None = None) -> Response:
    """`/webhooks`"""
    return visit.show(
        "renter/webhooks.html",
        200 if problem is None else problem.status,
        problem=problem,
        found=await listing.newest(visit, "/v1/webhooks"),
        may_change=visit.may("account:admin"),
    )


async def take(visit: Visit) -> Response:
    """A new address. Its secret is in this one answer only."""
    types = visit.form.get("types", "").replace(",", " ").split()
    try:
        body = {"url": visit.form.get("url", "").strip(), "types": types}
        told = await visit.record("/v1/webhooks", body)
    except Refused as problem:
        return await show(visit, problem)
    return visit.show("renter/webhook_secret.html", told=told)


async def show_one(
    visit: Visit, problem: Refused | None = None, tested: dict[str, object] | None = None
) -> Response:
    """`/webhooks/{endpoint_id}`: the address, and what was delivered to it."""
    endpoint_id = visit.params["endpoint_id"]
    deliveries = await listing.newest(visit, f"/v1/webhooks/{endpoint_id}/deliveries")
    return visit.show(
        "renter/webhook.html",
        200 if problem is None else problem.status,
        problem=problem,
        tested=tested,
        endpoint_id=endpoint_id,
        deliveries=deliveries,
        may_change=visit.may("account:admin"),
    )


async def take_one(visit: Visit) -> Response:
    """Stop, start or test an address."""
    path, what = f"/v1/webhooks/{visit.params['endpoint_id']}", visit.form.get("do", "")
    try:
        if what not in DONE:
            raise refused("invalid", "this form is unknown")
        told = await visit.record(f"{path}/{what}")
    except Refused as problem:
        return await show_one(visit, problem)
    if what == "test":
        return await show_one(visit, tested=told)
    return visit.to(f"/webhooks/{visit.params['endpoint_id']}")
