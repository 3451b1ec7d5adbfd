"""Where is there room? Free devices by region; for those who let GPUs, where more are wanted."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

OFFERS_MAX = 200


async def show(visit: Visit) -> Response:
    """`/room`"""
    offers = await visit.read("/v1/offers", limit=OFFERS_MAX)
    wanted = await _wanted(visit)
    return visit.show(
        "public/room.html", rows=_by_region(offers["data"], wanted), offers=offers, wanted=wanted
    )


async def _wanted(visit: Visit) -> Told | None:
    """Regions with their names; None: this visitor may not read them."""
    if not visit.may("provider", "operator", "audit:read"):
        return None
    try:
        return await visit.read("/v1/where-next")
    except Refused:
        return None


def _by_region(offers: list[Told], wanted: Told | None) -> list[Told]:
    """The offers of each region, the cheapest of them, and how many devices are free. A count of
    the offers that were read: `/v1/offers` says whether there are more.
    """
    names = {} if wanted is None else {one["region_id"]: one["name"] for one in wanted["regions"]}
    found: dict[str, Told] = {}
    for one in offers:
        region = one.get("region_id", "")
        row = found.setdefault(
            region,
            {
                "region_id": region or None,
                "name": names.get(region),
                "setting": one.get("supply", {}).get("setting", ""),
                "offers": 0,
                "free": 0,
                "cheapest": one["price_per_gpu_hour"],
            },
        )
        row["offers"] += 1
        row["free"] += int(one.get("devices_free", 0))
    return sorted(found.values(), key=lambda row: -int(row["free"]))
