"""Can everybody be paid? What the network holds against whose it is, by kind of account."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.drawing.words import PLACES
from api.console.visits.reading import Told
from api.console.visits.visit import Visit

ASSETS = ("CREDIT", "TOKEN")


async def show(visit: Visit) -> Response:
    """`/solvency`"""
    told = await visit.read("/v1/solvency")
    parts = [
        {
            "asset": asset,
            "rows": [one for one in told["data"] if one["amount"]["asset"] == asset],
            "held": _of(told["held"], asset),
            "claimed": _of(told["claimed"], asset),
            "plot": _plot(told, asset),
        }
        for asset in ASSETS
    ]
    return visit.show("public/solvency.html", told=told, parts=parts)


def _of(sums: list[Told], asset: str) -> Told:
    return next(one for one in sums if one["asset"] == asset)


def _plot(told: Told, asset: str) -> Bars:
    held, claimed = _of(told["held"], asset), _of(told["claimed"], asset)
    bars = [Bar("Held", (int(held["units"]), 0)), Bar("Claimed", (0, int(claimed["units"])))]
    says = "Both bars are as high" if held == claimed else "The bars differ"
    return Bars(f"{asset}, held and claimed", asset, PLACES[asset], bars, ("Held", "Claimed"), says)
