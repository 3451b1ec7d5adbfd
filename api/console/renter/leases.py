"""All leases of an account, the newest first."""

from __future__ import annotations

from starlette.responses import Response

from api.console.renter import listing
from api.console.visits.visit import Visit

STATES = (
    "active",
    "reserved",
    "gang_waiting",
    "quoted",
    "requested",
    "paused",
    "degraded",
    "reclaiming",
    "closing",
    "settled",
    "disputed",
    "resolved",
    "archived",
)


async def show(visit: Visit) -> Response:
    """`/leases`, with `?state=`."""
    state = visit.asked("state")
    found = await listing.newest(visit, "/v1/leases", state=state or None)
    offers = await listing.offers_of(visit, found["data"])
    found["data"] = [
        {
            **one,
            "gpu": listing.gpu_of(one, offers),
            "is_mine": one["account_id"] == visit.account_id,
        }
        for one in found["data"]
    ]
    return visit.show("renter/leases.html", found=found, states=STATES, state=state)
