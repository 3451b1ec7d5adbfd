"""From an offer to a lease: the price and what is held are told first, and nothing is dearer.

    price of the lease <= price that was shown;   held == price shown x GPUs x hours

The API gives the cheapest machine that fits: the page asks for the offer's model, at most at its
price, in its region, and says which machine that is now.
"""

from __future__ import annotations

import shlex
from typing import Any

from starlette.responses import Response

from api.console.renter import offers
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit

HOURS_MAX, GPUS_MAX = 720, 64
FIELDS = ("image", "command", "gpus", "hours", "project")
SURE = "Hold this amount and start"


async def take(visit: Visit) -> Response:
    """The form of an offer: first it is told what it would cost, then a lease is opened."""
    offer = await visit.read(f"/v1/offers/{visit.params['offer_id']}")
    try:
        asked = _asked(visit, offer)
        if visit.form.get("do") == "open":
            entering.sure(visit.form.get("sure", ""), SURE)
            told = await visit.record("/v1/leases", asked)
            return visit.to(f"/leases/{told['lease_id']}")
        quoted = await _quote(visit, asked)
    except Refused as problem:
        return visit.show(
            "renter/offer.html",
            problem.status,
            offer=offers.row(offer),
            may_rent=True,
            problem=problem,
        )
    return visit.show(
        "renter/opening.html",
        offer=offers.row(offer),
        asked=asked,
        quoted=quoted,
        fields={
            **{name: visit.form.get(name, "") for name in FIELDS},
            "price": asked["job"]["max_price_per_gpu_hour"]["units"],
        },
        refill=asked["refill"],
        sure=SURE,
    )


async def _quote(visit: Visit, asked: Told) -> Told:
    """Which machine it would be now. Raises Refused: none, with what would help."""
    told = await visit.record(
        "/v1/quotes", {"job": asked["job"], "settlement": asked["settlement"]}
    )
    if told.get("offered") is None:
        ways = [
            f"{one['field']} {one['required']} -> {one['offered']}" for one in told["relaxations"]
        ]
        free = f" It is free by {told['free_by']}." if told.get("free_by") else ""
        help_ = f" What would help: {'; '.join(ways)}." if ways else ""
        raise refused("no_match", f"No machine fits at this moment.{free}{help_}")
    return told


def _asked(visit: Visit, offer: Told) -> Told:
    """The lease to ask for, at most at the price that was shown. Raises Refused."""
    form = visit.form
    gpus = entering.whole(form.get("gpus", "1"), "GPUs", 1, GPUS_MAX)
    hours = entering.whole(form.get("hours", "1"), "hours", 1, HOURS_MAX)
    units = entering.whole(
        form.get("price") or offer["price_per_gpu_hour"]["units"], "the price", 0, 10**12
    )
    price = {"asset": "CREDIT", "units": str(units)}
    job: dict[str, Any] = {
        "gpu_count": gpus,
        "models": offer.get("models") or [],
        "max_price_per_gpu_hour": price,
        "command": _words(form.get("command", "")),
    }
    if form.get("image", "").strip():
        job["image"] = form["image"].strip()
    if form.get("project", "").strip():
        job["project_id"] = form["project"].strip()
    if offer.get("region_id"):
        job["constraints"] = {"regions": [offer["region_id"]]}
    if not job["command"] and "image" not in job:
        raise refused("invalid", "say what should run: an image, a command, or both")
    funds = {"asset": "CREDIT", "units": str(units * gpus * hours)}
    settled = offer["settlement"]
    is_refilled = form.get("refill") == "yes"
    return {"job": job, "settlement": settled, "funds": funds, "refill": is_refilled}


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise refused("invalid", f"the command cannot be read: {error}") from None
