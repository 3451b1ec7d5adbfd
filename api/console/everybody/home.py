"""The home page: what this is, and how to begin; for who is signed in, where to go on."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.visit import Visit

OFFERS_MAX = 100


async def show(visit: Visit) -> Response:
    """`/`"""
    offers = await visit.read("/v1/offers", limit=OFFERS_MAX)
    return visit.show("everybody/home.html", offers=offers)
