"""Offers side by side: what each costs, what is measured of it, and what is only stated."""

from __future__ import annotations

from starlette.responses import Response

from api.console.renter import listing
from api.console.visits import entering
from api.console.visits.reading import Told
from api.console.visits.visit import Visit

MIB, PPM = 1024, 10_000
MOST = 500
SORTS = {
    "price": "Cheapest",
    "reputation": "Best reputation",
    "memory": "Most memory",
    "latency": "Lowest latency",
}
FIELDS = ("model", "memory", "gpus", "price", "reputation", "tier", "setting", "region", "latency")
SETTINGS = ("datacenter", "edge")
MEASURED = frozenset({"reports"})


async def show(visit: Visit) -> Response:
    """`/offers`; the fields of the filter are parameters of the address."""
    asked = {name: visit.asked(name) for name in FIELDS}
    sort = visit.asked("sort") if visit.asked("sort") in SORTS else "price"
    found = await _found(visit, asked, sort)
    return visit.show(
        "renter/offers.html",
        found=found,
        asked=asked,
        sort=sort,
        sorts=SORTS,
        settings=SETTINGS,
        is_asked=any(asked.values()),
    )


async def show_one(visit: Visit) -> Response:
    """`/offers/{offer_id}`: all that is known of it, and the form that opens a lease."""
    offer = await visit.read(f"/v1/offers/{visit.params['offer_id']}")
    return visit.show("renter/offer.html", offer=row(offer), may_rent=_may_rent(visit))


def _may_rent(visit: Visit) -> bool:
    return visit.session is not None and visit.may("renter", "client")


async def _found(visit: Visit, asked: Told, sort: str) -> Told:
    """The API has the cheapest first: another order takes all that fit, at most `MOST`."""
    query = _query(asked)
    if sort == "price":
        found = await listing.rows(visit, "/v1/offers", **query)
        return {**found, "data": [row(one) for one in found["data"]], "left_out": False}
    told = await visit.read("/v1/offers", limit=MOST, **query)
    keys = {
        "reputation": lambda one: -int(one["reputation"] or 0),
        "memory": lambda one: -int(one.get("memory_mib") or 0),
        "latency": lambda one: one["latency"] if one["latency"] is not None else 1 << 60,
    }
    data = sorted((row(one) for one in told["data"]), key=keys[sort])
    return {"data": data, "rest": "", "is_first": True, "left_out": told["has_more"]}


def _query(asked: Told) -> Told:
    """The API's parameters. Raises Refused: a field is no number."""
    told: Told = {
        "model": asked["model"] or None,
        "setting": asked["setting"] or None,
        "region_id": asked["region"] or None,
    }
    if asked["memory"]:
        told["memory_mib"] = MIB * entering.whole(asked["memory"], "memory", 1, 10_000)
    if asked["gpus"]:
        told["gpu_count"] = entering.whole(asked["gpus"], "GPUs together", 1, 64)
    if asked["price"]:
        told["price_max"] = entering.credits_of(asked["price"], "the price")["units"]
    if asked["reputation"]:
        told["min_reputation_ppm"] = PPM * entering.whole(asked["reputation"], "reputation", 1, 100)
    if asked["tier"]:
        told["security_tier"] = entering.whole(asked["tier"], "the tier", 0, 9)
    if asked["latency"]:
        told["max_latency_ms"] = entering.whole(asked["latency"], "latency", 1, 60_000)
    return told


def row(offer: Told) -> Told:
    """An offer, with what a table shows of it: measured and stated apart."""
    supply, terms = offer.get("supply") or {}, offer.get("terms") or {}
    ways = [one["rtt_us"] for one in supply.get("latency") or []]
    return {
        **offer,
        "name": " or ".join(offer.get("models") or ["any GPU"]),
        "gib": (offer.get("memory_mib") or 0) // MIB or None,
        "reputation": supply.get("reputation_ppm"),
        "is_provisional": bool(supply.get("provisional")),
        "tier": supply.get("security_tier"),
        "setting": supply.get("setting", ""),
        "latency": min(ways) if ways else None,
        "known": _known(supply),
        "stated": _stated(supply, terms),
    }


def _known(supply: Told) -> list[Told]:
    """What is known of its speed, with the evidence: measured by reports, or stated."""
    return [
        {
            "name": one["name"],
            "value": one["value"],
            "source": one["source"],
            "is_measured": one["source"] in MEASURED,
        }
        for one in supply.get("performance") or []
    ]


def _stated(supply: Told, terms: Told) -> list[tuple[str, str]]:
    """The owner's word: terms of the offer, and statements that others signed."""
    found = [
        (name, ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in terms.items()
        if value is not None and value != []
    ]
    found += [(one["name"], one["value"]) for one in supply.get("statements") or []]
    return found
