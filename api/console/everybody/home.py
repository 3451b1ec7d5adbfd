"""The home page: what this is, how to begin, and the market as it is at this moment."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from api.console.visits.reading import Told
from api.console.visits.visit import Visit

OFFERS_MAX, EPOCHS_MAX = 25, 10
NEXT = {
    "rent": ("/offers", "/room"),
    "leases": ("/leases", "/bills"),
    "join": ("/nodes/new", "/nodes", "/earn"),
    "earn": ("/earn",),
}
"""Where each step leads: the first page that there is."""


async def show(visit: Visit) -> Response:
    """`/`"""
    offers, epochs, tariffs, price = await asyncio.gather(  # together: of one position, mostly
        visit.read("/v1/offers", limit=OFFERS_MAX),
        visit.read("/v1/epochs", order="desc", limit=EPOCHS_MAX),
        visit.read("/v1/tariffs"),
        visit.read("/v1/oracle"),
    )
    paths = {
        step: next((path for path in pages if visit.site.is_shown(path)), "/")
        for step, pages in NEXT.items()
    }
    return visit.show(
        "everybody/home.html",
        offers=offers,
        sealed=next((one for one in epochs["data"] if "rewards" in one), None),
        tariff=_in_force(tariffs["data"]),
        market_price=price,
        paths=paths,
    )


def _in_force(tariffs: list[Told]) -> Told | None:
    return next((one for one in tariffs if one["in_force"]), None)
